# SPDX-License-Identifier: Apache-2.0
"""Tables, pictures, a web view and slow senders of one simulation, in which all jobs of a study run. Compared with the
other hosts of its job, a slow sender has a slower link, longer message times, a lower rate or a later end.
"""

from __future__ import annotations

import json
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ibprof.text.notebook_html import render_html, render_table
from ibprof.text.quantities import count_of, format_bytes, format_seconds, printable
from ibprof_converter.hotspots.coverage import Coverage
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.outputs.fabric_picture import write_picture
from ibprof_converter.outputs.rows import Row, link_columns, link_rows, table_of
from ibprof_converter.outputs.table_files import write_csv
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
"""Files that `write_run` writes; `operations.csv` is written only if a job is a collective."""

_PARTS = 40
"""The duration of a piece of the run is the time simulated so far, divided by this number."""

_HOPS_MOST = 5e7
"""Largest number of packet hops in the simulation that `write_run` repeats."""

_DOTS_PER_INCH = 120

_QUEUES = 4
"""Number of link directions whose queues are drawn: those with the longest mean queues."""


def run_and_show(
    plan: StudyPlan, output: StudyOutput, pool: Executor, progress: Callable[[int, int], None]
) -> StudyResults:
    """Simulate a study, write its tables, and write `FILES` about one simulation of all its jobs.

    Args:
        output: destination of results. If `stored` is True, nothing is simulated, and `FILES` are not written.
        progress: callback that gets the completed work and the total work.

    Raises:
        IbprofError: see `run_study`.
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
    """Yield sentences on left-out data, slow senders, simulations, their files, and means that did not settle."""
    yield from results.lost
    yield from results.slow_senders
    shown = () if output.stored else (each for each in FILES if (output.folder / each).exists())
    files = ", ".join((RESULTS, MEANS, SUMMARY, *shown))
    yield f"{count_of(len(results.rows), 'simulation')} in {output.folder}: {files}"
    for reason, count in results.count_unsettled():
        yield f"{count} of them have no settled mean latency, so their times are empty: {reason}"


def write_run(folder: Path, cell: Cell) -> list[SlowSender]:
    """Repeat a simulation, sampling messages of all jobs; write `FILES`, and return the slow senders."""
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
        modelled=(f"all traffic is simulated: {described}",),
        notes=(),
    )
    if cell.setting.adaptive:  # the page cannot compute loads of adaptive routes from forwarding tables
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
    size = "" if job.role in {Role.PROFILE, Role.GOAL, Role.BARRIER} else f" {format_size(job.bytes)}"
    asked = f", requested in {format_size(job.reads)}" if job.reads else ""
    every = f" every {format_time(job.interval_ns)}" if job.interval_ns else ""
    apart = f" {format_time(job.window_ns)} apart" if job.window_ns else ""
    return f"{job.name} ({job.role.value}{size}{asked}{every}{apart})"


def _describe_hosts(cell: Cell) -> str:
    """Return a text on adaptive routing, and on the placement of hosts and servers."""
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
    """Return a study's results as HTML: conclusions, slow senders, unsettled means and notes."""
    rows = ((name, json.dumps(value)) for name, value in results.conclusions.items())
    unsettled = (f"{count} simulations without settled mean latency: {why}" for why, count in results.count_unsettled())
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
        watch: observer that has recorded the run.
    """
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    figure.suptitle(title).set_parse_math(False)
    latency, over_time, queues = figure.subplots(1, 3)
    _draw_latencies(latency, watch)
    _draw_over_time(over_time, watch)
    _draw_queues(queues, watch)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # matplotlib draws boxes for missing characters
        warnings.filterwarnings("ignore", "constrained_layout not applied")  # a legend of many jobs may leave no space
        figure.savefig(path, dpi=_DOTS_PER_INCH)


def _draw_latencies(axes: Axes, watch: Watch) -> None:
    """Draw the fraction of messages with a longer latency, as a function of the latency."""
    for number, job in enumerate(watch.simulation.jobs):
        _draw_tail(axes, watch.histogram(number), job.name, f"C{number}", "-")
        operations = watch.operations(number)
        if operations is not None:
            _draw_tail(axes, operations, f"{job.name}, whole operations", f"C{number}", "--")
    axes.set(xscale="log", yscale="log", xlabel="latency, µs", ylabel="share of the messages with a longer latency")
    most = max(int(watch.histogram(number).sum()) for number in range(len(watch.simulation.jobs)))
    axes.set_ylim(0.5 / max(most, 1), 1.5)
    _finish(axes)


def _draw_tail(axes: Axes, counts: Counts, label: str, colour: str, style: str) -> None:
    used = np.flatnonzero(counts)
    if not len(used):
        return
    # Each bin is a step. A logarithmic axis cannot show the last height, 0: repeat the height before it.
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
        axes.set_ylim(means.min() / 1.2, means.max() * 1.2)  # automatic limits would make small differences look large
    _finish(axes)


def _draw_queues(axes: Axes, watch: Watch) -> None:
    queues = watch.queues()
    for end in find_fullest(queues, _QUEUES):
        kibibytes = queues.bytes[:, end] / 1024
        axes.plot(queues.time_ns / 1e6, kibibytes, label=_label(name_end(watch.simulation, end)), linewidth=0.8)
    axes.set(xlabel="time, ms", ylabel="KiB queued at the fullest transmit ports")
    axes.set_ylim(bottom=0)
    _finish(axes)


def _finish(axes: Axes) -> None:
    axes.grid(visible=True, alpha=0.3)
    if axes.lines:
        for text in axes.legend(fontsize="small").get_texts():
            text.set_parse_math(False)


def _label(name: str) -> str:
    """Return a label that the legend shows; matplotlib's legends leave out labels that begin with _."""
    return f" {name}" if name.startswith("_") else name


