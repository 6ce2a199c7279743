# SPDX-License-Identifier: Apache-2.0
"""Files to write: never over an input, never two outputs into one, and errors that name their file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ibprof.errors import UsageError

STDOUT = Path("-")


def check_files(inputs: Iterable[Path], outputs: Mapping[str, Path | None]) -> None:
    """Refuse to write over an input, or two outputs into one file.

    Args:
        inputs: files that are read.
        outputs: option -> the file that it names, None for none.

    Raises:
        UsageError: two names are of one file.
    """
    taken = {_identify(path): "an input" for path in inputs}
    for option, path in outputs.items():
        if path is None or (file := _identify(path)) is None:
            continue
        if file in taken:
            raise UsageError(f"{option} {path}: this is also {taken[file]}")
        taken[file] = option


def _identify(path: Path) -> object:
    """Return what identifies a file under all its names; None for devices and pipes, which may be written to twice."""
    if not path.exists():
        return path.resolve()
    status = path.stat()
    return (status.st_dev, status.st_ino) if path.is_file() else None


@contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """Open a text file for writing; None and `-` are stdout."""
    if path is None or path == STDOUT:
        yield sys.stdout
        return
    with naming_file(path), path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        yield file


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Add the file's name to errors of writing, such as a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise
