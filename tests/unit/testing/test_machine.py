# SPDX-License-Identifier: Apache-2.0
"""The error names each missing program and its package."""

from __future__ import annotations

import os

import pytest

from ibprof_testing.machine import MissingError, find_program, require_root


def test_the_first_name_that_is_there_is_found() -> None:
    assert find_program("no-such-shell", "sh", package="dash").endswith("/sh")


def test_a_missing_program_is_named_with_its_package() -> None:
    with pytest.raises(MissingError, match="no no-such-shell: apt-get install dash"):
        find_program("no-such-shell", package="dash")
    with pytest.raises(MissingError, match="no sh: apt-get install dash"):
        find_program("sh", package="dash", path="/proc/none")


def test_what_needs_root_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with pytest.raises(MissingError, match="needs root, to mount: try again with sudo"):
        require_root("to mount")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    require_root("to mount")
