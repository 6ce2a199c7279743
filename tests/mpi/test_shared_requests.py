# SPDX-License-Identifier: Apache-2.0
"""Threads share requests and matched messages. Each message is counted once, whichever thread completes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ibprof.profile.profile_data import Kind, Profile
from ibprof.waiting.wait_split import measure_waiting
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import Matrix, load_complete, read_tally, received, recorded
from ibprof_testing.mpi.mpis import Build, find_mpi, find_mpich_like, in_every_run, run_mpi

KEEPS_MESSAGES = tuple(name for name in mpis.MPICH_LIKE if name != mpis.INTEL)
"""MPIs that lose no messages if threads share matched messages (MPI_Mprobe).

Intel MPI loses some of these messages: in 3 of 9 runs without ibprof, ranks hung.
"""

TIMES = {"IBPROF_TIME": "1", "IBPROF_SITES": "1"}
UNSEEN = re.compile(r"(\d+) receives were not seen to end")
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8))]


@pytest.mark.parametrize("name", in_every_run(*mpis.NAMES, *KEEPS_MESSAGES))
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("times", [{}, TIMES], ids=["", "times"])
def test_requests_of_other_threads(name: str, times: dict[str, str], seed: int, build: Build, tmp_path: Path) -> None:
    mpi = find_mpich_like(name) if name in mpis.MPICH_LIKE else find_mpi(name)
    books = tmp_path / "books"
    books.mkdir()
    command: list[str | Path] = [build(mpi, "shared_requests.c", "-pthread"), "60", str(seed)]
    variables = {"TALLY": str(books), **mpis.THROUGH_NETWORK, **times}
    done = run_mpi(mpi, 2, command, recording=tmp_path / "recording", env=variables)
    assert "ibprof" not in done.stderr
    profile, sent = load_complete(tmp_path / "recording", 2), read_tally(books)
    assert set(sent) == {"ISEND", "ISSEND", "IBSEND", "SEND_INIT"}
    assert {operation: recorded(profile, operation=operation) for operation in sent} == sent
    if times:
        check_calls(profile, sent)
    if not mpi.is_mpich_like:
        check_receives(profile)


def check_calls(profile: Profile, sent: dict[str, Matrix]) -> None:
    """Check the number of calls of all threads, and that waiting, transfer and unsplit time add up to all time."""
    counted = {
        name: int(profile.times.calls[profile.times.operation == number].sum())
        for number, name in enumerate(profile.operations)
    }
    for operation in ("ISEND", "ISSEND", "IBSEND"):
        assert counted[operation] == sum(messages for _, messages in sent[operation].values())
    assert counted["START"] + counted["STARTALL"] == 2 * sum(n for _, n in sent["SEND_INIT"].values())
    measured = measure_waiting(profile)
    assert measured is not None
    parts = measured.total()
    assert parts.time_s == pytest.approx(parts.wait_s + parts.transfer_s + parts.unsplit_s)
    assert min(parts.wait_s, parts.transfer_s, parts.unsplit_s) >= 0


def check_receives(profile: Profile) -> None:
    """Check that a note states the number of receives that were not counted: their requests were freed early."""
    sent, came = recorded(profile, kinds=Kind), received(profile)
    for pair, (_, messages) in sent.items():
        notes = [int(found[1]) for note in profile.ranks[pair[1]].notes if (found := UNSEEN.match(note))]
        missing = messages - came[pair][1]
        assert notes == ([missing] if missing else [])
        assert missing or came[pair] == sent[pair]


@pytest.mark.parametrize("name", in_every_run(*mpis.NAMES))
@pytest.mark.parametrize("receives", [1, 40])
def test_receives_that_were_freed_before_they_ended_are_said(
    name: str, receives: int, build: Build, tmp_path: Path
) -> None:
    """Open MPI completes such receives without a notice. So only the sender's counters have the bytes."""
    mpi = find_mpi(name)
    run_mpi(mpi, 2, [build(mpi, "freed_receives.c"), str(receives)], recording=tmp_path)
    profile = load_complete(tmp_path, 2)
    assert recorded(profile)[1, 0][1] >= 2 * receives
    check_receives(profile)
    assert any(UNSEEN.match(note) for note in profile.ranks[0].notes)
