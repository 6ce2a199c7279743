# SPDX-License-Identifier: Apache-2.0
"""Clusters of pairs with similar delays, and compressed delays: each cluster's centroid, and each pair's cluster."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_converter.outputs.atomic_write import write_atomically
from ibprof_lab.lab_choices import BY, NO_CLUSTER
from ibprof_lab.latency.features.delay_features import DelayFeatures
from ibprof_lab.latency.model.delays import Delays

MOST = 12
"""Largest number of clusters that `find_elbow` can choose."""

_SAMPLE = 50_000
"""Largest number of profiles for fitting the centres; the other profiles are only assigned to the nearest centre."""

_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class PairClusters:
    """K groups of pairs.

    Attributes:
        labels: cluster of each pair of `DelayFeatures.pairs`, uint8 [P]; cluster 0 has the lowest delays.
        centroids: median delay of each cluster's pairs at each length, seconds, float32 [K, L].
        sse: for 1, 2, ... clusters, the sum of squared distances of the clustered values from their centres.
        by: clustered quantity, an element of `BY`.
    """

    labels: npt.NDArray[np.uint8]
    centroids: npt.NDArray[np.float32]
    sse: tuple[float, ...]
    by: str


@dataclass(frozen=True, slots=True)
class CompressedSize:
    """Size and errors of compressed delays.

    Attributes:
        raw_bytes: size of the matrices as float32.
        bytes: size of the file.
        median_error, p95_error, max_error: relative errors of the delays.
    """

    raw_bytes: int
    bytes: int
    median_error: float
    p95_error: float
    max_error: float

    @property
    def ratio(self) -> float:
        """Raw size / file size."""
        return self.raw_bytes / self.bytes


def cluster_pairs(features: DelayFeatures, count: int | None = None, by: str = BY[0], seed: int = 0) -> PairClusters:
    """Group pairs by K-Means.

    Args:
        features: features of at least one pair.
        count: number of clusters, up to 255; None to choose it by the elbow of the SSE.
        by: clustered quantity, from `BY`. The logarithms of delays are clustered, so that relative differences count.
    """
    points = _points(features, by)
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(points), _SAMPLE, replace=False) if len(points) > _SAMPLE else np.arange(len(points))
    sample = points[chosen]
    distinct = len(np.unique(sample, axis=0))
    sse = [float(((sample - sample.mean(axis=0)) ** 2).sum())]
    models = {}
    for k in [*range(2, min(MOST, distinct) + 1), *([min(count, distinct)] if count else [])]:
        if k not in models and k > 1:
            models[k] = _fit(sample, k, seed)
            if k == len(sse) + 1:
                sse.append(float(models[k].inertia_))
    best = min(count, distinct) if count else find_elbow(sse)
    labels = np.zeros(len(points), np.uint8)
    if best > 1:
        for start in range(0, len(points), _BLOCK):
            labels[start : start + _BLOCK] = models[best].predict(points[start : start + _BLOCK])
    return _in_order(features, labels, best, tuple(sse), by)


def find_elbow(sse: list[float]) -> int:
    """Return the number of clusters at the elbow of the curve `sse`, where the curve lies farthest below its chord."""
    if len(sse) < 3 or sse[0] <= 0:
        # A second cluster must remove more than half of the SSE.
        return 2 if len(sse) == 2 and sse[1] < 0.5 * sse[0] else 1
    y = np.array(sse) / sse[0]
    x = np.linspace(0, 1, len(y))
    below = y[0] + (y[-1] - y[0]) * x - y
    # If the data are noise, more clusters reduce the SSE slowly, and the curve has no elbow.
    return int(np.argmax(below)) + 1 if below.max() > 0.1 else 1


def _points(features: DelayFeatures, by: str) -> npt.NDArray[np.float32]:
    if by == "correlations":
        return np.hstack((features.peak_correlations, features.step_correlations))
    floor = np.min(features.profiles[features.profiles > 0], initial=np.float32(1e-9))
    return np.log(np.maximum(features.profiles, floor))


def _fit(sample: npt.NDArray[np.float32], k: int, seed: int) -> Any:
    from sklearn.cluster import KMeans  # noqa: PLC0415  (slow to import)
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  (of an optional library)

    # Use one thread: waiting threads of K-Means spin, which is slow on a busy machine.
    with threadpool_limits(1):
        return KMeans(k, n_init=4, random_state=seed).fit(sample)


def _in_order(
    features: DelayFeatures, labels: npt.NDArray[np.uint8], count: int, sse: tuple[float, ...], by: str
) -> PairClusters:
    there = [k for k in range(count) if (labels == k).any()]
    centroids = [np.median(features.profiles[labels == k], axis=0) for k in there]
    order = sorted(range(len(there)), key=lambda place: float(centroids[place].mean()))
    renamed = np.zeros(256, np.uint8)
    for new, place in enumerate(order):
        renamed[there[place]] = new
    return PairClusters(renamed[labels], np.array([centroids[place] for place in order], np.float32), sse, by)


def write_compressed(path: Path, delays: Delays, features: DelayFeatures, clusters: PairClusters) -> CompressedSize:
    """Write centroids and labels as .npz, which `read_delays` can read; return the size and the errors.

    Raises:
        OSError: the file cannot be written.
    """
    labels = np.full((delays.processes, delays.processes), NO_CLUSTER, np.uint8)
    labels[tuple(features.pairs.T)] = clusters.labels
    content = io.BytesIO()
    np.savez_compressed(
        content,
        hosts=np.array(delays.hosts),
        lengths=delays.lengths,
        centroids=clusters.centroids,
        labels=labels,
    )
    write_atomically(path, content.getvalue())
    kept = clusters.centroids[clusters.labels]
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(kept - features.profiles) / features.profiles
    error = error[np.isfinite(error)]
    median, p95, most = np.percentile(error, (50, 95, 100)) if error.size else (0.0, 0.0, 0.0)
    return CompressedSize(delays.median.nbytes, content.tell(), float(median), float(p95), float(most))
