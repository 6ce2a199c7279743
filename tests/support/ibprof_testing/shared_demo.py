# SPDX-License-Identifier: Apache-2.0
"""Plugin of pytest: run `ibprof demo` once, for all tests that read its files."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ibprof_testing import processes


def run_demo(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the demo like a user, with additional environment variables."""
    return processes.run([sys.executable, "-m", "ibprof", "demo", folder], env={**os.environ, **env}, timeout=240)


@pytest.fixture(scope="session")
def shared_demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder and the output of the demo. Only one worker of pytest-xdist runs the demo."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared-demo"
    folder.mkdir(exist_ok=True)
    printed = folder / "printed"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not printed.exists():
            done = run_demo(folder / "demo")
            assert done.returncode == 0, done.stdout + done.stderr
            assert "exchange.py" not in done.stderr, "there was no compiler"
            printed.write_text(done.stdout)
    return folder / "demo", printed.read_text()
