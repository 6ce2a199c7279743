# SPDX-License-Identifier: Apache-2.0
"""Hold names unique: public classes and modules of `ibprof` and `converter` are each called what no other is.

A reader who meets `Plan` or `routes.py` must not need an import line to know which one is meant.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOUSES = ("ibprof", "converter/ibprof_converter")

SHARED_MODULES = {"__init__", "__main__"}
"""Names that Python gives."""

NOT_YET: dict[str, set[str]] = {
    "modules": set(),
    "classes": set(),
}
"""Names that still stand several times. This list only shrinks."""


def collect_names() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the paths of each module name and of each public class name.

    The modules of `cli` are left out: they are called like the commands that they are of.
    """
    modules: dict[str, list[str]] = defaultdict(list)
    classes: dict[str, list[str]] = defaultdict(list)
    for house in HOUSES:
        for path in sorted((ROOT / house).rglob("*.py")):
            shown = path.relative_to(ROOT).as_posix()
            if path.stem not in SHARED_MODULES and path.parent.name != "cli":
                modules[path.stem].append(shown)
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    classes[node.name].append(shown)
    return modules, classes


def check(kind: str, names: Mapping[str, list[str]]) -> list[str]:
    """Return a line for each name that stands several times, or that is listed and does not."""
    repeated = {name: paths for name, paths in names.items() if len(paths) > 1}
    lines = [f"{kind}: {name}: {', '.join(repeated[name])}" for name in sorted(repeated.keys() - NOT_YET[kind])]
    gone = sorted(NOT_YET[kind] - repeated.keys())
    return lines + [f"{kind}: {name} is unique: take it off the list in {Path(__file__).name}" for name in gone]


def main() -> int:
    """Check, and print what is wrong."""
    modules, classes = collect_names()
    problems = check("modules", modules) + check("classes", classes)
    for line in problems:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
