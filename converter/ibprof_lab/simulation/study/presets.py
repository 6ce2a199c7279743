# SPDX-License-Identifier: Apache-2.0
"""Names and summaries of the included studies for help texts, read without a YAML parser."""

from __future__ import annotations

from pathlib import Path

PRESET_FOLDER = Path(__file__).with_name("presets")

PRESETS = {
    path.stem: line.removeprefix("summary: ")
    for path in sorted(PRESET_FOLDER.glob("*.yaml"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.startswith("summary: ")
}
"""Name of an included study for `ibprof-sim study` -> summary."""
