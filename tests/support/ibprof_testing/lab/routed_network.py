# SPDX-License-Identifier: Apache-2.0
"""Build fabrics from network namespaces. Switches route packets as the forwarding tables say.

The hosts of `hosts.py` get one adapter on each rail. Launchers use `eth0`, so only MPI's bytes are on the rails. A
switch is a namespace with a route (/32) to each host. A cable is a pair of virtual devices with a token bucket at both
ends. The devices' queues lose no packet, like InfiniBand with its credits. Packets carry 4096 bytes.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables
from ibprof_lab.topology.outputs.inferred_fabric import write_fdbs, write_lst
from ibprof_testing.lab import hosts as lab
from ibprof_testing.lab.plans import Cable, Plan

PAYLOAD = 4096
"""Bytes of data in a full packet."""

HEADERS = 14 + 20 + 32
"""Bytes of headers in each packet: Ethernet, IPv4, TCP with time stamps."""

_MTU = PAYLOAD + HEADERS - 14
_BURST = 2 * (PAYLOAD + HEADERS)
_QUEUE = 64 << 20
_NEXT = "169.254.0.1"
"""Address of the other end of each cable, the same at all nodes."""

_NO_IPV6 = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
_SWITCH_SETTINGS = (
    *_NO_IPV6,
    "net.ipv4.ip_forward=1",
    "net.ipv4.conf.all.rp_filter=0",
    "net.ipv4.conf.default.rp_filter=0",
)
_HOST_SETTINGS = (
    *_NO_IPV6,
    # Socket buffers of twice the capacity of the longest route, so that all packets in flight fit into the queues.
    "net.ipv4.tcp_rmem=4096 98304 98304",
    "net.ipv4.tcp_wmem=4096 98304 98304",
    # No packet is lost, so TCP must not retransmit packets that wait in a queue.
    "net.ipv4.tcp_early_retrans=0",
    "net.ipv4.tcp_slow_start_after_idle=0",
    "net.ipv4.tcp_no_metrics_save=1",
    "net.ipv4.conf.all.rp_filter=0",
    "net.ipv4.conf.default.rp_filter=0",
)


class RoutedRail(Protocol):
    """A fabric and its forwarding tables."""

    @property
    def fabric(self) -> Fabric:
        """Nodes and links, with rates."""

    @property
    def tables(self) -> ForwardingTables:
        """The forwarding tables of the fabric's switches."""


Direction = tuple[int, str, int]
"""A link direction: rail, name of the sending node, port of the sending node."""


@dataclass(frozen=True, slots=True)
class RoutedNetwork:
    """A running network.

    Attributes:
        hosts: the network's hosts.
        rails: the network's rails.
    """

    hosts: lab.Hosts
    rails: tuple[RoutedRail, ...]

    def write_dumps(self, folder: Path) -> list[Path]:
        """Write the dumps of the rails (see `write_dumps`); return the .lst files."""
        return write_dumps(self.rails, folder)

    def count_bytes(self) -> dict[Direction, int]:
        """Return the bytes that each link direction has carried, including headers."""
        found: dict[Direction, int] = {}
        for rail, each in enumerate(self.rails):
            devices = _group(_ends(self, rail))
            for namespace, ends in devices.items():
                text = lab.run_ip("-n", namespace, "-s", "-j", "link")
                sent = {one["ifname"]: one["stats64"]["tx"]["bytes"] for one in json.loads(text)}
                for device, node, port in ends:
                    found[rail, each.fabric.node_name[node], port] = sent[device]
        return found

    def find_lost(self) -> int:
        """Return the number of packets that queues have dropped."""
        lost = 0
        for rail in range(len(self.rails)):
            for namespace in _group(_ends(self, rail)):
                done = subprocess.run(
                    ["tc", "-n", namespace, "-s", "-j", "qdisc"], capture_output=True, text=True, check=True
                )
                lost += sum(one.get("drops", 0) for one in json.loads(done.stdout))
        return lost


def write_dumps(rails: Sequence[RoutedRail], folder: Path) -> list[Path]:
    """Write rail0.lst, rail0.fdbs, rail1.lst, ..., like dumps of real rails; return the .lst files."""
    lists = []
    for number, rail in enumerate(rails):
        lists.append(folder / f"rail{number}.lst")
        with lists[-1].open("w") as file:
            write_lst(file, rail.fabric, "a network of namespaces")
        with lists[-1].with_suffix(".fdbs").open("w") as file:
            write_fdbs(file, rail.tables)
    return lists


def host_names(rail: RoutedRail) -> tuple[str, ...]:
    """Return the names of a rail's hosts, in the order of the rail's nodes."""
    return tuple(rail.fabric.node_name[node].split()[0] for node in _hosts(rail.fabric))


@contextmanager
def up(rails: Sequence[RoutedRail], folder: Path) -> Iterator[RoutedNetwork]:
    """Start a network, and remove it at the end.

    Args:
        rails: rails with the same hosts. The link rates are data rates, without headers.
        folder: an empty folder.

    Raises:
        LabError: this machine cannot build the network.
        MissingError: a program is missing, or the user is not root.
    """
    names = host_names(rails[0])
    plan = Plan(names, tuple(Cable(name, "switch") for name in names))
    with ExitStack() as stack:
        network = RoutedNetwork(stack.enter_context(lab.up(plan, folder)), tuple(rails))
        for number in range(len(rails)):
            _build(network, number, stack)
        yield network


