# SPDX-License-Identifier: Apache-2.0
"""Record a minimal job and examine the result, which no list of MPIs can replace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import IbprofError
from ibprof.launch.preload_settings import preload
from ibprof.profile.profile_data import Rank
from ibprof.recording.recording_reader import read_recording

_SECONDS = 60

# A process that is a whole job. Python needs no compiler; it calls the first MPI_Init, as a program does.
_BY_LIBRARY = """
import ctypes, sys
ctypes.CDLL(sys.argv[2], ctypes.RTLD_GLOBAL)
mpi = ctypes.CDLL(None)
ended = mpi.MPI_Init(None, None)
"""
_BY_MPI4PY = """
from mpi4py import MPI
ended = 0
import ctypes
class mpi: MPI_Finalize = staticmethod(MPI.Finalize)
"""
_AND_REPORT = """
import json, sys
maps = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if line.count("/")}
json.dump(sorted(maps), open(sys.argv[1], "w"))
ended or mpi.MPI_Finalize()
sys.exit(1 if ended else 0)
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of a job of one process.

    Attributes:
        rank: its record; None if it recorded nothing.
        mpi: the library's own name and version, empty where unknown.
        loaded: names of its mapped files.
        said: its stderr.
        started: whether MPI was initialised; otherwise the trial proves nothing.
    """

    rank: Rank | None
    mpi: str
    loaded: tuple[str, ...]
    said: str
    started: bool


def try_library(mpi: Path, library: Path, environment: Mapping[str, str]) -> Trial:
    """Record a process that loads an MPI library."""
    return _try([sys.executable, "-c", _BY_LIBRARY + _AND_REPORT], [str(mpi)], library, environment)


def try_mpi4py(python: Path, library: Path, environment: Mapping[str, str]) -> Trial:
    """Record a process of a Python with the MPI that its mpi4py loads."""
    return _try([str(python), "-c", _BY_MPI4PY + _AND_REPORT], [], library, environment)


def _try(command: Sequence[str], arguments: Sequence[str], library: Path, environment: Mapping[str, str]) -> Trial:
    with tempfile.TemporaryDirectory(prefix="ibprof-doctor-") as name:
        folder = Path(name)
        loaded, recording = folder / "loaded", folder / "probe.ibprof"
        own = {"IBPROF_OUTPUT": str(recording), "LD_PRELOAD": preload(library, environment.get("LD_PRELOAD", ""))}
        try:
            done = subprocess.run(
                [*command, str(loaded), *arguments],
                env={**environment, **own},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
            said = done.stderr.strip()
        except (OSError, subprocess.TimeoutExpired) as error:
            said = str(error)
        names = tuple(os.path.basename(path) for path in json.loads(loaded.read_text())) if loaded.exists() else ()  # noqa: PTH119
        try:
            run = read_recording(recording)
        except (IbprofError, OSError):
            return Trial(None, "", names, said, started=bool(names))
        return Trial(run.ranks[0], run.mpi, names, said, started=True)
