# SPDX-License-Identifier: Apache-2.0
"""The end of every command: the one place where an error becomes a line on stderr and an exit status.

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
from importlib.metadata import version

from ibprof.errors import UNEXPECTED, IbprofError, InputError

_KILLED_BY = 128
"""A shell shows the death by signal n as status 128 + n."""


def run_command(
    name: str, body: Callable[[Sequence[str] | None], int | None], argv: Sequence[str] | None = None
) -> int:
    """Run the body of a command, and return its exit status.

    Args:
        name: of the command, as the user typed it; begins every message.
        body: the command itself: takes the arguments (None: those of this process), returns its status or None for 0.
            It does not run if the first argument is `--version`.
        argv: the arguments after the command's name.

    Returns:
        The exit status: that of `body` or of an `IbprofError`. 3 if the operating system refused a file or an input
        exceeds the memory. 130 after an interrupt. 141 if the reader of stdout ended. 70, with a traceback, for a
        bug in ibprof.
    """
    _replace_closed_streams()
    _allow_any_text()
    given = sys.argv[1:] if argv is None else argv
    try:
        status = _print_version(name) if given and given[0] == "--version" else body(argv)
        sys.stdout.flush()
    except IbprofError as error:
        _print_error(f"{name}: {error}")
        return error.status
    except BrokenPipeError:
        _forget_stdout()
        return _KILLED_BY + signal.SIGPIPE
    except KeyboardInterrupt:
        _print_error(f"{name}: interrupted")
        return _KILLED_BY + signal.SIGINT
    except (OSError, MemoryError) as error:
        _print_error(f"{name}: {_refusal(error)}")
        _forget_stdout()
        return InputError.status
    except Exception:
        _print_error(traceback.format_exc().rstrip())
        _print_error(f"{name}: this is a bug of ibprof; please report it with the lines above")
        return UNEXPECTED
    return status or 0


def _print_version(name: str) -> int:
    print(f"{name} {version('ibprof')}")
    return 0


def _replace_closed_streams() -> None:
    """Replace streams that a shell closed (`>&-`): Python has None, and the next file would get their descriptor."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  (open to the end)


def _refusal(error: OSError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return "the input exceeds this machine's memory" + (f" ({error})" if str(error) else "")
    where = f"{os.fspath(error.filename)!s}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error}"


def _allow_any_text() -> None:
    """Allow any text in names of hosts and regions: a letter that the encoding lacks must not end the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _print_error(message: str) -> None:
    # If stderr is closed too, only the status remains.
    try:
        print(message, file=sys.stderr, flush=True)
    except OSError:
        return


def _forget_stdout() -> None:
    """Keep the interpreter's own flush at exit from failing again on the same stream."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
