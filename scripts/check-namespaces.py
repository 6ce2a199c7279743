# SPDX-License-Identifier: Apache-2.0
"""Check that only the `cli` packages import argparse, and that few functions there take a Namespace.

A function that takes an `argparse.Namespace` is called `*_options`, `build_*` or `parse_*`: it turns parsed arguments
into the options of a command. All others take options, so that notebooks and tests can call them too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ibprof", "converter/ibprof_converter")
TAKES_NAMESPACE = re.compile(r"_?(build\w*|\w+_options|parse_\w+)")

NAMESPACE = {"Namespace", "argparse.Namespace"}


def check_file(path: Path) -> Iterator[str]:
    """Yield a line for each import of argparse outside of `cli`, and for each wrong user of a Namespace."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and path.parent.name != "cli":
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            if "argparse" in names:
                yield f"{node.lineno}: argparse is imported outside of cli"
        if isinstance(node, ast.FunctionDef) and not TAKES_NAMESPACE.fullmatch(node.name):
            parameters = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            if any(each.annotation and ast.unparse(each.annotation) in NAMESPACE for each in parameters):
                yield f"{node.lineno}: {node.name} takes a Namespace: name it *_options, or pass it options"


def main() -> int:
    """Check, and print what is wrong."""
    problems = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            problems += [f"{path.relative_to(ROOT).as_posix()}:{line}" for line in check_file(path)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
