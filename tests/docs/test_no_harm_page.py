# SPDX-License-Identifier: Apache-2.0
"""All tests that docs/no-harm.md names exist, and the page names each file of no-harm tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "no-harm.md").read_text()


def test_every_test_that_is_named_is_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 20
    assert not [f"{file}::{test}" for file, test in named if f"def {test}(" not in (ROOT / file).read_text()]


def test_every_file_of_such_tests_is_named() -> None:
    files = {file.relative_to(ROOT).as_posix() for file in (ROOT / "tests" / "mpi").glob("test_no_harm*.py")}
    assert files <= set(re.findall(r"tests/[\w/]+\.py", PAGE))
