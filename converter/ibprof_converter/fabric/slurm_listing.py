# SPDX-License-Identifier: Apache-2.0
r"""Parse Slurm's topology: `topology.conf`, the output of `scontrol show topology`, and `topology.yaml`.

    SwitchName=leaf1 Nodes=node[01-32]
    SwitchName=spine Switches=leaf[1-2] LinkSpeed=100
    SwitchName=spine Level=1 LinkSpeed=1 Nodes=node[01-64] Switches=leaf[1-2]
    BlockName=block1 BlockIndex=0 Nodes=node[01-18] BlockSize=18

`topology.yaml` has the same data. ibprof reads the topology with `cluster_default: true`, else the first topology:

    - topology: default
      cluster_default: true
      tree:
        switches:
          - switch: spine
            children: leaf[1-2]
          - switch: leaf1
            nodes: node[01-32]

`scontrol show topoconf` prints all kinds for each topology. Unused kinds are empty (`block: {}`).

All users of a cluster can read these files, which name only switches and hosts. If a line of `scontrol` has Switches
and Nodes, Nodes are all hosts below these switches. A block counts as a switch. An assumed switch joins all blocks.

Hosts' links are assumed to run at `HOST_GBPS`. All uplinks of a switch are assumed to have one speed. Together, the
uplinks are as fast as the links of all hosts below the switch: no link is oversubscribed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING

from ibprof.errors import InputError, UsageError, quote_found
from ibprof.text.host_lists import expand_hosts
from ibprof.text.quantities import count_of
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.fabric_graph import NodeKind, Origin
from ibprof_converter.fabric.listing import LAST_UNICAST_LID, End, LinkRow, Listing, list_rows

if TYPE_CHECKING:
    from yaml.nodes import Node

CORE = "(assumed core of all blocks)"

_SIGN = re.compile(rb"^[ \t]{0,9}(?:SwitchName|BlockName|RingName|TorusName)=", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"([A-Za-z]+)=(\S*)")
_OTHERS = re.compile(r"(?:AggregatedBlock|BlockSizes|TopologyParam|AliasName|BlockSize)=", re.IGNORECASE)
_YAML_SIGN = re.compile(rb"^[ \t]{0,9}(?:-[ \t]{1,9})?topology[ \t]{0,9}:", re.MULTILINE)
_YAML_KIND = re.compile(rb"^[ \t]{1,99}(?:tree|block|flat|ring|torus3d)[ \t]{0,9}:", re.MULTILINE)
_YAML_NULL = "tag:yaml.org,2002:null"
_NAME = re.compile(r"[A-Za-z0-9][\w.:-]*")
_NO_NAMES = ("(null)", "null", "none", "~")
_NOT_READ = ("ring", "torus3d", "flat")
"""Kinds of Slurm topologies that list no switches."""

_FORM = "SwitchName=NAME Nodes=.. or Switches=.., or BlockName=NAME Nodes=.."


HOST_GBPS = 100.0

_MOST_PORTS = 254
"""Largest number of ports of a switch with forwarding tables."""

_FIRST_GUID = 0x5000 << 48


def describe_assumptions(found: str) -> str:
    """Return a sentence on data that a list of names lacks, and that ibprof assumes."""
    return (
        f"{found} has only levels, switches and hosts; speeds are assumed: {HOST_GBPS:g} Gb/s for a host's link. "
        "A switch's uplinks together are as fast as the links of all hosts below. A listed switch may stand for "
        "several switches"
    )


def looks_like_slurm(head: bytes) -> bool:
    """Return true if the beginning of a file is a `topology.conf`, or output of `scontrol show topology`."""
    return _SIGN.search(head) is not None


def parse_slurm(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the lines.

    Raises:
        InputError: no line lists nodes or switches.
    """
    log = DamageLog(path)
    described: list[str] = []
    switches: list[str] = []
    links: list[NamedLink] = []
    is_block = False
    for number, line in _join_lines(data):
        words = {key.lower(): value for key, value in _WORD.findall(line)}
        name = words.get("switchname") or words.get("blockname")
        below = words.get("switches") or words.get("nodes")
        if other := next((key for key in ("RingName", "TorusName") if key.lower() in words), None):
            raise InputError(path, number, _FORM, f"{other}=, which is not read: it lists no switches")
        described += [name] if name else []
        if not (name and below):
            is_empty = "blockname" in words and set(words) <= {
                "blockname",
                "blockindex",
                "blocksize",
            }  # topograph fills up groups of blocks by blocks without hosts
            if not (_OTHERS.match(line) or is_empty):
                log.skip(number, line.encode(), _FORM)
            continue
        try:
            others = _expand_names(path, number, below)
        except InputError as error:
            log.lose(number, error)
            continue
        # Add switches that have no line but are named in other lines.
        switches += [name, *(others if "switches" in words else ())]
        links += [NamedLink(number, name, other) for other in others]
        if "blockname" in words:
            is_block = True
            links.append(NamedLink(number, CORE, name))
    _miss_descriptions(switches, described, links, log)
    found = "Slurm's blocks" if is_block else "Slurm's tree"
    return list_assumed(path, [*switches, CORE] if is_block else switches, links, log, describe_assumptions(found))


