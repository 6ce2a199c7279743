# SPDX-License-Identifier: Apache-2.0
"""Draw SVG elements of the network picture: boxes with names, and thick links with numbers."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Point = tuple[float, float]
Curve = tuple[Point, Point, Point, Point]
"""A cubic Bezier curve."""

BOX = 18.0
"""Height of a box."""

_LETTER = 6.6
"""Mean width of a letter of the 11-pixel font."""

BADGE = 9.0
"""Radius of the disc with a link's number, in pixels."""

_HEAD = 8.0
_THIN = 2.5
_THICK = 2.5
"""The width of a thick link is `_THIN` + `_THICK` * time / time of the first link."""

_PLACES = (0.5, 0.38, 0.62, 0.28, 0.72, 0.2, 0.8)
"""Candidate positions of a number on its link, as fractions of the curve; the preferred position comes first."""

_ASIDE = (12.0, 20.0, 28.0, 36.0)
"""Candidates for the distance of a number from its link, in pixels."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the picture, wide or narrow. The page shows the form that fits the browser's window."""

    name: str
    width: int


WIDE = Form("wide-form", 640)
NARROW = Form("narrow-form", 340)


@dataclass(frozen=True, slots=True)
class ThickLink:
    """A thick link of the picture: one of the listed most loaded link directions.

    Attributes:
        number: number in the list, from 1.
        curve: the drawn curve, from sender to receiver.
        part: time of this direction / time of the list's first direction, 0 to 1.
    """

    number: int
    curve: Curve
    part: float


def open_picture(form: Form, height: float, said: str) -> str:
    """Return the opening tag of the SVG picture in the given form."""
    size = f'width="{form.width}" height="{height:.0f}" viewBox="0 0 {form.width} {height:.0f}"'
    return f'<svg class="network {form.name}" {size} role="img" aria-label="{html.escape(said)}">'


def draw_box(
    middle: Point, width: float, name: str, kind: str, height: float = BOX, shorter: Sequence[str] = ()
) -> str:
    """Draw a box with a name, shortened to fit the box; the tooltip has the full name.

    Args:
        kind: the CSS class, one of `named`, `plain`, `folded` and `idle`.
        shorter: alternatives if `name` does not fit, the longest first.
    """
    x, y = middle
    shown = shorten(choose_fitting((name, *shorter), width), width)
    return (
        f'<g class="{kind}"><title>{html.escape(name)}</title>'
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:g}" rx="4"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{html.escape(shown)}</text></g>'
    )


def draw_label(middle: Point, width: float, name: str) -> str:
    """Draw a name without a box."""
    x, y = middle
    shown = html.escape(shorten(name, width + 6))
    return f'<text class="label" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{shown}</text>'


def choose_fitting(texts: Sequence[str], width: float) -> str:
    """Return the first text that fits the width; if no text fits, the last text."""
    return next((text for text in texts if len(text) <= _count_letters(width)), texts[-1])


def _count_letters(width: float) -> int:
    return max(int((width - 4) / _LETTER), 2)


def shorten(name: str, width: float) -> str:
    """Shorten a name to the width; the end, where names usually differ, is kept."""
    letters = _count_letters(width)
    return name if len(name) <= letters else f"\N{HORIZONTAL ELLIPSIS}{name[-(letters - 1) :]}"


def draw_curves(curves: Iterable[Curve], kind: str) -> str:
    """Return thin links as one SVG path; empty without curves."""
    path = "".join(_write_curve(curve) for curve in curves)
    return f'<path class="{kind}" d="{path}"/>' if path else ""


@dataclass(frozen=True, slots=True)
class Spot:
    """Area of a drawn element: its middle, half width and half height, in pixels."""

    middle: Point
    half: Point

    def holds(self, point: Point, around: float = 0.0) -> bool:
        """Return true if a point is inside the element, or at most `around` pixels away from its edge."""
        return all(abs(a - b) <= half + around for a, b, half in zip(point, self.middle, self.half, strict=True))

    def overlaps(self, other: Spot) -> bool:
        """Return true if two elements overlap, or are less than 2 pixels apart."""
        reach = (a + b + 2 for a, b in zip(self.half, other.half, strict=True))
        return all(abs(a - b) < near for a, b, near in zip(self.middle, other.middle, reach, strict=True))


