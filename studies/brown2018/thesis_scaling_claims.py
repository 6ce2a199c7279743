# SPDX-License-Identifier: Apache-2.0
"""Compare section 5.4.4's claims with the results: jobs with 25, 50 and 75% of the hosts."""

from __future__ import annotations

from thesis_results import (
    KB,
    MB,
    OPEN,
    Row,
    Verdict,
    adds_as,
    all_there,
    find,
    find_alone,
    grows,
    is_apart,
    is_close,
    is_none,
    judge,
    list_rows,
    show,
    slowdown_of,
    tell_seeds,
)

SCALED = tuple(1e3 * interval for interval in (2, 4, 8, 16, 32, 64, 128))
SCALED_KB = (4, 16, 64, 256, 1024)


def scaled(run: str, share: float, interval: float) -> Row | None:
    return find("scaling", "io", run, io_bytes=4 * MB, io_interval_us=interval, io_share=share)


def shares_io() -> Verdict:
    rows = all_there(*(scaled("baseline", share, 2000.0) for share in (0.25, 0.5, 0.75)))
    if rows is None:
        return OPEN
    ratios = [row["mean_us"] / rows[0]["mean_us"] for row in rows]
    said = " : ".join(f"{ratio:.1f}" for ratio in ratios) + tell_seeds(*rows)
    return said, is_close(ratios[1], 1.8) and is_close(ratios[2], 3)


def large_like_congested() -> Verdict:
    rows = all_there(scaled("baseline", 0.75, 2000.0), find_alone("io", (4 * MB, 100.0)))
    if rows is None:
        return OPEN
    large, congested = (row["mean_us"] for row in rows)
    return f"{large:.0f} and {congested:.0f} µs{tell_seeds(*rows)}", is_close(large, congested)


def shares_at(interval: float) -> list[Row] | None:
    return all_there(*(scaled("interference", share, interval) for share in (0.25, 0.5, 0.75)))


def large_least() -> Verdict:
    """Check that I/O on 75% of the hosts has the smallest slow-down, at each interval with results for all shares."""
    found = {interval: shares_at(interval) for interval in SCALED}
    there = {interval: rows for interval, rows in found.items() if rows}
    if not there:
        return OPEN
    least = sum(min(rows, key=slowdown_of) is rows[2] for rows in there.values())
    apart = sum(is_apart(rows[2], rows[0]) for rows in there.values())
    said = "; ".join(
        " : ".join(f"{row['slowdown']:.2f}" for row in rows) + f" at {interval / 1e3:g} ms"
        for interval, rows in there.items()
    )
    said += f": 75% has the smallest at {least} of {len(there)} intervals, and surely less than 25% at {apart}"
    return said + tell_seeds(*(row for rows in there.values() for row in rows)), least == len(there)


def small_most() -> Verdict:
    row = scaled("interference", 0.25, 128000.0)
    return (show(row), judge(lambda found: adds_as(found, 1.18), row)) if row else OPEN


def most_of_all() -> Verdict:
    """Check that the largest slow-down of figure 5.10 is in the same cell as in the thesis.

    The claim also passes if the confidence intervals of the largest slow-down and of the thesis's cell overlap.
    """
    found = [scaled("interference", share, each) for share in (0.25, 0.5, 0.75) for each in SCALED]
    there = [row for row in found if row]
    if len(there) < 2:
        return OPEN
    most = max(there, key=slowdown_of)
    where = most["io_share"], most["io_interval_us"]
    said = f"{100 * where[0]:.0f}% at {where[1] / 1e3:g} ms: {show(most)} ({len(there)} of {len(found)} cases run)"
    printed = scaled("interference", 0.25, 128000.0)
    if printed is None or where == (0.25, 128000.0):
        return said, printed is not None
    ties = not is_apart(printed, most)
    return f"{said}; 25% at 128 ms: {show(printed)}{', a tie' if ties else ''}", ties


def shares_mpi() -> Verdict:
    rows = [row for row in list_rows("scaling", "mpi", "interference", mpi_share=0.75) if row["slowdown"]]
    if not rows:
        return OPEN
    low, high = min(rows, key=slowdown_of), max(rows, key=slowdown_of)
    said = f"{show(low)} to {show(high)} in {len(rows)} of 5 sizes"
    return said, adds_as(low["slowdown"], 1.6) and adds_as(high["slowdown"], 3.2)


def share_rows(share: float) -> list[Row] | None:
    return all_there(
        *(find("scaling", "mpi", "interference", mpi_bytes=size * KB, mpi_share=share, io_interval_us=0.0)
          for size in SCALED_KB)
    )  # fmt: skip


def small_job_least() -> Verdict:
    """Compare the MPI job on 25% of the hosts with the jobs on 50% and 75%, at each size."""
    shares = [share_rows(share) for share in (0.25, 0.5, 0.75)]
    there = [rows for rows in shares if rows]
    if len(there) < len(shares):
        return OPEN
    least = [rows for rows in zip(*there, strict=True) if min(rows, key=slowdown_of) is rows[0]]
    most = [rows for rows in zip(*there, strict=True) if max(rows, key=slowdown_of) is rows[0]]
    said = f"25% has the smallest at {len(least)} and the largest at {len(most)} of 5 sizes; with 4 KB "
    said += " : ".join(f"{rows[0]['slowdown']:.2f}" for rows in there)
    return said + tell_seeds(*(row for rows in there for row in rows)), len(least) == len(SCALED_KB)


def shares_size() -> Verdict:
    shares = [share_rows(share) for share in (0.25, 0.5, 0.75)]
    there = [rows for rows in shares if rows]
    if len(there) < len(shares):
        return OPEN
    said = "; ".join(f"{show(rows[0])} and {show(rows[-1])}" for rows in there)
    return said, all(grows(rows[::-1]) for rows in there)


def shares_alike() -> Verdict:
    """Check that the mean time of MPI alone hardly depends on the share of the hosts, at each message size."""
    ratios = []
    for size in SCALED_KB:
        rows = all_there(
            *(find("scaling", "mpi", "baseline", mpi_bytes=size * KB, mpi_share=share) for share in (0.25, 0.5, 0.75))
        )
        if rows is None:
            return OPEN
        means = [row["mean_us"] for row in rows]
        ratios.append(max(means) / min(means))
    return f"longest / shortest at most {max(ratios[:-1]):.2f}, {ratios[-1]:.2f} for 1 MB", all(map(is_none, ratios))
