# SPDX-License-Identifier: Apache-2.0
"""Outputs of a comparison with a reference: text, JSON, and coloured drawings of the reference (DOT, SVG)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from html import escape
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import dijkstra

from ibprof.text.quantities import count_of
from ibprof_converter.outputs.atomic_write import write_text
from ibprof_converter.outputs.graph_files import quote_dot, quote_line
from ibprof_converter.outputs.slurm_topology import compress
from ibprof_lab.topology.reference.differences import REGULAR, Names, TopologyDifferences
from ibprof_lab.topology.reference.reference_comparison import ReferenceComparison
from ibprof_lab.topology.reference.reference_topology import NOT_PASSED
from ibprof_lab.topology.reference.switch_groups import find_leaves

COMPARISON_ENDINGS = (".dot", ".svg", ".json")

_FOUND, _MISSING, _EXTRA, _NAMED = "#2a7f2a", "#cc0000", "#999999", "#e07000"
_NEVER_PASSED = "#e0e0e0"
"""Colour of links that no path passes. The paper draws such links white, which is invisible on a white page."""
_NOT_THERE = "not in the reference"
_PALEST = 0.25
_WIDTH, _ROW = 1200.0, 160.0

_MOST_SHOWN = 20
_MOST_NAMES = 200


def write_comparison(path: Path, comparison: ReferenceComparison) -> None:
    """Write a comparison; the suffix of the file name, from `COMPARISON_ENDINGS`, selects the format.

    Raises:
        OSError: the file cannot be written.
    """
    if path.suffix == ".json":
        write_text(path, lambda file: print(json.dumps(describe_comparison(comparison), indent=1), file=file))
    else:
        write_text(path, lambda file: (write_dot if path.suffix == ".dot" else write_svg)(file, comparison))


def describe_comparison(comparison: ReferenceComparison) -> dict[str, Any]:
    """Return the comparison's JSON document: differences of cabling, slow links, and times of all links."""
    found, reference = comparison.comparison, comparison.reference

    def name(link: int) -> dict[str, str]:
        a, b = reference.link[link].tolist()
        return {"a": reference.names[a], "b": reference.names[b]}

    document: dict[str, Any] = {
        "kind": found.kind,
        "reference": reference.origin,
        "differences": comparison.differences,
        "hosts": list(found.hosts),
        "not_in_reference": list(found.not_in_reference),
        "not_measured": list(found.not_measured),
        "similarity_percent": _rounded(100 * found.similarity, 3),
        "missing": [list(pair) for pair in found.missing],
        "extra": [list(pair) for pair in found.extra],
        "misplaced": [_describe_fields(each, peers="beside", found_peers="found_beside") for each in found.misplaced],
        "apart": [_describe_fields(each) for each in found.separated],
        "merged": [list(each) for each in found.merged],
        "rehung": [_describe_fields(each) for each in found.recabled],
        "cables": [asdict(each) for each in found.cables],
        "regrouped": [_describe_fields(each) | {"differing": list(each.differing)} for each in found.regrouped],
        "slow": [
            name(each.link)
            | {
                "why": each.why,
                "ratio": round(each.ratio, 4),
                "excess_us": round(each.excess_seconds * 1e6, 6),
                "gbps": _rounded(each.bytes_per_second * 8e-9, 6),
            }
            for each in comparison.slow
        ],
        "cannot_tell": list(found.unknown),
        "length": comparison.length,
        "links": [],
    }
    if comparison.times is not None:
        times = comparison.times
        document["links"] = [
            name(link)
            | {
                "gbps": _rounded(float(reference.gbps[link]), 6),
                "paths": int(times.paths[link]),
                "us": _rounded(float(times.seconds[link]) * 1e6, 6),
                "reference_us": _rounded(float(times.line_rate_seconds[link]) * 1e6, 6),
                "colour": colour,
            }
            for link, colour in enumerate(times.colours())
        ]
    return document


def _describe_fields(found: Any, **keys: str) -> dict[str, Any]:
    """Return the fields of a difference by JSON key; `keys` maps names of fields to other JSON keys."""
    values = {name: list(each) if isinstance(each, tuple) else each for name, each in asdict(found).items()}
    return {keys.get(name, name): each for name, each in values.items()}


def _rounded(value: float, digits: int) -> float | None:
    return None if isnan(value) else round(value, digits)


def write_dot(file: TextIO, comparison: ReferenceComparison) -> None:
    """Write the reference for Graphviz. The colour of a link shows its time, or that the link is missing; hosts with
    differences are orange."""
    names, named = comparison.reference.names, _named_vertices(comparison)
    file.write("graph compared {\n")
    for vertex, name in enumerate(names):
        colour = f", color={quote_dot(_NAMED)}, penwidth=3" if vertex in named else ""
        shape = "ellipse" if comparison.reference.is_end[vertex] else "box"
        file.write(f"  {vertex} [label={quote_dot(name)}, shape={shape}{colour}];\n")
    for a, b, colour, label, width, is_dashed in _coloured_links(comparison):
        dashed = ", style=dashed" if is_dashed else ""
        file.write(f"  {a} -- {b} [color={quote_dot(colour)}, penwidth={width}, label={quote_dot(label)}{dashed}];\n")
    file.write("}\n")


