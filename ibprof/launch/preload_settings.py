# SPDX-License-Identifier: Apache-2.0
"""Pass libibprof.so and settings to every process of a job, by options and variables of the launcher.

The behaviour of Open MPI was tested with 4.1.4, 4.1.8 and 5.0.11:

* `-x NAME=VALUE` reaches all hosts. In version 4, `-x` applies to one part of `mpirun A : B`, and the last value of a
  name counts. In version 5, `-x` applies to all parts, and the first value counts.
* In version 4, spawned processes get the variables of `-x`. In version 5, spawned processes get the environment of
  mpirun; on another host, the environment of mpirun's daemon, which `prte_launch_agent` starts.
* `OMPI_MCA_mca_base_env_list` has the same effect as `-x`. In version 4, mpirun refuses this list together with `-x`.
* With `--app FILE`, only version 4 ignores all other options.
* `OMPI_MCA_mca_base_env_list_internal` works together with `-x`. Version 4 fills this list with `-x` options that it
  reads from files. Version 5 lacks this list.
* mpirun warns if a list names an unset variable. A variable with an empty value is set.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from ibprof.errors import InconsistentError
from ibprof.text.host_lists import find_program_indices

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
    "IBPROF_SITES",
    "IBPROF_CALLERS",
    "IBPROF_TIME",
    "IBPROF_NCCL_NEXT",
)
"""Variables that the processes of a job need."""

ENV_LIST = "mca_base_env_list"
DAEMON = "prte_launch_agent"

# Variables that hold a process's rank. A launcher started every process that has one of these variables.
_RANK_VARIABLES = ("PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "TORCHELASTIC_RUN_ID")

_LAUNCHERS = (
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "oshrun",
    "shmemrun",
    "mpiexec.hydra",
    "mpirun.openmpi",
    "mpiexec.openmpi",
    "mpirun.mpich",
    "mpiexec.mpich",
)
_APP_FILES = ("-app", "--app")
_ASK_SECONDS = 20


_WITH_VALUE = ("np", "hostfile", "spawnfile", "config", "dpmspawn", "sg", "sparehosts")


class Launcher(Enum):
    """Kinds of launchers; each kind has a different option or variable to pass variables to ranks."""

    OPENMPI_4 = auto()
    OPENMPI_5 = auto()
    HYDRA = auto()
    SRUN = auto()
    MPIRUN_RSH = auto()


_NAMED = {"srun": Launcher.SRUN, "mpirun_rsh": Launcher.MPIRUN_RSH}
"""Launchers with a unique name."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A command and its environment."""

    command: list[str]
    environment: dict[str, str]


def is_inside_job(environment: Mapping[str, str]) -> bool:
    """Return whether this process is a rank of a job."""
    # The script of a batch job also has SLURM_PROCID, but is not a step.
    in_step = "SLURM_PROCID" in environment and "SLURM_STEP_ID" in environment
    return in_step or any(name in environment for name in _RANK_VARIABLES)


def identify_launcher(program: str) -> Launcher | None:
    """Return the kind of a launcher; None for an unknown program."""
    name = Path(program).name
    if name in _NAMED or name not in _LAUNCHERS:
        return _NAMED.get(name)
    said = _ask_version(program)
    if "HYDRA" in said or "Intel(R) MPI" in said:
        return Launcher.HYDRA
    if re.search(r"Open MPI\) [1-4]\.|OpenRTE\) [1-4]\.", said):
        return Launcher.OPENMPI_4
    if re.search(r"Open MPI|PRRTE|prte", said):
        return Launcher.OPENMPI_5
    return None


def preload(library: Path, present: str) -> str:
    """Return the value of LD_PRELOAD with the library once, before all other preloads.

    Raises:
        InconsistentError: the library's path has a blank or colon, where the dynamic linker splits LD_PRELOAD.
    """
    if re.search("[: ]", str(library)):
        raise InconsistentError(
            f"{library}: blanks and colons separate the libraries in {PRELOAD}. "
            "Install ibprof in a folder whose path has no blank and no colon"
        )
    others = [item for item in re.split("[: ]+", present) if item and item != str(library)]
    return ":".join([str(library), *others])


