# SPDX-License-Identifier: Apache-2.0
"""Delays as documents that `--json` prints and tables are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.latency.features.delay_changes import DelayChange
from ibprof_lab.latency.features.delay_features import DelayFeatures
from ibprof_lab.latency.features.outlying_processes import OutlyingProcess
from ibprof_lab.latency.features.pair_clusters import CompressedSize, PairClusters
from ibprof_lab.latency.model.delays import Delays

Document = dict[str, Any]


def describe_delays(delays: Delays, statistic: str) -> Document:
    """Return what was measured, and the range of delays of each length."""
    cube = delays.present[statistic]
    rows = []
    missing = 0
    for length, matrix, median in zip(delays.lengths, cube, delays.median, strict=True):
        there = np.isfinite(median)
        np.fill_diagonal(there, False)
        missing += delays.processes * (delays.processes - 1) - int(there.sum())
        values = matrix[there & np.isfinite(matrix)].astype(np.float64)
        middle = float(np.median(values)) if values.size else math.nan
        rows.append(
            {
                "length": int(length),
                "measured": int(there.sum()),
                "least_s": _number(values.min() if values.size else math.nan),
                "median_s": _number(middle),
                "most_s": _number(values.max() if values.size else math.nan),
                "median_bandwidth": _number(length / middle) if middle > 0 else None,
            }
        )
    return {
        "processes": delays.processes,
        "hosts": len(set(delays.hosts)),
        "statistic": statistic,
        "statistics": list(delays.present),
        "lengths": rows,
        "missing": missing,
        "attributes": dict(delays.attributes),
    }


def describe_matrix(delays: Delays, index: int, statistic: str, as_bandwidth: bool) -> Document:
    """Return one matrix with its labels: seconds, or bytes/s."""
    matrix = delays.bandwidth()[index] if as_bandwidth else delays.present[statistic][index]
    return {
        "length": int(delays.lengths[index]),
        "unit": "bytes/s" if as_bandwidth else "s",
        "labels": list(delays.labels),
        "rows": [[_number(value) for value in row] for row in matrix],
    }


def describe_features(
    delays: Delays,
    features: DelayFeatures | None,
    clusters: PairClusters | None,
    compressed: CompressedSize | None,
    outlying: list[OutlyingProcess],
) -> Document:
    """Return peaks, steps, clusters and outlying processes."""
    document: Document = {
        "processes": delays.processes,
        "lengths": delays.lengths.tolist(),
        "pairs": delays.processes * (delays.processes - 1),
        "pairs_looked_at": 0 if features is None else len(features.pairs),
        "odd_processes": describe_outlying(outlying),
        "features": None,
        "clusters": None,
        "compressed": None,
    }
    if features is not None and len(features.pairs):
        document["features"] = _describe_found(delays, features)
    if features is not None and clusters is not None:
        document["clusters"] = _describe_clusters(delays, features, clusters)
    if compressed is not None:
        document["compressed"] = {
            "raw_bytes": compressed.raw_bytes,
            "bytes": compressed.bytes,
            "ratio": compressed.ratio,
            "median_error": compressed.median_error,
            "p95_error": compressed.p95_error,
            "max_error": compressed.max_error,
        }
    return document


def describe_outlying(outlying: list[OutlyingProcess] | tuple[OutlyingProcess, ...]) -> list[Document]:
    """Return outlying processes."""
    return [
        {"process": each.label, "role": each.role, "ratio": _number(each.ratio), "score": _number(each.score)}
        for each in outlying
    ]


def _describe_found(delays: Delays, features: DelayFeatures) -> Document:
    peaks, steps = features.peaks, features.steps
    return {
        "peak_threshold": features.peak_threshold,
        "step_threshold": features.step_threshold,
        "pairs_by_peaks": np.bincount(np.count_nonzero(peaks, axis=1)).tolist(),
        "pairs_by_steps": np.bincount(np.count_nonzero(steps, axis=1)).tolist(),
        "peaks": _by_length(delays.lengths, peaks),
        "steps": _by_length(delays.lengths[1:], steps),
    }


def _by_length(lengths: npt.NDArray[np.int64], found: npt.NDArray[np.int8]) -> list[Document]:
    up, down = ((found == sign).sum(axis=0) for sign in (1, -1))
    return [
        {"length": int(length), "up": int(rises), "down": int(falls)}
        for length, rises, falls in zip(lengths, up, down, strict=True)
        if rises or falls
    ]


def _describe_clusters(delays: Delays, features: DelayFeatures, clusters: PairClusters) -> Document:
    groups = []
    for k, centroid in enumerate(clusters.centroids):
        members = clusters.labels == k
        shares = {name: found[members] for name, found in (("peaks", features.peaks), ("steps", features.steps))}
        groups.append(
            {
                "cluster": k,
                "pairs": int(members.sum()),
                "senders": len(np.unique(features.pairs[members, 0])),
                "receivers": len(np.unique(features.pairs[members, 1])),
                "centroid_s": [float(value) for value in centroid],
                # A feature of most pairs of a cluster is the cluster's.
                "peaks": _common(delays.lengths, shares["peaks"]),
                "steps": _common(delays.lengths[1:], shares["steps"]),
            }
        )
    return {"count": len(groups), "by": clusters.by, "sse": list(clusters.sse), "groups": groups}


def _common(lengths: npt.NDArray[np.int64], found: npt.NDArray[np.int8]) -> list[int]:
    return [int(length) for length, share in zip(lengths, (found != 0).mean(axis=0), strict=True) if share >= 0.5]


def describe_change(change: DelayChange) -> Document:
    """Return the changes between two measurements."""

    def name(pairs: npt.NDArray[np.int64]) -> list[list[str]]:
        return [[change.labels[one], change.labels[other]] for one, other in pairs]

    return {
        "processes": len(change.labels),
        "lengths": change.lengths.tolist(),
        "overall_ratio": _number(change.overall),
        "changed": [
            {"sender": one, "receiver": other, "ratio": float(ratio)}
            for (one, other), ratio in zip(name(change.pairs), change.ratios, strict=True)
        ],
        "odd_processes": describe_outlying(change.outlying),
        "only_before": list(change.only_before),
        "only_after": list(change.only_after),
        "pairs_vanished": name(change.vanished),
        "pairs_appeared": name(change.appeared),
    }


def _number(value: Any) -> float | None:
    """Return a number as JSON has them: None for NaN and infinity."""
    return float(value) if math.isfinite(value) else None
