#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/thesis/interference.md from the results beside it; --check says whether they are so."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ibprof_converter.routing.subnet import read_subnet
from ibprof_converter.simulation.network import Hardware, index_network
from ibprof_converter.simulation.patterns import TABLE_5_1, THESIS_FABRIC
from ibprof_converter.simulation.results import read_means
from ibprof_converter.simulation.roles import JobPlacement, ServerPlacement, seat

PAGE = Path(__file__).resolve().parents[1] / "docs" / "thesis" / "interference.md"
KB, MB = 1024.0, 1048576.0
NEAR, CONGESTED = 0.9, 2.0  # as in simulation/threshold.py
CLOSE = 0.2  # a figure of ours passes within a fifth of the print's

Row = Mapping[str, Any]
Verdict = tuple[str, bool | None]
OPEN: Verdict = ("not simulated yet", None)

STUDIES = {
    path.stem: read_means([path])
    for path in sorted(PAGE.parent.glob("*.csv"))
}  # fmt: skip


def find(study: str, measured: str, run: str, **wanted: Any) -> Row | None:
    """Give the row of a study that is as wanted, and else of the thesis's usual configuration."""
    usual = {"server_placement": "isolated", "job_placement": "random-node", "routing": "static", "lane_bytes": 65536.0,
             "packet_bytes": 4096.0, "switch_ns": 90.0, f"{measured}_share": 0.5}  # fmt: skip
    each = {"measured": measured, "run": run, **usual, **wanted}
    rows = (row for row in STUDIES.get(study, ()) if row["mean_us"] is not None)
    return next((row for row in rows if all(row.get(key) == value for key, value in each.items())), None)


def show(row: Row, column: str = "slowdown") -> str:
    half = row.get({"slowdown": "slowdown_half", "mean_us": "mean_half_us"}[column])
    return f"{row[column]:.2f}" + (f" ± {half:.2f}" if half is not None else "")


def is_close(ours: float, printed: float) -> bool:
    return abs(ours / printed - 1) <= CLOSE


# -- section 5.4


def threshold(size: float, above: float | None, below: float | None) -> Verdict:
    times = {}
    for interval in TABLE_5_1[int(size)]:
        row = find("interference", "io", "baseline", io_bytes=size, io_interval_us=interval / 1e3)
        if row is None:
            return OPEN
        times[interval / 1e3] = float(row["mean_us"])
    longest, shortest = max(times), min(times)
    if times[shortest] < CONGESTED * times[longest]:
        return (
            f"none: {times[longest]:.2f} us at {longest:g} us, {times[shortest]:.2f} us at {shortest:g} us",
            above is None,
        )
    cycle = shortest + times[shortest]
    congested = max(interval for interval, time in times.items() if cycle >= NEAR * (interval + time))
    free = min(interval for interval in times if interval > congested)
    said = f"between {free:g} and {congested:g} us ({times[free]:.0f} and {times[congested]:.0f} us a request)"
    return said, (free, congested) == (above, below)


def small_io() -> Verdict:
    row = find("interference", "io", "interference", io_bytes=4 * KB, io_interval_us=1.0, mpi_bytes=4 * MB,
               mpi_interval_us=100.0)  # fmt: skip
    return (f"{show(row)}", is_close(row["slowdown"], 1.9)) if row else OPEN


def small_mpi() -> Verdict:
    rows = [find("interference", "mpi", "interference", mpi_bytes=4 * KB, mpi_interval_us=interval, io_bytes=4 * MB,
                 io_interval_us=100.0) for interval in (500.0, 1.0)]  # fmt: skip
    return (show(rows[0]), is_close(rows[0]["slowdown"], 7.6)) if rows[0] else OPEN


def checkpoint() -> Verdict:
    row = find("placement", "mpi", "interference")
    return (show(row), is_close(row["slowdown"], 7.6)) if row else OPEN


def falling() -> Verdict:
    rows = [find("interference", "mpi", "interference", mpi_bytes=4 * KB, mpi_interval_us=interval, io_bytes=4 * MB,
                 io_interval_us=100.0) for interval in (500.0, 1.0)]  # fmt: skip
    if not rows[0] or not rows[1]:
        return OPEN
    return f"{show(rows[0])} at 500 us, {show(rows[1])} at 1 us", rows[0]["slowdown"] > rows[1]["slowdown"]


