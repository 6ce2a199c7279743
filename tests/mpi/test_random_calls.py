# SPDX-License-Identifier: Apache-2.0
"""ibprof records the messages that a program noted in random calls on random communicators. No operation lacks
bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.profile.unaccounted import describe_uncompared, find_unaccounted
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import THROUGH_NETWORK, Build, Mpi, run_mpi

RANKS = 5
SEED = 12
"""With some seeds, the program fails or hangs even without ibprof."""
CALLS = 300
SENDS = ("SENDRECV", "ISSEND", "SSEND_INIT", "ISEND")


def check_random_calls(mpi: Mpi, program: Path, folder: Path, *, to_oneself: bool) -> None:
    env = THROUGH_NETWORK if mpi.is_mpich_like else None
    done = run_mpi(mpi, RANKS, [program, str(SEED), str(CALLS)], recording=folder, env=env)
    assert done.stderr == ""
    run = load_complete(folder, RANKS)
    assert describe_uncompared(run) is None
    assert len(run.demands.calls) > CALLS
    assert find_unaccounted(run) == []
    counted: dict[tuple[int, int], tuple[int, int]] = {}
    for operation in SENDS:
        for pair, (size, messages) in recorded(run, operation=operation).items():
            before = counted.get(pair, (0, 0))
            counted[pair] = (before[0] + size, before[1] + messages)
    rows = (map(int, line.split()) for line in done.stdout.splitlines())
    sent = {(one, other): (size, messages) for one, other, size, messages in rows}
    assert len(sent) == RANKS * RANKS
    assert counted == {pair: both for pair, both in sent.items() if both[1] and (to_oneself or pair[0] != pair[1])}


def test_open_mpi(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    check_random_calls(mpi, build(mpi, "random_calls.c"), tmp_path, to_oneself=True)


@pytest.mark.parametrize("name", mpis.in_every_run(*mpis.MPICH_FROM_PYPI))
def test_mpich(name: str, build: Build, tmp_path: Path) -> None:
    """Messages of a rank to itself are not expected, because ibprof does not count such messages in MPICH."""
    mpi = mpis.find_mpich_like(name)
    check_random_calls(mpi, build(mpi, "random_calls.c"), tmp_path, to_oneself=False)
