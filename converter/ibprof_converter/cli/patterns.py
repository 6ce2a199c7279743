# SPDX-License-Identifier: Apache-2.0
"""`ibprof-layout --patterns`: what a fabric's tables leave of its speed in common patterns."""

from __future__ import annotations

from dataclasses import dataclass

from ibprof.errors import UsageError
from ibprof_converter.analysis.load_options import FabricOptions
from ibprof_converter.analysis.routed_fabric import read_subnets
from ibprof_converter.cli.printing import print_json, show_stages
from ibprof_converter.hotspots.pattern_throughput import PatternThroughput, measure_throughput

SAMPLES = 20

_LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class PatternOptions:
    """Inputs of `ibprof-layout --patterns`, and how it prints."""

    fabric: FabricOptions
    samples: int
    as_json: bool


def measure_patterns(options: PatternOptions) -> None:
    """Measure the throughput of common patterns on fabrics, and print it.

    Raises:
        UsageError: the number of samples is out of its range.
        IbprofError: of any other kind.
    """
    if not 1 <= options.samples <= _LIMIT:
        raise UsageError(f"--samples {options.samples}: expected a number from 1 to {_LIMIT}")
    results: list[PatternThroughput] = []
    with show_stages() as progress:
        for rail, subnet in enumerate(read_subnets(options.fabric)):
            results += measure_throughput(subnet, rail, options.samples, progress)
    if options.as_json:
        print_json({"patterns": [each.as_json() for each in results]})
        return
    print("share of its own speed that a pair of hosts gets: mean, standard deviation, worst and best sample;")
    print(
        "behind it the same relative to what the hosts' own links alone would leave (100 %: the network takes nothing)"
    )
    for each in results:
        pair = _quadruple(each.pair_mean, each.pair_deviation, each.pair_least, each.pair_most)
        network = _quadruple(each.network_mean, each.network_deviation, each.network_least, each.network_most)
        lost = f"   {each.unrouted * 100:.1f} % of pairs are not routed" if each.unrouted else ""
        print(f"rail {each.rail}  {each.pattern:<12} {each.samples:>5} x  {pair}   {network}{lost}")


def _quadruple(mean: float, deviation: float, least: float, most: float) -> str:
    return f"{mean * 100:6.2f} % +- {deviation * 100:5.2f} ({least * 100:6.2f} to {most * 100:6.2f})"
