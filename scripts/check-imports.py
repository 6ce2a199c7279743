# SPDX-License-Identifier: Apache-2.0
"""Check imports: none is part of a cycle, functions included; an import inside a function says why it is late."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import networkx as nx

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"ibprof": ROOT, "ibprof_converter": ROOT / "converter"}
LATE = re.compile(r"^\s+(from|import) .*# noqa: PLC0415(?P<reason>\s+\(.+\))?$")


def find_cycles() -> Iterator[list[str]]:
    """Yield the modules of each strongly connected component; grimp sees imports inside functions too."""
    sys.path[:0] = map(str, PACKAGES.values())
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = nx.DiGraph(
        (module, imported) for module in graph.modules for imported in graph.find_modules_directly_imported_by(module)
    )
    yield from (sorted(modules) for modules in nx.strongly_connected_components(imports) if len(modules) > 1)


def find_unexplained() -> Iterator[str]:
    """Yield the place of each late import without a reason: in parentheses, or as a comment above the block."""
    for package, folder in PACKAGES.items():
        for path in sorted((folder / package).rglob("*.py")):
            explained = False
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                late = LATE.match(line)
                is_comment = line.lstrip().startswith("#")
                explained = is_comment or (late is not None and (explained or late["reason"] is not None))
                if late and not explained:
                    yield f"{path.relative_to(ROOT)}:{number}"


def main() -> int:
    """Check, and print what is wrong."""
    problems = [f"imports in a cycle: {', '.join(modules)}" for modules in find_cycles()]
    problems += [f"{place}: say why this import is late: # noqa: PLC0415  (...)" for place in find_unexplained()]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
