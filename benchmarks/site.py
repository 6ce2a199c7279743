# SPDX-License-Identifier: Apache-2.0
"""Measure the ingest and the questions of `ibprof-site`, compared with SQLite and Polars on the same rows.

    python benchmarks/site.py --days 10               # 100,000 jobs
    python benchmarks/site.py --days 100 --folder /scratch    # 1 million jobs of 100 links

Jobs are synthetic (`ibprof-site demo`). `ibprof-site ingest` reads files with a line of JSON for each job, as jobs
write them. SQLite gets parsed rows, so SQLite's time does not include parsing. Every question runs in a new process,
whose largest memory is printed. The engines' answers must be equal, except to the question `load`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from ibprof_converter.analysis.pipeline_options import FabricOptions
from ibprof_converter.site.fabric_days import FabricCalendar, add_fabric, list_tables
from ibprof_converter.site.job_ingest import ingest_jobs
from ibprof_converter.site.job_store import JobStore
from ibprof_converter.site.job_summary import write_line
from ibprof_converter.site.site_queries import SiteQueries, read_statements
from ibprof_converter.site.synthetic_jobs import FABRIC, make_jobs

FIRST = date(2026, 1, 1)
LINKS = 100
TOP = 20
DATABASE = "jobs.sqlite"
AHEAD = 4
"""Days by which each process may be ahead of the next process: make lines, store lines, insert rows."""

Spent = tuple[float, float]
"""Wall and CPU seconds."""

STATEMENTS = read_statements(Path(__file__).parent / "data" / "site.sql")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question: rows, times, and the largest memory of the process."""

    wall_s: float
    cpu_s: float
    memory_gb: float
    rows: list[list[Any]]


