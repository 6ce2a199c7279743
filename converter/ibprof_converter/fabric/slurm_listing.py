# SPDX-License-Identifier: Apache-2.0
r"""Parse Slurm's topology: `topology.conf`, and the output of `scontrol show topology`; trees and blocks.

    SwitchName=leaf1 Nodes=node[01-32]
    SwitchName=spine Switches=leaf[1-2] LinkSpeed=100
    SwitchName=spine Level=1 LinkSpeed=1 Nodes=node[01-64] Switches=leaf[1-2]
    BlockName=block1 BlockIndex=0 Nodes=node[01-18] BlockSize=18

Any user of a cluster can read it. It has switches and hosts alone. A line with both Switches and Nodes is of
`scontrol`, whose Nodes are those of all switches below. A block is taken as a switch; an assumed one joins all blocks.
"""

from __future__ import annotations

import re
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from ibprof.errors import InputError, UsageError, quote_found
from ibprof.text.host_expressions import expand_hosts
from ibprof_converter.fabric.assumed_links import HOST_GBPS, NamedLink, list_assumed
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.listing import Listing

if TYPE_CHECKING:
    from yaml.nodes import Node

CORE = "(assumed core of all blocks)"

_SIGN = re.compile(rb"^[ \t]{0,9}(?:SwitchName|BlockName)=", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"([A-Za-z]+)=(\S*)")
_OTHERS = re.compile(r"(?:BlockSizes|TopologyParam|AliasName|BlockSize)=", re.IGNORECASE)
_FORM = "SwitchName=NAME Nodes=.. or Switches=.., or BlockName=NAME Nodes=.."


def describe_assumptions(found: str) -> str:
    """Return a sentence on what Slurm's topology lacks."""
    return (
        f"Slurm's {found} has levels, switches and hosts alone; speeds are assumed: {HOST_GBPS:g} Gb/s for hosts, and "
        "for switches what all hosts below them have, so that nothing is oversubscribed; switches may stand for several"
    )


def looks_like_slurm(head: bytes) -> bool:
    """Return whether a file's beginning is like `topology.conf` or `scontrol show topology`."""
    return _SIGN.search(head) is not None


