# SPDX-License-Identifier: Apache-2.0
"""Run a command in place of this process: with its input and output, signals, and exit status."""

from __future__ import annotations

import signal
import subprocess

from ibprof.launch.preload_settings import Launch

_FORWARDED = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
_KILLED_BY = 128


def run_in_foreground(launch: Launch) -> int:
    """Run a command to its end.

    Returns:
        Its exit status; 128 and the signal's number if a signal ended it.

    Raises:
        OSError: it cannot be started.
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
            # The kernel sends Ctrl-C and the like to all processes of the terminal, so the command gets it directly.
            sent_by_process = received.si_code <= 0
            if received.si_signo != signal.SIGCHLD and sent_by_process:
                child.send_signal(received.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child.returncode if child.returncode >= 0 else _KILLED_BY - child.returncode
