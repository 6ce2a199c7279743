# SPDX-License-Identifier: Apache-2.0
"""Latencies of a reference's links, fitted to all paths at the same time, and the links slower than their peers.

Medians over paths show a slow link only where most paths avoid it; of four leaf switches each uplink is on half of the
paths. Here errors are relative, and Huber's weights limit those that are grossly wrong.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags
from scipy.sparse.csgraph import dijkstra

from ibprof_lab.topology.reference.reference_paths import ReferencePaths
from ibprof_lab.topology.reference.reference_topology import Reference

Floats = npt.NDArray[np.float64]

LARGEST = 1024
"""Number of links; with more there are enough paths for medians."""

_ROUNDS = 5
_NOTHING = 1e-6
_BELIEVED = 1.5
_SURE = 4.0
_SCALED = 1.4826


def find_slow_by_fit(
    reference: Reference, paths: ReferencePaths, delays: Floats, there: npt.NDArray[np.bool_], least: float
) -> dict[int, tuple[float, float]]:
    """Find links that add more than others of the same speed and the same distance from hosts.

    Args:
        reference: the links.
        paths: of the pairs.
        delays: float64 [pair], seconds.
        there: bool [pair], which of them count.
        least: share of the shortest delay over a link that counts.

    Returns:
        link -> excess over its peers, seconds, and the ratio by which it lengthens the shortest delay over it.
    """
    links = len(reference.link)
    if links > LARGEST or not there.any():
        return {}
    matrix = csr_matrix((np.ones(len(paths.link)), paths.link, paths.offset), (len(delays), links))[there]
    latency, error = _fit(matrix, delays[there])
    excess = latency - _usual_of_like(reference, latency)
    explained = matrix @ np.nan_to_num(latency)
    shortest = np.full(links, np.inf)
    np.minimum.at(shortest, matrix.indices, np.repeat(explained, np.diff(matrix.indptr)))
    shortest -= np.nan_to_num(excess)
    slow = np.flatnonzero(excess - least * shortest - _SURE * error > 0)
    return {int(link): (float(excess[link]), 1 + float(excess[link] / shortest[link])) for link in slow}


def _fit(matrix: csr_matrix, delays: Floats) -> tuple[Floats, Floats]:
    """Return each link's latency and its standard error, float64 [link]; nan where the paths do not determine it."""
    weight = np.ones(len(delays))
    for _ in range(_ROUNDS):
        rows = diags(np.sqrt(weight) / delays) @ matrix
        value, vector = np.linalg.eigh((rows.T @ rows).toarray())
        told = value > _NOTHING * value[-1]
        base = vector[:, told]
        latency: Floats = base @ ((base.T @ (rows.T @ np.sqrt(weight))) / value[told])
        left = np.abs(1 - (matrix @ latency) / delays)
        scale = _SCALED * float(np.median(left))
        weight = np.minimum(1.0, _BELIEVED * max(scale, _NOTHING) / np.maximum(left, 1e-300))
    # Both directions of a pair may be one measurement, and each fitted latency reduces the errors.
    pairs = len(delays) / 2
    inflated = scale * np.sqrt(2 * pairs / max(pairs - np.count_nonzero(told), 1.0))
    error: Floats = inflated * np.sqrt((np.square(base) / value[told]).sum(axis=1))
    latency[np.square(vector[:, ~told]).sum(axis=1) > _NOTHING] = np.nan
    return latency, error


def _usual_of_like(reference: Reference, latency: Floats) -> Floats:
    """Return the lower median latency of peers: links of the same speed and distance from hosts; nan without peers."""
    ends = np.flatnonzero(reference.is_end)
    far = dijkstra(reference.adjacency(), directed=False, unweighted=True, indices=ends, min_only=True)
    columns = np.column_stack([np.sort(far[reference.link], axis=1), np.nan_to_num(reference.gbps)])
    _, like = np.unique(columns, axis=0, return_inverse=True)
    usual = np.full(len(latency), np.nan)
    for each in np.unique(like):
        members = np.flatnonzero((like.ravel() == each) & np.isfinite(latency))
        if len(members) > 1:
            usual[members] = np.sort(latency[members])[(len(members) - 1) // 2]
    return usual
