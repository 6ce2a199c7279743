# SPDX-License-Identifier: Apache-2.0
"""What chapter 5 of the thesis says, and what the results say to it."""

from __future__ import annotations

from collections.abc import Callable

from thesis_results import (
    KB,
    MB,
    NO_MORE,
    OPEN,
    STUDIES,
    Row,
    Verdict,
    all_there,
    find,
    find_alone,
    find_pair,
    is_close,
    list_rows,
    show,
    show_range,
    tell_seeds,
)

from ibprof_converter.simulation.patterns import TABLE_5_1
from ibprof_converter.simulation.threshold import CONGESTED, NEAR

INTERVALS = {size: [interval / 1e3 for interval in row] for size, row in TABLE_5_1.items()}
FREE = {4 * KB: INTERVALS[4 << 10], 512 * KB: INTERVALS[512 << 10][:3], 4 * MB: INTERVALS[4 << 20][:3]}
"""Intervals of I/O at which it does not congest itself."""


def survey(measured: str) -> list[Row]:
    rows = STUDIES.get("interference", ())
    return [row for row in rows if row["run"] == "interference" and row["measured"] == measured and row["slowdown"]]


# -- section 5.4.1


def threshold(size: float, above: float | None, below: float | None) -> Verdict:
    found = {interval: find_alone("io", (size, interval)) for interval in INTERVALS[int(size)]}
    rows = all_there(*found.values())
    if rows is None:
        return OPEN
    times = {interval: float(row["mean_us"]) for interval, row in zip(found, rows, strict=True)}
    longest, shortest, seeds = max(times), min(times), tell_seeds(*rows)
    if times[shortest] < CONGESTED * times[longest]:
        said = f"none: {times[longest]:.2f} us at {longest:g} us, {times[shortest]:.2f} us at {shortest:g} us{seeds}"
        return said, above is None
    cycle = shortest + times[shortest]
    congested = max(interval for interval, time in times.items() if cycle >= NEAR * (interval + time))
    free = min(interval for interval in times if interval > congested)
    said = f"between {free:g} and {congested:g} us ({times[free]:.0f} and {times[congested]:.0f} us a request){seeds}"
    return said, (free, congested) == (above, below)


def alone() -> Verdict:
    row = find_alone("io", (4 * KB, 1.0))
    return (f"{show(row, 'mean_us')} us", is_close(row["mean_us"], 3.07)) if row else OPEN


def small_io() -> Verdict:
    row = find_pair("io", (4 * KB, 1.0), (4 * MB, 100.0))
    return (show(row), is_close(row["slowdown"], 1.9)) if row else OPEN


def nothing_small() -> Verdict:
    rows = [row for job in ("io", "mpi") for row in survey(job) if row["io_bytes"] == row["mpi_bytes"] == 4 * KB]
    if len(rows) < 72:
        return OPEN
    high = max(row["slowdown"] for row in rows)
    return f"at most {high:.2f} in {len(rows)} pairs{tell_seeds(*rows)}", high <= NO_MORE


def largest(measured: str, printed: float) -> Verdict:
    """Of all pairs; the print has it in chart C: 4 KB beside 4 MB."""
    rows = survey(measured)
    if len(rows) < 200:
        return OPEN
    row = max(rows, key=lambda row: row["slowdown"])
    other = {"io": "mpi", "mpi": "io"}[measured]
    sizes = row[f"{measured}_bytes"], row[f"{other}_bytes"]
    said = f"{show(row)} with {sizes[0] / KB:g} KB beside {sizes[1] / KB:g} KB, of {len(rows)} of 324 pairs"
    return said, is_close(row["slowdown"], printed) and sizes == (4 * KB, 4 * MB)


def grows_before() -> Verdict:
    """Charts B, C, E, F and I: at the shortest MPI interval more than at the longest."""
    charts = [(own, other) for own in FREE for other in (512 * KB, 4 * MB) if (own, other) != (4 * MB, 512 * KB)]
    pairs = [
        [
            find_pair("io", (own, interval), (other, each))
            for each in (INTERVALS[int(other)][0], INTERVALS[int(other)][-1])
        ]
        for own, other in charts
        for interval in FREE[own]
    ]
    there = [pair for pair in (all_there(*each) for each in pairs) if pair]
    if not there:
        return OPEN
    grown = [short for long, short in there if short["slowdown"] > long["slowdown"]]
    said = f"in {len(grown)} of {len(there)} rows of {len(pairs)}, to {show_range([short for _, short in there])}"
    return said + tell_seeds(*there[0]), len(grown) == len(there)


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
    return said, all(1 / NO_MORE <= row["slowdown"] <= NO_MORE for row in there)


def at_2_ms() -> Verdict:
    rows = [find_pair("io", (4 * MB, 2000.0), (4 * MB, other)) for other in (5000.0, 1000.0, 500.0, 100.0)]
    there = [row for row in rows if row]
    if not there:
        return OPEN
    return f"{show_range(there)} in {len(there)} of 4 pairs{tell_seeds(*there)}", max(
        row["slowdown"] for row in there
    ) <= NO_MORE


