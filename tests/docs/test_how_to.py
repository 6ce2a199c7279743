# SPDX-License-Identifier: Apache-2.0
"""The how-tos do what they say: every block that is marked ```sh run``` is run, a page after the other, as printed."""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
from pathlib import Path

import pytest

from ibprof_testing import processes
from ibprof_testing.mpi.mpis import LAUNCH_ANYHOW

ROOT = Path(__file__).resolve().parents[2]
RUN_BLOCK = re.compile(r"^```sh run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if RUN_BLOCK.search(page.read_text()))


SMALL = {"RANKS": "8", "CLIENTS": "40", "SECONDS_A_SEARCH": "1"}
"""Case studies in a small form; as printed they take what the pages show."""


def test_there_are_pages_to_run() -> None:
    printed = {"record.md", "read-a-report.md", "place-ranks.md", "effective-bandwidth.md", "slow-lines.md"}
    assert {*printed, "compare-runs.md", "samplesort.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_run_as_printed(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    script = "".join(RUN_BLOCK.findall(page.read_text()))
    path = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]
    done = processes.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **LAUNCH_ANYHOW, **SMALL, "PATH": path},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
