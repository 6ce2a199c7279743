# SPDX-License-Identifier: Apache-2.0
"""Answer questions about all jobs of a store, by SQL for DuckDB; see docs/formats/site.md."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from math import atanh, sqrt, tanh
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, UsageError
from ibprof_converter.site.fabric_days import list_tables, name_fabric
from ibprof_converter.site.job_store import JobStore

TOP = 20
"""Default number of rows of an answer."""

OTHER = "other"

MEMORY = "1500MB"
"""Memory limit of DuckDB; DuckDB writes larger data to temporary files."""

LEAST_BINS = 8
"""A correlation needs at least this number of intervals."""

_COMPARED = 1000
"""A job is compared with at most this number of jobs: those with most bytes on common links."""

_ATTEMPTS = 9
"""Largest number of attempts to run a statement while other processes replace the files of days."""

_OF_FILES = (duckdb.Error, duckdb.InvalidInputException, duckdb.IOException)
"""Exact types of DuckDB's errors on damaged files; errors of subclasses have other causes."""

_Z = 1.96

_VIEWS = ("running", "loads", "lates", "program_lines")
"""Names of views that are computed from the views `jobs` and `directions`; those two read the files."""

_OF_JOBS = (
    "(SELECT key, job, user, fabric, began, ended, unnest(links) AS link, unnest(link_bytes) AS bytes FROM {jobs})"
)

Rows = list[dict[str, Any]]
Day = date | None
"""First or last day of a range; None without a limit."""


