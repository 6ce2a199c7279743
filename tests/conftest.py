# SPDX-License-Identifier: Apache-2.0
"""Settings for all tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

# Machines differ, and CI is shared: how long an example takes proves nothing.
settings.register_profile("ibprof", deadline=None, print_blob=True)
settings.load_profile("ibprof")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files anew."""
    parser.addoption("--update", action="store_true", help="write the golden files anew instead of comparing with them")
