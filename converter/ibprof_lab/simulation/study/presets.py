# SPDX-License-Identifier: Apache-2.0
"""The names of the studies that are shipped, as help lists them, without a YAML parser."""

from __future__ import annotations

from pathlib import Path

PRESET_FOLDER = Path(__file__).with_name("presets")

PRESETS = {
    path.stem: line.removeprefix("summary: ")
    for path in sorted(PRESET_FOLDER.glob("*.yaml"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.startswith("summary: ")
}
"""Names that `ibprof-sim study` takes, and the summary of each."""
