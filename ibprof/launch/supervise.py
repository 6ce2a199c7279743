# SPDX-License-Identifier: Apache-2.0
"""Run a command in place of this process, with its input, output, signals and exit status.

`watch_loads` reports whether a process of this host loads a library: the kernel reports each open of its file.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ibprof.launch.preload_settings import Launch

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
            # The kernel sends Ctrl-C and other terminal signals to all processes of the terminal, also to the command.
            sent_by_process = received.si_code <= 0
            if received.si_signo != signal.SIGCHLD and sent_by_process:
                child.send_signal(received.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child.returncode if child.returncode >= 0 else _KILLED_BY - child.returncode


@dataclass(frozen=True, slots=True)
class LoadWatch:
    """A watch of a file, from the time of its creation.

    Attributes:
        events: descriptor of the kernel's events; None if the kernel refused it.
    """

    events: int | None

    def was_never_loaded(self) -> bool:
        """Return whether certainly no process of this host opened the file."""
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
    """Watch the loads of a library until the context ends."""
    libc = ctypes.CDLL(None)
    events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    watched = events >= 0 and libc.inotify_add_watch(events, os.fsencode(library), _OPENED) >= 0
    try:
        yield LoadWatch(events if watched else None)
    finally:
        if events >= 0:
            os.close(events)
