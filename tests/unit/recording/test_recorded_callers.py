# SPDX-License-Identifier: Apache-2.0
"""Sites and their callers as processes number them; numbers that point nowhere are errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ibprof.errors import InputError
from ibprof.recording.recording_reader import read_recording
from ibprof_testing.samples.recordings import Process, Records, counter, make_recording

SCRIPT: Records = ({"kind": 1, "path": b"/opt/solver.py"},)


def site(line: int, caller: int = 0) -> dict[str, Any]:
    return {"object": 0, "line": line, "caller": caller, "function": b"f"}


def process(rank: int, sites: Records, used: list[int]) -> Process:
    counters = [counter(1, 5, site=number) for number in used]
    return Process(rank, objects=[SCRIPT], sites=[sites], counters=[counters])


def test_callers_are_sites_only_where_they_call_mpi(tmp_path: Path) -> None:
    """Two processes number the same chains in different orders."""
    first = process(0, [site(30), site(20, 1), site(10, 2), site(10, 1)], [3, 4])
    second = process(1, [site(30), site(10, 1), site(20, 1), site(10, 3)], [2, 4, 3])
    run = read_recording(make_recording(tmp_path, [first, second]))
    labels = [each.label.replace("solver.py:", "") for each in run.sites]
    assert labels == ["10 < 20 < 30", "10 < 30", "20 < 30"]
    found = zip(run.counters.rank.tolist(), run.counters.site.tolist(), strict=True)
    assert {(rank, labels[number - 1]) for rank, number in found} == {
        (0, "10 < 20 < 30"),
        (0, "10 < 30"),
        (1, "10 < 30"),
        (1, "10 < 20 < 30"),
        (1, "20 < 30"),
    }


@pytest.mark.parametrize(
    ("sites", "message"),
    [
        ([site(10, 2)], "expected a caller below 1, found 1"),
        ([site(10, 1)], "expected a caller that precedes its site, found caller 1 of site 1"),
        ([site(10, 2), site(20)], "expected a caller that precedes its site, found caller 2 of site 1"),
        ([site(10, 2), site(20, 1)], "expected a caller that precedes its site, found caller 2 of site 1"),
    ],
)
def test_callers_that_point_nowhere_are_refused(sites: Records, message: str, tmp_path: Path) -> None:
    recording = make_recording(tmp_path, [process(0, [site(1)], [1]), process(1, sites, [1])])
    with pytest.raises(InputError, match=message):
        read_recording(recording)
