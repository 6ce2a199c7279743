# SPDX-License-Identifier: Apache-2.0
"""The tracer, which is the reference for ibprof's waiting, records all calls and shows known waits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ibprof.load import load_profile
from ibprof.waiting.wait_split import MeasuredWaiting, measure_waiting
from ibprof_testing.mpi import mpis
from ibprof_testing.waits.traced_runs import WaitPlant, run_traced
from ibprof_testing.waits.traces import RECEIVED, SENT, Trace, find_waits, match_messages, split_by_operation


def trace_run(mpi: mpis.Mpi, plant: WaitPlant, build: mpis.Build, folder: Path) -> list[Trace]:
    programs = build(mpi, "waits.c", "-g").parent
    return run_traced(mpi, plant, folder, programs)


def count_calls(traces: Sequence[Trace], name: str) -> list[int]:
    return [int((trace.calls["name"] == name.encode()).sum()) for trace in traces]


def test_each_call_and_each_end_of_a_message_is_traced(mpi: mpis.Mpi, build: mpis.Build, tmp_path: Path) -> None:
    traces = trace_run(mpi, WaitPlant("halo", 1, 2000, 30), build, tmp_path)
    assert count_calls(traces, "Waitall") == [30] * 4
    assert count_calls(traces, "Isend") == count_calls(traces, "Irecv") == [60] * 4
    for side in (SENT, RECEIVED):
        assert [int((trace.messages["side"] == side).sum()) for trace in traces] == [60] * 4
    assert {int(size) for trace in traces for size in trace.messages["bytes"]} == {2000}
    # No message arrives before it is sent.
    matched = match_messages(traces)
    assert len(matched) == 4 * 60
    for sender, sent, receiver, received in matched:
        assert traces[receiver].calls["exit"][received["call"]] > sent["post"]
        assert (int(sent["peer"]), int(received["peer"])) == (receiver, sender)


@pytest.mark.parametrize(
    ("plant", "operation", "seconds", "waiting_ranks"),
    [
        # 20 rounds with a delay of 20 ms.
        (WaitPlant("late", 20, 8, 20), "Allreduce", 0.4, 3),
        (WaitPlant("halo", 20, 1024, 20), "Waitall", 0.4, 2),
        (WaitPlant("probe", 20, 1024, 20), "Mprobe", 0.4, 3),
        (WaitPlant("look", 20, 1024, 20), "Probe", 0.4, 3),
        (WaitPlant("graph", 20, 1024, 20), "Neighbor_allgather", 0.4, 1),
        (WaitPlant("epochs", 20, 1024, 20), "Win_wait", 0.4, 1),
        (WaitPlant("broadcast", 20, 1024, 20), "Bcast", 0.4, 3),
        (WaitPlant("reduce", 20, 1024, 20), "Reduce", 0.4, 1),
        (WaitPlant("fence", 20, 1024, 20), "Win_fence", 0.4, 3),
        (WaitPlant("receiver", 20, 1024, 20), "Ssend", 0.4, 2),
        (WaitPlant("nonblocking", 20, 8, 20), "Wait", 0.4, 3),
        (WaitPlant("groups", 20, 8, 20), "Allreduce", 0.4, 3),
    ],
    ids=lambda value: value.name if isinstance(value, WaitPlant) else None,
)
def test_waiting_is_as_long_as_the_planted_rest(
    system_mpi: mpis.Mpi,
    build: mpis.Build,
    tmp_path: Path,
    plant: WaitPlant,
    operation: str,
    seconds: float,
    waiting_ranks: int,
) -> None:
    time_s, wait_s = split_by_operation(trace_run(system_mpi, plant, build, tmp_path))[operation]
    # Waiting can fill the calls: the kernel wakes ranks late, and a delay reaches more ranks than `waiting_ranks`.
    assert seconds * waiting_ranks * 0.95 < wait_s <= time_s
    # On two cores, transfer took up to 32% of the time, because ranks also wait for a core.
    assert wait_s > 0.6 * time_s


def test_calls_without_waiting_have_none(system_mpi: mpis.Mpi, build: mpis.Build, tmp_path: Path) -> None:
    traces = trace_run(system_mpi, WaitPlant("receiver", 5, 1024, 20), build, tmp_path)
    for trace, waits in zip(traces, find_waits(traces), strict=True):
        received = trace.calls["name"] == b"Recv"
        assert waits[received].sum() < 0.2 * waits.sum() + 5_000_000


@pytest.mark.parametrize(
    "plant",
    [
        WaitPlant("fence", 5, 1024, 30),
        WaitPlant("probe", 5, 1024, 30),
        WaitPlant("look", 5, 1024, 30),
        WaitPlant("grid", 5, 1024, 30),
        WaitPlant("graph", 5, 1024, 30),
        WaitPlant("epochs", 5, 1024, 30),
        WaitPlant("gather-all", 2, 8, 60),
        WaitPlant("gather-some", 2, 8, 60),
        WaitPlant("halo", 20, 300_000, 10, host_mbit=(400, 100)),
    ],
    ids=lambda plant: plant.title,
)
def test_ibprof_measures_the_same_waiting(
    system_mpi: mpis.Mpi, build: mpis.Build, tmp_path: Path, plant: WaitPlant
) -> None:
    check_waiting(system_mpi, plant, build, tmp_path)


@pytest.mark.parametrize(
    ("name", "plant"),
    [
        *((name, plant) for name in ("5.0.11", "mpich-5.0.2", "intel") for plant in ("partitions", "persistent")),
        *(("mpich-5.0.2", plant) for plant in ("look", "graph", "epochs")),
    ],
)
def test_other_libraries_have_the_same_waiting(name: str, plant: str, build: mpis.Build, tmp_path: Path) -> None:
    find = mpis.find_mpich_like if name in mpis.MPICH_LIKE else mpis.find_mpi
    check_waiting(find(name), WaitPlant(plant, 5, 1024, 30, ranks=3), build, tmp_path)


def test_rounds_are_sampled_where_their_tags_number_them(
    system_mpi: mpis.Mpi, build: mpis.Build, tmp_path: Path
) -> None:
    measured, truth = measure(system_mpi, WaitPlant("steps", 1, 8, 300), build, tmp_path)
    total, waited = measured.total(), sum(wait for _, wait in truth.values())
    assert waited / 2 < total.wait_s < waited + 3 * total.error_s + 0.05 * total.time_s
    assert waited < total.wait_s + total.unsplit_s + 3 * total.error_s


def test_rare_late_messages_are_split(system_mpi: mpis.Mpi, build: mpis.Build, tmp_path: Path) -> None:
    measured, truth = measure(system_mpi, WaitPlant("seldom", 40, 8, 3000, ranks=2), build, tmp_path)
    total, waited = measured.total(), sum(wait for _, wait in truth.values())
    # All six delays are sampled. Other work of the machine may delay messages more often than the program does.
    assert total.wait_s > 0.9 * 6 * 0.04
    allowed = 3 * total.error_s + 0.05 * total.time_s
    assert total.wait_s - allowed < waited < total.wait_s + total.unsplit_s + allowed


def check_waiting(mpi: mpis.Mpi, plant: WaitPlant, build: mpis.Build, tmp_path: Path) -> None:
    measured, truth = measure(mpi, plant, build, tmp_path)
    of_row = np.array(load_profile(tmp_path / "recording").operations)[measured.shares.operation]
    whole = sum(time for time, _ in truth.values())
    for operation, (_, wait) in truth.items():
        found = measured.total(of_row == operation.upper())
        # The error may exceed 5% of the time: for some operations, few samples represent many requests.
        assert found.error_s < 0.2 * whole
        assert found.wait_s == pytest.approx(wait, abs=max(0.05 * whole, found.error_s)), operation
    # No sample shows the time of creating and freeing windows.
    assert measured.total().unsplit_s < 0.1 * whole


def measure(
    mpi: mpis.Mpi, plant: WaitPlant, build: mpis.Build, folder: Path
) -> tuple[MeasuredWaiting, dict[str, tuple[float, float]]]:
    """Return the waiting that ibprof measures, and the tracer's (time, waiting) of each operation, in s."""
    programs = build(mpi, "waits.c", "-g").parent
    traces = run_traced(mpi, plant, folder, programs, folder / "recording", {"IBPROF_TIME": "1"})
    measured = measure_waiting(load_profile(folder / "recording"))
    assert measured
    return measured, split_by_operation(traces)
