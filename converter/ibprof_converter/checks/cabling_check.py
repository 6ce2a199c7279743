# SPDX-License-Identifier: Apache-2.0
"""Check the cabling: find links and switches that differ from the other links and switches of their level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import count_of
from ibprof_converter.checks.fabric_findings import FabricFinding, FindingKind
from ibprof_converter.checks.route_check import name_nodes
from ibprof_converter.fabric.assemble import NOT_ACTIVE
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind, Origin
from ibprof_converter.fabric.fabric_parts import count_parts, list_parts
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.layout.node_levels import (
    find_few_links,
    find_leaves,
    find_levels,
    find_slow_switches,
    find_usual_count,
)
from ibprof_converter.layout.regular_cabling import fit_regular_cabling


def check_cabling(rail: int, fabric: Fabric) -> Iterator[FabricFinding]:
    """Find faulty or inactive links, parts that no cable joins, and switches with few or misplaced links."""
    parts = list_parts(fabric)
    if len(parts) > 1:
        what = count_parts(fabric, parts)
        yield FabricFinding(FindingKind.SEPARATE_PARTS, rail, what, tuple(part.text for part in parts))
    half = np.flatnonzero(fabric.link_half)
    if len(half):
        yield FabricFinding(
            FindingKind.HALF_LINK, rail, f"{count_of(len(half), 'link')} listed from one end only", _links(fabric, half)
        )
    if fabric.inactive:
        yield FabricFinding(
            FindingKind.INACTIVE, rail, f"{count_of(len(fabric.inactive), 'link')} not active", fabric.inactive
        )
    if fabric.synthetic_lids:
        yield FabricFinding(FindingKind.NO_LID, rail, "no port has a LID", ())
    if nameless := tuple(f"{name!r}: {why}" for name, why in fabric.left_out if why != NOT_ACTIVE):
        yield FabricFinding(FindingKind.NO_LID, rail, f"{count_of(len(nameless), 'adapter')} left out", nameless)
    if fabric.unequal:
        what = f"{count_of(len(fabric.unequal), 'link')} with different widths or speeds at the two ends"
        yield FabricFinding(FindingKind.ENDS_DIFFER, rail, what, fabric.unequal)
    unknown = np.flatnonzero(~np.isfinite(fabric.link_gbps))
    if len(unknown):
        what = f"{count_of(len(unknown), 'link')} of unknown rate"
        yield FabricFinding(FindingKind.UNKNOWN_RATE, rail, what, _links(fabric, unknown))
    looped = np.flatnonzero(fabric.link_node[:, 0] == fabric.link_node[:, 1])
    if len(looped):
        what = f"{count_of(len(looped), 'cable')} with both ends in one switch"
        yield FabricFinding(FindingKind.LOOPED_CABLE, rail, what, _links(fabric, looped))
    # If the dump has only names of switches and hosts, check no rates or cables: both are assumptions of ibprof.
    if fabric.origin is not Origin.NAMES:
        yield from _check_rates(rail, fabric)
        uneven = [*_check_uplinks(rail, fabric), *_check_regularity(rail, fabric)]
        yield from uneven or _check_downlinks(rail, fabric)
        if places := tuple(_find_skipped_ports(fabric)):
            what = f"{count_of(len(places), 'group')} of switches with no cable at the same ports"
            yield FabricFinding(FindingKind.SKIPPED_PORTS, rail, what, places)


def _check_regularity(rail: int, fabric: Fabric) -> Iterator[FabricFinding]:
    """Compare the cables with the tree, torus or dragonfly that fits the cabling."""
    fitted = fit_regular_cabling(fabric)
    if fitted is None:
        return
    if len(fitted.extra):
        what = f"{count_of(len(fitted.extra), 'link')} that do not belong to a {fitted.name}"
        yield FabricFinding(FindingKind.WRONG_CABLE, rail, what, _links(fabric, fitted.extra))
    if len(fitted.missing):
        places = tuple(f"{fabric.node_name[a]!r} to {fabric.node_name[b]!r}" for a, b in fitted.missing.tolist())
        what = f"{count_of(len(fitted.missing), 'link')} missing from a {fitted.name}"
        yield FabricFinding(FindingKind.MISSING_CABLE, rail, what, places)


def _check_rates(rail: int, fabric: Fabric) -> Iterator[FabricFinding]:
    """Compare each link's rate with the most common rate of links between the same two levels.

    If all links of a switch to a level are slow, the finding names the switch, not the links.
    """
    level_of_node = find_levels(fabric)
    level = np.sort(level_of_node[fabric.link_node], axis=1)
    switches = find_slow_switches(fabric, level_of_node)
    of_switch = np.zeros(fabric.links, np.bool_)
    for each in switches:
        of_switch[each.links] = True
    # Links with different rates at their ends are left out: `ENDS_DIFFER` reports them.
    has_rate = np.isfinite(fabric.link_gbps) & ~fabric.link_unequal
    lanes, gbps = fabric.link_lanes.astype(np.float64), fabric.link_gbps
    slow = np.zeros(fabric.links, np.bool_)
    narrow = np.zeros(fabric.links, np.bool_)
    for pair in np.unique(level, axis=0):
        peers = np.flatnonzero((level == pair).all(axis=1) & has_rate)
        if not len(peers):
            continue
        usual_lanes, usual_gbps = _most_common(list(zip(lanes[peers].tolist(), gbps[peers].tolist(), strict=True)))
        odd = peers[(gbps[peers] < usual_gbps) & ~of_switch[peers]]
        is_narrow = (lanes[odd] > 0) & (lanes[odd] < usual_lanes)
        slow[odd[~is_narrow]] = True
        narrow[odd[is_narrow]] = True
    for kind, chosen, words in ((FindingKind.SLOW_LINK, slow, "slower"), (FindingKind.NARROW_LINK, narrow, "narrower")):
        links = np.flatnonzero(chosen)
        if len(links):
            what = f"{count_of(len(links), 'link')} {words} than most links between the same levels"
            yield FabricFinding(kind, rail, what, _links(fabric, links))
    if switches:
        what = f"{count_of(len(switches), 'switch')} with slower links than other switches of the level"
        yield FabricFinding(FindingKind.SLOW_SWITCH, rail, what, tuple(each.describe(fabric) for each in switches))


def _most_common(rates: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the most common rate (lanes, Gbit/s); of equally common rates, the fastest."""
    counts = Counter(rates)
    return max(counts, key=lambda rate: (counts[rate], rate[1]))


