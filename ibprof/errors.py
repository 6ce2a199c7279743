# SPDX-License-Identifier: Apache-2.0
"""The errors that ibprof raises on purpose, each with the exit status that a command ends with.

    IbprofError               (70: a bug of ours, when nothing better is known)
    +-- UsageError            2: the command line asks for something that cannot be
    +-- InputError            3: a file is not what it should be; says path, line, what was expected and what was found
    +-- MissingToolError      4: a program that is needed is not on this machine
    +-- InconsistentError     5: inputs that are each well-formed contradict one another, or routes cannot be trusted

Status 1 is no error: a threshold that the user set was crossed. Only a command's `main` catches these.
"""

from __future__ import annotations

from os import PathLike, fspath

THRESHOLD_CROSSED = 1
UNEXPECTED = 70


class IbprofError(Exception):
    """Something that a user can understand and act on; `status` is what the command exits with."""

    status = UNEXPECTED


class UsageError(IbprofError):
    """The command line asks for something that cannot be done."""

    status = 2


class InputError(IbprofError):
    """A file is not what it should be.

    Args:
        path: the file.
        line: its line, from 1; None where the file as a whole is meant or has no lines.
        expected: what should stand there.
        found: what does.
    """

    status = 3

    def __init__(self, path: str | PathLike[str], line: int | None, expected: str, found: str) -> None:
        where = fspath(path) if line is None else f"{fspath(path)}:{line}"
        super().__init__(f"{where}: expected {expected}, found {found}")


class MissingToolError(IbprofError):
    """A program that is needed is not on this machine."""

    status = 4


class InconsistentError(IbprofError):
    """Inputs that are each well-formed contradict one another."""

    status = 5


def quote_found(text: str | bytes, limit: int = 60) -> str:
    """Show `text` from a file on one line, safely: escapes for what is not printable, cut after `limit` characters."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    cut = text if len(text) <= limit else text[:limit] + "..."
    return repr(cut)
