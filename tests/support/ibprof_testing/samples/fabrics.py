# SPDX-License-Identifier: Apache-2.0
"""Read the fabrics in tests/data/fabrics, and the output of ibtracert for them."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.spread import Hop
from ibprof_converter.routing.subnet import Subnet, read_rail
from ibprof_testing.paths import DATA

FABRICS = DATA / "fabrics"

TRACED = (
    "testbed44", "quirks-small", "xgft3-512", "dualrail/rail1", "dualrail/rail2", "oversub-faulty", "xgft3-1296",
    "hypercube-4", "torus2d-5x4", "torus2d-5x4-t2qos", "dragonfly-72",
)  # fmt: skip
"""Samples that have an ibtracert.out."""

BY_BOTH_TOOLS = (*TRACED, "quirks-init")
"""Samples that have both the dumps of ibdiagnet and the dumps of OpenSM."""

IBDIAGNET = "ibdiagnet.lst"
OPENSM = "opensm-subnet.lst"
IBNETDISCOVER = "ibnetdiscover.out"
PORT_LIST = "ibnetdiscover-p.out"
LFTS_DUMP = "opensm-lfts.dump"
DUMP_FTS = "dump_fts.out"


def find_sample(sample: str, name: str) -> Path:
    """Find a file of a sample, plain or compressed."""
    plain = FABRICS / sample / name
    return plain if plain.exists() else plain.with_name(name + ".xz")


def read_sample_bytes(sample: str, name: str) -> bytes:
    """Return the uncompressed contents of a file of a sample."""
    path = find_sample(sample, name)
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def read_subnet(lst_path: str | PathLike[str], fdbs_path: str | PathLike[str] | None = None) -> Subnet:
    """Read or generate a fabric of one rail and its tables. Without `fdbs_path`, read the tables next to the links."""
    (files,) = find_rails([lst_path], [fdbs_path] if fdbs_path else [])
    return read_rail(files)


@cache
def load_sample(sample: str, lst: str) -> Subnet:
    """Read a sample's fabric and tables; `lst` selects the tool that dumped both."""
    return read_subnet(find_sample(sample, lst))


@dataclass(frozen=True)
class TracedHop:
    """A line of ibtracert: egress port of the previous node, then GUID and port of the node that the packet enters.

    `port_guid` is the node GUID of a switch, but the port GUID of a CA.
    """

    egress_port: int
    port_guid: int
    ingress_port: int


@dataclass(frozen=True)
class TracedPair:
    """Output of ibtracert for one pair of LIDs."""

    source_lid: int
    destination_lid: int
    source_guid: int
    hops: tuple[TracedHop, ...]


_FROM = re.compile(r"From \w+ \{0x([0-9a-f]{16})\} portnum \d+ lid .*")
_HOP = re.compile(r"\[(\d+)\] -> \w+ port \{0x([0-9a-f]{16})\}\[(\d+)\] lid .*")


def parse_ibtracert(text: str) -> Iterator[TracedPair]:
    """Read blocks: a line `$ ibtracert SOURCE DESTINATION`, the tool's output, and a line `# exit 0`."""
    for block in text.split("$ ibtracert ")[1:]:
        head, start, *lines, _, status = block.strip().split("\n")
        assert status == "# exit 0", block
        source, destination = map(int, head.split())
        begin = _FROM.fullmatch(start)
        hops = [_HOP.fullmatch(line) for line in lines]
        assert begin is not None
        yield TracedPair(
            source,
            destination,
            int(begin[1], 16),
            tuple(TracedHop(int(h[1]), int(h[2], 16), int(h[3])) for h in hops if h),
        )
        assert all(hops), block


@cache
def load_traces(sample: str) -> tuple[TracedPair, ...]:
    """Read the traces of all pairs of a sample."""
    return tuple(parse_ibtracert(read_sample_bytes(sample, "ibtracert.out").decode()))


def load_of_traces(fabric: Fabric, pairs: Sequence[TracedPair]) -> npt.NDArray[np.uint64]:
    """Count how often each pair's path uses each link direction, from ibtracert's lines: uint64 [pair, link, end]."""
    node_of_guid = {int(guid): node for node, guid in enumerate(fabric.node_guid)}
    node_of_guid |= dict(zip(map(int, fabric.port_guid), map(int, fabric.port_node), strict=True))
    end_at = {
        (int(fabric.link_node[link, end]), int(fabric.link_port[link, end])): (link, end)
        for link in range(fabric.links)
        for end in (0, 1)
    }
    loads = np.zeros((len(pairs), fabric.links, 2), np.uint64)
    for number, pair in enumerate(pairs):
        node = node_of_guid[pair.source_guid]
        for hop in pair.hops:
            loads[number][end_at[node, hop.egress_port]] += 1
            node = node_of_guid[hop.port_guid]
    return loads


def host_lids(fabric: Fabric) -> npt.NDArray[np.int32]:
    """Return the base LIDs of all CAs."""
    lids: npt.NDArray[np.int32] = fabric.port_lid[fabric.node_kind[fabric.port_node] == NodeKind.CA]
    return lids


def as_traced(fabric: Fabric, hop: Hop) -> TracedHop:
    """Return a hop as ibtracert prints it, with a CA's port GUID."""
    guids = {
        (int(node), int(number)): int(guid)
        for node, number, guid in zip(fabric.port_node, fabric.port_number, fabric.port_guid, strict=True)
        if node == hop.next_node
    }
    guid = guids.get((hop.next_node, hop.ingress_port), int(fabric.node_guid[hop.next_node]))
    return TracedHop(hop.egress_port, guid, hop.ingress_port)
