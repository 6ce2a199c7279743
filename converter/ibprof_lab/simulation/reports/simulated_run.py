# SPDX-License-Identifier: Apache-2.0
"""The files that `ibprof-sim` writes of one run of all jobs together: tables, pictures, and the view of the links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

from ibprof.text.quantities import count_of
from ibprof_converter.hotspots.coverage import Coverage
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.outputs.fabric_picture import write_picture
from ibprof_converter.outputs.rows import Row, link_columns, link_rows
from ibprof_converter.outputs.table_files import write_csv
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.loaded_links import load_links
from ibprof_converter.traffic.traffic_data import no_counters
from ibprof_converter.viewer.html_page import write_page
from ibprof_converter.viewer.link_values import LinkValue
from ibprof_converter.viewer.view_document import encode_document
from ibprof_converter.viewer.view_runs import ViewRun
from ibprof_lab.simulation.measure import run_tables
from ibprof_lab.simulation.measure.latency_measurement import measure
from ibprof_lab.simulation.measure.run_observer import Watch
from ibprof_lab.simulation.outputs.run_chart import draw_run
from ibprof_lab.simulation.study.cell import Cell
from ibprof_lab.simulation.study.cell_run import run_to_limits, set_up
from ibprof_lab.simulation.study.loaded_fabric import load_network
from ibprof_lab.simulation.study.result_tables import MEANS, RESULTS
from ibprof_lab.simulation.study.run_notes import list_gaps
from ibprof_lab.simulation.study.sizes_and_times import format_size, format_time
from ibprof_lab.simulation.study.study_file import StudyPlan
from ibprof_lab.simulation.study.study_results import (
    SUMMARY,
    StudyOutput,
    StudyResults,
    choose_shown,
    run_study,
)
from ibprof_lab.simulation.workload.workloads import Role, Workload

FILES = (
    "links.csv",
    "latencies.csv",
    "clients.csv",
    "over_time.csv",
    "operations.csv",
    "queues.csv",
    "run.png",
    "links.png",
    "view.html",
)
"""Files that `write_run` leaves in a folder; `operations.csv` only where a job is a collective."""

_PARTS = 40
"""Each step of a run is this part of the time simulated so far."""

_HOPS_MOST = 5e7
"""Packet hops after which a run that is only shown is cut short."""


def run_and_show(
    plan: StudyPlan, output: StudyOutput, pool: Executor, progress: Callable[[int, int], None]
) -> StudyResults:
    """Simulate a study, write its tables, and show one run of all its jobs together: `FILES`.

    Args:
        plan: the study.
        output: where results go; of stored results alone no run is shown.
        pool: where to simulate.
        progress: receives the work done, and all work.

    Raises:
        IbprofError: as `run_study` does.
    """
    results = run_study(plan, output, pool, progress)
    if not output.stored:
        write_run(output.folder, choose_shown(plan))
    return results


def describe_results(results: StudyResults, output: StudyOutput) -> Iterator[str]:
    """Yield sentences on the number of simulations, on the files with them, and on means that did not settle."""
    shown = () if output.stored else (each for each in FILES if (output.folder / each).exists())
    files = ", ".join((RESULTS, MEANS, SUMMARY, *shown))
    yield f"{count_of(len(results.rows), 'simulation')} in {output.folder}: {files}"
    for reason, count in results.count_unsettled():
        yield f"{count} of them have no settled mean, and empty cells: {reason}"


def write_run(folder: Path, cell: Cell) -> None:
    """Simulate a cell again, keeping all jobs' messages, and write `FILES`; older ones are removed."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    subnet, _, _ = load_network(cell.setting.network, cell.setting.hardware)
    prepared = set_up(cell, sampled=cell.running)
    simulation = prepared.simulation
    watch = Watch(simulation)
    effort = replace(cell.setting.effort, hops=min(cell.setting.effort.hops, _HOPS_MOST))
    measure(simulation, prepared.measured, effort, watch, cell.is_measured_whole)
    run_to_limits(simulation, effort.hops, lambda now: watch.run(now + now // _PARTS + 1, effort.hops))
    loads, layouts = run_tables.load_ends(simulation), lay_out([subnet.fabric])
    columns = (*link_columns(loads), *run_tables.BUSY_COLUMNS)
    links = run_tables.add_busy(simulation, link_rows([subnet.fabric], layouts, loads))
    _write(folder / "links.csv", columns, links)
    _write(folder / "latencies.csv", run_tables.LATENCY_COLUMNS, run_tables.latency_rows(watch))
    _write(folder / "clients.csv", run_tables.CLIENT_COLUMNS, run_tables.client_rows(watch))
    _write(folder / "over_time.csv", run_tables.TIME_COLUMNS, run_tables.time_rows(watch))
    if simulation.is_collective.any():
        _write(folder / "operations.csv", run_tables.OPERATION_COLUMNS, run_tables.operation_rows(watch))
    _write(folder / "queues.csv", run_tables.QUEUE_COLUMNS, run_tables.queue_rows(watch))
    jobs = "; ".join(_describe_job(each) for each in cell.workloads if each.name in cell.running)
    described = (
        f"{jobs}; {_describe_hosts(cell)}: {simulation.network.to_ns(simulation.state.now) / 1e6:.3f} ms simulated"
    )
    title = f"Simulated jobs on {subnet.fabric.name}"
    draw_run(folder / "run.png", f"{title}\n{described}", watch)
    write_picture(folder / "links.png", title, described, [subnet.fabric], layouts, loads, panels="job")
    coverage = Coverage(
        origin="packet simulation",
        rails=None,
        nic=None,
        world_size=None,
        ranks_recorded=None,
        hosts=(),
        not_seen=tuple(gap for each in cell.workloads if each.name in cell.running for gap in list_gaps(each)),
        modelled=(f"all traffic is simulated, of {described}",),
        notes=(),
    )
    if cell.setting.adaptive:  # the page cannot put flows on links by tables
        run = ViewRun("", no_counters("simulated"), loads, coverage)
    else:
        flows = run_tables.list_flows(watch)
        run = ViewRun("", flows, load_links(flows, [subnet]), coverage)
    values = [LinkValue(name, "", value) for name, value in run_tables.describe_links(watch)]
    hosts = find_hosts([subnet.fabric])
    write_page(folder / "view.html", encode_document(title, [subnet], layouts, hosts, [run], link_values=values))


def _describe_job(job: Workload) -> str:
    """Return in short what a job does."""
    size = "" if job.role in {Role.PROFILE, Role.GOAL, Role.BARRIER} else f" {format_size(job.bytes)}"
    asked = f", requested in {format_size(job.reads)}" if job.reads else ""
    every = f" every {format_time(job.interval_ns)}" if job.interval_ns else ""
    apart = f" {format_time(job.window_ns)} apart" if job.window_ns else ""
    return f"{job.name} ({job.role.value}{size}{asked}{every}{apart})"


def _describe_hosts(cell: Cell) -> str:
    """Return how routes, hosts and servers were chosen."""
    setting = cell.setting
    chosen = ["adaptive routing"] if setting.adaptive else []
    if any(each.hosts for each in cell.workloads):
        chosen.append("named hosts")
    if not all(each.hosts for each in cell.workloads):
        chosen.append(f"{setting.job_placement.value} hosts")
    if setting.servers:
        placed = "named" if setting.server_hosts else setting.server_placement.value
        chosen.append(f"{setting.servers} {placed} servers")
    return ", ".join(chosen)


def _write(path: Path, columns: Sequence[str], lines: Iterator[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        write_csv(file, columns, lines)
