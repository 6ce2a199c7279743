# SPDX-License-Identifier: Apache-2.0
"""Read the two sides of a comparison, each from whatever holds a run, and compare them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ibprof.errors import UsageError
from ibprof.profile.row_choice import ALL_ROWS, RowChoice
from ibprof_converter.analysis.load_options import FabricOptions, Progress, TrafficOptions, no_progress
from ibprof_converter.analysis.load_pipeline import Demand, load_demands, load_traffic
from ibprof_converter.analysis.routed_fabric import RoutedFabric, read_routed_fabric
from ibprof_converter.analysis.run_facts import RankPairs, facts_of_loads
from ibprof_converter.hotspots.link_report import DIAGNOSED_FLOWS
from ibprof_converter.reports.comparison_side import (
    LINK,
    PAIR,
    ComparedRun,
    links_of_rows,
    looks_like_links,
    looks_like_report,
    pairs_of_demand,
    read_links,
    read_report,
    side_of_report,
)
from ibprof_converter.reports.job_report import report_on_demand, report_on_loads
from ibprof_converter.reports.provenance import NOWHERE, describe_provenance
from ibprof_converter.reports.run_comparison import FailCondition, RunComparison, compare
from ibprof_converter.traffic.chosen_traffic import choose_demand
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic
from ibprof_converter.traffic.traffic_reader import read_traffic


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """Runs to compare.

    Attributes:
        a, b: the runs.
        fabric: to put both on; None: none.
        conditions: thresholds.
    """

    a: TrafficOptions
    b: TrafficOptions
    fabric: FabricOptions | None = None
    conditions: tuple[FailCondition, ...] = ()

    def files(self) -> Iterator[Path]:
        """Yield the files to read."""
        for side in (self.a, self.b):
            if self.fabric:
                yield from self.fabric.files()
            yield from side.files()


def pair_runs(
    a: str,
    b: str,
    placements: Sequence[str | None] = (),
    rails: str | None = None,
    strict: bool = False,
    nic: str | None = None,
    chosen: RowChoice = ALL_ROWS,
) -> tuple[TrafficOptions, TrafficOptions]:
    """Return how to read two runs, and how to put them on a fabric.

    Args:
        a, b: names of the runs.
        placements: where the ranks are: one for both runs, or one for each; None or no one: as recorded.
        rails: policy for bytes whose rail was not measured; None: the default policy.
        strict: whether bytes that cannot be routed are an error.
        nic: policy for the adapter of a host in one subnet; None: as measured or recorded, else the default policy.
        chosen: the calls to compare, in both runs.

    Raises:
        UsageError: there are more than two placements.
    """
    if len(placements) > 2:
        raise UsageError("--placement: expected one for both runs, or one for each")
    of_a, of_b = placements if len(placements) == 2 else [*placements, None][:1] * 2
    before, after = (
        TrafficOptions(
            names=(name,),
            placements=(rule,) if rule is not None else (),
            rails=rails,
            nic=nic,
            strict=strict,
            flows_limit=DIAGNOSED_FLOWS,
            chosen=chosen,
        )
        for name, rule in ((a, of_a), (b, of_b))
    )
    return before, after


def compare_runs(
    options: DiffOptions,
    command: str = "",
    progress: Progress = no_progress,
    fabric: RoutedFabric | None = None,
    demands: tuple[Demand | None, Demand | None] = (None, None),
) -> RunComparison:
    """Read two runs and compare them.

    Args:
        options: which runs, and thresholds.
        command: that made the comparison, as it was typed.
        progress: receives each stage.
        fabric: to put both runs on, in place of the one of the options.
        demands: the traffic of each run; None where it is to be read.

    Raises:
        InputError: a file is not what it should be.
        UsageError: options or thresholds do not fit the runs.
    """
    sides = (options.a, options.b)
    if fabric is None and options.fabric and not all(_is_result(Path(side.names[0])) for side in sides):
        fabric = read_routed_fabric(options.fabric, progress)
    a, b = (read_side(side, fabric, progress, demand) for side, demand in zip(sides, demands, strict=True))
    # Reading may collect a recording into a profile, whose hash belongs to the provenance.
    return compare(a, b, options.conditions, describe_provenance(command, options.files()))


def _is_result(path: Path) -> bool:
    """Return whether a file holds loads already, so that no fabric is needed."""
    return looks_like_report(path) or looks_like_links(path)


def read_side(
    traffic: TrafficOptions, fabric: RoutedFabric | None, progress: Progress = no_progress, demand: Demand | None = None
) -> ComparedRun:
    """Return a run as far as it can be compared: of a report, of links.csv, or of traffic, on a fabric if there is one.

    Args:
        traffic: which run, and how to put it on a fabric.
        fabric: None for none.
        progress: receives each stage.
        demand: the traffic of the run; None: it is read.

    Raises:
        InputError, UsageError: as `compare_runs` does.
    """
    name = traffic.names[0]
    if traffic.chosen and demand is None and _is_result(Path(name)):
        raise UsageError(f"{traffic.chosen}: {name}: only recorded runs know the calls that bytes are of")
    if demand is None and looks_like_report(Path(name)):
        return read_report(Path(name))
    if demand is None and looks_like_links(Path(name)):
        return read_links(Path(name))
    if fabric:
        return _load_side(traffic, fabric, progress, demand)
    if demand is None:
        progress("reading the traffic")
        demand = read_traffic(name, None)
    demand = choose_demand(demand, traffic.chosen, name)
    if isinstance(demand, PortCounters):
        raise UsageError(f"{demand.origin}: port counters are compared on a fabric: give --fabric LST...")
    side = side_of_report(name, report_on_demand(demand, NOWHERE).as_json())
    return _with_pairs(side, demand) if isinstance(demand, RankTraffic) else side


def _load_side(traffic: TrafficOptions, fabric: RoutedFabric, progress: Progress, demand: Demand | None) -> ComparedRun:
    """Put a run on the fabric, with every link direction and every pair instead of those that a report names."""
    if demand is None:
        loads = load_traffic(fabric, traffic, progress)
    else:
        loads = load_demands(fabric, [demand], traffic, progress)
    report = report_on_loads(loads, NOWHERE)
    side = side_of_report(traffic.names[0], report.as_json())
    if report.links:
        side = replace(side, facts=facts_of_loads(loads, report.links))
    links = links_of_rows(loads.rows(only_used=True))
    side = replace(side, parts={**side.parts, LINK: links})
    return _with_pairs(side, loads.demand) if loads.demand else side


def _with_pairs(side: ComparedRun, demand: RankTraffic) -> ComparedRun:
    """Return a side with all pairs of ranks; a report adds up the pairs of many ranks."""
    pairs = RankPairs.of_ranks(demand.source, demand.destination, demand.bytes)
    return replace(side, parts={**side.parts, PAIR: pairs_of_demand(demand)}, facts=replace(side.facts, pairs=pairs))
