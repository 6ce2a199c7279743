# SPDX-License-Identifier: Apache-2.0
"""Folded stacks and speedscope files have the rows' times and bytes. Speedscope files conform to the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ibprof.cli import calls
from ibprof.profile.call_report import CallSum
from ibprof.profile.flame_graphs import SCHEMA, write_folded, write_speedscope
from ibprof_testing.samples.recordings import Process, counter, make_recording

UNITS = {"bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"}
PROFILE = {"endValue", "name", "samples", "startValue", "type", "unit", "weights"}
"""Required keys of a sampled profile."""


def check_types(file: dict[str, Any]) -> None:
    """Check the types that speedscope's schema requires in a file of sampled profiles."""
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json" == SCHEMA
    assert all(isinstance(file[name], str) for name in ("name", "exporter"))
    assert file["activeProfileIndex"] in range(max(len(file["profiles"]), 1))
    frames = file["shared"]["frames"]
    assert all(isinstance(frame["name"], str) for frame in frames)
    for profile in file["profiles"]:
        assert profile.keys() == PROFILE
        assert profile["type"] == "sampled"
        assert profile["unit"] in UNITS
        assert isinstance(profile["name"], str)
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(isinstance(weight, int) and weight > 0 for weight in profile["weights"])
        assert all(frame in range(len(frames)) for sample in profile["samples"] for frame in sample)
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])


def row(*key: str, time_s: float | None, amount: int) -> CallSum:
    return CallSum(key, 1, time_s, None, amount, 1, None, None, 1)


def test_there_is_a_profile_for_each_weight() -> None:
    rows = [row("a", "BCAST", "x.c:1", time_s=0.25, amount=0), row("a", "SEND", "", time_s=0.5, amount=7)]
    file = json.loads(write_speedscope("run\n1", rows))
    check_types(file)
    names = [frame["name"] for frame in file["shared"]["frames"]]
    stacks = [
        [(*(names[frame] for frame in sample), weight) for sample, weight in zip(*pair, strict=True)]
        for profile in file["profiles"]
        for pair in [(profile["samples"], profile["weights"])]
    ]
    assert stacks == [[("a", "MPI_Bcast", "x.c:1", 250_000), ("a", "MPI_Send", 500_000)], [("a", "MPI_Send", 7)]]
    assert [profile["unit"] for profile in file["profiles"]] == ["microseconds", "bytes"]


def test_a_run_without_times_has_bytes_alone(tmp_path: Path) -> None:
    recording = tmp_path / "profile.ibprof"
    make_recording(recording, [Process(0, 1, counters=[[counter(0, 10)]])])
    written = tmp_path / "calls.speedscope.json"
    assert calls.main([str(recording), "--speedscope", str(written)]) == 0
    file = json.loads(written.read_text())
    check_types(file)
    assert [(profile["unit"], profile["endValue"]) for profile in file["profiles"]] == [("bytes", 10)]


@pytest.mark.parametrize("wrong", [{"activeProfileIndex": 3}, {"$schema": "x"}, {"shared": {"frames": []}}])
def test_the_check_rejects_wrong_files(wrong: dict[str, Any]) -> None:
    file = json.loads(write_speedscope("run", [row("a", "SEND", time_s=None, amount=7)]))
    check_types(file)
    with pytest.raises(AssertionError):
        check_types(file | wrong)


def test_weights_of_folded_stacks_are_microseconds_or_bytes() -> None:
    rows = [row("a;b", "BCAST", "x.c:1", time_s=0.25, amount=0), row("a\nb", "SEND", "", time_s=None, amount=7)]
    assert write_folded(rows, "time") == "a,b;MPI_Bcast;x.c:1 250000\n"
    assert write_folded(rows, "bytes") == "a\\nb;MPI_Send 7\n"


def test_the_command_writes_folded_stacks(tmp_path: Path) -> None:
    recording = tmp_path / "profile.ibprof"
    make_recording(recording, [Process(0, 1, counters=[[counter(0, 10)]])])
    folded = tmp_path / "calls.folded"
    assert calls.main([str(recording), "--folded", str(folded), "--folded-by", "bytes"]) == 0
    stack, weight = folded.read_text().rsplit(" ", 1)
    assert (stack.split(";")[:2], int(weight)) == (["main", "MPI_Bcast"], 10)
