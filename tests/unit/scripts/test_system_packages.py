# SPDX-License-Identifier: Apache-2.0
"""`make test` names all missing packages to a user who may not install them."""

from __future__ import annotations

import os
from pathlib import Path

from ibprof_testing import processes
from ibprof_testing.machine import find_program
from ibprof_testing.paths import ROOT


def test_all_missing_packages_are_named_at_once(tmp_path: Path) -> None:
    """The machine has almost no programs, and the user is not root."""
    for name in ("sh", "grep", "find"):
        (tmp_path / name).symlink_to(find_program(name, package=name))
    user = tmp_path / "id"
    user.write_text("#!/bin/sh\necho 1000\n")
    user.chmod(0o755)
    make = find_program("make", package="make")
    ran = processes.run([make, "test-setup"], cwd=ROOT, env={"PATH": str(tmp_path), "HOME": os.environ["HOME"]})
    assert ran.returncode == 2
    (line,) = (line for line in ran.stderr.splitlines() if line.startswith("Install them first:"))
    named = line.split("install ")[1].split()
    assert {"gcc", "python3-venv", "nodejs", "openmpi-bin", "gfortran"} <= set(named)
    assert len(named) == len(set(named))
