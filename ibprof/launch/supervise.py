# SPDX-License-Identifier: Apache-2.0
"""Run a command in our place: its input and output are ours, signals reach it, and its end is ours."""

from __future__ import annotations

import signal
import subprocess

from ibprof.launch.preload_settings import Launch

_FORWARDED = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
_KILLED_BY = 128


def run_in_foreground(launch: Launch) -> int:
    """Run a command to its end.

    Returns:
        Its exit status; 128 and the signal's number when one ended it.

    Raises:
        OSError: it cannot be started.
    """
    watched = _FORWARDED | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        # No thread of ours runs yet, so that the child may run Python before the command.
        child = subprocess.Popen(launch.command, env=launch.environment, preexec_fn=unblock)  # noqa: PLW1509
        while child.poll() is None:
            received = signal.sigwaitinfo(watched)
            # A key like Ctrl-C reaches the command without us: it comes from the kernel, to all of a terminal's job.
            sent_by_process = received.si_code <= 0
            if received.si_signo != signal.SIGCHLD and sent_by_process:
                child.send_signal(received.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child.returncode if child.returncode >= 0 else _KILLED_BY - child.returncode
