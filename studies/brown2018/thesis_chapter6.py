# SPDX-License-Identifier: Apache-2.0
"""Compare each claim of chapter 6 of the thesis with the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from thesis_patterns import THESIS_FABRIC
from thesis_results import (
    BORDERLINE,
    OPEN,
    STUDIES,
    Row,
    Verdict,
    adds_as,
    all_there,
    find,
    grows,
    is_apart,
    is_close,
    is_none,
    judge,
    show,
    tell_seeds,
)

from ibprof_lab.lab_choices import JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.simulated_network import Hardware, index_network
from ibprof_lab.simulation.workload.host_assignment import assign_hosts
from ibprof_testing.samples.fabrics import read_subnet

# -- section 6.5.1


def checkpoint() -> Verdict:
    row = find("placement", "mpi", "interference")
    return (show(row), judge(lambda found: adds_as(found, 7.6), row)) if row else OPEN


def switch_placement() -> Verdict:
    row = find("placement", "mpi", "interference", job_placement="random-switch")
    return (show(row), judge(is_none, row)) if row else OPEN


def io_placement(placement: str, passes: Callable[[float], bool]) -> Verdict:
    row = find("placement", "io", "interference", job_placement=placement)
    return (show(row), judge(passes, row)) if row else OPEN


def io_deviation() -> Verdict:
    """Compare the coefficients of variation of the time of I/O requests, alone and next to MPI, with the thesis's."""
    rows = all_there(*(find("placement", "io", run) for run in ("baseline", "interference")))
    if rows is None:
        return OPEN
    parts = [row["deviation_us"] / row["mean_us"] for row in rows]
    said = " and ".join(f"{100 * part:.0f}%" for part in parts) + tell_seeds(*rows)
    return said, is_close(parts[0], 0.08) and is_close(parts[1], 0.19)


# -- section 6.5.2


def by_servers(measured: str) -> dict[str, Row] | None:
    names = [each.value for each in ServerPlacement]
    rows = all_there(*(find("servers", measured, "interference", server_placement=name) for name in names))
    return dict(zip(names, rows, strict=True)) if rows else None


def spread_best(measured: str) -> Verdict:
    """Check that a job next to the other job is fastest with spread servers."""
    rows = by_servers(measured)
    if rows is None:
        return OPEN
    column = "slowdown" if measured == "mpi" else "mean_us"
    said = ", ".join(f"{name} {show(row, column)}" for name, row in rows.items())
    return said, all(is_apart(rows["spread"], rows[other], "mean_us") for other in ("isolated", "random"))


def random_like_isolated(measured: str) -> Verdict:
    rows = by_servers(measured)
    if rows is None:
        return OPEN
    one, two = (rows[each] for each in ("isolated", "random"))
    similar = not is_apart(one, two) and not is_apart(two, one)  # the confidence intervals overlap
    return f"{show(one)} and {show(two)}", judge(adds_as, two, one) or (similar and BORDERLINE)


def down_switches() -> Verdict:
    """Count the level-2 switches on the routes down to the leaf switches of spread servers."""
    network = index_network(read_subnet(THESIS_FABRIC), Hardware())
    servers = assign_hosts(
        network, [], 72, ServerPlacement.SPREAD, JobPlacement.RANDOM_NODE, np.random.default_rng(1)
    ).servers
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
    """Return whether packets to a server pass a switch after any of the link directions `ends`."""
    at = {int(network.end_to[end]) - network.hosts for end in ends if network.end_to[end] >= network.hosts}
    for _ in range(4):
        if switch in at:
            return True
        following = {int(network.end_to[network.port_end[each, network.egress[each, server]]]) for each in at}
        at = {each - network.hosts for each in following if each >= network.hosts}
    return False


# -- section 6.5.3


def find_throttled(measured: str, window: float) -> Row | None:
    """Of the I/O jobs simulated both unthrottled and with this window, return the longest job's row with the window."""
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


def throttled(window: float, least: float) -> Verdict:
    after = find_throttled("mpi", window)
    before = find_unthrottled("mpi", after) if after else None
    if not before or not after:
        return OPEN
    said = f"{show(before, 'mean_us')} to {show(after, 'mean_us')} µs"
    return said, before["mean_us"] / after["mean_us"] >= least


def throttle_cost(window: float) -> tuple[str, float] | None:
    """Return the throttle's effect on a client's time for all writes; None if not simulated.

    The text states by how much the last client's time and the mean time grow. The number is the last client's time
    with / without the throttle.
    """
    after = find_throttled("io", window)
    before = find_unthrottled("io", after) if after else None
    if not before or not after:
        return None
    last, mean = (after[column] / before[column] for column in ("io_whole_most_ms", "io_whole_ms"))
    said = f"{100 * (last - 1):+.1f}% to {after['io_whole_most_ms']:.0f} ms (mean client: {100 * (mean - 1):+.1f}% "
    return f"{said}to {after['io_whole_ms']:.0f} ms)" + tell_seeds(before, after), last


