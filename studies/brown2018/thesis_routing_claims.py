# SPDX-License-Identifier: Apache-2.0
"""Compare section 5.4.3's claims with the results: adaptive routing against forwarding tables."""

from __future__ import annotations

from thesis_io_claims import locate
from thesis_patterns import INTERVALS
from thesis_results import (
    OPEN,
    Row,
    Verdict,
    all_there,
    find,
    is_close,
    is_none,
    list_rows,
    show,
    slowdown_of,
    tell_seeds,
)


def routing_row(job: str, routing: str, interval: float) -> Row | None:
    return find("routing", job, "baseline", routing=routing, **{f"{job}_interval_us": interval})


def routing_base(job: str) -> Verdict:
    pairs = [
        all_there(*(routing_row(job, routing, interval) for routing in ("static", "adaptive")))
        for interval in INTERVALS[512 << 10]
    ]
    ratios = [two["mean_us"] / one["mean_us"] for one, two in (pair for pair in pairs if pair)]
    if not ratios:
        return OPEN
    seeds = tell_seeds(*(row for pair in pairs if pair for row in pair))
    return f"{min(ratios):.2f} to {max(ratios):.2f} times, {len(ratios)} intervals{seeds}", min(ratios) > 1


def routing_free(job: str) -> Verdict:
    """Check that all runs with adaptive routing and I/O intervals above the threshold are steady and not slowed."""
    rows = {
        routing: [
            row for row in list_rows("routing", job, "interference", routing=routing) if row["io_interval_us"] >= 500
        ]
        for routing in ("static", "adaptive")
    }
    found = {routing: [row for row in each if row["slowdown"]] for routing, each in rows.items()}
    if not all(found.values()):
        return OPEN
    unsteady = sum("no steady state" in row["note"] for row in rows["adaptive"])
    high = {routing: max(each, key=slowdown_of) for routing, each in found.items()}
    said = f"at most {show(high['adaptive'])}, with static routing {show(high['static'])}"
    said += f"; {unsteady} of {len(rows['adaptive'])} pairs have a seed without a steady state" if unsteady else ""
    return said, is_none(high["adaptive"]["slowdown"]) and not unsteady


def routing_threshold() -> Verdict:
    rows = all_there(*(routing_row("io", "adaptive", interval) for interval in INTERVALS[512 << 10]))
    return locate(rows, 500.0, 100.0) if rows else OPEN


def routing_congested(job: str) -> Verdict:
    """Compare times with adaptive routing and with forwarding tables, at I/O intervals below the threshold."""
    below = INTERVALS[512 << 10][3:]
    ratios, used = [], []
    for row in (row for run in ("baseline", "interference") for row in list_rows("routing", job, run)):
        if row["io_interval_us"] not in below or row["mean_us"] is None:
            continue
        same = {key: row[key] for key in ("io_interval_us", "mpi_interval_us")}
        other = list_rows("routing", job, row["run"], **{**same, "routing": "adaptive"})
        if other and other[0]["mean_us"]:
            ratios.append(other[0]["mean_us"] / row["mean_us"])
            used.append(other[0])
    if not ratios:
        return OPEN
    said = f"{min(ratios):.2f} to {max(ratios):.2f} times as long in {len(ratios)} cases"
    return said + tell_seeds(*used), all(is_close(ratio, 1) for ratio in ratios)
