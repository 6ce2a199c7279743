# SPDX-License-Identifier: Apache-2.0
"""Render sections as one self-contained HTML page; figures are SVG without script.

Names from fabrics and profiles are escaped. The page's Content-Security-Policy allows only the page's style,
and the network view's script and style, by their hashes. The browser makes no request.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from ibprof.text.quantities import format_bytes, format_seconds, printable
from ibprof_converter.analysis.output_files import naming_file
from ibprof_converter.reports.recorded_job import TimeBin
from ibprof_converter.reports.report_sections import Column, Fact, Section, Table, Value, ValueKind, format_lines
from ibprof_converter.reports.traffic_sums import PairMatrix
from ibprof_converter.viewer.view_file import hash_inline, page_hashes

_LONG = 28
"""A fact with more characters than this has its own line."""

_LONG_WORD = 24
"""Table cells break only words with more characters than this."""

_PHRASE = 18
"""Table cells with more characters than this are wide enough for several words a line."""

_ARROW = html.escape("->")
"""An arrow, which browsers break after its hyphen unless its element forbids it."""

_LONG_TABLE = 12
"""When printed, a section with more rows than this may be split between pages."""

_CLASSES = 10
"""Number of colours in a matrix: the CSS classes `q0` to `q9`."""

_WIDE_RANGE = 1000
"""If the largest amount is more than this factor times the smallest, the colours have a logarithmic scale."""

_SIDE = 420

_MARGIN = 90

_WIDTH = 760

_HEIGHT = 150


@dataclass(frozen=True, slots=True)
class ReportPage:
    """Contents of a page.

    Attributes:
        head: the HTML before the sections.
        figures: section name -> HTML of its figure.
        view: the HTML of the network view, placed after the head; None without a view.
        halves: names of sections that take half of the page's width.
        spell: function that is applied to the HTML of the page's texts, for example to shorten paths.
        is_folded: true to fold the sections, because the head has the main results. Printing unfolds them.
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
        OSError: the file cannot be written; the error names the file.
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
    """Return a text as HTML: markup and unprintable characters are escaped."""
    return html.escape(printable(text), quote=True)


def show_number(path: str, value: Value, kind: ValueKind) -> str:
    """Return HTML of a rounded number; attributes have its exact value and its path in the JSON."""
    shown = "\n".join(map(html.escape, format_lines(value, kind)))
    if not isinstance(value, int | float) or not path:
        return shown
    return f'<data value="{value!r}" data-path="{escape(path)}">{shown}</data>'


