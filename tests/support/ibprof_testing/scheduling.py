# SPDX-License-Identifier: Apache-2.0
"""Plugin of pytest that decides which tests run at the same time, and repeats some failed tests.

The plugin needs `pytest -n 2 --dist loadgroup --no-loadscope-reorder`.
"""

from __future__ import annotations

import fcntl
import functools
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from ibprof_testing.paths import ROOT

TESTS = ROOT / "tests"

ALONE = {
    "mpi/test_lab.py::test_a_tree_with_a_wrong_cable_and_a_slow_uplink": "measures delays of cables",
    "mpi/test_lab.py::test_a_slow_host_and_a_thin_trunk": "measures delays and rates",
    "mpi/test_lab.py::test_what_is_inferred_is_what_was_built": "measures delays of cables",
    "mpi/test_latency.py::test_large_messages_take_longer": "compares measured delays",
    "unit/recording/test_recording.py::test_a_large_recording_is_read_at_once": "has a limit of processor time",
}
"""Tests that must run alone, each with the reason. They come last."""

IN_TURN = ("vm/",)
"""Folders of tests that never run at the same time, because each guest keeps a processor busy. They start first."""

LONG = ("mpi/", "docs/test_how_to.py", "studies/", "packaging/", "viewer/")
"""Folders and files with long tests, which start early, so that all workers end at about the same time."""

BY_TEST = ("docs/test_how_to.py",)
"""Files of tests that share no set-up, so that several workers can run them. In all other files, one worker runs all
tests of the file."""

LAUNCHED = ("mpi/", "vm/")
"""Folders of tests with launchers of MPI and Slurm. On a loaded machine, launchers lose lines and time out.

A failed test of these folders is repeated once, and reported as repeated (docs/decisions/0023)."""

MOST_REPEATED = 3
"""Maximum number of repeated tests. The run fails above this number."""

_QUEUE, _MACHINE = (os.open(path, os.O_RDONLY) for path in (__file__, TESTS))


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Put tests into groups, and sort tests: `IN_TURN` first, `ALONE` last. One worker runs all tests of a group."""
    for item in items:
        if group := find_group(name_of(item)):
            item.add_marker(pytest.mark.xdist_group(group))
        if name_of(item).startswith(LAUNCHED):
            item.add_marker(pytest.mark.flaky(reruns=1))
    yield  # meanwhile, pytest-xdist adds the groups to the names of the tests
    if getattr(config.option, "loadgroup", False) and any(
        find_group(name_of(item)) and "@" not in item.nodeid for item in items
    ):
        pytest.exit(
            "this pytest hides the groups of tests from pytest-xdist: tests that disturb each other would run together",
            4,
        )
    items.sort(key=lambda item: start_order(name_of(item)))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if more than `MOST_REPEATED` tests were repeated."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    repeated = {report.nodeid for report in reporter.stats.get("rerun", ())}
    if len(repeated) > MOST_REPEATED and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(
            f"{len(repeated)} tests passed at the second attempt only, expected at most {MOST_REPEATED}"
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the repeated tests, with the reason of each."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.section(f"repeated: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)


def find_group(name: str) -> str | None:
    """Return the group of the test `name` (by `name_of`); None if any worker may run the test."""
    if name in ALONE:
        return "alone"
    file = name.partition("::")[0]
    return None if file in BY_TEST else next((folder for folder in IN_TURN if name.startswith(folder)), file)


def start_order(name: str) -> int:
    """Return the position of a test in the order of starts, by the test's folder. Tests of `ALONE` start last."""
    folders = (*IN_TURN, *LONG)
    if name in ALONE:
        return len(folders) + 1
    return next((place for place, folder in enumerate(folders) if name.startswith(folder)), len(folders))


def name_of(item: pytest.Item) -> str:
    """Return `FILE::TEST` without parameters. FILE is relative to `tests`, or to the root for other tests."""
    return f"{_shorten(item.path)}::{getattr(item, 'originalname', item.name)}"


@functools.cache
def _shorten(path: Path) -> Path:
    return next((path.relative_to(folder) for folder in (TESTS, ROOT) if path.is_relative_to(folder)), path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test of `ALONE` while no other test runs. While a test of `ALONE` waits, no other test starts."""
    fcntl.flock(_QUEUE, fcntl.LOCK_EX)
    fcntl.flock(_MACHINE, fcntl.LOCK_EX if name_of(item) in ALONE else fcntl.LOCK_SH)
    fcntl.flock(_QUEUE, fcntl.LOCK_UN)
    try:
        return (yield)
    finally:
        fcntl.flock(_MACHINE, fcntl.LOCK_UN)
