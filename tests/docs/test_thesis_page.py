# SPDX-License-Identifier: Apache-2.0
"""The page that holds the thesis's figures against ours says what the results beside it say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "thesis" / "interference.md"


def test_tables_are_those_of_the_results() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "thesis-tables.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("chapter", ["chapter-5", "chapter-6"])
def test_no_claim_is_left_out_or_decided_without_results(chapter: str) -> None:
    table = re.search(rf"<!-- table: {chapter} -->\n(.*?)<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert table
    rows = [line.split("|") for line in table[1].splitlines()[2:]]
    assert len(rows) >= 10
    for row in rows:
        assert (row[4].strip() == "not simulated yet") <= (row[5].strip() == "")
