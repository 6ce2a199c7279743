# SPDX-License-Identifier: Apache-2.0
"""Tables, charts, thresholds and advice from simulations, on fabrics of a few hosts."""

from __future__ import annotations

import csv
import fcntl
import json
import lzma
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

import pytest
import yaml

from ibprof.errors import InconsistentError, UsageError
from ibprof_converter.cli.sim import main
from ibprof_converter.outputs.charts import draw_means
from ibprof_converter.simulation.engine.packet_engine import Simulation
from ibprof_converter.simulation.engine.simulated_network import Hardware
from ibprof_converter.simulation.measure.message_latency import NOTHING, QUANTILES, Effort, Latency
from ibprof_converter.simulation.measure.seed_statistics import BySeed, average
from ibprof_converter.simulation.questions.congestion_threshold import NEAR, find_threshold
from ibprof_converter.simulation.questions.mitigation import compare_scenarios, list_cells, list_scenarios, recommend
from ibprof_converter.simulation.questions.shared_links import find_shared_links
from ibprof_converter.simulation.study.cell import Cell, Outcome, Setting, make_cells
from ibprof_converter.simulation.study.cell_run import run_cell, set_up
from ibprof_converter.simulation.study.cost_estimate import estimate_hops, find_bottleneck_ns, find_mean_hops
from ibprof_converter.simulation.study.efforts import FULL, QUICK
from ibprof_converter.simulation.study.presets import PRESETS, plan_preset
from ibprof_converter.simulation.study.result_tables import (
    average_seeds,
    describe_latency,
    list_results,
    read_means,
    write_table,
)
from ibprof_converter.simulation.study.simulated_machine import MachineOptions
from ibprof_converter.simulation.study.sweep import STORE, run_cells
from ibprof_converter.simulation.workload.roles import IO, MPI, JobPlacement
from ibprof_testing.samples.fabrics import find_sample
from ibprof_testing.samples.simulated_jobs import KIB, MIB, MS, US, io, mpi

# 4 leaves of 8 hosts, full bisection.
SMALL = Setting("xgft:2:8,4:1,8@100", servers=4, effort=QUICK)

# 9 leaves of 8 hosts: a leaf of servers, and 4 for each job where they get whole ones. As many clients a server as 4.
MACHINE = ["--fabric", "xgft:2:8,9:1,8@100", "--servers", "8", "--workers", "1", "--quick"]


def latency_of(mean: float, settled: bool = True) -> Latency:
    return replace(NOTHING, messages=9, mean=mean, quantiles=(mean,) * len(QUANTILES), is_settled=settled, note="said")


def test_a_slowdown_is_the_mean_of_each_seeds_own() -> None:
    cells = make_cells(SMALL, [io(), mpi()], MPI, [1, 2, 3])
    means = dict(zip([cell.key for cell in cells], (2000.0, 4000.0, 1000.0, 4000.0, 1000.0, 9000.0), strict=True))
    outcomes = {key: Outcome(key, latency_of(mean), 1, 0.0, {}) for key, mean in means.items()}
    alone, beside = average_seeds(list_results(cells, outcomes))
    assert (alone["run"], alone["seeds"], alone["slowdown"]) == ("baseline", 3, None)
    # 2, 4 and 9 times; t(0.975, 2) = 4.3027, their deviation 3.6056.
    assert beside["slowdown"] == 5.0
    assert beside["slowdown_half"] == pytest.approx(4.3027 * 3.6056 / 3**0.5, abs=1e-3)
    assert alone["io_bytes"] is None


def test_a_slowdown_is_of_the_seeds_that_have_both_runs() -> None:
    cells = make_cells(SMALL, [io(), mpi()], MPI, [1, 2, 3])
    latencies = [
        latency_of(1e3),
        latency_of(2e3),
        latency_of(1e3, False),
        latency_of(9e3),
        latency_of(1e3),
        latency_of(4e3),
    ]
    latencies = [replace(each, node_mean=2 * each.mean - 1e3) for each in latencies]
    outcomes = {cell.key: Outcome(cell.key, each, 1, 0.0, {}) for cell, each in zip(cells, latencies, strict=True)}
    alone, beside = average_seeds(list_results(cells, outcomes))
    assert (alone["seeds"], beside["seeds"], beside["slowdown_seeds"]) == (2, 3, 2)
    assert (beside["slowdown"], beside["node_slowdown"]) == (3.0, 5.0)


