# SPDX-License-Identifier: Apache-2.0
"""The congestion threshold has the calculated value and a right interval. Questions without an answer are refused."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ibprof.errors import InconsistentError
from ibprof_lab.cli.sim import main
from ibprof_lab.simulation.questions.congestion_threshold import NEAR, find_threshold
from ibprof_lab.simulation.questions.mitigation import list_scenarios
from ibprof_lab.simulation.study.cell import Cell, Outcome, Setting
from ibprof_testing.samples.fabrics import find_sample
from ibprof_testing.samples.simulated_jobs import KIB, SMALL, io, latency_of, mpi

SWITCHES = (24 * 3 + 7 * 1) / 31
"""Mean number of switches between a server and 31 clients; 7 clients are on the server's leaf."""


def test_the_threshold_lies_where_the_servers_are_full(capsys: pytest.CaptureFixture[str]) -> None:
    machine = ["--fabric", "xgft:2:8,4:1,8@100", "--servers", "1", "--share", "1", "--json", "--workers", "1"]
    assert main(["threshold", *machine, "--size", "64KiB"]) == 0
    found = json.loads(capsys.readouterr().out)
    # (N - n) S/(n B), with N = 31 clients, n = 1 server, requests of S bytes, and links of B bytes per µs
    bound = (31 - 1) * 64 * KIB / 12.5e3
    assert found["bound_us"] == pytest.approx(bound, abs=1e-3)
    assert found["crossing_us"] == pytest.approx(bound, rel=0.02)
    assert found["alone_us"] == pytest.approx(64 * KIB / 12.5e3 + SWITCHES * (4096 / 12.5e3 + 0.09), rel=0.02)
    assert found["threshold_us"]["from"] < 1.2 * bound
    assert found["threshold_us"]["to"] > 0.95 * bound
    assert found["without_pause_us"] == pytest.approx(31 * 64 * KIB / 12.5e3, rel=0.05)


