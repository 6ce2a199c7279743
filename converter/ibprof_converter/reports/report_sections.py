# SPDX-License-Identifier: Apache-2.0
"""Sections of a report as data. The text and the page of a report have the same sections.

Each number has its path in the report's JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from ibprof.text.quantities import format_bytes, format_change, format_seconds, printable

Value = int | float | str | tuple[str, ...] | None
"""A number, a line of text, or several lines."""


class ValueKind(Enum):
    """The form in which a value is written."""

    TEXT = "text"
    WRITTEN = "written"
    """A number that is already formatted, since its column has numbers of several kinds."""
    BYTES = "bytes"
    EXACT = "exact"
    """Bytes to the last digit."""
    COUNT = "count"
    SHARE = "share"
    SECONDS = "seconds"
    RATIO = "ratio"
    CHANGE = "change"
    """Signed, relative: 0.1 is +10%."""
    BYTES_CHANGE = "bytes-change"
    """Signed bytes."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        key: path in a row of the JSON, with dots between the steps; empty for text made from several values.
        label: the column's head.
        kind: form of the column's values.
    """

    key: str
    label: str
    kind: ValueKind = ValueKind.TEXT


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        key: path of the list of rows in the JSON.
        columns: from left to right.
        rows: values, one per column.
        caption: the table's subject; empty if the section names it.
        left_out: number of rows that only the JSON has.
    """

    key: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    caption: str = ""
    left_out: int = 0

    def path(self, row: int, column: Column) -> str:
        """Return the path of a cell in the JSON; empty if there is none."""
        return f"{self.key}.{row}.{column.key}" if column.key else ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A single value with its name.

    Attributes:
        key: path in the JSON; empty for text made from several values.
        value, kind: value and its form, as in a table.
    """

    key: str
    label: str
    value: Value
    kind: ValueKind = ValueKind.TEXT


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report.

    Attributes:
        name: word that links to the section.
        facts: single values.
        sentences: sentences, each with a label, which may be empty.
        tables: tables, shown after the sentences.
        commands: commands to copy whole, each with remarks.
    """

    name: str
    title: str
    facts: tuple[Fact, ...] = ()
    sentences: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    commands: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def is_empty(self) -> bool:
        """Return true if the section has no content."""
        return not (self.facts or self.sentences or any(table.rows for table in self.tables) or self.commands)


MOST_ROWS = 100
"""Largest number of a table's rows in text and page; the JSON has all rows."""


def tabulate(key: str, columns: tuple[Column, ...], items: Sequence[object], caption: str = "") -> Table:
    """Return a table of objects; each column's key is the name of their attribute."""
    rows = [tuple(getattr(each, column.key) for column in columns) for each in items]
    return limit_table(key, columns, rows, caption)


def limit_table(key: str, columns: tuple[Column, ...], rows: Sequence[tuple[Value, ...]], caption: str = "") -> Table:
    """Return a table of the first rows, with the number of rows left out."""
    return Table(key, columns, tuple(rows[:MOST_ROWS]), caption, max(len(rows) - MOST_ROWS, 0))


def format_lines(value: Value, kind: ValueKind) -> tuple[str, ...]:
    """Format a value for people, line by line. Characters that could control a terminal are escaped."""
    if value is None:
        return ("-",)
    if isinstance(value, tuple):
        return tuple(map(printable, value))
    return (printable(value if isinstance(value, str) else _WRITERS[kind](value)),)


def format_value(value: float, kind: ValueKind) -> str:
    """Format a number for people."""
    return _WRITERS[kind](value)


_WRITERS: dict[ValueKind, Callable[[float], str]] = {
    ValueKind.TEXT: str,
    ValueKind.WRITTEN: str,
    ValueKind.BYTES: format_bytes,
    ValueKind.EXACT: "{:,}".format,
    ValueKind.COUNT: "{:,}".format,
    ValueKind.SECONDS: format_seconds,
    ValueKind.SHARE: lambda value: f"{value * 100:.1f}%",
    ValueKind.RATIO: lambda value: f"{value:.2f}",
    ValueKind.CHANGE: format_change,
    ValueKind.BYTES_CHANGE: lambda value: ("+" if value > 0 else "") + format_bytes(value),
}
