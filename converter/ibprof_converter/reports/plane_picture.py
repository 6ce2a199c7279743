# SPDX-License-Identifier: Apache-2.0
"""Draw a fabric without levels, such as a torus: its used switches, placed freely."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, islice

import numpy as np
import numpy.typing as npt

from ibprof_converter.reports.picture_parts import (
    BADGE,
    BOX,
    Curve,
    Form,
    Point,
    Spot,
    ThickLink,
    draw_box,
    draw_curves,
    draw_label,
    draw_thick,
    follow,
    open_picture,
    place_badges,
)
from ibprof_converter.reports.used_part import UsedPart

_HEIGHT = 0.72
"""Height of the picture / its width."""

_MARGIN = 44.0
_MOST_MARGIN = 0.18
"""Largest margin above and below the switches, for hosts, as a fraction of the picture's height."""

_WIDEST = 84.0
_NARROWEST = 40.0
"""Smallest width of a box with a name, in pixels. With less space, switches are drawn as dots."""

_BOX_GAP = 14.0
_HOST_GAP = 40.0
"""Smallest vertical space, in pixels, between two boxes with a host between the boxes."""

_MOST_BOXES = 100
_DOT = 3.0
_MOST_LINKS = 500
"""Of each kind, at most this number of thin links, those with most bytes, are drawn."""

_BOW = 0.12
"""Bend of a link direction / its length; the bend separates the two directions of a link."""

_LEAST_BOW = 12.0
_MOST_BOW = 26.0
_STEPS = 64
_AWAY = 62.0
"""Distance of a host from its switch, in pixels."""

_AROUND = tuple((math.cos(turn * math.pi / 8), math.sin(turn * math.pi / 8)) for turn in (4, 12, 0, 8, 2, 6, 10, 14))
"""Candidate directions from a switch to its host, as unit vectors."""


def draw_plane(part: UsedPart, form: Form, tones: Sequence[str], said: str) -> str:
    """Return SVG of the used switches, placed freely, and of the hosts to which thick links lead.

    Args:
        tones: the CSS class of each thick link.
        said: text that describes the picture.
    """
    height = form.width * _HEIGHT
    switches = np.flatnonzero(part.is_used & ~part.is_host)
    folded = find_folded(part, _MOST_BOXES)
    place = _fit(part, folded, form.width, height)
    named = list(dict.fromkeys(unit for mark in part.marks for unit in (mark.sender, mark.receiver)))
    width = 0.0 if folded.any() else _measure_box(place[switches], any(part.is_host[unit] for unit in named))
    half = (width / 2, BOX / 2) if width else (_DOT, _DOT)
    spots = {unit: Spot((float(place[unit, 0]), float(place[unit, 1])), half) for unit in switches.tolist()}
    _place_hosts(part, spots, (form.width, height), width or _WIDEST)
    curves = [_bow(spots[mark.sender], spots[mark.receiver], _LEAST_BOW) for mark in part.marks]
    thick = [
        ThickLink(number, curve, mark.part)
        for number, (curve, mark) in enumerate(zip(curves, part.marks, strict=True), 1)
    ]
    boxes = {unit: spot for unit, spot in spots.items() if width or part.is_host[unit]}
    dots = dict.fromkeys(
        f'<circle cx="{spot.middle[0]:.1f}" cy="{spot.middle[1]:.1f}" r="{_DOT:g}"/>'
        for unit, spot in spots.items()
        if unit not in boxes
    )
    badges = place_badges(thick, list(boxes.values()), (form.width, height))
    kinds = {unit: "named" if unit in named else "plain" for unit in boxes}
    taken = [*boxes.values(), *(Spot(badge, (BADGE, BADGE)) for badge in badges)]
    return (
        open_picture(form, height, said)
        + draw_curves(_join(part.links, spots), "used")
        + draw_curves(_join(part.alike, spots), "alike")
        + (f'<g class="dots">{"".join(dots)}</g>' if dots else "")
        + "".join(
            draw_box(spot.middle, 2 * spot.half[0], part.names[unit], kinds[unit]) for unit, spot in boxes.items()
        )
        + draw_thick(thick, tones, badges)
        + "".join(_label_dots(part, [unit for unit in named if unit not in boxes], spots, taken, form.width))
        + "</svg>"
    )


