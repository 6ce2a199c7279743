# SPDX-License-Identifier: Apache-2.0
"""The regular fabric that fits best: a tree, a torus or a dragonfly; and the cables that do not fit it.

No plan of the cabling is needed. Switches that are cabled almost alike show what each of them should have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.layout.flat_cabling import DRAGONFLY, find_flat_misfits, find_groups
from ibprof_converter.layout.neighbours import find_parts
from ibprof_converter.layout.node_levels import find_leaves, find_levels

_MOST_MISFITS = 0.1
"""Share of the cables between switches that may not fit: with more, the fabric is another one."""

_ALIKE = 0.5
"""Share of neighbours in common from which on switches are cabled alike."""

_FEWEST = 3
"""Switches cabled alike that are needed to say what is usual."""

_MOST_GROUPS = 200
"""Different groups of alike switches, from which on a fabric is irregular."""

_LARGEST = 4000
"""Switches of a level or of a flat fabric, beyond which no fit is tried."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RegularCabling:
    """A regular fabric that fits, and what does not fit it.

    Attributes:
        name: of the regular fabric, in words.
        extra: int64 [link], numbers of links that it does not have.
        missing: int64 [cable, 2], pairs of switches that it has one more cable between, a row each.
    """

    name: str
    extra: npt.NDArray[np.int64]
    missing: npt.NDArray[np.int64]


def fit_regular_cabling(fabric: Fabric) -> RegularCabling | None:
    """Return the regular fabric that fits with the fewest cables out of place; None where none fits."""
    between = _find_between(fabric)
    if not len(between) or int((fabric.node_kind == NodeKind.SWITCH).sum()) > _LARGEST:
        return None
    fitted = _fit_tree(fabric, between) or _fit_flat(fabric, between)
    if fitted is None or len(fitted.extra) + len(fitted.missing) > _MOST_MISFITS * len(between):
        return None
    return replace(fitted, extra=_leave_bridges(fabric, between, fitted.extra))


