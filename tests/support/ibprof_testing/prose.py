# SPDX-License-Identifier: Apache-2.0
"""Read the English of source files and pages: docstrings, comments, string literals for users, and Markdown."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCSTRING, COMMENT, STRING, HELP, PAGE = "docstring", "comment", "string", "help", "page"

SUFFIXES = (".py", ".c", ".h", ".def", ".ts", ".mjs", ".sh", ".yaml", ".txt")

_HELP_ARGUMENTS = {"help", "description", "epilog"}
"""Arguments of argparse with texts that users read. These texts are checked even if they are short."""

_SUMMARY = re.compile(r"^summary: (.*)", re.MULTILINE)
"""The summary line of a study file, which the help of `ibprof-sim study` shows."""

_MARKUP = re.compile(r"SPDX|^!|noqa|type: ignore|fmt: |pragma|clang-format|@ts-|biome-|-\*-")
"""Comments that tools read, not people."""

_C_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)""",
    re.DOTALL,
)
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}|%[\w.*]+")
_NEW_SENTENCE = re.compile(r"(?<=[.!?])[)\"']*\s+(?=[A-Z0-9`\"'(<*]|ibprof|mpirun)")
_NEW_ITEM = re.compile(
    r"\s*([*+-]|\d+\.)\s|\s*[\w*`., ()\[\]-]{1,60}:(\s|$)|\s+\S.{0,60}?\s{2,}\S|\s+(ibprof|mpirun)\S* |\s*$"
)
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
_GENERATED = re.compile(r"<!-- table: .*?<!-- end -->", re.DOTALL)
"""A table of figures that a program writes."""
_HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE_SPAN = re.compile(r"`[^`]+`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_WORD = re.compile(r"`[^`]*`|[^\s]*\w[^\s]*")


@dataclass(frozen=True, slots=True)
class Passage:
    """A docstring, a block of comments, a string literal, or a paragraph or table cell of a page.

    Attributes:
        kind: `DOCSTRING`, `COMMENT`, `STRING`, `HELP` or `PAGE`.
        line: number of the text's first line, from 1.
        text: the text without comment signs.
    """

    kind: str
    line: int
    text: str


def read_passages(path: Path) -> Iterator[Passage]:
    """Read the passages of a source file in the language that the file's suffix names."""
    text = path.read_text()
    if path.suffix == ".py":
        yield from _python(text)
    elif path.suffix == ".md":
        yield from read_markdown(text)
    elif path.suffix in (".sh", ".yaml", ".txt"):
        yield from _hash_comments(text)
        yield from (Passage(HELP, text.count("\n", 0, each.start()) + 1, each[1]) for each in _SUMMARY.finditer(text))
    else:
        yield from _c_like(text)


def read_markdown(text: str) -> Iterator[Passage]:
    """Read the paragraphs, list items, headings and table cells of a page. Code and quotations are left out."""
    for pattern in (_FENCED, _GENERATED, _HTML_COMMENT, _CODE_SPAN):
        text = pattern.sub(_keep_lines, text)
    text = _LINK.sub(r"\1", text)
    block: list[str] = []
    begin, is_code, was_empty = 1, False, True
    for number, line in enumerate([*text.split("\n"), ""], 1):
        is_code = bool(line.strip()) and line.startswith("    ") and (is_code or was_empty)
        was_empty = not line.strip()
        if was_empty or is_code or line.startswith(("|", "#", ">")):
            if block:
                yield Passage(PAGE, begin, "\n".join(block))
            block = []
        if line.startswith(("|", "#")):
            for cell in re.split(r"(?<!\\)\|", line.lstrip("#")):
                yield Passage(PAGE, number, cell.strip())
        elif not (was_empty or is_code or line.startswith(">")):
            begin = begin if block else number
            block.append(line)


def _keep_lines(match: re.Match[str]) -> str:
    """Replace code by a placeholder with the same number of lines. Later lines keep their numbers."""
    return "`x`" * match[0].startswith("`") * (not match[0].startswith("```")) + "\n" * match[0].count("\n")


def sentences(passage: Passage) -> Iterator[str]:
    """Split a passage into sentences. List items, table rows, commands and `name: meaning` entries start a sentence."""
    for item in _items(passage.text):
        for sentence in _NEW_SENTENCE.split(item):
            if stripped := sentence.strip():
                yield stripped


def count_words(sentence: str) -> int:
    """Count the words of a sentence; code in backticks counts as one word."""
    return len(_WORD.findall(sentence))


def _items(text: str) -> Iterator[str]:
    """Yield each list item, entry (`name: meaning`) and paragraph as one line."""
    item: list[str] = []
    for line in text.split("\n"):
        if _NEW_ITEM.match(line):
            yield " ".join(item)
            item = []
        item.append(line.strip())
    yield " ".join(item)


def _python(text: str) -> Iterator[Passage]:
    yield from _python_comments(text)
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if isinstance(node, documented) else []:
            # A string constant that is a statement is the docstring of the statement before.
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docstrings.add(id(value))
                yield Passage(DOCSTRING, value.lineno, _clean(value.value))
    yield from _python_strings(tree, docstrings)


def _python_strings(tree: ast.AST, left_out: set[int]) -> Iterator[Passage]:
    parts: set[int] = set()
    helps: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in _HELP_ARGUMENTS:
            helps.update(map(id, ast.walk(node.value)))
        kind = HELP if id(node) in helps else STRING
        if isinstance(node, ast.JoinedStr):
            parts.update(id(part) for part in node.values)
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
            yield Passage(kind, node.lineno, text)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out | parts:
            yield Passage(kind, node.lineno, node.value)


def _python_comments(text: str) -> Iterator[Passage]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = (token for token in tokens if token.type == tokenize.COMMENT)
    yield from _blocks(
        (token.start[0], bool(token.line[: token.start[1]].strip()), token.string.lstrip("#")) for token in comments
    )


def _hash_comments(text: str) -> Iterator[Passage]:
    found = ((number, re.match(r"(.*?)(?:^|\s)#(.*)", line)) for number, line in enumerate(text.split("\n"), 1))
    yield from _blocks((number, bool(match[1].strip()), match[2]) for number, match in found if match)


def _c_like(text: str) -> Iterator[Passage]:
    slashes: list[tuple[int, bool, str]] = []
    for match in _C_TOKEN.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        if match["string"]:
            yield Passage(
                STRING, line, re.sub(r"\$\{[^}]*\}|%[\w.*]+", "X", match["string"][1:-1]).replace("\\n", "\n")
            )
        elif match["comment"].startswith("//"):
            slashes.append((line, bool(before), match["comment"].lstrip("/")))
        else:
            inner = re.sub(r"^[ \t]*\*", "", match["comment"][2:-2].lstrip("*"), flags=re.MULTILINE)
            # Comments for tools become empty lines, so that later lines keep their numbers.
            lines = ["" if _MARKUP.search(each.strip()) else each for each in inner.split("\n")]
            yield Passage(COMMENT, line, _clean("\n".join(lines)))
    yield from _blocks(iter(slashes))


def _blocks(lines: Iterator[tuple[int, bool, str]]) -> Iterator[Passage]:
    """Join comments on consecutive lines to passages. A comment after code is a separate passage."""
    block: list[str] = []
    begin = last = 0
    for number, after_code, text in lines:
        if block and (after_code or number != last + 1):
            yield Passage(COMMENT, begin, _clean("\n".join(["", *block])).removeprefix("\n"))
            block = []
        if _MARKUP.search(text.strip()):
            continue
        if not block:
            begin = number
        block.append(text.removeprefix(" "))
        last = 0 if after_code else number
    if block:
        yield Passage(COMMENT, begin, _clean("\n".join(["", *block])).removeprefix("\n"))


def _clean(text: str) -> str:
    """Remove the indentation, and replace code (after an empty line, four more spaces) by empty lines."""
    first, _, rest = text.partition("\n")
    lines = rest.split("\n")
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    cleaned = [first.strip()]
    is_code = False
    for line in (line[indent:] for line in lines):
        if line.strip():
            is_code = line.startswith("    ") and (is_code or not cleaned[-1])
        cleaned.append("" if is_code else line)
    return "\n".join(cleaned)
