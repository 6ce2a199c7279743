# SPDX-License-Identifier: Apache-2.0
"""Write and read the files of an archive, which are `NAME.otf2`, `NAME.def`, and `NAME/` with events and samples."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ibprof.errors import InputError, UsageError, quote_found
from ibprof.profile.profile_data import CollectiveSamples, MessageSamples, Profile
from ibprof.profile.row_arrays import Rows

if TYPE_CHECKING:
    from ibprof.archive.archive_writer import Progress

SUFFIX = ".otf2"

_MAGIC = b"OTF2"
# An anchor file begins with two bytes: the kind of the first chunk, and the byte order.
_MAGIC_OFFSET = 2

_NAMES_TRIED = 10_000

SAMPLES_FILE = "samples.npz"
"""Name of the file with samples of calls, in the archive's folder: a numpy array for each column."""

_COLLECTIVES, _MESSAGES = "collective", "message"

_ADDED = {
    **{f"{table}.is_long": False for table in (_COLLECTIVES, _MESSAGES)},
    **{f"{table}.is_chosen": True for table in (_COLLECTIVES, _MESSAGES)},
    f"{_MESSAGES}.completed": np.uint16(0),
}
"""Columns that archives of 0.1.0 may lack, with their default values."""

_IS_OF_ARCHIVE = re.compile(rf"\d+\.(evt|def)|{re.escape(SAMPLES_FILE)}")


def write_archive(run: Profile, path: Path, progress: Progress | None = None) -> None:
    """Write a profile, replacing an existing archive.

    Args:
        path: path of the anchor file.

    Raises:
        UsageError: `path` does not end with `.otf2`.
        InputError: the path is another file, or cannot be written.
    """
    from ibprof.archive.archive_writer import write_files  # noqa: PLC0415  (its kernels are slow to load)
    from ibprof.native.libraries import Otf2Error  # noqa: PLC0415

    if path.suffix != SUFFIX or not path.stem:
        raise UsageError(f"{path}: an OTF2 archive needs a name that ends with {SUFFIX}")
    check_replaceable(path)
    try:
        # Write in a folder next to `path`, so that a rename moves the new files into place.
        folder = Path(tempfile.mkdtemp(prefix=f".{path.stem}-", dir=path.parent))
    except OSError as error:
        raise InputError(path.parent, None, "a folder to write in", (error.strerror or str(error)).lower()) from error
    try:
        new, old = folder / "new", folder / "old"
        new.mkdir()
        old.mkdir()
        try:
            write_files(run, new, path.stem, progress)
            _write_samples(run, new / path.stem)
        except (Otf2Error, OSError) as error:
            raise InputError(path, None, "space to write an archive", str(error)) from error
        for part in _parts(path):
            if part.exists():
                part.rename(old / part.name)
        # Rename the anchor last: it completes the archive.
        for part in _parts(path):
            (new / part.name).rename(part)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # removes only the empty folder that `claim_path` made, if no archive was written
            path.with_suffix("").rmdir()


def read_archive(path: Path) -> Profile:
    """Read a profile that `write_archive` wrote.

    Args:
        path: path of the anchor file.

    Raises:
        InputError: the file is no archive of ibprof, has a newer version, or is damaged.
    """
    if not is_archive(path):
        raise InputError(path, None, "an OTF2 archive", "something else" if path.exists() else "nothing")
    from ibprof.archive.archive_reader import read_trace  # noqa: PLC0415  (its kernels are slow to load)
    from ibprof.native.libraries import Otf2Error  # noqa: PLC0415

    try:
        run, samples = read_trace(path)
    except (Otf2Error, LookupError, TypeError, ValueError) as error:
        raise InputError(path, None, "a whole OTF2 archive", f"{type(error).__name__}: {error}") from error
    collectives, messages = _read_samples(path.with_suffix(""), samples)
    return replace(run, collective_samples=collectives, message_samples=messages)


