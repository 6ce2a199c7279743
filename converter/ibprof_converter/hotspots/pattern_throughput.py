# SPDX-License-Identifier: Apache-2.0
"""Compute the throughput of patterns: (speed of a pair if all pairs send at once) / (speed of the pair alone).

The speed of a link is divided evenly among the pairs whose routes pass the link. A pair's speed is the smallest speed
that the pair has on any link of its route. The pair's share is this speed / the speed if only this pair sends.
The effective bisection bandwidth is the mean share over all pairs of random bisections.

Source: T. Hoefler, T. Schneider, A. Lumsdaine, "Multistage Switches are not Crossbars: Effects of Static Routing in
High-Performance Networks", Cluster 2008. The authors' simulator ORCS computes the same shares for links of equal speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_converter.routing.spread import spread, spread_matrix
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.patterns import build_pattern, shuffle
from ibprof_converter.traffic.traffic_data import RankTraffic

SEEDED = ("bisect", "2dnn", "2dnndiag", "3dnn", "3dnndiag", "random50", "randn50", "permutation")
ALL_TO_ALL = "all-to-all"
SHIFT = "shift"

_STATISTICS: dict[str, Callable[[npt.NDArray[np.float64]], np.floating]] = {
    "mean": np.mean,
    "deviation": np.std,
    "least": np.min,
    "most": np.max,
}

_PAIRS = 1 << 21
"""Largest number of pairs whose routes are in memory at the same time."""


@dataclass(frozen=True, slots=True)
class PatternThroughput:
    """Throughput of one pattern on one rail.

    Attributes:
        samples: number of samples; each sample has another seed or, for shifts, another distance.
        pair_mean: mean of the pairs' shares over all pairs and samples, 0 to 1 (the measure of ORCS). A host with
            several partners divides the speed of its link.
        pair_deviation, pair_least, pair_most: standard deviation, minimum and maximum of the samples' means.
        network_mean: mean of (a pair's share / the share that host links alone would allow). The ratio is 1
            if no link between switches limits the pair.
        network_deviation, network_least, network_most: standard deviation, minimum and maximum of the samples' mean
            ratios.
        unrouted: share of pairs without a route; these pairs count as 0.
    """

    rail: int
    pattern: str
    samples: int
    pair_mean: float
    pair_deviation: float
    pair_least: float
    pair_most: float
    network_mean: float
    network_deviation: float
    network_least: float
    network_most: float
    unrouted: float

    def as_json(self) -> dict[str, object]:
        """Return the throughput as a JSON object."""
        return asdict(self)


def measure_throughput(
    subnet: Subnet, rail: int, samples: int, progress: Callable[[str], None] = lambda _: None
) -> list[PatternThroughput]:
    """Compute the throughput of each pattern over the adapters of all hosts of a rail.

    Args:
        samples: number of samples of each pattern that has a seed (0, 1, 2, ...) or a distance.
        progress: function that is called with the name of each pattern before its computation.

    Raises:
        UsageError: there are fewer than two hosts.
    """
    lid = find_hosts([subnet.fabric]).ends[:, 0]
    if len(lid) < 2:
        raise UsageError(f"{subnet.fabric.name}: a pattern needs two hosts that can send; the fabric has {len(lid)}")
    results = []
    for name in (ALL_TO_ALL, *SEEDED, SHIFT):
        progress(name)
        if name == ALL_TO_ALL:
            wanted = [name]
        elif name == SHIFT:
            wanted = [f"{name}:{1 + distance}" for distance in shuffle(len(lid) - 1, 0)[:samples].tolist()]
        else:
            wanted = [f"{name}:{seed}" for seed in range(samples)]
        shares = np.array([_share(subnet, lid, build_pattern(f"pattern:{each}", len(lid))) for each in wanted])
        pair, network, unrouted = shares.T
        results.append(
            PatternThroughput(
                rail=rail,
                pattern=name,
                samples=len(wanted),
                **{
                    f"{kind}_{what}": float(function(values))
                    for kind, values in (("pair", pair), ("network", network))
                    for what, function in _STATISTICS.items()
                },
                unrouted=float(unrouted.mean()),
            )
        )
    return results


def _share(subnet: Subnet, lid: npt.NDArray[np.int32], demand: RankTraffic) -> tuple[float, float, float]:
    """Return `pair_mean`, `network_mean` and `unrouted` of one sample, as in `PatternThroughput`."""
    source, destination = lid[demand.source], lid[demand.destination]
    meeting = _count_meeting(subnet, lid, source, destination)
    fabric = subnet.fabric
    gbps = np.repeat(np.nan_to_num(fabric.link_gbps, nan=float(np.nanmax(fabric.link_gbps, initial=1.0))), 2)
    with np.errstate(divide="ignore"):
        share = np.where(meeting > 0, gbps / meeting, np.inf)
    pair = network = lost = 0.0
    for begin in range(0, len(source), _PAIRS):
        here = slice(begin, begin + _PAIRS)
        paths = subnet.routes.find_paths(source[here], destination[here])
        arrives = np.flatnonzero(np.diff(paths.offset) > 0)
        lost += len(source[here]) - len(arrives)
        first, last = paths.offset[arrives], paths.offset[arrives + 1] - 1
        least = np.minimum.reduceat(share[paths.end], first) if len(arrives) else np.zeros(0)
        alone = np.minimum.reduceat(gbps[paths.end], first) if len(arrives) else np.zeros(0)
        own = np.minimum(share[paths.end[first]], share[paths.end[last]])
        pair += float((least / alone).sum())
        network += float((least / np.minimum(own, alone)).sum())
    return pair / len(source), network / len(source), lost / len(source)


def _count_meeting(
    subnet: Subnet,
    lid: npt.NDArray[np.int32],
    source: npt.NDArray[np.int32],
    destination: npt.NDArray[np.int32],
) -> npt.NDArray[np.float64]:
    """Count the pairs whose routes pass each link direction: float64 [2 * link + end]."""
    if len(source) == len(lid) * (len(lid) - 1):  # an all-to-all needs no list of pairs
        one = np.broadcast_to(np.uint64(1), (len(lid), len(lid)))
        loads = spread_matrix(subnet.routes, lid, lid, one)
    else:
        group = np.zeros(len(source), np.uint32)
        loads = spread(subnet.routes, source, destination, np.ones(len(source), np.uint64), group, 1)
    return loads.bytes.reshape(-1).astype(np.float64)


def describe_patterns(results: Iterable[PatternThroughput]) -> Iterator[str]:
    """Yield two lines that explain the values, then one line per pattern and rail."""
    yield "N x: samples; first %: throughput of a pair / speed of its links: mean +- standard deviation (range)"
    yield "second %: throughput / its limit by the hosts' own links (100%: no other link limits the pairs)"
    for each in results:
        pair = _quadruple(each.pair_mean, each.pair_deviation, each.pair_least, each.pair_most)
        network = _quadruple(each.network_mean, each.network_deviation, each.network_least, each.network_most)
        lost = f"   {each.unrouted * 100:.1f}% of pairs are not routed" if each.unrouted else ""
        yield f"rail {each.rail}  {each.pattern:<12} {each.samples:>5} x  {pair}   {network}{lost}"


def _quadruple(mean: float, deviation: float, least: float, most: float) -> str:
    return f"{mean * 100:6.2f}% +- {deviation * 100:5.2f} ({least * 100:6.2f} to {most * 100:6.2f})"
