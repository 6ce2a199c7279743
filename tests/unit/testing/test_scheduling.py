# SPDX-License-Identifier: Apache-2.0
"""Each test that is listed as running alone exists and runs last. Tests in virtual machines form one group."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ibprof_testing import scheduling
from ibprof_testing.scheduling import ALONE, BY_TEST, IN_TURN, LONG, TESTS, find_group, start_order


@pytest.mark.parametrize("name", ALONE)
def test_names_of_lonely_tests_are_there(name: str) -> None:
    file, _, test = name.partition("::")
    assert f"\ndef {test}(" in (TESTS / file).read_text()


@pytest.mark.parametrize("folder", [*IN_TURN, *LONG, *BY_TEST])
def test_folders_are_there(folder: str) -> None:
    assert (TESTS / folder).exists() or (TESTS.parent / folder).exists()


def test_lonely_tests_come_last() -> None:
    names = ["unit/test_x.py::test_x", *ALONE, "viewer/test_x.py::test_x", "vm/test_x.py::test_x"]
    ordered = sorted(names, key=start_order)
    assert ordered[:3] == ["vm/test_x.py::test_x", "viewer/test_x.py::test_x", "unit/test_x.py::test_x"]
    assert set(ordered[3:]) == set(ALONE)


@pytest.mark.parametrize(
    ("name", "group"),
    [
        *((name, "alone") for name in ALONE),
        ("vm/test_x.py::test_x", "vm/"),
        ("mpi/test_x.py::test_x", "mpi/test_x.py"),
        ("unit/fabric/test_x.py::test_x", "unit/fabric/test_x.py"),
        *((f"{file}::test_x", None) for file in BY_TEST),
    ],
)
def test_groups(name: str, group: str | None) -> None:
    assert find_group(name) == group


def is_free(file: Path, how: int) -> bool:
    """Return whether another worker could lock the file."""
    with file.open() as other:
        try:
            fcntl.flock(other, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize(("name", "shared"), [(next(iter(ALONE)), False), ("unit/test_x.py::test_x", True)])
def test_a_lonely_test_keeps_others_away(
    name: str, shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "_MACHINE"
    for lock in ("_QUEUE", "_MACHINE"):
        (tmp_path / lock).touch()
        monkeypatch.setattr(scheduling, lock, os.open(tmp_path / lock, os.O_RDONLY))
    file, _, test = name.partition("::")
    item: Any = SimpleNamespace(path=TESTS / file, originalname=test, name=test)
    run = scheduling.pytest_runtest_protocol(item)
    next(run)
    assert is_free(tmp_path / "_QUEUE", fcntl.LOCK_EX)
    assert is_free(machine, fcntl.LOCK_SH) == shared
    assert not is_free(machine, fcntl.LOCK_EX)
    with pytest.raises(StopIteration):
        next(run)
    assert is_free(machine, fcntl.LOCK_EX)