def _leave_bridges(
    fabric: Fabric, between: npt.NDArray[np.intp], extra: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the links of `extra` without which their ends are joined still: one that alone joins them was meant so."""
    part = find_parts(fabric.nodes, fabric.link_node[np.setdiff1d(between, extra)])
    ends = part[fabric.link_node[extra]]
    joined: npt.NDArray[np.int64] = extra[ends[:, 0] == ends[:, 1]]
    return joined


def _find_between(fabric: Fabric) -> npt.NDArray[np.intp]:
    """Return the links that join two switches."""
    is_switch = fabric.node_kind == NodeKind.SWITCH
    return np.flatnonzero(is_switch[fabric.link_node].all(axis=1) & (fabric.link_node[:, 0] != fabric.link_node[:, 1]))


def _fit_tree(fabric: Fabric, between: npt.NDArray[np.intp]) -> RegularCabling | None:
    level = find_levels(fabric)
    ends = fabric.link_node[between]
    steps = np.abs(level[ends[:, 0]] - level[ends[:, 1]])
    within = between[steps != 1]
    if len(within) > _MOST_MISFITS * len(between):
        return None
    extra, missing = [within.astype(np.int64)], [np.zeros((0, 2), np.int64)]
    highest = int(level[np.unique(ends)].max())
    sizes = []
    for lower in range(1, highest + 1):
        nodes = np.flatnonzero((level == lower) & (fabric.node_kind == NodeKind.SWITCH))
        sizes.append(f"{len(nodes)} switches at level {lower}")
        if lower == highest:
            break
        found = _fit_level(fabric, between, level, lower, fabric.link_node[within])
        if found is None:
            return None
        extra.append(found[0])
        missing.append(found[1])
    kind = f"tree of {highest} levels ({', '.join(sizes)})"
    return RegularCabling(kind, np.concatenate(extra), np.concatenate(missing))


def _fit_level(
    fabric: Fabric,
    between: npt.NDArray[np.intp],
    level: npt.NDArray[np.int32],
    lower: int,
    others: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Compare the uplinks of the switches of a level with those of the switches cabled almost alike.

    Args:
        fabric, between, level: nodes, links between switches, and their levels.
        lower: the level.
        others: ends of cables that do not lead one level up or down.

    Returns:
        Links that the others have not, and pairs of switches that lack a cable; None where there is no pattern.
    """
    ends = fabric.link_node[between]
    of_level = np.sort(level[ends], axis=1)
    links = between[(of_level[:, 0] == lower) & (of_level[:, 1] == lower + 1)]
    up = (level[fabric.link_node[links, 1]] > level[fabric.link_node[links, 0]]).astype(np.intp)
    low = fabric.link_node[links, 1 - up]
    high = fabric.link_node[links, up]
    lows, row = np.unique(low, return_inverse=True)
    highs, column = np.unique(high, return_inverse=True)
    count = np.zeros((len(lows), len(highs)), np.int64)
    np.add.at(count, (row, column), 1)
    expected = _expect(count, np.isin(lows, others))
    if expected is None:
        return None
    port = fabric.link_port[links, 1 - up]
    extra = [
        int(links[index])
        for at, to in np.argwhere(count > expected).tolist()
        for index in _choose_odd(port, row, column, at, to, int(count[at, to] - expected[at, to]))
    ]
    lacking = np.maximum(expected - count, 0)
    at, to = np.nonzero(lacking)
    pairs = np.stack([lows[at], highs[to]], axis=1).astype(np.int64)
    return np.array(extra, np.int64), np.repeat(pairs, lacking[at, to], axis=0)


def _expect(count: Counts, has_other_end: npt.NDArray[np.bool_]) -> Counts | None:
    """Return the number of cables that most switches cabled like each one have; int64 [lower, upper].

    Args:
        count: int64 [lower, upper], cables between switches of two levels.
        has_other_end: bool [lower], switches that have a cable to elsewhere.

    Returns:
        None for an irregular fabric.
    """
    totals = count.sum(axis=1)
    has = (count > 0).astype(np.float64)
    shared = has @ has.T
    either = has.sum(axis=1)[:, np.newaxis] + has.sum(axis=1) - shared
    # Of two uplinks one may be gone.
    alike = (shared > _ALIKE * either) | ((shared == 1) & (either == 2))
    groups, group = np.unique(alike, axis=0, return_inverse=True)
    if len(groups) > _MOST_GROUPS:
        return None
    expected = count.copy()
    most = int(count.max(initial=0))
    for number, peers in enumerate(groups):
        members = np.flatnonzero(group.reshape(-1) == number)
        if int(peers.sum()) < _FEWEST:
            continue
        having = np.stack([(count[peers] == cables).sum(axis=0) for cables in range(most + 1)])
        usual = having.argmax(axis=0)
        is_rule = 2 * having.max(axis=0) > int(peers.sum())
        expected[members] = np.where(is_rule, usual, count[members])
        # Where half of them have more cables to a switch, those with a cable within their level lack them.
        halves = 2 * having == int(peers.sum())
        half = halves.any(axis=0) & ~is_rule
        larger = most - halves[::-1].argmax(axis=0)
        lacks = has_other_end[members] & (totals[members] < totals[peers].max())
        expected[members] = np.where(lacks[:, np.newaxis] & half, np.maximum(larger, count[members]), expected[members])
    return expected


def _choose_odd(
    port: npt.NDArray[np.int32],
    row: npt.NDArray[np.intp],
    column: npt.NDArray[np.intp],
    at: int,
    to: int,
    number: int,
) -> list[int]:
    """Return the cables of two switches whose port leads elsewhere on most other switches; of equal ones the last."""
    here = np.flatnonzero((row == at) & (column == to))
    usual = [int(((port == port[index]) & (column == to) & (row != at)).sum()) for index in here.tolist()]
    order = sorted(range(len(here)), key=lambda each: (usual[each], -int(port[here[each]])))
    return [int(here[each]) for each in order[:number]]


def _number_switches(
    fabric: Fabric, between: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]:
    """Return the switches that have links to others, and these links between their numbers: int [link, 2]."""
    nodes, index = np.unique(fabric.link_node[between], return_inverse=True)
    return nodes, index.reshape(-1, 2)


def find_dragonfly_groups(fabric: Fabric) -> dict[int, int]:
    """Return the group of each switch of a dragonfly, node -> number; empty where none fits."""
    fitted = fit_regular_cabling(fabric)
    if fitted is None or not fitted.name.startswith(DRAGONFLY):
        return {}
    nodes, edges = _number_switches(fabric, _find_between(fabric))
    group = find_groups(len(nodes), edges)
    return {} if group is None else dict(zip(nodes.tolist(), group.tolist(), strict=True))


def _fit_flat(fabric: Fabric, between: npt.NDArray[np.intp]) -> RegularCabling | None:
    """Fit a torus or a dragonfly: fabrics whose switches have hosts, or most of them."""
    nodes, edges = _number_switches(fabric, between)
    if 2 * len(np.intersect1d(nodes, find_leaves(fabric))) < len(nodes):
        return None
    found = find_flat_misfits(len(nodes), edges)
    if found is None:
        return None
    name, extra, missing = found
    return RegularCabling(name, between[extra].astype(np.int64), nodes[missing].astype(np.int64).reshape(-1, 2))
