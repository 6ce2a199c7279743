# SPDX-License-Identifier: Apache-2.0
"""Read fabrics, compute their link loads under a traffic, and compare the loads with port counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ibprof.errors import InconsistentError, UsageError
from ibprof.profile.missing_data import describe_gaps
from ibprof.profile.profile_rows import NO_SITES
from ibprof_converter.analysis.pipeline_options import (
    OPERATION,
    REGION,
    SITE,
    TOP,
    FabricOptions,
    Progress,
    TrafficOptions,
    no_progress,
)
from ibprof_converter.analysis.pipeline_results import STATIC_PARTS, FabricLoads, RoutedFabric
from ibprof_converter.choices import PATTERN_PREFIX, TABLES
from ibprof_converter.hotspots.coverage import describe_assumed_speeds, describe_coverage
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.routing.route_choice import describe_routes, read_routed_rail
from ibprof_converter.routing.subnet import Subnet, check_rails
from ibprof_converter.traffic.adapter_policies import SPREAD
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.interfaces import choose_interfaces
from ibprof_converter.traffic.lid_traffic import map_to_lids
from ibprof_converter.traffic.link_loads import BY_TIME, Loads, bound_loads, load_counted, load_links
from ibprof_converter.traffic.patterns import read_all_to_all
from ibprof_converter.traffic.port_counters import Agreement, compare_counters, subtract_counters
from ibprof_converter.traffic.traffic_data import ALL, PortCounters, RankTraffic, Traffic, merge_jobs
from ibprof_converter.traffic.traffic_reader import choose_demand, read_traffic

if TYPE_CHECKING:
    from ibprof.verdict.verdict_data import Verdict
    from ibprof_converter.hotspots.link_report import LinkReport

_MOST_REGIONS = 64
"""Loads are split by region for at most this number of regions: memory grows with links times regions."""

Demand = RankTraffic | Traffic | PortCounters
"""The traffic of one job, before it is placed on a fabric."""


def read_subnets(options: FabricOptions, progress: Progress = no_progress) -> tuple[Subnet, ...]:
    """Return each rail: its fabric and its forwarding tables.

    If tables are missing, routes are modelled, except with `strict`.

    Raises:
        InputError: a file is invalid, or requested tables are missing.
        InconsistentError: two rails are the same; or with `strict`, tables lead to nodes or links that are not in the
            dumps.
        UsageError: no adapter is chosen.
        MissingToolError: `routes` needs OpenSM, but OpenSM or ibsim is not installed.
    """
    progress("reading the fabric")
    routes = options.routes or (TABLES if options.strict else None)
    subnets = tuple(read_routed_rail(files, rail, routes) for rail, files in enumerate(options.find_rails()))
    check_rails(subnets)
    if options.strict and (gaps := [gap for subnet in subnets for gap in subnet.gaps]):
        raise InconsistentError(f"--strict: {'; '.join(gaps)}")
    return apply_interfaces(subnets, options)


def apply_interfaces(subnets: Sequence[Subnet], options: FabricOptions) -> tuple[Subnet, ...]:
    """Set `is_left_out` of adapters that jobs do not use; return the rails.

    Raises:
        UsageError: no adapter is chosen.
    """
    fabrics = choose_interfaces([subnet.fabric for subnet in subnets], options.interfaces, options.host_names)
    return tuple(
        subnet if fabric is subnet.fabric else replace(subnet, fabric=fabric)
        for subnet, fabric in zip(subnets, fabrics, strict=True)
    )


def read_routed_fabric(options: FabricOptions, progress: Progress = no_progress) -> RoutedFabric:
    """Return the fabrics with levels, positions and hosts.

    Raises:
        IbprofError: `read_subnets` fails.
    """
    subnets = read_subnets(options, progress)
    fabrics = [subnet.fabric for subnet in subnets]
    return RoutedFabric(subnets, tuple(lay_out(fabrics, options.level_hosts)), find_hosts(fabrics, options.host_names))


def load_fabric(fabric: FabricOptions, traffic: TrafficOptions, progress: Progress = no_progress) -> FabricLoads:
    """Read fabrics and traffic, and return the loads of the fabrics' links.

    Raises:
        IbprofError: `read_routed_fabric` or `load_traffic` fails.
    """
    return load_traffic(read_routed_fabric(fabric, progress), traffic, progress)


def load_traffic(fabric: RoutedFabric, options: TrafficOptions, progress: Progress = no_progress) -> FabricLoads:
    """Read traffic, and return the loads of a fabric's links.

    Raises:
        InputError: a file is invalid.
        UsageError: the options contradict the traffic or each other.
        InconsistentError: with `strict`, some bytes have no route.
    """
    progress("reading the traffic")
    if (size := _size_of_large_all_to_all(fabric, options)) is not None:
        progress("computing link loads")
        from ibprof_converter.traffic.lid_traffic import load_all_to_all  # noqa: PLC0415  (few fabrics are as large)

        placed, loads = load_all_to_all(
            options.names[0], size, fabric.hosts, fabric.subnets, options.rails, options.nic
        )
        return _complete(fabric, (), placed, loads, options)
    demands = [read_traffic(name, fabric.hosts, fabric.fabrics, options.over_hosts) for name in options.names]
    return load_demands(fabric, demands, options, progress)


def _size_of_large_all_to_all(fabric: RoutedFabric, options: TrafficOptions) -> int | None:
    """Return the bytes per pair of an all-to-all that is too large for memory, and is routed in parts; else None."""
    limit = options.flows_limit
    if len(options.names) > 1 or limit is None or options.by or options.placements or options.nic == SPREAD:
        return None
    if options.chosen:
        return None
    ends = len(fabric.hosts.name if options.nic else fabric.hosts.ends)
    return read_all_to_all(options.names[0], ends) if ends * (ends - 1) > limit else None


def load_demands(
    fabric: RoutedFabric, demands: Sequence[Demand], options: TrafficOptions, progress: Progress = no_progress
) -> FabricLoads:
    """Return a fabric's link loads under traffic that was already read.

    Args:
        options: the options; their `names` are the names of `demands`, in order.

    Raises:
        UsageError, InputError, InconsistentError: as in `load_traffic`.
    """
    demands = [choose_demand(each, options.chosen, name) for each, name in zip(demands, options.names, strict=True)]
    placed = _place_jobs(fabric, demands, options)
    progress("computing link loads")
    return _complete(fabric, demands, placed, _load(fabric, placed, options), options)


def _complete(
    fabric: RoutedFabric,
    demands: Sequence[Demand],
    placed: Traffic | PortCounters,
    loads: Loads,
    options: TrafficOptions,
) -> FabricLoads:
    if options.strict and loads.bytes_unrouted:
        reasons = ", ".join(f"{amount} ({reason})" for reason, amount in loads.bytes_unrouted.items())
        raise InconsistentError(f"--strict: bytes that cannot be routed: {reasons}")
    bounds = bound_loads(placed, fabric.subnets, options.adaptive) if isinstance(placed, Traffic) else None
    ranked = [each if isinstance(each, RankTraffic) else None for each in demands]
    demand = ranked[0] if len(ranked) == 1 else None
    coverage = describe_coverage(demand, placed, fabric.subnets, fabric.hosts, loads)
    if bounds and bounds.is_adaptive:
        coverage = replace(coverage, modelled=(*coverage.modelled, STATIC_PARTS))
    return FabricLoads(
        fabric=fabric,
        demand=demand,
        profiles=tuple(each.profile if each else None for each in ranked),
        placed=placed,
        loads=loads,
        coverage=coverage,
        agreement=_compare_counters(options.counters, loads, placed, fabric) if options.counters else None,
        bounds=bounds,
    )


def _load(fabric: RoutedFabric, placed: Traffic | PortCounters, options: TrafficOptions) -> Loads:
    if isinstance(placed, Traffic):
        if SITE in options.by and placed.sites == (ALL,):
            raise UsageError(f"--by {SITE}: {placed.origin}: {NO_SITES}")
        return load_links(
            placed,
            fabric.subnets,
            by_region=REGION in options.by,
            by_operation=OPERATION in options.by,
            by_site=SITE in options.by,
        )
    if options.by:
        raise UsageError(f"{options.names[0]}: port counters cannot be divided by {' or '.join(options.by)}")
    return load_counted(placed, fabric.fabrics)


def _place_jobs(fabric: RoutedFabric, demands: Sequence[Demand], options: TrafficOptions) -> Traffic | PortCounters:
    placements = options.placements or (None,) * len(demands)
    if len(placements) != len(demands):
        raise UsageError(f"--placement: expected one for each of {len(demands)} jobs, found {len(placements)}")
    placed: list[Traffic] = []
    for name, demand, placement in zip(options.names, demands, placements, strict=True):
        if isinstance(demand, RankTraffic):
            job = map_to_lids(demand, fabric.hosts, fabric.fabrics, placement, options.rails, options.nic)
            # The coverage reports gaps in the recording of a single job. With several jobs, notes report these gaps.
            missing = describe_gaps(demand.profile) if demand.profile and len(demands) > 1 else ()
            placed.append(replace(job, notes=(*job.notes, *missing)))
        elif (placement or options.rails or options.nic) and not options.inherited:
            raise UsageError(f"{name} names the ports of its bytes: --placement, --rails and --nic do not apply")
        elif isinstance(demand, Traffic):
            if any(each.synthetic_lids for each in fabric.fabrics):
                raise InconsistentError(f"{name} has bytes between LIDs, but no port of the fabric has a LID")
            placed.append(demand)
        elif len(demands) > 1:
            raise UsageError(
                f"{name}: port counters cannot be one of several jobs: they count the bytes of all jobs. "
                "Use --counters to compare the sum of the jobs' loads with port counters"
            )
        else:
            return demand
    return merge_jobs(list(map(_name_job, options.names)), placed)


def _name_job(name: str) -> str:
    """Return a job's short name: a file without folder and suffix, or a pattern without its prefix."""
    return name.removeprefix(PATTERN_PREFIX) if name.startswith(PATTERN_PREFIX) else Path(name).stem


