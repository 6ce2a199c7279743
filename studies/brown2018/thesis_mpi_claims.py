# SPDX-License-Identifier: Apache-2.0
"""Compare section 5.4.2's claims with the results: MPI alone, and MPI next to I/O."""

from __future__ import annotations

from itertools import product

from thesis_patterns import INTERVALS
from thesis_results import (
    KB,
    MB,
    OPEN,
    Verdict,
    adds_as,
    all_there,
    find_alone,
    find_pair,
    grows,
    is_close,
    is_some,
    judge,
    show,
    slowdown_of,
    survey,
    tell_seeds,
)


def small_mpi() -> Verdict:
    row = find_pair("mpi", (4 * KB, 500.0), (4 * MB, 100.0))
    return (show(row), judge(lambda found: adds_as(found, 7.6), row)) if row else OPEN


def elevated() -> Verdict:
    """Check that each of charts B to I has a pair with a slow-down. Charts A, B, C have the smallest MPI messages."""
    sizes = (4 * KB, 512 * KB, 4 * MB)
    most = {
        letter: max((row for row in survey("mpi") if (row["mpi_bytes"], row["io_bytes"]) == chart), key=slowdown_of)
        for letter, chart in zip("BCDEFGHI", list(product(sizes, sizes))[1:], strict=True)
    }
    flat = [letter for letter, row in most.items() if not is_some(row["slowdown"])]
    said = "largest: " + ", ".join(f"{letter} {row['slowdown']:.2f}" for letter, row in most.items())
    return said + tell_seeds(*most.values()), not flat


def congests_itself() -> Verdict:
    """Compare mean message times of MPI alone at the longest and at the shortest interval between messages."""
    ends = [
        all_there(*(find_alone("mpi", (size, each(INTERVALS[int(size)]))) for each in (max, min)))
        for size in (512 * KB, 4 * MB)
    ]
    there = [rows for rows in ends if rows]
    if len(there) < len(ends):
        return OPEN
    said = ", ".join(" to ".join(f"{row['mean_us']:.0f}" for row in rows) for rows in there) + " µs"
    return said, all(is_some(rows[1]["mean_us"] / rows[0]["mean_us"]) for rows in there)


def falling() -> Verdict:
    rows = all_there(*(find_pair("mpi", (4 * KB, own), (4 * MB, 100.0)) for own in INTERVALS[4 << 10]))
    if rows is None:
        return OPEN
    return f"{show(rows[0])} at 500 µs, {show(rows[-1])} at 1 µs", grows(rows[::-1])


def percentile() -> Verdict:
    rows = all_there(*(find_alone("mpi", (4 * MB, interval)) for interval in (5e3, 1e3)))
    if rows is None:
        return OPEN
    first, second = (row["p75_us"] for row in rows)
    return f"{first:.0f} and {second:.0f} µs{tell_seeds(*rows)}", is_close(first, 351) and is_close(second, 630)


def still_slowed() -> Verdict:
    rows = [find_pair("mpi", (4 * MB, own), (4 * MB, 100.0)) for own in (500.0, 100.0)]
    there = all_there(*rows)
    if there is None:
        return OPEN
    return " and ".join(show(row) for row in there), all(is_some(row["slowdown"]) for row in there)


def heavy_tails() -> Verdict:
    rows = all_there(
        find_pair("io", (4 * KB, 1.0), (4 * MB, 100.0)), find_pair("mpi", (4 * KB, 500.0), (4 * MB, 100.0))
    )
    if rows is None:
        return OPEN
    ratios = [row["mean_us"] / row["p50_us"] for row in rows]
    return " and ".join(f"{ratio:.2f} times" for ratio in ratios) + tell_seeds(*rows), is_some(min(ratios))


def io_over_mpi() -> Verdict:
    pairs = [all_there(*(find_alone(job, own) for job in ("io", "mpi"))) for own in ((512 * KB, 500.0), (4 * MB, 5e3))]
    there = [pair for pair in pairs if pair]
    if len(there) < len(pairs):
        return OPEN
    ratios = [one["mean_us"] / two["mean_us"] for one, two in there]
    return " and ".join(f"{ratio:.2f} times" for ratio in ratios), min(ratios) > 1
