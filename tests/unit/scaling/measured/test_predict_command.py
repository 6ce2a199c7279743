# SPDX-License-Identifier: Apache-2.0
"""`ibprof-scaling predict` finds a law for the times in profiles, and extrapolates the times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import CallTimes, Demands, Profile
from ibprof_lab.cli.scaling import main
from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.scaling.measured.call_costs import MESSAGES, read_calls
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

SIZE = 8_000_000
LENGTHS = np.array([0, 1024, 65536, 1048576, 4194304])
TREE = "xgft:2:4,4:1,2"


def seconds_of(ranks: int) -> tuple[float, float]:
    """Return two times in s: computing, and one all-to-all without shared links."""
    block = SIZE / ranks**2
    return 1 / ranks, (ranks - 1) * (1e-5 + block * 1e-9)


def make_run(ranks: int, waiting: float = 0.0) -> Profile:
    """Return a run of ten all-to-alls and ten messages to the next rank. Rank 0 waits."""
    block, part = SIZE // ranks**2, SIZE // ranks // 8
    computing, exchange = seconds_of(ranks)
    inside = [10 * exchange + waiting * (rank == 0) for rank in range(ranks)]
    message = 10 * (1e-5 + part * 1e-9)
    stop = round((computing + inside[-1] + message) * 1e9)
    shape = np.arange(ranks, dtype=np.int32)

    def column(value: Any, dtype: type) -> np.ndarray:
        return np.broadcast_to(np.asarray(value, dtype), ranks).copy()

    key = {"rank": shape, "region": column(0, np.int32)}
    times = [
        CallTimes(**key, operation=column(number, np.int32), calls=column(10, np.uint64),
                  time_ns=np.round(np.array(spent) * 1e9).astype(np.uint64), error_ns=column(0, np.uint64))
        for number, spent in enumerate((inside, [message] * ranks))
    ]  # fmt: skip
    order = np.argsort(np.concatenate([shape, shape]), kind="stable")
    joined = {
        name: np.concatenate([getattr(each, name) for each in times])[order]
        for name in ("rank", "region", "operation", "calls", "time_ns", "error_ns")
    }
    demands = Demands(
        **key, operation=column(0, np.int32), partner=column((1 << 63) + 7, np.uint64),
        bytes=column(10 * block, np.uint64), calls=column(10, np.uint64),
    )  # fmt: skip
    counts = [Count(rank, (rank + 1) % ranks, 10 * part, 10, operation=1) for rank in range(ranks)]
    made = make_profile(
        counts,
        [make_rank(rank, host=rank, stop_ns=stop, has_times=True, has_demands=True) for rank in range(ranks)],
        [make_host(f"node{rank}") for rank in range(ranks)],
        operations=("ALLTOALL", "SENDRECV"),
    )
    return replace(made, times=CallTimes(**joined), demands=demands)


def write_inputs(folder: Path, ranks: Sequence[int] = (2, 4, 8)) -> list[str]:
    """Write delays and runs; return the command's arguments."""
    times = (1e-5 + LENGTHS * 1e-9)[:, None, None]
    write_delays(folder / "d.nc", Delays(("a", "b"), LENGTHS, np.broadcast_to(times, (5, 2, 2)).astype(np.float32)))
    line = ["predict", "--delays", str(folder / "d.nc"), "--operations", "n"]
    for count in ranks:
        write_archive(make_run(count), folder / f"run{count}.otf2")
        line.append(f"{SIZE}:{folder / f'run{count}.otf2'}")
    return line


def test_the_rank_that_waits_least_shows_what_communicating_takes(tmp_path: Path) -> None:
    run = read_calls(make_run(4, waiting=3.0), SIZE)
    computing, exchange = seconds_of(4)
    assert run.rank != 0
    assert run.computing == pytest.approx(computing)
    assert run.groups["ALLTOALL"].seconds == pytest.approx(10 * exchange)
    assert run.groups["ALLTOALL"].size == SIZE // 16
    assert run.groups[MESSAGES].calls == 10
    assert run.groups[MESSAGES].size == SIZE // 32


