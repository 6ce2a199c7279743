#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print source files without a licence in the first lines. Exit status 1: there are such files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPDX = b"SPDX-License-Identifier: Apache-2.0"
FIRST_BYTES = 200
SOURCE_SUFFIXES = frozenset(
    (
        *(".py", ".pyi", ".c", ".cpp", ".h", ".def", ".map", ".f", ".f90", ".cmake"),
        *(".sh", ".toml", ".txt", ".yaml", ".yml", ".js", ".mjs", ".ts", ".css", ".html"),
    )
)
SOURCE_NAMES = frozenset(("Makefile", "run", ".clang-format", ".gitignore"))
# Files of tools, without a licence line: captured fabrics, expected outputs, other projects' packages.
WRITTEN_BY_TOOLS = (
    "tests/data/cases/",
    "tests/data/fabrics/",
    "tests/data/golden/",
    "converter/ibprof_converter/data/demo-fabric/",
    "build/",
    "dist/",
    "ibprof-demo/",
    "viewer/node_modules/",
)


def source_files() -> Iterator[Path]:
    tops = (path for path in sorted(ROOT.iterdir()) if path.name == ".ci" or path.is_file() or path.name[0] != ".")
    for top in tops:
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and not name.startswith(WRITTEN_BY_TOOLS) and is_source(path):
                yield path


def is_source(path: Path) -> bool:
    """Return whether a file is a source, by name or by `#!` in the first line."""
    if path.suffix in SOURCE_SUFFIXES or path.name in SOURCE_NAMES:
        return True
    with path.open("rb") as file:
        return not path.suffix and file.read(2) == b"#!"


def main() -> int:
    silent = [path for path in source_files() if SPDX not in path.read_bytes()[:FIRST_BYTES]]
    for path in silent:
        print(f"{path.relative_to(ROOT)}: expected '{SPDX.decode()}' in its first lines")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
