# SPDX-License-Identifier: Apache-2.0
"""How every command ends: the one place where an error becomes a line on stderr and an exit status.

def main(argv: Sequence[str] | None = None) -> int:
    return run_command("ibprof-layout", _lay_out_and_write, argv)
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence

from ibprof.errors import UNEXPECTED, IbprofError, InputError

_KILLED_BY = 128
"""A shell shows the death by signal n as status 128 + n."""


def run_command(
    name: str, body: Callable[[Sequence[str] | None], int | None], argv: Sequence[str] | None = None
) -> int:
    """Run the body of a command and turn whatever ends it into an exit status.

    Args:
        name: of the command, as the user typed it; begins every message.
        body: the command itself: takes the arguments (None: those of this process), returns its status or None for 0.
        argv: the arguments after the command's name.

    Returns:
        The exit status: what `body` returned; an `IbprofError`'s own; 3 where the operating system refused a file or
        an input does not fit into memory; 130 after an interrupt; 141 when the reader of stdout went away; 70, with a
        traceback, for a bug of ours.
    """
    _replace_closed_streams()
    _let_any_name_be_printed()
    try:
        status = body(argv)
        sys.stdout.flush()
    except IbprofError as error:
        _say(f"{name}: {error}")
        return error.status
    except BrokenPipeError:
        _forget_stdout()
        return _KILLED_BY + signal.SIGPIPE
    except KeyboardInterrupt:
        _say(f"{name}: interrupted")
        return _KILLED_BY + signal.SIGINT
    except (OSError, MemoryError) as error:
        _say(f"{name}: {_refusal(error)}")
        _forget_stdout()
        return InputError.status
    except Exception:
        _say(traceback.format_exc().rstrip())
        _say(f"{name}: this is a bug of ibprof; please report it with the lines above")
        return UNEXPECTED
    return status or 0


def _replace_closed_streams() -> None:
    """Where a shell closed stdout or stderr (`>&-`), Python has None, and the next file would get its descriptor."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  (open to the end)


def _refusal(error: OSError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return "the input does not fit into this machine's memory" + (f" ({error})" if str(error) else "")
    where = f"{os.fspath(error.filename)!s}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error}"


def _let_any_name_be_printed() -> None:
    """Names of hosts and regions are anyone's text: an encoding that lacks a letter must not end the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _say(message: str) -> None:
    # With stderr gone too there is nobody left to tell; the status still tells.
    try:
        print(message, file=sys.stderr, flush=True)
    except OSError:
        return


def _forget_stdout() -> None:
    """Keep the interpreter's own flush at exit from failing once more on the same stream."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
