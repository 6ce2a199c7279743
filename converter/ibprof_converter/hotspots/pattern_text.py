# SPDX-License-Identifier: Apache-2.0
"""The throughput of common patterns in lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ibprof_converter.hotspots.pattern_throughput import PatternThroughput


def describe_patterns(results: Iterable[PatternThroughput]) -> Iterator[str]:
    """Yield two lines on what is measured, then a line for each pattern and rail."""
    yield "share of its own speed that a pair of hosts gets: mean, standard deviation, worst and best sample;"
    yield (
        "behind it the same relative to what the hosts' own links alone would leave (100%: the network takes nothing)"
    )
    for each in results:
        pair = _quadruple(each.pair_mean, each.pair_deviation, each.pair_least, each.pair_most)
        network = _quadruple(each.network_mean, each.network_deviation, each.network_least, each.network_most)
        lost = f"   {each.unrouted * 100:.1f}% of pairs are not routed" if each.unrouted else ""
        yield f"rail {each.rail}  {each.pattern:<12} {each.samples:>5} x  {pair}   {network}{lost}"


def _quadruple(mean: float, deviation: float, least: float, most: float) -> str:
    return f"{mean * 100:6.2f}% +- {deviation * 100:5.2f} ({least * 100:6.2f} to {most * 100:6.2f})"
