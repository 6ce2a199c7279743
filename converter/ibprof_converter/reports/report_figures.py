# SPDX-License-Identifier: Apache-2.0
"""Figures of a report as SVG without script; untrusted names in it are escaped."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from ibprof.text.quantities import format_bytes, format_seconds, printable
from ibprof_converter.reports.pair_matrix import PairMatrix
from ibprof_converter.reports.recorded_job import TimeBin

_CLASSES = 10
"""Colours, `q0` to `q9` of the style."""

_WIDE_RANGE = 1000
"""Ratio of amounts from which on they are coloured by their logarithms."""

_SIDE = 420
_MARGIN = 90
_WIDTH = 760
_HEIGHT = 150


def draw_share(share: float) -> str:
    """Draw a share of 0 to 1 as a bar next to its number."""
    width = max(0.0, min(1.0, share)) * 100
    return (
        '<svg class="share" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width:.1f}" height="1"/></svg>'
    )


def draw_bar(part: float) -> str:
    """Draw a part of 0 to 1 as a bar of its own."""
    return (
        '<svg class="bar hot" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{max(0.0, min(1.0, part)) * 100:.1f}" height="1"/></svg>'
    )


def draw_matrix(matrix: PairMatrix) -> str:
    """Draw who sends to whom: a row for each that sends, a column for each that receives."""
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
    said = f"{matrix.by}s that send from top to bottom, those that receive from left to right"
    if matrix.block > 1:
        said += f"; {matrix.block} neighbours share a row"
    scale = "logarithmic" if logarithmic else "linear"
    square = f'x="{_MARGIN}" y="{_MARGIN}" width="{_SIDE}" height="{_SIDE}"'
    return (
        f"<figure>{_open_picture(size, size, f'Matrix: {said}')}{labels}"
        f'<svg {square} viewBox="0 0 {count} {count}" shape-rendering="crispEdges">{cells}</svg>'
        f'<rect class="frame" {square}/></svg>'
        f"{_draw_scale(least, most)}<figcaption>{said}; {scale} scale</figcaption></figure>"
    )


def _label(matrix: PairMatrix, row: int) -> str:
    """Name a row at the left, and the column of the same at the top."""
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
    """Draw what each one of many has sent or received, in their order, next to one another."""
    most = max(amounts, default=0)
    if not most or len(amounts) < 2:
        return ""
    # Of more than pixels there are, the largest of each few.
    few = -(-len(amounts) // _WIDTH)
    heights = [max(amounts[at : at + few]) / most for at in range(0, len(amounts), few)]
    caption = f"bytes {direction} by {of}, 0 to {len(amounts) - 1} from left to right; the mean is the line"
    mean = sum(amounts) / len(amounts) / most
    return _draw_columns(heights, caption, (format_bytes(most), "0"), mean)


def draw_timeline(bins: Sequence[TimeBin]) -> str:
    """Draw what was sent over time."""
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
