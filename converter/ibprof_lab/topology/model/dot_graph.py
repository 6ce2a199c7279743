# SPDX-License-Identifier: Apache-2.0
"""Reader of graphs in DOT, Graphviz's language: vertices and edges with their attributes.

The reader ignores ports of vertices, and returns HTML labels as text. Source: https://graphviz.org/doc/info/lang.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product
from os import PathLike
from typing import NamedTuple

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.dump_files import read_dump

_DEEPEST = 100
_MOST_EDGES = 10_000_000

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/|(?:(?<=\n)|\A)\#[^\n]*)
      | (?P<edge>->|--)
      | (?P<name>[A-Za-z_\u0080-\U0010ffff][\w\u0080-\U0010ffff]*|-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?))
      | "(?P<text>(?:[^"\\]|\\.)*)"
      | (?P<mark>[{}\[\];,=:+<])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r'\\(\n|["\\])')
_KEYWORDS = frozenset(("strict", "graph", "digraph", "node", "edge", "subgraph"))


class _Token(NamedTuple):
    """A token of a DOT file; `kind` is edge, name, mark, keyword or end."""

    kind: str
    text: str
    line: int


Attributes = dict[str, str]


@dataclass(slots=True)
class DotGraph:
    """The graph of a DOT file.

    Attributes:
        directed: True for a digraph.
        vertices: ID of a vertex -> its attributes, in file order.
        edges: two IDs and the attributes of each edge.
    """

    directed: bool = False
    vertices: dict[str, Attributes] = field(default_factory=dict)
    edges: list[tuple[str, str, Attributes]] = field(default_factory=list)


def read_dot(path: str | PathLike[str]) -> DotGraph:
    """Read the first graph of a file.

    Raises:
        InputError: the file is not DOT.
    """
    return _Parser(path, read_dump(path).decode("utf-8", "backslashreplace")).parse()


def _split(path: str | PathLike[str], text: str) -> Iterator[_Token]:
    place, line = 0, 1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise InputError(path, line, "DOT", quote_found(text[place : place + 20]))
        kind, end = str(match.lastgroup), match.end()
        found = match[kind]
        if found == "<":
            end = _end_of_html(path, text, place, line)
            kind, found = "name", text[place:end]
        if kind == "text":
            # `\"` is the only escape in DOT strings. Graphviz interprets other escapes, such as \n, only in labels.
            kind, found = "name", _ESCAPED.sub(lambda escaped: escaped[1].strip("\n"), found)
        elif kind == "name" and found.lower() in _KEYWORDS:
            kind, found = "keyword", found.lower()
        if kind != "blank":
            yield _Token(kind, found, line)
        line += text.count("\n", place, end)
        place = end
    yield _Token("end", "the end of the file", line)


def _end_of_html(path: str | PathLike[str], text: str, place: int, line: int) -> int:
    depth = 0
    for match in re.compile("[<>]").finditer(text, place):
        depth += 1 if match[0] == "<" else -1
        if not depth:
            return match.end()
    raise InputError(path, line, "an end of <", "the end of the file")


class _Parser:
    """Parser of one graph."""

    def __init__(self, path: str | PathLike[str], text: str) -> None:
        self._path = path
        self._tokens = _split(path, text)
        self._next = next(self._tokens)
        self._depth = 0
        self.graph = DotGraph()

    def parse(self) -> DotGraph:
        if is_strict := self._next.text == "strict":
            self._take()
        if self._next.kind != "keyword" or self._next.text not in ("graph", "digraph"):
            self._refuse("graph or digraph")
        self.graph.directed = self._take().text == "digraph"
        if self._next.kind == "name":
            self._take()
        self._statements({}, {}, set())
        if is_strict:
            self._merge_edges()
        return self.graph

    def _merge_edges(self) -> None:
        """Merge edges between the same vertices into one edge with all their attributes."""
        merged: dict[tuple[str, str], Attributes] = {}
        for a, b, attributes in self.graph.edges:
            pair = (b, a) if (b, a) in merged and not self.graph.directed else (a, b)
            merged[pair] = merged.get(pair, {}) | attributes
        self.graph.edges = [(*pair, attributes) for pair, attributes in merged.items()]

    def _take(self) -> _Token:
        token = self._next
        if token.kind != "end":
            self._next = next(self._tokens)
        return token

    def _refuse(self, expected: str) -> None:
        raise InputError(self._path, self._next.line, expected, quote_found(self._next.text))

    def _is_mark(self, text: str) -> bool:
        return self._next.kind == "mark" and self._next.text == text

    def _expect(self, text: str) -> None:
        if not self._is_mark(text):
            self._refuse(text)
        self._take()

    def _statements(self, node: Attributes, edge: Attributes, inside: set[str]) -> None:
        """Read { ... }; defaults apply from their line to the end of the braces."""
        self._expect("{")
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse(f"braces nested at most {_DEEPEST} deep")
        node, edge = dict(node), dict(edge)
        while not self._is_mark("}"):
            if self._next.kind == "keyword" and self._next.text in ("graph", "node", "edge"):
                defaults = {"node": node, "edge": edge}.get(self._take().text, {})
                defaults.update(self._attributes())
            else:
                self._vertices_or_edges(node, edge, inside)
            while self._is_mark(";"):
                self._take()
        self._take()
        self._depth -= 1

    def _vertices_or_edges(self, node: Attributes, edge: Attributes, inside: set[str]) -> None:
        single = self._next.kind == "name"
        ends = [self._end(node, edge, inside)]
        if single and self._is_mark("="):  # NAME = VALUE, an attribute of the graph
            self._take()
            self._name()
            return
        while self._next.kind == "edge":
            self._take()
            ends.append(self._end(node, edge, inside))
        attributes = self._attributes()
        for name in (name for end in ends for name in end if name not in self.graph.vertices):
            self.graph.vertices[name] = dict(node)
        inside.update(*ends)
        if len(ends) == 1:
            for name in ends[0] if single else ():
                self.graph.vertices[name].update(attributes)
            return
        if len(self.graph.edges) + sum(len(a) * len(b) for a, b in pairwise(ends)) > _MOST_EDGES:
            self._refuse(f"at most {_MOST_EDGES} edges")
        combined = {**edge, **attributes}
        for a, b in ((a, b) for one, other in pairwise(ends) for a, b in product(one, other)):
            self.graph.edges.append((a, b, combined))

    def _end(self, node: Attributes, edge: Attributes, inside: set[str]) -> list[str]:
        """Read one end of an edge: a vertex, or all vertices of a subgraph."""
        if self._next.kind == "keyword" and self._next.text == "subgraph":
            self._take()
            if self._next.kind == "name":
                self._take()
        elif self._next.kind == "name":
            name = self._name()
            while self._is_mark(":"):
                self._take()
                self._name()
            return [name]
        if not self._is_mark("{"):
            self._refuse("a vertex, an edge or }")
        within: set[str] = set()
        self._statements(node, edge, within)
        inside |= within
        return [name for name in self.graph.vertices if name in within]

    def _name(self) -> str:
        if self._next.kind != "name":
            self._refuse("a name")
        text = self._take().text
        while self._is_mark("+"):
            self._take()
            text += self._take().text
        return text

    def _attributes(self) -> Attributes:
        found: Attributes = {}
        while self._is_mark("["):
            self._take()
            while not self._is_mark("]"):
                name = self._name()
                found[name] = "true"
                if self._is_mark("="):
                    self._take()
                    found[name] = self._name()
                while self._is_mark(",") or self._is_mark(";"):
                    self._take()
            self._take()
        return found
