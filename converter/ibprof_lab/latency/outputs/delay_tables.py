# SPDX-License-Identifier: Apache-2.0
"""Delays as JSON documents (for `--json`), and tables printed from these documents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.table import Table

from ibprof.text.quantities import count_of, format_bytes, printable
from ibprof_lab.latency.features.delay_features import DelayFeatures
from ibprof_lab.latency.features.outliers import DelayChange, OutlyingProcess
from ibprof_lab.latency.features.pair_clusters import CompressedSize, PairClusters
from ibprof_lab.latency.model.delays import Delays

_MOST_ROWS = 20

MOST_SHOWN = 16
"""Largest number of processes whose matrix is printed."""

Document = dict[str, Any]


def show_delays(console: Console, document: Document) -> None:
    """Print the range of delays of each message length."""
    known = document["attributes"]
    what = f"{count_of(document['processes'], 'process')} on {count_of(document['hosts'], 'host')}"
    console.print(", ".join([what, *(printable(str(known[name])) for name in ("mpi", "mode", "schedule", "started")
                                     if name in known)]))  # fmt: skip
    if known.get("complete") == 0 or document["missing"]:
        number = document["missing"]
        console.print(f"not complete: {count_of(number, 'delay')} {'is' if number == 1 else 'are'} missing")
    table = new_table(
        "bytes", "measured", "minimum", f"{document['statistic'].replace('_', ' ')} of pairs", "maximum", "bandwidth"
    )
    rows, half = document["lengths"], _MOST_ROWS // 2
    for row in rows if len(rows) <= _MOST_ROWS else [*rows[:half], None, *rows[-half:]]:
        if row is None:
            table.add_row("...")
            continue
        rate, delays = row["median_bandwidth"], (row[name] for name in ("least_s", "median_s", "most_s"))
        table.add_row(
            f"{row['length']:,}",
            f"{row['measured']:,}",
            *("-" if each is None else f"{1e6 * each:.4g} µs" for each in delays),
            "" if not rate else f"{format_bytes(rate)}/s",
        )
    console.print(table)
    if "matrix" in document:
        _show_matrix(console, document["matrix"])


def _show_matrix(console: Console, matrix: Document) -> None:
    size = len(matrix["labels"])
    if size > MOST_SHOWN:
        console.print(f"matrix of {size:,} processes: draw it with --figure, write it with --json or convert")
        return
    rate = matrix["unit"] != "s"
    console.print(f"\n{matrix['length']:,} bytes, {'MB/s' if rate else 'µs'}, from row to column:")
    table = new_table("", *(printable(label) for label in matrix["labels"]))
    for label, row in zip(matrix["labels"], matrix["rows"], strict=True):
        cells = (value if value is None else value * (1e-6 if rate else 1e6) for value in row)
        table.add_row(printable(label), *("-" if value is None else f"{value:.4g}" for value in cells))
    console.print(table)


def show_features(console: Console, document: Document) -> None:
    """Print peaks, steps, clusters and outlying processes."""
    examined = document["pairs_looked_at"]
    found = document["features"]
    if found is not None:
        count = len(document["lengths"])
        console.print(f"{examined:,} of {document['pairs']:,} pairs are measured at all {count} lengths")
    if found is None:
        console.print(
            "peaks and steps: unknown; measure 4 or more message lengths, and at least one pair with all lengths"
        )
    else:
        for name in ("peak", "step"):
            by_count = ", ".join(f"{pairs:,} with {count}" for count, pairs in enumerate(found[f"pairs_by_{name}s"]))
            console.print(
                f"pairs by number of {name}s: {by_count} (correlation threshold: {found[f'{name}_threshold']:.2f})"
            )
        _show_by_length(console, found)
    if document["clusters"] is not None:
        _show_clusters(console, document)
    show_outlying(console, document["odd_processes"])


def _show_by_length(console: Console, found: Document) -> None:
    steps = sorted(found["steps"], key=lambda each: -each["up"] - each["down"])[:_MOST_ROWS]
    table = new_table("steps at bytes", "pairs up", "pairs down")
    for each in sorted(steps, key=lambda each: each["length"]):
        table.add_row(f"{each['length']:,}", f"{each['up']:,}", f"{each['down']:,}")
    if steps:
        console.print(table)


def _show_clusters(console: Console, document: Document) -> None:
    clusters = document["clusters"]
    first, last = document["lengths"][0], document["lengths"][-1]
    table = new_table("cluster", "pairs", "senders", "receivers", f"µs at {first:,}", f"µs at {last:,}", "steps at")
    for group in clusters["groups"]:
        centroid = group["centroid_s"]
        steps = ", ".join(f"{length:,}" for length in group["steps"][:6]) or "-"
        numbers = (f"{group[name]:,}" for name in ("pairs", "senders", "receivers"))
        ends = (f"{1e6 * seconds:.4g}" for seconds in (centroid[0], centroid[-1]))
        table.add_row(str(group["cluster"]), *numbers, *ends, steps)
    console.print(table)
    small = document["compressed"]
    if small is not None:
        console.print(
            f"compressed: {format_bytes(small['bytes'])}, {small['ratio']:.1f} times smaller than the matrices; "
            f"error of a delay {100 * small['median_error']:.2g}% (median), "
            f"{100 * small['p95_error']:.2g}% (95th percentile), {100 * small['max_error']:.2g}% (largest)"
        )


def show_outlying(console: Console, outlying: list[Document]) -> None:
    """Print the outlying processes."""
    if not outlying:
        console.print("no process stands out")
        return
    table = new_table("stands out", "as", "delays / others' delays")
    for each in outlying[:_MOST_ROWS]:
        ratio = "not measured" if each["ratio"] is None else f"{each['ratio']:.3g} times"
        role = {"both": "sender and receiver"}.get(each["role"], each["role"])
        table.add_row(printable(each["process"]), role, ratio)
    console.print(table)
    if len(outlying) > _MOST_ROWS:
        console.print(f"and {len(outlying) - _MOST_ROWS:,} more")


def show_change(console: Console, document: Document) -> None:
    """Print the pairs that changed between two measurements."""
    console.print(
        f"both measurements have {count_of(document['processes'], 'process')} and "
        f"{count_of(len(document['lengths']), 'message length')}; "
        f"delays are {_times(document['overall_ratio'])} as long as before, median over pairs"
    )
    for key, text in (("only_before", "only before"), ("only_after", "only after")):
        if document[key]:
            console.print(f"{text}: {printable(', '.join(document[key][:_MOST_ROWS]))}")
    for key, text in (("pairs_vanished", "no longer measured"), ("pairs_appeared", "newly measured")):
        if document[key]:
            console.print(f"{text}: {count_of(len(document[key]), 'pair')}")
    changed = document["changed"]
    if not changed:
        console.print("no pair changed")
    else:
        table = new_table("changed", "to", "now / before")
        for each in changed[:_MOST_ROWS]:
            table.add_row(printable(each["sender"]), printable(each["receiver"]), _times(each["ratio"]))
        console.print(table)
        if len(changed) > _MOST_ROWS:
            console.print(f"and {count_of(len(changed) - _MOST_ROWS, 'more pair')}")
    if document["odd_processes"]:
        show_outlying(console, document["odd_processes"])


def new_table(*columns: str) -> Table:
    """Return a table without a frame; the first column is aligned left, the others right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _times(ratio: float | None) -> str:
    return "an unknown number of times" if ratio is None else f"{ratio:.3g} times"


