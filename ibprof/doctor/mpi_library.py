# SPDX-License-Identifier: Apache-2.0
"""Check the MPI library: version, transports, and the layer where bytes are counted.

The check records a minimal job and examines the result, because no list of MPI libraries would be complete.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ibprof.doctor.program_check import DoctorFinding, Program, list_libraries
from ibprof.errors import IbprofError
from ibprof.launch.preload_settings import Launcher, identify_launcher, preload
from ibprof.profile.profile_data import Rank, Source
from ibprof.recording.recording_reader import read_recording
from ibprof.sites.elf_file import read_elf

_FAMILIES = {"Open MPI": "Open MPI", "MPICH": "MPICH", "Intel": "MPICH", "MVAPICH": "MPICH", "CRAY": "MPICH"}
"""Word in an MPI library's version text -> family of launchers that start the library."""

_LAUNCHED = {Launcher.OPENMPI_4: "Open MPI", Launcher.OPENMPI_5: "Open MPI", Launcher.HYDRA: "MPICH"}

_ABIS = (
    (r"libmpi_abi\.so", "the standard ABI"),
    (r"libmpi\.so\.12|libmpich|libmpi_cray|libmpi_gnu", "the MPICH ABI"),
    (r"libmpi\.so\.(20|40|80)", "Open MPI's ABI"),
)

_TRANSPORTS = (
    (r"libucp\.so", "UCX"),
    (r"libfabric\.so", "libfabric"),
    (r"libfabric-|lib(\w+)-fi\.so", "libfabric's providers"),
    (r"mca_pml_(\w+)\.so", "pml"),
    (r"mca_mtl_(\w+)\.so", "mtl"),
    (r"mca_btl_(\w+)\.so", "btl"),
    (r"libibverbs\.so", "verbs"),
    (r"libmlx5", "mlx5"),
    (r"libpsm2", "PSM2"),
    (r"libhcoll", "hcoll (its collectives are not recorded)"),
    (r"libucc\.so", "UCC (its collectives are not recorded)"),
)
"""Patterns of files that an MPI process maps, and the transport that each file belongs to."""

_FORTRAN = (
    (r"libmpi_usempif08|libmpi_f08", "use mpi_f08"),
    (r"libmpi_usempi|libmpi_usempi_ignore_tkr", "use mpi"),
    (r"libmpi_mpifh|libmpifort", "mpif.h"),
)

_NETWORK_UNUSED = "does not send through libfabric"
_AS_BETWEEN_HOSTS = {"I_MPI_FABRICS": "shm:ofi"}
_ONE_HOST = (
    "{}: a job on several hosts is recorded. A job on one host opens no network, and is recorded only with "
    "I_MPI_FABRICS=shm:ofi. With IBPROF_INTRANODE=1, messages within a host also use the network"
)

_PREFIX = "OPAL_PREFIX"

_LAYER = "translates handles"
"""Part of the recorder's note on a library that translates the program's handles for the MPI library."""

_OF_THE_TRIAL = "a lone rank"
"""Beginning of notes that are true only because the trial has one process."""

_LIBRARIES = ("libmpi.so.40", "libmpi.so.12", "libmpich.so", "libmpi.so", "libmpi_abi.so")
"""File names of MPI libraries, in the order to try.

Names with a version come first: a file without a version may be a linker script.
"""


_SECONDS = 60

# The program of a one-process job, in Python, so that no compiler is needed.
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


def examine_mpi(program: Program | None, library: Path, environment: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Identify the MPI library of a program, or of the launcher on the PATH, and try to record a process.

    Args:
        program: the program to record; None for any program.
    """
    launchers = (program.launcher_path if program else None, *map(shutil.which, ("mpirun", "mpiexec", "srun")))
    launcher = next(filter(None, launchers), None)
    kind = identify_launcher(launcher) if launcher else None
    mpi = program.mpi if program else _belonging_to(launcher) or _on_search_path(launcher, environment)
    if program and mpi is None and program.python is None:
        if any(name.startswith("libibverbs.so") for name in program.libraries):
            yield DoctorFinding(
                "MPI",
                good=True,
                text="none, but the program loads libibverbs: bytes posted to queue pairs are recorded",
            )
        else:
            yield _explain_no_mpi(program)
        return
    python = program.python if program else None
    if mpi:
        trial = try_library(mpi, library, environment)
    elif python:
        trial = try_mpi4py(python, library, environment)
    else:
        where = f"no MPI library is found for {launcher}" if launcher else "no mpirun is on the PATH"
        yield DoctorFinding("MPI", good=False, text=f"{where}: load the MPI module that jobs use")
        return
    if mpi and not trial.started and _PREFIX not in environment:
        # An Open MPI that was moved after its build, such as PyPI's, needs OPAL_PREFIX. Open MPI's mpirun sets
        # OPAL_PREFIX for ranks, but the trial starts a process without mpirun.
        moved = try_library(mpi, library, {**environment, _PREFIX: str(mpi.parent.parent)})
        trial = moved if moved.started else trial
    between_hosts = None
    if mpi and _NETWORK_UNUSED in trial.said:
        # On one host, Intel MPI opens its network library only on request.
        between_hosts = try_library(mpi, library, {**environment, **_AS_BETWEEN_HOSTS})
    if between_hosts and between_hosts.rank:
        findings = _judge(between_hosts, mpi, program, kind, launcher)
        yield from (finding for finding in findings if finding.about != "source")
        yield DoctorFinding("source", good=False, text=_ONE_HOST.format(between_hosts.rank.source.name.lower()))
    else:
        yield from _judge(trial, mpi, program, kind, launcher)


def _explain_no_mpi(program: Program) -> DoctorFinding:
    if program.names_mpi:
        text = "the program's file names an MPI library, which it may load itself: try `ibprof run -- COMMAND`"
        return DoctorFinding("MPI", good=True, text=text)
    return DoctorFinding("MPI", good=False, text="the program loads no MPI library, and its file names none")


def _judge(
    trial: Trial, mpi: Path | None, program: Program | None, kind: Launcher | None, launcher: str | None
) -> Iterator[DoctorFinding]:
    where = str(mpi) if mpi else "as mpi4py loads it"
    if not trial.started:
        if "No module named 'mpi4py'" in trial.said:
            yield DoctorFinding("MPI", good=False, text=f"{program.python if program else 'this Python'} has no mpi4py")
            return
        said = trial.said.splitlines()
        reason = f": {said[-1]}" if said else ""
        yield DoctorFinding("MPI", good=False, text=f"{where} could not be initialised by a single process{reason}")
        return
    names = [Path(mpi).resolve().name if mpi else "", *trial.loaded]
    abi = next((abi for pattern, abi in _ABIS if any(re.match(pattern, name) for name in names)), "an unknown ABI")
    if trial.rank and any(_LAYER in note for note in trial.rank.notes):
        abi = "through a library that translates handles"
    version = " ".join(trial.mpi.split()) or "an MPI without a version string"
    yield DoctorFinding("MPI", good=True, text=f"{version} ({where}), {abi}")
    family = next((family for word, family in _FAMILIES.items() if word in trial.mpi), None)
    if kind in _LAUNCHED and family and _LAUNCHED[kind] != family:
        text = f"{launcher} starts {_LAUNCHED[kind]}, not this MPI: each process would be a separate job"
        yield DoctorFinding("launcher", good=False, text=text)
    elif launcher:
        yield DoctorFinding(
            "launcher", good=True, text=f"{launcher}" + (f" ({_LAUNCHED[kind]})" if kind in _LAUNCHED else "")
        )
    yield DoctorFinding(
        "transport", good=True, text=_describe(trial.loaded, _TRANSPORTS) or "none recognised by its file name"
    )
    loads = tuple(program.libraries) if program else tuple(list_libraries(mpi)) + _siblings(mpi) if mpi else ()
    if flavours := _describe(loads, _FORTRAN):
        yield DoctorFinding("Fortran", good=True, text=f"{flavours}: calls are recorded like those of C")
    yield from _judge_source(trial)


def _judge_source(trial: Trial) -> Iterator[DoctorFinding]:
    if trial.rank is None or trial.rank.source == Source.NONE:
        notes = trial.rank.notes if trial.rank else ()
        reason = next(
            (line for line in (*notes, *trial.said.splitlines()) if "recorded" in line or "not seen" in line), ""
        )
        said = reason.removeprefix("ibprof: ") or trial.said
        yield DoctorFinding("source", good=False, text=said or "nothing was recorded, and the reason is unknown")
        return
    yield DoctorFinding(
        "source", good=True, text=f"{trial.rank.source.name.lower()}: a trial with a single process was recorded"
    )
    for note in trial.rank.notes:
        if not note.startswith(_OF_THE_TRIAL):
            yield DoctorFinding("unseen", good=True, text=note)


def _describe(names: tuple[str, ...], table: tuple[tuple[str, str], ...]) -> str:
    """Return the word of each pattern in `table` that matches a name, followed by the texts of the pattern's groups."""
    found: dict[str, list[str]] = {}
    for pattern, word in table:
        for name in names:
            if match := re.match(pattern, name):
                found.setdefault(word, []).extend(filter(None, match.groups()))
    return "; ".join(f"{word} {', '.join(sorted(set(parts)))}".strip() for word, parts in found.items())


def _belonging_to(launcher: str | None) -> Path | None:
    """Return the MPI library of a launcher, from the lib folders next to the launcher's folder."""
    if launcher is None:
        return None
    path = Path(launcher).resolve()
    for home in (Path(launcher).parent.parent, path.parent.parent):
        for folder in sorted([home / "lib", home / "lib64", home / "lib/release", *home.glob("lib/*-linux-gnu*")]):
            for name in _LIBRARIES:
                if read_elf(folder / name) and _belongs(folder / name, launcher):
                    return folder / name
    return None


def _on_search_path(launcher: str | None, environment: Mapping[str, str]) -> Path | None:
    """Return the first MPI library on the search path of programs under srun. Srun itself loads no MPI library."""
    if launcher is None or identify_launcher(launcher) != Launcher.SRUN:
        return None
    searched = f"{environment.get('LD_LIBRARY_PATH', '')}:{environment.get('CRAY_LD_LIBRARY_PATH', '')}"
    for folder in map(Path, filter(None, searched.split(":"))):
        named = (folder / name for name in _LIBRARIES)
        for path in (*named, *sorted(folder.glob("libmpi_cray.so*")), *sorted(folder.glob("libmpi_gnu*.so*"))):
            if read_elf(path):
                return path
    return None


def _belongs(library: Path, launcher: str) -> bool:
    kind = identify_launcher(launcher)
    openmpi = b"ompi_mpi_comm_world" in library.read_bytes()
    return openmpi == (kind in (Launcher.OPENMPI_4, Launcher.OPENMPI_5))


def _siblings(mpi: Path) -> tuple[str, ...]:
    return tuple(path.name for path in mpi.parent.glob("libmpi*"))


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of a one-process job.

    Attributes:
        rank: the process's record; None without a recording.
        mpi: the library's own name and version; empty if unknown.
        loaded: names of the files mapped into the process.
        said: stderr of the process.
        started: true if MPI was initialised; otherwise the trial shows nothing.
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
    """Record a Python process that imports mpi4py, with the MPI library that mpi4py loads."""
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
