# SPDX-License-Identifier: Apache-2.0
"""Paths of the installed native parts of ibprof."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from ibprof.errors import MissingToolError

_TEXT_BEGINS = "/* -- cffi begins -- */"
_TEXT_ENDS = "/* -- cffi ends -- */"


def find_library() -> Path:
    """Return the path of libibprof.so.

    Raises:
        MissingToolError: it was not built.
    """
    return _find("lib/libibprof.so")


def find_include() -> Path:
    """Return the folder of ibprof.h.

    Raises:
        MissingToolError: it was not installed.
    """
    return _find("include/ibprof.h").parent


def find_recording_header() -> Path:
    """Return the path of the header that describes recordings.

    Raises:
        MissingToolError: it was not installed.
    """
    return _find_header("ibprof_recording.h")


def find_kernels() -> Path:
    """Return the path of libibprof_kernels.so.

    Raises:
        MissingToolError: it was not built.
    """
    return _find("lib/libibprof_kernels.so")


def find_kernels_headers() -> list[Path]:
    """Return the paths of the headers that describe libibprof_kernels.so, each after those that it includes.

    Raises:
        MissingToolError: one was not installed.
    """
    includes = _find_header("ibprof_kernels.h").read_text(encoding="utf-8")
    return [_find_header(name) for name in re.findall(r'^#include "(.+)"$', includes, re.MULTILINE)]


def cffi_text(header: Path) -> str:
    """Return the part of a header that cffi can read, between the two marker lines."""
    return header.read_text(encoding="utf-8").partition(_TEXT_BEGINS)[2].partition(_TEXT_ENDS)[0]


def _find_header(name: str) -> Path:
    # Modules read headers when they are imported, which tools also do in a checkout that was not built.
    source = Path(__file__).parents[2] / "csrc" / "include" / name
    installed = f"include/{name}"
    return source if source.is_file() and not files("ibprof").joinpath(installed).is_file() else _find(installed)


def _find(name: str) -> Path:
    # A wheel is always unpacked, so its files have paths, as a loader and a compiler need.
    path = Path(str(files("ibprof").joinpath(name)))
    if not path.is_file():
        raise MissingToolError(f"{path} is missing: this ibprof was not built; install it with `pip install .`")
    return path