def _fit(part: UsedPart, folded: npt.NDArray[np.bool_], width: float, height: float) -> npt.NDArray[np.float64]:
    """Scale the positions of the used switches, so that they fill the picture, in pixels: float64 [unit, 2]."""
    switches = np.flatnonzero(part.is_used & ~part.is_host)
    on_ring = place_groups(part, folded)
    place = np.stack([part.x, -part.y], axis=1) if on_ring is None else on_ring
    low, span = place[switches].min(axis=0), np.ptp(place[switches], axis=0)
    has_hosts = any(part.is_host[[mark.sender, mark.receiver]].any() for mark in part.marks)
    margin = np.array(
        [_MARGIN, max(_MARGIN, min(_AWAY + BOX / 2 + 1, _MOST_MARGIN * height)) if has_hosts else _MARGIN]
    )
    size = np.array([width, height]) - 2 * margin
    scaled: npt.NDArray[np.float64] = (
        np.where(span > 0, (place - low) / np.where(span > 0, span, 1), 0.5) * size + margin
    )
    return scaled


def _measure_box(place: npt.NDArray[np.float64], has_hosts: bool) -> float:
    """Return the largest width of boxes without overlaps; 0 if there would be too many boxes, or too narrow boxes.

    Args:
        place: float64 [switch, 2], positions of the switches.
        has_hosts: true if hosts are drawn between the switches.
    """
    if len(place) > _MOST_BOXES:
        return 0.0
    free = _WIDEST
    for (x1, y1), (x2, y2) in combinations(place.tolist(), 2):
        if abs(y1 - y2) < BOX + (_HOST_GAP if has_hosts and abs(x1 - x2) < _NARROWEST else _BOX_GAP):
            free = min(free, abs(x1 - x2) - _BOX_GAP)
    return free if free >= _NARROWEST else 0.0


def _place_hosts(part: UsedPart, spots: dict[int, Spot], size: Point, width: float) -> None:
    """Add the hosts of thick links to `spots`, each near its switch, where `_count_covered` is smallest."""
    between = [
        follow(_bow(spots[mark.sender], spots[mark.receiver], _LEAST_BOW), step / _STEPS)
        for mark in part.marks
        if mark.sender in spots and mark.receiver in spots
        for step in range(_STEPS + 1)
    ]
    for mark in part.marks:
        for host, switch in ((mark.sender, mark.receiver), (mark.receiver, mark.sender)):
            if host in spots or not part.is_host[host]:
                continue
            half = min(width, max(_NARROWEST, 7 * len(part.names[host]) + 8)) / 2, BOX / 2
            x, y = spots[switch].middle if switch in spots else (size[0] / 2, size[1] / 2)
            half_switch = spots[switch].half[0] if switch in spots else 0.0
            free = [
                Spot(
                    (
                        _clip(x + right * (_AWAY + half[0] + half_switch), half[0], size[0]),
                        _clip(y + down * _AWAY, half[1], size[1]),
                    ),
                    half,
                )
                for right, down in _AROUND
            ]
            spots[host] = min(free, key=lambda each: _count_covered(each, (x, y), spots, between))


def _count_covered(host: Spot, switch: Point, spots: dict[int, Spot], between: Sequence[Point]) -> float:
    """Return a penalty for a host's position: elements and thick links that the host or its link covers."""
    way = [tuple(a + (b - a) * step / 4 for a, b in zip(switch, host.middle, strict=True)) for step in range(1, 4)]
    covered = sum(3 * host.overlaps(other) for other in spots.values())
    covered += sum(other.middle != switch and other.holds((x, y), _DOT) for other in spots.values() for x, y in way)
    is_moved = math.dist(switch, host.middle) < _AWAY / 2  # `_clip` moved the host onto its switch
    return covered + 4 * is_moved + sum(host.holds(point, 2) for point in between) / 2


def _clip(middle: float, half: float, size: float) -> float:
    return min(max(middle, half + 1), size - half - 1)


def _bow(start: Spot, end: Spot, least: float = 0.0) -> Curve:
    """Return a curve between the edges of two elements, bent to the left as seen from `start`."""
    (x1, y1), (x2, y2) = start.middle, end.middle
    length = math.dist(start.middle, end.middle) or 1.0
    bow = 2 * min(max(_BOW * length, least), _MOST_BOW) / length
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


def _join(pairs: npt.NDArray[np.intp], spots: dict[int, Spot]) -> list[Curve]:
    """Return a curve for each of the first `_MOST_LINKS` unordered pairs of drawn elements."""
    joined: dict[tuple[Spot, Spot], None] = {}
    for one, other in pairs.tolist():
        if one in spots and other in spots and spots[one] != spots[other]:
            start, end = sorted((spots[one], spots[other]), key=lambda spot: spot.middle)
            joined[start, end] = None
    return [_bow(*ends) for ends in islice(joined, _MOST_LINKS)]


