# SPDX-License-Identifier: Apache-2.0
"""Run commands of tests. After a timeout or a failed test, all processes that a command started are killed.

Each rank has a separate process group, so ranks would go on running if only the launcher were killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_END_S = 10
"""Time to wait for the end of a killed process, in seconds. A process that waits for a disk may never end."""


def run(
    command: Sequence[str | Path],
    *,
    timeout: float = 120,
    check: bool = False,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and return its status and output.

    Raises:
        subprocess.TimeoutExpired: the command did not end within `timeout` seconds.
        subprocess.CalledProcessError: `check` is true and the status is not 0.
    """
    with start(command, cwd=cwd, env=env) as process:
        stdout, stderr = process.communicate(timeout=timeout)
    done = subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
    if check:
        done.check_returncode()
    return done


@contextmanager
def start(
    command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Start a command in a new session. At the end of the block, all processes of the session are killed.

    Yields:
        The process; its stdout and stderr are pipes.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, cwd=cwd, env=env, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            end_session(process.pid)


def is_running(pid: int) -> bool:
    """Return whether a process is running. A zombie has ended."""
    try:
        return _read_stat(pid)[0] not in "ZX"
    except OSError:
        return False


def _read_stat(pid: int) -> list[str]:
    """Return state, parent, process group and session of a process."""
    # These fields follow the process's name, which is in brackets and may contain any character, even a bracket.
    return Path("/proc", str(pid), "stat").read_text(errors="replace").rpartition(")")[2].split()[:4]


def end_session(leader: int) -> None:
    """Kill all processes of a session, and all descendants of the session's leader, until none is left."""
    until = time.monotonic() + _END_S
    while (members := _find_members(leader)) and time.monotonic() < until:
        for pid in members:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _find_members(leader: int) -> set[int]:
    """Return the running processes of a session, and the leader's descendants in other sessions."""
    parents, members = {}, set()
    for pid in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        with suppress(OSError):  # the process may just have ended
            state, parent, _, session = _read_stat(pid)
            if state not in "ZX":
                parents[pid] = int(parent)
                members |= {pid} if int(session) == leader else set()
    while children := {pid for pid, parent in parents.items() if parent in members} - members:
        members |= children
    return members
