# SPDX-License-Identifier: Apache-2.0
"""Check that imports form no cycle, and that a comment explains each import inside a function."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import networkx as nx

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"ibprof": ROOT, "ibprof_converter": ROOT / "converter", "ibprof_lab": ROOT / "converter"}
REASON = re.compile(r"# noqa: .*PLC0415\s+\(.+\)$")


def find_cycles() -> Iterator[list[str]]:
    """Yield the modules of each cycle (strongly connected component). Imports inside functions count too."""
    sys.path[:0] = map(str, PACKAGES.values())
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = nx.DiGraph(
        (module, imported) for module in graph.modules for imported in graph.find_modules_directly_imported_by(module)
    )
    yield from (sorted(modules) for modules in nx.strongly_connected_components(imports) if len(modules) > 1)


def find_unexplained() -> Iterator[str]:
    """Yield the place of each import inside a function, unless a comment after or above the import explains it."""
    for package, folder in PACKAGES.items():
        for path in sorted((folder / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            lines = text.splitlines()
            explained: set[int] = {number for number, line in enumerate(lines, 1) if line.lstrip().startswith("#")}
            for late in sorted(find_late(ast.parse(text)), key=lambda each: each.lineno):
                if late.lineno - 1 in explained or REASON.search(lines[late.lineno - 1]):
                    explained.add(late.end_lineno or late.lineno)
                else:
                    yield f"{path.relative_to(ROOT)}:{late.lineno}"


def find_late(tree: ast.Module) -> set[ast.Import | ast.ImportFrom]:
    """Return the imports inside functions."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node for each in functions for node in ast.walk(each) if isinstance(node, ast.Import | ast.ImportFrom)}


def main() -> int:
    """Print each fault; return 1 if there is one."""
    problems = [f"imports in a cycle: {', '.join(modules)}" for modules in find_cycles()]
    problems += [f"{place}: say why this import is late: # noqa: PLC0415  (...)" for place in find_unexplained()]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
