# SPDX-License-Identifier: Apache-2.0
"""Render the one-file web view of one or several runs, with the user's data on ranks and nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.profile.profile_data import Profile
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import format_bytes, printable
from ibprof_converter.analysis.output_files import naming_file
from ibprof_converter.analysis.pipeline_options import AttributeFiles
from ibprof_converter.analysis.pipeline_results import FabricLoads
from ibprof_converter.analysis.pipeline_stages import JudgedLoads
from ibprof_converter.analysis.run_change import explain_change
from ibprof_converter.analysis.run_facts import facts_of_loads
from ibprof_converter.hotspots.coverage import describe_coverage
from ibprof_converter.traffic.link_loads import Loads, match_counters
from ibprof_converter.traffic.port_counters import Agreement
from ibprof_converter.traffic.traffic_data import ALL, PortCounters, Traffic, no_counters
from ibprof_converter.viewer import user_attributes
from ibprof_converter.viewer.time_arrays import RunTimes, merge_times
from ibprof_converter.viewer.user_attributes import RankGrid, UserAttribute
from ibprof_converter.viewer.view_document import encode_document
from ibprof_converter.viewer.view_file import render_page
from ibprof_converter.viewer.view_runs import RunPairChange, ViewRun

_RECORDED = "as recorded"
_PREDICTED = "predicted"
_MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class NamedLoads:
    """Loads, with the names that the user typed.

    Attributes:
        loads: loads of the links.
        traffics, placements: names as typed, one per job.
        judged: the verdict on the run. If None: the page shows no verdict.
        times: activity over time. If None: the activity of the recorded runs.
    """

    loads: FabricLoads
    traffics: tuple[str, ...] = ()
    placements: tuple[str, ...] = ()
    judged: JudgedLoads | None = None
    times: RunTimes | None = None


@dataclass(frozen=True, slots=True, repr=False)
class NetworkView(NotebookView):
    """The one-file web view.

    Attributes:
        title: names of the traffic and the fabric.
        html: the page, which needs no other files.
    """

    title: str
    html: str

    def __repr__(self) -> str:
        return f"<NetworkView {self.title}: {format_bytes(len(self.html))} of HTML>"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page.

        Raises:
            OSError: the file cannot be written; the error names the file.
        """
        path = Path(path)
        with naming_file(path):
            path.write_text(self.html, "utf-8", newline="\n")


def render_view(
    loads: FabricLoads | NamedLoads,
    compared: Sequence[NamedLoads] = (),
    attributes: AttributeFiles | None = None,
    spell: Callable[[str], str] = str,
) -> NetworkView:
    """Return the one-file web view.

    Args:
        loads: loads of the first run; port counters in `agreement` are shown as another run.
        compared: other runs on the same fabric.
        attributes: files with data on ranks and nodes.
        spell: function applied to texts, for example to shorten paths.

    Raises:
        InputError: a file of attributes is invalid.
        UsageError: attributes need ranks, but the traffic has none; or runs have different fabrics.
    """
    own = loads if isinstance(loads, NamedLoads) else NamedLoads(loads)
    for each in compared:
        if not each.loads.fabric.has_links_of(own.loads.fabric):
            raise UsageError(f"{each.loads.title}: expected loads of the same links as {own.loads.fabric.name}")
    values, grid = _read_attributes(own.loads, attributes or AttributeFiles())
    everything = (own, *compared)
    runs = [_run_of(name, each) for name, each in zip(_name_runs(everything), everything, strict=True)]
    fabric, agreement = own.loads.fabric, own.loads.agreement
    if agreement:
        runs.append(_run_of_counters(own.loads, agreement))
    title = own.loads.title
    if len(runs) > 1:
        title = printable(f"{' | '.join(run.name for run in runs)} on {fabric.name}")
    changes = _explain_changes(everything, [run.name for run in runs])
    document = encode_document(
        title, fabric.subnets, fabric.layouts, fabric.hosts, runs, values, grid, spell=spell, changes=changes
    )
    return NetworkView(title, render_page(document))


