# SPDX-License-Identifier: Apache-2.0
"""Plugin of pytest: tests that do not check pictures get empty pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def without_drawing() -> Iterator[None]:
    """Leave pictures empty, because drawing them takes several times as long as a small simulation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.savefig", lambda _figure, path, **_options: Path(path).touch())
        yield


@pytest.fixture
def undrawn() -> Iterator[None]:
    """Leave the pictures of a test empty."""
    with without_drawing():
        yield
