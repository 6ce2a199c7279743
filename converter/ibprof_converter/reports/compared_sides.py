# SPDX-License-Identifier: Apache-2.0
"""Read the two sides of a comparison, each from whatever holds a run, and compare them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ibprof.errors import UsageError
from ibprof_converter.analysis.load_options import FabricOptions, Progress, TrafficOptions, no_progress
from ibprof_converter.analysis.load_pipeline import load_traffic
from ibprof_converter.analysis.routed_fabric import RoutedFabric, read_routed_fabric
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
from ibprof_converter.reports.fail_conditions import FailCondition
from ibprof_converter.reports.job_report import report_on_demand, report_on_loads
from ibprof_converter.reports.provenance import NOWHERE, describe_provenance
from ibprof_converter.reports.run_comparison import RunComparison, compare
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


def compare_runs(
    options: DiffOptions,
    command: str = "",
    progress: Progress = no_progress,
    fabric: RoutedFabric | None = None,
) -> RunComparison:
    """Read two runs and compare them.

    Args:
        options: which runs, and thresholds.
        command: that made the comparison, as it was typed.
        progress: receives each stage.
        fabric: to put both runs on, in place of the one of the options.

    Raises:
        InputError: a file is not what it should be.
        UsageError: options or thresholds do not fit the runs.
    """
    sides = (options.a, options.b)
    if fabric is None and options.fabric and not all(_is_result(Path(side.names[0])) for side in sides):
        fabric = read_routed_fabric(options.fabric, progress)
    a, b = (read_side(side, fabric, progress) for side in sides)
    # Reading may collect a recording into a profile, whose hash belongs to the provenance.
    return compare(a, b, options.conditions, describe_provenance(command, options.files()))


def _is_result(path: Path) -> bool:
    """Return whether a file holds loads already, so that no fabric is needed."""
    return looks_like_report(path) or looks_like_links(path)


def read_side(traffic: TrafficOptions, fabric: RoutedFabric | None, progress: Progress = no_progress) -> ComparedRun:
    """Return a run as far as it can be compared: of a report, of links.csv, or of traffic, on a fabric if there is one.

    Raises:
        InputError, UsageError: as `compare_runs` does.
    """
    name = traffic.names[0]
    if looks_like_report(Path(name)):
        return read_report(Path(name))
    if looks_like_links(Path(name)):
        return read_links(Path(name))
    if fabric:
        return _load_side(traffic, fabric, progress)
    progress("reading the traffic")
    demand = read_traffic(name, None)
    if isinstance(demand, PortCounters):
        raise UsageError(f"{demand.origin}: port counters are compared on a fabric: give --fabric LST...")
    side = replace(side_of_report(name, report_on_demand(demand, NOWHERE).as_json()), notes=())
    return _with_pairs(side, demand) if isinstance(demand, RankTraffic) else side


def _load_side(traffic: TrafficOptions, fabric: RoutedFabric, progress: Progress) -> ComparedRun:
    """Put a run on the fabric, with every link direction and every pair instead of those that a report names."""
    loads = load_traffic(fabric, traffic, progress)
    side = side_of_report(traffic.names[0], report_on_loads(loads, NOWHERE, top=0).as_json())
    links = links_of_rows(loads.rows(only_used=True))
    side = replace(side, parts={**side.parts, LINK: links}, notes=loads.coverage.notes)
    return _with_pairs(side, loads.demand) if loads.demand else side


def _with_pairs(side: ComparedRun, demand: RankTraffic) -> ComparedRun:
    return replace(side, parts={**side.parts, PAIR: pairs_of_demand(demand)})
