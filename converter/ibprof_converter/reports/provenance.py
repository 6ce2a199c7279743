# SPDX-License-Identifier: Apache-2.0
"""Describe the provenance of a report: command, software versions, and inputs with hashes."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ibprof.load import look_into

_PIECE = 1 << 20

_PACKAGES = ("ibprof", "numpy", "otf2")


def _find_versions() -> Iterator[tuple[str, str]]:
    for package in _PACKAGES:
        try:
            yield package, version(package)
        except PackageNotFoundError:  # run from the sources
            yield package, "not installed"
    yield "Python", platform.python_version()


VERSIONS = tuple(_find_versions())
"""Versions of Python and of the packages that affect a report."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file, or a folder with all of its files.

    Attributes:
        bytes: size of the file, or of all files in the folder.
        sha256: hash of the file; for a folder, hash of a list of its files (lines `SHA256 PATH`, sorted by path).
    """

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The data that a user needs to reproduce a report.

    Attributes:
        command: the command line.
        versions: versions of the software.
        inputs: the files that were read.
    """

    command: str
    versions: tuple[tuple[str, str], ...]
    inputs: tuple[InputFile, ...]


NOWHERE = Provenance("", (), ())
"""Empty provenance, for reports that are not shown."""


def describe_provenance(command: str, inputs: Iterable[Path]) -> Provenance:
    """Return the provenance of a report.

    Args:
        command: the command line as typed.
        inputs: files and folders. Inputs that cannot be read twice, such as pipes, are left out.
    """
    named = dict.fromkeys(part for path in inputs for part in _parts(path))
    return Provenance(
        command=command,
        versions=VERSIONS,
        inputs=tuple(_hash_input(path) for path in named if path.is_file() or path.is_dir()),
    )


def _parts(path: Path) -> Iterator[Path]:
    """Yield the path of an input; for an OTF2 archive, also yield its definitions and folder."""
    path = look_into(path)
    yield path
    if path.suffix == ".otf2":
        yield path.with_suffix(".def")
        yield path.with_suffix("")


def _hash_input(path: Path) -> InputFile:
    if path.is_file():
        return InputFile(str(path), path.stat().st_size, _hash_file(path))
    whole, total = hashlib.sha256(), 0
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        total += file.stat().st_size
        whole.update(f"{_hash_file(file)}  {file.relative_to(path).as_posix()}\n".encode("utf-8", "surrogateescape"))
    return InputFile(str(path), total, whole.hexdigest())


def _hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
