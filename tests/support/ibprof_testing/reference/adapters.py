# SPDX-License-Identifier: Apache-2.0
"""Compute the loads of hosts with several adapters in one subnet, without any code of ibprof.

Dumps are read into dictionaries of ports. Each packet's path is followed separately.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_END = re.compile(
    r"\{ (\S+) Ports:\S+ SystemGUID:\S+ NodeGUID:([0-9A-Fa-f]+) PortGUID:\S+ "
    r".*?\{(.*?)\} LID:([0-9A-Fa-f]+) PN:([0-9A-Fa-f]+) \}"
)
_HEAD = re.compile(r"\S+ Switch 0x([0-9A-Fa-f]+)")
_ENTRY = re.compile(r"0x([0-9A-Fa-f]{4}) : (\d{3})")

Port = tuple[int, int]
"""A port: GUID of the node, and number of the port on the node."""


@dataclass
class Dump:
    """A fabric, as its dumps describe it.

    Attributes:
        far: the port at the other end of each port's cable.
        tables: GUID of the switch -> destination LID -> egress port.
        lid: description of the adapter -> its LID.
        at: LID of the adapter -> its GUID and port.
    """

    far: dict[Port, Port] = field(default_factory=dict)
    tables: dict[int, dict[int, int]] = field(default_factory=dict)
    lid: dict[str, int] = field(default_factory=dict)
    at: dict[int, Port] = field(default_factory=dict)

    def adapters(self, host: str) -> list[int]:
        """Return the LIDs of a host's adapters, sorted by the number at the end of the adapters' names."""
        found = [(int(name.rsplit("_", 1)[1]), lid) for name, lid in self.lid.items() if name.split()[0] == host]
        return [lid for _, lid in sorted(found)]

    def trace(self, source: int, destination: int) -> list[Port]:
        """Return the ports that send a packet on the path between two LIDs. The source adapter's port is the first."""
        sends = self.at[source]
        path = []
        while True:
            path.append(sends)
            node, _ = self.far[sends]
            if node == self.at[destination][0]:
                return path
            assert len(path) < 20, "a loop"
            sends = (node, self.tables[node][destination])


def read_dump(links: Path, tables: Path) -> Dump:
    """Read a list of links and forwarding tables in the formats of ibdiagnet and OpenSM."""
    dump = Dump()
    for line in links.read_text().splitlines():
        ends = _END.findall(line)
        if not ends:
            continue
        assert len(ends) == 2, line
        ports = [(int(guid, 16), int(port, 16)) for _, guid, _, _, port in ends]
        dump.far[ports[0]], dump.far[ports[1]] = ports[1], ports[0]
        for (kind, _, name, lid, _), port in zip(ends, ports, strict=True):
            if kind.startswith("CA"):
                dump.lid[name], dump.at[int(lid, 16)] = int(lid, 16), port
    for line in tables.read_text().splitlines():
        if head := _HEAD.match(line):
            table = dump.tables.setdefault(int(head[1], 16), {})
        elif entry := _ENTRY.match(line):
            table[int(entry[1], 16)] = int(entry[2])
    return dump


def add_up(dump: Dump, flows: Iterable[tuple[int, int, int]]) -> Counter[Port]:
    """Return the bytes that each port sends, for flows of (source LID, destination LID, bytes)."""
    loads: Counter[Port] = Counter()
    for source, destination, amount in flows:
        for port in dump.trace(source, destination):
            loads[port] += amount
    return loads


def flows_by_rank(
    dump: Dump, host_of_rank: list[str], pairs: Iterable[tuple[int, int, int]]
) -> Iterable[tuple[int, int, int]]:
    """Convert (rank, rank, bytes) to flows (LID, LID, bytes): the n-th rank of a host uses the host's n-th adapter."""
    number = [host_of_rank[:rank].count(host) for rank, host in enumerate(host_of_rank)]
    for source, destination, amount in pairs:
        if host_of_rank[source] != host_of_rank[destination]:
            one, other = dump.adapters(host_of_rank[source]), dump.adapters(host_of_rank[destination])
            yield one[number[source] % len(one)], other[number[destination] % len(other)], amount


def read_sent(links: Path) -> Counter[Port]:
    """Return the bytes that each port sends, from a links.csv. Ports that send nothing are left out."""
    with links.open(newline="") as file:
        return sum_sent(csv.DictReader(file))


def sum_sent(rows: Iterable[dict[str, str]]) -> Counter[Port]:
    """Return the bytes that each port sends, from rows of links.csv."""
    loads: Counter[Port] = Counter()
    for row in rows:
        for end in "ab":
            loads[int(row[f"{end}_guid"], 16), int(row[f"{end}_port"])] += int(row[f"{end}_bytes"])
    return +loads