def carry(launcher: Launcher, launch: Launch, variables: Mapping[str, str]) -> Launch:
    """Return a launch that passes variables to all processes of the job.

    Args:
        launch: the user's command and environment. Variables that the command already passes keep their value. The
            command's LD_PRELOAD is joined with the library.
        variables: the variables to pass to the processes; LD_PRELOAD contains only the library.
    """
    if launcher is Launcher.SRUN:
        return _carry_by_srun(launch, variables)
    if launcher is Launcher.MPIRUN_RSH:
        return _carry_by_rsh(launch, variables)
    option = "-genv" if launcher is Launcher.HYDRA else "-x"
    command, asked = _take_option(launch.command, option)
    present = asked.pop(PRELOAD, launch.environment.get(PRELOAD, ""))
    wanted = {name: value for name, value in variables.items() if name not in asked}
    wanted[PRELOAD] = preload(Path(variables[PRELOAD]), present)
    if launcher is Launcher.OPENMPI_4 and (extended := _extend_env_list(Launch(command, launch.environment), wanted)):
        return extended
    if launcher is Launcher.OPENMPI_4 and any(word in _APP_FILES for word in command):
        return Launch(command, _extend_variable(launch.environment, f"OMPI_MCA_{ENV_LIST}_internal", wanted))
    if launcher is Launcher.HYDRA:
        command = _join_parts(command, Path(variables[PRELOAD]))
    options = []
    for name, value in wanted.items():
        options += [option, name, value] if launcher is Launcher.HYDRA else [option, f"{name}={value}"]
    of_spawned = _carry_to_spawned(launch, wanted) if launcher is Launcher.OPENMPI_5 else {}
    command = _insert_options(command, options, each_part=launcher is Launcher.OPENMPI_4)
    return Launch(command, {**launch.environment, **of_spawned})