def is_archive(path: Path) -> bool:
    """Return whether a file is the anchor of an OTF2 archive."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(_MAGIC_OFFSET + len(_MAGIC))[_MAGIC_OFFSET:] == _MAGIC


def check_replaceable(path: Path) -> None:
    """Raise InputError if an archive at a path would overwrite files that belong to no archive.

    Raises:
        InputError: the path exists, and is no OTF2 archive.
    """
    definitions, folder, anchor = _parts(path)
    if anchor.exists() and not is_archive(anchor):
        raise InputError(anchor, None, "no file, or an OTF2 archive to replace", "something else")
    if definitions.exists() and not definitions.is_file():
        raise InputError(definitions, None, "no file, or a file of an OTF2 archive", "something else")
    needed = f"no file {folder.name}, since OTF2 keeps the events of {anchor.name} in a folder of this name"
    if folder.exists() and not folder.is_dir():
        raise InputError(folder, None, needed, "something else; choose another name with -o")
    inside = list(folder.iterdir()) if folder.is_dir() else []
    if others := [item.name for item in inside if not _IS_OF_ARCHIVE.fullmatch(item.name)]:
        raise InputError(folder, None, "no folder, or the folder of an OTF2 archive", quote_found(others[0]))


def claim_path(path: Path, run: Profile) -> Path:
    """Return a path for a run's archive: `path`, or the first free `NAME-2.otf2`, ... if `path` is taken.

    Create the archive's empty events folder, so that no other process chooses the same name. An earlier archive of
    the same run is replaced.

    Raises:
        InputError: none of these names is free, or the folder cannot be written to.
    """
    for number in range(1, _NAMES_TRIED):
        free = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        if _is_archive_of(free, run):
            return free
        if any(part.exists() for part in _parts(free)):
            continue
        try:
            free.with_suffix("").mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise InputError(
                path.parent, None, "a folder to write in", (error.strerror or str(error)).lower()
            ) from error
        return free
    raise InputError(path, None, f"a free name up to {path.stem}-{_NAMES_TRIED - 1}{path.suffix}", "none")


def _is_archive_of(path: Path, run: Profile) -> bool:
    """Return whether an archive is of the same run: same job and command, and at least one common process."""
    if not is_archive(path):
        return False
    from ibprof.archive.archive_reader import read_origin  # noqa: PLC0415  (its kernels are slow to load)
    from ibprof.native.libraries import Otf2Error  # noqa: PLC0415

    try:
        found = read_origin(path)
    except (Otf2Error, LookupError, TypeError, ValueError):
        return False
    starts = {(rank.rank, rank.start_ns) for rank in run.ranks}
    return (found.job, found.command) == (run.job, run.command) and not starts.isdisjoint(found.starts)


def _parts(path: Path) -> tuple[Path, Path, Path]:
    """Return the files of an archive, the anchor last."""
    return path.with_suffix(".def"), path.with_suffix(""), path


def _write_samples(run: Profile, folder: Path) -> None:
    """Write the samples of a profile. A profile without samples gets no file.

    Raises:
        OSError: the file could not be written.
    """
    tables: dict[str, CollectiveSamples | MessageSamples] = {
        _COLLECTIVES: run.collective_samples,
        _MESSAGES: run.message_samples,
    }
    if any(len(rows.rank) for rows in tables.values()):
        columns = {f"{table}.{name}": at for table, rows in tables.items() for name, at in rows.columns().items()}
        np.savez_compressed(folder / SAMPLES_FILE, **columns)  # type: ignore[arg-type]


def _read_samples(folder: Path, expected: int | None) -> tuple[CollectiveSamples, MessageSamples]:
    """Return the samples of a profile. The samples are empty if the archive has no file of samples.

    Args:
        expected: number of samples of the profile; None if unknown.

    Raises:
        InputError: the file is damaged, belongs to another profile, or is missing although samples are expected.
    """
    path = folder / SAMPLES_FILE
    if not path.exists():
        if expected:
            raise InputError(path, None, f"{expected:,} samples of a profile", "nothing")
        return CollectiveSamples.empty(), MessageSamples.empty()
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            collectives = _read_rows(CollectiveSamples, _COLLECTIVES, stored)
            messages = _read_rows(MessageSamples, _MESSAGES, stored)
    except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(path, None, "samples of a profile", f"{type(error).__name__}: {error}") from error
    if expected is not None and (found := len(collectives.rank) + len(messages.rank)) != expected:
        raise InputError(path, None, f"{expected:,} samples of a profile", f"{found:,}")
    return collectives, messages


def _read_rows(made: type[Rows], table: str, stored: np.lib.npyio.NpzFile) -> Rows:
    columns = {name: stored[f"{table}.{name}"] for name in made.column_types() if f"{table}.{name}" not in _ADDED}
    for name, value in _ADDED.items():
        if name.startswith(f"{table}."):
            missing = np.full(len(columns["rank"]), value)
            columns[name.removeprefix(f"{table}.")] = stored.get(name, missing)
    for name, column in made.column_types().items():
        if columns[name].dtype != column or columns[name].ndim != 1:
            raise ValueError(f"expected numbers of {np.dtype(column)} in {table}.{name}, found {columns[name].dtype}")
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError(f"expected columns of equal length in {table}")
    return made(**columns)
