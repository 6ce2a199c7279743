# SPDX-License-Identifier: Apache-2.0
"""Run all checks of `ibprof doctor`, in the order in which users need the results.

This module checks the machine; the package's other modules check programs and MPI libraries.
"""

from __future__ import annotations

import ctypes.util
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ibprof.doctor.calls_trial import try_calls
from ibprof.doctor.mpi_library import examine_mpi
from ibprof.doctor.program_check import DoctorFinding, identify_program, judge_program
from ibprof.launch.transport_settings import TRANSPORTS, exact_settings
from ibprof.native.installed_files import find_library
from ibprof.profile.scheduler_job import expand_output, output_values
from ibprof.text.quantities import format_bytes

NAME = "libibprof.so"

# Variable of Mellanox' library that counts calls to verbs. Mellanox' library is also named libibprof.so.
_OTHER_LIBRARY = "IBPROF_MODE"

_ASK_SECONDS = 20

_LIMITS = (
    ("memory", resource.RLIMIT_AS, 64 << 20),
    ("stack", resource.RLIMIT_STACK, 256 << 10),
    ("file size", resource.RLIMIT_FSIZE, 1 << 20),
    ("open files", resource.RLIMIT_NOFILE, 32),
)
"""Resource limits of processes, each with the bytes or files that a recorded process needs, including a margin."""

_LEAST_FREE_BYTES = 4 << 20
_SYSFS = Path("/sys/class/infiniband")

_COUNTED = (
    "reports show the number of queue pairs that were not recorded; to measure rails, use ibprof run with "
    "IBPROF_SOURCE=exact"
)

_WITHIN_A_HOST = ("self", "sm", "shm", "posix", "sysv", "cma", "knem", "xpmem")

_REMOTE = (
    *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smbfs", "smb2", "smb3", "ncpfs", "9p", "afs", "coda"),
    *("panfs", "ocfs2", "gfs2", "orangefs", "pvfs2", "vboxsf", "vmhgfs"),
)
"""Network file systems, the same as in storage.c."""

_COPIED = "counters are mapped on each node's own storage, and copied to this folder"


