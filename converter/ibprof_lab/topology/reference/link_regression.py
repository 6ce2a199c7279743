# SPDX-License-Identifier: Apache-2.0
"""Latencies of all links at the same time, from delays along their paths: Bufe's linear regression.

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
from ibprof_lab.topology.reference.reference_paths import ReferencePaths
from ibprof_lab.topology.reference.reference_topology import Reference

Floats = npt.NDArray[np.float64]

NONE, MINIMUM, STORE_AND_FORWARD = "none", "minimum", "store-and-forward"
CORRECTIONS = (NONE, MINIMUM, STORE_AND_FORWARD)

LARGEST_WITH_CYCLES = 1024
_BITS = 8
_GIGA = 1e9
_NOTHING = 1e-6


@dataclass(frozen=True, slots=True)
class LinkRegression:
    """Latencies of links.

    Attributes:
        latency_seconds: float64 [link]; nan where the paths do not determine it, or only together with others.
        r_squared: coefficient of determination: 1 where the links explain all delays; nan where all are equal. It rises
            with the number of links.
        paths: number of equations.
        corrected: of `CORRECTIONS`.
    """

    latency_seconds: Floats
    r_squared: float
    paths: int
    corrected: str


def correct_for_size(paths: ReferencePaths, delays: Floats, gbps: Floats, length: int, how: str) -> Floats:
    """Subtract the time that the bytes of a message take, so that latencies remain.

    Args:
        paths: of the pairs.
        delays: float64 [pair], seconds.
        gbps: float64 [link], throughput of one direction in Gb/s; links with an unknown one do not limit.
        length: bytes of the messages.
        how: `MINIMUM`, the time on the slowest link of the path; `STORE_AND_FORWARD`, the sum over the links of the
            path; `NONE`.

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
        np.maximum.at(taken, paths.pair, seconds[paths.link])
    else:
        np.add.at(taken, paths.pair, seconds[paths.link])
    return delays - taken


def regress(paths: ReferencePaths, delays: Floats, links: int, corrected: str = NONE) -> LinkRegression:
    """Fit the links' latencies by ordinary least squares: their sums along the paths approximate the delays.

    Args:
        paths: of the pairs.
        delays: float64 [pair], seconds.
        links: number of links.
        corrected: how the delays were corrected, for the record.
    """
    used = (paths.hops > 0) & np.isfinite(delays)
    matrix = csr_matrix((np.ones(len(paths.link)), paths.link, paths.offset), (len(delays), links))[used]
    target = delays[used]
    if not len(target):
        return LinkRegression(np.full(links, nan), nan, 0, corrected)
    gram = (matrix.T @ matrix).toarray()
    value, vector = np.linalg.eigh(gram)
    determined = value > _NOTHING * value[-1]
    base = vector[:, determined]
    latency: Floats = base @ ((base.T @ (matrix.T @ target)) / value[determined])
    # What can change without changing a sum is not determined: it lies in the null space.
    hidden = np.square(vector[:, ~determined]).sum(axis=1) > _NOTHING
    left = target - matrix @ latency
    spread = float(np.square(target - target.mean()).sum())
    r_squared = 1 - float(np.square(left).sum()) / spread if spread > 0 else nan
    latency[hidden] = nan
    return LinkRegression(latency, r_squared, len(target), corrected)


def keep_unique(
    reference: Reference, paths: ReferencePaths, source: npt.NDArray[np.int64], epsilon: float
) -> ReferencePaths:
    """Leave out paths where another one has roughly the same length.

    Args:
        reference: without tables; in a tree each path is unique.
        paths: shortest ones.
        source: int64 [pair], vertices from which they start.
        epsilon: relative difference of lengths that distinguishes paths.

    Raises:
        UsageError: the graph has cycles, and is too large to search for other paths.
    """
    if reference.routes is not None or len(reference.link) < reference.vertices:
        return paths
    if reference.vertices > LARGEST_WITH_CYCLES:
        raise UsageError(
            f"{reference.origin}: expected at most {LARGEST_WITH_CYCLES} vertices with cycles to search for other "
            f"paths of the same length, found {reference.vertices}; --paths shortest needs no search"
        )
    between = shortest_path(reference.adjacency(weighted=True), directed=False)
    a, b = reference.link.T
    length = between[a, b]
    ends = _last_vertices(reference, paths, source)
    kept = np.zeros(len(ends), bool)
    for start in np.unique(source).tolist():
        of_start = np.flatnonzero((source == start) & (paths.hops > 0))
        to = between[ends[of_start]]
        on_way = np.minimum(between[start, a] + to[:, b], between[start, b] + to[:, a]) + length
        near = on_way <= (1 + epsilon) * between[start, ends[of_start]][:, None]
        kept[of_start] = near.sum(axis=1) == paths.hops[of_start]
    hops = np.where(kept, paths.hops, 0)
    return ReferencePaths(np.concatenate([[0], np.cumsum(hops)]), paths.link[kept[paths.pair]])


def _last_vertices(reference: Reference, paths: ReferencePaths, source: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    here = source.copy()
    for hop in range(int(paths.hops.max(initial=0))):
        on = np.flatnonzero(paths.hops > hop)
        a, b = reference.link[paths.link[paths.offset[on] + hop]].T
        here[on] = np.where(a == here[on], b, a)
    return here