def _miss_descriptions(
    switches: Sequence[str], described: Sequence[str], links: Sequence[NamedLink], log: DamageLog
) -> None:
    """Note the switches that are only named in other switches' lines: the hosts of these switches are missing."""
    missing = set(switches) - set(described)
    for link in links:
        if link.other in missing:
            missing.remove(link.other)
            log.miss(f"no line describes switch {link.other!r}, so its hosts are missing", lines=[link.line])


def _expand_names(path: str | PathLike[str], line: int, expression: str) -> list[str]:
    """Return the names in a list; none for Slurm's text for an empty list.

    Raises:
        InputError: the text is not a list of names.
    """
    if expression.lower() in _NO_NAMES:
        return []
    try:
        names = expand_hosts(expression)
    except UsageError as error:
        raise InputError(path, line, "names as node[01-04,7]", quote_found(expression, 120)) from error
    if wrong := next((name for name in names if not _NAME.fullmatch(name)), None):
        raise InputError(path, line, "names as node[01-04,7]", quote_found(wrong, 120))
    return names


def _join_lines(data: bytes) -> list[tuple[int, str]]:
    """Return the lines with content, without comments; join a line that ends with a backslash with the next line."""
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


@dataclass(frozen=True, slots=True)
class NamedLink:
    """A link between a switch and a host or another switch.

    Attributes:
        other: name of the host or of the other switch.
    """

    line: int
    switch: str
    other: str


def list_assumed(
    path: str | PathLike[str], switches: Sequence[str], links: Sequence[NamedLink], log: DamageLog, remark: str
) -> Listing:
    """Return a listing of links between named switches and hosts. Hosts have LIDs 1, 2, ... in the order of `links`.

    Args:
        switches: names of all switches; all other names are hosts.
        links: the links; a link between two switches may be listed from both ends.
        remark: a sentence on data that the format lacks.

    Raises:
        InputError: a switch has more than `_MOST_PORTS` links, or there are no hosts.
    """
    is_switch = set(switches)
    links = _list_once(links)
    hosts = list(dict.fromkeys(link.other for link in links if link.other not in is_switch))
    if not hosts:
        raise log.first_error or InputError(
            path, None, "switches with hosts", f"{count_of(len(is_switch), 'switch')}, no hosts"
        )
    lid = {name: number for number, name in enumerate([*hosts, *dict.fromkeys(switches)], 1)}
    further = len(lid)  # the last LID; further ports of a host at several switches get new LIDs
    if len(lid) > LAST_UNICAST_LID:
        raise InputError(path, None, f"at most {LAST_UNICAST_LID} hosts and switches", str(len(lid)))
    gbps = _assume_speeds(links, is_switch)
    ports: dict[str, int] = {}
    rows = []
    for link, speed in zip(links, gbps, strict=True):
        ends = []
        for name in (link.switch, link.other):
            ports[name] = port = ports.get(name, 0) + 1
            if port > _MOST_PORTS:
                raise InputError(path, link.line, f"at most {_MOST_PORTS} links of a node", f"one more, of {name!r}")
            guid = _FIRST_GUID + lid[name]
            kind, own = (NodeKind.SWITCH if name in is_switch else NodeKind.CA), lid[name]
            if kind == NodeKind.CA and port > 1:
                further += 1
                own = further
            ends.append(End(kind, _MOST_PORTS, guid, guid, _FIRST_GUID + own, name, own, port, 0))
        rows.append(LinkRow(link.line, ends[0], ends[1], True, 0, speed))
    return replace(list_rows(rows, log), remarks=(remark,), origin=Origin.NAMES)


def _list_once(links: Sequence[NamedLink]) -> list[NamedLink]:
    """Return each link once, also if it is listed from both ends. Leave out links of a switch to itself."""
    seen: set[frozenset[str]] = set()
    kept = []
    for link in links:
        pair = frozenset((link.switch, link.other))
        if pair in seen or len(pair) == 1:
            continue
        seen.add(pair)
        kept.append(link)
    return kept


