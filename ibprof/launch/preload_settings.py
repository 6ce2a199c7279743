# SPDX-License-Identifier: Apache-2.0
"""How libibprof.so and its settings reach every process of a job, by the means of the launcher that starts it.

What Open MPI does was tried with 4.1.4, 4.1.8 and 5.0.11:

* `-x NAME=VALUE` reaches all hosts. In 4 it counts for one part of `mpirun A : B` and the last of a name holds, in 5
  it counts for all parts and the first one holds.
* `OMPI_MCA_mca_base_env_list` does so from the environment. In 4 mpirun refuses to run with both it and `-x`.
* `OMPI_MCA_mca_base_env_list_internal`, which 4 fills from files of `-x` options, goes together with `-x`. 5 has none.
* Both lists may name only variables that are set, be it to nothing: else mpirun warns.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from ibprof.errors import InconsistentError

PRELOAD = "LD_PRELOAD"

CARRIED = (
    PRELOAD,
    "LD_LIBRARY_PATH",
    "IBPROF",
    "IBPROF_OUTPUT",
    "IBPROF_RUN",
    "IBPROF_HOSTS",
    "IBPROF_VERBOSE",
    "IBPROF_FLUSH",
    "IBPROF_INTERVAL",
    "IBPROF_SOURCE",
)
"""Variables that the processes of a job need."""

ENV_LIST = "mca_base_env_list"

# The variables by which a process knows its rank, and so that it was started by a launcher.
_RANK_VARIABLES = ("PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")

_LAUNCHERS = (
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "mpiexec.hydra",
    "mpirun.openmpi",
    "mpiexec.openmpi",
    "mpirun.mpich",
    "mpiexec.mpich",
    "srun",
)
_ASK_SECONDS = 20


class Launcher(Enum):
    """Programs that start the processes of a job, as far as they pass variables on in different ways."""

    OPENMPI_4 = auto()
    OPENMPI_5 = auto()
    HYDRA = auto()
    SRUN = auto()


@dataclass(frozen=True, slots=True)
class Launch:
    """A command and the environment to start it in."""

    command: list[str]
    environment: dict[str, str]


def is_inside_job(environment: Mapping[str, str]) -> bool:
    """Tell whether this process is a rank of a job."""
    # The script of a batch job has SLURM_PROCID too, but is no step of it.
    in_step = "SLURM_PROCID" in environment and "SLURM_STEP_ID" in environment
    return in_step or any(name in environment for name in _RANK_VARIABLES)


def identify_launcher(program: str) -> Launcher | None:
    """Tell what a program starts jobs as; None where it is no launcher that is known."""
    name = Path(program).name
    if name not in _LAUNCHERS:
        return None
    if name == "srun":
        return Launcher.SRUN
    said = _ask_version(program)
    if "HYDRA" in said or "Intel(R) MPI" in said:
        return Launcher.HYDRA
    if re.search(r"Open MPI\) [1-4]\.|OpenRTE\) [1-4]\.", said):
        return Launcher.OPENMPI_4
    if re.search(r"Open MPI|PRRTE|prte", said):
        return Launcher.OPENMPI_5
    return None


def preload(library: Path, present: str) -> str:
    """Put the library before what is preloaded already, once.

    Raises:
        InconsistentError: the dynamic linker would take parts of the library's path for libraries.
    """
    if re.search("[: ]", str(library)):
        raise InconsistentError(
            f"{library}: blanks and colons separate the libraries in {PRELOAD}, so every process would complain of a "
            "part of this path: install ibprof in a folder whose path has none"
        )
    others = [item for item in re.split("[: ]+", present) if item and item != str(library)]
    return ":".join([str(library), *others])


def carry(launcher: Launcher, launch: Launch, variables: Mapping[str, str]) -> Launch:
    """Add what makes a launcher give variables to all processes of the job.

    Args:
        launcher: what the command begins with.
        launch: the user's command, in the user's environment. What it asks for itself goes first, but for LD_PRELOAD:
            ours and the user's are joined.
        variables: to give to the processes; LD_PRELOAD holds the library alone.
    """
    if launcher is Launcher.SRUN:
        return _carry_by_srun(launch, variables)
    option = "-genv" if launcher is Launcher.HYDRA else "-x"
    command, asked = _take_option(launch.command, option)
    present = asked.pop(PRELOAD, launch.environment.get(PRELOAD, ""))
    wanted = {name: value for name, value in variables.items() if name not in asked}
    wanted[PRELOAD] = preload(Path(variables[PRELOAD]), present)
    if launcher is Launcher.OPENMPI_4 and (extended := _extend_env_list(Launch(command, launch.environment), wanted)):
        return extended
    options = []
    for name, value in wanted.items():
        options += [option, name, value] if launcher is Launcher.HYDRA else [option, f"{name}={value}"]
    return Launch(_insert_options(command, options, each_part=launcher is Launcher.OPENMPI_4), launch.environment)


def list_variable(launcher: Launcher | None, environment: Mapping[str, str]) -> str:
    """Name the variable that lists, for Open MPI, which variables go to other hosts, and leaves `-x` usable."""
    if launcher is Launcher.OPENMPI_5 or f"OMPI_MCA_{ENV_LIST}" in environment:
        return f"OMPI_MCA_{ENV_LIST}"
    return f"OMPI_MCA_{ENV_LIST}_internal"


def extend_list(present: str, names: Sequence[str]) -> str:
    """Add names to Open MPI's list of variables, each once."""
    items = [item for item in present.split(";") if item]
    return ";".join(items + [name for name in names if name not in items])


