# SPDX-License-Identifier: Apache-2.0
"""Record a trial of two ranks with a command's launcher and settings, to find collectives with unrecorded bytes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ibprof.doctor import collective_calls
from ibprof.doctor.program_check import DoctorFinding, Program
from ibprof.errors import IbprofError
from ibprof.launch.preload_settings import PRELOAD, Launch, Launcher, carry
from ibprof.profile.profile_data import Profile, Source
from ibprof.profile.unaccounted import describe_unaccounted, describe_uncompared
from ibprof.recording.recording_reader import read_recording
from ibprof.text.host_lists import find_programs

_RANKS = 2
_SECONDS = 60

_SETTINGS = {
    "allow-run-as-root": 0,
    "mca": 2,
    "gmca": 2,
    "omca": 2,
    "prtemca": 2,
    "pmixmca": 2,
    "x": 1,
    "tune": 1,
    "am": 1,
}
"""Options of Open MPI's launchers that affect a job's start or messages, with each option's number of arguments."""


def try_calls(
    program: Program, command: Sequence[str], library: Path, environment: Mapping[str, str]
) -> Iterator[DoctorFinding]:
    """Record a trial, and yield findings on collectives with missing bytes; only Open MPI's launchers are tried."""
    if program.launcher not in (Launcher.OPENMPI_4, Launcher.OPENMPI_5) or program.launcher_path is None:
        return
    if program.mpi is None and program.python is None:
        return
    with tempfile.TemporaryDirectory(prefix="ibprof-doctor-") as name:
        recording = Path(name) / "trial.ibprof"
        launch = _launch(program, [program.launcher_path, *settings_of(command)], environment)
        variables = {PRELOAD: str(library), "IBPROF_OUTPUT": str(recording)}
        said = _run(carry(program.launcher, launch, variables), Path(name))
        try:
            yield from _judge(read_recording(recording))
        except (IbprofError, OSError):
            # Skip the lines of dashes that Open MPI prints around its messages.
            words = [line for line in said.splitlines() if line.strip("- ")]
            reason = f": {words[0]}" if words else ""
            yield DoctorFinding("calls", good=True, text=f"collectives of {_RANKS} ranks could not be tried{reason}")


def settings_of(command: Sequence[str]) -> list[str]:
    """Return the options of a launcher's command that affect messages; the program's own options are left out."""
    programs = find_programs(command, lambda word: shutil.which(word) is not None)
    words = iter(command[1 : command.index(programs[0])] if programs else command[1:])
    kept: list[str] = []
    for word in words:
        count = _SETTINGS.get(word.lstrip("-")) if word.startswith("-") else None
        if count is not None:
            kept += [word, *(next(words, "") for _ in range(count))]
    return kept


def _launch(program: Program, launcher: Sequence[str], environment: Mapping[str, str]) -> Launch:
    trial = [sys.executable, collective_calls.__file__, str(program.mpi)]
    if program.mpi is None:
        trial = [str(program.python), collective_calls.__file__]
    # Two ranks must start even on a machine with one slot.
    more_ranks_than_slots = {
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":OVERSUBSCRIBE",
    }
    return Launch([*launcher, "-n", str(_RANKS), *trial], {**environment, **more_ranks_than_slots})


def _run(launch: Launch, folder: Path) -> str:
    """Run the trial, and return its stderr."""
    try:
        child = subprocess.Popen(
            launch.command,
            env=launch.environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as error:
        return str(error)
    with child:
        try:
            return child.communicate(timeout=_SECONDS)[1].strip()
        except subprocess.TimeoutExpired:
            # Terminate, not kill: the launcher's signal handler ends the ranks.
            child.terminate()
            return f"it did not end within {_SECONDS} s"


def _judge(run: Profile) -> Iterator[DoctorFinding]:
    if all(rank.source == Source.NONE for rank in run.ranks):
        return
    if run.world_size != _RANKS or (why := describe_uncompared(run)):
        why = why if run.world_size == _RANKS else f"the launcher starts jobs of {run.world_size} rank(s)"
        yield DoctorFinding("calls", good=True, text=f"a trial of {_RANKS} ranks did not check collectives: {why}")
        return
    lacking = list(describe_unaccounted(run))
    for sentence in lacking:
        yield DoctorFinding("calls", good=True, text=f"in a trial of {_RANKS} ranks, {sentence}")
    if not lacking:
        yield DoctorFinding(
            "calls", good=True, text=f"in a trial of {_RANKS} ranks, all bytes of collectives were seen"
        )