def _check_uplinks(rail: int, fabric: Fabric) -> Iterator[FabricFinding]:
    """Find switches that have both fewer uplinks and more downlinks per uplink than usual on their level.

    The usual number is from `find_usual_count`: if most switches lack a link, the most common number would be wrong.
    All links from a leaf to switches count as uplinks, also links within the level, as in a torus.
    """
    leaves = find_leaves(fabric)
    level = find_levels(fabric)
    is_switch = fabric.node_kind == NodeKind.SWITCH
    is_leaf = np.zeros(fabric.nodes, np.bool_)
    is_leaf[leaves] = True
    up, down = np.zeros(fabric.nodes, np.int64), np.zeros(fabric.nodes, np.int64)
    for end in (0, 1):
        near, far = fabric.link_node[:, end], fabric.link_node[:, 1 - end]
        leads_up = is_switch[near] & is_switch[far] & (near != far) & (is_leaf[near] | (level[near] < level[far]))
        np.add.at(up, near[leads_up], 1)
        leads_down = is_switch[near] & np.where(is_leaf[near], ~is_switch[far], level[near] > level[far])
        np.add.at(down, near[leads_down], 1)
    yield from _find_few(rail, fabric, leaves, up, down, "leaf switches")
    for above in range(2, int(level.max(initial=0))):
        peers = np.flatnonzero(is_switch & ~is_leaf & (level == above))
        # If at least a quarter of a level's switches have no uplinks, they are core switches, and no finding.
        if 4 * (up[peers] == 0).sum() >= len(peers):
            peers = peers[up[peers] > 0]
        yield from _find_few(rail, fabric, peers, up, down, f"switches of level {above}")


def _check_downlinks(rail: int, fabric: Fabric) -> Iterator[FabricFinding]:
    """Find switches of the top level with few links to lower levels (`find_few_links`)."""
    for found in find_few_links(fabric, find_levels(fabric)):
        named = zip(name_nodes(fabric, found.nodes), found.count.tolist(), strict=True)
        what = (
            f"{len(found.nodes)} of {found.peers} switches of level {found.level} with fewer links than the usual "
            f"{found.usual}"
        )
        yield FabricFinding(FindingKind.FEW_LINKS, rail, what, tuple(f"{name} has {having}" for name, having in named))


