# SPDX-License-Identifier: Apache-2.0
"""Check whether a program can be preloaded, and find its MPI library."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ibprof.launch.preload_settings import Launcher, identify_launcher
from ibprof.sites.elf_file import read_elf
from ibprof.text.host_lists import find_programs

MPI_LIBRARY = re.compile(r"libmpi(ch|_abi|_cray|_gnu[^.]*)?\.so|libmpich|libmsmpi")
OPENSHMEM_LIBRARY = re.compile(r"lib(oshmem|sma)\.so")
_PYTHON = re.compile(r"python[0-9.]*$")
_ASK_SECONDS = 20
_SCRIPT_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Program:
    """The program that a command starts.

    Attributes:
        launcher, launcher_path: name and path of the program's launcher.
        path: path of the program; None if it is not found.
        interpreter: interpreter of a script.
        libraries: names and paths of the libraries that the program loads.
        names_mpi: true if the program's file contains the name of an MPI library, to load at run time.
    """

    launcher: Launcher | None
    launcher_path: str | None
    path: Path | None
    interpreter: Path | None
    libraries: dict[str, Path]
    names_mpi: bool

    @property
    def mpi(self) -> Path | None:
        """The MPI library among the loaded libraries, found by its file name, else by names of functions."""
        named = (path for name, path in self.libraries.items() if MPI_LIBRARY.match(name))
        return next(named, None) or next(filter(_has_mpi_calls, self.libraries.values()), None)

    @property
    def openshmem(self) -> str | None:
        """Name of the OpenSHMEM library among the loaded libraries."""
        return next((name for name in self.libraries if OPENSHMEM_LIBRARY.match(name)), None)

    @property
    def python(self) -> Path | None:
        """Path of the Python interpreter: the program itself, or the script's interpreter; None for other programs."""
        runner = self.interpreter or self.path
        return runner if runner and _PYTHON.match(runner.name) else None


def identify_program(command: Sequence[str]) -> Program:
    """Identify the program that a command starts."""
    launcher = identify_launcher(command[0])
    named = command[0]
    if launcher:
        named = next(iter(find_programs(command, lambda word: shutil.which(word) is not None)), "")
    found = shutil.which(named) if named else None
    path = Path(found).absolute() if found else None
    runner = _find_runner(path) if path else None
    binary = runner or path
    return Program(
        launcher=launcher,
        launcher_path=shutil.which(command[0]) if launcher else None,
        path=path,
        interpreter=runner,
        libraries=list_libraries(binary) if binary else {},
        names_mpi=binary is not None and b"libmpi" in _read(binary),
    )


def list_libraries(binary: Path) -> dict[str, Path]:
    """Return the libraries that the dynamic linker would load for a file, by name, without running the file."""
    elf = read_elf(binary)
    linker = elf.interpreter if elf else ""
    own = read_elf(Path("/proc/self/exe"))
    if elf and elf.dynamic and not linker and own:
        linker = own.interpreter
    if not linker:
        return {}
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    line = [linker, "--list", str(binary)]
    try:
        done = subprocess.run(
            line, env=environment, capture_output=True, text=True, errors="replace", timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {name: Path(path) for name, path in re.findall(r"^\s*(\S+) => (/\S+)", done.stdout, re.MULTILINE)}


def judge_program(program: Program, library: Path) -> Iterator[DoctorFinding]:
    """Yield findings on whether the library can be preloaded into a program."""
    if program.path is None:
        yield DoctorFinding("program", good=False, text="there is no such program")
        return
    binary = program.interpreter or program.path
    what = f"{program.path}" + (f", run by {program.interpreter}" if program.interpreter else "")
    elf, own = read_elf(binary), read_elf(library)
    mode = binary.stat().st_mode
    if elf is None:
        yield DoctorFinding("program", good=False, text=f"{what} is not a program for this system's dynamic linker")
    elif not elf.dynamic or not elf.interpreter:
        why = "is linked statically, so nothing can be preloaded into it: link it dynamically (without -static)"
        yield DoctorFinding("program", good=False, text=f"{what} {why}")
    elif own and elf.machine != own.machine:
        why = f"is for {elf.machine}, but libibprof.so is for {own.machine}: install an ibprof built for {elf.machine}"
        yield DoctorFinding("program", good=False, text=f"{what} {why}")
    elif mode & (stat.S_ISUID | stat.S_ISGID) or _has_capabilities(binary):
        why = "is setuid, setgid or has capabilities, so the dynamic linker ignores preloads: run a copy without them"
        yield DoctorFinding("program", good=False, text=f"{what} {why}")
    else:
        yield DoctorFinding("program", good=True, text=f"{what} can be preloaded")


def _find_runner(path: Path) -> Path | None:
    """Return the interpreter at the end of a chain of scripts; None for a file without a known interpreter."""
    runner: Path | None = None
    for _ in range(_SCRIPT_DEPTH):
        head = _read(runner or path, 256)
        if not head.startswith(b"#!"):
            break
        words = head[2:].partition(b"\n")[0].decode("utf-8", "replace").split()
        if words and Path(words[0]).name == "env":
            words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        found = shutil.which(words[0]) if words else None
        if found is None:
            break
        runner = Path(found)
    return runner


def _has_mpi_calls(library: Path) -> bool:
    content = _read(library)
    return all(name in content for name in (b"MPI_Init\0", b"MPI_Comm_rank\0", b"MPI_Type_size\0"))


def _read(path: Path, limit: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(limit)
    except OSError:
        return b""


def _has_capabilities(path: Path) -> bool:
    try:
        return "security.capability" in os.listxattr(path)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check.

    Attributes:
        about: subject of the check.
        good: true if nothing prevents recording.
        text: the result, with advice if it is bad.
    """

    about: str
    good: bool
    text: str
