# SPDX-License-Identifier: Apache-2.0
"""The claims of chapter 5 of the thesis, each compared with the results."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from scipy.stats import spearmanr
from thesis_patterns import TABLE_5_1
from thesis_results import (
    KB,
    MB,
    OPEN,
    STUDIES,
    Row,
    Verdict,
    adds_as,
    all_there,
    find,
    find_alone,
    find_pair,
    grows,
    is_apart,
    is_close,
    is_none,
    is_some,
    list_rows,
    show,
    show_range,
    tell_seeds,
)

from ibprof_converter.simulation.questions.congestion_threshold import CONGESTED, NEAR

INTERVALS = {size: [interval / 1e3 for interval in row] for size, row in TABLE_5_1.items()}
FREE = {4 * KB: INTERVALS[4 << 10], 512 * KB: INTERVALS[512 << 10][:3], 4 * MB: INTERVALS[4 << 20][:3]}
"""Intervals of I/O at which it does not congest itself."""
SCALED = tuple(1e3 * interval for interval in (2, 4, 8, 16, 32, 64, 128))
SCALED_KB = (4, 16, 64, 256, 1024)


def survey(measured: str) -> list[Row]:
    rows = STUDIES.get("interference", ())
    return [row for row in rows if row["run"] == "interference" and row["measured"] == measured and row["slowdown"]]


# -- section 5.4.1


def threshold(size: float, above: float | None, below: float | None) -> Verdict:
    rows = all_there(*(find_alone("io", (size, interval)) for interval in INTERVALS[int(size)]))
    return locate(rows, above, below) if rows else OPEN


def locate(rows: list[Row], above: float | None, below: float | None) -> Verdict:
    """Return the intervals that the threshold lies between, by the rule of `ibprof-sim threshold`."""
    times = {row["io_interval_us"]: float(row["mean_us"]) for row in rows}
    longest, shortest, seeds = max(times), min(times), tell_seeds(*rows)
    if times[shortest] < CONGESTED * times[longest]:
        said = f"none: {times[longest]:.2f} µs at {longest:g} µs, {times[shortest]:.2f} µs at {shortest:g} µs{seeds}"
        return said, above is None
    cycle = shortest + times[shortest]
    congested = max(interval for interval, time in times.items() if cycle >= NEAR * (interval + time))
    free = min(interval for interval in times if interval > congested)
    said = f"between {free:g} and {congested:g} µs ({times[free]:.0f} and {times[congested]:.0f} µs a request)"
    return said + seeds, (free, congested) == (above, below)


def alone() -> Verdict:
    row = find_alone("io", (4 * KB, 1.0))
    return (f"{show(row, 'mean_us')} µs", is_close(row["mean_us"], 3.07)) if row else OPEN


def small_io() -> Verdict:
    row = find_pair("io", (4 * KB, 1.0), (4 * MB, 100.0))
    return (show(row), adds_as(row["slowdown"], 1.9)) if row else OPEN


def nothing_small() -> Verdict:
    rows = [row for job in ("io", "mpi") for row in survey(job) if row["io_bytes"] == row["mpi_bytes"] == 4 * KB]
    if len(rows) < 72:
        return OPEN
    return f"{show_range(rows)} in {len(rows)} pairs{tell_seeds(*rows)}", all(is_none(row["slowdown"]) for row in rows)


def largest(measured: str, printed: float) -> Verdict:
    """Of all pairs; the print has it in chart C: 4 KB next to 4 MB."""
    rows = survey(measured)
    if len(rows) < 200:
        return OPEN
    row = max(rows, key=lambda row: row["slowdown"])
    other = {"io": "mpi", "mpi": "io"}[measured]
    sizes = row[f"{measured}_bytes"], row[f"{other}_bytes"]
    said = f"{show(row)} with {sizes[0] / KB:g} KB next to {sizes[1] / KB:g} KB, of {len(rows)} of 324 pairs"
    return said, adds_as(row["slowdown"], printed) and sizes == (4 * KB, 4 * MB)


def list_growth() -> list[list[Row]]:
    """Charts B, C, E, F and I before the threshold: a row of pairs from the longest MPI interval to the shortest."""
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
        "the shortest above the longest": sum(row[-1]["slowdown"] > row[0]["slowdown"] for row in rows),
        "beyond both intervals": sum(is_apart(row[0], row[-1]) for row in rows),
        "no step back beyond them": sum(grows(row) for row in rows),
        "no step back at all": sum(row == sorted(row, key=lambda each: each["slowdown"]) for row in rows),
    }
    said = ", ".join(f"{what} in {count}" for what, count in counts.items()) + f" of {len(rows)} rows"
    said += f"; rank correlation {min(ranks):.2f} to {max(ranks):.2f}; to {show_range([row[-1] for row in rows])}"
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
    said = f"{show_range(there)} in {len(there)} of 4 pairs, 75th percentile {min(quarter):.2f} to {max(quarter):.2f}"
    return said + tell_seeds(*there), all(is_none(each) for each in (*quarter, *(row["slowdown"] for row in there)))


def stays_above() -> Verdict:
    """Compare the shortest time alone past the threshold with the longest next to MPI before it."""
    past = all_there(*(find_alone("io", (4 * MB, interval)) for interval in INTERVALS[4 << 20][3:]))
    before = [find_pair("io", (4 * MB, own), (4 * MB, other)) for own in FREE[4 * MB] for other in INTERVALS[4 << 20]]
    there = [row for row in before if row]
    if past is None or not there:
        return OPEN
    low, high = min(row["mean_us"] for row in past), max(row["mean_us"] for row in there)
    return f"{low:.0f} µs, {high:.0f} µs in {len(there)} of 18 pairs{tell_seeds(*there)}", low > high


# -- section 5.4.2


def small_mpi() -> Verdict:
    row = find_pair("mpi", (4 * KB, 500.0), (4 * MB, 100.0))
    return (show(row), adds_as(row["slowdown"], 7.6)) if row else OPEN


def elevated() -> Verdict:
    """Charts B to I, the first letters for the smallest MPI: is a pair of each chart slowed?"""
    sizes = (4 * KB, 512 * KB, 4 * MB)
    most = {
        letter: max((row for row in survey("mpi") if (row["mpi_bytes"], row["io_bytes"]) == chart), key=_slowdown)
        for letter, chart in zip("BCDEFGHI", list(product(sizes, sizes))[1:], strict=True)
    }
    flat = [letter for letter, row in most.items() if not is_some(row["slowdown"])]
    said = "at most " + ", ".join(f"{letter} {row['slowdown']:.2f}" for letter, row in most.items())
    return said + tell_seeds(*most.values()), not flat


def _slowdown(row: Row) -> float:
    return float(row["slowdown"])


def congests_itself() -> Verdict:
    """MPI alone at its longest interval and its shortest."""
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
    high = {routing: max(each, key=_slowdown) for routing, each in found.items()}
    said = f"at most {show(high['adaptive'])}, static {show(high['static'])}"
    said += f"; a seed without a steady state in {unsteady} of {len(rows['adaptive'])} adaptive" if unsteady else ""
    return said, is_none(high["adaptive"]["slowdown"]) and not unsteady


def routing_threshold() -> Verdict:
    rows = all_there(*(routing_row("io", "adaptive", interval) for interval in INTERVALS[512 << 10]))
    return locate(rows, 500.0, 100.0) if rows else OPEN


def routing_congested(job: str) -> Verdict:
    """Compare times past the I/O threshold, adaptive routing over forwarding tables; of I/O alone too."""
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
    said = f"{min(ratios):.2f} to {max(ratios):.2f} times as long in {len(ratios)} cells"
    return said + tell_seeds(*used), all(is_close(ratio, 1) for ratio in ratios)


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
    return f"{large:.0f} and {congested:.0f} µs{tell_seeds(*rows)}", is_close(large, congested)


def shares_at(interval: float) -> list[Row] | None:
    return all_there(*(scaled("interference", share, interval) for share in (0.25, 0.5, 0.75)))


def large_least() -> Verdict:
    """At every interval that all shares were simulated at."""
    found = {interval: shares_at(interval) for interval in SCALED}
    there = {interval: rows for interval, rows in found.items() if rows}
    if not there:
        return OPEN
    least = sum(min(rows, key=_slowdown) is rows[2] for rows in there.values())
    apart = sum(is_apart(rows[2], rows[0]) for rows in there.values())
    said = "; ".join(
        " : ".join(f"{row['slowdown']:.2f}" for row in rows) + f" at {interval / 1e3:g} ms"
        for interval, rows in there.items()
    )
    said += f": least at {least} of {len(there)}, from 25 % beyond both intervals at {apart}"
    return said + tell_seeds(*(row for rows in there.values() for row in rows)), least == len(there)


def small_most() -> Verdict:
    row = scaled("interference", 0.25, 128000.0)
    return (show(row), adds_as(row["slowdown"], 1.18)) if row else OPEN


def most_of_all() -> Verdict:
    """Compare where the largest slow-down of figure 5.10 is."""
    found = [scaled("interference", share, each) for share in (0.25, 0.5, 0.75) for each in SCALED]
    there = [row for row in found if row]
    if len(there) < 2:
        return OPEN
    most = max(there, key=_slowdown)
    where = most["io_share"], most["io_interval_us"]
    said = f"{100 * where[0]:.0f} % at {where[1] / 1e3:g} ms: {show(most)}, of {len(there)} of {len(found)} cells"
    return said, where == (0.25, 128000.0)


def shares_mpi() -> Verdict:
    rows = [row for row in list_rows("scaling", "mpi", "interference", mpi_share=0.75) if row["slowdown"]]
    if not rows:
        return OPEN
    low, high = min(rows, key=_slowdown), max(rows, key=_slowdown)
    said = f"{show(low)} to {show(high)} in {len(rows)} of 5 sizes"
    return said, adds_as(low["slowdown"], 1.6) and adds_as(high["slowdown"], 3.2)


def share_rows(share: float) -> list[Row] | None:
    return all_there(
        *(find("scaling", "mpi", "interference", mpi_bytes=size * KB, mpi_share=share, io_interval_us=0.0)
          for size in SCALED_KB)
    )  # fmt: skip


def small_job_least() -> Verdict:
    """The MPI job with 25 % of the hosts against those with 50 and 75 %, at each size."""
    shares = [share_rows(share) for share in (0.25, 0.5, 0.75)]
    there = [rows for rows in shares if rows]
    if len(there) < len(shares):
        return OPEN
    least = [rows for rows in zip(*there, strict=True) if min(rows, key=_slowdown) is rows[0]]
    most = [rows for rows in zip(*there, strict=True) if max(rows, key=_slowdown) is rows[0]]
    said = f"least at {len(least)}, most at {len(most)} of 5 sizes: "
    said += " : ".join(f"{rows[0]['slowdown']:.2f}" for rows in there) + " of 4 KB"
    return said + tell_seeds(*(row for rows in there for row in rows)), len(least) == len(SCALED_KB)


def shares_size() -> Verdict:
    shares = [share_rows(share) for share in (0.25, 0.5, 0.75)]
    there = [rows for rows in shares if rows]
    if len(there) < len(shares):
        return OPEN
    said = "; ".join(f"{show(rows[0])} and {show(rows[-1])}" for rows in there)
    return said, all(grows(rows[::-1]) for rows in there)


def shares_alike() -> Verdict:
    """The most over the least mean of a size without I/O."""
    ratios = []
    for size in SCALED_KB:
        rows = all_there(
            *(find("scaling", "mpi", "baseline", mpi_bytes=size * KB, mpi_share=share) for share in (0.25, 0.5, 0.75))
        )
        if rows is None:
            return OPEN
        means = [row["mean_us"] for row in rows]
        ratios.append(max(means) / min(means))
    return f"{max(ratios[:-1]):.2f} times at most, {ratios[-1]:.2f} for 1 MB", all(map(is_none, ratios))


CLAIMS: list[tuple[str, str, str, Callable[[], Verdict]]] = [
    ("5.3", "I/O-congestion threshold, 4 MB", "between 5 and 1 ms", lambda: threshold(4 * MB, 5000.0, 1000.0)),
    ("5.3", "the same, 512 KB", "between 500 and 100 µs", lambda: threshold(512 * KB, 500.0, 100.0)),
    ("5.3", "the same, 4 KB", "none", lambda: threshold(4 * KB, None, None)),
    ("5.3 A, 5.5 A", "4 KB next to 4 KB, either way", "no variation", nothing_small),
    ("5.3 C", "4 KB I/O alone, 1 µs", "3.07 µs", alone),
    ("5.3 C", "the same next to 4 MB MPI at 100 µs", "1.9 times (5.9 µs)", small_io),
    ("5.3", "largest slow-down of I/O", "1.9 times, in chart C", lambda: largest("io", 1.9)),
    ("5.3 B, C, E, F, I", "slow-down before the threshold, as the MPI interval falls", "grows", grows_before),
    ("5.3 I", "4 MB I/O past its threshold next to 4 MB MPI", "no impact", past_threshold),
    ("5.4", "4 MB I/O at 2 ms next to 4 MB MPI", "little or no increase", at_2_ms),
    ("5.4", "4 MB I/O past its threshold alone, and before it next to MPI", "the former is higher", stays_above),
    ("5.5 C", "4 KB MPI at 500 µs next to 4 MB I/O at 100 µs", "7.6 times", small_mpi),
    ("5.5", "largest slow-down of MPI", "7.6 times, in chart C", lambda: largest("mpi", 7.6)),
    ("5.5 B to I", "MPI next to I/O", "some elevation in each chart", elevated),
    ("5.5 D to I", "512 KB and 4 MB MPI alone, longest interval to shortest", "visibly longer", congests_itself),
    ("5.5 C", "4 KB MPI next to 4 MB I/O at 100 µs, as the MPI interval falls", "falls", falling),
    ("5.5 I", "75th percentile of 4 MB MPI alone at 5 and 1 ms", "351 and 630 µs", percentile),
    ("5.5 I", "4 MB MPI at 500 and 100 µs next to 4 MB I/O at 100 µs", "still slowed", still_slowed),
    ("5.3 C, 5.5 C", "mean over median next to the other job", "far above", heavy_tails),
    ("5.3, 5.5", "I/O alone over MPI alone, 512 KB at 500 µs and 4 MB at 5 ms", "higher", io_over_mpi),
    ("5.8", "512 KB I/O alone, adaptive over static", "higher", lambda: routing_base("io")),
    ("5.9", "512 KB MPI alone, adaptive over static", "higher", lambda: routing_base("mpi")),
    ("5.8", "slow-down of I/O before the threshold, adaptive", "none", lambda: routing_free("io")),
    ("5.9", "slow-down of MPI before the threshold, adaptive", "none", lambda: routing_free("mpi")),
    ("5.8", "512 KB I/O alone, adaptive: the threshold", "remains", routing_threshold),
    ("5.8", "512 KB I/O past its threshold, alone and next to MPI, adaptive over static", "similar",
     lambda: routing_congested("io")),
    ("5.9", "512 KB MPI next to it, adaptive over static", "similar", lambda: routing_congested("mpi")),
    ("5.10", "4 MB I/O at 2 ms alone, shares 25 : 50 : 75 %", "1 : 1.8 : 3", shares_io),
    ("5.10", "75 % at 2 ms and 50 % at 100 µs, alone", "the same", large_like_congested),
    ("5.10", "slow-down by share, 25 : 50 : 75 %", "75 % suffers least", large_least),
    ("5.10", "25 % at 128 ms next to 4 MB MPI", "1.18 times", small_most),
    ("5.10", "largest slow-down", "25 % at 128 ms", most_of_all),
    ("5.11", "MPI with 75 % of the hosts next to a checkpoint", "1.6 to 3.2 times", shares_mpi),
    ("5.11", "MPI with 25, 50 and 75 % of the hosts, each size", "25 % suffers least", small_job_least),
    ("5.11", "4 KB and 1 MB MPI, shares of 25, 50, 75 %", "small sizes suffer most", shares_size),
    ("5.11", "MPI alone, by share", "hardly differs, 1 MB slightly", shares_alike),
]  # fmt: skip
