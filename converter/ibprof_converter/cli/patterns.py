# SPDX-License-Identifier: Apache-2.0
"""`ibprof-layout --patterns`: what a fabric's tables leave of its speed in common patterns."""

from __future__ import annotations

import argparse
import json
import sys

from ibprof.errors import UsageError
from ibprof_converter.cli.inputs import read_subnets, show_stages
from ibprof_converter.cli.layout_outputs import OPTIONS
from ibprof_converter.hotspots.throughput import Throughput, measure_throughput

SAMPLES = 20

_LIMIT = 100_000


def measure_patterns(arguments: argparse.Namespace) -> None:
    """Measure the fabrics that were named.

    Raises:
        UsageError: something was asked for that is of a traffic.
        IbprofError: of any other kind.
    """
    options = (*OPTIONS, "panels", "placement", "rails", "by", "used", "counters", "check")
    if wanted := next((option for option in options if getattr(arguments, option)), None):
        raise UsageError(f"--patterns has patterns of its own: --{wanted} does not apply")
    samples = SAMPLES if arguments.samples is None else arguments.samples
    if not 1 <= samples <= _LIMIT:
        raise UsageError(f"--samples {samples}: expected a number from 1 to {_LIMIT}")
    results: list[Throughput] = []
    with show_stages() as progress:
        subnets = read_subnets(arguments.inputs, arguments)
        for rail, subnet in enumerate(subnets):
            results += measure_throughput(subnet, rail, samples, progress)
    if arguments.json:
        json.dump({"patterns": [each.as_json() for each in results]}, sys.stdout, indent=2)
        print()
        return
    print("share of its own speed that a pair of hosts gets: mean, standard deviation, worst and best sample;")
    print("behind it the same beside what the hosts' own links alone would leave (100 %: the network takes nothing)")
    for each in results:
        pair = _quadruple(each.pair_mean, each.pair_deviation, each.pair_least, each.pair_most)
        network = _quadruple(each.network_mean, each.network_deviation, each.network_least, each.network_most)
        lost = f"   {each.unrouted * 100:.1f} % of pairs are not routed" if each.unrouted else ""
        print(f"rail {each.rail}  {each.pattern:<12} {each.samples:>5} x  {pair}   {network}{lost}")


def _quadruple(mean: float, deviation: float, least: float, most: float) -> str:
    return f"{mean * 100:6.2f} % +- {deviation * 100:5.2f} ({least * 100:6.2f} to {most * 100:6.2f})"