def test_prediction(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = write_inputs(tmp_path)
    assert main([*line, "--json", "--processes", "16,32", "--figure", str(tmp_path / "curve.png")]) == 0
    document = json.loads(capsys.readouterr().out)
    for row in document["curve"]:
        ranks = row["processes"]
        computing, exchange = seconds_of(ranks)
        assert row["computing"] == pytest.approx(computing, rel=1e-3)
        assert row["operations"]["ALLTOALL"] == pytest.approx(10 * exchange, rel=0.02)
        assert row["low"] <= row["seconds"] <= row["high"] < 1.2 * row["low"]
    assert document["range"]["processes"] == [2, 32]
    assert document["notes"] == [
        "without --fabric, messages are assumed to share no links: communication may take longer than predicted"
    ]
    assert (tmp_path / "curve.png").stat().st_size > 10_000
    assert main(line) == 0
    text = capsys.readouterr().out
    assert text.startswith("Strong scaling of n = 8e+06: ")
    assert "10 µs to 10 µs" not in text  # one pair has one delay, not a range
    assert "Predictions hold for 2 to 32 processes." in text.replace("\n", " ")


@pytest.mark.parametrize(("scaling", "base"), [("strong", 1), ("weak", 2)])
def test_a_run_of_one_process_is_the_base_of_speed_up(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, scaling: str, base: int
) -> None:
    line = ["--json", "--processes", "2,16" if scaling == "strong" else "2", "--scaling", scaling]
    assert main([*write_inputs(tmp_path), *line]) == 0
    without = json.loads(capsys.readouterr().out)["curve"]
    assert main([*write_inputs(tmp_path, (1, 2, 4, 8)), *line]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["seconds"] for row in document["curve"]] == [row["seconds"] for row in without]
    assert document["base"]["processes"] == base
    assert "a run of one process communicates nothing: " in document["notes"][-1]
    if scaling == "strong":
        seconds = seconds_of(1)[0] + 10 * (1e-5 + SIZE // 8 * 1e-9)  # rank 0 also sends to itself
        row = document["curve"][1]
        assert row["speed_up"] == pytest.approx(seconds / row["seconds"], rel=1e-6)
        assert row["efficiency"] == pytest.approx(row["speed_up"] / 16)


def test_delays_of_another_unit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The same delays in ns give the same prediction. `linpack` and `hpl` take the bandwidth from the file."""
    line = [*write_inputs(tmp_path), "--processes", "16", "--json"]
    cube = np.broadcast_to((1e4 + LENGTHS)[:, None, None] * (1 - np.eye(2)), (5, 2, 2))
    np.savez(tmp_path / "d.npz", delays=cube, hosts=np.array(["a", "b"]), lengths=LENGTHS)
    assert main(line) == 0
    plain = json.loads(capsys.readouterr().out)["curve"]
    inputs = ["--delays", str(tmp_path / "d.npz"), "--unit", "ns"]
    assert main([*line, *inputs]) == 0
    assert json.loads(capsys.readouterr().out)["curve"][0]["seconds"] == pytest.approx(plain[0]["seconds"], rel=1e-4)
    assert main(["linpack", "--n", "10000", "--l-peak", "8e9", *inputs, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bandwidth"] == pytest.approx(1e9, rel=1e-4)
    assert main(["hpl", "--n", "1e5", "--grid", "4x4", "--rate", "1e9", *inputs, "--json"]) == 0


def test_tables_slow_what_leaves_a_leaf_switch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Runs on one leaf switch share no links. On 16 hosts, sharing makes an all-to-all's transfer 1.6 times as long."""
    line = [*write_inputs(tmp_path, (2, 3, 4)), "--processes", "16", "--json"]
    assert main(line) == 0
    plain = json.loads(capsys.readouterr().out)["curve"][0]["operations"]
    assert main([*line, "--fabric", TREE]) == 0
    shared = json.loads(capsys.readouterr().out)["curve"][0]["operations"]
    start, moving = 10 * 15 * 1e-5, 10 * 15 * SIZE / 16**2 * 1e-9
    assert shared["ALLTOALL"] - plain["ALLTOALL"] == pytest.approx(0.6 * moving, rel=0.02)
    assert plain["ALLTOALL"] == pytest.approx(start + moving, rel=0.02)


@pytest.mark.parametrize(
    ("ranks", "more", "status", "said"),
    [
        ((2, 4, 8), ("--processes", "64"), 5, "no prediction: 64 processes are beyond the range of 2 to 32"),
        ((2, 4, 8), ("--scaling", "weak"), 5, "no prediction: weak scaling to 4 processes needs a problem size"),
        ((2, 4), (), 5, "expected 3 runs or more"),
        ((2, 4, 8), ("--fabric", "none.lst"), 3, "none.lst"),
        ((2, 4, 8), ("--fabric", TREE, "--placement", "odd"), 2, "expected packed, spread or random:SEED"),
        ((2, 4, 8), ("--fabric", TREE, "--slots", "1", "--processes", "32"), 5, "the fabric has slots for 16"),
    ],
)
def test_what_it_refuses(
    ranks: tuple[int, ...],
    more: tuple[str, ...],
    status: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert main([*write_inputs(tmp_path, ranks), *more]) == status
    assert said in capsys.readouterr().err


def test_runs_without_times(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = write_inputs(tmp_path)
    untimed = [replace(rank, has_times=False) for rank in make_run(4).ranks]
    write_archive(replace(make_run(4), ranks=tuple(untimed)), tmp_path / "untimed.otf2")
    assert main([*line, f"{SIZE}:{tmp_path / 'untimed.otf2'}"]) == 5
    assert "record the run to its end with IBPROF_TIME=1" in capsys.readouterr().err
