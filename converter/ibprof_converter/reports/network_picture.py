# SPDX-License-Identifier: Apache-2.0
"""Draw the picture of a report's page: the used part of the network; the most loaded links are thick and numbered.

A fabric with levels has a column of boxes per level, hosts first. Switches of other fabrics, such as a torus, are
placed freely. In a long column, adjacent hosts or switches without thick links share a box.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof_converter.analysis.pipeline_results import FabricLoads
from ibprof_converter.hotspots.hot_links import LinkGroup
from ibprof_converter.reports.picture_parts import (
    BOX,
    NARROW,
    WIDE,
    Curve,
    Form,
    Point,
    ThickLink,
    choose_fitting,
    draw_box,
    draw_curves,
    draw_thick,
    open_picture,
    place_badges,
)
from ibprof_converter.reports.plane_picture import draw_plane
from ibprof_converter.reports.used_part import UsedPart, find_used_part

_DESCRIPTION = "The used part of the network; its most loaded links are thick, with the numbers of the list"

_ROWS = 14
"""In a column with more hosts or switches than this, several hosts or switches can share a box."""

_FEWEST = 2
"""In a column with at least this number of names, the domain that all names share is cut off."""

_ROW = 24.0

_TOP = 40.0

_LEAST_ROWS = {WIDE: 13, NARROW: 8}
"""Form of the picture -> smallest number of rows."""

_CAPTION = 60.0
"""Height of the caption below the wide form, in pixels."""

_FIRST_SCREEN = 400.0
"""Largest height of the wide form, in pixels, so that verdict and picture fit on one screen."""

_BOX_PART = 0.65
"""Width of a box / width of its column."""

_MOST_COLUMNS = 5
"""Largest number of columns in the narrow form. With more columns, the second rail is drawn below the first."""

_APART = 10.0
"""Distance between the ends of thick links at the same side of a box, in pixels."""


@dataclass(frozen=True, slots=True)
class _Box:
    """A box of one unit (host or switch), or of several folded units."""

    units: tuple[int, ...]
    name: str
    kind: str
    shorter: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    used: int
    units: int
    boxes: tuple[_Box, ...]


def draw_network(loads: FabricLoads, groups: tuple[LinkGroup, ...], has_fault: bool, list_height: float = 0.0) -> str:
    """Return HTML of the picture; empty without groups. The page's style chooses the wide or the narrow form.

    Args:
        groups: groups of the most loaded link directions, in the order of the list of links.
        has_fault: true to draw the first group in red.
        list_height: height, in pixels, of the list next to the wide form; the picture has about this height.
    """
    if not groups:
        return ""
    fabric, bounds = loads.fabric, loads.judging_bounds
    sent = bounds.estimates if bounds else [each.sum(axis=2, dtype=np.uint64) for each in loads.by_rail]
    part = find_used_part(fabric.fabrics, fabric.layouts, fabric.hosts, sent, groups)
    tones = ["fault" if has_fault and number == 0 else "busy" for number in range(len(groups))]
    if part.has_levels:
        forms = draw_levels(part, WIDE, tones, _DESCRIPTION, min(list_height - _CAPTION, _FIRST_SCREEN))
        forms += draw_levels(part, NARROW, tones, _DESCRIPTION)
    else:
        forms = "".join(draw_plane(part, form, tones, _DESCRIPTION) for form in (WIDE, NARROW))
    return f'<figure class="network">{forms}<figcaption>{_explain(part)}</figcaption></figure>'


def _explain(part: UsedPart) -> str:
    parts = []
    for is_kind, noun in ((part.is_host, "hosts"), (~part.is_host, "switches")):
        used = int((part.is_used & is_kind).sum())
        parts.append(f"{used:,} of {int(is_kind.sum()):,} {noun}")
    said = (
        f"The part in use: {' and '.join(parts)}. Numbered arrows: links of the list, in the direction of their bytes."
    )
    numbered = {tuple(sorted((mark.sender, mark.receiver))) for mark in part.marks}
    if any(tuple(sorted(pair)) not in numbered for pair in part.alike.tolist()):
        said += " Thinner lines of the same colour: links counted as alike, with at least half the time of link 1."
    return said if part.is_used.all() else f"{said} Dashed boxes: idle."


def draw_levels(part: UsedPart, form: Form, tones: Sequence[str], said: str, height: float = 0.0) -> str:
    """Draw the used part of the network as a column per level.

    Args:
        tones: the CSS class of each thick link.
        said: text that describes the picture.
        height: smallest height of the picture, in pixels.
    """
    columns = _fill_columns(part, form)
    pitch = form.width / len(columns)
    width, left = pitch * _BOX_PART, form.width / 2
    rows = max(_LEAST_ROWS[form], *(len(column.boxes) for column in columns))
    height = max(height, _TOP + rows * _ROW)
    middle_of = np.full((len(part.names), 2), np.nan)
    heads, placed = [], []
    for number, column in enumerate(columns):
        x = _spread(number, len(columns), form.width, width)
        heads.append(_draw_head(column, number, len(columns), form))
        space = (height - _TOP) / len(column.boxes)
        for row, box in enumerate(column.boxes):
            middle_of[list(box.units)] = (x, _TOP + (row + 0.5) * space)
            placed.append((box, (x, _TOP + (row + 0.5) * space), space - 6))
    thick, height_of = _place_thick(part, middle_of, width, left, {middle: space for _, middle, space in placed})
    alike = _join(middle_of, part.alike, width, left)
    used = [curve for curve in _join(middle_of, part.links, width, left) if curve not in set(alike)]
    return (
        open_picture(form, height, said)
        + draw_curves(used, "used")
        + draw_curves(alike, "alike")
        + "".join(heads)
        + "".join(
            draw_box(middle, width, box.name, box.kind, height_of.get(middle, BOX), box.shorter)
            for box, middle, _ in placed
        )
        + draw_thick(thick, tones, place_badges(thick))
        + "</svg>"
    )


def _draw_head(column: _Column, number: int, count: int, form: Form) -> str:
    """Draw the head of a column: title, and number of used hosts or switches."""
    pitch = form.width / count
    anchor = "start" if number == 0 else "end" if number == count - 1 else "middle"
    x = {"start": 1.0, "middle": _spread(number, count, form.width, pitch * _BOX_PART), "end": form.width - 1.0}[anchor]
    all_used = f"all {column.units:,}" if column.used == column.units else f"{column.used:,} of {column.units:,}"
    shown = choose_fitting((all_used, f"{column.used:,}/{column.units:,}", f"{column.used:,}"), pitch)
    return (
        f'<text class="level" x="{x:.1f}" y="12" text-anchor="{anchor}">{column.title}</text>'
        f'<text x="{x:.1f}" y="26" text-anchor="{anchor}">{shown}</text>'
    )


def _spread(number: int, count: int, width: float, box: float) -> float:
    """Return the x coordinate of a column's middle; the first and the last column are at the picture's edges."""
    return width / 2 if count == 1 else box / 2 + 1 + number * (width - box - 2) / (count - 1)


def _fill_columns(part: UsedPart, form: Form) -> list[_Column]:
    y, x = part.y, part.x
    if form is NARROW and len(np.unique(y[part.is_used])) > _MOST_COLUMNS:
        x = x + np.where(y < 0, 1.0 + float(np.ptp(x)), 0.0)
        y = np.abs(y)
    named = {unit for mark in part.marks for unit in (mark.sender, mark.receiver)}
    columns = []
    for level in np.unique(y[part.is_used]):
        here = np.flatnonzero(y == level)
        here = here[np.argsort(x[here], kind="stable")]
        used = here[part.is_used[here]]
        boxes = _cut_endings([*_fold(used.tolist(), named, part.names)])
        if idle := len(here) - len(used):
            boxes.append(_Box((), f"{idle:,} idle", "idle", (f"{idle:,}",)))
        title = "hosts" if not level else f"level {abs(int(level))}"
        columns.append(_Column(title, len(used), len(here), tuple(boxes)))
    return columns


def _fold(units: Sequence[int], named: set[int], names: Sequence[str]) -> Iterator[_Box]:
    """Yield the boxes of a column. In a long column, adjacent hosts or switches without a thick link share a box."""
    run: list[int] = []
    few = len(units) <= _ROWS
    for unit in (*units, -1):
        if run and (unit in named or unit < 0):
            if len(run) == 1:
                yield _Box((run[0],), names[run[0]], "plain")
            else:
                yield _Box(tuple(run), f"{len(run):,} more", "folded", (f"+{len(run):,}",))
            run = []
        if unit in named:
            yield _Box((unit,), names[unit], "named")
        elif unit >= 0 and few:
            yield _Box((unit,), names[unit], "plain")
        elif unit >= 0:
            run.append(unit)


def _cut_endings(boxes: list[_Box]) -> list[_Box]:
    """Add a shorter name to each box: without the domain that all names of the column share."""
    units = [box.name for box in boxes if box.kind != "folded"]
    if len(units) < _FEWEST:
        return boxes
    parts = [name.split(".") for name in units]
    same = 0
    while all(len(part) > same + 1 and part[-1 - same] == parts[0][-1 - same] for part in parts):
        same += 1
    if not same:
        return boxes
    return [
        box if box.kind == "folded" else replace(box, shorter=(".".join(box.name.split(".")[:-same]),)) for box in boxes
    ]


def _join(middle_of: npt.NDArray[np.float64], pairs: npt.NDArray[np.intp], width: float, left: float) -> list[Curve]:
    ends = middle_of[pairs].reshape(-1, 4)
    ends = np.unique(np.round(ends[~np.isnan(ends).any(axis=1)], 1), axis=0)
    curves = {_bend((x1, y1), (x2, y2), width, left) for x1, y1, x2, y2 in ends.tolist() if (x1, y1) <= (x2, y2)}
    curves |= {_bend((x2, y2), (x1, y1), width, left) for x1, y1, x2, y2 in ends.tolist() if (x1, y1) > (x2, y2)}
    return sorted(curves)


def _bend(start: Point, end: Point, width: float, left: float) -> Curve:
    """Return the curve between two boxes, from the side of `start` to the facing side of `end`.

    Args:
        start, end: middles of the boxes.
        left: x coordinate of the picture's middle; curves within a column bend towards the middle.
    """
    if start[0] == end[0]:
        way = -1 if start[0] > left else 1
        side = start[0] + way * width / 2
        out = side + way * width * 0.35
        return (side, start[1]), (out, start[1]), (out, end[1]), (side, end[1])
    way = 1 if end[0] > start[0] else -1
    x1, x2 = start[0] + way * width / 2, end[0] - way * width / 2
    middle = (x1 + x2) / 2
    return (x1, start[1]), (middle, start[1]), (middle, end[1]), (x2, end[1])


def _place_thick(
    part: UsedPart, middle_of: npt.NDArray[np.float64], width: float, left: float, space_of: Mapping[Point, float]
) -> tuple[list[ThickLink], dict[Point, float]]:
    """Return the thick links, and box middle -> height of the box: higher if several thick links end at the box.

    Args:
        middle_of: float64 [unit, 2], the middle of each unit's box.
        width, left: see `_bend`.
        space_of: middle of a box -> largest height of the box.
    """
    ends = [[tuple(middle_of[unit].tolist()) for unit in (mark.sender, mark.receiver)] for mark in part.marks]
    at_side: dict[tuple[Point, bool], list[tuple[float, int, int]]] = {}
    for number, pair in enumerate(ends):
        for side, (here, there) in enumerate((pair, pair[::-1])):
            at_side.setdefault((here, there[0] < here[0]), []).append((there[1], number, side))
    height_of: dict[Point, float] = {}
    for (box, _), links in at_side.items():
        height = max(BOX, min(_APART * len(links), space_of[box]))
        height_of[box] = max(height, height_of.get(box, 0.0))
        for place, (_, number, side) in enumerate(sorted(links)):
            aside = height / len(links) * (place - (len(links) - 1) / 2)
            ends[number][side] = (box[0], box[1] + aside)
    curves = [_bend(start, end, width, left) for start, end in ends]
    thick = [
        ThickLink(number, curve, mark.part)
        for number, (curve, mark) in enumerate(zip(curves, part.marks, strict=True), 1)
    ]
    return thick, height_of