def _compare_counters(
    names: Sequence[str], loads: Loads, placed: Traffic | PortCounters, fabric: RoutedFabric
) -> Agreement:
    """Compare loads with port counters: values in one file, or differences between two files."""
    if len(names) > 2:
        raise UsageError(f"--counters: expected one file, or a file before and a file after, found {len(names)}")
    if not isinstance(placed, Traffic):
        raise UsageError(f"--counters: expected traffic to compare with counters, found {placed.origin}")
    read = []
    for name in names:
        counters = read_traffic(name, None, fabric.fabrics)
        if not isinstance(counters, PortCounters):
            raise UsageError(f"--counters {name}: expected port counters, found {counters.origin}")
        read.append(counters)
    return compare_counters(loads, subtract_counters(read[1], read[0]) if len(read) > 1 else read[0], fabric.fabrics)


@dataclass(frozen=True, slots=True)
class JudgedLoads:
    """The verdict on loads, and the report on links from which it follows."""

    verdict: Verdict
    links: LinkReport


def judge_loads(
    loads: FabricLoads, progress: Progress = no_progress, top: int = TOP, rank_by: str = BY_TIME
) -> JudgedLoads:
    """Return the verdict on loads: is the network the reason why the job is slow?

    Args:
        progress: function that is called with the name of each stage of the diagnosis.
        top: number of link directions to list.
        rank_by: one of `RANKINGS`.
    """
    # Imported here: the diagnosis needs many modules, which callers without a verdict do not need.
    from ibprof_converter.hotspots.link_report import judge_job, report_on_links  # noqa: PLC0415  (slow to import)

    fabric, traffic, demand = loads.fabric, loads.traffic, loads.demand
    links = report_on_links(
        loads.placed,
        fabric.subnets,
        fabric.layouts,
        loads.loads,
        top,
        bounds=loads.judging_bounds,
        demand=demand,
        progress=progress,
        rank_by=rank_by,
        hosts=fabric.hosts,
    )
    routes = (describe_routes(fabric.subnets) or "") if traffic else ""
    basis = " ".join(filter(None, (f"{routes}." if routes else "", describe_assumed_speeds(fabric.fabrics))))
    run = demand.profile if demand else None
    moved = traffic is not None and traffic.moved
    lost = " ".join(loads.coverage.lost)
    return JudgedLoads(judge_job(run, links, basis, _time_regions(loads), moved=moved, lost=lost), links)