def stays_above() -> Verdict:
    """The least time alone past the threshold, and the most beside MPI before it."""
    past = all_there(*(find_alone("io", (4 * MB, interval)) for interval in INTERVALS[4 << 20][3:]))
    before = [find_pair("io", (4 * MB, own), (4 * MB, other)) for own in FREE[4 * MB] for other in INTERVALS[4 << 20]]
    there = [row for row in before if row]
    if past is None or not there:
        return OPEN
    low, high = min(row["mean_us"] for row in past), max(row["mean_us"] for row in there)
    return f"{low:.0f} us, {high:.0f} us in {len(there)} of 18 pairs{tell_seeds(*there)}", low > high


# -- section 5.4.2


def small_mpi() -> Verdict:
    row = find_pair("mpi", (4 * KB, 500.0), (4 * MB, 100.0))
    return (show(row), is_close(row["slowdown"], 7.6)) if row else OPEN


def falling() -> Verdict:
    rows = all_there(*(find_pair("mpi", (4 * KB, own), (4 * MB, 100.0)) for own in (500.0, 1.0)))
    if rows is None:
        return OPEN
    return f"{show(rows[0])} at 500 us, {show(rows[1])} at 1 us", rows[0]["slowdown"] > rows[1]["slowdown"]


def percentile() -> Verdict:
    rows = all_there(*(find_alone("mpi", (4 * MB, interval)) for interval in (5e3, 1e3)))
    if rows is None:
        return OPEN
    first, second = (row["p75_us"] for row in rows)
    return f"{first:.0f} and {second:.0f} us{tell_seeds(*rows)}", is_close(first, 351) and is_close(second, 630)


def still_slowed() -> Verdict:
    rows = [find_pair("mpi", (4 * MB, own), (4 * MB, 100.0)) for own in (500.0, 100.0)]
    there = all_there(*rows)
    if there is None:
        return OPEN
    return " and ".join(show(row) for row in there), all(row["slowdown"] > NO_MORE for row in there)


def heavy_tails() -> Verdict:
    rows = all_there(
        find_pair("io", (4 * KB, 1.0), (4 * MB, 100.0)), find_pair("mpi", (4 * KB, 500.0), (4 * MB, 100.0))
    )
    if rows is None:
        return OPEN
    ratios = [row["mean_us"] / row["p50_us"] for row in rows]
    return " and ".join(f"{ratio:.2f} times" for ratio in ratios) + tell_seeds(*rows), min(ratios) > NO_MORE


def io_over_mpi() -> Verdict:
    pairs = [all_there(*(find_alone(job, own) for job in ("io", "mpi"))) for own in ((512 * KB, 500.0), (4 * MB, 5e3))]
    there = [pair for pair in pairs if pair]
    if len(there) < len(pairs):
        return OPEN
    ratios = [one["mean_us"] / two["mean_us"] for one, two in there]
    return " and ".join(f"{ratio:.2f} times" for ratio in ratios), min(ratios) > 1


# -- section 5.4.3


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
    """Before the threshold; an adaptive row that never becomes stationary is no slow-down that is gone."""
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
    high = {routing: max(row["slowdown"] for row in each) for routing, each in found.items()}
    said = f"at most {high['adaptive']:.2f}, static {high['static']:.2f}"
    said += f"; a seed without a steady state in {unsteady} of {len(rows['adaptive'])} adaptive" if unsteady else ""
    return said + tell_seeds(*found["adaptive"]), high["adaptive"] <= NO_MORE and not unsteady


def routing_threshold() -> Verdict:
    rows = all_there(*(routing_row("io", "adaptive", interval) for interval in (5000.0, 100.0)))
    if rows is None:
        return OPEN
    long, short = (row["mean_us"] for row in rows)
    return f"{long:.0f} us at 5 ms, {short:.0f} us at 100 us{tell_seeds(*rows)}", short >= CONGESTED * long


# -- section 5.4.4


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
    return f"{large:.0f} and {congested:.0f} us{tell_seeds(*rows)}", is_close(large, congested)


def large_least() -> Verdict:
    rows = all_there(*(scaled("interference", share, 2000.0) for share in (0.25, 0.5, 0.75)))
    if rows is None:
        return OPEN
    slow = [row["slowdown"] for row in rows]
    return " : ".join(f"{each:.2f}" for each in slow) + f" at 2 ms{tell_seeds(*rows)}", slow[2] == min(slow)


def small_most() -> Verdict:
    row = scaled("interference", 0.25, 128000.0)
    return (show(row), abs(row["slowdown"] - 1.18) <= 0.05) if row else OPEN


def shares_mpi() -> Verdict:
    rows = [row for row in list_rows("scaling", "mpi", "interference", mpi_share=0.75) if row["slowdown"]]
    if not rows:
        return OPEN
    low, high = (pick(row["slowdown"] for row in rows) for pick in (min, max))
    said = f"{low:.2f} to {high:.2f} in {len(rows)} of 5 sizes{tell_seeds(*rows)}"
    return said, is_close(low, 1.6) and is_close(high, 3.2)