def _part(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _policy(style: str, framing: bool) -> str:
    """Return the Content-Security-Policy; if `framing`, it also allows the network view's script and style."""
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
    names = {"network": "Network"} if page.view is not None else {}
    names |= {each.name: escape(each.title.partition(":")[0].partition(",")[0]) for each in page.sections}
    links = "\n".join(f'<a href="#{name}">{title}</a>' for name, title in names.items())
    return f'<nav aria-label="Parts of this report">{links}</nav>'


def _body(page: ReportPage) -> Iterator[str]:
    yield page.head
    if page.view is not None:
        title = "<h2>The network, and what loads it</h2>"
        yield f'<details id="network" class="framed" open><summary>{title}</summary>'
        yield "<noscript><p>Scripts are blocked here. Only the network view needs them.</p></noscript>"
        yield f'<iframe title="Network view" srcdoc="{html.escape(page.view)}"></iframe></details>'
    if page.is_folded:
        yield _list_parts(page)
    for section in page.sections:
        yield from _frame(page, section)


def _frame(page: ReportPage, section: Section) -> Iterator[str]:
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
        # If a link leads to an element of the section, browsers unfold the section.
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
    stacked = ' class="stacked"' if isinstance(table.rows[0][-1], tuple) else ""
    yield f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table{stacked}>'
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
        shown = show_number("", value, column.kind).replace(_ARROW, f'<span class="whole">{_ARROW}</span>')
        return f'<td class="{_name_class(column, value)}">{shown}</td>'
    bar = draw_share(value) if column.kind is ValueKind.SHARE and isinstance(value, int | float) else ""
    tone = ""
    if column.kind in (ValueKind.CHANGE, ValueKind.BYTES_CHANGE) and isinstance(value, int | float) and value:
        tone = " worse" if value > 0 else " better"
    return f'<td class="number{tone}">{bar}{show_number(path, value, column.kind)}</td>'


def _name_class(column: Column, value: Value) -> str:
    """Return the CSS class of a cell with text, by the length of its text and words."""
    if column.key == "sha256":
        return "hash"
    if isinstance(value, tuple):
        return "lines"
    text = str(value)
    if any(len(word) > _LONG_WORD for word in text.split()):
        return "long-word"
    return "phrase" if len(text) > _PHRASE else "text"


def draw_share(share: float) -> str:
    """Return SVG of a share (0 to 1) as a bar in a table cell."""
    width = max(0.0, min(1.0, share)) * 100
    return (
        '<svg class="share" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width:.1f}" height="1"/></svg>'
    )


def draw_bar(part: float) -> str:
    """Return SVG of a fraction (0 to 1) as a bar."""
    return (
        '<svg class="bar hot" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{max(0.0, min(1.0, part)) * 100:.1f}" height="1"/></svg>'
    )


def draw_matrix(matrix: PairMatrix) -> str:
    """Return HTML of a matrix whose colours show the bytes from each sender (row) to each receiver (column)."""
    amounts = [amount for row in matrix.bytes for amount in row if amount]
    if not amounts:
        return ""
    least, most = min(amounts), max(amounts)
    logarithmic = most > _WIDE_RANGE * least
    paths: dict[int, list[str]] = {}
    for y, row in enumerate(matrix.bytes):
        for x, amount in enumerate(row):
            if amount:
                paths.setdefault(_class_of(amount, least, most, logarithmic), []).append(f"M{x} {y}h1v1h-1z")
    count = len(matrix.bytes)
    cells = "".join(f'<path class="q{number}" d="{"".join(path)}"/>' for number, path in sorted(paths.items()))
    labels = "".join(_label(matrix, row) for row in sorted({0, count // 2, count - 1}))
    size = _MARGIN + _SIDE + 20
    said = f"sending {matrix.by}s from top to bottom, receiving {matrix.by}s from left to right"
    if matrix.block > 1:
        said += f"; a row stands for {matrix.block} adjacent {matrix.by}s"
    scale = "logarithmic" if logarithmic else "linear"
    square = f'x="{_MARGIN}" y="{_MARGIN}" width="{_SIDE}" height="{_SIDE}"'
    return (
        f"<figure>{_open_picture(size, size, f'Matrix: {said}')}{labels}"
        f'<svg {square} viewBox="0 0 {count} {count}" shape-rendering="crispEdges">{cells}</svg>'
        f'<rect class="frame" {square}/></svg>'
        f"{_draw_scale(least, most)}<figcaption>{said}; {scale} scale</figcaption></figure>"
    )


def _label(matrix: PairMatrix, row: int) -> str:
    """Return SVG of two labels: of row `row` and of column `row`."""
    middle = _MARGIN + (row + 0.5) * _SIDE / len(matrix.bytes) + 4
    near, name = _MARGIN - 6, _short(matrix.names[row])
    return (
        f'<text x="{near}" y="{middle:.1f}" text-anchor="end">{name}</text>'
        f'<text transform="translate({middle:.1f} {near}) rotate(-60)">{name}</text>'
    )


def _open_picture(width: int, height: int, said: str) -> str:
    return f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{said}">'


def _draw_scale(least: int, most: int) -> str:
    steps = "".join(f'<rect class="q{step}" x="{step * 20}" width="20" height="10"/>' for step in range(_CLASSES))
    return (
        '<svg width="420" height="14" viewBox="0 0 420 14" aria-hidden="true">'
        f'<g transform="translate(100 2)">{steps}</g><text x="94" y="12" text-anchor="end">{format_bytes(least)}</text>'
        f'<text x="306" y="12">{format_bytes(most)}</text></svg>'
    )


def _class_of(amount: int, least: int, most: int, logarithmic: bool) -> int:
    part = math.log(amount / least) / math.log(most / least) if logarithmic else amount / most
    return min(int(part * _CLASSES), _CLASSES - 1)


def draw_amounts(amounts: Sequence[int], of: str, direction: str = "sent") -> str:
    """Return HTML of adjacent bars: the bytes of each rank, host or rail, in order."""
    most = max(amounts, default=0)
    if not most or len(amounts) < 2:
        return ""
    # If there are more values than pixels, each bar shows the largest of several adjacent values.
    few = -(-len(amounts) // _WIDTH)
    heights = [max(amounts[at : at + few]) / most for at in range(0, len(amounts), few)]
    caption = f"bytes {direction} by {of}, 0 to {len(amounts) - 1} from left to right; the line is the mean"
    mean = sum(amounts) / len(amounts) / most
    return _draw_columns(heights, caption, (format_bytes(most), "0"), mean)


def draw_timeline(bins: Sequence[TimeBin]) -> str:
    """Return HTML of a curve of the bytes sent over time."""
    most = max((each.bytes for each in bins), default=0)
    if not most:
        return ""
    seconds = bins[0].end_s - bins[0].begin_s
    rate = f"{format_bytes(most / seconds)}/s" if seconds else format_bytes(most)
    caption = f"bytes sent by all ranks, over {format_seconds(bins[-1].end_s)} from left to right"
    return _draw_columns([each.bytes / most for each in bins], caption, (rate, "0"), None)


def _draw_columns(heights: Sequence[float], caption: str, scale: tuple[str, str], mean: float | None) -> str:
    width = _WIDTH / len(heights)
    columns = "".join(
        f"M{at * width:.2f} {_HEIGHT}v{-height * _HEIGHT:.2f}h{width * (0.9 if width > 3 else 1):.2f}V{_HEIGHT}z"
        for at, height in enumerate(heights)
        if height
    )
    line = "" if mean is None else f'<path class="frame" d="M0 {_HEIGHT * (1 - mean):.2f}H{_WIDTH}"/>'
    left = 84
    return (
        f"<figure>{_open_picture(left + _WIDTH, _HEIGHT + 12, caption)}"
        f'<text x="{left - 6}" y="12" text-anchor="end">{scale[0]}</text>'
        f'<text x="{left - 6}" y="{_HEIGHT}" text-anchor="end">{scale[1]}</text><g transform="translate({left} 1)">'
        f'<path class="amount" d="{columns}"/>{line}<path class="frame" d="M0 {_HEIGHT}H{_WIDTH}"/></g></svg>'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _short(name: str) -> str:
    shown = printable(name)
    return html.escape(shown if len(shown) <= 12 else f"{shown[:11]}\u2026")