def test_an_interval_by_clients() -> None:
    """Student's t of the clients' means, whatever the batches of time say; none of one client."""
    clients = tuple((host, 50, mean) for host, mean in enumerate((1000.0, 1200.0, 1400.0, 1200.0)))
    latency = replace(NOTHING, messages=200, mean=1200.0, node_mean=1200.0, is_settled=True, by_client=clients)
    row = describe_latency(latency)
    assert row["node_half_us"] == pytest.approx(3.182 * 0.1633 / 2, rel=1e-3)
    assert describe_latency(replace(latency, by_client=clients[:1]))["node_half_us"] is None
    assert describe_latency(replace(latency, is_settled=False))["node_half_us"] is None


def test_what_is_not_settled_is_empty_and_says_why() -> None:
    cells = make_cells(SMALL, [io(), mpi()], MPI, [1, 2])
    outcomes = {cell.key: Outcome(cell.key, latency_of(1e3, cell.is_alone), 1, 0.0, {}) for cell in cells[:3]}
    results = list_results(cells, outcomes)
    assert [row["mean_us"] for row in results] == [1.0, None, 1.0, None]
    beside = average_seeds(results)[1]
    assert (beside["mean_us"], beside["slowdown"], beside["seeds"]) == (None, None, 0)
    assert beside["note"] == "2 of 2 seeds: not simulated yet; said"
    assert average_seeds(results[:2])[1]["note"] == "said"


def test_a_key_is_of_what_matters(tmp_path: Path) -> None:
    (first, beside), (other, _) = (make_cells(SMALL, [io(interval=each), mpi()], MPI, [1]) for each in (0.0, 1 * MS))
    assert first.key == other.key != beside.key  # a baseline is the same whatever the other job would be
    changed = [
        replace(first, seed=2),
        replace(first, setting=replace(SMALL, servers=5)),
        replace(first, setting=replace(SMALL, hardware=Hardware(lane_bytes=8192))),
        replace(first, setting=replace(SMALL, fabric="xgft:2:8,4:1,4@100")),
    ]
    assert len({first.key, *(cell.key for cell in changed)}) == 5


@pytest.mark.parametrize("name", PRESETS)
def test_estimates_are_of_the_right_size(name: str) -> None:
    cells = plan_preset(name, MachineOptions(SMALL.fabric, servers=4, effort=QUICK), [1], True).cells
    assert all(0 < estimate_hops(cell) <= QUICK.hops for cell in cells)


def test_estimates_by_hand() -> None:
    # Within a leaf 2 links, between leaves 4: over all leaves and hosts 2/4 + 4 * 3/4.
    assert find_mean_hops(SMALL.fabric, SMALL.hardware) == pytest.approx(0.25 * 2 + 0.75 * 4)
    # 14 clients of 4 MiB at 12.5 GB/s into 4 servers.
    cell = make_cells(SMALL, [io(), mpi()], IO, [1])[0]
    assert find_bottleneck_ns(cell, io()) == pytest.approx(14 * 4 * MIB / 12.5 / 4)
    # A cell that was run took about as much.
    short = replace(cell, setting=replace(SMALL, effort=Effort(messages=20)))
    assert 0.2 < run_cell(short).packet_hops / estimate_hops(short) < 5
    # All messages that are asked for, where the interval does not end it: 50 and 1,000 for 8.
    full = [replace(each, setting=replace(SMALL, effort=FULL)) for each in make_cells(SMALL, [mpi()], MPI, [1])]
    assert estimate_hops(full[0]) == pytest.approx(1050 / 8 * estimate_hops(make_cells(SMALL, [mpi()], MPI, [1])[0]))


def test_a_seed_before_the_next_and_its_longest_first(tmp_path: Path) -> None:
    class Noting(ThreadPoolExecutor):
        begun: ClassVar[list[tuple[int, float]]] = []

        def submit(self, fn: Any, cell: Any) -> Any:  # type: ignore[override]
            self.begun.append((cell.seed, -estimate_hops(cell)))
            return super().submit(fn, cell)

    cells = make_cells(SMALL, [io(4 * KIB), mpi(64 * KIB)], MPI, [2, 1])
    with Noting(1) as pool:
        run_cells(cells, tmp_path, pool)
    assert len(pool.begun) == 4
    assert pool.begun == sorted(pool.begun)


