# SPDX-License-Identifier: Apache-2.0
"""The samples of a profile: `samples.npz` in the folder of an OTF2 archive, columns as arrays of numpy."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from ibprof.errors import InputError
from ibprof.profile.profile_data import CollectiveSamples, MessageSamples, Profile
from ibprof.profile.row_arrays import Rows

SAMPLES_FILE = "samples.npz"

_COLLECTIVES, _MESSAGES = "collective", "message"


def write_samples(run: Profile, folder: Path) -> None:
    """Write the samples of a profile; no file where it has none.

    Args:
        run: the profile.
        folder: of the archive's events.

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


def read_samples(folder: Path) -> tuple[CollectiveSamples, MessageSamples]:
    """Read the samples of a profile; none where it has no file.

    Args:
        folder: of the archive's events.

    Raises:
        InputError: the file is damaged.
    """
    path = folder / SAMPLES_FILE
    if not path.exists():
        return CollectiveSamples.empty(), MessageSamples.empty()
    try:
        with np.load(path, allow_pickle=False) as stored:
            return _read_rows(CollectiveSamples, _COLLECTIVES, stored), _read_rows(MessageSamples, _MESSAGES, stored)
    except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(path, None, "samples of a profile", f"{type(error).__name__}: {error}") from error


def _read_rows(made: type[Rows], table: str, stored: np.lib.npyio.NpzFile) -> Rows:
    columns = {name: stored[f"{table}.{name}"] for name in made.column_types()}
    for name, column in made.column_types().items():
        if columns[name].dtype != column or columns[name].ndim != 1:
            raise ValueError(f"expected numbers of {np.dtype(column)} in {table}.{name}, found {columns[name].dtype}")
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError(f"expected columns of one length in {table}")
    return made(**columns)
