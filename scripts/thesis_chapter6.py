# SPDX-License-Identifier: Apache-2.0
"""What chapter 6 of the thesis says, and what the results say to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from thesis_results import OPEN, STUDIES, Row, Verdict, all_there, find, is_close, show, tell_seeds

from ibprof_converter.routing.subnet import read_subnet
from ibprof_converter.simulation.network import Hardware, index_network
from ibprof_converter.simulation.patterns import THESIS_FABRIC
from ibprof_converter.simulation.roles import JobPlacement, ServerPlacement, seat

# -- section 6.5.1


def checkpoint() -> Verdict:
    row = find("placement", "mpi", "interference")
    return (show(row), is_close(row["slowdown"], 7.6)) if row else OPEN


def switch_placement() -> Verdict:
    row = find("placement", "mpi", "interference", job_placement="random-switch")
    return (show(row), is_close(row["slowdown"], 1.0)) if row else OPEN


def io_placement(placement: str, printed: float) -> Verdict:
    row = find("placement", "io", "interference", job_placement=placement)
    return (show(row), abs(row["slowdown"] - printed) <= 0.05) if row else OPEN


def io_deviation() -> Verdict:
    """Standard deviation of a request's time as a part of its mean, alone and beside MPI."""
    rows = all_there(*(find("placement", "io", run) for run in ("baseline", "interference")))
    if rows is None:
        return OPEN
    parts = [row["deviation_us"] / row["mean_us"] for row in rows]
    said = " to ".join(f"{100 * part:.0f} %" for part in parts) + tell_seeds(*rows)
    return said, is_close(parts[0], 0.08) and is_close(parts[1], 0.19)


# -- section 6.5.2


def by_servers(measured: str) -> dict[str, Row] | None:
    names = [each.value for each in ServerPlacement]
    rows = all_there(*(find("servers", measured, "interference", server_placement=name) for name in names))
    return dict(zip(names, rows, strict=True)) if rows else None


def spread_best(measured: str) -> Verdict:
    """By times beside the other job; what is within its interval of the least is as good."""
    rows = by_servers(measured)
    if rows is None:
        return OPEN
    column = "slowdown" if measured == "mpi" else "mean_us"
    said = ", ".join(f"{name} {show(row, column)}" for name, row in rows.items())
    least = min(row["mean_us"] for row in rows.values())
    return said, rows["spread"]["mean_us"] - (rows["spread"]["mean_half_us"] or 0) <= least


def random_like_isolated(measured: str) -> Verdict:
    rows = by_servers(measured)
    if rows is None:
        return OPEN
    one, two = (rows[each] for each in ("isolated", "random"))
    return f"{show(one)} and {show(two)}", is_close(two["slowdown"], one["slowdown"])


def down_switches() -> Verdict:
    """By the tables: the level-2 switches that send down to the leaves what is for spread servers."""
    network = index_network(read_subnet(THESIS_FABRIC), Hardware())
    servers = seat(network, [], 72, ServerPlacement.SPREAD, JobPlacement.RANDOM_NODE, np.random.default_rng(1)).servers
    leaves = set(network.host_leaf.tolist())
    used = set()
    for server in servers.tolist():
        for switch in range(network.switches):
            end = network.port_end[switch, network.egress[switch, server]]
            if switch not in leaves and network.end_to[end] - network.hosts == network.host_leaf[server]:
                reached = {int(network.port_end[leaf, network.egress[leaf, server]]) for leaf in leaves}
                if _is_reached(network, switch, server, reached):
                    used.add(switch)
    return f"{len(used)} of 72", len(used) == 4


def _is_reached(network: Any, switch: int, server: int, ends: set[int]) -> bool:
    """Whether packets for a server pass a switch on their way from any leaf."""
    at = {int(network.end_to[end]) - network.hosts for end in ends if network.end_to[end] >= network.hosts}
    for _ in range(4):
        if switch in at:
            return True
        following = {int(network.end_to[network.port_end[each, network.egress[each, server]]]) for each in at}
        at = {each - network.hosts for each in following if each >= network.hosts}
    return False


# -- section 6.5.3


def find_throttled(measured: str, window: float) -> Row | None:
    """Of I/O jobs of several lengths, the longest that was simulated without a throttle too."""
    rows = [row for row in STUDIES.get("throttle", ()) if (row["measured"], row["run"]) == (measured, "interference")]
    rows = [row for row in rows if row["mean_us"] is not None and (measured == "mpi") == (not row["io_limit"])]
    both = {row["io_limit"] for row in rows if row["io_window_us"] == 0} & {
        row["io_limit"] for row in rows if row["io_window_us"] == window
    }
    return next((row for row in rows if both and row["io_limit"] == max(both) and row["io_window_us"] == window), None)