# -- building


def _hosts(fabric: Fabric) -> list[int]:
    return [int(node) for node in np.flatnonzero(fabric.node_kind == NodeKind.CA)]


def _switches(fabric: Fabric) -> list[int]:
    return [int(node) for node in np.flatnonzero(fabric.node_kind == NodeKind.SWITCH)]


def _namespace(network: RoutedNetwork, rail: int, node: int) -> str:
    fabric = network.rails[rail].fabric
    name = fabric.node_name[node]
    is_switch = fabric.node_kind[node] == NodeKind.SWITCH
    return network.hosts.namespace(f"rail{rail}-{name.replace(' ', '-')}" if is_switch else name.split()[0])


def _device(fabric: Fabric, rail: int, node: int, port: int) -> str:
    return f"port{port}" if fabric.node_kind[node] == NodeKind.SWITCH else f"rail{rail}"


def _hardware(rail: int, node: int, port: int) -> str:
    return f"02:1b:{rail:02x}:{node >> 8:02x}:{node & 255:02x}:{port:02x}"


def _ends(network: RoutedNetwork, rail: int) -> Iterator[tuple[str, str, int, int]]:
    """Yield namespace, device, node and port of each end of each link."""
    fabric = network.rails[rail].fabric
    for nodes, ports in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True):
        for node, port in zip(nodes, ports, strict=True):
            yield _namespace(network, rail, node), _device(fabric, rail, node, port), node, port


def _group(ends: Iterator[tuple[str, str, int, int]]) -> dict[str, list[tuple[str, int, int]]]:
    found: dict[str, list[tuple[str, int, int]]] = {}
    for namespace, device, node, port in ends:
        found.setdefault(namespace, []).append((device, node, port))
    return found


def _batch(namespace: str | None, lines: Sequence[str], program: str = "ip") -> None:
    words = [program, *(["-n", namespace] if namespace else []), "-batch", "-"]
    done = subprocess.run(words, input="".join(lines), capture_output=True, text=True, check=False)
    if done.returncode:
        raise lab.LabError(f"{' '.join(words)}: {done.stderr.strip()}")


def _set(namespace: str, settings: Sequence[str]) -> None:
    lab.run_ip("netns", "exec", namespace, "sysctl", "-qw", *settings)


def _build(network: RoutedNetwork, rail: int, stack: ExitStack) -> None:
    fabric = network.rails[rail].fabric
    for node in _switches(fabric):
        namespace = _namespace(network, rail, node)
        stack.callback(lab.take_down, namespace)
        lab.run_ip("netns", "add", namespace)
        # The kernel accepts a next hop only after an address is set.
        lab.run_ip("-n", namespace, "link", "set", "lo", "up")
        _set(namespace, _SWITCH_SETTINGS)
    ends = list(_ends(network, rail))
    cables = []
    for (one, device, *_), (other, far, *_) in zip(ends[::2], ends[1::2], strict=True):
        cables.append(f"link add {device} netns {one} type veth peer name {far} netns {other}\n")
    _batch(None, cables)
    for position, (namespace, device, node, port) in enumerate(ends):
        far_node, far_port = ends[position ^ 1][2:]
        rate = fabric.link_gbps[position // 2] * 1e9 * (PAYLOAD + HEADERS) / PAYLOAD
        lines = [
            f"link set {device} address {_hardware(rail, node, port)} mtu {_MTU} gso_max_segs 1\n",
            f"link set {device} up\n",
            f"neigh replace {_NEXT} lladdr {_hardware(rail, far_node, far_port)} dev {device} nud permanent\n",
        ]
        if fabric.node_kind[node] == NodeKind.CA:
            _set(namespace, _HOST_SETTINGS)
            own = _address(fabric, rail, node)
            lines.append(f"addr add {own}/24 dev {device} noprefixroute\n")
            lines += [
                f"route add {_address(fabric, rail, host)} via {_NEXT} dev {device} src {own} onlink rto_min 5s\n"
                for host in _hosts(fabric)
                if host != node
            ]
        _batch(namespace, lines)
        _batch(namespace, [f"qdisc add dev {device} root tbf rate {rate:.0f}bit burst {_BURST} limit {_QUEUE}\n"], "tc")
    for node in _switches(fabric):
        _batch(_namespace(network, rail, node), _routes(network.rails[rail], rail, node))


def _address(fabric: Fabric, rail: int, host: int) -> str:
    return f"10.78.{rail}.{_hosts(fabric).index(host) + 1}"


def _routes(rail: RoutedRail, number: int, switch: int) -> list[str]:
    """Return a switch's table as routes.

    Destinations of ports without a cable have no route, so the kernel drops packets to them.
    """
    fabric, tables = rail.fabric, rail.tables
    (row,) = np.flatnonzero(tables.switch_guid == fabric.node_guid[switch]).tolist()
    cabled = set(fabric.link_port[fabric.link_node == switch].tolist())
    lines = []
    for host in _hosts(fabric):
        lid = int(fabric.port_lid[fabric.port_node == host][0])
        port = int(tables.port[row, lid])
        if port != UNREACHABLE and port in cabled:
            lines.append(f"route add {_address(fabric, number, host)} via {_NEXT} dev port{port} onlink proto static\n")
    return lines
