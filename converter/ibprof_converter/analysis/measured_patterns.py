# SPDX-License-Identifier: Apache-2.0
"""Measure what the forwarding tables of fabrics leave of their speed in common patterns."""

from __future__ import annotations

from dataclasses import dataclass

from ibprof.errors import UsageError
from ibprof_converter.analysis.load_options import FabricOptions, Progress, no_progress
from ibprof_converter.analysis.load_pipeline import read_subnets
from ibprof_converter.hotspots.pattern_throughput import PatternThroughput, describe_patterns, measure_throughput
from ibprof_converter.routing.route_choice import describe_routes, name_routes
from ibprof_converter.routing.subnet import Subnet

SAMPLES = 20
"""Samples of each pattern, unless asked for others."""

_MOST_SAMPLES = 100_000


@dataclass(frozen=True, slots=True)
class MeasuredPatterns:
    """Throughput of common patterns.

    Attributes:
        subnets: the rails.
        patterns: of each rail in turn.
    """

    subnets: tuple[Subnet, ...]
    patterns: tuple[PatternThroughput, ...]

    def as_json(self) -> dict[str, object]:
        """Return it as plain values."""
        return {"routes": name_routes(self.subnets), "patterns": [each.as_json() for each in self.patterns]}

    def describe(self) -> list[str]:
        """Return it in lines, first what the routes are where they are not those of tables."""
        return [*filter(None, [describe_routes(self.subnets)]), *describe_patterns(self.patterns)]


def measure_patterns(
    fabric: FabricOptions, samples: int = SAMPLES, progress: Progress = no_progress
) -> MeasuredPatterns:
    """Return the throughput of each pattern on each rail.

    Args:
        fabric: the rails.
        samples: of each pattern.
        progress: receives each stage.

    Raises:
        UsageError: the number of samples is out of its range, or there are fewer than two hosts.
        IbprofError: as `read_subnets` does.
    """
    if not 1 <= samples <= _MOST_SAMPLES:
        raise UsageError(f"--samples {samples}: expected a number from 1 to {_MOST_SAMPLES}")
    subnets = read_subnets(fabric)
    results: list[PatternThroughput] = []
    for rail, subnet in enumerate(subnets):
        results += measure_throughput(subnet, rail, samples, progress)
    return MeasuredPatterns(subnets, tuple(results))