def cost_at_2_ms() -> Verdict:
    cost = throttle_cost(2000.0)
    return (cost[0], adds_as(cost[1], 1.112)) if cost else OPEN


def better_still() -> Verdict:
    rows = all_there(*(find_throttled("mpi", window) for window in (2000.0, 3000.0, 4000.0, 5000.0)))
    if rows is None:
        return OPEN
    return ", ".join(f"{show(row, 'mean_us')}" for row in rows[1:]) + " µs", grows(rows[::-1], "mean_us")


def grows_gradually() -> Verdict:
    """Check that a longer window makes the last client slower; these times have no confidence intervals."""
    costs = [throttle_cost(window) for window in (2000.0, 3000.0, 4000.0, 5000.0)]
    there = [cost for cost in costs if cost]
    if len(there) < len(costs):
        return OPEN
    ratios = [1.0, *(ratio for _, ratio in there)]
    return "; ".join(said for said, _ in there), ratios == sorted(ratios)


def time_between() -> Verdict:
    """Check that 1 ms passes from a request's end to the next request's start, with a window of 2.5 ms."""
    row = find_throttled("io", 2500.0)
    if row is None:
        return OPEN
    left = max(row["io_window_us"] - row["mean_us"], 0.0) / 1e3
    return f"{left:.1f} ms; a request takes {row['mean_us'] / 1e3:.1f} ms{tell_seeds(row)}", is_close(left, 1.0)


def shorter_than_window() -> Verdict:
    """Check that the mean time of a request is shorter than the throttle window."""
    rows = all_there(*(find_throttled("io", window) for window in (2000.0, 3000.0, 4000.0, 5000.0)))
    if rows is None:
        return OPEN
    said = ", ".join(f"{row['mean_us'] / 1e3:.1f} ms at {row['io_window_us'] / 1e3:g}" for row in rows)
    starts = ", ".join(f"{row['io_whole_ms'] / row['io_limit']:.1f}" for row in rows)
    said += f"; a client starts a request every {starts} ms on average"
    return said + tell_seeds(*rows), all(row["mean_us"] < row["io_window_us"] for row in rows)


CLAIMS: list[tuple[str, str, str, Callable[[], Verdict]]] = [
    ("6.2", "slow-down of 4 KB MPI next to a checkpoint, random-node placement", '7.6 times ("800%")', checkpoint),
    ("6.2", "slow-down of 4 KB MPI next to a checkpoint, random-switch placement", "negligible", switch_placement),
    ("6.2", "slow-down of 4 MB I/O at 128 ms next to 4 MB MPI, random-node placement", "1.12 (+11.8%)",
     lambda: io_placement("random-node", lambda simulated: adds_as(simulated, 1.118))),
    ("6.2", "standard deviation / mean of a request's time at 128 ms, alone and next to MPI", "8% and 19%",
     io_deviation),
    ("6.2", "slow-down of 4 MB I/O at 128 ms next to 4 MB MPI, random-switch placement", "minimal",
     lambda: io_placement("random-switch", is_none)),
    ("6.5", "slow-down of MPI, by placement of the servers", "spread is best", lambda: spread_best("mpi")),
    ("6.5", "time of an I/O request in µs, by placement of the servers", "spread is best", lambda: spread_best("io")),
    ("6.5", "slow-down of MPI with isolated and with random servers", "similar", lambda: random_like_isolated("mpi")),
    ("6.5", "slow-down of I/O with isolated and with random servers", "similar", lambda: random_like_isolated("io")),
    ("6.5", "level-2 switches on the routes down to spread servers", "4 of 72", down_switches),
    ("6.7", "time of MPI without a throttle and with a window of 2 ms", "over 200% better",
     lambda: throttled(2000.0, 2.0)),
    ("6.7", "change of the time until all clients have written, with a window of 2 ms", "+11.2% (or 18%)",
     cost_at_2_ms),
    ("6.7", "time of MPI with windows of 3, 4 and 5 ms", "better still", better_still),
    ("6.7", "change of the time until all clients have written, with windows of 2, 3, 4 and 5 ms", "grows gradually",
     grows_gradually),
    ("6.7", "mean time of a request with windows of 2, 3, 4 and 5 ms", "less than the window", shorter_than_window),
    ("6.7", "time from the end of a request to the next request, with a window of 2.5 ms", "1 ms", time_between),
]  # fmt: skip
