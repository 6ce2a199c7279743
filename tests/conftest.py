# SPDX-License-Identifier: Apache-2.0
"""Settings of all tests."""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest
from hypothesis import settings

if not importlib.util.find_spec("ibprof_testing"):
    install = f"{sys.executable} -m pip install --no-deps --no-build-isolation --editable tests/support"
    pytest.exit(f"the tests' helpers are not installed: try again after\n    {install}", 4)

# Set before numpy is imported, also for started commands. Tests keep all processors busy, so additional threads of
# numpy's BLAS would only spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest_plugins = [
    "ibprof_testing.scheduling",
    "ibprof_testing.kind_times",
    "ibprof_testing.drawing",
    "ibprof_testing.shared_demo",
]

# Show values of failed asserts in helpers, as in tests.
pytest.register_assert_rewrite("ibprof_testing")

# No deadline for examples, because machines differ in speed, and machines of CI are shared.
settings.register_profile("full", deadline=None, print_blob=True, max_examples=100)
settings.register_profile("short", settings.get_profile("full"), max_examples=25)


def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis try fewer examples if pytest leaves out the tests with the mark `full`."""
    settings.load_profile("short" if config.option.markexpr == "not full" else "full")


@pytest.fixture(autouse=True)
def no_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove COLUMNS, which pytest-xdist sets for its workers. Commands then use the output width for pipes."""
    monkeypatch.delenv("COLUMNS", raising=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that replaces golden files."""
    parser.addoption("--update", action="store_true", help="write the golden files anew instead of comparing with them")