def draw_thick(links: Sequence[ThickLink], tones: Sequence[str], badges: Sequence[Point]) -> str:
    """Draw thick links with their numbers; the first link of the list is drawn last, on top.

    Args:
        links: thick links in the order of the list.
        tones: the CSS class of each link.
        badges: position of each number, from `place_badges`.
    """
    lines = [_draw_line(link, tone) for link, tone in zip(links, tones, strict=True)]
    numbers = [
        f'<g class="badge {tone}"><circle cx="{x:.1f}" cy="{y:.1f}" r="{BADGE:g}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{link.number}</text></g>'
        for link, tone, (x, y) in zip(links, tones, badges, strict=True)
    ]
    return "".join(reversed(lines)) + "".join(reversed(numbers))


def place_badges(links: Sequence[ThickLink], boxes: Sequence[Spot] = (), size: Point | None = None) -> list[Point]:
    """Return a position for each link's number, if possible on the link, and without covering numbers or boxes.

    Args:
        links: thick links in the order of the list.
        boxes: elements that numbers should not cover.
        size: size of the picture; None if numbers must be on their links.
    """
    taken: list[Point] = []
    for link in links:
        on_link = [follow(link.curve, place) for place in _PLACES]
        aside = [
            each
            for each in (_list_aside(link.curve) if size else ())
            if all(BADGE < place < extent - BADGE for place, extent in zip(each, size or (), strict=True))
        ]
        is_free = {each: all(math.dist(each, other) > 2 * BADGE for other in taken) for each in (*on_link, *aside)}
        fits = [each for each in on_link if is_free[each]]
        clear = [
            each for each, free in is_free.items() if free and not any(box.holds(each, BADGE / 2) for box in boxes)
        ]
        farthest = max(on_link, key=lambda each: min((math.dist(each, other) for other in taken), default=0.0))
        taken.append((clear or fits or [each for each in aside if is_free[each]] or [farthest])[0])
    return taken


def _list_aside(curve: Curve) -> Iterator[Point]:
    """Yield points next to a curve; points near the curve come first."""
    for away in _ASIDE:
        for place in _PLACES:
            (x1, y1), (x, y), (x2, y2) = (follow(curve, place + step) for step in (-0.05, 0.0, 0.05))
            length = math.dist((x1, y1), (x2, y2)) or 1.0
            for side in (away / length, -away / length):
                yield x - side * (y2 - y1), y + side * (x2 - x1)


def _draw_line(link: ThickLink, tone: str) -> str:
    width = _THIN + _THICK * link.part
    end, before = link.curve[3], follow(link.curve, 0.9)
    length = math.dist(end, before) or 1.0
    along = (end[0] - before[0]) / length, (end[1] - before[1]) / length
    head = _HEAD + width / 2
    foot = end[0] - along[0] * head, end[1] - along[1] * head
    side = -along[1] * head * 0.55, along[0] * head * 0.55
    shortened = (*link.curve[:3], foot)
    arrow = (
        f"M{end[0]:.1f} {end[1]:.1f}L{foot[0] + side[0]:.1f} {foot[1] + side[1]:.1f}"
        f"L{foot[0] - side[0]:.1f} {foot[1] - side[1]:.1f}z"
    )
    return (
        f'<g class="{tone}"><path class="line" stroke-width="{width:.1f}" d="{_write_curve(shortened)}"/>'
        f'<path class="head" d="{arrow}"/></g>'
    )


def _write_curve(curve: Curve) -> str:
    (a, b, c, d) = curve
    return f"M{a[0]:.0f} {a[1]:.0f}C{b[0]:.0f} {b[1]:.0f} {c[0]:.0f} {c[1]:.0f} {d[0]:.0f} {d[1]:.0f}"


def follow(curve: Curve, part: float) -> Point:
    """Return the point of a curve at `part`, from 0 (start) to 1 (end)."""
    a, b, c, d = curve
    weights = (1 - part) ** 3, 3 * part * (1 - part) ** 2, 3 * part**2 * (1 - part), part**3
    return (
        sum(weight * point[0] for weight, point in zip(weights, (a, b, c, d), strict=True)),
        sum(weight * point[1] for weight, point in zip(weights, (a, b, c, d), strict=True)),
    )
