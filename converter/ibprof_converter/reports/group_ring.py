# SPDX-License-Identifier: Apache-2.0
"""Places of the used switches of a dragonfly: its groups as arcs of a ring, of which idle groups take no part."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import numpy.typing as npt

from ibprof_converter.reports.used_part import UsedPart

NO_GROUP = -1

_FOLDED_TURN = 0.15
"""The part of a turn that a folded group has, of that of another group."""

_WIDEST_TURN = 1.1
"""The largest half of a group's turn, in radians: the arcs of two groups would have no ends."""

_FILLED = 0.7
"""The part of its turn that a group fills."""

_BULGE = 0.5
"""How far a group bulges outwards, of half its width."""


def find_folded(part: UsedPart, most: int) -> npt.NDArray[np.bool_]:
    """Return the switches that are drawn as one with their group: bool [unit].

    They are those of groups without a link of the list, where more than `most` switches are used.
    """
    switches = part.is_used & ~part.is_host
    grouped = switches & (part.group != NO_GROUP)
    if int(switches.sum()) <= most:
        return np.zeros(len(grouped), np.bool_)
    named = [unit for mark in part.marks for unit in (mark.sender, mark.receiver)]
    return np.asarray(grouped & ~np.isin(part.group, part.group[named]))


def place_groups(part: UsedPart, folded: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64] | None:
    """Return places of the used switches, down the picture: float64 [unit, 2].

    Args:
        part: what is used.
        folded: of `find_folded`.

    Returns:
        None where the layout serves: no dragonfly, or one of which all groups are used and none is folded.
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
        if len(members) == 1:  # a ring of its own
            place[units] = np.stack([np.sin(2 * along), -np.cos(2 * along)], axis=1)
            continue
        half = _FILLED * math.tan(min(half_turn, _WIDEST_TURN))
        out, aside = 1 + _BULGE * half * np.sin(along), -half * np.cos(along)
        place[units] = np.stack([across * out - down * aside, down * out + across * aside], axis=1)
    return place


def _order(part: UsedPart, switches: npt.NDArray[np.intp]) -> list[list[int]]:
    """Return the switches of each group, groups and switches in their order around the ring of the layout."""
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
