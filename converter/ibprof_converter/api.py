# SPDX-License-Identifier: Apache-2.0
"""The public functions of the package: they convert paths and plain values to results."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from ibprof.errors import UsageError, with_plain_errors
from ibprof.profile.profile_data import Profile
from ibprof.profile.profile_rows import RowChoice
from ibprof_converter.analysis import pipeline_stages
from ibprof_converter.analysis.loads_view import NamedLoads, NetworkView, render_view
from ibprof_converter.analysis.pipeline_options import (
    TOP,
    AttributeFiles,
    FabricOptions,
    TrafficOptions,
    parse_columns,
    parse_pattern,
)
from ibprof_converter.analysis.pipeline_results import FabricLoads, RoutedFabric
from ibprof_converter.analysis.pipeline_stages import Demand, judge_loads, read_routed_fabric
from ibprof_converter.analysis.rank_placing import PlaceOptions, place_ranks, require_ranks
from ibprof_converter.checks.fabric_check import FabricHealth, check_fabric_files
from ibprof_converter.choices import parse_routes
from ibprof_converter.hotspots.link_report import DIAGNOSED_FLOWS
from ibprof_converter.placement.candidates import PlacementComparison
from ibprof_converter.reports import result_html  # noqa: F401  (the import registers how notebooks show results)
from ibprof_converter.reports.compared_run import pair_runs
from ibprof_converter.reports.job_report import JobReport, report_on_demand, report_on_loads
from ibprof_converter.reports.provenance import NOWHERE
from ibprof_converter.reports.run_comparison import DiffOptions, RunComparison, compare_runs, parse_condition
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.traffic import traffic_reader
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic
from ibprof_converter.traffic.traffic_reader import choose_demand, profile_traffic

StrPath = str | PathLike[str]
StrPaths = StrPath | Sequence[StrPath]
"""One path or several; empty text is ignored."""
TrafficSource = StrPath | Profile | RankTraffic | Traffic | PortCounters
"""A path, a pattern (`pattern:all-to-all`), a profile, or traffic that was already read."""


@with_plain_errors
def read_fabric(
    *names: StrPath,
    tables: StrPaths = (),
    host_names: str | None = None,
    level_hosts: str | None = None,
    strict: bool = False,
    routes: str | None = None,
    interfaces: str | None = None,
) -> RoutedFabric:
    """Read a fabric with its forwarding tables.

    Args:
        names: dumps of ibdiagnet, OpenSM or infiniband-diags, folders of dumps, or names of synthetic fabrics
            (`xgft:2:4,4:1,2`). Several names are several rails.
        tables: files with forwarding tables, one per name; by default, the files next to the dumps.
        host_names: regular expression that matches the host's name in an adapter's description.
        level_hosts: regular expression for the names of CAs that are hosts.
        strict: true to raise an error if tables are missing, or lead to nodes or links that the dumps lack.
        routes: source of routes, one of `tables`, `modelled`, `opensm` and `opensm:ENGINE`; by default `tables` if
            there are tables, else `modelled`.
        interfaces: adapters that jobs use, one of `compute`, `storage` and `all`, or names separated by commas; by
            default `compute` where adapters differ.

    Raises:
        InputError: a file is invalid.
        UsageError: no fabric is named, `interfaces` selects no adapter, an expression is invalid, or the numbers of
            tables and names differ.
        InconsistentError: two rails are the same; with `strict`, the dumps are incomplete.
    """
    options = FabricOptions(
        names=_name_fabrics(names),
        tables=_several(tables),
        host_names=parse_pattern(host_names) if host_names else None,
        level_hosts=parse_pattern(level_hosts) if level_hosts else None,
        strict=strict,
        routes=parse_routes(routes) if routes else None,
        interfaces=interfaces,
    )
    return read_routed_fabric(options)


def _name_fabrics(names: Sequence[StrPath]) -> tuple[str, ...]:
    if not names:
        raise UsageError("expected at least one fabric: a dump, a folder of dumps or the name of a synthetic fabric")
    return tuple(fspath(name) for name in names)


def _several(values: StrPaths) -> tuple[str, ...]:
    """Return one or several paths as a tuple, without empty text."""
    if isinstance(values, str | PathLike):
        return (fspath(values),) if fspath(values) else ()
    return tuple(fspath(value) for value in values)


def _expect(value: object, kind: type[Any] | tuple[type[Any], ...], maker: str) -> None:
    """Check that a value has the type that the function `maker` returns.

    Raises:
        TypeError: the value has another type.
    """
    if not isinstance(value, kind):
        raise TypeError(f"expected a result of {maker}, found {type(value).__name__}")


@with_plain_errors
def read_traffic(source: TrafficSource, fabric: RoutedFabric | None = None) -> Demand:
    """Read traffic.

    Args:
        source: a profile, a recording, a table, port counters, a pattern between all adapters, or traffic in memory.
        fabric: the fabric of patterns and LIDs.

    Returns:
        Bytes between ranks, bytes between LIDs, or port counters.

    Raises:
        InputError: the file is missing or invalid.
        UsageError: the pattern is unknown, or needs a fabric.
    """
    if fabric is not None:
        _expect(fabric, RoutedFabric, "read_fabric()")
    if isinstance(source, Profile):
        return profile_traffic(source)
    if not isinstance(source, str | PathLike):
        _expect(source, (RankTraffic, Traffic, PortCounters), "read_traffic() or ibprof.load_profile()")
        return source
    hosts = fabric.hosts if fabric else None
    return traffic_reader.read_traffic(fspath(source), hosts, fabric.fabrics if fabric else ())


@with_plain_errors
def load_links(
    fabric: RoutedFabric,
    *traffic: TrafficSource,
    placement: StrPaths = (),
    rails: str | None = None,
    nic: str | None = None,
    by: str | Sequence[str] = (),
    counters: StrPaths = (),
    adaptive: bool = False,
    strict: bool = False,
    operation: str | None = None,
    region: str | None = None,
    site: str | None = None,
) -> FabricLoads:
    """Compute the link loads of traffic on a fabric.

    Args:
        fabric: result of `read_fabric`.
        traffic: path, pattern, profile or result of `read_traffic`. Several traffics are jobs that share the fabric.
        placement: rank placement in place of the recorded placement: a rule such as `packed`, or a file; one per job.
        rails: policy for bytes whose rail was not measured, such as `split` or `round-robin`.
        nic: policy that chooses a rank's adapter in one subnet, one of `rank`, `near`, `spread` and `first`.
        by: columns that divide the loads, from `region`, `operation` and `site`.
        counters: port counters to compare with the loads: one file, or two files from before and after the run.
        adaptive: true to add bounds of adaptive routing.
        strict: true to raise an error if some bytes have no route.
        operation, region, site: use only bytes of this operation, region or call site (`solver.c:212`).

    Returns:
        The bytes of each link direction, and the coverage: unseen, modelled and unrouted data.

    Raises:
        InputError: a file is invalid.
        UsageError: an option is invalid for this traffic.
        InconsistentError: with `strict`, some bytes cannot be routed.
    """
    _expect(fabric, RoutedFabric, "read_fabric()")
    if not traffic:
        raise UsageError("expected at least one traffic to put on the fabric")
    options = TrafficOptions(
        names=tuple(_name_source(each) for each in traffic),
        placements=_several(placement),
        rails=rails,
        nic=nic,
        by=parse_columns(",".join(columns)) if (columns := _several(by)) else (),
        counters=_several(counters),
        adaptive=adaptive,
        strict=strict,
        flows_limit=DIAGNOSED_FLOWS,
        chosen=RowChoice(operation, region, site),
    )
    if all(isinstance(each, str | PathLike) for each in traffic):
        return pipeline_stages.load_traffic(fabric, options)
    return pipeline_stages.load_demands(
        fabric, [_read_ends(each, fabric, options.over_hosts) for each in traffic], options
    )


def _read_ends(source: TrafficSource, fabric: RoutedFabric, over_hosts: bool) -> Demand:
    """Read traffic. Patterns are between hosts if `over_hosts` is true, else between adapters."""
    if isinstance(source, str | PathLike):
        return traffic_reader.read_traffic(fspath(source), fabric.hosts, fabric.fabrics, over_hosts)
    return read_traffic(source, fabric)


def _name_source(source: TrafficSource) -> str:
    if isinstance(source, str | PathLike):
        return fspath(source)
    _expect(source, (Profile, RankTraffic, Traffic, PortCounters), "read_traffic() or ibprof.load_profile()")
    return source.name if isinstance(source, Profile) else source.origin


@with_plain_errors
def report(
    traffic: FabricLoads | TrafficSource, fabric: RoutedFabric | None = None, *, placement: StrPath = "", top: int = TOP
) -> JobReport:
    """Report on the most loaded links, their senders and the causes of their loads.

    Args:
        traffic: result of `load_links`; or a single path, pattern, profile or result of `read_traffic`.
        fabric: result of `read_fabric`; without a fabric, the report covers the traffic alone.
        placement: rank placement that replaces the recorded one.
        top: number of link directions to list.

    Raises:
        InputError: a file is invalid.
        UsageError: the traffic needs a fabric, or contradicts the arguments.
    """
    if index(top) < 0:
        raise UsageError(f"top: expected a number of link directions, found {top}")
    if isinstance(traffic, FabricLoads):
        if fabric is not None or placement:
            raise UsageError("loads are on a fabric already: fabric and placement do not apply")
        return report_on_loads(traffic, NOWHERE, top)
    if fabric is not None:
        return report_on_loads(load_links(fabric, traffic, placement=placement), NOWHERE, top)
    if placement:
        raise UsageError("a placement needs a fabric")
    return report_on_demand(read_traffic(traffic), NOWHERE)


@with_plain_errors
def diff(
    a: TrafficSource,
    b: TrafficSource,
    fabric: RoutedFabric | None = None,
    *,
    placement: StrPaths = (),
    rails: str | None = None,
    nic: str | None = None,
    strict: bool = False,
    fail_on: str | Sequence[str] = (),
    operation: str | None = None,
    region: str | None = None,
    site: str | None = None,
) -> RunComparison:
    """Compare two runs.

    Args:
        a, b: path of a profile, recording, report.json, links.csv or any traffic; or a profile or traffic in memory.
        fabric: result of `read_fabric`, to also compare link loads.
        placement: one rank placement for both runs, or one per run.
        rails: policy for bytes whose rail was not measured, such as `split` or `round-robin`.
        nic: policy that chooses a rank's adapter in one subnet, as in `load_links`.
        strict: true to raise an error if some bytes have no route.
        fail_on: thresholds such as `max_link>+10%`; `RunComparison.fails` is true if one is crossed.
        operation, region, site: use only bytes of this operation, region or call site (`solver.c:212`).

    Raises:
        InputError: a file is invalid.
        UsageError: a threshold is malformed, a name in it is in neither run, or an argument is invalid for these runs.
        InconsistentError: with `strict`, some bytes cannot be routed.
    """
    if fabric is not None:
        _expect(fabric, RoutedFabric, "read_fabric()")
    placements = [rule or None for rule in _several(placement)]
    if fabric is None and (placements or rails or nic or strict):
        raise UsageError("placement, rails, nic and strict need a fabric")
    chosen = RowChoice(operation, region, site)
    runs = pair_runs(_name_source(a), _name_source(b), placements, rails, strict, nic, chosen)
    before, after = (None if isinstance(each, str | PathLike) else read_traffic(each) for each in (a, b))
    options = DiffOptions(*runs, conditions=tuple(map(parse_condition, _several(fail_on))))
    return compare_runs(options, fabric=fabric, demands=(before, after))


@with_plain_errors
def place(
    fabric: RoutedFabric,
    traffic: TrafficSource,
    *,
    placement: StrPath | None = None,
    hosts: StrPath | None = None,
    slots: int | None = None,
    rails: str | None = None,
    nic: str | None = None,
    divide_groups: bool = False,
    seed: int = 1,
    seconds: float | None = None,
    operation: str | None = None,
    region: str | None = None,
    site: str | None = None,
) -> PlacementComparison:
    """Search for a rank placement with the least load on the most loaded link.

    Among placements with equal load, a smaller load of the most loaded link between switches is better.

    Args:
        fabric: result of `read_fabric`.
        traffic: traffic between ranks.
        placement: present rank placement, for comparison; by default, the recorded placement.
        hosts: file with a list of hosts from which the search chooses, or `own` for the ranks' present hosts; by
            default, all hosts.
        slots: number of ranks per host.
        rails: policy for bytes whose rail was not measured, as in `load_links`.
        nic: policy that chooses a rank's adapter in one subnet, one of `rank`, `first` and `spread`.
        divide_groups: true if tensor groups of a training job may be on several hosts.
        seed: seed of the random choices; the same seed and input give the same placement.
        seconds: time limit, which sets the work of the search; by default 10 s, and more above 1,024 ranks.
        operation, region, site: use only bytes of this operation, region or call site (`solver.c:212`).

    Returns:
        The best placement found (`hosts` has the host's name for each rank), and the link times of placements, in
        seconds.

    Raises:
        InputError: a file is invalid.
        UsageError: the traffic has no ranks or too many ranks, or an option is invalid.
        InconsistentError: in the best placement, some ranks cannot reach each other.
    """
    _expect(fabric, RoutedFabric, "read_fabric()")
    demand = _read_ends(traffic, fabric, over_hosts=True)
    demand = require_ranks(choose_demand(demand, RowChoice(operation, region, site), _name_source(traffic)))
    where, free = (None if each is None else fspath(each) for each in (placement, hosts))
    taken = None if slots is None else index(slots)
    options = PlaceOptions(where, rails, free, taken, index(seed), seconds, nic, divide_groups=divide_groups)
    options.check()
    return place_ranks(fabric.subnets, fabric.hosts, demand, options)


@with_plain_errors
def view(
    loads: FabricLoads,
    *compared: FabricLoads,
    rank_data: StrPath | None = None,
    node_data: StrPath | None = None,
) -> NetworkView:
    """Draw the network and its loads as one HTML page, for a notebook or a file.

    Args:
        loads: result of `load_links`.
        compared: loads of the same fabric, for comparison.
        rank_data: a CSV file with a column `rank`, then columns of numbers or words; each column can colour ranks.
        node_data: a CSV file with a column `host`, `node` or `guid`, then columns of numbers or words.

    Raises:
        InputError: a file is invalid.
        UsageError: `rank_data` is given, but the traffic has no ranks; or loads have different fabrics.
    """
    for each in (loads, *compared):
        _expect(each, FabricLoads, "load_links()")
    runs = [NamedLoads(each, (each.placed.origin,), judged=judge_loads(each)) for each in (loads, *compared)]
    files = AttributeFiles(Path(rank_data) if rank_data else None, Path(node_data) if node_data else None)
    return render_view(runs[0], runs[1:], files)


@with_plain_errors
def check(*names: StrPath, tables: StrPaths = ()) -> FabricHealth:
    """Check a fabric and its dumps for gaps, routes that do not arrive, and slow or missing links.

    Args:
        names, tables: as in `read_fabric`.

    Raises:
        InputError: a file is invalid.
        UsageError: no fabric is named, or the numbers of tables and names differ.
        InconsistentError: two rails are the same.
    """
    return check_fabric_files(find_rails(_name_fabrics(names), _several(tables)))
