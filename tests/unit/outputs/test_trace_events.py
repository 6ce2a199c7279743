# SPDX-License-Identifier: Apache-2.0
"""Trace events keep to the rules of their format, and add up to what was recorded."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ibprof_converter.cli import layout
from ibprof_testing.samples.timed_profiles import write_timed_profile

FABRIC = "xgft:2:2,2:1,1"
RATE = 12.5e9
"""Bytes a second of its links."""

Event = dict[str, Any]
Write = Callable[..., list[Event]]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """Return a function that writes links.csv and trace events of a profile, and returns the events."""

    def write(profile: str, *options: str) -> list[Event]:
        trace = tmp_path / "trace.json"
        files = ["-o", str(tmp_path / "links.csv"), "--trace", str(trace)]
        assert layout.main([FABRIC, profile, "--placement", "spread", *files, *options]) == 0
        events: list[Event] = json.loads(trace.read_text())["traceEvents"]
        return events

    return write


def check_rules(events: Sequence[Event]) -> None:
    """Check what the document of the format asks of each phase."""
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


def test_a_run_without_a_time_line_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.json"
    assert layout.main([FABRIC, "pattern:shift:1", "-o", "/dev/null", "--trace", str(trace)]) == 2
    assert "record with IBPROF_INTERVAL=100" in capsys.readouterr().err
    assert not trace.exists()
