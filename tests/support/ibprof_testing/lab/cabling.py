# SPDX-License-Identifier: Apache-2.0
"""Build fabrics (switches, hosts and cables between their ports), and write them as ibsim's input."""

from __future__ import annotations

import random
from itertools import count

SWITCH_GUID = 0x0002C90200400000
HOST_GUID = 0x0002C903000A0000
SWITCH_PORTS = 24


class Cabling:
    """A fabric under construction.

    Attributes:
        first_host: the name of the first host, on which OpenSM is to run.
    """

    def __init__(self, rate: str = "4xQDR") -> None:
        self.first_host = ""
        self._rate = rate
        self._names: dict[int, str] = {}
        self._cables: dict[int, dict[int, tuple[int, int]]] = {}
        self._switches = count(SWITCH_GUID, 8)
        self._hosts = count(HOST_GUID, 16)

    def add_switch(self, name: str) -> int:
        """Add a switch and return its GUID."""
        return self._add(next(self._switches), name)

    def add_host(self, name: str) -> int:
        """Add a host with one port and return its GUID."""
        self.first_host = self.first_host or name
        return self._add(next(self._hosts), name)

    def free_ports(self, guid: int) -> list[int]:
        """Return the ports of a node that have no cable."""
        ports = 1 if guid >= HOST_GUID else SWITCH_PORTS
        return [port for port in range(1, ports + 1) if port not in self._cables[guid]]

    def link(self, a: int, b: int, draw: random.Random | None = None) -> None:
        """Put a cable between the first free ports of two nodes, or between random free ports."""
        a_port, b_port = (draw.choice(free) if draw else free[0] for free in map(self.free_ports, (a, b)))
        self._cables[a][a_port], self._cables[b][b_port] = (b, b_port), (a, a_port)

    def text(self) -> str:
        """Return ibsim's input."""
        return "\n".join(map(self._stanza, self._names))

    def _add(self, guid: int, name: str) -> int:
        self._names[guid], self._cables[guid] = name, {}
        return guid

    def _stanza(self, guid: int) -> str:
        if guid >= HOST_GUID:
            head = f'caguid={guid:#x}\nCa\t1 "{_identity(guid)}"\t\t# "{self._names[guid]}"\n'
            own = "lid 0 lmc 0 "
        else:
            name = f'"{_identity(guid)}"\t\t# "{self._names[guid]}"'
            head = f"switchguid={guid:#x}({guid:x})\nSwitch\t{SWITCH_PORTS} {name} base port 0\n"
            own = ""
        cables = (
            f'[{port}]\t"{_identity(peer)}"[{other}]\t\t# {own}"{self._names[peer]}" lid 0 {self._rate}\n'
            for port, (peer, other) in sorted(self._cables[guid].items())
        )
        return f"vendid=0x2c9\ndevid=0x1003\nsysimgguid={guid:#x}\n{head}{''.join(cables)}"


def _identity(guid: int) -> str:
    return f"{'H' if guid >= HOST_GUID else 'S'}-{guid:016x}"


def fat_tree(leaves: int, spines: int, hosts_per_leaf: int, rate: str) -> Cabling:
    """Cable a two-level fat-tree, with one cable from each leaf to each spine.

    Hosts have names node01.., leaf switches leaf1.., spines spine1...
    """
    cabling = Cabling(rate)
    bottoms = [cabling.add_switch(f"leaf{number + 1}") for number in range(leaves)]
    tops = [cabling.add_switch(f"spine{number + 1}") for number in range(spines)]
    for number in range(leaves * hosts_per_leaf):
        cabling.link(cabling.add_host(f"node{number + 1:02d} HCA-1"), bottoms[number // hosts_per_leaf])
    for bottom in bottoms:
        for top in tops:
            cabling.link(bottom, top)
    return cabling


def random_tree(seed: int, leaves: int = 4, spines: int = 3, hosts: int = 6) -> Cabling:
    """Cable a random two-level tree: some cables are missing, some are double or triple, and ports are random."""
    draw = random.Random(seed)
    cabling = Cabling()
    tops = [cabling.add_switch(f"spine {number}") for number in range(spines)]
    bottoms = [cabling.add_switch(f"leaf {number}") for number in range(leaves)]
    for number in range(leaves * hosts):
        cabling.link(cabling.add_host(f"node{number:02d} HCA-1"), bottoms[number % leaves], draw)
    for bottom in bottoms:
        for top in draw.sample(tops, draw.randint(2, spines)):
            for _ in range(draw.randint(1, 3)):
                cabling.link(bottom, top, draw)
    return cabling
