# SPDX-License-Identifier: Apache-2.0
"""Flat networks: dragonflies, groups of switches joined by global cables, with minimal routes; tori of any shape.

Source: J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_converter.routing.synthetic.build import SyntheticPlan, SyntheticSubnet, build

Indices = npt.NDArray[np.int64]


def generate_dragonfly(
    name: str,
    switches_each: int,
    hosts_each: int,
    globals_each: int,
    groups: int | None = None,
    gbps: float = 100.0,
    rail: int = 0,
) -> SyntheticSubnet:
    """Return a dragonfly. Routes use a local, a global and a local cable, each only if needed.

    Global cable k of group i, at switch k // h, leads to group i + 1 + k modulo the number of groups. The cables form
    whole rounds; in each round a group gets one cable to every other group. The destination's switch selects the round.

    Args:
        name: the name that the user wrote.
        switches_each: a, switches per group.
        hosts_each: p, hosts per switch.
        globals_each: h, global cables per switch.
        groups: g; None: a * h + 1, the largest number that can be joined directly.
        gbps: data rate of each link in one direction, in Gbit/s.
        rail: number of the rail.

    Raises:
        UsageError: the numbers describe no dragonfly.
    """
    a, p, h = switches_each, hosts_each, globals_each
    g = a * h + 1 if groups is None else groups
    if min(a, p, h) < 1 or not 2 <= g <= a * h + 1:
        raise UsageError(
            f"{name}: expected numbers from 1, and from 2 to {max(a * h, 0) + 1} groups, each cabled to each other"
        )
    rounds = a * h // (g - 1)
    switches = a * g
    group, position = np.divmod(np.arange(switches), a)
    # A switch's cables within its group use the ports after its hosts' ports, in the order of the other switches.
    local_port = np.full((a, a), 0)
    for one in range(a):
        others = [other for other in range(a) if other != one]
        local_port[one, others] = p + 1 + np.arange(a - 1)
    pairs = np.array([(one, other) for one in range(a) for other in range(one + 1, a)]).reshape(-1, 2)
    local = [
        np.stack([i * a + one, local_port[one, other], i * a + other, local_port[other, one]], axis=1)
        for i in range(g)
        for one, other in [pairs.T]
    ]
    k = np.arange(rounds * (g - 1))
    offset, turn = 1 + k % (g - 1), k // (g - 1)
    back = turn * (g - 1) + (g - offset) - 1
    i = np.repeat(np.arange(g), len(k))
    to = (i + np.tile(offset, g)) % g
    near, far = np.tile(k, g), np.tile(back, g)
    joined = np.stack([i * a + near // h, p + a + near % h, to * a + far // h, p + a + far % h], axis=1)
    joined = joined[i < to]
    egress_to = _route(a, p, h, g, rounds, group, position, local_port)
    host = np.arange(switches * p)
    home, own = host // p, 1 + host % p
    egress = np.where(np.arange(switches)[:, np.newaxis] == home[np.newaxis], own, egress_to[:, home])
    names = [f"g{i + 1}-s{s + 1}" for i, s in zip(group.tolist(), position.tolist(), strict=True)]
    return build(
        SyntheticPlan(name, names, home, own, np.concatenate([*local, joined]), egress.astype(np.uint8)), gbps, rail
    )


def _route(
    a: int, p: int, h: int, g: int, rounds: int, group: Indices, position: Indices, local_port: Indices
) -> Indices:
    """Return the port from each switch to each other switch: int [switch, switch]."""
    offset = (group[np.newaxis] - group[:, np.newaxis]) % g
    cable = (position[np.newaxis] % rounds) * (g - 1) + offset - 1
    exit_switch = np.where(offset > 0, cable // h, 0)
    at_exit = exit_switch == position[:, np.newaxis]
    to_exit = local_port[position[:, np.newaxis], exit_switch]
    within = local_port[position[:, np.newaxis], position[np.newaxis]]
    return np.asarray(np.where(offset == 0, within, np.where(at_exit, p + a + cable % h, to_exit)))


def generate_torus(
    name: str, sizes: Sequence[int], hosts_each: int, gbps: float = 100.0, rail: int = 0
) -> SyntheticSubnet:
    """Return a torus. A ring of two switches has one cable.

    Ports of a switch: first its hosts, then for each dimension the cable to the next switch and to the previous one. At
        half distance on a ring of even size, packets go to the next switch.

    Args:
        name: the name that the user wrote.
        sizes: size of each dimension; the last varies fastest.
        hosts_each: hosts per switch.
        gbps: data rate of each link in one direction, in Gbit/s.
        rail: number of the rail.

    Raises:
        UsageError: the numbers describe no torus.
    """
    if not sizes or min(sizes) < 2 or hosts_each < 1:
        raise UsageError(f"{name}: expected dimensions of 2 or more, and hosts on each switch from 1")
    switches = prod(sizes)
    position = np.stack(np.unravel_index(np.arange(switches), sizes), axis=1)
    egress_to = np.zeros((switches, switches), np.int64)
    cables = []
    # The first differing dimension decides, so the loop starts with the last dimension and overwrites its ports.
    for dimension in reversed(range(len(sizes))):
        size = sizes[dimension]
        onward, back = hosts_each + 1 + 2 * dimension, hosts_each + 2 + 2 * dimension
        ahead = (position[np.newaxis, :, dimension] - position[:, np.newaxis, dimension]) % size
        egress_to = np.where(ahead == 0, egress_to, np.where((2 * ahead <= size), onward, back))
        neighbour = position.copy()
        neighbour[:, dimension] = (position[:, dimension] + 1) % size
        other = np.ravel_multi_index(tuple(neighbour.T), sizes)
        own = np.arange(switches)
        if size == 2:
            own, other = own[position[:, dimension] == 0], other[position[:, dimension] == 0]
        ports = np.full(len(own), onward), np.full(len(own), onward if size == 2 else back)
        cables.append(np.stack([own, ports[0], other, ports[1]], axis=1))
    host = np.arange(switches * hosts_each)
    home = host // hosts_each
    local = 1 + host % hosts_each
    egress = np.where(np.arange(switches)[:, np.newaxis] == home[np.newaxis], local, egress_to[:, home])
    names = ["sw" + "-".join(map(str, coordinates)) for coordinates in position.tolist()]
    return build(SyntheticPlan(name, names, home, local, np.concatenate(cables), egress.astype(np.uint8)), gbps, rail)