def parse_slurm(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the lines.

    Args:
        path: for messages.
        data: contents of the file.

    Raises:
        InputError: no line lists nodes or switches, or a host is at two switches.
    """
    log = DamageLog(path)
    switches: list[str] = []
    links: list[NamedLink] = []
    is_block = False
    for number, line in _join_lines(data):
        words = {key.lower(): value for key, value in _WORD.findall(line)}
        name = words.get("switchname") or words.get("blockname")
        below = words.get("switches") or words.get("nodes")
        if not (name and below):
            if not _OTHERS.match(line):
                log.skip(number, line.encode(), _FORM)
            continue
        try:
            others = expand_hosts(below)
        except UsageError:
            log.lose(number, InputError(path, number, "names as node[01-04,7]", quote_found(below, 120)))
            continue
        # A switch may have no line of its own.
        switches += [name, *(others if "switches" in words else ())]
        links += [NamedLink(number, name, other) for other in others]
        if "blockname" in words:
            is_block = True
            links.append(NamedLink(number, CORE, name))
    found = "blocks" if is_block else "tree"
    return list_assumed(path, [*switches, CORE] if is_block else switches, links, log, describe_assumptions(found))


def _join_lines(data: bytes) -> list[tuple[int, str]]:
    """Return the lines with content, without comments; a backslash at the end continues a line."""
    lines: list[tuple[int, str]] = []
    begun = ""
    first = 0
    for number, line in enumerate(data.decode("utf-8-sig", "backslashreplace").splitlines(), 1):
        first = first or number
        content = line.split("#", 1)[0].rstrip()
        begun += content.lstrip() if begun.endswith(",") else content
        if begun.endswith("\\"):
            begun = begun[:-1]
            continue
        if begun.strip():
            lines.append((first, begun.strip()))
        begun, first = "", 0
    return lines


_SIGN = re.compile(rb"^[ \t]{0,9}(?:-[ \t]{1,9})?topology[ \t]{0,9}:", re.MULTILINE)
_KIND = re.compile(rb"^[ \t]{1,99}(?:tree|block)[ \t]{0,9}:", re.MULTILINE)


def looks_like_slurm_yaml(head: bytes) -> bool:
    """Return whether a file's beginning is like `topology.yaml`."""
    return _SIGN.search(head) is not None and _KIND.search(head) is not None


def parse_slurm_yaml(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the topology of the cluster.

    Args:
        path: for messages.
        data: contents of the file.

    Raises:
        InputError: it is no YAML, has no tree and no blocks, or a host is at two switches.
    """
    import yaml  # noqa: PLC0415  (slow to import)

    try:
        root = yaml.compose(data.decode("utf-8-sig", "backslashreplace"), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or "other text"
        raise InputError(path, mark.line + 1 if mark else None, "YAML", what) from error
    topologies = [_Mapping(path, each) for each in (root.value if isinstance(root, yaml.SequenceNode) else [root])]
    known = [each for each in topologies if each.find("tree") or each.find("block")]
    if not known:
        raise InputError(path, 1, "a topology with `tree` or `block`", "none")
    chosen = next((each for each in known if each.read("cluster_default").lower() == "true"), known[0])
    others = [repr(each.read("topology")) for each in topologies if each is not chosen]
    listing = _list(path, chosen)
    notes = (f"topology {chosen.read('topology')!r} is used, not {', '.join(others)}",) if others else ()
    return replace(listing, remarks=(*listing.remarks, *notes))


class _Mapping:
    """A mapping of a YAML document, whose values are asked for by key."""

    def __init__(self, path: str | PathLike[str], node: Node | None) -> None:
        from yaml import MappingNode  # noqa: PLC0415  (slow to import)

        if not isinstance(node, MappingNode):
            line = node.start_mark.line + 1 if node is not None else 1
            raise InputError(path, line, "a mapping (`key: value`)", "something else")
        self._path = path
        self._values: dict[str, Node] = {str(key.value): value for key, value in node.value}
        self.line = node.start_mark.line + 1

    def find(self, key: str) -> Node | None:
        """Return the value of a key; None without one."""
        return self._values.get(key)

    def read(self, key: str) -> str:
        """Return a value as text; empty without one."""
        value = self._values.get(key)
        return value.value if value is not None and isinstance(value.value, str) else ""

    def rows(self, key: str) -> list[_Mapping]:
        """Return the mappings of a sequence; an error names its line if it is none."""
        from yaml import SequenceNode  # noqa: PLC0415  (slow to import)

        value = self._values.get(key)
        if not isinstance(value, SequenceNode):
            line = value.start_mark.line + 1 if value is not None else self.line
            raise InputError(self._path, line, f"`{key}:` with a list", "none")
        return [_Mapping(self._path, each) for each in value.value]


def _list(path: str | PathLike[str], topology: _Mapping) -> Listing:
    is_tree = topology.find("tree") is not None
    part = _Mapping(path, topology.find("tree") or topology.find("block"))
    switches: list[str] = []
    links: list[NamedLink] = []
    for row in part.rows("switches" if is_tree else "blocks"):
        name = row.read("switch" if is_tree else "block")
        below = row.read("children") or row.read("nodes")
        if not (name and below):
            raise InputError(path, row.line, "a name, and `children` or `nodes`", "less")
        try:
            others = expand_hosts(below)
        except UsageError as error:
            raise InputError(path, row.line, "names as node[01-04,7]", quote_found(below, 120)) from error
        switches += [name, *(others if row.find("children") else ())]
        links += [NamedLink(row.line, name, other) for other in others]
        if not is_tree:
            links.append(NamedLink(row.line, CORE, name))
    names = switches if is_tree else [*switches, CORE]
    return list_assumed(path, names, links, DamageLog(path), describe_assumptions("tree" if is_tree else "blocks"))
