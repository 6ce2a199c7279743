# SPDX-License-Identifier: Apache-2.0
"""The used part of a torus, a dragonfly or another fabric without levels: its switches in a plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ibprof_converter.reports.picture_parts import (
    BOX,
    Curve,
    Form,
    Point,
    ThickLink,
    draw_box,
    draw_curves,
    draw_label,
    draw_thick,
    open_picture,
)
from ibprof_converter.reports.used_part import UsedPart

_HEIGHT = 0.72
"""Height of the picture, of its width."""

_MARGIN = 44.0
_WIDEST = 84.0
_NARROWEST = 40.0
"""Width of a box from which on each switch has one, with its name."""

_MOST_BOXES = 100
_DOT = 3.0
_MOST_LINKS = 500
"""Thin links of one kind at most: those of most bytes."""

_BOW = 0.12
"""How far the middle of a link is from the straight line, of its length: its two directions are apart."""

_MOST_BOW = 26.0
_STEPS = 64
_AWAY = 40.0
_AROUND = tuple((math.cos(turn * math.pi / 8), math.sin(turn * math.pi / 8)) for turn in (4, 12, 0, 8, 2, 6, 10, 14))
"""Where a host may be, seen from its switch."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a unit is, and half of the width and the height of what stands there."""

    middle: Point
    half: Point

    def holds(self, point: Point) -> bool:
        return all(abs(a - b) <= half for a, b, half in zip(point, self.middle, self.half, strict=True))

    def overlaps(self, other: _Spot) -> bool:
        reach = (a + b + 2 for a, b in zip(self.half, other.half, strict=True))
        return all(abs(a - b) < near for a, b, near in zip(self.middle, other.middle, reach, strict=True))


def draw_plane(part: UsedPart, form: Form, tones: Sequence[str], said: str) -> str:
    """Draw the used switches in a plane, and the hosts at thick links.

    Args:
        part: what is used.
        form: the form of the picture.
        tones: class of each thick link.
        said: what the picture shows, in words.
    """
    height = form.width * _HEIGHT
    switches = np.flatnonzero(part.is_used & ~part.is_host)
    place = _fit(part, switches, form.width, height)
    width = _measure_box(place[switches])
    half = (width / 2, BOX / 2) if width else (_DOT, _DOT)
    spots = {unit: _Spot((float(place[unit, 0]), float(place[unit, 1])), half) for unit in switches.tolist()}
    named = list(dict.fromkeys(unit for mark in part.marks for unit in (mark.sender, mark.receiver)))
    _place_hosts(part, spots, (form.width, height), width or _WIDEST)
    curves = [_bow(spots[mark.sender], spots[mark.receiver]) for mark in part.marks]
    thick = [
        ThickLink(number, curve, mark.part)
        for number, (curve, mark) in enumerate(zip(curves, part.marks, strict=True), 1)
    ]
    boxes = [unit for unit in spots if width or part.is_host[unit]]
    dots = "".join(
        f'<circle cx="{spot.middle[0]:.1f}" cy="{spot.middle[1]:.1f}" r="{_DOT:g}"/>'
        for unit, spot in spots.items()
        if unit not in set(boxes)
    )
    kinds = {unit: "named" if unit in named else "plain" for unit in boxes}
    return (
        open_picture(form, height, said)
        + draw_curves(_join(part.links[:_MOST_LINKS], spots), "used")
        + draw_curves(_join(part.alike[:_MOST_LINKS], spots), "alike")
        + (f'<g class="dots">{dots}</g>' if dots else "")
        + "".join(
            draw_box(spots[each].middle, 2 * spots[each].half[0], part.names[each], kinds[each]) for each in boxes
        )
        + draw_thick(thick, tones)
        + "".join(_label_dots(part, [unit for unit in named if unit not in kinds], spots, form.width))
        + "</svg>"
    )


def _fit(part: UsedPart, switches: npt.NDArray[np.intp], width: float, height: float) -> npt.NDArray[np.float64]:
    """Return places such that the used switches fill the picture: float64 [unit, 2]."""
    place = np.stack([part.x, -part.y], axis=1)
    low, span = place[switches].min(axis=0), np.ptp(place[switches], axis=0)
    size = np.array([width, height]) - 2 * _MARGIN
    scaled: npt.NDArray[np.float64] = (
        np.where(span > 0, (place - low) / np.where(span > 0, span, 1), 0.5) * size + _MARGIN
    )
    return scaled


