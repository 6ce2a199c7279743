# SPDX-License-Identifier: Apache-2.0
"""Trace events follow the rules of their format. The events' bytes add up to the recorded bytes."""

from __future__ import annotations

import csv
import json
import os
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ibprof.waiting.wait_split import measure_waiting
from ibprof_converter.cli import layout
from ibprof_converter.outputs.trace_events import write_trace
from ibprof_testing.samples.timed_profiles import write_regions_profile, write_timed_profile
from ibprof_testing.samples.timed_runs import make_timed_run
from ibprof_testing.waits.derived_samples import derive_profile
from ibprof_testing.waits.synthetic_traces import MS, SyntheticRun

FABRIC = "xgft:2:2,2:1,1"
RATE = 12.5e9
"""Bytes/s of the profile's links."""

Event = dict[str, Any]
Write = Callable[..., list[Event]]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """Return a function that writes links.csv and the trace events of a profile, and returns the events."""

    def write(profile: str, *options: str) -> list[Event]:
        trace = tmp_path / "trace.json"
        files = ["-o", str(tmp_path / "links.csv"), "--trace", str(trace)]
        assert layout.main([FABRIC, profile, "--placement", "spread", *files, *options]) == 0
        events: list[Event] = json.loads(trace.read_text())["traceEvents"]
        return events

    return write


def check_rules(events: Sequence[Event]) -> None:
    """Check the rules of the trace event format for each phase and each track."""
    check_phases(events)
    check_tracks(events)


def check_tracks(events: Sequence[Event]) -> None:
    """Check that each track has one name, and that the track's events are sorted and do not overlap."""
    named = [(event["name"], event["pid"], event["tid"]) for event in events if event["ph"] == "M"]
    assert len(named) == len(set(named))
    processes = {process for name, process, _ in named if name == "process_name"}
    threads = {(process, thread) for name, process, thread in named if name == "thread_name"}
    last: dict[object, float] = {}
    for event in events:
        if event["ph"] == "M":
            continue
        assert event["pid"] in processes
        # Counters of one name share a track in a process. All other events of a thread share a track.
        track = (event["pid"], event["name"]) if event["ph"] == "C" else (event["pid"], event["tid"])
        if event["ph"] == "C":
            assert last.get(track, -1.0) < event["ts"], event
            last[track] = event["ts"]
        else:
            assert track in threads
        if event["ph"] == "X":
            assert last.get(track, 0.0) <= event["ts"] + 1e-3, event
            last[track] = event["ts"] + event["dur"]


def check_phases(events: Sequence[Event]) -> None:
    opened: dict[tuple[str, str], float] = {}
    for event in events:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in {"process_name", "thread_name"}
            assert isinstance(event["args"]["name"], str)
            continue
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
        elif event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
        elif event["ph"] == "b":
            opened[event["cat"], event["id"]] = event["ts"]
        else:
            assert event["ph"] == "e"
            assert opened.pop((event["cat"], event["id"])) <= event["ts"]
    assert not opened


def test_events_add_up_to_what_was_recorded(written: Write, tmp_path: Path) -> None:
    events = written(write_timed_profile(tmp_path / "run"))
    check_rules(events)
    sent = [(event["tid"], event["ts"], event["dur"], event["args"]["bytes"]) for event in events if event["ph"] == "X"]
    # Rank 0 sends in the first half of a second, rank 2 in the second half.
    assert sent == [(0, 0.0, 500_000.0, 1000), (2, 500_000.0, 500_000.0, 500)]
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert threads == {0: "rank 0", 1: "rank 1", 2: "rank 2"}


def test_the_rules_hold_with_regions_and_time_in_mpi(written: Write, tmp_path: Path) -> None:
    events = written(write_regions_profile(tmp_path, 4))
    check_rules(events)
    phases = Counter(event["ph"] for event in events if event["pid"])
    assert phases["X"] == 4 * 10
    assert phases["b"] == phases["e"]
    assert {event["name"] for event in events if event["ph"] == "X"} == {"sent in the interval"}


