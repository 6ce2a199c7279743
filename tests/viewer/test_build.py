# SPDX-License-Identifier: Apache-2.0
"""The installed page's program equals the program built from the sources."""

from __future__ import annotations

import json
import subprocess
from importlib.resources import files
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "viewer"


def test_what_is_installed_is_what_the_sources_build(tmp_path: Path) -> None:
    built = tmp_path / "app.js"
    subprocess.run(["node", "build.mjs", str(built)], cwd=SOURCES, check=True)
    assert (files("ibprof_converter.viewer") / "app.js").read_bytes() == built.read_bytes(), "run `make viewer`"


def test_packages_come_from_the_registry_that_npm_is_set_to() -> None:
    lock = json.loads((SOURCES / "package-lock.json").read_text())
    packages = [package for name, package in lock["packages"].items() if name]
    assert packages
    assert all("integrity" in package and "resolved" not in package for package in packages)