def _measure_box(place: npt.NDArray[np.float64]) -> float:
    """Return the width at which boxes at all places are apart; 0 where they would be too small for names."""
    if len(place) > _MOST_BOXES:
        return 0.0
    free = _WIDEST
    for (x1, y1), (x2, y2) in combinations(place.tolist(), 2):
        if abs(y1 - y2) < BOX + 4:
            free = min(free, abs(x1 - x2) - 14)
    return free if free >= _NARROWEST else 0.0


def _place_hosts(part: UsedPart, spots: dict[int, _Spot], size: Point, width: float) -> None:
    """Add the hosts at thick links, each next to its switch, where least is in the way."""
    half = width / 2, BOX / 2
    for mark in part.marks:
        for host, switch in ((mark.sender, mark.receiver), (mark.receiver, mark.sender)):
            if host in spots or not part.is_host[host]:
                continue
            x, y = spots[switch].middle if switch in spots else (size[0] / 2, size[1] / 2)
            free = [
                _Spot(
                    (_clip(x + right * (_AWAY + half[0]), half[0], size[0]), _clip(y + down * _AWAY, half[1], size[1])),
                    half,
                )
                for right, down in _AROUND
            ]
            spots[host] = min(free, key=lambda each: sum(each.overlaps(other) for other in spots.values()))


def _clip(middle: float, half: float, size: float) -> float:
    return min(max(middle, half + 1), size - half - 1)


def _bow(start: _Spot, end: _Spot) -> Curve:
    """Return the curve from the edge of one to the edge of the other, bent to the left of its direction."""
    (x1, y1), (x2, y2) = start.middle, end.middle
    bow = 2 * min(_BOW, _MOST_BOW / (math.dist(start.middle, end.middle) or 1.0))
    bend = (x1 + x2) / 2 + bow * (y2 - y1), (y1 + y2) / 2 - bow * (x2 - x1)

    def follow(part: float) -> Point:
        rest = 1 - part
        return (
            rest * rest * x1 + 2 * rest * part * bend[0] + part * part * x2,
            rest * rest * y1 + 2 * rest * part * bend[1] + part * part * y2,
        )

    steps = [step / _STEPS for step in range(_STEPS + 1)]
    first = max((step for step in steps if step < 0.5 and start.holds(follow(step))), default=0.0)
    last = min((step for step in steps if step > 0.5 and end.holds(follow(step))), default=1.0)
    weights = (1 - first) * (1 - last), first * (1 - last) + last * (1 - first), first * last
    a, d = follow(first), follow(last)
    b, c = (
        tuple(
            edge[axis] / 3 + 2 / 3 * (weights[0] * p + weights[1] * q + weights[2] * r)
            for axis, (p, q, r) in enumerate(((x1, bend[0], x2), (y1, bend[1], y2)))
        )
        for edge in (a, d)
    )
    return a, (b[0], b[1]), (c[0], c[1]), d


def _join(pairs: npt.NDArray[np.intp], spots: dict[int, _Spot]) -> list[Curve]:
    """Return thin links between what stands in the picture: bent the same way whichever end is first."""
    curves = []
    for pair in pairs.tolist():
        if all(unit in spots for unit in pair):
            start, end = sorted((spots[unit] for unit in pair), key=lambda spot: spot.middle)
            curves.append(_bow(start, end))
    return curves


def _label_dots(part: UsedPart, units: Sequence[int], spots: dict[int, _Spot], width: float) -> list[str]:
    """Name switches that have no box, where there is space for it."""
    taken: list[_Spot] = []
    drawn = []
    for unit in units:
        x, y = spots[unit].middle
        half = min(3.05 * len(part.names[unit]) + 2, _WIDEST / 2), 7.0
        free = [
            _Spot((_clip(x + right * (half[0] + 6), half[0], width), y + down * 14), half)
            for right, down in ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, 1))
        ]
        spot = next((each for each in free if not any(each.overlaps(other) for other in taken)), None)
        if spot is not None:
            taken.append(spot)
            drawn.append(draw_label(spot.middle, 2 * half[0], part.names[unit]))
    return drawn