def past_threshold() -> Verdict:
    rows = [find("interference", "io", "interference", io_bytes=4 * MB, io_interval_us=own, mpi_bytes=4 * MB,
                 mpi_interval_us=other / 1e3)
            for own in (1000.0, 500.0, 100.0) for other in TABLE_5_1[4 << 20]]  # fmt: skip
    rows = [row for row in rows if row]
    if not rows:
        row = find("parameters", "io", "interference", io_bytes=4 * MB, io_interval_us=1000.0)
        rows = [row] if row else []
    if not rows:
        return OPEN
    low, high = min(row["slowdown"] for row in rows), max(row["slowdown"] for row in rows)
    return f"{low:.2f} to {high:.2f} in {len(rows)} of 18 pairs", low >= 0.9 and high <= 1.1


def nothing_small() -> Verdict:
    rows = [row for row in STUDIES.get("interference", ()) if row["run"] == "interference" and row["mean_us"]
            and row["io_bytes"] == row["mpi_bytes"] == 4 * KB]  # fmt: skip
    if len(rows) < 36:
        return OPEN
    high = max(row["slowdown"] for row in rows)
    return f"at most {high:.2f} in {len(rows)} pairs", high <= 1.1


def percentile() -> Verdict:
    rows = [
        find("interference", "mpi", "baseline", mpi_bytes=4 * MB, mpi_interval_us=interval) for interval in (5e3, 1e3)
    ]
    if not all(rows):
        return OPEN
    first, second = (row["p75_us"] for row in rows if row)
    return f"{first:.0f} and {second:.0f} us", is_close(first, 351) and is_close(second, 630)


def alone() -> Verdict:
    row = find("interference", "io", "baseline", io_bytes=4 * KB, io_interval_us=1.0)
    return (f"{show(row, 'mean_us')} us", is_close(row["mean_us"], 3.07)) if row else OPEN


def routing_base(job: str) -> Verdict:
    pairs = [(find("routing", job, "baseline", routing="static", **{f"{job}_interval_us": i / 1e3}),
              find("routing", job, "baseline", routing="adaptive", **{f"{job}_interval_us": i / 1e3}))
             for i in TABLE_5_1[512 << 10]]  # fmt: skip
    ratios = [two["mean_us"] / one["mean_us"] for one, two in pairs if one and two]
    return (
        (f"{min(ratios):.2f} to {max(ratios):.2f} times, {len(ratios)} intervals", min(ratios) > 1) if ratios else OPEN
    )


def routing_free(job: str) -> Verdict:
    found = {}
    for routing in ("static", "adaptive"):
        rows = [row for row in STUDIES.get("routing", ()) if row["run"] == "interference" and row["measured"] == job
                and row["routing"] == routing and row["mean_us"] and row["io_interval_us"] >= 500]  # fmt: skip
        if not rows:
            return OPEN
        found[routing] = max(row["slowdown"] for row in rows)
    return f"at most {found['adaptive']:.2f}, static {found['static']:.2f}", found["adaptive"] <= 1.1


def shares_io() -> Verdict:
    rows = [find("scaling", "io", "baseline", io_bytes=4 * MB, io_interval_us=2000.0, io_share=share)
            for share in (0.25, 0.5, 0.75)]  # fmt: skip
    if not all(rows):
        return OPEN
    ratios = [row["mean_us"] / rows[0]["mean_us"] for row in rows if row and rows[0]]
    return " : ".join(f"{ratio:.1f}" for ratio in ratios), is_close(ratios[1], 1.8) and is_close(ratios[2], 3)


def shares_mpi() -> Verdict:
    rows = [row for row in STUDIES.get("scaling", ()) if row["measured"] == "mpi" and row["run"] == "interference"
            and row["mpi_share"] == 0.75 and row["mean_us"]]  # fmt: skip
    if not rows:
        return OPEN
    low, high = min(row["slowdown"] for row in rows), max(row["slowdown"] for row in rows)
    return f"{low:.2f} to {high:.2f} in {len(rows)} of 5 sizes", is_close(low, 1.6) and is_close(high, 3.2)


def shares_size() -> Verdict:
    rows = [find("scaling", "mpi", "interference", mpi_bytes=size * KB, mpi_share=share, io_interval_us=0.0)
            for share in (0.25, 0.5, 0.75) for size in (4, 1024)]  # fmt: skip
    if not all(rows):
        return OPEN
    pairs = [(small, large) for small, large in zip(rows[::2], rows[1::2], strict=True) if small and large]
    said = "; ".join(f"{show(small)} and {show(large)}" for small, large in pairs)
    return said, all(small["slowdown"] > large["slowdown"] for small, large in pairs)


# -- chapter 6


def switch_placement() -> Verdict:
    row = find("placement", "mpi", "interference", job_placement="random-switch")
    return (show(row), is_close(row["slowdown"], 1.0)) if row else OPEN


def io_placement(placement: str, printed: float) -> Verdict:
    row = find("placement", "io", "interference", job_placement=placement)
    return (show(row), abs(row["slowdown"] - printed) <= 0.05) if row else OPEN