def read_statements(path: Path) -> dict[str, str]:
    """Read name -> SQL statement from a file. A comment with one word is the name of the next statement."""
    parts = re.split(r"^-- (\w+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _expand(statements: Mapping[str, str]) -> dict[str, str]:
    """Replace the macros `{named FLOWS: COLUMNS}`, `{links of JOBS}` and `{ports}` in statements by SQL."""

    def name_flows(match: re.Match[str]) -> str:
        flows, columns = match[1], match[2]
        if match[3]:
            flows, columns = _OF_JOBS.format(jobs=match[3]), "key, job, user, bytes, began, ended"
        return statements["named"].replace("FLOWS", flows).replace("COLUMNS", columns)

    return {
        name: re.sub(r"\{named (\w+): ([^}]*)\}|\{links of (\w+)\}", name_flows, text).replace(
            "{ports}", statements["ports"]
        )
        for name, text in statements.items()
    }


_SQL = _expand(read_statements(Path(__file__).with_name("queries.sql")))


class SiteQueries:
    """Answers questions about the jobs of a store."""

    def __init__(self, store: JobStore) -> None:
        self.store = store
        self._db = duckdb.connect(
            config={
                "memory_limit": MEMORY,
                "temp_directory": os.path.join(gettempdir(), f"ibprof-site-{os.getpid()}"),  # noqa: PTH118
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        self._db.execute("SET parquet_metadata_cache = true")  # the statements of a question read the same files
        tables = [os.fspath(path) for path in list_tables(store.folder)]
        self._define("directions", tables, _SQL["no_directions"])
        self._define("jobs", [os.fspath(store.path_of(day)) for day in store.days()], None)
        for name in _VIEWS:
            self._db.execute(f"CREATE VIEW {name} AS {_SQL[name]}")

    def _define(self, view: str, files: Sequence[str], empty: str | None) -> None:
        if files:
            listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
            self._ask(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM read_parquet([{listed}])")
        elif empty:
            self._db.execute(f"CREATE OR REPLACE VIEW {view} AS {empty}")
        else:
            raise InputError(self.store.folder, None, "jobs", "an empty store; ibprof-site ingest adds jobs")

    def _ask(self, text: str, values: Mapping[str, Any] | None = None) -> Rows:
        try:
            return self._fetch(text, values)
        except duckdb.Error as error:
            if type(error) in _OF_FILES:
                found = str(error).partition("\n")[0]
                raise InputError(self.store.folder, None, "whole files of jobs", found) from None
            raise

    def _fetch(self, text: str, values: Mapping[str, Any] | None, attempts: int = _ATTEMPTS) -> Rows:
        try:
            found = self._db.execute(text, values or {})
            names = [column[0] for column in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        except duckdb.Error as error:
            # Try again: an ingest may replace a file after DuckDB read its footer, and before DuckDB reads its data.
            if type(error) is duckdb.Error and attempts > 1:
                return self._fetch(text, values, attempts - 1)
            raise

    def select(self, statement: str) -> Rows:
        """Return the rows of an SQL statement that the user typed.

        Raises:
            UsageError: the statement is invalid.
        """
        try:
            return self._ask(statement)
        except duckdb.Error as error:
            raise UsageError(f"SQL: {error}") from None

    def list_jobs(self, user: str | None = None, first: Day = None, last: Day = None, top: int = TOP) -> Rows:
        """Return jobs, the latest first, optionally only of one user or of a range of days."""
        return self._ask(_SQL["list_jobs"], {**_bounds(first, last), "user": user, "top": top})

    def load_at(self, moment: datetime, link: str | None = None, top: int = TOP) -> Rows:
        """Return the load of each link direction at one moment, split by job and user.

        A job's rate in the current interval is divided among links in proportion to their bytes in the whole run. A job
        without intervals is assumed to have its mean rate.

        Args:
            moment: the time, UTC.
            link: only link directions with this text in a node's name. If None: all link directions.
            top: number of link directions; the most loaded comes first.
        """
        return self._ask(_SQL["load_at"], {"at": moment, "link": link, "top": top})

    def shared_with(self, job: str, top: int = TOP) -> Rows:
        """Return the jobs that used a job's link directions while it ran, sorted by bytes, descending.

        Args:
            job: the scheduler's job number, which several runs can have; or key of the job in the store.

        Raises:
            UsageError: the store has no job with this number or key.
        """
        return self._share_links(self._find_job(job), top)

    def _share_links(self, mine: Mapping[str, Any], top: int) -> Rows:
        return self._ask(_SQL["shared_with"], {**mine, "top": top})

    def _find_job(self, job: str) -> dict[str, Any]:
        of_task, of_step = (job.rpartition(mark)[0] for mark in "_.")
        found = self._ask(_SQL["find_job"], {"job": job, "of_task": of_task, "of_step": of_step})[0]
        if not found["keys"]:
            raise UsageError(f"the store has no job {job}; ibprof-site jobs lists the jobs")
        return found

    def compare_waiting(self, job: str, top: int = TOP) -> Rows:
        """Correlate a job's time in MPI calls with the traffic of each job that uses the same link directions.

        For each interval of the job, the two series have a value: seconds in MPI calls, and bytes of the second job.
        The 95% interval is computed by Fisher's transformation, with the effective number of independent intervals.

        Source: M. S. Bartlett, J. Royal Stat. Soc. 98 (1935) 536, for autocorrelated series.

        Raises:
            UsageError: the store has no such job, or no second job has enough common intervals.
        """
        answers: Rows = []
        run = self._find_job(job)
        together = self._share_links(run, _COMPARED)
        keys = list({row[name] for row in together for name in ("of", "key")})
        span = {name: run[name] for name in ("first", "until")}
        series = {row["key"]: row for row in self._ask(_SQL["find_bins"], {**span, "keys": keys})}
        for shared in together:
            mine, other = series.get(shared["of"]), series.get(shared["key"])
            if mine is None or other is None or None in (mine["bin_mpi_s"] or [None]):
                continue
            offset = (mine["began"] - other["began"]).total_seconds()
            edges = offset + mine["bin_s"] * np.arange(len(mine["bin_mpi_s"]) + 1)
            their_edges = other["bin_s"] * np.arange(len(other["bin_bytes"]) + 1)
            sent = np.diff(np.interp(edges, their_edges, np.concatenate([[0], np.cumsum(other["bin_bytes"])])))
            both = (edges[1:] > 0) & (edges[:-1] < their_edges[-1])
            found = correlate(np.array(mine["bin_mpi_s"], float)[both], sent[both])
            if found:
                answers.append(
                    {
                        **{name: shared[name] for name in ("job", "user", "key", "of", "since", "until", "links")},
                        "intervals": int(both.sum()),
                        "correlation": found[0],
                        "low": found[1],
                        "high": found[2],
                    }
                )
        if not answers:
            raise UsageError(
                f"{job}: no other job on its links has {LEAST_BINS} intervals in common with it; "
                "to record intervals, set IBPROF_INTERVAL"
            )
        return sorted(answers, key=lambda row: (-row["low"], row["key"]))[:top]

    def average_day(self, first: Day = None, last: Day = None, top: int = TOP) -> Rows:
        """Return the mean bytes per day of each link direction. A job's bytes count on the day of its start."""
        days = self._sum_days("links", first, last)
        return self._ask(_SQL["average_day"], {"days": max(days, 1), "top": top, "fabric": self._name_fabric(last)})

    def _name_fabric(self, day: Day) -> str:
        """Return the name of the fabric that is valid on a day. If None: the name of the latest fabric."""
        return name_fabric(self.store.folder, day or date.max)

    def find_gains(self, first: Day = None, last: Day = None, top: int = TOP) -> Rows:
        """Return the jobs with a predicted gain from another rank placement, sorted by node hours, descending.

        The gain is the time, in seconds, that the other placement saves on the most loaded link direction.
        """
        return self._ask(_SQL["find_gains"], {**_bounds(first, last), "top": top})

    def measure(self, first: datetime, until: datetime, jobs: int, links: int, jobs_a_link: int) -> tuple[Rows, Rows]:
        """Return the largest jobs between two times, and the mean load of each job on the most loaded link directions.

        Args:
            first, until: the two times, UTC.
            jobs: number of jobs with most node hours.
            links: number of returned link directions.
            jobs_a_link: number of jobs per link direction; further jobs are summed as job `OTHER`.
        """
        span = {"first": first, "until": until}
        seconds = (until - first).total_seconds()
        fabric = self._name_fabric(until.date())
        share = {"seconds": seconds, "jobs": jobs_a_link, "links": links, "other": OTHER, "fabric": fabric}
        return self._ask(_SQL["measure_jobs"], {**span, "jobs": jobs}), self._ask(
            _SQL["measure_links"], {**span, **share}
        )

    def find_slow_hosts(self, first: Day = None, last: Day = None, top: int = TOP) -> Rows:
        """Return the fraction of jobs with a late rank on each host, with a 95% interval (Wilson)."""
        self._sum_days("hosts", first, last)
        rows = self._ask(
            "SELECT host, sum(jobs)::BIGINT AS jobs, sum(late_jobs)::BIGINT AS late_jobs, sum(wait_s) AS wait_s "
            "FROM day_hosts GROUP BY host"
        )
        for row in rows:
            row["share"] = row["late_jobs"] / row["jobs"]
            row["low"], row["high"] = _bound_share(row["late_jobs"], row["jobs"])
        return sorted(rows, key=lambda row: (-row["low"], row["host"]))[:top]

    def explain_counters(
        self, counted: Mapping[tuple[str, int], int], first: datetime, until: datetime, top: int = TOP
    ) -> Rows:
        """Compare the bytes that port counters counted on link directions with the bytes of jobs.

        Args:
            counted: (GUID, port) of the sender -> counted bytes.
            first, until: begin and end of the count, UTC. Parts of jobs outside these times do not count.

        Returns:
            A row for each of the `top` counted link directions with the most unexplained bytes, in descending order.
        """
        span = {"first": first, "until": until, "fabric": self._name_fabric(first.date())}
        rows = self._ask(_SQL["explain_counters"], span)
        known = {(row.pop("guid"), row.pop("port")): row for row in rows}
        answers = []
        for (guid, port), bytes_ in counted.items():
            row = known.get((guid, port), {"sender": f"{guid} port {port}", "receiver": "", "explained": 0.0})
            answers.append(
                {
                    "sender": row["sender"],
                    "receiver": row["receiver"],
                    "counted": bytes_,
                    "explained": round(row["explained"]),
                    "unexplained": bytes_ - round(row["explained"]),
                }
            )
        return sorted(answers, key=lambda row: (-row["unexplained"], row["sender"]))[:top]

    def keep_sums(self) -> None:
        """Compute and store missing sums of days, so that later questions are fast."""
        with self.store.locked():  # until the sums are used, no other ingest may replace them
            for what in ("links", "hosts"):
                self._sum_days(what, None, None)

    def _sum_days(self, what: str, first: Day, last: Day) -> int:
        """Define the view `day_links` or `day_hosts`, with the sums of each day.

        Return the number of calendar days from the first to the last day with jobs, inclusive.

        The name of a file of sums contains size and time of the day's file, so that a changed day gets new sums. If the
        store cannot be written, the sums are not stored.
        """
        folder = self.store.folder / "sums"
        days = [day for day in self.store.days() if (first or date.min) <= day <= (last or date.max)]
        files, texts = [], []
        for day in days:
            path = self.store.path_of(day)
            state = path.stat()
            kept = folder / f"{day.isoformat()}.{state.st_size}-{state.st_mtime_ns}.{what}.parquet"
            if not kept.exists() and not self._keep_sums(path, kept, what):
                texts.append(f"SELECT * FROM ({_SQL[f'day_{what}'].replace('$file', _quoted(path))})")
            else:
                files.append(_quoted(kept))
        if files:
            texts.append(f"SELECT * FROM read_parquet([{', '.join(files)}])")
        if not texts:
            raise UsageError("the store has no jobs between these days")
        self._ask(f"CREATE OR REPLACE TEMP VIEW day_{what} AS {' UNION ALL '.join(texts)}")
        return (days[-1] - days[0]).days + 1

    def _keep_sums(self, path: Path, kept: Path, what: str) -> bool:
        made = kept.with_name(f".{kept.name}.{os.getpid()}")
        try:
            kept.parent.mkdir(exist_ok=True)
            if not os.access(kept.parent, os.W_OK):
                return False
            for older in (*kept.parent.glob(f"{path.stem}.*.{what}.parquet"), *kept.parent.glob(f".{path.stem}.*")):
                older.unlink(missing_ok=True)
            query = _SQL[f"day_{what}"].replace("$file", _quoted(path))
            self._ask(f"COPY ({query}) TO {_quoted(made)} (FORMAT parquet)")
            made.replace(kept)
        except OSError:
            return False
        return True


def _quoted(path: Path) -> str:
    return "'" + os.fspath(path).replace("'", "''") + "'"


def _bounds(first: Day, last: Day) -> dict[str, datetime]:
    """Return the begin of the first day, and the end of the last day, as parameters of statements."""
    after = datetime.combine(last or date(9000, 1, 1), time()) + timedelta(days=1)
    return {"first": datetime.combine(first or date(1, 1, 1), time()), "after": after}


def correlate(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> tuple[float, float, float] | None:
    """Return the correlation of two series, with its 95% interval; None if a series is constant or too short."""
    if len(one) < LEAST_BINS or not one.std() or not other.std():
        return None
    centred = [(each - each.mean()) / each.std() for each in (one, other)]
    r = float(np.mean(centred[0] * centred[1]))
    memory = float(np.prod([np.mean(each[1:] * each[:-1]) for each in centred]))
    count = len(one) * (1 - max(memory, 0)) / (1 + max(memory, 0))
    if count <= 4:
        return None
    middle, error = atanh(min(max(r, -0.999999), 0.999999)), _Z / sqrt(count - 3)
    return r, tanh(middle - error), tanh(middle + error)


def _bound_share(found: int, of: int) -> tuple[float, float]:
    """Return the 95% interval of the share `found` / `of`.

    Source: E. B. Wilson, J. American Stat. Assoc. 22 (1927) 209.
    """
    share, square = found / of, _Z**2 / of
    middle = (share + square / 2) / (1 + square)
    half = _Z / (1 + square) * sqrt(share * (1 - share) / of + square / 4 / of)
    return max(middle - half, 0.0), min(middle + half, 1.0)  # rounding
