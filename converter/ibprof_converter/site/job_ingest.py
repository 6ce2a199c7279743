# SPDX-License-Identifier: Apache-2.0
"""Find profiles and files of summaries, and add their jobs to a store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timezone
from itertools import chain
from pathlib import Path

import pyarrow as pa

from ibprof.errors import IbprofError, InputError
from ibprof.load import load_profile
from ibprof.profile.missing_data import describe_run_losses
from ibprof.profile.profile_data import Profile
from ibprof.recording.folder_runs import SUFFIX as RECORDING
from ibprof_converter.site.fabric_days import FabricCalendar
from ibprof_converter.site.job_store import Ingested, JobStore
from ibprof_converter.site.job_summary import (
    Row,
    identify_run,
    name_owner,
    parse_lines,
    read_lines,
    summarise_job,
    write_line,
)
from ibprof_converter.site.site_queries import SiteQueries

LINES = ".jsonl"
"""Suffix of files of summaries, which have a JSON line for each job."""

_ARCHIVE = ".otf2"
_AT_ONCE = 256
"""Summaries of this number of profiles are written to the store at once."""


def ingest_jobs(
    store: JobStore, paths: Sequence[Path], oldest: date = date.min, *, remove: bool = False
) -> tuple[Ingested, list[str], list[IbprofError]]:
    """Add the jobs of profiles, recordings, files of summaries, and folders of these, to a store.

    Args:
        oldest: jobs that began before this day are left out.
        remove: true to delete a file of summaries after all its jobs are stored.

    Returns:
        The numbers of jobs, sentences on data that profiles lack, and an error for each input that cannot be read. All
        other inputs are stored.

    Raises:
        OSError: the store cannot be written.
    """
    calendar = FabricCalendar(store.folder)
    outcome, losses, errors = Ingested(), [], []
    waiting: list[pa.Table] = []
    for path in chain.from_iterable(_look_below(path) if path.is_dir() else (path,) for path in paths):
        try:
            if path.suffix == LINES:
                for table in _read(path):
                    outcome += store.add(table, oldest)
                if remove:
                    path.unlink(missing_ok=True)
                continue
            run = load_profile(path)
            if store.has(_day_of(run), identify_run(run)):
                outcome += Ingested(known=1)
            elif _day_of(run) >= oldest:
                line = write_line(summarise_job(run, calendar.find(_day_of(run))))
                waiting += parse_lines(path, [line.encode()], 1)
                losses += [f"{path}: {each}" for each in describe_run_losses(run)]
        except IbprofError as error:
            # another ingest may have stored the jobs of the file, and deleted it
            was_removed = remove and path not in paths and not path.exists()
            if not was_removed:
                errors.append(error)
        if len(waiting) >= _AT_ONCE:
            outcome += store.add(pa.concat_tables(waiting), oldest)
            waiting = []
    if waiting:
        outcome += store.add(pa.concat_tables(waiting), oldest)
    if outcome.added or outcome.replaced:
        SiteQueries(store).keep_sums()
    return outcome, losses, errors


def _read(path: Path) -> Iterator[pa.Table]:
    try:
        uid = path.stat().st_uid
        for table in read_lines(path):
            yield _with_owner(table, uid)
    except OSError as error:
        raise InputError(path, None, "a file of summaries", error.strerror or str(error)) from None


def _with_owner(jobs: pa.Table, uid: int) -> pa.Table:
    """Set the user of jobs to the owner of the file, unless the owner is root or the ingesting user."""
    if uid in (0, os.geteuid()):
        return jobs
    column = jobs.schema.get_field_index("user")
    return jobs.set_column(column, "user", pa.array([name_owner(uid)] * len(jobs), pa.string()))


def read_summary(path: Path, calendar: FabricCalendar | None) -> Row:
    """Return the summary of a profile.

    Raises:
        IbprofError: the profile cannot be read, or has ports that the day's fabric lacks.
    """
    run = load_profile(path)
    return summarise_job(run, calendar.find(_day_of(run)) if calendar else None)


def _day_of(run: Profile) -> date:
    began_ns = min((rank.start_ns for rank in run.ranks), default=0)
    return datetime.fromtimestamp(began_ns // 10**9, timezone.utc).date()


def _look_below(folder: Path) -> Iterator[Path]:
    """Yield the inputs in a folder and its subfolders, without recordings next to an OTF2 archive."""
    if folder.suffix == RECORDING:
        if not folder.with_suffix(_ARCHIVE).exists():
            yield folder
        return
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from _look_below(path)
        elif path.suffix in (_ARCHIVE, LINES) and not path.name.startswith("."):
            yield path