def spread_best() -> Verdict:
    rows = {each.value: find("servers", "mpi", "interference", server_placement=each.value) for each in ServerPlacement}
    if not all(rows.values()):
        return OPEN
    said = ", ".join(f"{name} {show(row)}" for name, row in rows.items() if row)
    return said, min(rows, key=lambda name: rows[name]["slowdown"]) == "spread"  # type: ignore[index]


def random_like_isolated() -> Verdict:
    rows = [find("servers", "mpi", "interference", server_placement=each) for each in ("isolated", "random")]
    if not all(rows):
        return OPEN
    one, two = (row["slowdown"] for row in rows if row)
    return f"{show(rows[0])} and {show(rows[1])}", is_close(two, one)  # type: ignore[arg-type]


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


def find_throttled(measured: str, window: float) -> Row | None:
    """Of I/O jobs of several lengths, the longest that was simulated without a throttle too."""
    rows = [row for row in STUDIES.get("throttle", ()) if (row["measured"], row["run"]) == (measured, "interference")]
    rows = [row for row in rows if row["mean_us"] is not None and (measured == "mpi") == (not row["io_limit"])]
    both = {row["io_limit"] for row in rows if row["io_window_us"] == 0} & {
        row["io_limit"] for row in rows if row["io_window_us"] == window
    }
    return next((row for row in rows if both and row["io_limit"] == max(both) and row["io_window_us"] == window), None)


def throttled(window: float, least: float | None) -> Verdict:
    before, after = find_throttled("mpi", 0.0), find_throttled("mpi", window)
    if not before or not after:
        return OPEN
    said = f"{show(before, 'mean_us')} to {show(after, 'mean_us')} us"
    return said, None if least is None else before["mean_us"] / after["mean_us"] >= least


def throttle_cost(window: float, printed: float | None) -> Verdict:
    before, after = find_throttled("io", 0.0), find_throttled("io", window)
    if not before or not after:
        return OPEN
    first, then = before["io_whole_ms"], after["io_whole_ms"]
    ratio, written = then / first, after["io_limit"] * after["io_bytes"] / 1e9
    said = f"{first:.0f} to {then:.0f} ms for {written:.2f} GB: {100 * (ratio - 1):+.1f} %"
    return said, None if printed is None else abs(ratio - printed) <= 0.05


def several(ask: Callable[[float, float | None], Verdict], *windows: float) -> Verdict:
    said = [ask(window, None)[0] for window in windows]
    return "; ".join(said) if OPEN[0] not in said else OPEN[0], None


CLAIMS: dict[str, list[tuple[str, str, str, Callable[[], Verdict]]]] = {
    "chapter-5": [
        ("5.3", "I/O-congestion threshold, 4 MB", "between 5 and 1 ms", lambda: threshold(4 * MB, 5000.0, 1000.0)),
        ("5.3", "the same, 512 KB", "between 500 and 100 us", lambda: threshold(512 * KB, 500.0, 100.0)),
        ("5.3", "the same, 4 KB", "none", lambda: threshold(4 * KB, None, None)),
        ("5.3 A, 5.5 A", "4 KB beside 4 KB, either way", "no variation", nothing_small),
        ("5.3 C", "4 KB I/O alone, 1 us", "3.07 us", alone),
        ("5.3 C", "the same beside 4 MB MPI at 100 us", "1.9 times (5.9 us)", small_io),
        ("5.3 I", "4 MB I/O past its threshold beside 4 MB MPI", "no impact", past_threshold),
        ("5.5 C", "4 KB MPI at 500 us beside 4 MB I/O at 100 us", "7.6 times", small_mpi),
        ("5.5 C", "the same, as the MPI interval falls", "falls", falling),
        ("5.5 I", "75th percentile of 4 MB MPI alone at 5 and 1 ms", "351 and 630 us", percentile),
        ("5.8", "512 KB I/O alone, adaptive over static", "higher", lambda: routing_base("io")),
        ("5.9", "512 KB MPI alone, adaptive over static", "higher", lambda: routing_base("mpi")),
        ("5.8", "slow-down of I/O before the threshold, adaptive", "none", lambda: routing_free("io")),
        ("5.9", "slow-down of MPI before the threshold, adaptive", "none", lambda: routing_free("mpi")),
        ("5.10", "4 MB I/O at 2 ms alone, shares 25 : 50 : 75 %", "1 : 1.8 : 3", shares_io),
        ("5.11", "MPI with 75 % of the hosts beside a checkpoint", "1.6 to 3.2 times", shares_mpi),
        ("5.11", "4 KB and 1 MB MPI, by share", "small sizes suffer most", shares_size),
    ],
    "chapter-6": [
        ("6.2", "4 KB MPI beside a checkpoint, random-node", "7.6 times (\"800 %\")", checkpoint),
        ("6.2", "the same, random-switch", "negligible", switch_placement),
        ("6.2", "4 MB I/O at 128 ms beside 4 MB MPI, random-node", "1.12 (+11.8 %)",
         lambda: io_placement("random-node", 1.118)),
        ("6.2", "the same, random-switch", "minimal", lambda: io_placement("random-switch", 1.0)),
        ("6.5", "MPI by where the servers are", "spread is best", spread_best),
        ("6.5", "isolated and random servers", "similar", random_like_isolated),
        ("6.5", "level-2 switches that send down to spread servers", "4 of 72", down_switches),
        ("6.7", "MPI with a throttle window of 2 ms", "over 200 % better", lambda: throttled(2000.0, 2.0)),
        ("6.7", "time of a client's whole I/O with 2 ms", "+11.2 % (or 18 %)", lambda: throttle_cost(2000.0, 1.112)),
        ("6.7", "MPI with 3, 4 and 5 ms", "better still", lambda: several(throttled, 3000.0, 4000.0, 5000.0)),
        ("6.7", "time of a client's whole I/O with 3, 4 and 5 ms", "grows gradually",
         lambda: several(throttle_cost, 3000.0, 4000.0, 5000.0)),
    ],
}  # fmt: skip


