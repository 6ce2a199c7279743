# SPDX-License-Identifier: Apache-2.0
"""Parse Slurm's `topology.yaml`: named topologies, each a tree of switches, blocks, or flat.

    - topology: default
      cluster_default: true
      tree:
        switches:
          - switch: spine
            children: leaf[1-2]
          - switch: leaf1
            nodes: node[01-32]

The topology with `cluster_default: true` is used, else the first tree or blocks.
"""

from __future__ import annotations

import re
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from ibprof.errors import InputError, UsageError, quote_found
from ibprof.text.host_lists import expand_hosts
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.listing import Listing
from ibprof_converter.fabric.slurm_listing import CORE, NamedLink, describe_assumptions, list_assumed

if TYPE_CHECKING:
    from yaml.nodes import Node

_SIGN = re.compile(rb"^[ \t]{0,9}(?:-[ \t]{1,9})?topology[ \t]{0,9}:", re.MULTILINE)
_KIND = re.compile(rb"^[ \t]{1,99}(?:tree|block|flat|ring|torus3d)[ \t]{0,9}:", re.MULTILINE)

_NOT_READ = ("ring", "torus3d", "flat")
"""Kinds of Slurm's topologies that list no switches."""


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
        kinds = [kind for each in topologies for kind in _NOT_READ if each.find(kind)]
        found = f"`{kinds[0]}`, which is not read: it lists no switches" if kinds else "none"
        raise InputError(path, 1, "a topology with `tree` or `block`", found)
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
        if not name:
            raise InputError(path, row.line, f"`{'switch' if is_tree else 'block'}:` with a name", "none")
        switches.append(name)
        if not below:
            continue
        try:
            others = expand_hosts(below)
        except UsageError as error:
            raise InputError(path, row.line, "names as node[01-04,7]", quote_found(below, 120)) from error
        switches += others if row.find("children") else ()
        links += [NamedLink(row.line, name, other) for other in others]
        if not is_tree:
            links.append(NamedLink(row.line, CORE, name))
    names = switches if is_tree else [*switches, CORE]
    return list_assumed(path, names, links, DamageLog(path), describe_assumptions("tree" if is_tree else "blocks"))
