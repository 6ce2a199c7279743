#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of docs/glossary.md.

scripts/draw-glossary.py [FOLDER] writes the pictures into FOLDER (default: docs/images). All colours have enough
contrast on white and dark pages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
GREY, WARM, COOL = "#7a7f86", "#d9480f", "#2f80c2"
WIDTH, HEIGHT = 360, 150
SHADED = 'fill-opacity="0.35"'
BOX = 44
"""Width of a node, in units of the picture."""


def box(x: float, y: float, name: str = "", colour: str = GREY, width: float = BOX) -> str:
    """Return a node, centred at (x, y), with its name."""
    return frame(x - width / 2, y - 11, width, 22, colour) + text(x, y + 4, name, colour)


def frame(x: float, y: float, width: float, height: float, colour: str, style: str = 'rx="4" fill-opacity="0"') -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{colour}" stroke="{colour}" {style}/>'
    )


def text(x: float, y: float, words: str, colour: str = GREY, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}" text-anchor="{anchor}">{words}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str = GREY, width: float = 1.2, end: str = "") -> str:
    mark = f' marker-end="url(#{end})"' if end else ""
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{colour}" stroke-width="{width:g}"{mark}/>'


def draw_link_direction() -> Iterator[str]:
    """Draw a cable with two link directions. The label of a direction states its sender and its load."""
    yield box(40, 75, "leaf1", width=60)
    yield box(320, 75, "spine1", width=60)
    yield line(72, 68, 282, 68, WARM, 4, "warm")
    yield line(288, 84, 78, 84, COOL, 1.2, "cool")
    yield text(180, 54, "leaf1 port 7 -&gt; spine1: 2.18 ms", WARM)
    yield text(180, 104, "spine1 port 1 -&gt; leaf1: 0.1 ms", COOL)


def draw_rail() -> Iterator[str]:
    """Draw hosts that are linked to two subnets."""
    for y, name, colour in ((25, "rail 0", COOL), (125, "rail 1", WARM)):
        yield box(180, y, name, colour, 120)
        for host in range(4):
            yield line(
                60 + 80 * host, 75 + (11 if y > 75 else -11), 150 + 20 * host, y + (-11 if y > 75 else 11), colour
            )
    for host in range(4):
        yield box(60 + 80 * host, 75, f"host {host}", width=56)


def draw_plane() -> Iterator[str]:
    """Draw an XDR adapter whose four ports are on four planes."""
    yield box(60, 75, "adapter", width=76)
    for plane, colour in enumerate((COOL, GREY, WARM, GREY)):
        y = 18 + 38 * plane
        yield line(98, 66 + 6 * plane, 200, y, colour)
        yield box(250, y, f"plane {plane + 1}", colour, 100)


def draw_leaf() -> Iterator[str]:
    """Draw two levels of switches: switches with hosts are leaf switches."""
    for leaf in range(3):
        x = 70 + 110 * leaf
        for spine in (125, 235):
            yield line(x, 64, spine, 31)
        for host in (-26, 0, 26):
            yield line(x, 86, x + host, 117)
            yield f'<circle cx="{x + host}" cy="122" r="5" fill="none" stroke="{GREY}"/>'
        yield box(x, 75, "leaf", WARM)
    for spine in (125, 235):
        yield box(spine, 20, "spine", width=54)
    yield text(180, 145, "hosts")


def draw_pod() -> Iterator[str]:
    """Draw three levels of switches: the top switches join the pods."""
    for top in (130, 230):
        yield box(top, 18, "top")
    for pod, colour in enumerate((WARM, GREY)):
        first = 70 + 150 * pod
        for middle in (first, first + 70):
            for leaf in (first, first + 70):
                yield line(middle, 83, leaf, 107, colour)
            yield line(middle, 61, 130 if middle == first else 230, 29)
            yield box(middle, 72, "middle", colour, 54)
            yield box(middle, 118, "leaf", colour)
        if pod == 0:
            yield frame(32, 54, 146, 80, WARM, 'rx="8" fill-opacity="0" stroke-dasharray="4 3"')
            yield text(105, 146, "a pod", WARM)


def draw_late_sender() -> Iterator[str]:
    """Draw a receive that waits until its send begins."""
    for y, rank, begin, end in ((40, "rank 0", 220, 260), (110, "rank 1", 90, 280)):
        yield text(6, y + 4, rank, anchor="start")
        yield line(60, y, begin, y)
        yield line(end, y, 350, y)
    yield frame(90, 99, 130, 22, WARM, SHADED)
    yield frame(220, 99, 60, 22, COOL, SHADED)
    yield frame(220, 29, 40, 22, COOL, SHADED)
    yield text(240, 22, "MPI_Send")
    yield text(155, 114, "waiting", WARM)
    yield text(250, 114, "transfer", COOL)
    yield text(185, 140, "MPI_Recv")
    yield line(222, 53, 276, 95, COOL, 1.2, "cool")


PICTURES = {
    "link-direction": draw_link_direction,
    "rail": draw_rail,
    "plane": draw_plane,
    "leaf": draw_leaf,
    "pod": draw_pod,
    "late-sender": draw_late_sender,
}


def make_svg(parts: Iterator[str]) -> str:
    marks = "".join(
        f'<marker id="{name}" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L6 3L0 6z" fill="{colour}"/></marker>'
        for name, colour in (("warm", WARM), ("cool", COOL))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="sans-serif" font-size="12">\n<defs>{marks}</defs>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def main(folder: Path) -> None:
    for name, draw in PICTURES.items():
        (folder / f"glossary-{name}.svg").write_text(make_svg(draw()), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
