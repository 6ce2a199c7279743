# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from ibprof_testing.samples import compiled


@pytest.fixture
def build(tmp_path: Path) -> compiled.Build:
    return partial(compiled.build, tmp_path)