def _carry_to_spawned(launch: Launch, wanted: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables for mpirun that pass `wanted` to spawned processes, also on other hosts.

    On other hosts, mpirun's daemon gets the variables, unless the user chose the daemon's command. LD_LIBRARY_PATH is
    not passed, so that the daemon finds its own libraries.
    """
    variable = f"PRTE_MCA_{DAEMON}"
    if launch.environment.get(variable) or any(word in (DAEMON, "--launch-agent") for word in launch.command):
        return dict(wanted)
    settings = _assignments({name: value for name, value in wanted.items() if name != "LD_LIBRARY_PATH"})
    return {**wanted, variable: shlex.join(["env", *settings, "prted"])}


def list_variable(launcher: Launcher | None, environment: Mapping[str, str]) -> str:
    """Return the name of Open MPI's variable that lists variables for other hosts.

    Open MPI 4 refuses `OMPI_MCA_mca_base_env_list` together with `-x`. So for version 4, ibprof uses the internal list,
    unless `environment` has `OMPI_MCA_mca_base_env_list`.
    """
    if launcher is Launcher.OPENMPI_5 or f"OMPI_MCA_{ENV_LIST}" in environment:
        return f"OMPI_MCA_{ENV_LIST}"
    return f"OMPI_MCA_{ENV_LIST}_internal"


def extend_list(present: str, names: Sequence[str]) -> str:
    """Return Open MPI's list of variables with added names, each once."""
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
    """Remove the user's LD_PRELOAD from a command, and collect the variables that the command passes.

    Returns:
        The command, and variable -> value; the value is empty for `-x NAME`.
    """
    length = 3 if option == "-genv" else 2
    kept: list[str] = []
    asked: dict[str, str] = {}
    index = 0
    while index < len(command):
        words = list(command[index : index + length])
        if words[0] not in (option, f"-{option}") or len(words) < length:
            kept.append(words[0])
            index += 1
            continue
        name, equals, value = words[1].partition("=") if length == 2 else (words[1], "=", words[2])
        if name != PRELOAD:
            kept += words
        # For `-x LD_PRELOAD` without a value, `carry` takes the value from the environment.
        if name != PRELOAD or equals:
            asked[name] = value
        index += length
    return kept, asked


def _join_parts(command: Sequence[str], library: Path) -> list[str]:
    """Add the library to the LD_PRELOAD of each part (`-env`), which Hydra prefers to the LD_PRELOAD of all parts."""
    joined = list(command)
    for index, words in enumerate(zip(command, command[1:], command[2:], strict=False)):
        if words[0] in ("-env", "--env") and words[1] == PRELOAD:
            joined[index + 2] = preload(library, words[2])
    return joined


def _insert_options(command: Sequence[str], options: Sequence[str], *, each_part: bool) -> list[str]:
    """Insert options after the launcher's name; if options apply to one part only, also after each `:`."""
    made = [command[0], *options]
    for word in command[1:]:
        made.append(word)
        if each_part and word == ":":
            made += options
    return made


def _extend_env_list(launch: Launch, wanted: Mapping[str, str]) -> Launch | None:
    """Add variables to the list that the user sets instead of `-x`; return None if the user sets no list."""
    variable = f"OMPI_MCA_{ENV_LIST}"
    command = list(launch.command)
    if ENV_LIST in command[:-1]:
        index = command.index(ENV_LIST) + 1
        command[index] = extend_list(command[index], _assignments(wanted))
        return Launch(command, launch.environment)
    if launch.environment.get(variable):
        return Launch(command, _extend_variable(launch.environment, variable, wanted))
    return None


def _extend_variable(environment: Mapping[str, str], variable: str, wanted: Mapping[str, str]) -> dict[str, str]:
    return {**environment, variable: extend_list(environment.get(variable, ""), _assignments(wanted))}


def _assignments(wanted: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in wanted.items()]


def _carry_by_rsh(launch: Launch, variables: Mapping[str, str]) -> Launch:
    """Insert the variables into mpirun_rsh's command line, before the user's variables."""
    line = read_rsh_line(launch.command)
    present = line.variables.get(PRELOAD, launch.environment.get(PRELOAD, ""))
    kept = {name: value for name, value in line.variables.items() if name != PRELOAD}
    wanted = {**variables, PRELOAD: preload(Path(variables[PRELOAD]), present)}
    added = {name: value for name, value in wanted.items() if name not in kept}
    return Launch([*line.head, *_assignments(added), *_assignments(kept), *line.tail], launch.environment)


def _carry_by_srun(launch: Launch, variables: Mapping[str, str]) -> Launch:
    """Name the variables in --export. srun's environment has the values, because values may contain commas.

    A part of a job (between `:`) without --export uses the --export of the previous part.
    """
    made, added = [launch.command[0]], set[str]()
    for number, part in enumerate(_split_parts(launch.command[1:])):
        kept, asked = _take_export(part)
        if asked is None and number == 0:
            asked = launch.environment.get("SLURM_EXPORT_ENV", "ALL")
        made += [":"] if number else []
        if asked is not None:
            items, names = _extend_export(asked, variables, launch.environment.get(PRELOAD, ""))
            made.append(f"--export={','.join([*items, *names])}")
            added.update(names)
        made += kept
    return Launch(made, launch.environment | {name: variables[name] for name in added})


def _split_parts(words: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _take_export(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Remove --export from srun's options for one part of the job. Return the other words, and the value of --export.

    Words after the program belong to the program. If no program is found, all words count as srun's.
    """
    programs = find_program_indices(["srun", *words], lambda word: shutil.which(word) is not None)
    options = words[: programs[0] - 1] if programs else words
    for index, word in enumerate(options):
        if word.startswith("--export="):
            return [*words[:index], *words[index + 1 :]], word.partition("=")[2]
        if word == "--export" and index + 1 < len(words):
            return [*words[:index], *words[index + 2 :]], words[index + 1]
    return list(words), None


def _extend_export(asked: str, variables: Mapping[str, str], present: str) -> tuple[list[str], list[str]]:
    """Return two lists: the user's items of --export, with the library in LD_PRELOAD; names of variables to add.

    Args:
        asked: the user's value of --export.
        variables: the variables to pass on. Variables that the user sets keep the user's value, except LD_PRELOAD.
        present: value of LD_PRELOAD in the environment.
    """
    items = [item for item in asked.split(",") if item and item.upper() not in ("NIL", "NONE")]
    for item in [item for item in items if item.partition("=")[0] == PRELOAD]:
        items.remove(item)
        present = item.partition("=")[2] or present
    names = [name for name in variables if name != PRELOAD and name not in (item.partition("=")[0] for item in items)]
    return [*items, f"{PRELOAD}={preload(Path(variables[PRELOAD]), present)}"], names


@dataclass(frozen=True, slots=True)
class RshLine:
    """A command line of mpirun_rsh.

    Attributes:
        head: the words before the variables: launcher, options, hosts.
        hosts: hosts in the line.
        variables: variables that the line sets.
        tail: the program and its arguments.
    """

    head: list[str]
    hosts: list[str]
    variables: dict[str, str]
    tail: list[str]


def read_rsh_line(command: Sequence[str]) -> RshLine:
    """Split a command line into its parts."""
    index, processes, has_hostfile = _skip_options(command)
    left = command[index:]
    named = 0 if has_hostfile or not left or "=" in left[0] or len(left) < processes + 1 else processes
    end = start = index + named
    while end < len(command) and "=" in command[end]:
        end += 1
    variables = dict(word.split("=", 1) for word in command[start:end])
    return RshLine(list(command[:start]), list(command[index:start]), variables, list(command[end:]))


def _skip_options(command: Sequence[str]) -> tuple[int, int, bool]:
    """Return the index of the first word after options, the number of processes, and whether a hostfile is named."""
    index, processes, has_hostfile = 1, 0, False
    while index < len(command) and command[index].startswith("-"):
        option, equals, value = command[index].lstrip("-").partition("=")
        index += 1
        if option in _WITH_VALUE and not equals:
            value = command[index] if index < len(command) else ""
            index += 1
        if option == "np" and value.isdecimal():
            processes = int(value)
        has_hostfile |= option == "hostfile"
    return index, processes, has_hostfile
