# SPDX-License-Identifier: Apache-2.0
"""Measure what the forwarding tables of fabrics leave of their speed in common patterns."""

from __future__ import annotations

from ibprof.errors import UsageError
from ibprof_converter.analysis.load_options import FabricOptions, Progress, no_progress
from ibprof_converter.analysis.routed_fabric import read_subnets
from ibprof_converter.hotspots.pattern_throughput import PatternThroughput, measure_throughput

SAMPLES = 20
"""Samples of each pattern, unless asked for others."""

_MOST_SAMPLES = 100_000


def measure_patterns(
    fabric: FabricOptions, samples: int = SAMPLES, progress: Progress = no_progress
) -> list[PatternThroughput]:
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
    results: list[PatternThroughput] = []
    for rail, subnet in enumerate(read_subnets(fabric)):
        results += measure_throughput(subnet, rail, samples, progress)
    return results