def describe_delays(delays: Delays, statistic: str) -> Document:
    """Return a summary of the measurement, and the range of delays of each length."""
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
    """Return one matrix with its labels, in seconds or bytes/s."""
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
        peaks, steps = features.peaks, features.steps
        document["features"] = {
            "peak_threshold": features.peak_threshold,
            "step_threshold": features.step_threshold,
            "pairs_by_peaks": np.bincount(np.count_nonzero(peaks, axis=1)).tolist(),
            "pairs_by_steps": np.bincount(np.count_nonzero(steps, axis=1)).tolist(),
            "peaks": _by_length(delays.lengths, peaks),
            "steps": _by_length(delays.lengths[1:], steps),
        }
    if features is not None and clusters is not None:
        document["clusters"] = _describe_clusters(delays, features, clusters)
    if compressed is not None:
        names = ("raw_bytes", "bytes", "ratio", "median_error", "p95_error", "max_error")
        document["compressed"] = {name: getattr(compressed, name) for name in names}
    return document


def describe_outlying(outlying: list[OutlyingProcess] | tuple[OutlyingProcess, ...]) -> list[Document]:
    """Return outlying processes."""
    return [
        {"process": each.label, "role": each.role, "ratio": _number(each.ratio), "score": _number(each.score)}
        for each in outlying
    ]


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
                # A length is listed if at least half of the cluster's pairs have a peak, or a step, at this length.
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
    """Return a number for JSON, or None for NaN and infinity, which JSON lacks."""
    return float(value) if math.isfinite(value) else None
