# SPDX-License-Identifier: Apache-2.0
"""Settings of all tests."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from hypothesis import settings

if not importlib.util.find_spec("ibprof_testing"):
    install = f"{sys.executable} -m pip install --no-deps --no-build-isolation --editable tests/support"
    pytest.exit(f"the tests' helpers are not installed: try again after\n    {install}", 4)

pytest_plugins = ["ibprof_testing.scheduling", "ibprof_testing.kind_times"]

# Asserts in helpers show values, as those in tests do.
pytest.register_assert_rewrite("ibprof_testing")

# Machines differ, and CI is shared: how long an example takes proves nothing.
settings.register_profile("ibprof", deadline=None, print_blob=True)
settings.load_profile("ibprof")


@pytest.fixture(autouse=True)
def no_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the output of commands have its width in a pipe; workers of pytest-xdist get one of 80 columns."""
    monkeypatch.delenv("COLUMNS", raising=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files anew."""
    parser.addoption("--update", action="store_true", help="write the golden files anew instead of comparing with them")
