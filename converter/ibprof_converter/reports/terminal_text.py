# SPDX-License-Identifier: Apache-2.0
"""Sections as text, for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ibprof.text.quantities import printable
from ibprof_converter.reports.report_sections import Section, Table, Value, ValueKind, format_lines

_INDENT = (0, 0, 0, 2)


def print_sections(console: Console, sections: Sequence[Section]) -> None:
    """Print sections.

    Args:
        console: where to; its markup must be off, since names are anyone's text.
        sections: what to print; empty ones are left out.
    """
    for number, section in enumerate(each for each in sections if not each.is_empty()):
        if number:
            console.print()
        console.print(Text(section.title, style="bold"))
        _print_section(console, section)


def _print_section(console: Console, section: Section) -> None:
    for fact in section.facts:
        _say(console, f"{fact.label}: {_show(fact.value, fact.kind)}")
    for label, sentence in section.sentences:
        _say(console, printable(f"{label}: {sentence}" if label else sentence))
    for number, table in enumerate(table for table in section.tables if table.rows):
        if number or table.caption:
            console.print()
        _print_table(console, table)
    for command, remarks in section.commands:
        # A command must be copied whole, so it is never wrapped.
        console.print(f"\n  $ {printable(command)}", soft_wrap=True)
        for remark in remarks:
            console.print(Padding(Text(printable(remark)), (0, 0, 0, 4)))


def _print_table(console: Console, table: Table) -> None:
    if table.caption:
        _say(console, f"{printable(table.caption)}:")
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in table.columns:
        shown.add_column(column.label, justify="left" if column.kind is ValueKind.TEXT else "right", overflow="fold")
    parted = any(isinstance(value, tuple) for row in table.rows for value in row)
    for row in table.rows:
        cells = (_show(value, column.kind) for value, column in zip(row, table.columns, strict=True))
        shown.add_row(*cells, end_section=parted)
    console.print(Padding(shown, _INDENT))
    if table.left_out:
        _say(console, f"and {table.left_out:,} more, which --json lists")


def _show(value: Value, kind: ValueKind) -> str:
    return "\n".join(format_lines(value, kind))


def _say(console: Console, sentence: str) -> None:
    console.print(Padding(Text(sentence), _INDENT))
