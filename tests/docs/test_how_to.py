# SPDX-License-Identifier: Apache-2.0
"""Each block marked ```sh run``` in the how-tos is run as printed, page by page, and has the printed result.

Blocks marked ```sh run full``` take long. Other blocks and tests run smaller forms of these commands.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from ibprof_testing import processes
from ibprof_testing.mpi.mpis import LAUNCH_ANYHOW

ROOT = Path(__file__).resolve().parents[2]
RUN_BLOCK = re.compile(r"^```sh run( full)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if RUN_BLOCK.search(page.read_text()))


SMALL = {"RANKS": "8", "CLIENTS": "40", "SECONDS_A_SEARCH": "1"}
"""Variables for a short run of the case studies. With the values on the pages, runs take as long as the pages state."""

SMALLER = {
    "xgft:2:8,8:1,8@100": "xgft:2:4,4:1,4@100",
    "--servers 8": "--servers 4",
    "servers: 8\n": "servers: 4\n",
    " --quick\n": " --quick --seeds 1\n",
}
"""Words that `make test` replaces on the page of simulations, so that simulations have fewer hosts and end sooner."""


def test_there_are_pages_to_run() -> None:
    printed = {"record.md", "read-a-report.md", "place-ranks.md", "effective-bandwidth.md", "slow-lines.md"}
    assert {*printed, "compare-runs.md", "samplesort.md"} <= {page.name for page in PAGES}
    text = next(page for page in PAGES if page.stem == "simulate").read_text()
    assert [words for words in SMALLER if words not in text] == []


DEMO = "ibprof demo demo\n"


def run_script(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]
    return processes.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, **LAUNCH_ANYHOW, **SMALL, "PATH": path},
        timeout=300,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_run_as_printed(page: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Pages that begin with the demo get copies of the files of a single demo."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    small = request.config.option.markexpr == "not full"
    script = "".join(block for full, block in RUN_BLOCK.findall(page.read_text()) if not (full and small))
    if small and page.stem == "simulate":
        script = functools.reduce(lambda text, words: text.replace(*words), SMALLER.items(), script)
    if DEMO in script:
        shutil.copytree(request.getfixturevalue("shared_demo")[0], tmp_path / "demo")
    done = run_script(script.replace(DEMO, ""), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
