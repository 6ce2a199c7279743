# SPDX-License-Identifier: Apache-2.0
"""Check that no two public classes or modules of `ibprof` and `converter` have the same name."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOUSES = ("ibprof", "converter/ibprof_converter", "converter/ibprof_lab")

SHARED_MODULES = {"__init__", "__main__"}
"""Names of modules that Python prescribes."""

NOT_YET: dict[str, set[str]] = {
    "modules": set(),
    "classes": set(),
}
"""Exceptions: names that are not unique yet. Do not add names."""


def collect_names() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the paths of each module name and of each public class name.

    The modules of `cli` are left out, because each has the name of its command.
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
    """Return a line for each name that is not unique, and for each name in `NOT_YET` that is unique now."""
    repeated = {name: paths for name, paths in names.items() if len(paths) > 1}
    lines = [f"{kind}: {name}: {', '.join(repeated[name])}" for name in sorted(repeated.keys() - NOT_YET[kind])]
    gone = sorted(NOT_YET[kind] - repeated.keys())
    return lines + [f"{kind}: {name} is unique now: remove it from NOT_YET in {Path(__file__).name}" for name in gone]


def main() -> int:
    """Print each fault; return 1 if there is one."""
    modules, classes = collect_names()
    problems = check("modules", modules) + check("classes", classes)
    for line in problems:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
