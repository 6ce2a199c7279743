# SPDX-License-Identifier: Apache-2.0
"""Plugin of pytest: print the time that each kind of test took, if IBPROF_TEST_TIMES is set.

scripts/timed.sh writes the times of other commands of `make test` to the file IBPROF_TEST_TIMES.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

_LONGEST_FILES = 40

_LAST = pytest.StashKey[float]()


def count_core_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def pytest_configure(config: pytest.Config) -> None:
    """Start to measure time."""
    config.stash[_LAST] = count_core_seconds()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Reset the clock, so that the first test's time does not include the collection of tests."""
    session.config.stash[_LAST] = count_core_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the processor time of a test's phase to the phase's report, which workers send to the main process."""
    report = yield
    now = count_core_seconds()
    report.user_properties.append(("core_s", now - item.config.stash[_LAST]))
    item.config.stash[_LAST] = now
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print core-seconds and seconds of each kind, and the files with the most core-seconds.

    `collection` is pytest's time outside of tests.
    """
    if not (path := os.environ.get("IBPROF_TEST_TIMES")):
        return
    cores: defaultdict[str, float] = defaultdict(float)
    seconds: defaultdict[str, float] = defaultdict(float)
    files: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                kind = find_kind(report.nodeid)
                core_s = sum(float(str(value)) for name, value in report.user_properties if name == "core_s")
                cores[kind] += core_s
                seconds[kind] += report.duration
                files[report.nodeid.partition("::")[0]] += core_s
    cores["collection"] = count_core_seconds() - sum(cores.values())
    for line in Path(path).read_text().splitlines():
        kind, wall, *core = line.rsplit(maxsplit=3)
        cores[kind] += sum(map(float, core))
        seconds[kind] += float(wall)
    terminalreporter.section("core-seconds of the longest files")
    for file, core_s in sorted(files.items(), key=lambda item: -item[1])[:_LONGEST_FILES]:
        terminalreporter.write_line(f"{core_s:12,.0f}   {file}")
    terminalreporter.section("times by kind")
    terminalreporter.write_line("core-seconds   seconds, added up over workers")
    for kind, core_s in sorted(cores.items(), key=lambda item: -item[1]):
        terminalreporter.write_line(f"{core_s:12,.0f} {seconds[kind]:9,.0f}   {kind}")
    terminalreporter.write_line(f"{sum(cores.values()):12,.0f} {sum(seconds.values()):9,.0f}   total")


def find_kind(name: str) -> str:
    """Return the folder in the name of a test, such as `tests/unit` or `studies`."""
    folders = name.partition("::")[0].split("/")[:-1]
    return "/".join(folders[: 2 if folders[0] == "tests" else 1])
