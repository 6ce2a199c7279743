# SPDX-License-Identifier: Apache-2.0
"""`ibprof calls`: print the time, calls and bytes of each MPI call site."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ibprof.cli.command import run_command
from ibprof.cli.text_tables import print_pairs, print_table
from ibprof.errors import UsageError
from ibprof.text.quantities import format_bytes, format_seconds

if TYPE_CHECKING:
    from ibprof.profile.call_sums import CallSum
    from ibprof.profile.profile_data import Profile

COLUMNS = ("calls", "time_s", "bytes", "messages")
SHOWN = 10

NO_TIMES = "time inside calls was not recorded: run again with IBPROF_TIME=1"
NO_SITES = "call sites were not recorded: run again with IBPROF_SITES=1"

EXAMPLES = """\
examples:
  ibprof calls profile.otf2
  ibprof calls profile.otf2 --by operation,site --csv calls.csv
  ibprof calls profile.otf2 --by rank,operation --json
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof calls`."""
    return run_command("ibprof calls", _print_calls, argv)


@dataclass(frozen=True, slots=True)
class CallsOptions:
    """Options of `ibprof calls`."""

    profile: Path
    run: str | None
    by: tuple[str, ...]
    csv: Path | None
    json: bool


def _parse(argv: Sequence[str] | None) -> CallsOptions:
    parser = argparse.ArgumentParser(
        prog="ibprof calls",
        description="Print the number of MPI calls, the seconds inside them, and the bytes and messages that they "
        "sent, for each call site: file.c:LINE. Times are sums over ranks; short calls are timed at random.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("profile", metavar="PROFILE", type=Path, help="a profile or a recording")
    parser.add_argument(
        "--by",
        default="operation,site",
        metavar="KEYS",
        help="some of rank, host, region, operation and site, separated by commas (default: %(default)s)",
    )
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write all rows to FILE as CSV; - is stdout")
    parser.add_argument("--json", action="store_true", help="print all rows as JSON")
    parser.add_argument("--run", metavar="NAME", help="which run of a recording (default: the newest)")
    given = parser.parse_args(argv)
    return CallsOptions(given.profile, given.run, tuple(given.by.split(",")), given.csv, given.json)


def _print_calls(argv: Sequence[str] | None) -> None:
    options = _parse(argv)

    from ibprof.load import load_profile  # noqa: PLC0415  (--help must come at once)
    from ibprof.profile.call_sums import KEYS, sum_calls  # noqa: PLC0415

    if not set(options.by) <= set(KEYS) or len(set(options.by)) < len(options.by):
        raise UsageError(f"--by: expected some of {', '.join(KEYS)}, each once, found {','.join(options.by)}")
    run = load_profile(options.profile, options.run)
    rows = sum_calls(run, options.by)
    notes = list(_find_notes(run, options.by))
    if options.json:
        json.dump(_to_json(run, options.by, rows, notes), sys.stdout, indent=2)
        print()
        return
    for note in notes:
        print(f"ibprof calls: {note}", file=sys.stderr)
    if not options.csv:
        _print_text(run, options.by, rows)
    elif str(options.csv) == "-":
        _write_csv(sys.stdout, options.by, rows)
    else:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            _write_csv(file, options.by, rows)


def _find_notes(run: Profile, by: Sequence[str]) -> Iterable[str]:
    if not any(rank.has_times for rank in run.ranks):
        yield NO_TIMES
    elif missing := [rank.rank for rank in run.ranks if not rank.has_times]:
        yield f"time inside calls was not recorded on {len(missing)} of {len(run.ranks)} ranks"
    if "site" in by and not run.sites:
        yield NO_SITES
    yield from run.sites_without_lines if "site" in by else ()


def _write_csv(file: object, by: Sequence[str], rows: Sequence[CallSum]) -> None:
    writer = csv.writer(file, lineterminator="\n")  # type: ignore[arg-type]
    writer.writerow((*by, *COLUMNS))
    for row in rows:
        calls, time_s = ("" if row.calls is None else row.calls), ("" if row.time_s is None else f"{row.time_s:.9f}")
        writer.writerow((*row.key, calls, time_s, row.bytes, row.messages))


def _to_json(run: Profile, by: Sequence[str], rows: Sequence[CallSum], notes: Sequence[str]) -> dict[str, object]:
    return {
        "by": list(by),
        "ranks": len(run.ranks),
        "run_s": _run_s(run),
        "mpi_s": _mpi_s(rows, len(run.ranks)),
        "calls": [
            {
                **dict(zip(by, row.key, strict=True)),
                "calls": row.calls,
                "time_s": row.time_s,
                "time_error_s": row.error_s,
                "bytes": row.bytes,
                "messages": row.messages,
                "ranks": row.ranks,
                "slowest_rank": row.slowest,
                "slowest_rank_s": row.slowest_s,
            }
            for row in rows
        ],
        "notes": list(notes),
    }


def _run_s(run: Profile) -> float | None:
    """Return the seconds that ranks ran, as their mean; None where some were killed."""
    spans = [rank.stop_ns - rank.start_ns for rank in run.ranks if rank.stop_ns]
    return sum(spans) * 1e-9 / len(spans) if spans and len(spans) == len(run.ranks) else None


def _mpi_s(rows: Sequence[CallSum], ranks: int) -> float | None:
    """Return the seconds inside MPI, as the mean over ranks; None where they were not recorded."""
    times = [row.time_s for row in rows if row.time_s is not None]
    return sum(times) / ranks if times and ranks else None


def _print_text(run: Profile, by: Sequence[str], rows: Sequence[CallSum]) -> None:
    run_s, mpi_s = _run_s(run), _mpi_s(rows, len(run.ranks))
    share = f", {mpi_s / run_s:.1%} of the run" if run_s and mpi_s is not None else ""
    print_pairs(
        {
            "command": run.command,
            "ranks": f"{len(run.ranks):,}",
            "run": format_seconds(run_s) if run_s is not None else "",
            "in MPI": f"{format_seconds(mpi_s)}, mean over ranks{share}" if mpi_s is not None else "",
        }
    )
    total_s = sum(row.time_s or 0 for row in rows)
    print_table(
        (*by, "calls", "time, mean", "of MPI", "of the run", "slowest rank", "bytes", "messages"),
        (_shown(row, len(run.ranks), total_s, run_s) for row in rows[:SHOWN]),
    )
    if len(rows) > SHOWN:
        print(f"({len(rows) - SHOWN:,} more rows; --csv and --json have all of them)")


def _shown(row: CallSum, ranks: int, total_s: float, run_s: float | None) -> tuple[str, ...]:
    amounts = format_bytes(row.bytes), f"{row.messages:,}"
    if row.time_s is None or row.calls is None:
        return (*row.key, "", "", "", "", "", *amounts)
    mean_s = row.time_s / ranks
    slowest = f"{row.slowest}: {format_seconds(row.slowest_s or 0)}" if row.slowest is not None else ""
    return (
        *row.key,
        f"{row.calls:,}",
        format_seconds(mean_s),
        f"{row.time_s / total_s:.1%}" if total_s else "",
        f"{mean_s / run_s:.1%}" if run_s else "",
        slowest,
        *amounts,
    )
