# SPDX-License-Identifier: Apache-2.0
"""Sections as one HTML page that needs nothing else, and may reach nothing else.

Names from fabrics and profiles are put in as text, escaped. The policy in the page's head allows its style, and of the
view that it may frame the script and the style, by their hashes; nothing else runs, and no request is made.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from ibprof.text.quantities import printable
from ibprof_converter.analysis.output_files import naming_file
from ibprof_converter.reports.report_figures import draw_share
from ibprof_converter.reports.report_sections import (
    Column,
    Fact,
    Section,
    Table,
    Value,
    ValueKind,
    format_lines,
)
from ibprof_converter.viewer.html_page import hash_inline, page_hashes

_LONG = 28
"""Characters of a fact beyond which it gets a line of its own."""

_LONG_TABLE = 12
"""Rows from which on a section may be cut between pages."""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """Contents of a page.

    Attributes:
        title, subtitle: as text.
        sections: in their order.
        head: HTML of what is to be seen first.
        figures: HTML of what is drawn, by the name of the section that it belongs to.
        view: HTML of the network view, which comes behind the head; None where there is none.
        halves: names of sections that need half the width alone.
        spell: what is done with the texts in it, as HTML, such as to shorten paths.
        is_folded: whether the sections are folded: the head says what matters. Printing unfolds them.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]
    head: str = ""
    figures: Mapping[str, str] = field(default_factory=dict)
    view: str | None = None
    halves: frozenset[str] = frozenset()
    is_folded: bool = False
    spell: Callable[[str], str] = str


def write_report_page(path: Path, page: ReportPage) -> None:
    """Write a page.

    Raises:
        OSError: the file cannot be written; it names it.
    """
    with naming_file(path):
        path.write_text(render_report_page(page), "utf-8", errors="backslashreplace", newline="\n")


def render_report_page(page: ReportPage) -> str:
    """Return a page as HTML."""
    style = _part("page.css")
    text = _part("page.html")
    for mark, value in (
        ("POLICY", _policy(style, framing=page.view is not None)),
        ("TITLE", page.spell(escape(page.title))),
        ("STYLE", style),
        ("TITLE", page.spell(escape(page.title))),
        ("SUBTITLE", page.spell(escape(page.subtitle))),
        ("LINKS", "" if page.is_folded else _list_parts(page)),
        ("BODY", page.spell("\n".join(_body(page)))),
    ):
        text = text.replace(f"%{mark}%", value, 1)
    return text


def escape(text: str) -> str:
    """Put a text into HTML: what could be markup is spelt out, and what cannot be printed too."""
    return html.escape(printable(text), quote=True)


def show_number(path: str, value: Value, kind: ValueKind) -> str:
    """Return a number as HTML that says where the JSON has it, and its exact value."""
    shown = "\n".join(map(html.escape, format_lines(value, kind)))
    if not isinstance(value, int | float) or not path:
        return shown
    return f'<data value="{value!r}" data-path="{escape(path)}">{shown}</data>'


def _part(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _policy(style: str, framing: bool) -> str:
    """Allow this style; with the view, which is bound by this policy too, its script, its style and its pictures."""
    styles, scripts = [hash_inline(style)], []
    if framing:
        script, view_style = page_hashes()
        styles.append(view_style)
        scripts.append(script)
    parts = ["default-src 'none'", "style-src " + " ".join(f"'{each}'" for each in styles)]
    if scripts:
        parts += ["script-src " + " ".join(f"'{each}'" for each in scripts), "img-src blob: data:"]
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])


def _list_parts(page: ReportPage) -> str:
    links = "\n".join(_links(page))
    return f'<nav aria-label="Parts of this report">{links}</nav>'


def _links(page: ReportPage) -> Iterator[str]:
    if page.view is not None:
        yield '<a href="#network">Network</a>'
    for section in page.sections:
        yield f'<a href="#{section.name}">{escape(section.title.partition(":")[0].partition(",")[0])}</a>'


