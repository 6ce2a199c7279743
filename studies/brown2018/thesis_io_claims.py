# SPDX-License-Identifier: Apache-2.0
"""Compare section 5.4.1's claims with the results: I/O alone, I/O's congestion threshold, and I/O next to MPI."""

from __future__ import annotations

from scipy.stats import spearmanr
from thesis_patterns import INTERVALS
from thesis_results import (
    KB,
    MB,
    OPEN,
    Row,
    Verdict,
    adds_as,
    all_there,
    find_alone,
    find_pair,
    grows,
    is_apart,
    is_close,
    is_none,
    judge,
    show,
    show_range,
    survey,
    tell_seeds,
)

from ibprof_lab.simulation.questions.congestion_threshold import CONGESTED, NEAR

FREE = {4 * KB: INTERVALS[4 << 10], 512 * KB: INTERVALS[512 << 10][:3], 4 * MB: INTERVALS[4 << 20][:3]}
"""Bytes of an I/O request -> intervals at which I/O does not congest itself."""


def threshold(size: float, above: float | None, below: float | None) -> Verdict:
    rows = all_there(*(find_alone("io", (size, interval)) for interval in INTERVALS[int(size)]))
    return locate(rows, above, below) if rows else OPEN


def locate(rows: list[Row], above: float | None, below: float | None) -> Verdict:
    """Find the intervals around the threshold by `ibprof-sim threshold`'s rule; compare them with the thesis's."""
    times = {row["io_interval_us"]: float(row["mean_us"]) for row in rows}
    longest, shortest, seeds = max(times), min(times), tell_seeds(*rows)
    if times[shortest] < CONGESTED * times[longest]:
        said = f"none: a request takes {times[longest]:.2f} µs at the interval {longest:g} µs, "
        return f"{said}{times[shortest]:.2f} µs at {shortest:g} µs{seeds}", above is None
    cycle = shortest + times[shortest]
    congested = max(interval for interval, time in times.items() if cycle >= NEAR * (interval + time))
    free = min(interval for interval in times if interval > congested)
    said = f"between {free:g} and {congested:g} µs (a request takes {times[free]:.0f} and {times[congested]:.0f} µs)"
    return said + seeds, (free, congested) == (above, below)


def alone() -> Verdict:
    row = find_alone("io", (4 * KB, 1.0))
    if row is None:
        return OPEN
    return f"{show(row, 'mean_us')} µs", judge(lambda mean: is_close(mean, 3.07), row, column="mean_us")


def small_io() -> Verdict:
    row = find_pair("io", (4 * KB, 1.0), (4 * MB, 100.0))
    return (show(row), judge(lambda found: adds_as(found, 1.9), row)) if row else OPEN


def nothing_small() -> Verdict:
    rows = [row for job in ("io", "mpi") for row in survey(job) if row["io_bytes"] == row["mpi_bytes"] == 4 * KB]
    if len(rows) < 72:
        return OPEN
    return f"{show_range(rows)} in {len(rows)} pairs{tell_seeds(*rows)}", all(is_none(row["slowdown"]) for row in rows)


def largest(measured: str, printed: float) -> Verdict:
    """Find the largest slow-down over all pairs of I/O and MPI. In the thesis, it is in chart C (4 KB next to 4 MB)."""
    rows = survey(measured)
    if len(rows) < 200:
        return OPEN
    row = max(rows, key=lambda row: row["slowdown"])
    other = {"io": "mpi", "mpi": "io"}[measured]
    sizes = row[f"{measured}_bytes"], row[f"{other}_bytes"]
    said = f"{show(row)} with {sizes[0] / KB:g} KB next to {sizes[1] / KB:g} KB; {len(rows)} of 324 pairs have results"
    return said, adds_as(row["slowdown"], printed) and sizes == (4 * KB, 4 * MB)


def list_growth() -> list[list[Row]]:
    """For each I/O interval above the threshold in charts B, C, E, F, I, return the rows by falling MPI interval."""
    charts = [(own, other) for own in FREE for other in (512 * KB, 4 * MB) if (own, other) != (4 * MB, 512 * KB)]
    rows = [
        all_there(*(find_pair("io", (own, interval), (other, each)) for each in INTERVALS[int(other)]))
        for own, other in charts
        for interval in FREE[own]
    ]
    return [row for row in rows if row]


def grows_before() -> Verdict:
    rows = list_growth()
    if len(rows) < 21:
        return OPEN
    ranks = [spearmanr(range(len(row)), [each["slowdown"] for each in row]).statistic for row in rows]
    counts = {
        "the last slow-down is above the first": sum(row[-1]["slowdown"] > row[0]["slowdown"] for row in rows),
        "with disjoint 95% intervals": sum(is_apart(row[0], row[-1]) for row in rows),
        "no slow-down is below the previous one with disjoint 95% intervals": sum(grows(row) for row in rows),
        "no slow-down is below the previous one": sum(
            row == sorted(row, key=lambda each: each["slowdown"]) for row in rows
        ),
    }
    said = ", ".join(f"{what} in {count}" for what, count in counts.items()) + f" of {len(rows)} series"
    said += f"; rank correlation {min(ranks):.2f} to {max(ranks):.2f}"
    said += f"; last slow-down {show_range([row[-1] for row in rows])}"
    return said + tell_seeds(*(each for row in rows for each in row)), all(grows(row) for row in rows)


def past_threshold() -> Verdict:
    rows = [
        find_pair("io", (4 * MB, own), (4 * MB, other))
        for own in INTERVALS[4 << 20][3:]
        for other in INTERVALS[4 << 20]
    ]
    there = [row for row in rows if row]
    if not there:
        return OPEN
    said = f"{show_range(there)} in {len(there)} of 18 pairs{tell_seeds(*there)}"
    return said, all(is_none(row["slowdown"]) for row in there)


def at_2_ms() -> Verdict:
    rows = [find_pair("io", (4 * MB, 2000.0), (4 * MB, other)) for other in (5000.0, 1000.0, 500.0, 100.0)]
    there = [row for row in rows if row]
    if not there:
        return OPEN
    alone = find_alone("io", (4 * MB, 2000.0))
    if alone is None:
        return OPEN
    quarter = [row["p75_us"] / alone["p75_us"] for row in there]
    said = f"{show_range(there)} in {len(there)} of 4 pairs; 75th percentile {min(quarter):.2f} to {max(quarter):.2f}"
    return said + tell_seeds(*there), all(is_none(each) for each in (*quarter, *(row["slowdown"] for row in there)))


def stays_above() -> Verdict:
    """Check that I/O alone below the threshold takes longer than I/O next to MPI above the threshold."""
    past = all_there(*(find_alone("io", (4 * MB, interval)) for interval in INTERVALS[4 << 20][3:]))
    before = [find_pair("io", (4 * MB, own), (4 * MB, other)) for own in FREE[4 * MB] for other in INTERVALS[4 << 20]]
    there = [row for row in before if row]
    if past is None or not there:
        return OPEN
    low, high = min(row["mean_us"] for row in past), max(row["mean_us"] for row in there)
    return f"at least {low:.0f} µs; at most {high:.0f} µs in {len(there)} of 18 pairs{tell_seeds(*there)}", low > high