def _ask_version(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _take_option(command: Sequence[str], option: str) -> tuple[list[str], dict[str, str]]:
    """Take the user's own LD_PRELOAD out of a command, and note what other variables it passes on.

    Returns:
        The command, and the variables by name; the value matters, and is known, for LD_PRELOAD alone.
    """
    length = 3 if option == "-genv" else 2
    kept: list[str] = []
    asked: dict[str, str] = {}
    place = 0
    while place < len(command):
        words = list(command[place : place + length])
        if words[0] not in (option, f"-{option}") or len(words) < length:
            kept.append(words[0])
            place += 1
            continue
        name, equals, value = words[1].partition("=") if length == 2 else (words[1], "=", words[2])
        if name != PRELOAD:
            kept += words
        # Without a value, the one in the environment is meant.
        if name != PRELOAD or equals:
            asked[name] = value
        place += length
    return kept, asked


def _insert_options(command: Sequence[str], options: Sequence[str], *, each_part: bool) -> list[str]:
    """Put options behind the launcher's name, and behind each `:` where they count for one part only."""
    made = [command[0], *options]
    for word in command[1:]:
        made.append(word)
        if each_part and word == ":":
            made += options
    return made


def _extend_env_list(launch: Launch, wanted: Mapping[str, str]) -> Launch | None:
    """Add to the list of variables that the user has made in place of `-x`; None where there is none."""
    ours = [f"{name}={value}" for name, value in wanted.items()]
    variable = f"OMPI_MCA_{ENV_LIST}"
    command = list(launch.command)
    if ENV_LIST in command[:-1]:
        place = command.index(ENV_LIST) + 1
        command[place] = extend_list(command[place], ours)
        return Launch(command, launch.environment)
    if launch.environment.get(variable):
        return Launch(command, launch.environment | {variable: extend_list(launch.environment[variable], ours)})
    return None


def _carry_by_srun(launch: Launch, variables: Mapping[str, str]) -> Launch:
    """Name the variables in --export. Values may hold commas: but for LD_PRELOAD they come from srun's environment."""
    command = list(launch.command)
    given = next((index for index, word in enumerate(command) if word.startswith("--export=")), None)
    asked = launch.environment.get("SLURM_EXPORT_ENV", "ALL")
    if given is not None:
        asked = command.pop(given).partition("=")[2]
    items = [item for item in asked.split(",") if item and item.upper() not in ("NIL", "NONE")]
    present = launch.environment.get(PRELOAD, "")
    for item in [item for item in items if item.partition("=")[0] == PRELOAD]:
        items.remove(item)
        present = item.partition("=")[2] or present
    names = [name for name in variables if name != PRELOAD and name not in (item.partition("=")[0] for item in items)]
    ours = f"{PRELOAD}={preload(Path(variables[PRELOAD]), present)}"
    environment = launch.environment | {name: variables[name] for name in names}
    return Launch([command[0], f"--export={','.join([*items, ours, *names])}", *command[1:]], environment)
