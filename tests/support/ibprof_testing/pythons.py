# SPDX-License-Identifier: Apache-2.0
"""Find the CPython interpreters that `scripts/pythons.sh` unpacks into `.pythons`."""

from __future__ import annotations

import sysconfig
from ctypes.util import find_library
from pathlib import Path

from ibprof_testing.machine import MissingError
from ibprof_testing.paths import ROOT

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t", "3.15")
"""Versions of CPython whose frames ibprof can read; `t` marks a free-threaded build."""


def find_python(version: str) -> Path:
    """Return the interpreter of a version.

    Raises:
        MissingError: the interpreter has not been unpacked.
    """
    python = ROOT / ".pythons" / version / "python"
    if not python.exists():
        raise MissingError(f"no Python {version}: make .pythons/ready")
    return python


def find_libpython() -> Path | str:
    """Return the libpython of the running interpreter's version.

    Raises:
        MissingError: the machine has no libpython of this version.
    """
    version = sysconfig.get_config_var("py_version_short")
    built = Path(sysconfig.get_config_var("LIBDIR")) / f"libpython{version}.so.1.0"
    if built.exists():
        return built
    if found := find_library(f"python{version}"):
        return found
    raise MissingError(f"no libpython{version}.so: apt-get install libpython3-dev")
