# SPDX-License-Identifier: Apache-2.0
"""Which lists of links in one folder are one fabric, its rails, or others; which `.far` belongs to a list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ibprof.errors import IbprofError
from ibprof_converter.fabric.db_csv import has_links_section, looks_like_db_csv
from ibprof_converter.fabric.dump_files import find_sibling, head_of, peek_dump, read_dump, strip_compression
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.link_reader import read_fabric
from ibprof_converter.fabric.node_names import host_name, is_aggregation_node, natural_key
from ibprof_converter.routing.far import is_far_of, looks_like_far

_SWITCH = re.compile(
    rb"\bswitchguid=0x([0-9A-Fa-f]{1,16})"  # ibnetdiscover
    rb"|\{ SW(?:-SM)? [^{}\n]{0,99}NodeGUID:([0-9A-Fa-f]{16})"  # .lst
    rb"|\bSW[ \t0-9]{1,30}0x([0-9A-Fa-f]{16})"  # ibnetdiscover -p
    rb'|^[ \t]{0,9}"[^\n]{0,256}", [^,\n]{0,99}, 0x([0-9A-Fa-f]{1,16}), LID [0-9]{1,5}\s*$'  # .net_dump
    rb"|^\"?[^\n]{0,256},[0-9]{1,3},2,[0-9]{1,3},[0-9]{1,3},0x[0-9A-Fa-f]{1,16},0x([0-9A-Fa-f]{1,16}),",  # NODES
    re.MULTILINE,
)


def choose_lists(lists: Sequence[tuple[int, Path]]) -> tuple[list[Path], list[str]]:
    """Choose the lists of links to read, one for each rail.

    Lists that have a switch in common are dumps of one subnet, of which the best is taken. Other subnets with the same
    hosts are rails.

    Args:
        lists: the rank of each list's format, the best first, and its path.

    Returns:
        The lists, in the natural order of their names; and those that are passed over, a sentence each.
    """
    subnets: list[tuple[set[int], list[tuple[bool, int, Path]]]] = []
    if len(lists) < 2:
        return [path for _, path in lists], []
    notes = []
    for rank, path in lists:
        switches, is_usable = _look_through(path)
        if not is_usable:
            notes.append(f"{path}: not used as a list of links, it has no section LINKS")
        same = [subnet for subnet in subnets if not switches or not subnet[0] or subnet[0] & switches]
        joined = (
            switches.union(*(subnet[0] for subnet in same)),
            [(not switches or not is_usable, rank, path), *(each for subnet in same for each in subnet[1])],
        )
        subnets = [subnet for subnet in subnets if subnet not in same] + [joined]
    # Text that has no switch and only looks like the best format comes last.
    best = [min(found)[-1] for _, found in subnets]
    if len(best) < 2:
        return best, notes
    chosen, passed_over = _choose_rails(best)
    return chosen, notes + passed_over


def _choose_rails(lists: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Choose the lists of one machine: the one with most hosts, and those that share half of their hosts with it."""
    hosts: dict[Path, set[str]] = {}
    notes = []
    for path in lists:
        try:
            hosts[path] = _find_host_names(path)
        except IbprofError as error:
            notes.append(f"passed over: {error}")
    if not hosts:
        return [lists[0]], []
    main = max(sorted(hosts), key=lambda path: len(hosts[path]))
    chosen = []
    for path, names in hosts.items():
        if path == main or 2 * len(names & hosts[main]) >= max(len(names), 1):
            chosen.append(path)
        else:
            notes.append(f"{path}: passed over, it lists another fabric than {main.name}; name it alone to use it")
    return sorted(chosen, key=lambda path: natural_key(path.name)), notes


def _look_through(path: Path) -> tuple[set[int], bool]:
    """Return NODE GUIDs of the switches of a list, empty if it cannot be read; and whether it can have links."""
    try:
        data = read_dump(path)
    except IbprofError:
        return set(), True
    found = {int(next(filter(None, groups)), 16) for groups in _SWITCH.findall(data)}
    return found, not looks_like_db_csv(head_of(data)) or has_links_section(data)


def _find_host_names(path: Path) -> set[str]:
    fabric = read_fabric(path)
    is_adapter = (fabric.node_kind == NodeKind.CA).tolist()
    named = (name for name, adapter in zip(fabric.node_name, is_adapter, strict=True) if adapter)
    return {host_name(name) for name in named if not is_aggregation_node(name)}


def find_far(lst_path: Path, candidates: Sequence[Path]) -> Path | None:
    """Return the `.far` that belongs to a list of links: the one of the same stem, else one that has its switches.

    Args:
        lst_path: the list of links.
        candidates: to choose from, other than the one of the same stem.
    """
    stem = strip_compression(lst_path).rpartition(".")[0] or strip_compression(lst_path)
    sibling = find_sibling(lst_path, f"{stem}.far")
    if sibling is not None and looks_like_far(peek_dump(sibling)):
        return sibling
    if not candidates:
        return None
    switches, _ = _look_through(lst_path)
    return next((each for each in candidates if not switches or is_far_of(each, switches)), None)
