# SPDX-License-Identifier: Apache-2.0
"""`ibprof calls`: print the time, calls and bytes of each MPI call site."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ibprof.cli.command import add_row_arguments, command, make_parser, print_json, print_pairs, print_table
from ibprof.errors import UsageError
from ibprof.text.quantities import format_bytes, format_seconds, name_call, printable, shorten_site

if TYPE_CHECKING:
    from ibprof.profile.call_report import CallReport, CallSum
    from ibprof.profile.efficiency import Efficiency, Waiting

PARTS = ("wait_s", "transfer_s", "unsplit_s", "split_error_s")
COLUMNS = ("calls", "time_s", "bytes", "messages", *PARTS)
SHOWN = 10

EXAMPLES = """\
examples:
  ibprof calls profile.otf2
  ibprof calls profile.otf2 --by operation,site --csv calls.csv
  ibprof calls profile.otf2 --by rank,operation --json
  ibprof calls profile.otf2 --folded calls.folded --folded-by bytes
  ibprof calls profile.otf2 --speedscope calls.speedscope.json
  ibprof calls profile.otf2 --site solver.c:212 --by rank
"""


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "ibprof calls",
        "Print for each call site (file.c:LINE): number of MPI calls, seconds in these calls, sent bytes and messages. "
        "Efficiencies of the run and an estimate of waiting follow. Only a random sample of short calls is timed.",
        EXAMPLES,
    )
    parser.add_argument("profile", metavar="PROFILE", type=Path, help="a profile or a recording")
    parser.add_argument(
        "--by",
        default="operation,site",
        metavar="KEYS",
        help="keys of the rows: rank, host, region, operation, site, separated by commas (default: %(default)s)",
    )
    add_row_arguments(parser)
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write all rows to FILE as CSV; - is stdout")
    parser.add_argument("--json", action="store_true", help="print all rows as JSON")
    parser.add_argument(
        "--folded", metavar="FILE", type=Path, help="write folded stacks to FILE, for speedscope or flamegraph.pl"
    )
    parser.add_argument(
        "--folded-by",
        choices=("time", "bytes"),
        default="time",
        help="weight of a stack. time: microseconds inside calls, summed over ranks; bytes: bytes sent (default: time)",
    )
    parser.add_argument(
        "--speedscope", metavar="FILE", type=Path, help="write a speedscope file: by time, and by bytes sent"
    )
    parser.add_argument("--run", metavar="NAME", help="which run of a recording (default: the newest)")
    return parser


@command("ibprof calls")
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof calls`."""
    options = _parser().parse_args(argv)
    by = tuple(options.by.split(","))

    from ibprof.load import load_profile  # noqa: PLC0415  (late, so that --help is fast)
    from ibprof.profile.call_report import KEYS, report_calls, sum_calls  # noqa: PLC0415
    from ibprof.profile.flame_graphs import STACK, write_folded, write_speedscope  # noqa: PLC0415
    from ibprof.profile.profile_rows import RowChoice  # noqa: PLC0415
    from ibprof.verdict.transfer_causes import name_carriers  # noqa: PLC0415
    from ibprof.waiting.wait_split import measure_waiting  # noqa: PLC0415

    if not set(by) <= set(KEYS) or len(set(by)) < len(by):
        raise UsageError(f"--by: expected different keys of {', '.join(KEYS)}, found {options.by}")
    if options.json and str(options.csv) == "-":
        raise UsageError("--csv - and --json: both write to stdout; use one")
    run = load_profile(options.profile, options.run)
    choice = RowChoice(options.operation, options.region, options.site)
    measured = measure_waiting(run)
    report = report_calls(run, by, choice, measured.shares if measured else None)
    if options.folded:
        stacks = write_folded(sum_calls(run, STACK, choice), options.folded_by)
        options.folded.write_text(stacks, encoding="utf-8")
    if options.speedscope:
        options.speedscope.write_text(write_speedscope(run.name, sum_calls(run, STACK, choice)), encoding="utf-8")
    if options.csv and str(options.csv) != "-":
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            _write_csv(file, report)
    if options.json:
        pairs = name_carriers(run, measured.pairs) if measured else ()
        print_json({**report.as_json(), "host_pairs": [asdict(pair) for pair in pairs]})
        return
    for note in report.notes:
        print(f"ibprof calls: {printable(note)}", file=sys.stderr)
    if not options.csv:
        _print_text(run.command, run.library, len(run.ranks), report)
    elif str(options.csv) == "-":
        _write_csv(sys.stdout, report)


def _write_csv(file: object, report: CallReport) -> None:
    writer = csv.writer(file, lineterminator="\n")  # type: ignore[arg-type]
    writer.writerow((*report.by, *COLUMNS))
    for row in report.rows:
        calls, time_s = ("" if row.calls is None else row.calls), ("" if row.time_s is None else f"{row.time_s:.9f}")
        parts = ("" if part is None else f"{part:.9f}" for part in (getattr(row, name) for name in PARTS))
        writer.writerow((*row.key, calls, time_s, row.bytes, row.messages, *parts))