def find_unthrottled(measured: str, like: Row) -> Row | None:
    rows = [row for row in STUDIES.get("throttle", ()) if (row["measured"], row["run"]) == (measured, "interference")]
    same = (row for row in rows if row["io_limit"] == like["io_limit"] and row["mean_us"] is not None)
    return next((row for row in same if row["io_window_us"] == 0), None)


def throttled(window: float, least: float | None) -> Verdict:
    after = find_throttled("mpi", window)
    before = find_unthrottled("mpi", after) if after else None
    if not before or not after:
        return OPEN
    said = f"{show(before, 'mean_us')} to {show(after, 'mean_us')} us"
    return said, None if least is None else before["mean_us"] / after["mean_us"] >= least


def throttle_cost(window: float, printed: float | None) -> Verdict:
    after = find_throttled("io", window)
    before = find_unthrottled("io", after) if after else None
    if not before or not after:
        return OPEN
    first, then = before["io_whole_ms"], after["io_whole_ms"]
    ratio, written = then / first, after["io_limit"] * after["io_bytes"] / 1e9
    said = f"{first:.0f} to {then:.0f} ms for {written:.2g} GB: {100 * (ratio - 1):+.1f} %{tell_seeds(before, after)}"
    return said, None if printed is None else abs(ratio - printed) <= 0.05


def several(ask: Callable[[float, float | None], Verdict], *windows: float) -> Verdict:
    """Whether it grows, or falls, from window to window, as the print says."""
    said = [ask(window, None)[0] for window in windows]
    return ("; ".join(said), None) if OPEN[0] not in said else OPEN


def better_still() -> Verdict:
    rows = all_there(*(find_throttled("mpi", window) for window in (2000.0, 3000.0, 4000.0, 5000.0)))
    if rows is None:
        return OPEN
    means = [row["mean_us"] for row in rows]
    return ", ".join(f"{show(row, 'mean_us')}" for row in rows[1:]) + " us", means == sorted(means, reverse=True)


def grows_gradually() -> Verdict:
    windows = (0.0, 2000.0, 3000.0, 4000.0, 5000.0)
    rows = all_there(*(find_throttled("io", window) for window in windows))
    said, _ = several(throttle_cost, *windows[1:])
    if rows is None:
        return OPEN
    whole = [row["io_whole_ms"] for row in rows if row["io_limit"] == rows[0]["io_limit"]]
    return said, whole == sorted(whole)


def shorter_than_window() -> Verdict:
    """A request's mean time, and the window."""
    rows = all_there(*(find_throttled("io", window) for window in (2000.0, 3000.0, 4000.0, 5000.0)))
    if rows is None:
        return OPEN
    said = ", ".join(f"{row['mean_us'] / 1e3:.1f} ms at {row['io_window_us'] / 1e3:g}" for row in rows)
    return said + tell_seeds(*rows), all(row["mean_us"] < row["io_window_us"] for row in rows)


CLAIMS: list[tuple[str, str, str, Callable[[], Verdict]]] = [
    ("6.2", "4 KB MPI beside a checkpoint, random-node", '7.6 times ("800 %")', checkpoint),
    ("6.2", "the same, random-switch", "negligible", switch_placement),
    ("6.2", "4 MB I/O at 128 ms beside 4 MB MPI, random-node", "1.12 (+11.8 %)",
     lambda: io_placement("random-node", 1.118)),
    ("6.2", "its standard deviation, alone and beside", "8 % to 19 %", io_deviation),
    ("6.2", "4 MB I/O at 128 ms beside 4 MB MPI, random-switch", "minimal", lambda: io_placement("random-switch", 1.0)),
    ("6.5", "MPI by where the servers are", "spread is best", lambda: spread_best("mpi")),
    ("6.5", "I/O by where the servers are, us", "spread is best", lambda: spread_best("io")),
    ("6.5", "MPI, isolated and random servers", "similar", lambda: random_like_isolated("mpi")),
    ("6.5", "I/O, isolated and random servers", "similar", lambda: random_like_isolated("io")),
    ("6.5", "level-2 switches that send down to spread servers", "4 of 72", down_switches),
    ("6.7", "MPI with a throttle window of 2 ms", "over 200 % better", lambda: throttled(2000.0, 2.0)),
    ("6.7", "time of a client's whole I/O with 2 ms", "+11.2 % (or 18 %)", lambda: throttle_cost(2000.0, 1.112)),
    ("6.7", "MPI with 3, 4 and 5 ms", "better still", better_still),
    ("6.7", "time of a client's whole I/O with 2, 3, 4 and 5 ms", "grows gradually", grows_gradually),
    ("6.7", "a request's mean time from 2 ms on", "less than the window", shorter_than_window),
]  # fmt: skip
