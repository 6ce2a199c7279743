# SPDX-License-Identifier: Apache-2.0
"""`ibprof run`: run a command and record its MPI traffic.

Output and exit status of the command do not change. The command is a child process, and gets this process's signals.
Inside a job, as in `mpirun ibprof run -- ./app`, the command replaces this process.
"""

from __future__ import annotations

import argparse
import ctypes
import glob
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

from ibprof.cli.command import command, find_commands, make_parser, show_progress
from ibprof.cli.env import with_library
from ibprof.errors import IbprofError, UsageError
from ibprof.launch.preload_settings import (
    PRELOAD,
    Launch,
    Launcher,
    carry,
    identify_launcher,
    is_inside_job,
    preload,
    read_rsh_line,
)
from ibprof.launch.transport_settings import describe_exact, exact_settings, intranode_settings, nccl_settings
from ibprof.native.installed_files import NCCL_PROFILER, find_library
from ibprof.profile.scheduler_job import expand_output, output_glob, output_values
from ibprof.text.host_lists import read_command

RECORDING = "profile.ibprof"

NOT_FOUND = 127
NOT_STARTED = 126
JOBS_SHOWN = 4
LONGEST_VALUE = 1 << 16
"""Largest length of a variable's value in bytes: half of Linux's limit."""

NEVER_LOADED = (
    "no process of this host loaded libibprof.so: the environment was emptied (env -i), LD_PRELOAD was replaced, or "
    "all programs are static or setuid (try: ibprof doctor)"
)
NOT_RECORDED = (
    "no process left a recording. If no line above states the reason, no process called MPI_Init through libibprof.so. "
    "Programs do not load this library after env -i, with another LD_PRELOAD, or if they are static or setuid. An MPI "
    "opened by dlmopen bypasses it (try: ibprof doctor). NCCL did not load ibprof's plug-in. PyTorch's Gloo and UCC "
    "are not recorded"
)
"""Message after a run that recorded nothing, with possible reasons, because the actual reason is unknown."""

OPENSHMEM = (
    "an OpenSHMEM program: its puts, gets and atomics are recorded only if they are posted by verbs. Ports are "
    "recorded, PEs are not. IBPROF_SOURCE=exact selects transports that post by verbs"
)

EXAMPLES = """\
examples:
  ibprof run -- mpirun -n 16 ./app                       record all ranks, also on other hosts
  ibprof run --operations ALLTOALL,BCAST -- srun ./app   only these operations
  IBPROF_SOURCE=exact ibprof run -- mpirun -n 16 ./app   with transports whose bytes are all recorded by port
  ibprof run --fabric ibdiagnet.lst -- mpirun ./app      a verdict that includes the links
  mpirun -n 16 ibprof run -- ./app                       preload only the application
"""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of `ibprof run`."""

    command: list[str]
    output: Path | None
    operations: str | None
    verbose: int | None
    fabric: list[str]


@command("ibprof run")
def main(argv: Sequence[str] | None) -> int:
    """Run `ibprof run`."""
    options = _parse(argv)
    command = options.command
    if not command:
        raise UsageError("expected a command, such as `ibprof run -- mpirun -n 4 ./app`")
    environment = dict(os.environ)
    library = find_library()
    variables = _settings(options, environment)
    variables |= _exact_transports(variables, environment)
    variables |= nccl_settings(environment, library.with_name(NCCL_PROFILER))
    launcher = identify_launcher(command[0])
    if launcher is None and is_inside_job(environment):
        _become(command, environment | variables | {PRELOAD: preload(library, environment.get(PRELOAD, ""))})
    if status := _explain_missing(command[0]):
        return status
    variables = {"IBPROF_RUN": str(uuid.uuid4())} | variables
    variables["IBPROF_OUTPUT"] = _absolute(variables.get("IBPROF_OUTPUT") or RECORDING)
    if launcher not in (None, Launcher.SRUN):
        # Expand the path's patterns here: on other hosts, ranks may be in another job step or in no job, so that the
        # patterns would have other values.
        variables["IBPROF_OUTPUT"] = expand_output(variables["IBPROF_OUTPUT"], output_values(environment))
    launch = Launch(command, environment | variables)
    if launcher:
        named = read_rsh_line(command).hosts if launcher is Launcher.MPIRUN_RSH else []
        named += read_command(command, lambda word: shutil.which(word) is not None, Path.cwd())
        hosts = ",".join(dict.fromkeys(named))
        if hosts and len(hosts) < LONGEST_VALUE:
            launch.environment["IBPROF_HOSTS"] = variables["IBPROF_HOSTS"] = hosts
        launch = carry(launcher, launch, variables | {PRELOAD: str(library)})
    else:
        launch = Launch(command, with_library(launch.environment, library))
    with watch_loads(library) as watch:
        try:
            status = run_in_foreground(launch)
        except OSError as error:
            print(f"ibprof run: {command[0]}: {error.strerror}", file=sys.stderr)
            return NOT_STARTED
        nothing = NEVER_LOADED if watch.was_never_loaded() else NOT_RECORDED
    _collect(options, variables["IBPROF_OUTPUT"], variables["IBPROF_RUN"], status, nothing)
    return status


def _parse(argv: Sequence[str] | None) -> RunOptions:
    parser = make_parser(
        "ibprof run",
        "Run CMD and record its MPI traffic. If CMD starts with mpirun, mpiexec, srun or "
        "mpirun_rsh, all ranks on all hosts are recorded. Then ibprof makes profile.otf2 from the recordings.",
        EXAMPLES,
        usage="ibprof run [-o DIR] [--operations OP,...] [--verbose N] [--fabric LST...] -- CMD",
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="folder of profile.otf2 and profile.ibprof (default: .)"
    )
    parser.add_argument(
        "--operations", metavar="OP,...", help="record only these MPI operations, as with IBPROF=OP,..."
    )
    parser.add_argument("--verbose", metavar="N", type=int, choices=range(6), help="verbosity of the library (0 to 5)")
    parser.add_argument(
        "--fabric", metavar="LST", nargs="+", default=[], help="the fabric of the hosts: the verdict includes its links"
    )
    parser.add_argument("command", metavar="CMD", nargs=argparse.REMAINDER, help="a command and its arguments")
    given = parser.parse_args(argv)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    return RunOptions(command, given.output, given.operations, given.verbose, given.fabric)


def _settings(options: RunOptions, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of libibprof.so, from the environment and the options; options take precedence."""
    settings = {name: value for name, value in environment.items() if re.match("IBPROF(_|$)", name) and value}
    settings |= intranode_settings(environment)
    # Slurm's plug-in sets IBPROF_SITE_OUTPUT and IBPROF_OUTPUT to one folder, which the computing centre chose. If the
    # variables differ, the user set IBPROF_OUTPUT.
    if settings.pop("IBPROF_SITE_OUTPUT", None) == settings.get("IBPROF_OUTPUT"):
        settings.pop("IBPROF_OUTPUT", None)
    if options.output:
        settings["IBPROF_OUTPUT"] = _absolute(str(options.output / RECORDING))
    if options.operations is not None:
        settings["IBPROF"] = options.operations
    if options.verbose is not None:
        settings["IBPROF_VERBOSE"] = str(options.verbose)
    return settings