def test_reads_are_held_up_by_the_servers_own_links(capsys: pytest.CaptureFixture[str]) -> None:
    """Reads move as many bytes as writes, from server to client. The requests are too small to change `bound_us`."""
    machine = ["--fabric", "xgft:2:8,4:1,8@100", "--servers", "1", "--share", "1", "--json", "--workers", "1"]
    assert main(["threshold", *machine, "--size", "64KiB", "--io-reads", "256B", "--quick"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reads"]
    assert found["bound_us"] == pytest.approx(30 * 64 * KIB / 12.5e3, abs=1e-3)
    request = 256 / 12.5e3 + SWITCHES * (256 / 12.5e3 + 0.09)
    both = 64 * KIB / 12.5e3 + SWITCHES * (4096 / 12.5e3 + 0.09) + request
    assert found["alone_us"] == pytest.approx(both, rel=0.02)
    assert found["without_pause_us"] == pytest.approx(31 * 64 * KIB / 12.5e3, rel=0.05)


def test_servers_with_slower_links_set_the_pace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The fabric is a hypercube at 32 Gb/s with 46 clients. The two isolated servers have links of 8 Gb/s."""
    for name in ("ibdiagnet.lst", "ibdiagnet.fdbs"):
        (tmp_path / name).write_bytes(lzma.decompress(find_sample("hypercube-4", name).read_bytes()))
    lst = tmp_path / "ibdiagnet.lst"
    lines = lst.read_text().splitlines(keepends=True)
    slow = ("{hc-n046 HCA-1}", "{hc-n047 HCA-1}")
    lst.write_text("".join(re.sub("SPD=10", "SPD=2.5", x) if any(each in x for each in slow) else x for x in lines))
    question = ["--fabric", str(lst), "--servers", "2", "--workers", "1", "--quick", "--json"]
    assert main(["threshold", *question, "--size", "64KiB", "--share", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bound_us"] == pytest.approx(46 * 64 * KIB / (2 * 1e3) - 64 * KIB / 1e3, abs=1e-3)
    assert found["threshold_us"]["about"] > 0.6 * found["bound_us"]
    assert found["crossing_us"] == pytest.approx(found["bound_us"], rel=0.1)
    scenarios = list_scenarios(Setting(str(lst), servers=2), io(64 * KIB), mpi())
    windows = [jobs[0].window_ns for name, _, jobs in scenarios if "apart" in name]
    assert windows == pytest.approx([factor * 23 * 64 * KIB / 2 for factor in (1, 1.25, 1.5, 2)], rel=0.05)


def test_no_threshold_where_nothing_is_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "threshold",
                "--fabric",
                "xgft:2:8,4:1,8@100",
                "--servers",
                "16",
                "--size",
                "4KiB",
                "--quick",
                "--workers",
                "1",
            ]
        )
        == 0
    )
    assert "no I/O-congestion threshold" in capsys.readouterr().out


T0, C = 100e3, 1000e3


def closed_network(cells: Sequence[Cell]) -> dict[str, Outcome]:
    """Return outcomes on a closed network's asymptotes.

    With a pause, seeds 1 and 2 deviate by 1%. Without a pause, seed 3 does not settle.
    """
    off = {1: 0.99, 2: 1.01, 3: 1.0}
    outcomes = {}
    for cell in cells:
        (job,) = cell.workloads
        mean = max(T0, C - job.interval_ns) * (off[cell.seed] if job.interval_ns else 1.0)
        settled = cell.seed != 3 or job.interval_ns > 0
        latency = replace(latency_of(mean, settled), half=0.02 * mean, node_mean=mean)
        outcomes[cell.key] = Outcome(cell.key, latency, 1, 0.0, {})
    return outcomes


def test_a_threshold_is_as_sure_as_what_was_measured() -> None:
    """At the threshold, throughput is 90% of its maximum: T0 + pause = C / 0.9, where C is the shortest cycle."""
    true = C / NEAR - T0
    for seeds in ([1, 2], [1, 2, 3], [2]):
        found = find_threshold(SMALL, io(), seeds, closed_network)
        assert found.below_ns is not None
        assert found.above_ns is not None
        assert found.below_ns < true < found.above_ns
        assert found.above_ns - found.below_ns < 0.7 * C
        assert found.about_ns == pytest.approx(true, rel=0.05)
        assert found.seeds == len(set(seeds) - {3})
    with pytest.raises(InconsistentError, match="time did not settle, with a pause of 0 ns between requests: said"):
        find_threshold(SMALL, io(), [3], closed_network)


def test_few_slow_clients_hide_no_threshold() -> None:
    """Slow clients send few messages. The mean over clients shows congestion; the mean over messages does not."""

    def simulate(cells: Sequence[Cell]) -> dict[str, Outcome]:
        found = closed_network(cells)
        for cell in cells:
            outcome = found[cell.key]
            mean = outcome.latency.mean + (9 * T0 if cell.workloads[0].interval_ns > 2 * C else 0)  # slow clients
            latency = replace(outcome.latency, mean=mean, node_mean=mean * (1 if cell.workloads[0].interval_ns else 3))
            found[cell.key] = replace(outcome, latency=latency)
        return found

    found = find_threshold(SMALL, io(), [1, 2], simulate)
    assert found.alone_ns >= found.without_pause_ns * 0.98
    assert found.below_ns is not None


def test_quick_and_thorough_thresholds_agree(capsys: pytest.CaptureFixture[str]) -> None:
    machine = ["--fabric", "xgft:2:8,8:1,8@100", "--servers", "8", "--size", "256KiB", "--json", "--workers", "1"]
    found = []
    for effort in (["--quick"], []):
        assert main(["threshold", *machine, *effort]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["seeds"] == 3
        found.append(document["threshold_us"])
    assert max(each["from"] for each in found) < min(each["to"] for each in found)
    assert all(each["from"] < each["about"] < each["to"] for each in found)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["threshold", "--size", "4MiB"], 2, "required: --fabric"),
        (["advise", "--io", "4MiB", "--mpi", "4KiB"], 2, "required: --fabric"),
        (["threshold", "--fabric", "xgft:2:8,4:1,8@100", "--size", "4 parsecs"], 2, "4 parsecs"),
        (["threshold", "--fabric", "xgft:2:8,4:1,8@100", "--share", "2"], 2, "from 0 to 1"),
        (["threshold", "--fabric", "xgft:1:4:1@100", "--servers", "4"], 2, "fewer than the fabric's 4 hosts"),
        (["threshold", "--fabric", "xgft:1:4:1@100", "--share", "0"], 5, "too small"),
        (["threshold", "--fabric", "xgft:2:8,4:1,8@100", "--lane", "100"], 2, "--lane"),
        (["threshold", "--fabric", "xgft:2:8,4:1,8@100", "--seeds", "1001"], 2, "from 1 to 1000"),
        (["advise", "--io", "1MiB@1000000s", "--mpi", "4KiB", "--fabric", "xgft:1:8:1", "--gbps", "1e6"], 5, "ticks"),
        (["advise", "--fabric", "xgft:2:8,4:1,8@100", "--io", "4MiB", "--mpi", "nothing.otf2"], 3, "nothing.otf2"),
        (["advise", "--fabric", "xgft:2:8,4:1,8@100", "--io", "4MiB@soon", "--mpi", "4KiB"], 2, "soon"),
    ],
)
def test_bad_questions(arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        ended = main(arguments)
    except SystemExit as error:  # argparse
        ended = int(str(error.code))
    assert ended == status
    assert said in capsys.readouterr().err