def test_a_folder_has_one_that_simulates_in_it(tmp_path: Path) -> None:
    cells = make_cells(SMALL, [mpi()], MPI, [1])
    with ThreadPoolExecutor(1) as pool, (tmp_path / STORE).open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match=f"^{re.escape(str(tmp_path))}: another ibprof-sim simulates"):
            run_cells(cells, tmp_path, pool)
        other.close()
        assert run_cells(cells, tmp_path, pool).keys() == {cells[0].key}


def test_a_checkpoint_is_timed_whole() -> None:
    # One client and one server: what a client writes takes at least its bytes' time, its first start left out.
    setting = Setting("xgft:1:4:1@100", servers=1, effort=QUICK)
    jobs = [io(512 * KIB, share=0.34, limit=40), mpi(4 * KIB, 50 * US, share=0.66)]
    (_, beside) = make_cells(setting, jobs, MPI, [1])
    (whole,) = run_cell(beside).whole_ns[IO]
    assert 40 * 512 * KIB / 12.5 < whole < 1.2 * 40 * 512 * KIB / 12.5


@pytest.fixture(scope="module")
def every_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Presets in their quick form on a small machine."""
    folder = tmp_path_factory.mktemp("studies")
    for name in ("interference", "placement", "scaling", "throttle"):
        assert main(["study", name, *MACHINE, "-o", str(folder / name)]) == 0
    return folder


def test_the_reduced_survey_shows_every_shape(every_study: Path) -> None:
    """Section 5.4 on 72 hosts with 4 clients a server: N S/(n B) - S/B is 1.0 ms for 4 MiB, 0.13 ms for 512 KiB."""
    means = read_means([every_study / "interference" / "means.csv"])

    def find(column: str, measured: str, io_pattern: tuple[int, float], mpi_pattern: tuple[int, float] | None) -> float:
        wanted = {"measured": measured, "io_bytes": io_pattern[0], "io_interval_us": io_pattern[1]}
        if mpi_pattern:
            wanted |= {"mpi_bytes": mpi_pattern[0], "mpi_interval_us": mpi_pattern[1]}
        run = "interference" if mpi_pattern else "baseline"
        (row,) = (row for row in means if row["run"] == run and all(row[key] == value for key, value in wanted.items()))
        return float(row[column])

    # Past the threshold requests take times as long; 4 KiB has none.
    alone = {
        size: find("mean_us", IO, pattern, None) for size, pattern in {4: (4 * MIB, 5000), 1: (512 * KIB, 500)}.items()
    }
    assert find("mean_us", IO, (4 * MIB, 100), None) > 2 * alone[4]
    assert find("mean_us", IO, (512 * KIB, 100), None) > 1.3 * alone[1]
    assert find("mean_us", IO, (4 * KIB, 1), None) < 1.5 * find("mean_us", IO, (4 * KIB, 500), None)
    # MPI messages suffer from congested I/O, those of short intervals less; I/O suffers from large messages when small.
    beside = [find("slowdown", MPI, (4 * MIB, 100), (4 * KIB, interval)) for interval in (500, 1)]
    assert beside[0] > beside[1] > 1.5
    assert find("slowdown", IO, (4 * KIB, 500), (4 * MIB, 100)) > 1.1
    # Past the threshold MPI does not matter to I/O.
    assert find("slowdown", IO, (4 * MIB, 100), (4 * MIB, 5000)) == pytest.approx(1, abs=0.15)


def test_every_study_says_what_it_found(every_study: Path) -> None:
    found = json.loads((every_study / "placement" / "summary.json").read_text())["mpi_slowdown"]
    assert found["random-node"] > found["random-switch"] == pytest.approx(1, abs=0.05)
    throttled = json.loads((every_study / "throttle" / "summary.json").read_text())
    slow = [throttled["mpi_slowdown"][f"io_window_us={window}"] for window in (0, 2000, 5000)]
    assert slow[0] > slow[1] > slow[2] == pytest.approx(1, abs=0.2)
    with (every_study / "throttle" / "whole.csv").open(newline="") as file:
        whole = [row for row in csv.DictReader(file) if (row["window_us"], row["run"]) == ("3000.0", "interference")]
    requests = -(-4_300_000_000 // (4 * MIB)) // 20
    assert len(whole) == 32
    # That number of windows and a request, jittered.
    assert all(float(row["whole_ms"]) == pytest.approx((requests - 1) * 3, rel=0.02) for row in whole)


def texts_of(figure: Path) -> str:
    return " ".join(re.findall(r"<!-- (.*?) -->", figure.read_text()))


def test_every_measured_job_of_every_study_has_a_chart(every_study: Path, tmp_path: Path) -> None:
    assert main(["charts", str(every_study), "-o", str(tmp_path), "--format", "svg"]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    both = {f"{study}-{job}.svg" for study in ("interference", "scaling", "throttle") for job in ("io", "mpi")}
    assert names == {*both, "placement-mpi.svg"}
    survey = texts_of(tmp_path / "interference-mpi.svg")
    for words in ("mpi 4 KiB, io 4 MiB", "mpi 4 MiB, io 4 KiB", "mpi interval 500 us", "io interval 100 us"):
        assert words in survey
    assert {"random-node", "random-switch"} <= set(texts_of(tmp_path / "placement-mpi.svg").split())


def test_charts_show_what_is_missing_and_of_fewer_seeds(every_study: Path, tmp_path: Path) -> None:
    means = [{**row, "seeds": 5.0, "mean_half_us": 1.0} for row in read_means([every_study / "scaling" / "means.csv"])]
    (chart, _) = draw_means(means, tmp_path, "scaling", "svg")
    assert "whisker" in texts_of(chart)
    assert "hollow" not in texts_of(chart)
    beside = [row for row in means if (row["measured"], row["run"]) == (IO, "interference")]
    beside[0]["seeds"] = 1.0
    beside[1] |= dict.fromkeys(("mean_us", "slowdown")) | {"note": "1 of 1 seeds: no steady state: it still grows"}
    beside[2] |= dict.fromkeys(("mean_us", "slowdown")) | {"note": "not simulated yet"}
    (chart, _) = draw_means(means, tmp_path, "scaling", "svg")
    assert chart.name == "scaling-io.svg"
    assert all(words in texts_of(chart) for words in ("hollow: fewer seeds", "x: not simulated", "~: no steady state"))
    assert draw_means([{**row, "mean_us": None} for row in means], tmp_path, "none") == []


def test_what_has_no_chart_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["charts", str(tmp_path), "-o", str(tmp_path)]) == 3
    assert "means.csv" in capsys.readouterr().err
    for text in ("measured,run\n", "measured,run,seeds,mean_us,slowdown\nio,baseline,1,1,2\n"):
        (tmp_path / "few.csv").write_text(text)
        assert main(["charts", str(tmp_path / "few.csv"), "-o", str(tmp_path / "figures")]) == 3
        assert "few.csv:1: expected columns" in capsys.readouterr().err
    write_table(tmp_path / "means.csv", average_seeds(list_results(make_cells(SMALL, [io(), mpi()], MPI, [1]), {})))
    assert main(["charts", str(tmp_path / "means.csv"), "-o", str(tmp_path / "figures")]) == 0
    assert "no mean is settled, nothing is drawn" in capsys.readouterr().err


def test_jobs_of_any_name_have_charts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names that are no file's, or no formula; two tables of one name."""
    name = "../_$\\frac{ \u4e2d"
    cells = make_cells(SMALL, [io(), replace(mpi(), name=name)], name, [1])
    outcomes = {cell.key: Outcome(cell.key, latency_of(5e3), 1, 0.1, {}) for cell in cells}
    for folder in ("one/study", "two/study"):
        (tmp_path / folder).mkdir(parents=True)
        write_table(tmp_path / folder / "means.csv", average_seeds(list_results(cells, outcomes)))
    assert main(["charts", str(tmp_path / "one"), str(tmp_path / "two"), "-o", str(tmp_path / "figures")]) == 0
    files = capsys.readouterr().out.splitlines()
    assert [Path(each).name for each in files] == ["study-..-_-frac-.png", "study-2-..-_-frac-.png"]
    assert all(Path(each).stat().st_size > 5_000 for each in files)


