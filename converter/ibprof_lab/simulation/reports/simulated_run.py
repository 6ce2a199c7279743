# SPDX-License-Identifier: Apache-2.0
"""Files from `ibprof-sim` on one run of all jobs together: tables, pictures, and the view of the links."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ibprof.text.notebook_html import render_html, render_table
from ibprof.text.quantities import count_of
from ibprof_converter.hotspots.coverage import Coverage
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.outputs.fabric_picture import write_picture
from ibprof_converter.outputs.loads_files import write_csv
from ibprof_converter.outputs.rows import Row, link_columns, link_rows, table_of
from ibprof_converter.reports.result_html import join_parts, render_head, render_sentences
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.link_loads import load_links
from ibprof_converter.traffic.traffic_data import no_counters
from ibprof_converter.viewer.view_document import LinkValue, encode_document
from ibprof_converter.viewer.view_file import write_page
from ibprof_converter.viewer.view_runs import ViewRun
from ibprof_lab.simulation.measure import run_tables
from ibprof_lab.simulation.measure.latency_measurement import measure
from ibprof_lab.simulation.measure.run_observer import Counts, Watch, bin_edges
from ibprof_lab.simulation.measure.run_tables import find_fullest, name_end
from ibprof_lab.simulation.reports.slow_senders import SlowSender, describe_slow_senders, find_slow_senders
from ibprof_lab.simulation.study.cell import Cell, run_to_limits, set_up
from ibprof_lab.simulation.study.result_tables import MEANS, RESULTS
from ibprof_lab.simulation.study.sizes_and_times import format_size, format_time
from ibprof_lab.simulation.study.study_file import StudyPlan
from ibprof_lab.simulation.study.study_results import SUMMARY, StudyOutput, StudyResults, choose_shown, run_study
from ibprof_lab.simulation.workload.workloads import Role, Workload, list_gaps

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
"""Files that `write_run` writes into a folder; `operations.csv` only for a collective."""

_PARTS = 40
"""Each step of a run extends the simulated time by 1/40."""

_HOPS_MOST = 5e7
"""Largest number of packet hops of a run that is only displayed."""

_DOTS_PER_INCH = 120

_QUEUES = 4
"""Number of link directions with drawn queues, the fullest first."""


def run_and_show(
    plan: StudyPlan, output: StudyOutput, pool: Executor, progress: Callable[[int, int], None]
) -> StudyResults:
    """Simulate a study, write its tables, and show one run of all its jobs together: `FILES`.

    Args:
        output: destination of results; with `stored`, no run is simulated.
        progress: callback with the completed work and the total work.

    Raises:
        IbprofError: as raised by `run_study`.
    """
    results = run_study(plan, output, pool, progress)
    if output.stored:
        return results
    slow = write_run(output.folder, choose_shown(plan))
    if slow:
        path = output.folder / SUMMARY
        summary = json.loads(path.read_text("ascii")) | {"slow_senders": [each.to_json() for each in slow]}
        path.write_text(json.dumps(summary, indent=2) + "\n", encoding="ascii")
    return replace(results, slow_senders=tuple(describe_slow_senders(slow)))


def describe_results(results: StudyResults, output: StudyOutput) -> Iterator[str]:
    """Yield sentences on losses, slow senders, simulations, their files, and unsettled means."""
    yield from results.lost
    yield from results.slow_senders
    shown = () if output.stored else (each for each in FILES if (output.folder / each).exists())
    files = ", ".join((RESULTS, MEANS, SUMMARY, *shown))
    yield f"{count_of(len(results.rows), 'simulation')} in {output.folder}: {files}"
    for reason, count in results.count_unsettled():
        yield f"{count} of them have no settled mean, and empty cells: {reason}"


def write_run(folder: Path, cell: Cell) -> list[SlowSender]:
    """Simulate a cell again with all jobs' messages, and write `FILES`; older files are removed.

    Returns:
        Hosts that sent more slowly than their peers.
    """
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    subnet = cell.setting.load().subnet
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
    unequal = {each.name for each in cell.workloads if each.role in {Role.PROFILE, Role.GOAL}}
    return find_slow_senders(watch, unequal)


def _describe_job(job: Workload) -> str:
    """Return a short description of a job's task."""
    size = "" if job.role in {Role.PROFILE, Role.GOAL, Role.BARRIER} else f" {format_size(job.bytes)}"
    asked = f", requested in {format_size(job.reads)}" if job.reads else ""
    every = f" every {format_time(job.interval_ns)}" if job.interval_ns else ""
    apart = f" {format_time(job.window_ns)} apart" if job.window_ns else ""
    return f"{job.name} ({job.role.value}{size}{asked}{every}{apart})"


