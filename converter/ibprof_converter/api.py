# SPDX-License-Identifier: Apache-2.0
"""The functions behind the package's public names: paths and plain values in, results out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from ibprof.errors import UsageError
from ibprof.profile.profile_data import Profile
from ibprof_converter.analysis import load_pipeline
from ibprof_converter.analysis.fabric_loads import FabricLoads
from ibprof_converter.analysis.load_options import FabricOptions, TrafficOptions
from ibprof_converter.analysis.load_pipeline import Demand
from ibprof_converter.analysis.loads_view import AttributeFiles, NamedLoads, NetworkView, render_view
from ibprof_converter.analysis.rank_placing import SEARCH_SECONDS, PlaceOptions, place_ranks
from ibprof_converter.analysis.routed_fabric import RoutedFabric, read_routed_fabric
from ibprof_converter.checks.fabric_check import FabricHealth, check_fabric_files
from ibprof_converter.hotspots.traffic_answer import DIAGNOSED_FLOWS
from ibprof_converter.placement.candidates import PlacementComparison
from ibprof_converter.reports import result_html  # noqa: F401  (registers how notebooks show results)
from ibprof_converter.reports.compared_sides import DiffOptions, compare_runs
from ibprof_converter.reports.fail_conditions import parse_condition
from ibprof_converter.reports.job_report import TOP, JobReport, report_on_demand, report_on_loads
from ibprof_converter.reports.provenance import NOWHERE
from ibprof_converter.reports.run_comparison import RunComparison
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.simulation.study.study_file import read_study
from ibprof_converter.simulation.study.study_results import StudyOutput, StudyResults, run_study
from ibprof_converter.simulation.study.sweep import open_pool
from ibprof_converter.traffic import traffic_reader
from ibprof_converter.traffic.recorded_traffic import profile_traffic
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic

__all__ = [
    "FabricHealth",
    "FabricLoads",
    "JobReport",
    "NetworkView",
    "PlacementComparison",
    "RoutedFabric",
    "RunComparison",
    "StudyResults",
    "check",
    "diff",
    "load_links",
    "place",
    "read_fabric",
    "read_traffic",
    "report",
    "simulate",
    "view",
]

StrPath = str | PathLike[str]
TrafficSource = StrPath | Profile | RankTraffic | Traffic | PortCounters
"""A path, a pattern (`pattern:all-to-all`), a profile or traffic that was read."""


def read_fabric(
    *names: StrPath,
    tables: Sequence[StrPath] = (),
    host_names: str | None = None,
    level_hosts: str | None = None,
    strict: bool = False,
) -> RoutedFabric:
    """Read a fabric with its forwarding tables.

    Args:
        names: dumps of ibdiagnet, OpenSM or infiniband-diags, folders of them, or names of synthetic fabrics
            (`xgft:2:4,4:1,2`); several are rails.
        tables: files of forwarding tables, one a name; by default those next to the dumps.
        host_names: regular expression that finds the host's name in the description of an adapter.
        level_hosts: regular expression for the names of the CAs that levels are counted from.
        strict: whether forwarding tables that lead to what the dumps lack are an error.

    Raises:
        InputError: a file is not what it should be.
        InconsistentError: two rails are one; with `strict`, the dumps are not whole.
    """
    options = FabricOptions(
        names=tuple(fspath(name) for name in names),
        tables=tuple(fspath(table) for table in tables),
        host_names=re.compile(host_names) if host_names else None,
        level_hosts=re.compile(level_hosts) if level_hosts else None,
        strict=strict,
    )
    return read_routed_fabric(options)


def read_traffic(source: TrafficSource, fabric: RoutedFabric | None = None) -> Demand:
    """Read traffic.

    Args:
        source: a profile, a recording, a table, port counters, or a pattern over all hosts of the fabric; what was
            read already is returned as it is.
        fabric: that patterns and LIDs refer to.

    Returns:
        Bytes between ranks, between LIDs, or as counted at ports.

    Raises:
        InputError: the file is not there, or not what it should be.
        UsageError: there is no such pattern, or a pattern without a fabric.
    """
    if isinstance(source, Profile):
        return profile_traffic(source)
    if not isinstance(source, str | PathLike):
        return source
    hosts = fabric.hosts if fabric else None
    return traffic_reader.read_traffic(fspath(source), hosts, fabric.fabrics if fabric else ())


def load_links(
    fabric: RoutedFabric,
    *traffic: TrafficSource,
    placement: str | Sequence[str] = (),
    rails: str | None = None,
    by: Sequence[str] = (),
    counters: Sequence[StrPath] = (),
    adaptive: bool = False,
    strict: bool = False,
) -> FabricLoads:
    """Put traffic on the links of a fabric.

    Args:
        fabric: of `read_fabric`.
        traffic: paths, patterns, profiles or traffic that was read; several are jobs that share the fabric.
        placement: where the ranks are, whatever was recorded: a rule such as `packed`, or a file; one a job.
        rails: policy for bytes whose rail was not measured: `split`, `round-robin`, ...
        by: what to distinguish, of `region` and `operation`.
        counters: port counters to compare the loads with: one file, or two, before and after.
        adaptive: whether to add bounds of adaptive routing.
        strict: whether bytes that cannot be routed are an error.

    Returns:
        The bytes of each link direction, with their coverage: what was not seen, what is modelled, what was not routed.

    Raises:
        InputError: a file is not what it should be.
        UsageError: the options do not fit the traffic.
        InconsistentError: with `strict`, bytes cannot be routed.
    """
    options = TrafficOptions(
        names=tuple(_name_source(each) for each in traffic),
        placements=(placement,) if isinstance(placement, str) else tuple(placement),
        rails=rails,
        by=tuple(by),
        counters=tuple(fspath(file) for file in counters),
        adaptive=adaptive,
        strict=strict,
        flows_limit=DIAGNOSED_FLOWS,
    )
    if all(isinstance(each, str | PathLike) for each in traffic):
        return load_pipeline.load_traffic(fabric, options)
    return load_pipeline.load_demands(fabric, [read_traffic(each, fabric) for each in traffic], options)


def _name_source(source: TrafficSource) -> str:
    if isinstance(source, str | PathLike):
        return fspath(source)
    return source.name if isinstance(source, Profile) else source.origin


def report(
    traffic: FabricLoads | TrafficSource, fabric: RoutedFabric | None = None, *, placement: str = "", top: int = TOP
) -> JobReport:
    """Report which links carry most, who loads them and why.

    Args:
        traffic: loads of `load_links`, or traffic as `load_links` takes it.
        fabric: of `read_fabric`; without one the report says what the traffic alone can tell.
        placement: where the ranks are, whatever was recorded.
        top: number of link directions to name.

    Raises:
        InputError: a file is not what it should be.
        UsageError: the traffic needs a fabric, or a placement.
    """
    if not isinstance(traffic, FabricLoads):
        if fabric is None:
            return report_on_demand(read_traffic(traffic), NOWHERE)
        traffic = load_links(fabric, traffic, placement=placement or ())
    return report_on_loads(traffic, NOWHERE, top)


def diff(
    a: StrPath,
    b: StrPath,
    fabric: RoutedFabric | None = None,
    *,
    placement: str | Sequence[str] = (),
    fail_on: Sequence[str] = (),
) -> RunComparison:
    """Compare two runs.

    Args:
        a, b: profiles, recordings, report.json, links.csv, or any traffic.
        fabric: to compare the loads of links too.
        placement: where the ranks are: one for both, or one for each.
        fail_on: thresholds such as `max_link>+10%`; `comparison.fails` says whether one is crossed.

    Raises:
        InputError: a file is not what it should be.
        UsageError: a threshold is not well-formed, or of what neither run has.
    """
    placements = [placement] if isinstance(placement, str) else list(placement)
    each = placements if len(placements) == 2 else placements[:1] * 2 or [""] * 2
    before, after = (
        TrafficOptions((fspath(name),), (rule,) if rule else (), flows_limit=DIAGNOSED_FLOWS)
        for name, rule in zip((a, b), each, strict=True)
    )
    conditions = tuple(parse_condition(text) for text in fail_on)
    return compare_runs(DiffOptions(before, after, conditions=conditions), fabric=fabric)


def place(
    fabric: RoutedFabric,
    traffic: TrafficSource,
    *,
    placement: str | None = None,
    hosts: StrPath | None = None,
    slots: int | None = None,
    rails: str | None = None,
    seed: int = 1,
    seconds: float = SEARCH_SECONDS,
) -> PlacementComparison:
    """Search for a placement of the ranks that loads the busiest link between switches least.

    Args:
        fabric: of `read_fabric`.
        traffic: between ranks.
        placement: where the ranks are now, to compare with; by default as recorded.
        hosts: a file of hosts to choose from, or `own`: those that the ranks are on; by default all.
        slots: ranks that a host takes.
        rails: policy for bytes on several rails.
        seed: of the random choices; the same seed and input give the same placement.
        seconds: that set the work of the search.

    Returns:
        The best placement found (`hosts`, a name for each rank) and the times of others, in seconds.

    Raises:
        InputError: a file is not what it should be.
        UsageError: the traffic knows no ranks, or they do not fit.
    """
    demand = read_traffic(traffic, fabric)
    if not isinstance(demand, RankTraffic):
        raise UsageError(f"{demand.origin}: only a traffic between ranks can be placed anew")
    options = PlaceOptions(placement, rails, None if hosts is None else fspath(hosts), slots, seed, seconds)
    options.check()
    return place_ranks(fabric.subnets, fabric.hosts, demand, options)


def view(
    loads: FabricLoads,
    *compared: FabricLoads,
    rank_data: StrPath | None = None,
    node_data: StrPath | None = None,
) -> NetworkView:
    """Draw the network and its loads as one HTML page, to look at in a notebook or to save.

    Args:
        loads: of `load_links`.
        compared: loads of the same fabric to compare with.
        rank_data: CSV with a column `rank`, then numbers or words to colour ranks by.
        node_data: CSV with a column `host`, `node` or `guid`, then numbers or words.

    Raises:
        InputError: a file is not what it should be.
        UsageError: the traffic knows no ranks that `rank_data` could be of.
    """
    runs = [NamedLoads(each, (each.placed.origin,)) for each in (loads, *compared)]
    files = AttributeFiles(Path(rank_data) if rank_data else None, Path(node_data) if node_data else None)
    return render_view(runs[0], runs[1:], files)


def check(*names: StrPath, tables: Sequence[StrPath] = ()) -> FabricHealth:
    """Check a fabric and its dumps: gaps, routes that do not arrive, slow or missing links.

    Args:
        names, tables: as `read_fabric` takes them.

    Raises:
        InputError: a file is not what it should be.
        InconsistentError: two rails are one.
    """
    return check_fabric_files(find_rails(names, tables))


def simulate(study: StrPath, folder: StrPath, *, workers: int = 1) -> StudyResults:
    """Simulate the jobs of a study packet by packet: how much they slow each other down.

    Args:
        study: a file as `ibprof-sim run` takes it.
        folder: for the results; a study that was begun in it is continued.
        workers: processes.

    Returns:
        Slow-downs (`conclusions`), a row for each simulation (`rows`, latencies in microseconds) and notes.

    Raises:
        InputError: the study is not what it should be.
        InconsistentError: a simulation is impossible.
    """
    plan = read_study(Path(study))
    with open_pool(workers) as pool:
        if pool is None:
            raise UsageError("simulate() does not run on the ranks of an MPI job; mpirun ibprof-sim run does")
        return run_study(plan, StudyOutput(Path(folder)), pool, lambda _done, _work: None)
