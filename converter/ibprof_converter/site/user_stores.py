# SPDX-License-Identifier: Apache-2.0
"""A store for each user, with the user's own jobs: the user owns the files, the writer of the stores the folders.

A user cannot replace anything in these folders, so a privileged writer never follows a user's links.
"""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pyarrow.compute as pc

from ibprof.errors import InconsistentError
from ibprof_converter.site.fabric_days import FOLDER, TABLE, list_fabrics
from ibprof_converter.site.job_store import JOBS, SETTINGS, JobStore, encode_jobs

_READ_BY_OWNER = 0o400


def share_jobs(store: JobStore, folder: Path) -> dict[str, int]:
    """Write the jobs of each user of this machine; return the number of jobs by user.

    Unchanged days are not written again; days that are no longer in the store are removed.

    Args:
        store: the store with the jobs of all users.
        folder: folder that receives the store of each user.

    Raises:
        InconsistentError: the store has hashes in place of user names.
        OSError: a file cannot be written or given to its user, which needs root.
    """
    if store.hashes_users:
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
    """Return the uid of a user; None if this machine has no such user, or the name is invalid for a folder."""
    if user != Path(user).name or user.startswith(".") or "\0" in user:
        return None
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def _make_store(store: JobStore, place: Path) -> None:
    """Make the folders and settings of a store, and copy missing tables of link directions."""
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
