# SPDX-License-Identifier: Apache-2.0
"""Write Slurm's topology/tree: the hosts of each leaf switch, and the switches above the leaves.

Slurm needs a tree: each switch has one parent. So switches on one level that share children are written as one switch.
The groups of a dragonfly are written as a level above its switches.

Source: Slurm's manual, topology.conf(5).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, TextIO

from ibprof_converter.fabric.node_names import natural_key

if TYPE_CHECKING:
    from ibprof_converter.outputs.rows import Row, Value

_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")
NO_GROUPS: Mapping[str, int] = MappingProxyType({})
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def write_topology(
    file: TextIO, links: Iterable[Row], host_of: dict[str, str], origin: str, group_of: Mapping[str, int] = NO_GROUPS
) -> None:
    """Write the tree of the first rail as `topology.conf`. Hosts whose names Slurm cannot read are left out.

    Args:
        links: rows of links.csv.
        host_of: NODE GUID of an adapter on the first rail -> name of its host.
        origin: source of the fabric, for the first line.
        group_of: NODE GUID of a dragonfly switch -> index of its group.
    """
    hosts: dict[str, list[str]] = {}
    parents: dict[str, set[str]] = {}
    levels: dict[str, int] = {}
    names: dict[str, str] = {}
    named = {guid: host for guid, host in host_of.items() if _HOST.fullmatch(host)}
    for row in links:
        if row["rail"] != 0:
            continue
        a, b = str(row["a_guid"]), str(row["b_guid"])
        for end, guid in (("a", a), ("b", b)):
            levels[guid], names[guid] = _number(row[f"{end}_level"]), str(row[f"{end}_name"])
        if a in named:
            hosts.setdefault(b, []).append(named[a])
        elif levels[a] and levels[b]:
            parents.setdefault(a, set()).add(b)
    file.write(f"# Made of {_ODD.sub('_', origin)}; switches of a level with common children are one switch here.\n")
    if len(named) < len(host_of):
        left_out = len(host_of) - len(named)
        file.write(f"# Left out: {left_out} adapters with descriptions that give no valid host name.\n")
    seen: set[str] = set()
    taken: set[str] = set()
    front: dict[str, list[str]] = {}  # name of a written switch -> GUIDs of the switches that it represents
    for leaf in sorted(hosts, key=lambda guid: (natural_key(names[guid]), guid)):
        own = [host for host in dict.fromkeys(hosts[leaf]) if host not in seen]
        seen.update(own)
        if own:
            name = _name_switch(names[leaf], taken)
            front[name] = [leaf]
            file.write(f"SwitchName={name} Nodes={compress(own)}\n")
    if group_of:
        file.write("# The groups of a dragonfly: TopologyParam=Dragonfly in slurm.conf.\n")
        front = _write_groups(file, front, group_of, taken)
    _write_upper(file, front, parents, levels, taken)


def to_yaml(conf: str) -> str:
    """Convert a `topology.conf` of `write_topology` to `topology.yaml`, for Slurm 25.05 and later.

    Source: Slurm's manual, topology.yaml(5).
    """
    comments, switches = [], []
    for line in conf.splitlines():
        if line.startswith("#"):
            comments.append(line)
            continue
        (_, name), (kind, members) = (word.split("=", 1) for word in line.split(" "))
        key = "nodes" if kind == "Nodes" else "children"
        switches += [f"      - switch: {json.dumps(name)}", f"        {key}: {json.dumps(members)}"]
    tree = ["- topology: default", "  cluster_default: true", "  tree:", "    switches:"]
    return "\n".join([*comments, "---", *tree, *switches, ""])


def _write_upper(
    file: TextIO,
    front: dict[str, list[str]],
    parents: dict[str, set[str]],
    levels: dict[str, int],
    taken: set[str],
) -> None:
    """Write the switches above the leaves, level by level.

    Args:
        front: name of a written switch -> GUIDs of the switches that it represents.
        parents, levels: GUID of a switch -> GUIDs of its parents, and its level.
        taken: names of switches that were already written.
    """
    level = 1
    while len(front) > 1:
        groups = _join(front, parents, levels, level)
        if groups is None:
            break
        above: dict[str, list[str]] = {}
        for children, switches in groups:
            if len(children) == 1:
                above[children[0]] = [*front[children[0]], *switches]
                continue
            name = _name_switch(f"level{level + 1}-{len(above) + 1}", taken)
            above[name] = switches
            file.write(f"SwitchName={name} Switches={compress(children)}\n")
        front, level = above, level + 1


def _write_groups(
    file: TextIO, front: dict[str, list[str]], group_of: Mapping[str, int], taken: set[str]
) -> dict[str, list[str]]:
    """Write the groups of a dragonfly; return group name -> GUIDs of the group's switches."""
    members: dict[int, list[str]] = {}
    for name, guids in front.items():
        members.setdefault(group_of[guids[0]], []).append(name)
    groups = {}
    for number, children in sorted(members.items()):
        name = _name_switch(f"group{number + 1}", taken)
        groups[name] = [guid for child in children for guid in front[child]]
        file.write(f"SwitchName={name} Switches={compress(children)}\n")
    return groups


