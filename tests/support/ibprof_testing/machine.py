# SPDX-License-Identifier: Apache-2.0
"""Requirements on the machine. A test that lacks one fails by `MissingError`, which names it; no test is skipped."""

from __future__ import annotations

import os
import shutil


class MissingError(Exception):
    """The machine lacks what a test or a lab needs: says what, and how to get it."""


def find_program(*names: str, package: str, path: str | None = None) -> str:
    """Return the path of the first of some programs that is installed.

    Args:
        names: of one program, as systems name it.
        package: of Debian that has it.
        path: the folders to look in, instead of those of PATH.

    Raises:
        MissingError: none of them is installed.
    """
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise MissingError(f"no {names[0]}: apt-get install {package}")


def require_root(purpose: str) -> None:
    """Check that the user is root.

    Args:
        purpose: why, as in "to make network namespaces".

    Raises:
        MissingError: another user runs this.
    """
    if os.geteuid() != 0:
        raise MissingError(f"needs root, {purpose}: try again with sudo")
