# SPDX-License-Identifier: Apache-2.0
"""Latencies of all links at once, from delays along their ways: Bufe's linear regression.

Source: A. Bufe (see `bufe`), section 2.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from ibprof.errors import UsageError
from ibprof_converter.topology.reference.reference_paths import ReferencePaths
from ibprof_converter.topology.reference.reference_topology import Reference

Floats = npt.NDArray[np.float64]

NONE, MINIMUM, STORE_AND_FORWARD = "none", "minimum", "store-and-forward"
CORRECTIONS = (NONE, MINIMUM, STORE_AND_FORWARD)

LARGEST_WITH_CYCLES = 1024
_BITS = 8
_GIGA = 1e9
_NOTHING = 1e-6


@dataclass(frozen=True, slots=True)
class LinkRegression:
    """What the links add to a delay.

    Attributes:
        latency_seconds: float64 [link]; nan where the ways do not tell it, alone or apart from others.
        r_squared: coefficient of determination: 1 where the links explain all delays; nan where all are equal. The more
            links there are, the higher it is.
        paths: number of equations.
        corrected: of `CORRECTIONS`.
    """

    latency_seconds: Floats
    r_squared: float
    paths: int
    corrected: str


def correct_for_size(ways: ReferencePaths, delays: Floats, gbps: Floats, length: int, how: str) -> Floats:
    """Take the time off that the bytes of a message take, so that latencies are left.

    Args:
        ways: of the pairs.
        delays: float64 [pair], seconds.
        gbps: float64 [link], throughput of one direction in Gb/s; links of which nobody knows it are no limit.
        length: bytes of the messages.
        how: `MINIMUM`, the slowest link of the way, which all bytes pass at its pace; `STORE_AND_FORWARD`, each link
            of the way takes its time one after another; `NONE`.

    Raises:
        UsageError: no throughput is known.
    """
    if how == NONE:
        return delays
    known = gbps > 0
    if not known.any():
        raise UsageError(f"--correct {how}: no link's throughput is known; give --gbps, or measure it")
    seconds = np.zeros(len(gbps))
    seconds[known] = length * _BITS / (gbps[known] * _GIGA)
    taken = np.zeros(len(delays))
    if how == MINIMUM:
        np.maximum.at(taken, ways.pair, seconds[ways.link])
    else:
        np.add.at(taken, ways.pair, seconds[ways.link])
    return delays - taken


def regress(ways: ReferencePaths, delays: Floats, links: int, corrected: str = NONE) -> LinkRegression:
    """Find the links' latencies by ordinary least squares: the sums along the ways come nearest to the delays.

    Args:
        ways: of the pairs.
        delays: float64 [pair], seconds.
        links: how many there are.
        corrected: how the delays were, for the record.
    """
    used = (ways.hops > 0) & np.isfinite(delays)
    matrix = csr_matrix((np.ones(len(ways.link)), ways.link, ways.offset), (len(delays), links))[used]
    target = delays[used]
    if not len(target):
        return LinkRegression(np.full(links, nan), nan, 0, corrected)
    gram = (matrix.T @ matrix).toarray()
    value, vector = np.linalg.eigh(gram)
    told = value > _NOTHING * value[-1]
    base = vector[:, told]
    latency: Floats = base @ ((base.T @ (matrix.T @ target)) / value[told])
    # What can change without any sum changing is not told: it lies in the null space.
    hidden = np.square(vector[:, ~told]).sum(axis=1) > _NOTHING
    left = target - matrix @ latency
    spread = float(np.square(target - target.mean()).sum())
    r_squared = 1 - float(np.square(left).sum()) / spread if spread > 0 else nan
    latency[hidden] = nan
    return LinkRegression(latency, r_squared, len(target), corrected)


def keep_unique(
    reference: Reference, ways: ReferencePaths, source: npt.NDArray[np.int64], epsilon: float
) -> ReferencePaths:
    """Leave the ways out beside which there is another one of roughly the same length.

    Args:
        reference: without tables; in a tree each way is the only one.
        ways: shortest ones.
        source: int64 [pair], vertices from which they start.
        epsilon: relative difference of lengths that tells ways apart.

    Raises:
        UsageError: the graph has circles, and is too large to look for other ways.
    """
    if reference.routes is not None or len(reference.link) < reference.vertices:
        return ways
    if reference.vertices > LARGEST_WITH_CYCLES:
        raise UsageError(
            f"{reference.origin}: {reference.vertices} vertices with circles, and other ways of the same length are "
            f"looked for among up to {LARGEST_WITH_CYCLES}; --paths shortest does without"
        )
    between = shortest_path(reference.adjacency(weighted=True), directed=False)
    a, b = reference.link.T
    length = between[a, b]
    ends = _last_vertices(reference, ways, source)
    kept = np.zeros(len(ends), bool)
    for start in np.unique(source).tolist():
        of_start = np.flatnonzero((source == start) & (ways.hops > 0))
        to = between[ends[of_start]]
        on_way = np.minimum(between[start, a] + to[:, b], between[start, b] + to[:, a]) + length
        near = on_way <= (1 + epsilon) * between[start, ends[of_start]][:, None]
        kept[of_start] = near.sum(axis=1) == ways.hops[of_start]
    hops = np.where(kept, ways.hops, 0)
    return ReferencePaths(np.concatenate([[0], np.cumsum(hops)]), ways.link[kept[ways.pair]])


def _last_vertices(reference: Reference, ways: ReferencePaths, source: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    here = source.copy()
    for hop in range(int(ways.hops.max(initial=0))):
        on = np.flatnonzero(ways.hops > hop)
        a, b = reference.link[ways.link[ways.offset[on] + hop]].T
        here[on] = np.where(a == here[on], b, a)
    return here
