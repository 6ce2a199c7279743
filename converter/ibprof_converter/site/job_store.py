# SPDX-License-Identifier: Apache-2.0
"""Store jobs in one Parquet file per day. Readers never see a partial day.

    STORE/site.json               settings: which names are hashed
    STORE/.salt                   secret of these hashes, readable by the store's owner alone
    STORE/jobs/2026-11-29.parquet jobs that began on that day, UTC, ordered by begin
    STORE/fabrics/DATE-HASH-N/    dumps of a fabric and its table of link directions
    STORE/sums/                   sums of each day, recomputed where they are missing

A writer holds a lock, reads the day's file, adds missing jobs, and renames the new file over the old file. So the file
of a day is complete, even after a writer was killed. A job that is added twice is stored once.

`share_jobs` writes a separate store for each user, with this user's jobs. The user owns the files in this store, root
owns its folders: otherwise, root could follow symbolic links of the user.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import pwd
import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ibprof.errors import InconsistentError, InputError, quote_found
from ibprof_converter.outputs.atomic_write import write_atomically
from ibprof_converter.site.fabric_days import FOLDER, TABLE, list_fabrics
from ibprof_converter.site.job_summary import SCHEMA

SETTINGS = "site.json"
_SALT = ".salt"
_HASHABLE = {"user": "users", "name": "jobs"}
"""Column whose names a store can replace by hashes -> noun in messages."""
_FORMAT = 1
JOBS = "jobs"
_ROWS_IN_GROUP = 2048
"""Number of jobs in a Parquet row group: a query about one moment reads only some row groups."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """Numbers of jobs of an ingest: new jobs, updated jobs, and jobs that were already stored."""

    added: int = 0
    replaced: int = 0
    known: int = 0

    def __add__(self, other: Ingested) -> Ingested:
        return Ingested(self.added + other.added, self.replaced + other.replaced, self.known + other.known)


class JobStore:
    """A store of jobs: a folder with a file per day."""

    def __init__(self, folder: Path, *, make: bool = False, hashed: Collection[str] = ()) -> None:
        """Open a store.

        Args:
            make: true to make a missing store.
            hashed: columns (`user`, `name`) whose names are replaced by hashes. An existing store must already hash
                these columns.

        Raises:
            InputError: there is no store, or it has another format.
            InconsistentError: an existing store does not hash these columns.
            OSError: the store cannot be made.
        """
        self.folder = folder
        settings = folder / SETTINGS
        if make and not settings.exists():
            (folder / JOBS).mkdir(parents=True, exist_ok=True)
            with self.locked():
                if not settings.exists():
                    if hashed:
                        self._make_salt()
                    chosen = {"format": _FORMAT, **{f"hash_{column}s": column in hashed for column in _HASHABLE}}
                    write_atomically(settings, json.dumps(chosen).encode())
        self.hashed = self._read_settings(settings)
        for column in hashed:
            if column not in self.hashed:
                raise InconsistentError(f"{folder}: this store does not hash names of {_HASHABLE[column]}")

    def _make_salt(self) -> None:
        """Write the secret of the hashes to a file that only the store's owner can read."""
        salt = self.folder / _SALT
        salt.touch(0o600)
        salt.write_bytes(secrets.token_bytes(16))

    @staticmethod
    def _read_settings(settings: Path) -> frozenset[str]:
        try:
            read = json.loads(settings.read_text())
        except FileNotFoundError:
            raise InputError(settings.parent, None, "a store of ibprof-site", "none; ingest makes one") from None
        except ValueError as error:
            raise InputError(settings, None, "settings as JSON", str(error)) from None
        if not isinstance(read, dict) or read.get("format") != _FORMAT:
            raise InputError(settings, None, f'"format": {_FORMAT}', quote_found(json.dumps(read)))
        return frozenset(column for column in _HASHABLE if read.get(f"hash_{column}s"))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the store. If the process is killed, the kernel releases the lock."""
        descriptor = os.open(self.folder / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o660)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def days(self) -> list[date]:
        """Return the days that have jobs, in chronological order.

        Raises:
            OSError: the folder of jobs cannot be read.
        """
        found = []
        for path in (self.folder / JOBS).iterdir():  # glob raises no error for an unreadable folder
            with suppress(ValueError):
                if path.suffix == ".parquet":
                    found.append(date.fromisoformat(path.stem))
        return sorted(found)

    def path_of(self, day: date) -> Path:
        """Return the path of a day's file."""
        return self.folder / JOBS / f"{day.isoformat()}.parquet"

    def add(self, jobs: pa.Table, oldest: date = date.min) -> Ingested:
        """Add jobs to the files of their days. Jobs that began before the day `oldest` are left out.

        Raises:
            InputError: a day's file is damaged.
            OSError: the file of a day cannot be written; jobs of earlier days are already stored.
        """
        for column in self.hashed:
            jobs = jobs.set_column(SCHEMA.get_field_index(column), column, self._hash(jobs[column]))
        days = pc.cast(jobs["began"], pa.date32())
        done = Ingested()
        for day in sorted(day for day in pc.unique(days).to_pylist() if day >= oldest):
            with self.locked():
                done += self._merge(day, jobs.filter(pc.equal(days, pa.scalar(day))))
        return done

    def _hash(self, column: Any) -> Any:
        encoded = column.combine_chunks().dictionary_encode()
        salt = (self.folder / _SALT).read_bytes()
        names = [hmac.digest(salt, str(each).encode(), "sha256").hex()[:16] for each in encoded.dictionary.to_pylist()]
        return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(names, pa.string())).cast(pa.string())

    def _merge(self, day: date, jobs: pa.Table) -> Ingested:
        path = self.path_of(day)
        _remove_leftovers(path)
        stored = self.read_day(day) if path.exists() else SCHEMA.empty_table()
        both = pa.concat_tables([stored, jobs])
        # Keep one state of each job: a finished state, or else the state with the latest end, or else the first state.
        order = pa.table(
            {
                # The user is part of the key, so that no job replaces a job of another user.
                "key": pc.binary_join_element_wise(both["key"], pc.fill_null(both["user"], ""), " "),
                "finished": pc.fill_null(both["finished"], fill_value=False).cast(pa.int8()),
                "ended": both["ended"],
                "place": np.arange(len(both)),
            }
        ).sort_by([("key", "ascending"), ("finished", "descending"), ("ended", "descending"), ("place", "ascending")])
        key = order["key"].combine_chunks()
        first = np.ones(len(both), np.bool_)
        first[1:] = pc.not_equal(key[1:], key[:-1]).to_numpy(zero_copy_only=False)
        kept = order["place"].to_numpy()[first]
        new = int((kept >= len(stored)).sum())
        added = len(kept) - len(stored)
        outcome = Ingested(added, new - added, len(jobs) - new)
        if new:
            merged = both.take(np.sort(kept)).sort_by([("began", "ascending"), ("key", "ascending")])
            write_atomically(path, encode_jobs(merged))
        return outcome

    def has(self, day: date, key: str) -> bool:
        """Return true if a job is stored and finished."""
        path = self.path_of(day)
        if not path.exists():
            return False
        found = pq.read_table(path, columns=["key"], filters=[("key", "==", key), ("finished", "==", True)])
        return bool(len(found))

    def read_day(self, day: date) -> pa.Table:
        """Return the jobs of a day.

        Raises:
            InputError: the day's file is damaged.
        """
        path = self.path_of(day)
        try:
            return pq.read_table(path, schema=SCHEMA)
        except pa.ArrowException as error:
            raise InputError(path, None, "a file of jobs", str(error).partition("\n")[0]) from None

    def expire(self, before: date) -> list[date]:
        """Delete the files of all days before the given day; return the deleted days.

        Raises:
            OSError: a file cannot be deleted.
        """
        gone = [day for day in self.days() if day < before]
        with self.locked():
            for day in gone:
                self.path_of(day).unlink(missing_ok=True)
                for sums in (self.folder / "sums").glob(f"{day.isoformat()}.*"):
                    sums.unlink(missing_ok=True)
        return gone