def _label_dots(
    part: UsedPart, units: Sequence[int], spots: dict[int, Spot], covered: Sequence[Spot], width: float
) -> list[str]:
    """Return labels of switches without boxes; a label that would cover a box or a number is left out."""
    taken = list(covered)
    drawn = []
    for unit in units:
        x, y = spots[unit].middle
        half = min(3.05 * len(part.names[unit]) + 2, _WIDEST / 2), 7.0
        free = [
            Spot((_clip(x + right * (half[0] + 6), half[0], width), y + away * down), half)
            for away in (14, 28)
            for right, down in ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, 1), (-1, -1), (1, 1))
        ]
        spot = next((each for each in free if not any(each.overlaps(other) for other in taken)), None)
        if spot is not None:
            taken.append(spot)
            drawn.append(draw_label(spot.middle, 2 * half[0], part.names[unit]))
    return drawn


NO_GROUP = -1

_FOLDED_TURN = 0.15
"""Angle of a folded group on the circle / angle of an unfolded group."""

_WIDEST_TURN = 1.1
"""Largest half angle of a group on the circle, in radians: below pi/2, where tan() is infinite."""

_FILLED = 0.7
"""Fraction of a group's angle that the group's switches fill."""

_BULGE = 0.5
"""Outward bulge of a group's arc / half of the arc's width."""


def find_folded(part: UsedPart, most: int) -> npt.NDArray[np.bool_]:
    """Return the switches in folded groups: bool [unit]. A folded group is drawn as one dot.

    If more than `most` switches are used, each group without a thick link is folded.
    """
    switches = part.is_used & ~part.is_host
    grouped = switches & (part.group != NO_GROUP)
    if int(switches.sum()) <= most:
        return np.zeros(len(grouped), np.bool_)
    named = [unit for mark in part.marks for unit in (mark.sender, mark.receiver)]
    return np.asarray(grouped & ~np.isin(part.group, part.group[named]))


def place_groups(part: UsedPart, folded: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64] | None:
    """Return the positions of the used switches, whose groups are on a circle: float64 [unit, 2].

    Args:
        folded: bool [unit], from `find_folded`.

    Returns:
        The positions. None if the layout's positions are better: a used switch has no group, or all groups are used and
        unfolded.
    """
    switches = np.flatnonzero(part.is_used & ~part.is_host)
    group = part.group[switches]
    everywhere = np.unique(part.group[part.group != NO_GROUP])
    if not len(everywhere) or (group == NO_GROUP).any():
        return None
    if len(np.unique(group)) == len(everywhere) and not folded.any():
        return None
    members = _order(part, switches)
    share = [_FOLDED_TURN if folded[units[0]] else 1.0 for units in members]
    unit_turn = 2 * math.pi / sum(share)
    place = np.zeros((len(part.names), 2))
    turn = -unit_turn * share[0] / 2
    for units, part_of in zip(members, share, strict=True):
        middle, half_turn = turn + part_of * unit_turn / 2, part_of * unit_turn / 2
        turn += part_of * unit_turn
        across, down = math.sin(middle), -math.cos(middle)
        if folded[units[0]]:
            place[units] = across, down
            continue
        along = np.pi * (np.arange(len(units)) + 0.5) / len(units)
        if len(members) == 1:  # a single group fills the whole circle
            place[units] = np.stack([np.sin(2 * along), -np.cos(2 * along)], axis=1)
            continue
        half = _FILLED * math.tan(min(half_turn, _WIDEST_TURN))
        out, aside = 1 + _BULGE * half * np.sin(along), -half * np.cos(along)
        place[units] = np.stack([across * out - down * aside, down * out + across * aside], axis=1)
    return place


def _order(part: UsedPart, switches: npt.NDArray[np.intp]) -> list[list[int]]:
    """Return the used switches of each group; groups and their switches are sorted by angle in the layout."""
    everyone = np.flatnonzero(part.group != NO_GROUP)
    x, y = (
        (axis - (axis[everyone].max() + axis[everyone].min()) / 2) / max(float(np.ptp(axis[everyone])), 1e-9)
        for axis in (part.x, part.y)
    )
    turn = np.arctan2(x, y)
    by_group: dict[int, list[int]] = defaultdict(list)
    for unit in switches.tolist():
        by_group[int(part.group[unit])].append(unit)
    middle = {
        number: math.atan2(float(np.sin(turn[units]).sum()), float(np.cos(turn[units]).sum()))
        for number, units in by_group.items()
    }
    return [
        sorted(by_group[number], key=lambda unit: math.sin((turn[unit] - middle[number]) / 2))
        for number in sorted(by_group, key=lambda number: middle[number])
    ]