def write_claims(chapter: str) -> str:
    lines = ["| figure | what | print | ours | |", "|---|---|---|---|---|"]
    for figure, what, printed, ask in CLAIMS[chapter]:
        ours, passed = ask()
        verdict = {True: "pass", False: "**mismatch**", None: ""}[passed]
        lines.append(f"| {figure} | {what} | {printed} | {ours} | {verdict} |")
    return "\n".join(lines)


def write_parameters() -> str:
    base = {"lane_bytes": 65536.0, "packet_bytes": 4096.0, "switch_ns": 90.0, "routing": "static"}
    rows = STUDIES.get("parameters", ())
    settings = list(dict.fromkeys(tuple(row[key] for key in base) for row in rows if row["mean_us"] is not None))
    lines = ["| lane | packet | switch | routing | 4 KB MPI beside a checkpoint | 4 KB I/O beside 4 MB MPI | "
             "4 MB I/O alone, 5 and 1 ms | random-switch |", "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for setting in settings:
        here = dict(zip(base, setting, strict=True))
        cells = [
            (find("parameters", "mpi", "interference", **here, job_placement="random-node"), "slowdown"),
            (find("parameters", "io", "interference", **here, io_bytes=4 * KB), "slowdown"),
            (find("parameters", "io", "baseline", **here, io_interval_us=5000.0), "mean_us"),
            (find("parameters", "io", "baseline", **here, io_interval_us=1000.0), "mean_us"),
            (find("parameters", "mpi", "interference", **here, job_placement="random-switch"), "slowdown"),
        ]
        said = [("" if row is None else f"{row[column]:.2f}" if column == "slowdown" else f"{row[column]:.0f} us")
                for row, column in cells]  # fmt: skip
        lines.append(f"| {here['lane_bytes'] / 1024:g} KiB | {here['packet_bytes']:g} B | {here['switch_ns']:g} ns | "
                     f"{here['routing']} | {said[0]} | {said[1]} | {said[2]}, {said[3]} | {said[4]} |")  # fmt: skip
    return "\n".join(lines)


def write_progress() -> str:
    lines = ["| study | rows | with a mean | seeds |", "|---|---|---|---|"]
    for name, rows in STUDIES.items():
        done = [row for row in rows if row["mean_us"] is not None]
        seeds = sorted({int(row["seeds"]) for row in done}) or [0]
        lines.append(f"| {name} | {len(rows)} | {len(done)} | {seeds[0]} to {seeds[-1]} |")
    return "\n".join(lines)


def fill(page: str) -> str:
    """Put the tables of today's results between their marks."""
    tables = {name: write_claims(name) for name in CLAIMS}
    tables |= {"parameters": write_parameters(), "progress": write_progress()}
    for name, table in tables.items():
        begin = page.index(f"<!-- table: {name} -->\n") + len(f"<!-- table: {name} -->\n")
        page = page[:begin] + table + "\n" + page[page.index("<!-- end -->", begin) :]
    return page


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    after = fill(before)
    if "--check" in sys.argv:
        sys.exit(0 if before == after else f"{PAGE}: its tables are not those of the results beside it")
    PAGE.write_text(after, encoding="utf-8")
