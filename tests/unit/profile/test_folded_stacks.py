# SPDX-License-Identifier: Apache-2.0
"""Folded stacks have a line for each weight, and no name can break one."""

from __future__ import annotations

from pathlib import Path

from ibprof.cli import calls
from ibprof.profile.call_sums import CallSum
from ibprof.profile.folded_stacks import write_folded
from ibprof_testing.samples.recordings import Process, counter, make_recording


def row(*key: str, time_s: float | None, amount: int) -> CallSum:
    return CallSum(key, 1, time_s, None, amount, 1, None, None, 1)


def test_weights_are_microseconds_or_bytes() -> None:
    rows = [row("a;b", "BCAST", "x.c:1", time_s=0.25, amount=0), row("a\nb", "SEND", "", time_s=None, amount=7)]
    assert write_folded(rows, "time") == "a,b;MPI_Bcast;x.c:1 250000\n"
    assert write_folded(rows, "bytes") == "a\\nb;MPI_Send 7\n"


def test_the_command_writes_them(tmp_path: Path) -> None:
    recording = tmp_path / "profile.ibprof"
    make_recording(recording, [Process(0, 1, counters=[[counter(0, 10)]])])
    folded = tmp_path / "calls.folded"
    assert calls.main([str(recording), "--folded", str(folded), "--folded-by", "bytes"]) == 0
    stack, weight = folded.read_text().rsplit(" ", 1)
    assert (stack.split(";")[:2], int(weight)) == (["main", "MPI_Bcast"], 10)
