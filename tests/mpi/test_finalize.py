# SPDX-License-Identifier: Apache-2.0
"""Messages that attribute callbacks send within MPI_Finalize are recorded; HDF5 has such callbacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_testing.mpi import mpis, patterns
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import Build, run_mpi
from ibprof_testing.mpi.patterns import all_the_same

RANKS = 4
BYTES = 4000


QUICK = (mpis.SYSTEM, "mpich-4.3.2")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.full) for name in (*mpis.NAMES, *mpis.MPICH_LIKE)],
)
def test_messages_of_both_attributes_are_recorded(name: str, build: Build, tmp_path: Path) -> None:
    mpi = mpis.find_mpich_like(name) if name in mpis.MPICH_LIKE else mpis.find_mpi(name)
    done = run_mpi(mpi, RANKS, [build(mpi, "finalize.c"), str(BYTES)], recording=tmp_path, env=mpis.THROUGH_NETWORK)
    assert (done.stdout, "ibprof" in done.stderr) == ("", False)
    profile = load_complete(tmp_path, RANKS)
    assert recorded(profile, operation="SENDRECV") == all_the_same(patterns.ring(RANKS), BYTES, 2)
