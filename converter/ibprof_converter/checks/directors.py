# SPDX-License-Identifier: Apache-2.0
"""Directors: switch chips in one chassis, each a node of the fabric, bought and cabled as one box."""

from __future__ import annotations

import re

import numpy as np

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.layout.neighbours import find_chassis
from ibprof_converter.layout.node_levels import find_levels

_BOARD = re.compile(r"/([A-Za-z]{1,9}\d{1,3})(?:/\w{1,9})?(?: \(\.\.\w+\))?$")
"""The board in a chip's description: `MF0;NAME:MCS8500/L07/U2` is on board L07."""


def describe_directors(fabric: Fabric) -> tuple[str, ...]:
    """Return each director in words: its name, its chips and boards, and the chips of each level."""
    chassis = find_chassis(fabric, fabric.node_kind == NodeKind.SWITCH)
    level = find_levels(fabric)
    directors = []
    for number in np.unique(chassis[chassis >= 0]).tolist():
        nodes = np.flatnonzero(chassis == number).tolist()
        names = [fabric.node_name[node] for node in nodes]
        boards = {match[1] for name in names if (match := _BOARD.search(name))}
        boxes = {name.split("/", 1)[0] for name in names}
        name = boxes.pop() if boards and len(boxes) == 1 else f"{int(fabric.system_guid[nodes[0]]):#018x}"
        chips = ", ".join(
            f"{count} at level {each}" for each, count in zip(*np.unique(level[nodes], return_counts=True), strict=True)
        )
        on = f" on {len(boards)} boards" if boards else ""
        directors.append(f"{name!r}: {len(nodes)} chips{on} ({chips})")
    return tuple(sorted(directors))
