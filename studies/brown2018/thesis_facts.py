# SPDX-License-Identifier: Apache-2.0
"""Compute the numbers in the prose of README.md from the results, and list missing results."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from statistics import median

from thesis_chapter6 import by_servers, find_throttled, find_unthrottled
from thesis_patterns import INTERVALS
from thesis_results import (
    ALL_SEEDS,
    KB,
    MB,
    PAGE,
    STUDIES,
    Row,
    find_alone,
    find_pair,
    is_apart,
    list_rows,
    show,
    show_range,
    survey,
)
from thesis_routing_claims import routing_row

LINK_GBYTES = 12.5
SURVEY = PAGE.parent / "survey.csv"
"""Path of a table: for each value of a quantity, the number of the survey's simulations that have this value."""
RUNS = ("baseline", "interference")


def name_interval(microseconds: float) -> str:
    return f"{microseconds / 1e3:g} ms" if microseconds >= 1000 else f"{microseconds:g} µs"


# -- the survey's simulations


def read_survey(quantity: str, *runs: str) -> list[tuple[float, int]]:
    """Return (value, number of simulations) for each value of a quantity."""
    with SURVEY.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["quantity"] == quantity and row["run"] in runs]
    return [(float(row["value"]), int(row["simulations"])) for row in rows]


def list_values(quantity: str, *runs: str) -> list[float]:
    """Return the values of a quantity, one for each simulation of the runs."""
    return [value for value, simulations in read_survey(quantity, *runs) for _ in range(simulations)]


def count_hops() -> str:
    return f"{sum(hops for hops, _ in read_survey('packet_hops', *RUNS)) / 1e11:.2f} * 10^11"


def count_simulations() -> str:
    return f"{sum(simulations for _, simulations in read_survey('packet_hops', *RUNS)):,}"


def left_out() -> str:
    counts = list_values("left_out_messages", "baseline")
    few = sum(count < 4.5 for count in counts)
    return f"a median of {median(counts):.1f} messages of each client, and 4 or fewer in {few} of {len(counts)}"


def measured() -> str:
    return f"{median(list_values('measured_messages', *RUNS)):.1f}"


# -- rows of the tables


def least_io() -> str:
    """Return the slow-downs of 512 KB I/O every 500 µs, next to 4 MB MPI with each of its three longest intervals."""
    rows = [find_pair("io", (512 * KB, 500.0), (4 * MB, interval)) for interval in INTERVALS[4 << 20][:3]]
    return ", ".join(show(row) for row in rows if row)


def parameter_range(column: str) -> str:
    """Return, over a parameter's values, the range of slow-downs of 4 KB MPI next to a checkpoint (static routing)."""
    usual = {"lane_bytes": 65536.0, "packet_bytes": 4096.0, "switch_ns": 90.0}
    del usual[column]
    rows = [row for row in list_parameters("mpi") if row["slowdown"]]
    return _range(row["slowdown"] for row in rows if all(row[key] == usual[key] for key in usual))


def list_parameters(measured: str) -> list[Row]:
    """Return slow-downs with static routing: of MPI next to a checkpoint, or of 4 KB I/O next to 4 MB MPI."""
    rows = [row for row in STUDIES["parameters"] if (row["run"], row["routing"]) == ("interference", "static")]
    rows = [row for row in rows if row["measured"] == measured and row["job_placement"] == "random-node"]
    return [row for row in rows if measured == "mpi" or row["io_bytes"] == 4 * KB]


def _range(values: Iterable[float]) -> str:
    low, *_, high = sorted(values)
    return f"{low:.1f} to {high:.1f}"


def adaptive_parameters() -> str:
    """Return the times of 4 MB I/O alone every 5 ms and 1 ms, with adaptive routing."""
    rows = [row for row in STUDIES["parameters"] if row["routing"] == "adaptive" and row["measured"] == "io"]
    alone = {row["io_interval_us"]: row for row in rows if row["run"] == "baseline"}
    return ", ".join(
        f"{show(alone[interval], 'mean_us', 0, ' µs')} at {name_interval(interval)}" for interval in (5000.0, 1000.0)
    )


def random_servers(measured: str) -> str:
    rows = by_servers(measured)
    if rows is None:
        return "not simulated yet"
    apart = "beyond both intervals" if is_apart(rows["isolated"], rows["random"]) else "the intervals overlap"
    return f"{show(rows['random'])} against {show(rows['isolated'])}, {apart}"


