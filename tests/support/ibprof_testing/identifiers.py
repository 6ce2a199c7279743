# SPDX-License-Identifier: Apache-2.0
"""Read the names of files, functions, classes, parameters and variables from source files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SUFFIXES = (".py", ".c", ".cpp", ".h", ".ts")

_C_COMMENT_OR_STRING = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_TS_COMMENT_OR_STRING = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`", re.DOTALL
)
_C_NAME = re.compile(r"[A-Za-z_]\w*")
_NEW_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+")


def read_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line (from 1) and text of each name in a source file; the file's name has line 0."""
    yield 0, path.stem
    if path.suffix == ".py":
        yield from _python(path.read_text())
    else:
        yield from _c(path.read_text(), _TS_COMMENT_OR_STRING if path.suffix == ".ts" else _C_COMMENT_OR_STRING)


def split_name(name: str) -> str:
    """Return the words of a name: "find links" for `findLinks`, `find_links` and `FIND_LINKS`."""
    return " ".join(_NEW_WORD.split(name)).strip().lower()


def _python(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr


def _c(text: str, comment_or_string: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield all names, because a line of C or TypeScript does not show whether it declares or uses a name."""
    code = comment_or_string.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in _C_NAME.finditer(code):
        yield code.count("\n", 0, match.start()) + 1, match[0]