def examine_machine(library: Path, environment: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Check the library, other preloads, limits, ports and the output folder."""
    yield _load(library)
    yield _look_for_another(library, environment)
    preloaded = [*_split(environment.get("LD_PRELOAD", "")), *_split(_read(Path("/etc/ld.so.preload")))]
    if others := [item for item in preloaded if Path(item).name != NAME]:
        yield DoctorFinding("preloads", good=True, text=f"{', '.join(others)} too, after libibprof.so")
    yield from _judge_limits()
    yield from _list_ports(environment)
    output = environment.get("IBPROF_OUTPUT") or "profile.ibprof"
    yield _try_folder(Path(expand_output(output, output_values(environment))))


def _load(library: Path) -> DoctorFinding:
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
        return DoctorFinding("library", good=False, text=f"{library} cannot be preloaded: {done.stderr.strip()}")
    return DoctorFinding("library", good=True, text=f"{library} can be preloaded")


def _look_for_another(library: Path, environment: Mapping[str, str]) -> DoctorFinding:
    """Check for another library of the same name that the dynamic linker would find first."""
    preloaded = [Path(item) for item in re.split("[: ]+", environment.get("LD_PRELOAD", "")) if item]
    folders = [Path(folder) for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    named = [item for item in preloaded if item.name == NAME and "/" in str(item)]
    found = next((one for one in (*named, *(folder / NAME for folder in folders)) if one.is_file()), None)
    known_to_system = ctypes.util.find_library("ibprof")
    if found is not None and not found.samefile(library):
        whose = "Mellanox' library" if _OTHER_LIBRARY.encode() in found.read_bytes() else "another library"
        text = f"{found} is {whose} and comes before ibprof's library: use ibprof run, or ibprof env"
        return DoctorFinding("name", good=False, text=text)
    if found is None and known_to_system:
        return DoctorFinding(
            "name", good=False, text=f"the system has another {known_to_system}: use ibprof run, or ibprof env"
        )
    return DoctorFinding("name", good=True, text=f"no other {NAME} comes before ibprof's")


def _judge_limits() -> Iterator[DoctorFinding]:
    said, bad = [], False
    for name, number, least in _LIMITS:
        limit = resource.getrlimit(number)[0]
        said.append(f"{name} {'unlimited' if limit == resource.RLIM_INFINITY else f'{limit:,}'}")
        if 0 <= limit < least:
            bad = True
            text = f"{name} is limited to {limit:,}, too little to keep counters: raise it to {least:,} (ulimit)"
            yield DoctorFinding("limits", good=False, text=text)
    if not bad:
        yield DoctorFinding("limits", good=True, text=", ".join(said))


def _list_ports(environment: Mapping[str, str]) -> Iterator[DoctorFinding]:
    devices = Path(environment.get("IBPROF_SYSFS") or _SYSFS)
    ports = sorted(devices.glob("*/ports/*"))
    if not ports:
        text = "no InfiniBand port in sysfs: ranks are placed in a fabric by host names, or by --placement"
        yield DoctorFinding("ports", good=True, text=text)
        return
    shown = (f"{port.parent.parent.name}/{port.name} LID {_read(port / 'lid').strip()}" for port in ports)
    yield DoctorFinding("ports", good=True, text=", ".join(shown))
    past = sorted({port.parent.parent.name for port in ports if _is_mlx5(port.parent.parent)})
    seen = exact_settings(environment) or _takes_seen_transports(environment.get(TRANSPORTS, ""))
    if past and not seen:
        text = f"UCX bypasses verbs by default on {', '.join(past)} (mlx5): rails are then modelled, and {_COUNTED}"
    else:
        text = "messages posted by verbs are recorded: rails are measured if all messages use verbs"
    yield DoctorFinding("rails", good=True, text=text)


def _is_mlx5(device: Path) -> bool:
    driver = device / "device" / "driver"
    return driver.resolve().name == "mlx5_core" if driver.exists() else device.name.startswith("mlx5_")


def _takes_seen_transports(chosen: str) -> bool:
    """Return whether UCX is limited to transports that post messages by verbs or stay within a host."""
    words = [word for word in chosen.split(",") if word]
    return bool(words) and all(word.endswith("_verbs") or word in _WITHIN_A_HOST for word in words)


def _try_folder(folder: Path) -> DoctorFinding:
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        text = f"nothing can be written to {folder} ({reason}): set IBPROF_OUTPUT to another folder"
        return DoctorFinding("folder", good=False, text=text)
    kind = _file_system(existing)
    free = shutil.disk_usage(existing).free
    if free < _LEAST_FREE_BYTES:
        return DoctorFinding("folder", good=False, text=f"{folder} has no space: {format_bytes(free)} on {kind}")
    where = "counters are mapped in this folder" if kind not in _REMOTE and not kind.startswith("fuse") else _COPIED
    return DoctorFinding("folder", good=True, text=f"{folder} on {kind}, {format_bytes(free)} free: {where}")


def _file_system(path: Path) -> str:
    """Return the kernel's name for the file system type of a path."""
    device = path.stat().st_dev
    numbers = f"{os.major(device)}:{os.minor(device)}"
    for line in _read(Path("/proc/self/mountinfo")).splitlines():
        before, _, after = line.partition(" - ")
        if before.split()[2:3] == [numbers] and after:
            return after.split()[0]
    return "a file system of unknown kind"


def _split(text: str) -> list[str]:
    return [item for item in re.split(r"[:\s]+", text) if item]


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


_OPENSHMEM = (
    "puts, gets and atomics are counted only if they are posted by verbs; they are counted by port, not by PE. "
    "IBPROF_SOURCE=exact selects transports that post by verbs. MPI calls of the program are recorded as usual"
)


def examine(environment: Mapping[str, str], command: Sequence[str] = ()) -> Iterator[DoctorFinding]:
    """Yield the findings of all checks for a recording.

    Args:
        command: the command to record, with or without its launcher; empty for any command.
    """
    library = find_library()
    program = identify_program(command) if command else None
    if program:
        findings = list(judge_program(program, library))
        yield from findings
        if program.openshmem:
            yield DoctorFinding("SHMEM", good=True, text=f"{program.openshmem}: {_OPENSHMEM}")
    if not program or all(finding.good for finding in findings):
        findings = list(examine_mpi(program, library, environment))
        yield from findings
        if program and all(finding.good for finding in findings):
            yield from try_calls(program, command, library, environment)
    yield from examine_machine(library, environment)