@pytest.mark.parametrize(("placement", "shared"), [("random-node", range(2, 9)), ("random-switch", range(2))])
def test_the_run_that_is_shown_is_as_the_command_says(tmp_path: Path, placement: str, shared: range) -> None:
    """Also where the study has both: leaves on which both jobs have hosts."""
    assert main(["study", "placement", *MACHINE, "--job-placement", placement, "-o", str(tmp_path)]) == 0
    leaves: dict[str, set[int]] = {"io": set(), "mpi": set()}
    with (tmp_path / "clients.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            leaves[row["job"]].add((int(re.sub(r"\D*(\d+).*", r"\1", row["name"])) - 1) // 8)
    assert len(leaves["io"] & leaves["mpi"]) in shared


def test_tables_read_back_the_same(every_study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    means = read_means([every_study / "placement" / "means.csv"])
    write_table(tmp_path / "again.csv", means)
    assert read_means([tmp_path / "again.csv"]) == means
    write_table(tmp_path / "means.parquet", means)
    table = pq.read_table(tmp_path / "means.parquet")
    assert table.to_pylist() == means == read_means([tmp_path / "means.parquet"])
    assert "null" not in map(str, table.schema.types)
    assert main(["charts", str(tmp_path / "means.parquet"), "-o", str(tmp_path)]) == 0
    assert capsys.readouterr().out
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "means.parquet").read_bytes()[:100])
    assert main(["charts", str(tmp_path / "cut.parquet"), "-o", str(tmp_path)]) == 3
    assert "cut.parquet: expected a Parquet file" in capsys.readouterr().err


