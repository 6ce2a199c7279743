# SPDX-License-Identifier: Apache-2.0
"""Whether a job would be recorded here, before one is wasted."""

from __future__ import annotations

import ctypes.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ibprof.installed import find_library
from ibprof.launch import Launcher, identify_launcher

NAME = "libibprof.so"

# Mellanox' library of the same name counts calls to verbs, and is steered by these.
_OTHER_LIBRARY = "IBPROF_MODE"

_ASK_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        about: what.
        good: whether a job can be recorded as far as this goes.
        text: what was found, and what to do when it is not good.
    """

    about: str
    good: bool
    text: str


def examine(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the MPI, the library and the folder to record in.

    Args:
        environment: that a job would be started in.
    """
    yield _find_mpi()
    library = find_library()
    yield _load(library)
    yield _look_for_another(library, environment)
    yield _try_folder(Path(environment.get("IBPROF_OUTPUT") or "profile.ibprof"))


def _find_mpi() -> Finding:
    path = shutil.which("mpirun")
    if path is None:
        return Finding("MPI", good=False, text="no mpirun is on the PATH: load the MPI module that jobs use")
    launcher = identify_launcher(path)
    if launcher in (Launcher.OPENMPI_4, Launcher.OPENMPI_5):
        version = "4" if launcher is Launcher.OPENMPI_4 else "5"
        return Finding("MPI", good=True, text=f"{path} is Open MPI {version}: bytes are seen where its calls meet")
    return Finding("MPI", good=False, text=f"{path} is of no MPI that ibprof sees into: Open MPI 4 and 5 are")


def _load(library: Path) -> Finding:
    done = subprocess.run(
        [sys.executable, "-c", ""],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_ASK_SECONDS,
        check=False,
    )
    if done.returncode or done.stderr:
        return Finding("library", good=False, text=f"{library} cannot be preloaded: {done.stderr.strip()}")
    return Finding("library", good=True, text=f"{library} can be preloaded")


def _look_for_another(library: Path, environment: Mapping[str, str]) -> Finding:
    """Look for a library of the same name that would be found first."""
    preloaded = [Path(item) for item in re.split("[: ]+", environment.get("LD_PRELOAD", "")) if item]
    folders = [Path(folder) for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    named = [item for item in preloaded if item.name == NAME and "/" in str(item)]
    found = next((one for one in (*named, *(folder / NAME for folder in folders)) if one.is_file()), None)
    known_to_system = ctypes.util.find_library("ibprof")
    if found is not None and not found.samefile(library):
        whose = "Mellanox' library" if _OTHER_LIBRARY.encode() in found.read_bytes() else "another one"
        return Finding(
            "name", good=False, text=f"{found} is {whose} and comes before ours: use ibprof run, or ibprof env"
        )
    if found is None and known_to_system:
        return Finding(
            "name", good=False, text=f"the system has another {known_to_system}: use ibprof run, or ibprof env"
        )
    return Finding("name", good=True, text=f"no other {NAME} comes before ours")


def _try_folder(folder: Path) -> Finding:
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        return Finding("folder", good=True, text=f"recordings can be written to {folder}")
    return Finding(
        "folder", good=False, text=f"nothing can be written to {folder}: set IBPROF_OUTPUT to another folder"
    )
