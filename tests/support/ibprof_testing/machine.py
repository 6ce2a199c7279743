# SPDX-License-Identifier: Apache-2.0
"""Check the machine for requirements of tests.

A test with an unmet requirement fails with `MissingError`, which names the requirement. No test is skipped.
"""

from __future__ import annotations

import os
import shutil


class MissingError(Exception):
    """The machine lacks a requirement of a test or lab. The error message names the requirement and the remedy."""


def find_program(*names: str, package: str, path: str | None = None) -> str:
    """Return the path of a program.

    Args:
        names: names of the program on different systems, in order of preference.
        package: Debian's package of the program.
        path: folders to search instead of PATH.

    Raises:
        MissingError: the program is not installed.
    """
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise MissingError(f"no {names[0]}: apt-get install {package}")


def require_root(purpose: str) -> None:
    """Check that the user is root.

    Args:
        purpose: reason why root is needed, such as "to make network namespaces".

    Raises:
        MissingError: the user is not root.
    """
    if os.geteuid() != 0:
        raise MissingError(f"needs root, {purpose}: try again with sudo")