def _body(page: ReportPage) -> Iterator[str]:
    yield page.head
    if page.view is not None:
        title = "<h2>The network, and what loads it</h2>"
        yield f'<details id="network" class="framed" open><summary>{title}</summary>'
        yield "<noscript><p>The view needs scripts, which are blocked here. All else needs none.</p></noscript>"
        yield f'<iframe title="Network view" srcdoc="{html.escape(page.view)}"></iframe></details>'
    if page.is_folded:
        yield _list_parts(page)
    for section in page.sections:
        yield from _frame(page, section)


def _frame(page: ReportPage, section: Section) -> Iterator[str]:
    """Yield a section with its frame, and what is drawn for it."""
    classes = " ".join(
        name
        for name, given in (
            ("half", section.name in page.halves),
            ("long", sum(len(table.rows) for table in section.tables) > _LONG_TABLE),
        )
        if given
    )
    attributes = f' class="{classes}"' if classes else ""
    heading = f"<h2>{escape(section.title)}</h2>"
    if page.is_folded:
        # A link to what is inside opens it.
        yield f'<details{attributes}><summary>{heading}</summary><div id="{section.name}">'
    else:
        yield f'<section id="{section.name}"{attributes}>{heading}'
    yield from _section(section)
    yield page.figures.get(section.name, "")
    yield "</div></details>" if page.is_folded else "</section>"


def _section(section: Section) -> Iterator[str]:
    if section.facts:
        yield "<dl>" + "".join(map(_fact, section.facts)) + "</dl>"
    for label, sentence in section.sentences:
        yield (
            f"<p><span class=soft>{escape(label)}:</span> {escape(sentence)}</p>"
            if label
            else f"<p>{escape(sentence)}</p>"
        )
    for table in section.tables:
        if table.rows:
            yield from _table(table)
    for command, remarks in section.commands:
        yield f'<pre tabindex="0">{escape(command)}</pre>'
        for remark in remarks:
            yield f'<p class="soft">{escape(remark)}</p>'


def _fact(fact: Fact) -> str:
    long = isinstance(fact.value, str) and len(fact.value) > _LONG
    classes = ' class="long"' if long else ""
    wide = ' class="wide"' if long else ""
    shown = show_number(fact.key, fact.value, fact.kind)
    return f"<div{wide}><dt>{escape(fact.label)}</dt><dd{classes}>{shown}</dd></div>"


def _table(table: Table) -> Iterator[str]:
    label = escape(table.caption or table.key.replace("_", " "))
    yield f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table>'
    if table.caption:
        yield f"<caption>{escape(table.caption)}</caption>"
    yield "<thead><tr>" + "".join(map(_head, table.columns)) + "</tr></thead><tbody>"
    for number, row in enumerate(table.rows):
        cells = (
            _cell(table.path(number, column), value, column) for column, value in zip(table.columns, row, strict=True)
        )
        yield "<tr>" + "".join(cells) + "</tr>"
    yield "</tbody></table></div>"
    if table.left_out:
        yield f"<p class=soft>and {table.left_out:,} more, which --json lists</p>"


def _head(column: Column) -> str:
    tag = "th" if column.label else "td"
    scope = ' scope="col"' if column.label else ""
    number = ' class="number"' if column.kind is not ValueKind.TEXT else ""
    return f"<{tag}{scope}{number}>{escape(column.label)}</{tag}>"


def _cell(path: str, value: Value, column: Column) -> str:
    if column.kind is ValueKind.TEXT:
        name = "hash" if column.key == "sha256" else "lines" if isinstance(value, tuple) else "text"
        return f'<td class="{name}">{show_number("", value, column.kind)}</td>'
    bar = draw_share(value) if column.kind is ValueKind.SHARE and isinstance(value, int | float) else ""
    tone = ""
    if column.kind in (ValueKind.CHANGE, ValueKind.BYTES_CHANGE) and isinstance(value, int | float) and value:
        tone = " worse" if value > 0 else " better"
    return f'<td class="number{tone}">{bar}{show_number(path, value, column.kind)}</td>'