def _find_skipped_ports(fabric: Fabric) -> Iterator[str]:
    """Yield text on port numbers that no switch of a group uses: a common neighbour of the group can be off.

    The switches of a group use the same port numbers for the same neighbours. Unused numbers are reported only if the
    port numbers to each neighbour have equal distances (1, 3 and 2, 4), and if the unused numbers can be divided into
    sets with these distances.
    """
    level = find_levels(fabric)
    used: dict[int, dict[int, int]] = {}
    for nodes, ports in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True):
        for near, far, port in ((nodes[0], nodes[1], ports[0]), (nodes[1], nodes[0], ports[1])):
            if fabric.node_kind[near] == NodeKind.SWITCH:
                used.setdefault(near, {})[port] = far
    alike: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for near, far_of_port in used.items():
        for step in (-1, 1):
            leads = ((port, far) for port, far in sorted(far_of_port.items()) if level[far] == level[near] + step)
            alike.setdefault(tuple((port, far) for port, far in leads if far in used), []).append(near)
    for cabling, switches in alike.items():
        if len(switches) < 2 or not cabling:
            continue
        ports_to: dict[int, list[int]] = {}
        for port, far in cabling:
            ports_to.setdefault(far, []).append(port)
        distances = {tuple(port - ports[0] for port in ports) for ports in ports_to.values()}
        skipped = set(range(cabling[0][0], cabling[-1][0])).difference(*(used[each] for each in switches))
        if len(distances) == 1 and skipped and _is_filled(skipped, distances.pop()):
            names = show_some([repr(fabric.node_name[far]) for far in ports_to])
            numbers = ", ".join(map(str, sorted(skipped)))
            more = count_of(len(switches) - 1, "more switch")
            noun = "ports" if len(skipped) > 1 else "port"
            yield f"{noun} {numbers} of {fabric.node_name[switches[0]]!r} and {more}, between ports to {names}"


def _is_filled(ports: set[int], distances: tuple[int, ...]) -> bool:
    """Return true if `ports` can be divided into sets; a set is a port number + each of `distances`."""
    left = set(ports)
    while left:
        one_set = {min(left) + distance for distance in distances}
        if not one_set <= left:
            return False
        left -= one_set
    return True


def _find_few(
    rail: int,
    fabric: Fabric,
    peers: npt.NDArray[np.intp],
    up: npt.NDArray[np.int64],
    down: npt.NDArray[np.int64],
    words: str,
) -> Iterator[FabricFinding]:
    if len(peers) < 2:
        return
    usual = find_usual_count(up[peers])
    load = down / np.maximum(up, 1)
    usual_load = float(np.median(load[peers][up[peers] == usual]))
    few = peers[(up[peers] < usual) & (load[peers] > usual_load)]
    if not len(few):
        return
    named = zip(name_nodes(fabric, few), few.tolist(), strict=True)
    places = tuple(f"{name} has {up[node]}" for name, node in named)
    if 2 * len(few) < len(peers):
        what = f"{len(few)} of {len(peers)} {words} with fewer uplinks than the usual {usual}"
        yield FabricFinding(FindingKind.FEW_UPLINKS, rail, what, places)
    else:
        # If at least half of the switches have fewer uplinks, only report how many switches have each number of
        # uplinks.
        numbers = zip(*np.unique(up[peers], return_counts=True), strict=True)
        counts = ", ".join(f"{having} with {number}" for number, having in numbers)
        what = f"{len(peers)} {words} have different numbers of uplinks: {counts}"
        yield FabricFinding(FindingKind.UNEVEN_UPLINKS, rail, what, places)


def _links(fabric: Fabric, links: npt.NDArray[np.integer]) -> tuple[str, ...]:
    return tuple(_describe_link(fabric, link) for link in links.tolist())


def _describe_link(fabric: Fabric, link: int) -> str:
    a, b = (f"{fabric.node_name[fabric.link_node[link, end]]!r} port {fabric.link_port[link, end]}" for end in (0, 1))
    lanes = f"{fabric.link_lanes[link]}x, " if fabric.link_lanes[link] else ""
    gbps = fabric.link_gbps[link]
    return f"{a} to {b} ({lanes}{f'{gbps:.4g} Gb/s' if np.isfinite(gbps) else 'unknown speed'})"