_LEAST_PEERS = 4
"""Slow senders are searched for only in jobs with at least this number of clients."""

_LEAST_STEPS = 4
_FACTOR = 1.5
"""Smallest ratio of a slow sender's value to the median (for rates, of the median to the value)."""

_SPREAD = 3.0
"""A slow sender's value is also more than this number of interquartile ranges beyond a quartile (Tukey's far
outliers)."""

_MOSTLY = 0.5

_FACTS: Mapping[str, tuple[str, str, Callable[[float], str]]] = {
    "gbps": ("its link runs at {}", "its peers' at {}", "{:.3g} Gb/s".format),
    "mean_us": ("its messages take {}", "its peers' {}", lambda us: format_seconds(us / 1e6)),
    "bytes": ("it sends {}", "its peers {}", format_bytes),
    "last_us": ("it has sent all its bytes after {}", "its peers after {}", lambda us: format_seconds(us / 1e6)),
}
"""Quantity with its unit -> text with the host's value, text with its peers' median, and format of both values."""


@dataclass(frozen=True, slots=True)
class SlowSender:
    """A host that sends more slowly than its peers, the other hosts of its job.

    Attributes:
        job, guid, name: name of the job, GUID and name of the host's node.
        figures: name and unit of a slow quantity -> the host's value, and the median over the job's hosts.
    """

    job: str
    guid: str
    name: str
    figures: Mapping[str, tuple[float, float]]

    def to_json(self) -> dict[str, object]:
        """Return the JSON form; keys of medians have the prefix `usual_`."""
        values = {
            f"{prefix}{key}": int(value) if key == "bytes" else round(value, 4)
            for key, pair in self.figures.items()
            for prefix, value in zip(("", "usual_"), pair, strict=True)
        }
        return {"job": self.job, "guid": self.guid, "name": self.name, **values}

    def describe(self) -> str:
        """Return a sentence on the host."""
        stated = [
            ", ".join(part.format(form(value)) for part, value in zip(parts, self.figures[key], strict=True))
            for key, (*parts, form) in _FACTS.items()
            if key in self.figures
        ]
        return f"slow sender of job {self.job}, {printable(self.name)}: {'; '.join(stated)}"


