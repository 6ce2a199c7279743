# SPDX-License-Identifier: Apache-2.0
"""CPython interpreters of many versions, which `scripts/pythons.sh` unpacks into `.pythons`."""

from __future__ import annotations

import sysconfig
from ctypes.util import find_library
from pathlib import Path

from ibprof_testing.machine import MissingError
from ibprof_testing.paths import ROOT

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t", "3.15")
"""Versions whose frames ibprof reads; `t` is a build without the interpreter's lock."""


def find_python(version: str) -> Path:
    """Return the interpreter of a version.

    Raises:
        MissingError: it has not been unpacked.
    """
    python = ROOT / ".pythons" / version / "python"
    if not python.exists():
        raise MissingError(f"no Python {version}: make .pythons/ready")
    return python


def find_libpython() -> Path | str:
    """Return the interpreter's library, of this interpreter's version.

    Raises:
        MissingError: the machine has none.
    """
    version = sysconfig.get_config_var("py_version_short")
    built = Path(sysconfig.get_config_var("LIBDIR")) / f"libpython{version}.so.1.0"
    if built.exists():
        return built
    if found := find_library(f"python{version}"):
        return found
    raise MissingError(f"no libpython{version}.so: apt-get install libpython3-dev")