def near_4_ms() -> str:
    mpi, io = (find_throttled(job, 4000.0) for job in ("mpi", "io"))
    slow, short = (find_unthrottled(job, row) if row else None for job, row in (("mpi", mpi), ("io", io)))
    if not mpi or not io or not slow or not short:
        return "not simulated yet"
    quicker = slow["mean_us"] / mpi["mean_us"]
    last, mean = (io[column] / short[column] for column in ("io_whole_most_ms", "io_whole_ms"))
    return (
        f"MPI is {quicker:.1f} times as quick; the last client's I/O time changes by {100 * (last - 1):+.1f}%, "
        f"the mean client's by {100 * (mean - 1):+.1f}%"
    )


def steady_alone() -> str:
    rows = [routing_row("io", "adaptive", interval) for interval in INTERVALS[512 << 10][2:]]
    seeds = sorted({int(row["seeds"]) for row in rows if row})
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"


def past_threshold_most() -> str:
    rows = [
        find_pair("io", (4 * MB, own), (4 * MB, other))
        for own in INTERVALS[4 << 20][3:]
        for other in INTERVALS[4 << 20]
    ]
    return f"{max(row['slowdown'] for row in rows if row):.3f}"


def random_4_mb() -> str:
    row = find_pair("io", (4 * MB, 500.0), (4 * MB, 500.0))
    return show(row) if row else "not simulated yet"


# -- missing results


def list_lacks() -> str:
    """List each study's missing results, and results of fewer than `ALL_SEEDS` seeds, as text."""
    lines = []
    for name, label in _LABELS.items():
        rows = STUDIES[name]
        absent = [label(row) for row in rows if "not simulated yet" in row["note"] and not row["seeds"]]
        few: dict[int, list[str]] = {}
        for row in rows:
            if 0 < row["seeds"] < ALL_SEEDS:
                few.setdefault(int(row["seeds"]), []).append(label(row))
        said = [f"not simulated: {_list(absent)}"] if absent else []
        said += [f"results of {count} seed{'s' * (count > 1)}: {_list(each)}" for count, each in sorted(few.items())]
        lines.append(f"* {name}: " + ("; ".join(said) or "all results have five seeds") + ".")
    return "\n".join(lines)


def _list(labels: list[str]) -> str:
    """Return text with each label once. Labels with the same text before the colon are joined."""
    groups: dict[str, list[str]] = {}
    for label in dict.fromkeys(labels):
        head, _, tail = label.partition(": ")
        groups.setdefault(head, []).append(tail)
    return ", ".join(
        head if tails == [""] else f"{head} ({', '.join(tails) if len(tails) <= _NAMED else len(tails)})"
        for head, tails in groups.items()
    )


_NAMED = 8
"""Maximum number of listed names. Of more names than this, only the number is written."""


def _label_survey(row: Row) -> str:
    own, job = row["measured"], {"io": "I/O", "mpi": "MPI"}
    other = {"io": "mpi", "mpi": "io"}[own]
    said = f"{job[own]} of {row[f'{own}_bytes'] / KB:g} KB at {name_interval(row[f'{own}_interval_us'])}"
    if row["run"] == "baseline":
        return f"{said} alone"
    interval = name_interval(row[f"{other}_interval_us"])
    return f"{said} next to {job[other]} of {row[f'{other}_bytes'] / KB:g} KB at {interval}"


def _label_scaling(row: Row) -> str:
    own, company = row["measured"], "alone" if row["run"] == "baseline" else "next to the other job"
    if own == "io":
        return f"I/O ({100 * row['io_share']:g}% of the hosts) {company}: {name_interval(row['io_interval_us'])}"
    return f"MPI ({100 * row['mpi_share']:g}% of the hosts) {company}: {row['mpi_bytes'] / KB:g} KB"


def _label_throttle(row: Row) -> str:
    if row["measured"] == "mpi":
        what = "MPI alone" if row["run"] == "baseline" else "MPI next to I/O"
    else:
        what = "all of a client's I/O" if row["io_limit"] > 100 else "the start of a client's I/O"
        what += " alone" if row["run"] == "baseline" else " next to MPI"
    return f"{what}: {'no window' if not row['io_window_us'] else name_interval(row['io_window_us'])}"


def _label_parameters(row: Row) -> str:
    changed = [
        text
        for text, differs in (
            (f"lane {row['lane_bytes'] / KB:g} KiB", row["lane_bytes"] != 65536),
            (f"packet {row['packet_bytes']:g} B", row["packet_bytes"] != 4096),
            (f"switch {row['switch_ns']:g} ns", row["switch_ns"] != 90),
            ("adaptive", row["routing"] == "adaptive"),
        )
        if differs
    ] or ["usual"]
    if row["measured"] == "mpi":
        what = "MPI" + (", random-switch" if row["job_placement"] == "random-switch" else "")
    else:
        size = "4 KB" if row["io_bytes"] == 4 * KB else "4 MB"
        what = f"{size} I/O at {name_interval(row['io_interval_us'])}"
    return f"{what}{' alone' if row['run'] == 'baseline' else ' next to the other job'}: {changed[0]}"


_LABELS: dict[str, Callable[[Row], str]] = {
    "interference": _label_survey,
    "detail": _label_survey,
    "scaling": _label_scaling,
    "throttle": _label_throttle,
    "parameters": _label_parameters,
}


def write_steady() -> str:
    """Return a table by intervals of I/O and MPI: the number of seeds with a steady state under adaptive routing."""
    intervals = INTERVALS[512 << 10]
    lines = [
        f"| I/O at | alone | {' | '.join(f'MPI at {name_interval(each)}' for each in intervals)} |",
        "|---" * (2 + len(intervals)) + "|",
    ]
    for own in intervals:
        (alone,) = list_rows("routing", "io", "baseline", routing="adaptive", io_interval_us=own)
        cells = [f"{alone['seeds']:g}"]
        for other in intervals:
            pair = {"routing": "adaptive", "io_interval_us": own, "mpi_interval_us": other}
            rows = [row for job in ("io", "mpi") for row in list_rows("routing", job, "interference", **pair)]
            cells.append(", ".join(f"{row['seeds']:g}" for row in rows))
        lines.append(f"| {name_interval(own)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def elevated_by_small_io() -> str:
    """Return slow-downs of 512 KB and 4 MB MPI next to 4 KB I/O at 1 µs (charts D and G of figure 5.5)."""
    rows = [row for row in survey("mpi") if row["io_interval_us"] == 1 and row["mpi_bytes"] > 4 * KB]
    above = sum(row["slowdown"] - row["slowdown_half"] > 1 for row in rows)
    return f"{show_range(rows)} times; in {above} of {len(rows)} pairs, the whole 95% interval is above 1"


def by_hosts() -> str:
    """Return figure 5.11's slow-downs of MPI with 75% of the hosts, computed from the mean of the hosts' mean times."""
    rows = [row for row in list_rows("scaling", "mpi", "interference", mpi_share=0.75) if row["node_slowdown"]]
    return show_range(rows, "node_slowdown")


def uplink_load() -> str:
    """Return the load that 4 KB I/O at 1 µs puts on the uplinks of clients' leaf switches, and the limit of this load.

    The servers' links, which all bytes pass, limit the load.
    """
    row = find_alone("io", (4 * KB, 1.0))
    assert row is not None
    links = 68 * 18 * LINK_GBYTES
    sent = 612 * row["io_bytes"] / (row["mean_us"] + row["io_interval_us"]) / 1e3
    return f"{sent / links:.1%}, and at most {72 / 68 / 18:.1%}"


FACTS: dict[str, Callable[[], str]] = {
    "hops": count_hops,
    "simulations": count_simulations,
    "left-out": left_out,
    "measured": measured,
    "least-io": least_io,
    "by-room": lambda: parameter_range("lane_bytes"),
    "by-packet": lambda: parameter_range("packet_bytes"),
    "by-switch": lambda: parameter_range("switch_ns"),
    "io-by-all": lambda: _range(row["slowdown"] for row in list_parameters("io") if row["slowdown"]),
    "adaptive-4-mb": adaptive_parameters,
    "random-servers-mpi": lambda: random_servers("mpi"),
    "random-servers-io": lambda: random_servers("io"),
    "near-4-ms": near_4_ms,
    "steady-alone": steady_alone,
    "past-threshold": past_threshold_most,
    "both-at-500-us": random_4_mb,
    "elevated-by-small-io": elevated_by_small_io,
    "uplink-load": uplink_load,
    "by-hosts": by_hosts,
}
"""Name of a fact in the page (`<!-- fact: NAME -->...<!-- end -->`) -> function that returns the fact's text."""