def _time_regions(loads: FabricLoads) -> Mapping[str, float] | None:
    """Return the time at line rate, in seconds, of each region's most loaded link direction.

    The result is None without ranks, with one region, with more than `_MOST_REGIONS` regions, with too many flows, or
    if no link's speed is known. With adaptive routing, the result is None, because the loads of single regions are not
    estimated.
    """
    from ibprof_converter.hotspots.link_report import DIAGNOSED_FLOWS  # noqa: PLC0415  (slow to import)

    traffic = loads.traffic
    if traffic is None or loads.demand is None or loads.judging_bounds:
        return None
    if not 1 < len(traffic.regions) <= _MOST_REGIONS or len(traffic.bytes) > DIAGNOSED_FLOWS:
        return None
    split = load_links(traffic, loads.fabric.subnets, by_region=True)
    seconds = np.zeros(len(split.groups))
    for fabric, amounts in zip(loads.fabric.fabrics, split.by_rail, strict=True):
        known = fabric.link_gbps > 0
        each = amounts[known] * 8e-9 / fabric.link_gbps[known, np.newaxis, np.newaxis]
        seconds = np.maximum(seconds, each.max(axis=(0, 1), initial=0.0))
    found = dict(zip((region for region, _ in split.groups), seconds.tolist(), strict=True))
    return found if any(found.values()) else None
