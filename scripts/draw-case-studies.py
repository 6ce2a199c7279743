#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Redraw the pictures of docs/case-studies: run each page's commands, and keep the page's pictures.

    scripts/draw-case-studies.py [PAGE...]

Requires an installed ibprof, mpicc and mpirun.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
RUN_BLOCK = re.compile(r"^```sh run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"\(\.\./images/(case-[a-z-]+\.png)\)")
WIDTH = 1500
"""Width of the pictures in pixels. They have 256 colours."""


def draw(page: Path) -> None:
    text = page.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        script = "".join(RUN_BLOCK.findall(text))
        subprocess.run(["bash", "-eux", "-o", "pipefail", "-c", script], cwd=folder, check=True, env=os.environ)
        for name in PICTURE.findall(text):
            with Image.open(Path(folder) / name) as drawn:
                small = drawn.convert("RGB").resize(
                    (WIDTH, drawn.height * WIDTH // drawn.width), Image.Resampling.LANCZOS
                )
                small.quantize(256).save(ROOT / "docs" / "images" / name, optimize=True)


def main() -> None:
    pages = [Path(name) for name in sys.argv[1:]] or sorted((ROOT / "docs" / "case-studies").glob("*.md"))
    for page in pages:
        draw(page)


if __name__ == "__main__":
    main()