def _describe_hosts(cell: Cell) -> str:
    """Return a description of the choice of routes, hosts and servers."""
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
        write_csv(file, table_of(columns, lines))


@render_html.register
def render_study(results: StudyResults) -> str:
    """Return a study's results as HTML: slow-downs, and limits of the results."""
    rows = ((name, json.dumps(value)) for name, value in results.conclusions.items())
    unsettled = (f"{count} simulations without a settled mean: {why}" for why, count in results.count_unsettled())
    return join_parts([
        render_head(f"{len(results.rows)} simulations"),
        render_table(("", "value"), rows),
        *render_sentences("slow sender", results.slow_senders),
        *render_sentences("not settled", unsettled),
        *render_sentences("note", results.notes),
    ])  # fmt: skip


def draw_run(path: Path, title: str, watch: Watch) -> None:
    """Draw an observed run.

    Args:
        watch: observer of the finished run.
    """
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title).set_parse_math(False)
    latency, over_time, queues = figure.subplots(1, 3)
    _draw_latencies(latency, watch)
    _draw_over_time(over_time, watch)
    _draw_queues(queues, watch)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # characters that the font lacks are drawn as boxes
        warnings.filterwarnings("ignore", "constrained_layout not applied")  # a legend of many jobs leaves no space
        figure.savefig(path, dpi=_DOTS_PER_INCH)


def _draw_latencies(axes: Axes, watch: Watch) -> None:
    """Draw the share of messages with a latency above each value."""
    for number, job in enumerate(watch.simulation.jobs):
        _draw_tail(axes, watch.histogram(number), job.name, f"C{number}", "-")
        operations = watch.operations(number)
        if operations is not None:
            _draw_tail(axes, operations, f"{job.name}, whole operations", f"C{number}", "--")
    axes.set(xscale="log", yscale="log", xlabel="latency, µs", ylabel="part of the messages that took longer")
    most = max(int(watch.histogram(number).sum()) for number in range(len(watch.simulation.jobs)))
    axes.set_ylim(0.5 / max(most, 1), 1.5)
    _finish(axes)


def _draw_tail(axes: Axes, counts: Counts, label: str, colour: str, style: str) -> None:
    used = np.flatnonzero(counts)
    if not len(used):
        return
    # Each bin is a step; the last step keeps its height, since a logarithmic axis has no 0.
    longer = 1 - np.cumsum(counts[used]) / counts.sum()
    edges = bin_edges() / 1000
    at = np.append(edges[used[0]], edges[used + 1])
    height = np.concatenate([[1.0], longer[:-1], longer[-2:-1] if len(used) > 1 else [1.0]])
    axes.plot(at, height, label=_label(label), color=colour, linestyle=style, drawstyle="steps-post")


def _draw_over_time(axes: Axes, watch: Watch) -> None:
    drawn = []
    for number, job in enumerate(watch.simulation.jobs):
        over = watch.over_time(number)
        seen = over.messages > 0
        middle = (over.begin_ns + over.width_ns / 2)[seen] / 1e6
        axes.plot(middle, over.mean_ns[seen] / 1000, label=_label(job.name), color=f"C{number}", linewidth=1)
        drawn.append(over.mean_ns[seen] / 1000)
    axes.set(yscale="log", xlabel="time, ms", ylabel="mean latency of the messages that arrived, µs")
    if len(means := np.concatenate(drawn)):
        axes.set_ylim(means.min() / 1.2, means.max() * 1.2)  # no axis for values that hardly differ
    _finish(axes)


def _draw_queues(axes: Axes, watch: Watch) -> None:
    queues = watch.queues()
    for end in find_fullest(queues, _QUEUES):
        kibibytes = queues.bytes[:, end] / 1024
        axes.plot(queues.time_ns / 1e6, kibibytes, label=_label(name_end(watch.simulation, end)), linewidth=0.8)
    axes.set(xlabel="time, ms", ylabel="KiB that lie or wait at the fullest transmit ports")
    axes.set_ylim(bottom=0)
    _finish(axes)


def _finish(axes: Axes) -> None:
    axes.grid(visible=True, alpha=0.3)
    if axes.lines:
        for text in axes.legend(fontsize="small").get_texts():
            text.set_parse_math(False)


def _label(name: str) -> str:
    """Return a label that the legend shows, since legends leave out labels that begin with _."""
    return f" {name}" if name.startswith("_") else name