def write_svg(file: TextIO, comparison: ReferenceComparison) -> None:
    """Write the reference as SVG, coloured as in DOT: hosts below their switches, or a direct network on a circle."""
    names, named = comparison.reference.names, _named_vertices(comparison)
    x, y = _place(comparison)
    height = float(y.max(initial=0.0)) + 100
    file.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" font-family="sans-serif" '
        'font-size="11">\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
    )
    for a, b, colour, label, width, is_dashed in _coloured_links(comparison):
        dashed = ' stroke-dasharray="6 4"' if is_dashed else ""
        ends = f'x1="{x[a]:.1f}" y1="{y[a]:.1f}" x2="{x[b]:.1f}" y2="{y[b]:.1f}"'
        told = escape(quote_line(f"{names[a]} to {names[b]} {label}"))
        file.write(f'<line {ends} stroke="{colour}" stroke-width="{width}"{dashed}><title>{told}</title></line>\n')
    crowded = len(names) > 200
    for vertex, name in enumerate(names):
        fill = _NAMED if vertex in named else "#ffffff"
        told = escape(quote_line(name))
        file.write(
            f'<circle cx="{x[vertex]:.1f}" cy="{y[vertex]:.1f}" r="5" fill="{fill}" stroke="#333333">'
            f"<title>{told}</title></circle>\n"
        )
        if not crowded or vertex in named:
            file.write(f'<text x="{x[vertex] + 7:.1f}" y="{y[vertex] + 14:.1f}">{told}</text>\n')
    file.write("</svg>\n")


def _named_vertices(comparison: ReferenceComparison) -> set[int]:
    found = comparison.comparison
    names = {each.host for each in found.misplaced} | {host for each in found.separated for host in each.hosts}
    names |= {host for switch in found.recabled for host in switch.hosts}
    names |= {host for part in found.regrouped for host in part.differing}
    vertex = dict(zip(comparison.matched.names, comparison.matched.vertex.tolist(), strict=True))
    return {vertex[name] for name in names if name in vertex}


class _Line(NamedTuple):
    """A line of the drawing: two vertices and the style."""

    a: int
    b: int
    colour: str
    label: str = ""
    width: int = 2
    dashed: bool = False


def _coloured_links(comparison: ReferenceComparison) -> list[_Line]:
    """Return a line for each link of the reference, then for each additional link."""
    reference, found = comparison.reference, comparison.comparison
    vertex = {name: place for place, name in reversed(tuple(enumerate(reference.names)))}
    vertex |= dict(zip(comparison.matched.names, comparison.matched.vertex.tolist(), strict=True))
    missing = {frozenset(vertex[name] for name in pair) for pair in found.missing}
    # If each switch has one host, the link that is missing between two hosts is the link between their switches.
    own = dict(
        zip(comparison.matched.vertex.tolist(), find_leaves(reference, comparison.matched.vertex).tolist(), strict=True)
    )
    missing |= {frozenset(own.get(each, each) for each in pair) for pair in missing}
    extra = [(vertex[a], vertex[b]) for a, b in found.extra]
    ends, slow = reference.link.tolist(), {each.link for each in comparison.slow}
    if found.kind == REGULAR:
        lines = [
            _Line(a, b, _MISSING if lost else _FOUND, width=5 if link in slow else 2, dashed=lost)
            for link, (a, b) in enumerate(ends)
            for lost in (frozenset((a, b)) in missing,)
        ]
        return [*lines, *(_Line(a, b, _EXTRA, _NOT_THERE, 1) for a, b in extra)]
    others = [_Line(a, b, _NAMED, _NOT_THERE) for a, b in extra]
    if comparison.times is None:
        return [_Line(a, b, _NEVER_PASSED, width=1, dashed=frozenset((a, b)) in missing) for a, b in ends] + others
    colours = zip(
        comparison.times.colours(), comparison.times.saturation().tolist(), comparison.times.seconds, strict=True
    )
    lines = []
    for link, ((a, b), (colour, strength, seconds)) in enumerate(zip(ends, colours, strict=True)):
        if frozenset((a, b)) in missing:
            lines.append(_Line(a, b, _NAMED, "missing", dashed=True))
        else:
            label = "" if isnan(seconds) else f"{seconds * 1e6:.3g} µs"
            lines.append(_Line(a, b, _shade(colour, strength), label, 5 if link in slow else 2))
    return lines + others