def compress(names: Iterable[str]) -> str:
    """Return names as a Slurm host list, such as node[01-03,07],login1."""
    rows: dict[tuple[str, int], list[int]] = {}
    plain = []
    for name in sorted(names, key=natural_key):
        match = _NUMBERED.fullmatch(name)
        if match:
            rows.setdefault((match[1], len(match[2])), []).append(int(match[2]))
        else:
            plain.append(name)
    parts = []
    for (prefix, width), numbers in rows.items():
        runs = []
        # number - index is constant in a run of consecutive numbers
        for _, members in groupby(enumerate(sorted(set(numbers))), key=lambda each: each[1] - each[0]):
            run = [f"{number:0{width}}" for _, number in members]
            runs.append(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}")
        single = len(runs) == 1 and "-" not in runs[0]
        parts.append(f"{prefix}{runs[0]}" if single else f"{prefix}[{','.join(runs)}]")
    return ",".join([*parts, *plain])


def _join(
    front: dict[str, list[str]], parents: dict[str, set[str]], levels: dict[str, int], level: int
) -> list[tuple[list[str], list[str]]] | None:
    """Group switches that share a parent on the next level; on the top level, group switches that links join.

    Returns:
        Names of the members, and GUIDs of their parents, for each group; None if no switches share a parent or a link.
    """
    of_guid = {guid: name for name, guids in front.items() for guid in guids}
    over: dict[str, set[str]] = {}
    for child, name in of_guid.items():
        for parent in parents.get(child, ()):
            if parent in of_guid:  # a link within the level, as in a torus or dragonfly
                over.setdefault("", set()).update((name, of_guid[parent]))
            elif levels[parent] == level + 1:
                over.setdefault(parent, set()).add(name)
    if not any(len(children) > 1 for children in over.values()) and not any(over):
        return None
    root = {name: name for name in front}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    for children in over.values():
        first, *others = sorted(children, key=natural_key)
        for other in others:
            root[find(other)] = find(first)
    groups: dict[str, tuple[list[str], list[str]]] = {}
    for name in front:
        groups.setdefault(find(name), ([], []))[0].append(name)
    for parent, children in over.items():
        if parent:
            groups[find(next(iter(children)))][1].append(parent)
    if len(groups) == len(front) and not any(switches for _, switches in groups.values()):
        return None
    return list(groups.values())


def _name_switch(name: str, taken: set[str]) -> str:
    """Return a name that is valid for Slurm and not in `taken`; add the name to `taken`."""
    base = _ODD.sub("_", name).strip("_") or "switch"
    chosen, number = base, 1
    while chosen in taken:
        number += 1
        chosen = f"{base}_{number}"
    taken.add(chosen)
    return chosen


def _number(value: Value) -> int:
    return int(value) if isinstance(value, (int, float)) else 0