def _absolute(pattern: str) -> str:
    """Return an output pattern with an absolute path. A `%` in the current folder's name is escaped."""
    return pattern if pattern.startswith("/") else str(Path(str(Path.cwd()).replace("%", "%%"), pattern))


def _exact_transports(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables that select fully recorded transports, if IBPROF_SOURCE=exact asks for them."""
    asked = {**environment, **settings}
    if not is_inside_job(environment):  # inside a job, every rank would print these sentences
        for sentence in describe_exact(asked):
            print(f"ibprof run: {sentence}", file=sys.stderr)
    return exact_settings(asked)


def _explain_missing(program: str) -> int:
    """If a program cannot be started, print the reason, and return a shell's exit status; otherwise return 0."""
    if shutil.which(program):
        return 0
    there = shutil.which(program, os.F_OK) or ("/" in program and Path(program).is_dir())
    print(f"ibprof run: {program}: {'not a program' if there else 'command not found'}", file=sys.stderr)
    return NOT_STARTED if there else NOT_FOUND


def _become(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Replace this process by the command: the command is then the launcher's child, as without ibprof."""
    try:
        os.execvpe(command[0], list(command), dict(environment))
    except OSError as error:
        print(f"ibprof run: {command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED)


def _collect(options: RunOptions, output: str, name: str, status: int, nothing: str) -> None:
    """Write the profile and print a summary. Errors in writing or printing do not change the command's status."""
    # The command has ended, so these imports do not delay the command.
    from ibprof.recording.folder_runs import archive_path_of, describe_older_archive, is_recording  # noqa: PLC0415

    places = [Path(found) for found in sorted(glob.glob(output_glob(output)))]  # noqa: PTH207  (absolute)
    older = [archive_path_of(place) for place in places or [Path(output)]]
    try:
        lines = _make_profiles([place for place in places if is_recording(place)], name, options.fabric)
        lines = lines or [*_describe_program(options.command), nothing, *describe_older_archive(older)]
    except IbprofError as error:
        lines = [str(error), *describe_older_archive(older)]
    except OSError as error:
        lines = [f"no profile was made: {error}", *describe_older_archive(older)]
    if status:
        lines.append(f"the command ended with status {status}")
    with suppress(OSError):
        for line in lines:
            print(f"ibprof: {line}", file=sys.stderr)


def _describe_program(command: Sequence[str]) -> list[str]:
    """Return a hint on OpenSHMEM if the program uses it; otherwise no lines."""
    from ibprof.doctor.program_check import identify_program  # noqa: PLC0415  (needed only if nothing was recorded)

    return [OPENSHMEM] if identify_program(command).openshmem else []


def _make_profiles(recordings: Sequence[Path], name: str, fabric: Sequence[str]) -> list[str]:
    """Write profiles of the job with most ranks, and of each job of a batch system. Return the lines to print.

    Without recorded jobs, no lines are returned.
    """
    from ibprof.archive.otf2_archive import claim_path, write_archive  # noqa: PLC0415  (slow to import)
    from ibprof.profile.missing_data import describe_gaps  # noqa: PLC0415
    from ibprof.profile.profile_summary import describe_briefly  # noqa: PLC0415
    from ibprof.profile.unaccounted import summarize_unaccounted  # noqa: PLC0415
    from ibprof.recording.folder_runs import archive_path_of, list_runs, read_scheduler_job  # noqa: PLC0415
    from ibprof.recording.recording_reader import merge_run  # noqa: PLC0415
    from ibprof.verdict.verdict_rules import judge_run  # noqa: PLC0415

    runs = [run for run in list_runs(*recordings) if run.files[0].run == name]
    if not runs:
        return []
    # Report on the job with most ranks (of equal jobs, on the last): spawned jobs are assumed to have fewer ranks.
    chosen = max(reversed(runs), key=lambda run: run.ranks)
    made, others = [], []
    for run in runs:
        if run is not chosen and not read_scheduler_job(run.files).job:
            where = _shorten(run.recording)
            others.append(f"another job of {run.ranks} rank(s): ibprof collect {where} --run {run.name} -o other.otf2")
            continue
        profile = merge_run(run.recording, run)
        path = archive_path_of(run.recording, profile.scheduler)
        archive = claim_path(path, profile)
        with show_progress("writing ranks") as progress:
            write_archive(profile, archive, progress)
        if run is chosen:
            made.append((profile, archive, path))
        else:
            what = "step" if profile.scheduler.step else "run"
            others.append(f"another {what} of {run.ranks} rank(s): {_shorten(archive)}")
    if len(others) > JOBS_SHOWN:
        others[JOBS_SHOWN:] = [
            f"and {len(others) - JOBS_SHOWN} more: ibprof collect {_shorten(chosen.recording)} --list"
        ]
    ((profile, archive, path),) = made
    taken = f"{path.name} exists already, so the new profile is {archive.name}"
    return [
        *describe_briefly(profile),
        _judge_on_links(fabric, archive) or judge_run(profile).text,
        *describe_gaps(profile, with_operations=False),
        *others,
        *([taken] if archive != path else []),
        f"{_shorten(archive)} is the profile, made from the recording {_shorten(chosen.recording)}",
        f"next: ibprof info {_shorten(archive)}, or ibprof-report {shlex.join((*fabric, _shorten(archive)))}",
        *summarize_unaccounted(profile),
    ]


def _judge_on_links(fabric: Sequence[str], archive: Path) -> str:
    """Return the report's verdict on a fabric; empty without a fabric, or if ibprof-report is missing or fails."""
    report = find_commands().get("report") if fabric else None
    if report is None:
        return ""
    with redirect_stdout(io.StringIO()) as printed:
        status = report.load()([*fabric, str(archive), "--json"])
    return str(json.loads(printed.getvalue())["verdict"]["text"]) if not status else ""


def _shorten(path: Path) -> str:
    """Return the shortest form of a path, quoted for a shell."""
    return shlex.quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))


_FORWARDED = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
_KILLED_BY = 128


_OPENED = 0x20
"""Linux's IN_OPEN: a file was opened."""


def run_in_foreground(launch: Launch) -> int:
    """Run a command to its end.

    Returns:
        The command's exit status; 128 plus the signal's number if a signal ended it.

    Raises:
        OSError: the command cannot be started.
    """
    watched = _FORWARDED | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        # No other thread runs yet, so the child may run Python before the command.
        child = subprocess.Popen(launch.command, env=launch.environment, preexec_fn=unblock)  # noqa: PLW1509
        while child.poll() is None:
            received = signal.sigwaitinfo(watched)
            # The command also gets Ctrl-C and other terminal signals from the kernel: do not send such signals again.
            sent_by_process = received.si_code <= 0
            if received.si_signo != signal.SIGCHLD and sent_by_process:
                child.send_signal(received.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child.returncode if child.returncode >= 0 else _KILLED_BY - child.returncode


@dataclass(frozen=True, slots=True)
class LoadWatch:
    """Watch whether processes open a file after this object was made.

    Attributes:
        events: descriptor of the kernel's events; None if the kernel refused to watch the file.
    """

    events: int | None

    def was_never_loaded(self) -> bool:
        """Return true only if it is certain that no process of this host opened the file."""
        if self.events is None:
            return False
        try:
            return not os.read(self.events, 4096)
        except BlockingIOError:
            return True
        except OSError:
            return False


@contextmanager
def watch_loads(library: Path) -> Iterator[LoadWatch]:
    """Watch whether processes open a library, until the context ends."""
    libc = ctypes.CDLL(None)
    events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    watched = events >= 0 and libc.inotify_add_watch(events, os.fsencode(library), _OPENED) >= 0
    try:
        yield LoadWatch(events if watched else None)
    finally:
        if events >= 0:
            os.close(events)
