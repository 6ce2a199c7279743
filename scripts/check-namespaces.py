# SPDX-License-Identifier: Apache-2.0
"""Check that only the `cli` packages import argparse, and that few of their functions have a Namespace as argument.

Functions that take an `argparse.Namespace` turn parsed arguments into options of a command. Their names are
`*_options`, `build_*` or `parse_*`. Other functions take options, so that notebooks and tests can call them. No
class has a Namespace as attribute.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ibprof", "converter/ibprof_converter", "converter/ibprof_lab")
TAKES_NAMESPACE = re.compile(r"_?(build\w*|\w+_options|parse_\w+)")
NAMESPACE = re.compile(r"\bNamespace\b")


def check_file(path: Path, cli: Path) -> Iterator[str]:
    """Yield a line for each import of argparse outside of `cli`, and for each use of a Namespace against the rules."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and path.parent != cli and imports_argparse(node):
            yield f"{node.lineno}: argparse is imported outside of cli"
        if isinstance(node, ast.ImportFrom) and any(each.name == "Namespace" and each.asname for each in node.names):
            yield f"{node.lineno}: Namespace is imported by another name"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not TAKES_NAMESPACE.fullmatch(node.name):
            every = (node.args.vararg, node.args.kwarg, *node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            if any(each and is_namespace(each.annotation) for each in every):
                yield f"{node.lineno}: {node.name} takes a Namespace: name the function *_options, or pass options"
        if isinstance(node, ast.ClassDef):
            fields = (each for each in node.body if isinstance(each, ast.AnnAssign))
            yield from (
                f"{each.lineno}: {node.name} holds a Namespace" for each in fields if is_namespace(each.annotation)
            )


def imports_argparse(node: ast.Import | ast.ImportFrom) -> bool:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
    return "argparse" in names


def is_namespace(annotation: ast.expr | None) -> bool:
    """Return whether a type contains Namespace, such as `argparse.Namespace | None`."""
    return annotation is not None and NAMESPACE.search(ast.unparse(annotation)) is not None


def main() -> int:
    """Print each fault; return 1 if there is one."""
    problems = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            found = check_file(path, ROOT / package / "cli")
            problems += [f"{path.relative_to(ROOT).as_posix()}:{line}" for line in found]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
