# SPDX-License-Identifier: Apache-2.0
"""Regressed latencies of links as JSON, CSV and lines of text."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ibprof_converter.outputs.atomic_write import write_text
from ibprof_lab.topology.outputs.inferred_text import describe_topology
from ibprof_lab.topology.reference.link_regression import RegressedLinks

_SHOWN = 40


def describe_regression(links: RegressedLinks) -> dict[str, Any]:
    """Return what JSON has: how well the links explain the delays; the topology, or the links of a fabric."""
    found = links.regression
    document: dict[str, Any] = {
        "r_squared": None if isnan(found.r_squared) else round(found.r_squared, 9),
        "ways": found.paths,
        "corrected": found.corrected,
    }
    return document | ({"edges": _rows(links)} if links.topology is None else describe_topology(links.topology))


def write_regression_csv(path: Path, links: RegressedLinks) -> None:
    """Write a row for each link.

    Raises:
        OSError: the file cannot be written.
    """
    rows = _rows(links)

    def write(file: TextIO) -> None:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["a", "b", "gbps", "latency_us"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

    write_text(path, write)


def describe_regression_lines(links: RegressedLinks) -> Iterator[str]:
    """Yield the quality of the regression, the first links, and how many latencies are unknown."""
    reference, found = links.reference, links.regression
    count = len(reference.link)
    yield f"{count} links, {found.paths} paths, R2 {found.r_squared:.6f}, corrected for size: {found.corrected}"
    for (a, b), seconds in zip(reference.link[:_SHOWN].tolist(), found.latency_seconds, strict=False):
        latency = "unknown" if isnan(seconds) else f"{seconds * 1e6:.4g} µs"
        yield f"  {reference.names[a]} to {reference.names[b]}: {latency}"
    if count > _SHOWN:
        yield f"  and {count - _SHOWN} more: --json, -o latencies.csv"
    if hidden := int(np.isnan(found.latency_seconds).sum()):
        yield f"unknown: the latencies of {hidden} links: the delays do not determine them, or only together"


def _rows(links: RegressedLinks) -> list[dict[str, str | int | float | None]]:
    return [_row(links, link) for link in range(len(links.reference.link))]


def _row(links: RegressedLinks, link: int) -> dict[str, str | int | float | None]:
    reference, fabric = links.reference, links.reference.fabric
    a, b = reference.link[link].tolist()
    row: dict[str, str | int | float | None] = {"a": reference.names[a], "b": reference.names[b]}
    if fabric is not None:
        for end, node, port in zip("ab", fabric.link_node[link].tolist(), fabric.link_port[link].tolist(), strict=True):
            row |= {f"{end}_guid": f"0x{int(fabric.node_guid[node]):016x}", f"{end}_port": port}
    latency, rate = float(links.regression.latency_seconds[link]), float(links.gbps[link])
    return row | {
        "gbps": None if isnan(rate) else rate,
        "latency_us": None if isnan(latency) else round(latency * 1e6, 6),
    }
