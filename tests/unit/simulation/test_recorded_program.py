# SPDX-License-Identifier: Apache-2.0
"""A recorded run becomes a program. The program's computing times, messages and waits equal calculations by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ibprof.errors import InconsistentError
from ibprof.profile.profile_data import Intervals, IntervalTimes
from ibprof_lab.simulation.workload.recorded_program import make_program
from ibprof_testing.samples.timed_runs import MS, make_timed_run

BYTE_NS = 80.0
"""Time of a byte at 100 Mbit/s, in ns."""


EXCHANGE = make_timed_run(
    [(0, 1, 500_000, 3), (1, 0, 500_000, 3)], [[0, 0, 0, 5, 10, 10, 10, 8, 0]] * 2, ("host01", "host05")
)
"""35 ms of computing, 43 ms in MPI, 12 ms of computing. The bytes of a direction take 40 ms at 100 Mbit/s."""


def test_a_rank_computes_sends_and_waits() -> None:
    made = make_program(EXCHANGE, "run", BYTE_NS, waits_late=False)
    assert made.seconds == pytest.approx(0.09)
    assert made.computing == pytest.approx(0.047)
    begin, send, wait, end = made.program.steps[0][:4]
    assert begin["pause"] == 0
    assert (send["awaits"], send["pause"]) == (0, 35 * MS)
    assert (wait["awaits"], wait["pause"]) == (2, 0)  # the rank also awaits its own rendezvous message
    assert end["pause"] == 12 * MS


@pytest.mark.parametrize(("waits_late", "awaited"), [(False, 1), (True, 0)])
def test_what_is_sent_on_waits_for_what_can_have_come(waits_late: bool, awaited: int) -> None:
    """Rank 1 is always inside MPI, so the message that it sends may be the one that it received."""
    run = make_timed_run([(0, 1, 50_000, 0), (1, 2, 50_000, 2)], [[10] * 5] * 3, ("a", "b", "c"))
    program = make_program(run, "run", BYTE_NS, waits_late).program
    assert program.steps[1]["awaits"][1] == awaited


def test_what_cannot_have_come_is_not_waited_for() -> None:
    """The message to rank 1 takes 40 ms, but rank 1 sends after 20 ms."""
    run = make_timed_run([(0, 1, 500_000, 0), (1, 2, 50_000, 2)], [[10] * 9] * 3, ("a", "b", "c"))
    assert make_program(run, "run", BYTE_NS, waits_late=False).program.steps[1]["awaits"][1] == 0


def test_a_rank_that_computes_waits_in_its_next_call() -> None:
    run = make_timed_run([(0, 1, 50_000, 0)], [[1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 0]], ("a", "b"))
    _, wait, end = make_program(run, "run", BYTE_NS, waits_late=False).program.steps[1][:3]
    assert (wait["awaits"], wait["pause"]) == (1, 69 * MS)
    assert end["pause"] == 10 * MS


@pytest.mark.parametrize(
    "change",
    [{"interval_times": IntervalTimes.empty()}, {"intervals": Intervals.empty()}, {"ranks": EXCHANGE.ranks[:1]}],
)
def test_a_recording_without_times_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InconsistentError, match="IBPROF_TIME=1 and IBPROF_INTERVAL"):
        make_program(replace(EXCHANGE, **change), "run", BYTE_NS, waits_late=False)  # type: ignore[arg-type]


def test_a_recording_of_some_operations_is_refused() -> None:
    with pytest.raises(InconsistentError, match="only BCAST"):
        make_program(replace(EXCHANGE, operations_asked="BCAST"), "run", BYTE_NS, waits_late=False)
