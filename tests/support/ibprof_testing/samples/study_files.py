# SPDX-License-Identifier: Apache-2.0
"""A study of a few hosts as a file, with changes."""

from __future__ import annotations

from pathlib import Path

import yaml

from ibprof_lab.simulation.study.study_file import EXAMPLE

_SMALL = yaml.safe_load(EXAMPLE) | {"fabric": "xgft:2:4,8:1,4@100", "servers": 8, "seeds": 1}


def write_study(folder: Path, **changes: object) -> Path:
    """Write the study of the help, on 32 hosts and with other values of keys; return its path."""
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump({**_SMALL, **changes}))
    return path
