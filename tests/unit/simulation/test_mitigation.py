# SPDX-License-Identifier: Apache-2.0
"""To advise jobs that disturb each other, ibprof compares scenarios. A recommended gain exceeds the 95% interval."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof_lab.cli.sim import main
from ibprof_lab.lab_choices import JobPlacement
from ibprof_lab.simulation.engine.packet_engine import Simulation
from ibprof_lab.simulation.measure.message_latency import BySeed, average
from ibprof_lab.simulation.questions.advice import find_shared_links
from ibprof_lab.simulation.questions.mitigation import (
    UndecidedChange,
    compare_scenarios,
    list_cells,
    list_scenarios,
    recommend,
)
from ibprof_lab.simulation.study.cell import Cell, Outcome, set_up
from ibprof_lab.simulation.study.sweep import STORE
from ibprof_lab.simulation.workload.workloads import IO, MPI
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank
from ibprof_testing.samples.simulated_jobs import KIB, MACHINE, MIB, MS, SMALL, US, io, latency_of, mpi


def test_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [*MACHINE, "--mpi", "4KiB@100us", "--io", "256KiB"]
    assert main(["advise", *jobs, "-o", str(tmp_path / "kept")]) == 0
    told = capsys.readouterr().out
    assert "as it is" in told
    assert "Advice:" in told
    assert main(["advise", *jobs, "-o", str(tmp_path / "kept"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    scenarios = {each["name"]: each for each in found["ways"]}
    now, apart = scenarios["as it is"], scenarios["jobs on whole leaf switches"]
    assert now["mpi_slowdown"] > 1.2 > apart["mpi_slowdown"]
    assert all(each["io_bytes_per_s"] <= 8 * 12.5e9 for each in scenarios.values())
    assert found["links_of_both"] > 0
    assert all(0 < sum(link["busy"].values()) <= 1 + 1e-9 for link in found["busiest_links_of_both"])
    # If a gain is unknown, the text states this and the reason.
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
    assert told.count("\n  all of these: a mean did not settle: lost\n") == 1
    assert "Advice: none, since the mean latency of one job next to the other did not settle." in told


def mean_of(values: BySeed) -> float:
    figure = average(values)
    assert figure is not None
    return figure.mean


def test_a_rate_is_of_what_requests_and_their_windows_take() -> None:
    """Half of the requests outlast the window, so the mean cycle exceeds both the window and the mean request."""
    scenarios = list(list_scenarios(SMALL, io(), mpi()))
    name, _, jobs = next(each for each in scenarios if "apart" in each[0])
    window = jobs[0].window_ns
    bins = ((0.5 * window, 0.7 * window, 100), (1.3 * window, 1.5 * window, 100))
    latency = replace(latency_of(window), histogram=bins)
    outcomes = {cell.key: Outcome(cell.key, latency, 1, 0.0, {}) for cell in list_cells(SMALL, io(), mpi(), [1, 2])}
    found = next(each for each in compare_scenarios(SMALL, io(), mpi(), [1, 2], outcomes) if each.name == name)
    # A mean cycle lasts (1 + 1.4) / 2 windows. In each cycle, 14 clients write 4 MiB each.
    assert mean_of(found.io_bytes_per_s) == pytest.approx(14 * 4 * MIB / (1.2 * window) * 1e9)
    # All requests last as long as the window. The window's jitter of 5% makes cycles 1.25% longer on average.
    same = replace(latency, histogram=((0.9999 * window, 1.0001 * window, 200),))
    outcomes = {key: replace(outcome, latency=same) for key, outcome in outcomes.items()}
    found = next(each for each in compare_scenarios(SMALL, io(), mpi(), [1, 2], outcomes) if each.name == name)
    assert mean_of(found.io_bytes_per_s) == pytest.approx(14 * 4 * MIB / (1.0125 * window) * 1e9, rel=1e-3)


def test_only_what_is_sure_is_recommended() -> None:
    """On whole switches, the jobs' messages take 40% less time. The gain is significant if the seeds differ little."""

    def compare(*spread: float) -> tuple[str | None, tuple[UndecidedChange, ...]]:
        outcomes = {}
        for cell in list_cells(SMALL, io(), mpi(), [1, 2, 3]):
            mean = 6000.0 * spread[cell.seed - 1] if cell.setting.job_placement is JobPlacement.RANDOM_SWITCH else 1e4
            latency = replace(latency_of(mean), half=10.0, histogram=((1e6, 1e6, 9),))
            outcomes[cell.key] = Outcome(cell.key, latency, 1, 0.0, {})
        best, undecided = recommend(compare_scenarios(SMALL, io(), mpi(), [1, 2, 3], outcomes), MPI)
        return best.name if best else None, undecided

    assert compare(1.0, 1.02, 0.98) == ("jobs on whole leaf switches", ())
    assert compare(2.0, 2.0, 2.0) == (None, ())
    best, (change,) = compare(1.0, 1.6, 0.4)
    assert best is None
    # Student's t for 2 degrees of freedom, deviation 0.36, 3 seeds: the interval is wider than the gain of 0.4.
    assert change.half == pytest.approx(4.303 * 0.36 / 3**0.5, rel=1e-3)
    assert change.gain == pytest.approx(0.4)
    # With deviation s, n seeds suffice if 2 t s / sqrt(n) < 0.4. t is 2.145 for 14 degrees of freedom, 2.160 for 13.
    assert change.seeds == 15
    # The gain is significant, but the 95% interval is wider than the gain: 40 ± 30% is not recommended.
    best, (change,) = compare(1.0, 1.2, 0.8)
    assert best is None
    assert change.gain / 2 < change.half < change.gain


def test_one_sample_is_no_interval() -> None:
    outcomes = {}
    for cell in list_cells(SMALL, io(), mpi(), [1]):
        mean = 6000.0 if cell.setting.job_placement is JobPlacement.RANDOM_SWITCH else 1e4
        latency = replace(latency_of(mean), half=math.nan, histogram=((1e6, 1e6, 9),))
        outcomes[cell.key] = Outcome(cell.key, latency, 1, 0.0, {})
    best, undecided = recommend(compare_scenarios(SMALL, io(), mpi(), [1], outcomes), MPI)
    assert best is None
    assert [each.seeds for each in undecided] == [3]


def test_links_of_jobs_that_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last message, simulated time does not advance. The simulation must end nevertheless."""
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
    """A job's links are on its clients' paths to all peers. A link is busy for the time at line rate of MPI's bytes."""
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


def test_a_job_that_sends_nothing_over_a_network_needs_no_longer_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run has two hosts with two ranks each. Messages are only within hosts."""
    hosts = [make_host(name) for name in ("a", "b")]
    ranks = [make_rank(rank, rank // 2) for rank in range(4)]
    run = make_profile([Count(0, 1, 5000, messages=5), Count(2, 3, 5000, messages=5)], ranks, hosts)
    write_archive(run, tmp_path / "run.otf2")
    assert main(["advise", *MACHINE, "--mpi", f"{tmp_path / 'run.otf2'}@10us", "--io", "64KiB@1ms"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Advice: none. The MPI job sends nothing over the network: all messages of the job stay on")
    assert "Left out: 48 of 96 simulations (50.0%): all messages of the job stay on their hosts." in told
    assert "\n  all of these: a mean did not settle: all messages of the job stay on their hosts\n" in f"{told}\n"


@pytest.mark.parametrize("size", ["0", "0B@1us", "12parsecs"])
def test_an_invalid_size_is_no_file(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["advise", *MACHINE, "--mpi", "4KiB", "--io", size])
    assert "expected a size" in capsys.readouterr().err
