# SPDX-License-Identifier: Apache-2.0
"""`ibprof-site`: keep summaries of all jobs of a site in a store, and answer questions about them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime, timedelta, timezone
from functools import partial
from inspect import signature
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ibprof.cli.command import command, make_parser, print_json, print_table, rename_option
from ibprof.errors import MissingToolError, UsageError
from ibprof.text.quantities import count_of, format_bytes, printable
from ibprof_converter.choices import parse_routes
from ibprof_converter.cli.arguments import (
    Subcommands,
    add_subcommand,
    add_subcommands,
    count_in,
    parse_subcommand,
    type_of,
)

NAME = "ibprof-site"
STORE = "IBPROF_SITE"
"""Environment variable with the path of the store; the option --store overrides it."""

_EXAMPLES = """\
examples:
  ibprof-site fabric ibdiagnet.lst --store /srv/ibprof
  ibprof-site ingest /scratch/*/profile.otf2 --store /srv/ibprof
  ibprof-site load --at 2026-11-29T14:30 --store /srv/ibprof
  ibprof-site shared 4711 --store /srv/ibprof
  ibprof-site demo /tmp/site

docs/how-to/site.md explains the setup, docs/formats/site.md the contents of the store.
"""

_TOP = 20

_LONGEST_CELL = 80
"""Largest number of characters in a cell of a printed table. `--json` prints whole values."""


@command(NAME)
def main(argv: Sequence[str] | None) -> int | None:
    """Run `ibprof-site`."""
    return parse_subcommand(_parser(), argv)()


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        NAME,
        "Keep a small summary of each job of a site, in Parquet files by day. Answer questions about the jobs. All "
        "times are UTC.",
        _EXAMPLES,
    )
    commands = add_subcommands(parser)
    _add_ingest(commands)
    _add_fabrics(commands)
    _add_questions(commands)
    _add_outputs(commands)
    _add_upkeep(commands)
    return parser


def _add_ingest(commands: Subcommands) -> None:
    ingest = _add(commands, "ingest", "add jobs to the store", "jobs/ --remove", _ingest)
    ingest.add_argument(
        "inputs",
        metavar="PROFILE",
        nargs="+",
        type=Path,
        help="a profile, a recording, a file of summaries (.jsonl), or a folder with these files at any depth",
    )
    for whose, column in (("users", "user"), ("jobs", "name")):
        help_ = f"store hashes in place of the names of {whose}"
        ingest.add_argument(f"--hash-{whose}", dest="hashed", action="append_const", const=column, help=help_)
    ingest.add_argument("--remove", action="store_true", help="delete each file of summaries after its jobs are stored")
    ingest.add_argument(
        "--newer-than", metavar="DAYS", type=type_of(_parse_days), help="leave out jobs older than DAYS, such as 90d"
    )
    _add_json(ingest)
    summary = _add(
        commands,
        "summary",
        "print the summary of a job as a line of JSON, for ingest and for log collectors",
        "profile.otf2 >> /var/log/ibprof.jsonl",
        _summarise,
        store=False,
    )
    summary.add_argument("profile", metavar="PROFILE", type=Path, help="a profile or a recording")
    help_ = "store with the fabric of the job's day; with it, the summary has loads of links"
    summary.add_argument("--store", dest="fabrics", metavar="STORE", type=Path, help=help_)


def _add_fabrics(commands: Subcommands) -> None:
    summary = "add a fabric for the jobs from a day on"
    fabric = _add(commands, "fabric", summary, "dumps/ --from 2026-11-01", _add_fabric_of_day)
    fabric.add_argument("names", metavar="LST", nargs="+", help="dumps, as for ibprof-layout; one LST for each rail")
    help_ = "first day (default: today)"
    fabric.add_argument("--from", dest="first", metavar="DAY", type=type_of(_parse_day), help=help_)
    rename_option(fabric, "--since", "--from")
    fabric.add_argument(
        "--fdbs", metavar="FILE", nargs="+", default=[], help="forwarding tables, one file for each LST"
    )
    fabric.add_argument("--routes", metavar="HOW", type=type_of(parse_routes), help="as for ibprof-layout")
    _add_json(
        _add(commands, "changes", "list links that differ between one stored fabric and the next", "", _list_changes)
    )


def _add_questions(commands: Subcommands) -> None:
    def add(name: str, summary: str, example: str, method: str, *names: str) -> argparse.ArgumentParser:
        parser = add_subcommand(
            commands,
            name,
            summary,
            f"example:  ibprof-site {name} {example}",
            build=lambda options: partial(
                _answer, options.store, options.as_json, method, {each: getattr(options, each) for each in names}
            ),
        )
        _add_store(parser)
        _add_json(parser)
        if "top" in names:
            parser.add_argument("--top", type=count_in(1), default=_TOP, help="number of rows (default: %(default)s)")
        if "last" in names:
            parser.add_argument("--from", dest="first", metavar="DAY", type=type_of(_parse_day), help="first day")
            parser.add_argument(
                "--to", dest="last", metavar="DAY", type=type_of(_parse_day), help="last day (included)"
            )
        return parser

    span = ("first", "last", "top")
    jobs = add("jobs", "list jobs, newest first", "--user ann", "list_jobs", "user", *span)
    jobs.add_argument("--user", help="only jobs of this user")
    loads = "print the load of each link direction at a moment, by job and user"
    load = add("load", loads, "--at 2026-11-29T14:30", "load_at", "moment", "link", "top")
    help_ = "such as 2026-11-29T14:30"
    load.add_argument("--at", dest="moment", metavar="TIME", type=type_of(_parse_moment), required=True, help=help_)
    load.add_argument("--link", metavar="NAME", help="only links of nodes with NAME in their names")
    waits = "correlate a job's time in MPI calls with other jobs' traffic on the same links"
    shared = "list jobs that used the same links as a job at the same time"
    for name, summary, method in (("shared", shared, "shared_with"), ("waits", waits, "compare_waiting")):
        add(name, summary, "4711", method, "job", "top").add_argument(
            "job", metavar="JOB", help="job number of the scheduler, or key in the store"
        )
    add(
        "average", "print the bytes of an average day on each link direction", "--from 2026-11-01", "average_day", *span
    )
    gains = "list jobs that would gain from another rank placement, by gained node hours"
    add("gains", gains, "--from 2026-11-01", "find_gains", *span)
    add("slow-hosts", "list hosts by the share of their jobs with late ranks", "--top 5", "find_slow_hosts", *span)
    sql = add(
        "sql",
        "run an SQL query on the views jobs, loads, lates, program_lines and directions",
        "'SELECT user, sum(bytes) FROM jobs GROUP BY user'",
        "select",
        "statement",
    )
    sql.add_argument("statement", help="the SQL query")
    unexplained = _add(
        commands,
        "unexplained",
        "list bytes in port counters that no profile explains",
        "before.txt after.txt --from 2026-11-29T14:00 --to 2026-11-29T15:00",
        _explain,
    )
    _add_json(unexplained)
    unexplained.add_argument("before", metavar="BEFORE", type=Path, help="port counters before the span")
    unexplained.add_argument("after", metavar="AFTER", type=Path, help="the same counters after the span")
    for name, dest, file in (("--from", "first", "BEFORE"), ("--to", "last", "AFTER")):
        help_ = f"time at which {file} was read"
        unexplained.add_argument(
            name, dest=dest, metavar="TIME", type=type_of(_parse_moment), required=True, help=help_
        )
    unexplained.add_argument("--top", type=count_in(1), default=_TOP, help="number of rows (default: %(default)s)")


def _add_outputs(commands: Subcommands) -> None:
    summary = "write the web view of a day, with the traffic of the largest jobs"
    view = _add(commands, "view", summary, "2026-11-29 -o day.html", _view_day)
    view.add_argument("day", metavar="DAY", type=type_of(_parse_day), help="such as 2026-11-29")
    view.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the page")
    view.add_argument("--top", type=count_in(1, 1000), default=20, help="number of shown jobs (default: %(default)s)")
    rename_option(view, "--jobs", "--top")
    summary = "write metrics of a time span as OpenMetrics text, for Prometheus"
    metrics = _add(commands, "metrics", summary, "-o /var/lib/prometheus/node-exporter/ibprof.prom", _write_metrics)
    metrics.add_argument("-o", "--output", metavar="FILE", type=Path, help="replace FILE (default: stdout)")
    metrics.add_argument(
        "--at", dest="until", metavar="TIME", type=type_of(_parse_moment), help="end of the span (default: now)"
    )
    metrics.add_argument(
        "--minutes", type=count_in(1, 525_600), default=60, help="length of the span in minutes (default: %(default)s)"
    )
    metrics.add_argument(
        "--jobs", type=count_in(0, 10_000), default=50, help="number of largest jobs (default: %(default)s)"
    )
    metrics.add_argument(
        "--links", type=count_in(0, 10_000), default=50, help="number of link directions (default: %(default)s)"
    )
    summary = "print a Grafana dashboard for the output of metrics, as JSON"
    _add(commands, "dashboard", summary, "> ibprof.json", _print_dashboard, store=False)


def _add_upkeep(commands: Subcommands) -> None:
    expire = _add(commands, "expire", "delete jobs older than a number of days", "--older-than 90d", _expire)
    expire.add_argument(
        "--older-than", metavar="DAYS", type=type_of(_parse_days), required=True, help="smallest age, such as 90d"
    )
    summary = "write a store for each user: it has the user's jobs, and only this user can read it"
    share = _add(commands, "share", summary, "/srv/ibprof-users", _share)
    share.add_argument("folder", metavar="DIR", type=Path, help="folder for the stores")
    summary = "make a store with synthetic jobs on a fat-tree, and jobs recorded on this machine"
    demo = _add(commands, "demo", summary, "/tmp/site", _make_demo, store=False)
    help_ = "folder for the store (default: %(default)s)"
    demo.add_argument("folder", metavar="DIR", type=Path, nargs="?", default=Path("ibprof-site-demo"), help=help_)
    demo.add_argument("--jobs", type=count_in(2, 99_999), default=10_000, help="jobs per day (default: %(default)s)")
    demo.add_argument("--days", type=count_in(1, 3650), default=1, help="number of days (default: %(default)s)")
    help_ = "number of jobs that are recorded here with Open MPI, then put on random hosts (default: %(default)s)"
    demo.add_argument("--recorded", type=count_in(0, 100), default=2, help=help_)


def _add(
    commands: Subcommands, name: str, summary: str, example: str, run: Callable[..., int | None], store: bool = True
) -> argparse.ArgumentParser:
    """Add a subcommand. Each parameter of `run` receives the command-line argument of the same name."""
    names = tuple(signature(run).parameters)
    parser = add_subcommand(
        commands,
        name,
        summary,
        f"example:  ibprof-site {name} {example}".rstrip(),
        build=lambda options: partial(run, **{each: getattr(options, each) for each in names}),
    )
    if store:
        _add_store(parser)
    return parser


def _add_store(parser: argparse.ArgumentParser) -> None:
    default = os.environ.get(STORE, "ibprof-site")
    help_ = f"folder (default: ${STORE}, or ibprof-site)"
    parser.add_argument("--store", metavar="STORE", type=Path, default=Path(default), help=help_)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", dest="as_json", action="store_true", help="print JSON")


def _parse_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"expected a day such as 2026-11-29, found {text!r}") from None


def _parse_moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise UsageError(f"expected a time such as 2026-11-29T14:30, found {text!r}") from None
    return moment.astimezone(timezone.utc).replace(tzinfo=None) if moment.tzinfo else moment


def _parse_days(text: str) -> int:
    number = text.removesuffix("d")
    if not (number.isascii() and number.isdigit() and len(number) < 6):
        raise UsageError(f"expected a number of days such as 90d, found {text!r}")
    return int(number)


def _ingest(
    store: Path, inputs: Sequence[Path], hashed: list[str] | None, remove: bool, newer_than: int | None, as_json: bool
) -> int:
    """Add the jobs of all inputs to the store; print an error for each input that cannot be read."""
    from ibprof_converter.site.job_ingest import ingest_jobs  # noqa: PLC0415  (--help must come at once)
    from ibprof_converter.site.job_store import JobStore, days_ago  # noqa: PLC0415

    oldest = date.min if newer_than is None else days_ago(newer_than)
    outcome, losses, errors = ingest_jobs(
        JobStore(store, make=True, hashed=hashed or ()), inputs, oldest, remove=remove
    )
    for each in (*losses, *errors):
        print(f"{NAME}: {printable(str(each))}", file=sys.stderr)
    result = asdict(outcome)
    if as_json:
        print_json(result)
    else:
        print(", ".join(f"{number} {what}" for what, number in result.items()))
    return errors[0].status if errors else 0


def _summarise(profile: Path, fabrics: Path | None) -> None:
    from ibprof_converter.site.fabric_days import FabricCalendar  # noqa: PLC0415  (slow to import)
    from ibprof_converter.site.job_ingest import read_summary  # noqa: PLC0415
    from ibprof_converter.site.job_summary import write_line  # noqa: PLC0415

    print(write_line(read_summary(profile, FabricCalendar(fabrics) if fabrics else None)))


def _add_fabric_of_day(
    store: Path, names: Sequence[str], fdbs: Sequence[str], routes: str | None, first: date | None
) -> None:
    from ibprof_converter.analysis.pipeline_options import FabricOptions  # noqa: PLC0415  (slow to import)
    from ibprof_converter.site.fabric_days import add_fabric  # noqa: PLC0415
    from ibprof_converter.site.job_store import JobStore, today  # noqa: PLC0415

    begin = first or today()
    options = FabricOptions(tuple(names), tuple(fdbs), routes=routes)
    print(f"fabric {add_fabric(JobStore(store, make=True).folder, options, begin)} since {begin}")


def _list_changes(store: Path, as_json: bool) -> None:
    from ibprof_converter.site.fabric_days import compare_fabrics  # noqa: PLC0415  (slow to import)
    from ibprof_converter.site.job_store import JobStore  # noqa: PLC0415

    _print_rows(map(asdict, compare_fabrics(JobStore(store).folder)), as_json)


def _answer(store: Path, as_json: bool, method: str, values: Mapping[str, Any]) -> None:
    from ibprof_converter.site.job_store import JobStore  # noqa: PLC0415  (slow to import)
    from ibprof_converter.site.site_queries import SiteQueries  # noqa: PLC0415

    _print_rows(getattr(SiteQueries(JobStore(store)), method)(**values), as_json)


def _explain(store: Path, before: Path, after: Path, first: datetime, last: datetime, top: int, as_json: bool) -> None:
    from ibprof_converter.site.day_network import subtract_counted  # noqa: PLC0415  (slow to import)

    if last <= first:
        raise UsageError(f"--to: expected a time after {first}, found {last}")
    counted, notes = subtract_counted(store, before, after, first.date())
    for note in notes:
        print(f"{NAME}: {printable(note)}", file=sys.stderr)
    _answer(store, as_json, "explain_counters", {"counted": counted, "first": first, "until": last, "top": top})


def _write_metrics(
    store: Path, output: Path | None, until: datetime | None, minutes: int, jobs: int, links: int
) -> None:
    from ibprof_converter.outputs.atomic_write import write_atomically  # noqa: PLC0415  (slow to import)
    from ibprof_converter.site.job_store import JobStore, now  # noqa: PLC0415
    from ibprof_converter.site.open_metrics import format_metrics  # noqa: PLC0415
    from ibprof_converter.site.site_queries import SiteQueries  # noqa: PLC0415

    end = until or now()
    text = format_metrics(SiteQueries(JobStore(store)), end - timedelta(minutes=minutes), end, jobs, links)
    if output:
        write_atomically(output, text.encode())
    else:
        sys.stdout.write(text)


def _view_day(store: Path, day: date, output: Path, top: int) -> None:
    from ibprof_converter.site.day_network import view_day  # noqa: PLC0415  (slow to import)
    from ibprof_converter.site.job_store import JobStore  # noqa: PLC0415

    view_day(JobStore(store), day, top).save(output)


def _print_dashboard() -> None:
    from ibprof_converter.site.open_metrics import DASHBOARD  # noqa: PLC0415  (slow to import)

    sys.stdout.write(DASHBOARD.read_text(encoding="utf-8"))


def _expire(store: Path, older_than: int) -> None:
    from ibprof_converter.site.job_store import JobStore, days_ago  # noqa: PLC0415  (slow to import)

    before = days_ago(older_than)
    gone = JobStore(store).expire(before)
    print(f"deleted the jobs of {count_of(len(gone), 'day')}, all before {before}")


def _share(store: Path, folder: Path) -> None:
    from ibprof_converter.site.job_store import JobStore, share_jobs  # noqa: PLC0415  (slow to import)

    jobs = share_jobs(JobStore(store), folder)
    print(f"{sum(jobs.values())} jobs of {len(jobs)} users")


def _make_demo(folder: Path, days: int, jobs: int, recorded: int) -> None:
    from ibprof_converter.site.job_store import today  # noqa: PLC0415  (slow to import)
    from ibprof_converter.site.synthetic_jobs import make_store  # noqa: PLC0415

    first = today() - timedelta(days=days)
    outcome = make_store(folder, first, days, jobs)
    print(f"{outcome.added} synthetic jobs in {folder}")
    if recorded:
        _record_jobs(folder, recorded)
    print("for example:")
    waits, page = f"waits {first.toordinal() * 10**5}", f"view {first} -o {folder / 'day.html'}"
    for question in (f"load --at {first}T12:00", "average", "slow-hosts", waits, page):
        print(f"  {NAME} {question} --store {folder}")


def _record_jobs(folder: Path, jobs: int) -> None:
    """Record runs of the demo's program; add each run to a store, with a random placement on the fabric."""
    from ibprof.load import load_profile  # noqa: PLC0415  (slow to import)
    from ibprof_converter.cli.demo import Chain, build_program, copy_program, find_open_mpi  # noqa: PLC0415
    from ibprof_converter.site.fabric_days import FabricCalendar  # noqa: PLC0415
    from ibprof_converter.site.job_store import JobStore, today  # noqa: PLC0415
    from ibprof_converter.site.job_summary import parse_lines, summarise_job, write_line  # noqa: PLC0415

    try:
        mpirun = find_open_mpi()
        with TemporaryDirectory(prefix="ibprof-site-") as place:
            copy_program(Path(place))
            program = build_program(mpirun, Path(place), print)
            fabric = FabricCalendar(folder).find(today())
            for number in range(jobs):
                name = f"recorded{number}"
                words = ("--oversubscribe", "--bind-to", "none", "-n", "8", *program)
                Chain(Path(place), print).run("run", "-o", name, "--", mpirun, *words)
                run = load_profile(Path(place, name, "profile.otf2"))
                line = write_line(summarise_job(run, fabric, f"random:{number}"))
                for table in parse_lines(Path(name), [line.encode()], 1):
                    JobStore(folder).add(table)
    except MissingToolError as error:
        print(f"no recorded jobs: {error}")
    else:
        print(f"{jobs} recorded jobs of {today()}")


def _print_rows(rows: Iterable[Mapping[str, Any]], as_json: bool) -> None:
    rows = list(rows)
    if as_json:
        print_json([{name: _as_json(value) for name, value in row.items()} for row in rows])
    elif rows:
        print_table(list(rows[0]), [[_format(name, value) for name, value in row.items()] for row in rows])


def _as_json(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return list(map(_as_json, value))
    if isinstance(value, dict):
        return {str(name): _as_json(each) for name, each in value.items()}
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _format(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if "bytes" in name or name in ("total_per_s", "counted", "explained", "unexplained", "most"):
        is_count = isinstance(value, int | float) and not isinstance(value, bool)
        return format_bytes(round(value)) if is_count and value >= 0 else str(value)
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 3]}..."