def _shade(colour: str, strength: float) -> str:
    if colour == NOT_PASSED:
        return _NEVER_PASSED
    from matplotlib.colors import to_hex, to_rgb  # noqa: PLC0415  (most commands on topologies draw nothing)

    pure = np.array(to_rgb(colour))
    strength = _PALEST + (1 - _PALEST) * strength
    return str(to_hex(tuple(1 - strength * (1 - pure))))


def _place(comparison: ReferenceComparison) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the x and the y position of each vertex, float64 [vertex] each.

    The vertices of a regular network are placed on a circle. In other networks, a vertex's row is its distance to the
    nearest host. Each row is sorted by positions in the row below.
    """
    reference = comparison.reference
    count = reference.vertices
    if comparison.comparison.kind == REGULAR:
        angle = 2 * np.pi * np.arange(count) / max(count, 1)
        return _WIDTH / 2 * (1 + 0.85 * np.cos(angle)), _WIDTH / 2 * (1 + 0.85 * np.sin(angle))
    near: list[list[int]] = [[] for _ in range(count)]
    for a, b in reference.link.tolist():
        near[a].append(b)
        near[b].append(a)
    level = np.zeros(count, np.int64)
    if len(hosts := np.flatnonzero(reference.is_end)):
        far = dijkstra(reference.adjacency(), directed=False, unweighted=True, indices=hosts, min_only=True)
        level = np.where(np.isfinite(far), far, 0).astype(np.int64)
    # Hosts are sorted by the smallest index of their neighbours.
    first = np.array([min(near[vertex], default=vertex) for vertex in range(count)])
    x = np.zeros(count)
    for row in range(level.max(initial=0) + 1):
        members = np.flatnonzero(level == row)
        below = [[x[other] for other in near[vertex] if level[other] < level[vertex]] for vertex in range(count)]
        key = first if row == 0 else [float(np.mean(places)) if places else 0.0 for places in below]
        order = members[np.argsort(np.asarray(key)[members], kind="stable")]
        x[order] = _WIDTH * (np.arange(len(order)) + 0.5) / max(len(order), 1)
    return x, 40 + _ROW * (level.max(initial=0) - level).astype(np.float64)


def describe_comparison_lines(comparison: ReferenceComparison) -> Iterator[str]:
    """Yield the lines of a comparison: the number of differences, each difference, and undetermined details."""
    found, reference = comparison.comparison, comparison.reference
    alike = f"; {100 * found.similarity:.1f}% alike" if found.kind == REGULAR else ""
    yield f"{count_of(len(found.hosts), 'host')} compared with {reference.origin}, {found.kind}{alike}"
    yield count_of(comparison.differences, "difference") if comparison.differences else "no difference"
    if found.not_in_reference:
        yield f"not in the reference: {_names(found.not_in_reference)}"
    yield from _describe_cabling(found)
    for what, pairs in (("missing", found.missing), ("not in the reference", found.extra)):
        for a, b in pairs[:_MOST_SHOWN]:
            yield f"link {what}: {a} to {b}"
    for each in found.cables[:_MOST_SHOWN]:
        yield f"cables: {each.a} to {each.b}: {each.cables} found, {each.reference} in the reference"
    for link in comparison.slow[:_MOST_SHOWN]:
        a, b = (reference.names[end] for end in reference.link[link.link].tolist())
        yield f"slow: {a} to {b}: {link.why}"
    lists = (found.misplaced, found.separated, found.missing, found.extra, found.cables, comparison.slow)
    if any(len(each) > _MOST_SHOWN for each in lists):
        yield "and more: --json has all"
    if found.not_measured:
        yield f"note: not measured: {_names(found.not_measured)}"
    for switches in found.merged[:_MOST_SHOWN]:
        yield f"unknown: {_names(switches)}: the delays show the hosts of these switches on one switch"
    for text in found.unknown:
        yield f"unknown: {text}"


def _describe_cabling(found: TopologyDifferences) -> Iterator[str]:
    for host in found.misplaced[:_MOST_SHOWN]:
        yield (
            f"wrong cable: the delays show {host.host} on {host.found_switch} with {_names(host.found_peers)}; in the "
            f"reference it is on {host.switch} with {_names(host.peers) or 'no other host'}"
        )
    for part in found.separated[:_MOST_SHOWN]:
        yield (
            f"separated: {_names(part.hosts)} are on {part.switch} in the reference, but have longer delays than the "
            f"other hosts {_names(part.others)}"
        )
    for switch in found.recabled[:_MOST_SHOWN]:
        yield (
            f"wrong cable: the delays show {switch.switch} with {_names(switch.hosts)} nearest to "
            f"{_names(switch.found_near)}; in the reference the switch is nearest to {_names(switch.near)}"
        )
    for group in found.regrouped[:_MOST_SHOWN]:
        yield (
            f"grouped differently: hosts near each other in the reference: {_names(group.expected) or 'none'}; "
            f"hosts near each other by the delays: {_names(group.found) or 'none'}"
        )


def _names(names: Names) -> str:
    return compress(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
