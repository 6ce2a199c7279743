# SPDX-License-Identifier: Apache-2.0
"""After a timeout, the killed launcher cannot end its ranks. The ranks still end with the test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.no_harm import launch

RANKS = 2
ONE_OF_EACH = (mpis.SYSTEM, "5.0.11", mpis.MPICH_SYSTEM)


def find(name: str) -> mpis.Mpi:
    return mpis.find_mpich_like(name) if name in mpis.MPICH_LIKE else mpis.find_mpi(name)


def start_without_harm(mpi: mpis.Mpi, ranks: int, command: list[str | Path], timeout: float) -> object:
    return launch(mpi, ranks, command, {}, timeout=timeout)


@pytest.mark.parametrize(
    ("name", "start"), [*((name, mpis.run_mpi) for name in ONE_OF_EACH), (mpis.SYSTEM, start_without_harm)]
)
def test_no_rank_outlives_a_timeout(name: str, start: Callable[..., object], tmp_path: Path) -> None:
    for seconds in (1, 4, 16, 64):  # try longer time limits until all ranks start
        with pytest.raises(subprocess.TimeoutExpired):
            start(find(name), RANKS, ["sh", "-c", f"touch {tmp_path}/$$; exec sleep 300"], timeout=seconds)
        started = [int(path.name) for path in tmp_path.iterdir()]
        assert not any(map(processes.is_running, started))
        if len(started) >= RANKS:
            return
    pytest.fail("the ranks did not start")