def test_the_threshold_lies_where_the_servers_are_full(capsys: pytest.CaptureFixture[str]) -> None:
    machine = ["--fabric", "xgft:2:8,4:1,8@100", "--servers", "1", "--share", "1", "--json", "--workers", "1"]
    assert main(["threshold", *machine, "--size", "256KiB"]) == 0
    found = json.loads(capsys.readouterr().out)
    # 31 clients, one server: I* = N S/(n B) - S/B.
    bound = (31 - 1) * 256 * KIB / 12.5e3
    assert found["bound_us"] == pytest.approx(bound, abs=1e-3)
    assert found["crossing_us"] == pytest.approx(bound, rel=0.02)
    assert found["alone_us"] == pytest.approx(256 * KIB / 12.5e3 + 3 * (4096 / 12.5e3 + 0.09), rel=0.02)
    assert found["threshold_us"]["from"] < 1.2 * bound
    assert found["threshold_us"]["to"] > 0.95 * bound
    assert found["without_pause_us"] == pytest.approx(31 * 256 * KIB / 12.5e3, rel=0.05)


def test_servers_with_slower_links_set_the_pace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A hypercube at 32 Gb/s, whose two isolated servers have 8: 46 clients."""
    for name in ("ibdiagnet.lst", "ibdiagnet.fdbs"):
        (tmp_path / name).write_bytes(lzma.decompress(find_sample("hypercube-4", name).read_bytes()))
    lst = tmp_path / "ibdiagnet.lst"
    lines = lst.read_text().splitlines(keepends=True)
    slow = ("{hc-n037 HCA-1}", "{hc-n038 HCA-1}")
    lst.write_text("".join(re.sub("SPD=10", "SPD=2.5", x) if any(each in x for each in slow) else x for x in lines))
    question = ["--fabric", str(lst), "--servers", "2", "--workers", "1", "--quick", "--json"]
    assert main(["threshold", *question, "--size", "1MiB", "--share", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bound_us"] == pytest.approx(46 * MIB / (2 * 1e3) - MIB / 1e3, abs=1e-3)
    assert found["threshold_us"]["about"] > 0.6 * found["bound_us"]
    assert found["crossing_us"] == pytest.approx(found["bound_us"], rel=0.1)
    ways = list_scenarios(Setting(str(lst), servers=2), io(MIB), mpi())
    windows = [jobs[0].window_ns for name, _, jobs in ways if "apart" in name]
    assert windows == pytest.approx([factor * 23 * MIB / 2 for factor in (1, 1.25, 1.5, 2)], rel=0.05)


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


def test_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [*MACHINE, "--mpi", "4KiB@500us", "--io", "1MiB"]
    assert main(["advise", *jobs, "-o", str(tmp_path / "kept")]) == 0
    told = capsys.readouterr().out
    assert "as it is" in told
    assert "Advice:" in told
    assert main(["advise", *jobs, "-o", str(tmp_path / "kept"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    ways = {way["name"]: way for way in found["ways"]}
    now, apart = ways["as it is"], ways["jobs on whole leaf switches"]
    assert now["mpi_slowdown"] > 1.2 > apart["mpi_slowdown"]
    assert all(way["io_bytes_per_s"] <= 8 * 12.5e9 for way in ways.values())
    assert found["links_of_both"] > 0
    assert all(0 < sum(link["busy"].values()) <= 1 + 1e-9 for link in found["busiest_links_of_both"])
    # What is not known is said, and why.
    store = tmp_path / "kept" / STORE
    lines = []
    for line in store.read_text().splitlines():
        document = json.loads(line)
        del document["check"]
        document["latency"] |= {"is_settled": False, "note": "lost"}
        lines.append(json.dumps({**document, "check": crc32(json.dumps(document).encode())}) + "\n")
    store.write_text("".join(lines))
    assert main(["advise", *jobs, "-o", str(tmp_path / "kept")]) == 0
    told = capsys.readouterr().out
    assert told.count(", where a mean did not settle: lost\n") == len(ways)
    assert "Advice: none, as the present state of both jobs is not known well enough." in told


def mean_of(values: BySeed) -> float:
    figure = average(values)
    assert figure is not None
    return figure.mean


def test_a_rate_is_of_what_requests_and_their_windows_take() -> None:
    """Half of the requests outlast the window, of any jitter: neither their mean nor the window is their time."""
    ways = list(list_scenarios(SMALL, io(), mpi()))
    name, _, jobs = next(way for way in ways if "apart" in way[0])
    window = jobs[0].window_ns
    bins = ((0.5 * window, 0.7 * window, 100), (1.3 * window, 1.5 * window, 100))
    latency = replace(latency_of(window), histogram=bins)
    outcomes = {cell.key: Outcome(cell.key, latency, 1, 0.0, {}) for cell in list_cells(SMALL, io(), mpi(), [1, 2])}
    found = next(way for way in compare_scenarios(SMALL, io(), mpi(), [1, 2], outcomes) if way.name == name)
    # 14 clients, 4 MiB each in (1 + 1.4) / 2 windows.
    assert mean_of(found.io_bytes_per_s) == pytest.approx(14 * 4 * MIB / (1.2 * window) * 1e9)
    # All as long as the window: its jitter of 5 % makes it the longer one by 1.25 % on average.
    same = replace(latency, histogram=((0.9999 * window, 1.0001 * window, 200),))
    outcomes = {key: replace(outcome, latency=same) for key, outcome in outcomes.items()}
    found = next(way for way in compare_scenarios(SMALL, io(), mpi(), [1, 2], outcomes) if way.name == name)
    assert mean_of(found.io_bytes_per_s) == pytest.approx(14 * 4 * MIB / (1.0125 * window) * 1e9, rel=1e-3)


def test_only_what_is_sure_is_recommended() -> None:
    """Whole switches make messages quicker by 40 %: by chance where seeds differ much, for sure where they do not."""

    def compare(*spread: float) -> tuple[Any, bool]:
        outcomes = {}
        for cell in list_cells(SMALL, io(), mpi(), [1, 2, 3]):
            mean = 6000.0 * spread[cell.seed - 1] if cell.setting.job_placement is JobPlacement.RANDOM_SWITCH else 1e4
            latency = replace(latency_of(mean), half=10.0, histogram=((1e6, 1e6, 9),))
            outcomes[cell.key] = Outcome(cell.key, latency, 1, 0.0, {})
        best, is_open = recommend(compare_scenarios(SMALL, io(), mpi(), [1, 2, 3], outcomes), MPI)
        return best and best.name, is_open

    assert compare(1.0, 1.02, 0.98) == ("jobs on whole leaf switches", False)
    assert compare(1.0, 1.6, 0.4) == (None, True)
    assert compare(2.0, 2.0, 2.0) == (None, False)


T0, C = 100e3, 1000e3


def closed_network(cells: Sequence[Cell]) -> dict[str, Outcome]:
    """Requests as the asymptotes have them, each seed off by some per cent; the third never settles without a pause."""
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
    """At 90 % of the throughput the cycle is C / 0.9, which is T0 beyond its pause."""
    true = C / NEAR - T0
    for seeds in ([1, 2], [1, 2, 3], [2]):
        found = find_threshold(SMALL, io(), seeds, closed_network)
        assert found.below_ns is not None
        assert found.above_ns is not None
        assert found.below_ns < true < found.above_ns
        assert found.above_ns - found.below_ns < 0.7 * C
        assert found.about_ns == pytest.approx(true, rel=0.05)
        assert found.seeds == len(set(seeds) - {3})
    with pytest.raises(InconsistentError, match="requests 0 ns apart have no settled mean: said"):
        find_threshold(SMALL, io(), [3], closed_network)


def test_few_slow_clients_hide_no_threshold() -> None:
    """Without a pause slow clients have few messages, whose mean is then no longer than alone; by clients it is."""

    def simulate(cells: Sequence[Cell]) -> dict[str, Outcome]:
        found = closed_network(cells)
        for cell in cells:
            outcome = found[cell.key]
            mean = outcome.latency.mean + (9 * T0 if cell.workloads[0].interval_ns > 2 * C else 0)  # slow ones, alone
            latency = replace(outcome.latency, mean=mean, node_mean=mean * (1 if cell.workloads[0].interval_ns else 3))
            found[cell.key] = replace(outcome, latency=latency)
        return found

    found = find_threshold(SMALL, io(), [1, 2], simulate)
    assert found.alone_ns >= found.without_pause_ns * 0.98
    assert found.below_ns is not None


def test_quick_and_thorough_thresholds_agree(capsys: pytest.CaptureFixture[str]) -> None:
    machine = ["--fabric", "xgft:2:8,8:1,8@100", "--servers", "8", "--size", "1MiB", "--json", "--workers", "1"]
    found = []
    for effort in (["--quick"], []):
        assert main(["threshold", *machine, *effort]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["seeds"] == 3
        found.append(document["threshold_us"])
    assert max(each["from"] for each in found) < min(each["to"] for each in found)
    assert all(each["from"] < each["about"] < each["to"] for each in found)


def test_links_of_jobs_that_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time stands still when all was sent."""
    run, runs = Simulation.run, [0]

    def count(simulation: Simulation, *limits: Any) -> Any:
        runs[0] += 1
        assert runs[0] < 100
        return run(simulation, *limits)

    monkeypatch.setattr(Simulation, "run", count)
    jobs = (replace(io(64 * KIB), limit=5), replace(mpi(), limit=5))
    links, shared = find_shared_links(Cell(SMALL, jobs, (IO, MPI), MPI, 1))
    assert shared >= len(links) > 0