def find_slow_senders(watch: Watch, unequal: Collection[str]) -> list[SlowSender]:
    """Return the slow senders of all jobs, sorted by mean message time, the longest first.

    Args:
        watch: observer that has recorded the run.
        unequal: names of jobs whose ranks need not send equal amounts.
    """
    simulation = watch.simulation
    network, fabric = simulation.network, simulation.network.subnet.fabric
    messages, mean_ns = watch.by_client()
    progress = simulation.look_at_clients()
    host_gbps = _find_port_gbps(watch)[network.host_port]
    to_slow = _share_to(watch, _find_outliers(host_gbps, is_rate=True))
    found: dict[tuple[str, str], SlowSender] = {}
    longest_us: dict[tuple[str, str], float] = defaultdict(float)
    for number, job in enumerate(simulation.jobs):
        clients = np.flatnonzero(simulation.job_of_client == number)
        if len(clients) < _LEAST_PEERS:
            continue
        seen = messages[clients] >= _LEAST_STEPS
        values = {
            "gbps": host_gbps[simulation.host_of_client[clients]],
            "mean_us": np.where(seen, mean_ns[clients], math.nan) / 1e3,
        }
        if job.name not in unequal:
            steps = progress.steps[clients]
            if job.limit:
                last = [network.to_ns(int(each)) / 1e3 for each in progress.last[clients]]
                values["last_us"] = np.where(steps >= job.limit, last, math.nan)
            elif np.median(steps) >= _LEAST_STEPS:
                values["bytes"] = progress.bytes[clients].astype(float)
        slow = {key: _find_outliers(each, is_rate=key in {"gbps", "bytes"}) for key, each in values.items()}
        # A client that mostly sends to hosts with slow links is not a slow sender.
        is_slow = np.any([*slow.values()], axis=0) & (slow["gbps"] | (to_slow[clients] < _MOSTLY))
        for at in np.flatnonzero(is_slow).tolist():
            node = int(fabric.port_node[network.host_port[simulation.host_of_client[clients[at]]]])
            figures = {
                key: (float(each[at]), float(np.nanmedian(each))) for key, each in values.items() if slow[key][at]
            }
            key = job.name, f"0x{int(fabric.node_guid[node]):016x}"
            if same := found.get(key):
                figures |= same.figures
            found[key] = SlowSender(*key, fabric.node_name[node], figures)
            longest_us[key] = max(longest_us[key], float(np.nan_to_num(values["mean_us"][at])))
    return [found[key] for key in sorted(found, key=lambda key: -longest_us[key])]


def describe_slow_senders(found: list[SlowSender], most: int = 3) -> Iterator[str]:
    """Yield a sentence on each of the first `most` slow senders, and a sentence with the number of the others."""
    yield from (each.describe() for each in found[:most])
    if len(found) > most:
        yield f"{len(found) - most} more slow senders: summary.json lists all of them under slow_senders"


def _find_port_gbps(watch: Watch) -> npt.NDArray[np.float64]:
    """Return the data rate of each port's link, Gb/s, float64 [port]; nan where unknown."""
    fabric = watch.simulation.network.subnet.fabric
    of_end = {
        (node, port): gbps
        for nodes, ports, gbps in zip(
            fabric.link_node.tolist(), fabric.link_port.tolist(), fabric.link_gbps.tolist(), strict=True
        )
        for node, port in zip(nodes, ports, strict=True)
    }
    ends = zip(fabric.port_node.tolist(), fabric.port_number.tolist(), strict=True)
    return np.array([of_end.get(end, math.nan) for end in ends])


def _share_to(watch: Watch, hosts: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return, for each client, the fraction of its messages that go to, or come from, `hosts`; float64 [client]."""
    flows, clients = watch.flows(), watch.simulation.clients
    some = np.bincount(flows.client, flows.messages * hosts[flows.host], clients)
    return some / np.maximum(np.bincount(flows.client, flows.messages, clients), 1)


def _find_outliers(values: npt.NDArray[np.float64], *, is_rate: bool) -> npt.NDArray[np.bool_]:
    """Return True for outliers, bool: values much larger (for rates, much smaller) than most values.

    All are False if fewer than `_LEAST_PEERS` values are known (not nan).
    """
    cost = 1 / np.maximum(values, 1e-9) if is_rate else values
    known = cost[~np.isnan(cost)]
    if len(known) < _LEAST_PEERS:
        return np.zeros(len(values), np.bool_)
    low, middle, high = np.quantile(known, (0.25, 0.5, 0.75))
    with np.errstate(invalid="ignore"):
        slow: npt.NDArray[np.bool_] = (cost > _FACTOR * middle) & (cost > high + _SPREAD * (high - low))
    return slow
