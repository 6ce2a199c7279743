# SPDX-License-Identifier: Apache-2.0
"""Check and open output files, and remove folders from file paths in texts."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ibprof.errors import UsageError
from ibprof.text.quantities import printable

STDOUT = Path("-")

_FOLDERS = re.compile(r"(?:^|(?<=[\s=:,;'\"]))[^\s=:,;'\"<>]*/(?=[^\s/=:,;'\"])")
"""Matches the folders before the name of a file in a command."""


def check_files(inputs: Iterable[Path], outputs: Mapping[str, Path | None]) -> None:
    """Raise an error if an output would overwrite an input or another output.

    Args:
        inputs: files that are read.
        outputs: option -> file; None without a file.

    Raises:
        UsageError: two names are names of one file.
    """
    taken = {_identify(path): "an input" for path in inputs}
    for option, path in outputs.items():
        if path is None or (file := _identify(path)) is None:
            continue
        if file in taken:
            raise UsageError(f"{option} {path}: this is also {taken[file]}")
        taken[file] = option


def _identify(path: Path) -> object:
    """Return a key that is equal for all paths of a file; None for a device or pipe, which several outputs may use."""
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


@dataclass(frozen=True, slots=True)
class PathRedactor:
    """Replaces paths by the names of their files.

    Attributes:
        names: path -> name; the longest path comes first.
    """

    names: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of_files(cls, files: Iterable[Path]) -> PathRedactor:
        """Return a redactor that replaces the typed and the absolute paths of files."""
        names: dict[str, str] = {}
        for file in files:
            given = [each for each in (file, file.absolute(), file.resolve()) if each.name]
            spelt = [*given, Path(*file.absolute().parts[-2:])]
            spelt += [each.with_suffix("") for each in given]  # the folder of an OTF2 archive
            for path in map(str, spelt):
                names[path] = Path(path).name
                names[printable(path)] = printable(Path(path).name)
        for folder in (Path.cwd(), Path.home()):
            names[f"{folder}/"] = ""
        changed = ((path, name) for path, name in names.items() if path not in (name, "/"))
        return cls(tuple(sorted(changed, key=lambda pair: -len(pair[0]))))

    def in_html(self) -> PathRedactor:
        """Return a redactor for HTML text, whose paths have escaped markup characters."""
        return PathRedactor(tuple((html.escape(path), html.escape(name)) for path, name in self.names))

    def apply(self, text: str) -> str:
        """Return a text with paths replaced by names."""
        for path, name in self.names:
            text = text.replace(path, name)
        return text


FULL_PATHS = PathRedactor()
"""Replaces nothing."""


def shorten_command(command: str) -> str:
    """Remove the folders of files from a command line."""
    return _FOLDERS.sub("", command)