def _print_text(command: str, library: str, ranks: int, report: CallReport) -> None:
    time, total_s = report.time, (report.time.mean_s * report.time.ranks if report.time else 0.0)
    run_s = time.run_s if time else None
    print_pairs(
        {
            "command": command,
            "ranks": f"{ranks:,}",
            "run": format_seconds(run_s) if run_s is not None else "",
            f"in {library}": "".join(_describe_time(report)),
            "efficiency": _describe_efficiency(report.efficiencies.run),
        }
    )
    columns = (
        *report.by,
        "calls",
        "time, mean",
        f"of {library}",
        "of the run",
        "slowest rank",
        "spread",
        "bytes",
        "messages",
    )
    is_split = any(row.wait_s is not None for row in report.rows)
    print_table(
        (*columns, "waiting", "transfer", "unsplit") if is_split else columns,
        (
            (*_shown(report.by, row, time.ranks if time else ranks, total_s, run_s), *_shown_parts(row, is_split))
            for row in report.rows[:SHOWN]
        ),
    )
    if len(report.rows) > SHOWN:
        print(f"({len(report.rows) - SHOWN:,} more rows; --csv and --json have all of them)\n")
    print_table(
        ("region", "longest", "ranks", "parallel efficiency", "load balance", "communication efficiency"),
        (_efficiency_row(each) for each in report.efficiencies.regions[:SHOWN]),
    )
    if report.waiting and not is_split:
        print_table(
            ("collective", "site", "region", "time, mean", "waiting", "transfer", "quickest rank"),
            (_waiting_row(each) for each in report.waiting[:SHOWN]),
        )
        print(f"(waiting and transfer: {report.assumption})")


def _describe_time(report: CallReport) -> Iterator[str]:
    if time := report.time:
        yield f"{format_seconds(time.mean_s)}, mean over ranks"
        yield f", {time.share:.1%} of the run" if time.share is not None else ""
        yield f"; threads overlap for {format_seconds(time.overlap_s)} of it" if time.overlap_s else ""
        yield f"; slowest rank {time.slowest}: {format_seconds(time.slowest_s)}; spread {time.spread:.1%}"


def _describe_efficiency(run: Efficiency | None) -> str:
    if run is None:
        return ""
    parts = f"load balance {run.load_balance:.1%} x communication {run.communication:.1%}"
    return f"parallel {run.parallel:.1%} = {parts}"


def _efficiency_row(each: Efficiency) -> tuple[str, ...]:
    shares = (f"{share:.1%}" for share in (each.parallel, each.load_balance, each.communication))
    return each.region or "", format_seconds(each.elapsed_s), f"{each.ranks:,}", *shares


def _waiting_row(each: Waiting) -> tuple[str, ...]:
    parts = (
        f"{format_seconds(part / each.ranks)} ({part / each.time_s if each.time_s else 0:.1%})"
        for part in (each.waiting_s, each.transfer_s)
    )
    mean = format_seconds(each.time_s / each.ranks)
    return name_call(each.operation), shorten_site(each.site), each.region, mean, *parts, str(each.quickest)


def _key(by: Sequence[str], row: CallSum) -> tuple[str, ...]:
    return tuple(
        name_call(str(part)) if key == "operation" else shorten_site(str(part))
        for key, part in zip(by, row.key, strict=True)
    )


def _shown_parts(row: CallSum, is_split: bool) -> tuple[str, ...]:
    """Return waiting, transfer and unsplit time in percent of a row's time, with the error of waiting and transfer."""
    if not is_split or not row.time_s or row.wait_s is None:
        return ("", "", "") if is_split else ()
    parts = (row.wait_s, row.transfer_s or 0.0, row.unsplit_s or 0.0)
    error = f" +- {(row.split_error_s or 0.0) / row.time_s:.0%}"
    return tuple(f"{part / row.time_s:.0%}{error if place < 2 else ''}" for place, part in enumerate(parts))


def _shown(by: Sequence[str], row: CallSum, ranks: int, total_s: float, run_s: float | None) -> tuple[str, ...]:
    amounts = format_bytes(row.bytes), f"{row.messages:,}"
    if row.time_s is None or row.calls is None:
        return (*_key(by, row), "", "", "", "", "", "", *amounts)
    mean_s = row.time_s / ranks
    slowest = f"{row.slowest}: {format_seconds(row.slowest_s or 0)}" if row.slowest is not None else ""
    return (
        *_key(by, row),
        f"{row.calls:,}",
        format_seconds(mean_s),
        f"{row.time_s / total_s:.1%}" if total_s else "",
        f"{mean_s / run_s:.1%}" if run_s else "",
        slowest,
        f"{row.spread or 0:.1%}",
        *amounts,
    )