def _explain_changes(runs: Sequence[NamedLoads], names: Sequence[str]) -> list[RunPairChange]:
    if len(runs) < 2:
        return []
    facts = [facts_of_loads(run.loads, run.judged.links) if run.judged else None for run in runs]
    return [
        RunPairChange(one, other, explain_change(before, after, (names[one], names[other])).text)
        for one, before in enumerate(facts)
        for other, after in enumerate(facts)
        if one != other and before and after
    ]


def _read_attributes(loads: FabricLoads, files: AttributeFiles) -> tuple[list[UserAttribute], RankGrid | None]:
    values: list[UserAttribute] = []
    grid = user_attributes.find_recorded_grid(loads.demand.profile if loads.demand else None)
    if files.ranks is not None:
        ranks = len(loads.traffic.rank_lid) if loads.traffic else 0
        if not ranks:
            raise UsageError(f"--rank-data {files.ranks}: expected traffic between ranks, found traffic between ports")
        values, given = user_attributes.read_rank_data(files.ranks, ranks)
        grid = given or grid
    if files.nodes is not None:
        values += user_attributes.read_node_data(files.nodes, loads.fabric.fabrics, loads.fabric.hosts)
    return values, grid


def _run_of(name: str, named: NamedLoads) -> ViewRun:
    loads = named.loads
    run = ViewRun(name, loads.placed, loads.loads, loads.coverage)
    if isinstance(loads.placed, PortCounters):
        run = replace(run, known=match_counters(loads.placed, loads.fabric.fabrics)[1])
    else:
        times = named.times or merge_times(loads.profiles, loads.placed.first_rank)
        run = replace(run, times=times, rank_parts=_split_by_rank(loads.profiles, loads.placed))
    if named.judged is None:
        return run
    return replace(run, verdict=named.judged.verdict, diagnosis=named.judged.links.diagnosis)


def _split_by_rank(jobs: Sequence[Profile | None], placed: Traffic) -> npt.NDArray[np.float32] | None:
    """Return waiting, transfer and unsplit time of each rank, as in `ViewRun`; None without samples."""
    from ibprof.waiting.wait_split import measure_waiting  # noqa: PLC0415  (most views have no samples)

    parts = np.full((len(placed.rank_lid), 4), np.nan, np.float32)
    for job, first in zip(jobs, placed.first_rank, strict=False):
        measured = measure_waiting(job) if job is not None else None
        if job is not None and measured:
            own = measured.by_rank(job.world_size)[: len(parts) - first]
            parts[first : first + len(own)] = own
    return parts if np.isfinite(parts).any() else None


def _run_of_counters(loads: FabricLoads, agreement: Agreement) -> ViewRun:
    nothing = no_counters(agreement.origin, agreement.notes)
    counted = Loads(
        by_rail=tuple(counted[:, :, None] for counted in agreement.counted),
        groups=((ALL, ALL),),
        bytes_total=agreement.bytes_counted,
        bytes_routed=agreement.bytes_counted,
        bytes_on_host=0,
        bytes_unrouted={},
    )
    coverage = describe_coverage(None, nothing, loads.fabric.subnets)
    return ViewRun(_MEASURED, nothing, counted, coverage, known=agreement.known)


def _name_runs(runs: Sequence[NamedLoads]) -> Sequence[str]:
    """Return distinct names of runs, from traffic, placement or both; equal names get numbers."""
    if len(runs) == 1:
        return [_PREDICTED if runs[0].loads.agreement else ""]
    traffics = [" + ".join(map(_shorten, run.traffics)) for run in runs]
    placements = [" + ".join(map(_shorten, run.placements)) or _RECORDED for run in runs]
    if len(set(traffics)) == 1 and len({run.traffics for run in runs}) > 1:
        traffics = [" + ".join("/".join(Path(name).parts[-2:]) for name in run.traffics) for run in runs]
    if len(set(traffics)) == 1:
        names = placements
    elif len(set(placements)) == 1:
        names = traffics
    else:
        names = [f"{traffic}, {placement}" for traffic, placement in zip(traffics, placements, strict=True)]
    return [name if names.count(name) == 1 else f"{name} #{at + 1}" for at, name in enumerate(names)]


def _shorten(name: str) -> str:
    """Return a file's name without its folders, or a placement rule or pattern unchanged."""
    return Path(name).name if Path(name).exists() else name