def encode_jobs(jobs: pa.Table) -> memoryview:
    """Return the content of a Parquet file with these jobs."""
    sink = pa.BufferOutputStream()
    pq.write_table(jobs, sink, row_group_size=_ROWS_IN_GROUP, compression="zstd")
    return memoryview(sink.getvalue())


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of killed writers. No other writer is active, because the caller holds the lock."""
    for left in path.parent.glob(f".{path.name}.*"):
        left.unlink(missing_ok=True)


def today() -> date:
    """Return the current day, UTC."""
    return now().date()


def now() -> datetime:
    """Return the current time, UTC."""
    return datetime.now(timezone.utc).replace(tzinfo=None)


def days_ago(days: int) -> date:
    """Return the day that was `days` days ago, UTC."""
    return today() - timedelta(days=days)


_READ_BY_OWNER = 0o400


def share_jobs(store: JobStore, folder: Path) -> dict[str, int]:
    """Write a store for each user of this machine, with the user's jobs; return user -> number of jobs.

    Files of unchanged days are not written again. Files of days that are not in `store` are deleted.

    Args:
        store: the store with the jobs of all users.
        folder: folder with a subfolder for the store of each user.

    Raises:
        InconsistentError: the store has hashes in place of user names.
        OSError: a file cannot be written, or its owner cannot be set (this needs root).
    """
    if "user" in store.hashed:
        raise InconsistentError(f"{store.folder}: names of users are hashed, so that no user is known")
    shared: dict[str, int] = {}
    kept: set[Path] = set()
    for day in store.days():
        jobs = store.read_day(day)
        changed_ns = store.path_of(day).stat().st_mtime_ns
        for user in pc.unique(jobs["user"]).drop_null().to_pylist():
            uid = _find_uid(user)
            if uid is None:
                continue
            own = jobs.filter(pc.equal(jobs["user"], user))
            place = folder / user / JOBS / store.path_of(day).name
            if not place.exists() or place.stat().st_mtime_ns <= changed_ns:
                _make_store(store, folder / user)
                _write(place, encode_jobs(own), uid)
            kept.add(place)
            shared[user] = shared.get(user, 0) + len(own)
    for place in set(folder.glob(f"*/{JOBS}/*.parquet")) - kept:
        place.unlink(missing_ok=True)
    return shared


def _find_uid(user: str) -> int | None:
    """Return a user's uid; None if the user is unknown, or the name contains `/` or begins with `.`."""
    if user != Path(user).name or user.startswith(".") or "\0" in user:
        return None
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def _make_store(store: JobStore, place: Path) -> None:
    """Make the folders and settings of a user's store; copy missing tables of link directions to it."""
    (place / JOBS).mkdir(parents=True, exist_ok=True)
    if not (place / SETTINGS).exists():
        shutil.copyfile(store.folder / SETTINGS, place / SETTINGS)
    for _, fabric in list_fabrics(store.folder):
        table = place / FOLDER / fabric.name / TABLE
        if not table.exists():
            table.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(fabric / TABLE, table)


def _write(place: Path, content: memoryview, uid: int) -> None:
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  (a descriptor)
            file.write(content)
            os.fchmod(descriptor, _READ_BY_OWNER)
            if uid != os.geteuid():
                os.fchown(descriptor, uid, -1)
        Path(name).replace(place)
    except OSError:
        with suppress(OSError):
            Path(name).unlink()
        raise
