# SPDX-License-Identifier: Apache-2.0
"""The network's bandwidth, from its fabric or from measured delays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.subnet import read_rail_fabric
from ibprof_lab.latency.files.delay_files import MICROSECOND, read_delays


def slowest_host_link(listing: Path) -> float:
    """Return the data rate of the slowest link between a host and a switch, in Byte/s, on any rail.

    Raises:
        InputError: the file is no fabric.
        InconsistentError: it has no such link of known speed.
    """
    fabrics = [read_rail_fabric(files, rail) for rail, files in enumerate(find_rails([listing]))]
    speeds = np.concatenate(
        [fabric.link_gbps[(fabric.node_kind[fabric.link_node] == NodeKind.CA).any(axis=1)] for fabric in fabrics]
    )
    if not len(speeds) or np.isnan(speeds).all():
        raise InconsistentError(f"{listing}: no link of a host has a known speed; give --bandwidth")
    return float(np.nanmin(speeds)) * 1e9 / 8


SHORTEST_BULK = 1 << 16
"""Least size of a message that shows a bandwidth, bytes: in smaller ones the latency is most of the time."""


def slowest_process(path: Path, unit: float = MICROSECOND) -> float:
    """Return the bandwidth of the slowest process by the delays of long messages, in Byte/s.

    That of a process is the median over its peers, on other hosts where there are several. For round trips it is (s2 -
    s1) / (OWD(s2) - OWD(s1)) from the shortest to the longest message, which excludes the latency. For delays of mode
    bandwidth, many messages at the same time, it is s / OWD(s).

    Args:
        path: the delays.
        unit: seconds of 1, where the file does not say it.

    Raises:
        InputError: the file holds no delays.
        InconsistentError: it has no message of `SHORTEST_BULK` bytes, or no measured pair.

    Source: Bufe 2014, equation (1.5), and (1.4) for large s.
    """
    delays = read_delays(path, statistics=(), unit=unit)
    if not len(delays.lengths) or delays.lengths[-1] < SHORTEST_BULK:
        found = f"at most {delays.lengths[-1]:,}" if len(delays.lengths) else "no lengths"
        raise InconsistentError(
            f"{path}: expected messages of {SHORTEST_BULK:,} bytes or more for a bandwidth, found {found}; "
            "measure with --lengths 0,1M"
        )
    hosts = np.array(delays.hosts)
    apart = hosts[:, None] != hosts
    if not apart.any():
        apart = ~np.eye(len(hosts), dtype=bool)
    rate = np.where(apart, _rates(delays.median, delays.lengths, str(delays.attributes.get("mode", ""))), np.nan)
    known = ~np.isnan(rate).all(axis=1)
    if not known.any():
        raise InconsistentError(
            f"{path}: expected a pair that was measured with {delays.lengths[-1]:,} bytes, found none"
        )
    return float(np.nanmedian(rate[known], axis=1).min())


def _rates(median: npt.NDArray[np.float32], lengths: npt.NDArray[np.int64], mode: str) -> npt.NDArray[np.float64]:
    """Return each pair's bandwidth, Byte/s, float64 [n, n]; NaN where unknown."""
    long, size = median[-1].astype(np.float64), float(lengths[-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = size / long
        if len(lengths) > 1 and mode != "bandwidth":
            beyond = long - median[0]
            # Noise can make the long message the faster one; then the whole delay counts.
            rate = np.where(beyond > 0, (size - float(lengths[0])) / beyond, rate)
    return np.where(np.isfinite(rate), rate, np.nan)