def shares_size() -> Verdict:
    rows = all_there(
        *(find("scaling", "mpi", "interference", mpi_bytes=size * KB, mpi_share=share, io_interval_us=0.0)
          for share in (0.25, 0.5, 0.75) for size in (4, 1024))
    )  # fmt: skip
    if rows is None:
        return OPEN
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    said = "; ".join(f"{show(small)} and {show(large)}" for small, large in pairs)
    return said, all(small["slowdown"] > large["slowdown"] for small, large in pairs)


def shares_alike() -> Verdict:
    """The most over the least mean of a size without I/O."""
    ratios = []
    for size in (4, 16, 64, 256, 1024):
        rows = all_there(
            *(find("scaling", "mpi", "baseline", mpi_bytes=size * KB, mpi_share=share) for share in (0.25, 0.5, 0.75))
        )
        if rows is None:
            return OPEN
        means = [row["mean_us"] for row in rows]
        ratios.append(max(means) / min(means))
    return f"{max(ratios[:-1]):.2f} times at most, {ratios[-1]:.2f} for 1 MB", max(ratios) <= NO_MORE


CLAIMS: list[tuple[str, str, str, Callable[[], Verdict]]] = [
    ("5.3", "I/O-congestion threshold, 4 MB", "between 5 and 1 ms", lambda: threshold(4 * MB, 5000.0, 1000.0)),
    ("5.3", "the same, 512 KB", "between 500 and 100 us", lambda: threshold(512 * KB, 500.0, 100.0)),
    ("5.3", "the same, 4 KB", "none", lambda: threshold(4 * KB, None, None)),
    ("5.3 A, 5.5 A", "4 KB beside 4 KB, either way", "no variation", nothing_small),
    ("5.3 C", "4 KB I/O alone, 1 us", "3.07 us", alone),
    ("5.3 C", "the same beside 4 MB MPI at 100 us", "1.9 times (5.9 us)", small_io),
    ("5.3", "largest slow-down of I/O", "1.9 times, in chart C", lambda: largest("io", 1.9)),
    ("5.3 B, C, E, F, I", "slow-down before the threshold, as the MPI interval falls", "grows", grows_before),
    ("5.3 I", "4 MB I/O past its threshold beside 4 MB MPI", "no impact", past_threshold),
    ("5.4", "4 MB I/O at 2 ms beside 4 MB MPI", "little or no increase", at_2_ms),
    ("5.4", "4 MB I/O past its threshold alone, and before it beside MPI", "the former is higher", stays_above),
    ("5.5 C", "4 KB MPI at 500 us beside 4 MB I/O at 100 us", "7.6 times", small_mpi),
    ("5.5", "largest slow-down of MPI", "7.6 times, in chart C", lambda: largest("mpi", 7.6)),
    ("5.5 C", "4 KB MPI beside 4 MB I/O at 100 us, as the MPI interval falls", "falls", falling),
    ("5.5 I", "75th percentile of 4 MB MPI alone at 5 and 1 ms", "351 and 630 us", percentile),
    ("5.5 I", "4 MB MPI at 500 and 100 us beside 4 MB I/O at 100 us", "still slowed", still_slowed),
    ("5.3 C, 5.5 C", "mean over median beside the other job", "far above", heavy_tails),
    ("5.3, 5.5", "I/O alone over MPI alone, 512 KB at 500 us and 4 MB at 5 ms", "higher", io_over_mpi),
    ("5.8", "512 KB I/O alone, adaptive over static", "higher", lambda: routing_base("io")),
    ("5.9", "512 KB MPI alone, adaptive over static", "higher", lambda: routing_base("mpi")),
    ("5.8", "slow-down of I/O before the threshold, adaptive", "none", lambda: routing_free("io")),
    ("5.9", "slow-down of MPI before the threshold, adaptive", "none", lambda: routing_free("mpi")),
    ("5.8", "512 KB I/O alone, adaptive: the threshold", "remains", routing_threshold),
    ("5.10", "4 MB I/O at 2 ms alone, shares 25 : 50 : 75 %", "1 : 1.8 : 3", shares_io),
    ("5.10", "75 % at 2 ms and 50 % at 100 us, alone", "the same", large_like_congested),
    ("5.10", "slow-down by share", "75 % suffers least", large_least),
    ("5.10", "25 % at 128 ms beside 4 MB MPI", "1.18 times, the most", small_most),
    ("5.11", "MPI with 75 % of the hosts beside a checkpoint", "1.6 to 3.2 times", shares_mpi),
    ("5.11", "4 KB and 1 MB MPI, shares of 25, 50, 75 %", "small sizes suffer most", shares_size),
    ("5.11", "MPI alone, by share", "hardly differs, 1 MB slightly", shares_alike),
]
