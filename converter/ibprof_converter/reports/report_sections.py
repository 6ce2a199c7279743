# SPDX-License-Identifier: Apache-2.0
"""Sections of a report as data, from which text and page are made. Each number has a path in the report's JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from ibprof.text.quantities import format_bytes, format_change, format_seconds, printable

Value = int | float | str | tuple[str, ...] | None
"""Value of a table cell or fact: a number, one or several lines of text, or None if unknown."""


class ValueKind(Enum):
    """The format of a value."""

    TEXT = "text"
    WRITTEN = "written"
    """Values that are formatted before, for columns with several kinds of numbers."""
    BYTES = "bytes"
    EXACT = "exact"
    """Bytes with all digits."""
    COUNT = "count"
    SHARE = "share"
    SECONDS = "seconds"
    RATIO = "ratio"
    CHANGE = "change"
    """Relative change with sign: 0.1 is +10%."""
    BYTES_CHANGE = "bytes-change"
    """Change of bytes, with sign."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        key: JSON key of the value in a row, with dots between nested keys; empty if the text combines several values.
        label: title of the column.
        kind: format of the values.
    """

    key: str
    label: str
    kind: ValueKind = ValueKind.TEXT


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        key: path of the list of rows in the JSON.
        rows: one value per column.
        caption: title of the table; empty if the section's title is enough.
        left_out: number of further rows that only the JSON has.
    """

    key: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    caption: str = ""
    left_out: int = 0

    def path(self, row: int, column: Column) -> str:
        """Return the path of a cell's value in the JSON; empty if the value is not in the JSON."""
        return f"{self.key}.{row}.{column.key}" if column.key else ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A single value with its name.

    Attributes:
        key: path in the JSON; empty if the text combines several values.
        value, kind: the value and its format.
    """

    key: str
    label: str
    value: Value
    kind: ValueKind = ValueKind.TEXT


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report.

    Attributes:
        name: identifier of the section, for --section and for links on the page.
        sentences: pairs of a label (may be empty) and a sentence.
        tables: the tables, which follow the sentences.
        commands: commands for users to copy, each with remarks.
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
"""Largest number of rows of a table in text and page; the JSON has all rows."""


def tabulate(key: str, columns: tuple[Column, ...], items: Sequence[object], caption: str = "") -> Table:
    """Return a table with a row per object; the keys of columns are names of the objects' attributes."""
    rows = [tuple(getattr(each, column.key) for column in columns) for each in items]
    return limit_table(key, columns, rows, caption)


def limit_table(key: str, columns: tuple[Column, ...], rows: Sequence[tuple[Value, ...]], caption: str = "") -> Table:
    """Return a table with the first `MOST_ROWS` rows; its `left_out` counts the removed rows."""
    return Table(key, columns, tuple(rows[:MOST_ROWS]), caption, max(len(rows) - MOST_ROWS, 0))


def format_lines(value: Value, kind: ValueKind) -> tuple[str, ...]:
    """Return the lines of a formatted value; characters that could control a terminal are escaped."""
    if value is None:
        return ("-",)
    if isinstance(value, tuple):
        return tuple(map(printable, value))
    return (printable(value if isinstance(value, str) else _WRITERS[kind](value)),)


def format_value(value: float, kind: ValueKind) -> str:
    """Return a number as text, in the format of `kind`."""
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