class Clock:
    """Wall time, and CPU time of all threads, in seconds since the start."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._wall, time.process_time() - self._cpu


def moments(days: int) -> tuple[datetime, str]:
    """Return noon of the middle day, and the identifier of the first job of this day."""
    day = FIRST + timedelta(days=days // 2)
    return datetime.combine(day, datetime.min.time()) + timedelta(hours=12), str(day.toordinal() * 10**5)


def ask_duckdb(folder: Path, question: str, days: int) -> list[list[Any]]:
    site = SiteQueries(JobStore(folder / "store"))
    moment, job = moments(days)
    asked: dict[str, tuple[Callable[[], list[dict[str, Any]]], tuple[str, ...]]] = {
        "load": (lambda: site.load_at(moment, None, TOP), ("sender", "key", "bytes_per_s")),
        "shared": (lambda: site.shared_with(job, TOP), ("key", "links", "bytes")),
        "waits": (lambda: site.compare_waiting(job, TOP), ("key", "correlation")),
        "average": (lambda: site.average_day(top=TOP), ("sender", "bytes_a_day")),
        "gains": (lambda: site.find_gains(top=TOP), ("key", "node_hours")),
        "slow-hosts": (lambda: site.find_slow_hosts(top=TOP), ("host", "jobs", "late_jobs")),
        "jobs": (lambda: site.list_jobs("user7", top=TOP), ("key",)),
        "unexplained": (
            lambda: site.explain_counters({("0x0", 1): 1}, moment, moment + timedelta(hours=1)),
            ("sender", "unexplained"),
        ),
    }
    run, columns = asked[question]
    return [[row[column] for column in columns] for row in run()]


def ask_sqlite(folder: Path, question: str, days: int) -> list[list[Any]]:
    database = sqlite3.connect(folder / DATABASE)
    database.execute("PRAGMA cache_size = -1000000")  # 1 GB
    moment, job = moments(days)
    # The only index is on `began`. A job lasts at most 6 hours; the query must state this limit to use the index.
    at = {"at": seconds(moment), "least": seconds(moment) - 6 * 3600, "job": job, "top": TOP}
    text = STATEMENTS[question.replace("-", "_")]
    return [list(row) for row in database.execute(text, at)]


def ask_polars(folder: Path, question: str, days: int) -> list[list[Any]]:
    job = moments(days)[1]
    jobs = pl.scan_parquet(folder / "store" / "jobs" / "*.parquet")
    links = jobs.select("key", "began", "ended", "links", "link_bytes", "bin_s", "bin_bytes")
    if question == "average":
        sums = (
            links.select("links", "link_bytes")
            .explode("links", "link_bytes")
            .group_by("links")
            .agg(pl.sum("link_bytes"))
        )
        found = sums.sort("link_bytes", descending=True).head(TOP).collect(engine="streaming")
    elif question == "shared":
        mine = jobs.filter(pl.col("job") == job).select("key", "began", "ended", "links").collect().row(0, named=True)
        others = links.filter(
            (pl.col("began") < mine["ended"]) & (pl.col("ended") > mine["began"]) & (pl.col("key") != mine["key"])
        )
        shared = others.explode("links", "link_bytes").filter(pl.col("links").is_in(mine["links"]))
        sums = shared.group_by("key").agg(pl.len(), pl.sum("link_bytes"))
        found = sums.sort(["link_bytes", "key"], descending=[True, False]).head(TOP).collect()
    elif question == "gains":
        hours = (pl.col("nodes") * pl.col("placement_gain_s") / 3600).alias("hours")
        rows = jobs.filter(pl.col("placement_gain_s") > 0).select("key", hours)
        found = rows.sort(["hours", "key"], descending=[True, False]).head(TOP).collect()
    else:
        found = (
            jobs.filter(pl.col("user") == "user7")
            .sort(["began", "key"], descending=[True, False])
            .head(TOP)
            .select("key")
            .collect()
        )
    return [list(row) for row in found.rows()]


ENGINES = {"duckdb": ask_duckdb, "sqlite": ask_sqlite, "polars": ask_polars}
QUESTIONS = ("load", "shared", "waits", "average", "gains", "slow-hosts", "jobs", "unexplained")
OTHERS = {
    "sqlite": ("load", "shared", "average", "gains", "slow-hosts", "jobs"),
    "polars": ("shared", "average", "gains", "jobs"),
}


def seconds(moment: datetime) -> float:
    return (moment - datetime(1970, 1, 1)).total_seconds()


def fill(folder: Path, days: int, jobs: int, with_sqlite: bool) -> None:
    """Fill the store and SQLite. Separate processes make lines, store them and insert rows at the same time."""
    store = JobStore(folder / "store", make=True)
    fabric = add_fabric(store.folder, FabricOptions((FABRIC,)), FIRST)
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as database:
        database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" + STATEMENTS["schema"])
    spent = {name: [0.0, 0.0] for name in ("made", "stored", "sqlite")}
    with ProcessPoolExecutor(2) as makers, ProcessPoolExecutor(1) as inserter:
        made: deque[Future[Spent]] = deque()
        inserted: deque[Future[Spent]] = deque()
        for number in range(days):
            while len(made) < AHEAD and number + len(made) < days:
                made.append(makers.submit(make_lines, folder, number + len(made), jobs, fabric))
            add(spent["made"], made.popleft().result())
            clock = Clock()
            outcome, _, errors = ingest_jobs(store, [lines_of(folder, number)])
            add(spent["stored"], clock.read())
            assert (outcome.added, errors) == (jobs, []), (outcome, errors)
            lines_of(folder, number).unlink()
            if with_sqlite:
                inserted.append(inserter.submit(insert_day, folder, number, jobs))
            if len(inserted) == AHEAD:
                add(spent["sqlite"], inserted.popleft().result())
        for each in inserted:
            add(spent["sqlite"], each.result())
    for what, (wall, cpu) in spent.items():
        rate = days * jobs / wall if wall else 0
        print(f"{what:8} {days * jobs:,} jobs: {wall:.1f} s, {cpu:.1f} s CPU, {rate:,.0f} jobs/s")
    files = sum(path.stat().st_size for path in (store.folder / "jobs").iterdir())
    database_size = (folder / DATABASE).stat().st_size
    print(
        f"memory {largest_memory_gb():.2f} GB; files: store {files / 1e9:.2f} GB, SQLite {database_size / 1e9:.2f} GB",
        flush=True,
    )


def lines_of(folder: Path, number: int) -> Path:
    return folder / f"{number}.jsonl"


def make_lines(folder: Path, number: int, jobs: int, fabric: str) -> Spent:
    clock = Clock()
    dated = FabricCalendar(folder / "store").find(FIRST)
    assert dated is not None
    with lines_of(folder, number).open("w") as file:
        day = FIRST + timedelta(days=number)
        made = make_jobs(day, jobs, fabric, len(dated.number), dated.routed.hosts.name, LINKS)
        file.writelines(f"{write_line(row)}\n" for row in made)
    return clock.read()


def insert_day(folder: Path, number: int, jobs: int) -> Spent:
    rows = JobStore(folder / "store").read_day(FIRST + timedelta(days=number)).to_pylist()
    clock = Clock()
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as database:
        insert(database, rows, number * jobs)
    return clock.read()


def largest_memory_gb() -> float:
    # Do not use getrusage, which also counts the parent's memory, from before this program was loaded.
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**20


def add(spent: list[float], more: Spent) -> None:
    for number, part in enumerate(more):
        spent[number] += part


def insert(database: sqlite3.Connection, rows: list[dict[str, Any]], first: int) -> None:
    numbered = list(enumerate(rows, first))
    with database:
        database.executemany("INSERT INTO jobs VALUES (?,?,?,?,?,?,?,?,?,?)", (job_row(*each) for each in numbered))
        database.executemany("INSERT INTO links VALUES (?,?,?)", link_rows(numbered))
        database.executemany("INSERT INTO hosts VALUES (?,?,?)", host_rows(numbered))


def job_row(number: int, row: dict[str, Any]) -> tuple[Any, ...]:
    names = ("key", "job", "user")
    times = (seconds(row["began"]), seconds(row["ended"]), row["nodes"], row["run_s"], row["placement_gain_s"])
    return (number, *(row[name] for name in names), *times, row["fabric"])


def link_rows(numbered: list[tuple[int, dict[str, Any]]]) -> Iterator[tuple[int, int, int]]:
    for number, row in numbered:
        yield from ((number, link, amount) for link, amount in zip(row["links"], row["link_bytes"], strict=True))


def host_rows(numbered: list[tuple[int, dict[str, Any]]]) -> Iterator[tuple[int, str, int]]:
    for number, row in numbered:
        late = {each["host"] for each in row["late"] or ()}
        yield from ((number, host, int(host in late)) for host in row["hosts"])


def ask(folder: Path, engine: str, question: str, days: int) -> Answer:
    command = [sys.executable, __file__, "--ask", engine, question, "--days", str(days), "--folder", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return Answer(**json.loads(done.stdout))


def answer(folder: Path, engine: str, question: str, days: int) -> None:
    clock = Clock()
    rows = ENGINES[engine](folder, question, days)
    wall, cpu = clock.read()
    print(json.dumps(asdict(Answer(wall, cpu, largest_memory_gb(), rows))))


def compare(folder: Path, question: str, duckdb: Answer, other: Answer) -> str:
    """Return `equal`, or `not compared` for the question `load`; raise if the engines' rows differ.

    In `other`, link directions have numbers, not names.
    """
    names = {
        row["link"]: f"{row['name']} port {row['port']}"
        for row in pl.read_parquet(list_tables(folder / "store")[0]).to_dicts()
    }
    found, expected = duckdb.rows, other.rows
    if question == "load":  # the tables of SQLite and Polars lack jobs' intervals
        return "not compared"
    if question == "average":
        days = expected[0][1] / found[0][1]
        expected = [[names[link], amount / days] for link, amount in expected]
    if question == "slow-hosts":
        known = {host: counts for host, *counts in expected}
        expected = [[host, *known[host]] for host, *_ in found]
    for one, another in zip(found, expected, strict=True):
        for value, same in zip(one, another, strict=True):
            assert value == same or abs(value - same) <= 1e-9 * abs(same), (question, one, another)
    return "equal"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=10_000, help="number of jobs per day (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="folder for files (default: a temporary folder)")
    parser.add_argument("--without-sqlite", action="store_true")
    parser.add_argument(
        "--ask", nargs=2, metavar=("ENGINE", "QUESTION"), help="ask only this question, about the store in --folder"
    )
    options = parser.parse_args()
    if options.ask:
        answer(options.folder, options.ask[0], options.ask[1], options.days)
        return
    folder = Path(tempfile.mkdtemp(prefix="site-", dir=options.folder))
    try:
        fill(folder, options.days, options.jobs, not options.without_sqlite)
        # Ask every question twice: the first question after an ingest also computes and stores the sums of each day.
        for number, question in enumerate((*QUESTIONS, *QUESTIONS)):
            found = ask(folder, "duckdb", question, options.days)
            line = f"{question:12} {found.wall_s:6.2f} s {found.cpu_s:6.2f} s CPU {found.memory_gb:5.2f} GB"
            if number < len(QUESTIONS):
                print(f"first  {line}")
                continue
            for engine, questions in OTHERS.items():
                if question in questions and not (engine == "sqlite" and options.without_sqlite):
                    other = ask(folder, engine, question, options.days)
                    equal = compare(folder, question, found, other)
                    line += f" | {engine} {other.wall_s:7.2f} s {other.memory_gb:5.2f} GB, {equal}"
            print(f"again  {line}", flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
