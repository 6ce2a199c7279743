# SPDX-License-Identifier: Apache-2.0
"""Parts of the picture of the network: boxes with names, thick links with numbers, as SVG without script or ids."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Point = tuple[float, float]
Curve = tuple[Point, Point, Point, Point]
"""A cubic Bezier curve."""

BOX = 18.0
"""Height of a box."""

_LETTER = 6.6
"""Mean width of a letter of the picture, at 11 pixels."""

_BADGE = 9.0
_HEAD = 8.0
_THIN = 2.5
_THICK = 2.5
"""Width of a thick link is `_THIN` and up to `_THICK` more, by its time."""

_PLACES = (0.5, 0.38, 0.62, 0.28, 0.72, 0.2, 0.8)
"""Where on its link a number may be, the best first."""


@dataclass(frozen=True, slots=True)
class Form:
    """One of the two forms of the picture: the page shows the one that its window has space for."""

    name: str
    width: int


WIDE = Form("wide-form", 640)
NARROW = Form("narrow-form", 340)


@dataclass(frozen=True, slots=True)
class ThickLink:
    """A link direction of the list.

    Attributes:
        number: in the list, from 1.
        curve: from the sender to the receiver.
        part: its time, of that of the first one, 0 to 1.
    """

    number: int
    curve: Curve
    part: float


def open_picture(form: Form, height: float, said: str) -> str:
    """Return the opening tag of the picture in one form."""
    size = f'width="{form.width}" height="{height:.0f}" viewBox="0 0 {form.width} {height:.0f}"'
    return f'<svg class="network {form.name}" {size} role="img" aria-label="{html.escape(said)}">'


def draw_box(
    middle: Point, width: float, name: str, kind: str, height: float = BOX, shorter: Sequence[str] = ()
) -> str:
    """Draw a box with a name, shortened to what fits; the whole name is its title.

    Args:
        middle: of the box.
        width: of the box.
        name: in full.
        kind: class: `named`, `plain`, `folded` or `idle`.
        height: of the box.
        shorter: what to show instead where the name does not fit, the longest first.
    """
    x, y = middle
    shown = shorten(choose_fitting((name, *shorter), width), width)
    return (
        f'<g class="{kind}"><title>{html.escape(name)}</title>'
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:g}" rx="4"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{html.escape(shown)}</text></g>'
    )


def draw_label(middle: Point, width: float, name: str) -> str:
    """Draw a name without a box, over whatever is there."""
    x, y = middle
    shown = html.escape(shorten(name, width + 6))
    return f'<text class="label" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{shown}</text>'


def choose_fitting(texts: Sequence[str], width: float) -> str:
    """Return the first text that fits a width, else the last one."""
    return next((text for text in texts if len(text) <= _count_letters(width)), texts[-1])


def _count_letters(width: float) -> int:
    return max(int((width - 4) / _LETTER), 2)


def shorten(name: str, width: float) -> str:
    """Return the end of a name, which distinguishes it from others, as far as it fits a width."""
    letters = _count_letters(width)
    return name if len(name) <= letters else f"\N{HORIZONTAL ELLIPSIS}{name[-(letters - 1) :]}"


def draw_curves(curves: Iterable[Curve], kind: str) -> str:
    """Draw thin links as one path; empty for none."""
    path = "".join(_write_curve(curve) for curve in curves)
    return f'<path class="{kind}" d="{path}"/>' if path else ""


def draw_thick(links: Sequence[ThickLink], tones: Sequence[str]) -> str:
    """Draw the links of the list, the first one on top of the others, each with its number.

    Args:
        links: in the order of the list.
        tones: class of each.
    """
    lines = [_draw_line(link, tone) for link, tone in zip(links, tones, strict=True)]
    return "".join(reversed(lines)) + _draw_badges(links, tones)


def _draw_line(link: ThickLink, tone: str) -> str:
    width = _THIN + _THICK * link.part
    end, before = link.curve[3], _follow(link.curve, 0.9)
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


def _draw_badges(links: Sequence[ThickLink], tones: Sequence[str]) -> str:
    taken: list[Point] = []
    drawn = []
    for link, tone in zip(links, tones, strict=True):
        free = [_follow(link.curve, place) for place in _PLACES]
        distances = [min((math.dist(each, other) for other in taken), default=math.inf) for each in free]
        fits = [each for each, distance in zip(free, distances, strict=True) if distance > 2 * _BADGE]
        x, y = fits[0] if fits else free[distances.index(max(distances))]
        taken.append((x, y))
        drawn.append(
            f'<g class="badge {tone}"><circle cx="{x:.1f}" cy="{y:.1f}" r="{_BADGE:g}"/>'
            f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{link.number}</text></g>'
        )
    return "".join(reversed(drawn))


def _write_curve(curve: Curve) -> str:
    (a, b, c, d) = curve
    return f"M{a[0]:.0f} {a[1]:.0f}C{b[0]:.0f} {b[1]:.0f} {c[0]:.0f} {c[1]:.0f} {d[0]:.0f} {d[1]:.0f}"


def _follow(curve: Curve, part: float) -> Point:
    """Return the point of a curve at a part of 0 to 1."""
    a, b, c, d = curve
    weights = (1 - part) ** 3, 3 * part * (1 - part) ** 2, 3 * part**2 * (1 - part), part**3
    return (
        sum(weight * point[0] for weight, point in zip(weights, (a, b, c, d), strict=True)),
        sum(weight * point[1] for weight, point in zip(weights, (a, b, c, d), strict=True)),
    )
