# SPDX-License-Identifier: Apache-2.0
"""The errors that ibprof raises intentionally, with exit statuses.

        IbprofError               70: unexpected; no better status is known
    +-- UsageError            2: the command line asks for something impossible
    +-- InputError            3: a file is invalid; the message has path, line, what was expected and what was found
    +-- MissingToolError      4: a required program is not installed
    +-- InconsistentError     5: well-formed inputs contradict each other, or routes are unreliable

Exit status 1 is no error: a threshold that the user set was crossed. Only a command's `main` catches these errors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from os import PathLike, fspath
from typing import ParamSpec, TypeVar

THRESHOLD_CROSSED = 1
UNEXPECTED = 70

_LAB = ("matplotlib", "netCDF4", "networkx", "numexpr", "scipy", "sklearn", "threadpoolctl")
"""Modules that pip installs with the extra `lab`, and that ibprof imports only at use."""

_INSTALL_LAB = "{} is not installed: pip install 'ibprof[lab]'"

P = ParamSpec("P")
R = TypeVar("R")


class IbprofError(Exception):
    """Base of errors that a user can understand and act on; `status` is the exit status of the command."""

    status = UNEXPECTED


class UsageError(IbprofError):
    """The command line asks for something impossible."""

    status = 2


class InputError(IbprofError):
    """A file is invalid.

    Args:
        line: line number, from 1; None for a whole file.
        expected: expected content of the line.
        found: content of the line.
    """

    status = 3

    def __init__(self, path: str | PathLike[str], line: int | None, expected: str, found: str) -> None:
        where = fspath(path) if line is None else f"{fspath(path)}:{line}"
        super().__init__(f"{where}: expected {expected}, found {found}")


class MissingToolError(IbprofError):
    """A required program is not installed."""

    status = 4


class InconsistentError(IbprofError):
    """Well-formed inputs contradict each other."""

    status = 5


def need_lab(*modules: str) -> None:
    """Check that modules of the extra `lab` are installed. Call this before a command's work.

    Raises:
        MissingToolError: a module is not installed.
    """
    for module in modules:
        try:
            found = find_spec(module)
        except ValueError:  # sys.modules has None for this module
            found = None
        if found is None:
            raise MissingToolError(_INSTALL_LAB.format(module))


def find_missing_extra(error: Exception) -> MissingToolError | None:
    """Return a `MissingToolError` for a missing module of the extra `lab`; None for other errors."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return MissingToolError(_INSTALL_LAB.format(package)) if package in _LAB else None


def quote_found(text: str | bytes, limit: int = 60) -> str:
    """Return `text` from a file on one line, with escapes for unprintable characters, cut after `limit` characters."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    cut = text if len(text) <= limit else text[:limit] + "..."
    return repr(cut)


def with_plain_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Raise a function's errors without causes and inner frames (for the Python API).

    An error of the operating system becomes an `InputError` with the name of the file. A missing module of the extra
    `lab` becomes a `MissingToolError`.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except IbprofError as error:
            raise error.with_traceback(None) from None
        except OSError as error:
            name = "a file" if error.filename is None else error.filename
            found = error.strerror.lower() if error.strerror else str(error)
            raise InputError(name, None, "a file that can be read or written", found) from None
        except ModuleNotFoundError as error:
            raise find_missing_extra(error) or error from None

    return call
