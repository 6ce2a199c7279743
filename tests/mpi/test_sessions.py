# SPDX-License-Identifier: Apache-2.0
"""Messages of MPI-4 sessions are recorded, even if a session starts again, or outlives MPI_Finalize."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_testing.mpi import mpis, patterns
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, run_mpi
from ibprof_testing.mpi.patterns import all_the_same

RANKS = 5
BYTES = 5000
MPI_THREAD_MULTIPLE = 3

AGAIN, OPEN = "MPI was initialised again after its end", "sessions were open when MPI_Finalize was called"
RINGS = {"one": (1, None), "again": (1, AGAIN), "within": (2, None), "around": (2, None), "asked": (1, None)}
RINGS |= {"left": (1, OPEN), "self": (1, None)}
"""Mode of programs/sessions.c -> number of messages that each rank sends, and expected text of a note, or None."""

# Modes that each MPI runs. Even without ibprof, some MPIs crash when a session starts again. Intel MPI crashes if
# MPI_Init is called during a session.
BEGINS_ONCE = ("one", "within", "around", "left", "self")
LIVES_THROUGH = {
    "5.0.11": BEGINS_ONCE,
    "mpich-4.3.2": tuple(RINGS),
    mpis.MPICH_SYSTEM: BEGINS_ONCE,
    mpis.STANDARD_ABI: tuple(RINGS),
    mpis.INTEL: ("one", "self"),
}
QUICK = ("5.0.11", "mpich-4.3.2")

CASES = [
    pytest.param(name, what, marks=[] if name in QUICK else pytest.mark.full)
    for name, programs in LIVES_THROUGH.items()
    for what in (*programs, "empty", "alone")
]


def find(name: str) -> Mpi:
    return mpis.find_mpich_like(name) if name in mpis.MPICH_LIKE else mpis.find_mpi(name)


@pytest.mark.parametrize(("name", "what"), CASES)
def test_messages_in_and_around_sessions(name: str, what: str, build: Build, tmp_path: Path) -> None:
    mpi = find(name)
    command: list[str | Path] = [build(mpi, "sessions.c"), what, str(BYTES)]
    done = run_mpi(mpi, RANKS, command, recording=tmp_path, env=mpis.THROUGH_NETWORK)
    assert (done.stdout, "ibprof" in done.stderr) == ("", False)
    if what in ("empty", "alone"):  # the session sends nothing; the program must only run as without ibprof
        return
    rings, note = RINGS[what]
    profile = load_complete(tmp_path, RANKS)
    assert recorded(profile, operation="SENDRECV") == all_the_same(patterns.ring(RANKS), BYTES, rings)
    of_ring = profile.times.operation == profile.operations.index("SENDRECV")
    alone = all(rank.thread_level < MPI_THREAD_MULTIPLE for rank in profile.ranks)  # then times are on
    assert profile.times.calls[of_ring].sum() == (rings * RANKS if alone else 0)
    for rank in profile.ranks:
        missing = [said for said in rank.notes if " missing" in said]
        assert [said.partition(":")[0] for said in missing] == ([note] if note else [])