def _assume_speeds(links: Sequence[NamedLink], is_switch: set[str]) -> list[float]:
    neighbours: dict[str, list[str]] = {}
    behind = dict.fromkeys(is_switch, 0.0)
    for link in links:
        if link.other not in is_switch:
            behind[link.switch] += 1
            continue
        neighbours.setdefault(link.switch, []).append(link.other)
        neighbours.setdefault(link.other, []).append(link.switch)
    level = {name: 0 for name in is_switch if behind[name]}
    order = list(level)
    for name in order:
        for other in neighbours.get(name, ()):
            if other not in level:
                level[other] = level[name] + 1
                order.append(other)
    share: dict[frozenset[str], float] = {}
    for name in order:
        above = [other for other in neighbours.get(name, ()) if level[other] > level[name]]
        for other in above:
            share[frozenset((name, other))] = behind[name] / len(above)
            behind[other] += behind[name] / len(above)
    found = []
    for link in links:
        pair = frozenset((link.switch, link.other))
        # A link between two switches of a level is as fast as all host links below the switch with more hosts.
        hosts = 1.0 if link.other not in is_switch else share.get(pair) or max(behind[name] for name in pair) or 1.0
        found.append(HOST_GBPS * hosts)
    return found


def looks_like_slurm_yaml(head: bytes) -> bool:
    """Return true if the beginning of a file is a `topology.yaml`."""
    return _YAML_SIGN.search(head) is not None and _YAML_KIND.search(head) is not None


def parse_slurm_yaml(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse `topology.yaml`.

    Raises:
        InputError: the file is not YAML, has neither tree nor blocks, or has a host at two switches.
    """
    import yaml  # noqa: PLC0415  (slow to import)

    try:
        root = yaml.compose(data.decode("utf-8-sig", "backslashreplace"), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or "other text"
        raise InputError(path, mark.line + 1 if mark else None, "YAML", what) from error
    topologies = [_YamlMapping(path, each) for each in (root.value if isinstance(root, yaml.SequenceNode) else [root])]
    known = [each for each in topologies if each.find("tree") or each.find("block")]
    if not known:
        kinds = [kind for each in topologies for kind in _NOT_READ if each.find(kind)]
        found = f"`{kinds[0]}`, which is not read: it lists no switches" if kinds else "none"
        raise InputError(path, 1, "a topology with `tree` or `block`", found)
    chosen = next((each for each in known if each.read("cluster_default").lower() == "true"), known[0])
    others = [repr(each.read("topology")) for each in topologies if each is not chosen]
    listing = _list_topology(path, chosen)
    notes = (f"topology {chosen.read('topology')!r} is used, not {', '.join(others)}",) if others else ()
    return replace(listing, remarks=(*listing.remarks, *notes))


class _YamlMapping:
    def __init__(self, path: str | PathLike[str], node: Node | None) -> None:
        from yaml import MappingNode  # noqa: PLC0415  (slow to import)

        if not isinstance(node, MappingNode):
            line = node.start_mark.line + 1 if node is not None else 1
            raise InputError(path, line, "a mapping (`key: value`)", "something else")
        self._path = path
        self._values: dict[str, Node] = {str(key.value): value for key, value in node.value}
        self.line = node.start_mark.line + 1

    def find(self, key: str) -> Node | None:
        """Return the value of a key; None if the key is missing or the value is empty."""
        value = self._values.get(key)
        return value if value is not None and value.value and value.tag != _YAML_NULL else None

    def read(self, key: str) -> str:
        """Return a value as text; empty if the key is missing."""
        value = self.find(key)
        return value.value if value is not None and isinstance(value.value, str) else ""

    def rows(self, key: str) -> list[_YamlMapping]:
        """Return the mappings in the list of a key; raise an InputError if the value is not a list."""
        from yaml import SequenceNode  # noqa: PLC0415  (slow to import)

        value = self._values.get(key)
        if not isinstance(value, SequenceNode):
            line = value.start_mark.line + 1 if value is not None else self.line
            raise InputError(self._path, line, f"`{key}:` with a list", "none")
        return [_YamlMapping(self._path, each) for each in value.value]


def _list_topology(path: str | PathLike[str], topology: _YamlMapping) -> Listing:
    is_tree = topology.find("tree") is not None
    part = _YamlMapping(path, topology.find("tree") or topology.find("block"))
    log = DamageLog(path)
    described: list[str] = []
    switches: list[str] = []
    links: list[NamedLink] = []
    for row in part.rows("switches" if is_tree else "blocks"):
        name = row.read("switch" if is_tree else "block")
        below = row.read("children") or row.read("nodes")
        if not name:
            raise InputError(path, row.line, f"`{'switch' if is_tree else 'block'}:` with a name", "none")
        described.append(name)
        switches.append(name)
        if not below:
            continue
        others = _expand_names(path, row.line, below)
        switches += others if row.find("children") else ()
        links += [NamedLink(row.line, name, other) for other in others]
        if not is_tree:
            links.append(NamedLink(row.line, CORE, name))
    names = switches if is_tree else [*switches, CORE]
    remark = describe_assumptions("Slurm's tree" if is_tree else "Slurm's blocks")
    _miss_descriptions(switches, described, links, log)
    return list_assumed(path, names, links, log, remark)
