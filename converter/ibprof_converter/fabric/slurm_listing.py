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
from os import PathLike

from ibprof.errors import InputError, UsageError, quote_found
from ibprof.text.host_lists import expand_hosts
from ibprof_converter.fabric.assumed_links import HOST_GBPS, NamedLink, list_assumed
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.listing import Listing

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