@pytest.mark.parametrize("interval", [10 * US, 10 * MS, 10_000 * MS])
def test_links_of_jobs_that_send_seldom(interval: float) -> None:
    """On which they do is seen when each has sent to all; they are busy with MPI for its bytes' time an interval."""
    cell = Cell(SMALL, (io(64 * KIB, interval), mpi(interval=interval)), (IO, MPI), MPI, 1)
    links, shared = find_shared_links(cell)
    simulation = set_up(cell).simulation
    while (simulation.look_at_clients().steps < SMALL.servers).any():
        simulation.run(2 * simulation.state.now + 1)
    assert shared == (simulation.look_at_ends().bytes > 0).all(axis=1).sum() > 0
    assert all(link.busy[IO] > 0 for link in links)
    if interval > MS:
        one = 4096 / 12.5 / interval
        assert any(link.busy[MPI] == pytest.approx(n * one, rel=0.3) for link in links for n in (1, 2, 3))


def test_advice_where_adaptive_routes_can_deadlock(capsys: pytest.CaptureFixture[str]) -> None:
    machine = ["--fabric", "torus:4x4:2@100", "--servers", "4", "--workers", "1", "--quick"]
    assert main(["advise", *machine, "--mpi", "4KiB@50us", "--io", "64KiB"]) == 0
    told = capsys.readouterr()
    assert "adaptive routing is not tried" in told.err
    assert "adaptive" not in told.out


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


def test_errors_of_a_study_name_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study.yaml"
    job = {"name": "a", "role": "pairs", "bytes": "4 B"}
    for bad, wanted in (({"servers": 99}, "servers"), ({"jobs": [job, {**job, "name": "b", "bytes": 0}]}, "bytes: 0")):
        study.write_text(yaml.safe_dump({"fabric": SMALL.fabric, "jobs": [job], **bad}, sort_keys=False))
        assert main(["run", str(study), "-o", str(tmp_path / "out")]) == 3
        number = int(capsys.readouterr().err.split("study.yaml:")[1].split(":")[0])
        assert study.read_text().splitlines()[number - 1].strip().startswith(wanted)
    for text in ("servers: 1\nservers: 2\n", "jobs: " + 3000 * "["):
        study.write_text(text)
        assert main(["run", str(study), "-o", str(tmp_path / "out")]) == 3