@pytest.mark.parametrize(
    "broken",
    [
        {"ph": "X", "tid": 0, "ts": 1.0, "dur": 1.0},
        {"ph": "X", "tid": 7, "ts": 2.0, "dur": 1.0},
        {"ph": "C", "tid": 0, "ts": 0.0, "args": {"value": 0}},
        {"ph": "C", "tid": 0, "ts": 1.0, "args": {"value": "0"}},
        {"ph": "e", "tid": 0, "ts": 5.0, "cat": "region", "id": "1"},
    ],
)
def test_the_rules_reject_events_out_of_order_and_on_no_track(broken: Event) -> None:
    names = [
        {"ph": "M", "name": name, "pid": 1, "tid": 0, "args": {"name": "x"}} for name in ("process_name", "thread_name")
    ]
    whole = [
        {"ph": "X", "name": "x", "pid": 1, "tid": 0, "ts": 0.0, "dur": 2.0},
        {"ph": "C", "name": "c", "pid": 1, "tid": 0, "ts": 0.0, "args": {"value": 1}},
    ]
    check_rules([*names, *whole])
    with pytest.raises((AssertionError, KeyError)):
        check_rules([*names, *whole, {"name": "c", "pid": 1, **broken}])


def test_memory_does_not_grow_with_the_events() -> None:
    """The events of an interval take 2 kB, so the events of millions of intervals must not all be in memory."""

    def peak_of(ranks: int) -> int:
        run = make_timed_run(
            [(rank, (rank + 1) % ranks, 1000, at) for rank in range(ranks) for at in range(100)],
            [[1] * 100] * ranks,
            [f"h{rank}" for rank in range(ranks)],
        )
        tracemalloc.start()
        with Path(os.devnull).open("w") as file:
            write_trace(file, run, ())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert (peak_of(64) - peak_of(8)) / (56 * 100) < 64


def test_the_use_of_links_adds_up_to_their_load(written: Write, tmp_path: Path) -> None:
    events = written(write_timed_profile(tmp_path / "run"))
    use: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C" and event["name"].startswith("use of "):
            use[event["name"].removeprefix("use of ")].append((event["ts"] * 1e-6, event["args"]["share"]))
    loads = {}
    with (tmp_path / "links.csv").open() as file:
        for row in csv.DictReader(file):
            for end, other in ("ab", "ba"):
                if amount := int(row[f"{end}_bytes"]):
                    loads[f"{row[f'{end}_name']} port {row[f'{end}_port']} -> {row[f'{other}_name']}"] = amount
    assert use.keys() == loads.keys()
    for name, steps in use.items():
        carried = 0.0
        for (begin, share), (after, _) in pairwise(steps):
            carried += share * RATE * (after - begin)
        assert carried == pytest.approx(loads[name], rel=1e-4)


def test_sampled_calls_show_waiting_with_the_late_rank_and_transfer(tmp_path: Path) -> None:
    run = SyntheticRun(3, seed=1)
    for number in range(8):
        run.compute({number % 3: 2 * MS})
        run.collective("Allreduce", 8, 1 * MS)
    profile = derive_profile(run.traces())
    waiting = measure_waiting(profile)
    assert waiting is not None
    with (tmp_path / "trace.json").open("w") as file:
        write_trace(file, profile, (), waiting)
    events: list[Event] = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    check_rules(events)
    slices = [event for event in events if event["ph"] == "X"]
    waits = [event for event in slices if "waiting" in event["name"]]
    assert sum(event["dur"] for event in waits) == pytest.approx(waiting.total().wait_s * 1e6)
    assert sum(event["dur"] for event in slices) == pytest.approx(waiting.total().time_s * 1e6)
    assert [event["args"]["late_rank"] for event in waits if event["args"]["late_rank"] == 0] == [0] * 6
    assert {event["name"] for event in slices} == {
        *(f"MPI_Allreduce: waiting for rank {rank}" for rank in range(3)),
        "MPI_Allreduce: transfer",
    }
    # The waiting of each rank's call ends when the transfer begins.
    for before, after in pairwise(slices):
        if before in waits:
            assert after["ts"] == pytest.approx(before["ts"] + before["dur"])
            assert after["name"] == "MPI_Allreduce: transfer"


def test_a_run_without_a_time_line_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.json"
    assert layout.main([FABRIC, "pattern:shift:1", "-o", "/dev/null", "--trace", str(trace)]) == 2
    assert "record with IBPROF_INTERVAL=100" in capsys.readouterr().err
    assert not trace.exists()
