# SPDX-License-Identifier: Apache-2.0
"""Write study files with few hosts."""

from __future__ import annotations

from pathlib import Path

import yaml

from ibprof_lab.lab_choices import STUDY_EXAMPLE

_SMALL = yaml.safe_load(STUDY_EXAMPLE) | {"fabric": "xgft:2:4,8:1,4@100", "servers": 8, "seeds": 1}


def write_study(folder: Path, **changes: object) -> Path:
    """Write the example study of the help with 32 hosts and changed keys; return the file's path."""
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump({**_SMALL, **changes}))
    return path
