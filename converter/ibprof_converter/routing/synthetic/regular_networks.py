# SPDX-License-Identifier: Apache-2.0
"""Generate regular networks: fat-trees with d-mod-k routes, dragonflies with minimal routes, and tori of any shape.

Fat-trees are XGFT(h; m; w), PGFT (with parallel cables) and k-ary n-trees. Hosts are level 0. A node of level l has
w[l+1] parents, p[l+1] cables to each, and m[l] children. In a dragonfly, global cables join groups of switches.

Source: S. R. Öhring et al., "On Generalized Fat Trees", IPPS 1995 (XGFT); F. Petrini, M. Vanneschi, "k-ary n-trees",
IPPS 1997; E. Zahavi, "D-Mod-K Routing Providing Non-Blocking Traffic for Shift Permutations on Real Life Fat Trees",
CCIT report 776, Technion, 2010 (PGFT, d-mod-k); J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-Driven,
Highly-Scalable Dragonfly Topology", ISCA 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_converter.routing.synthetic.build import SyntheticPlan, SyntheticSubnet, build

Indices = npt.NDArray[np.int64]


def generate_xgft(
    name: str,
    children: Sequence[int],
    parents: Sequence[int],
    parallel: Sequence[int] = (),
    gbps: float = 100.0,
    rail: int = 0,
) -> SyntheticSubnet:
    """Return a fat-tree.

    Args:
        name: the name that the user wrote.
        children: m, numbers of children of a node, from level 1 up.
        parents: w, numbers of parents of a node, from
            level 0 (hosts: 1) up.
        parallel: p, numbers of cables from a node to each of its parents, from level 0 up; empty: always 1.
        gbps: data rate of each link in one direction, in Gbit/s.

    Raises:
        UsageError: the numbers are not those of a fat-tree whose hosts have one link.
    """
    m, w, p = list(children), list(parents), list(parallel or [1] * len(children))
    if not m or not len(m) == len(w) == len(p) or min(*m, *w, *p) < 1 or w[0] * p[0] != 1:
        raise UsageError(f"{name}: expected as many values of W and P as of M, each at least 1, with W1 = 1 and P1 = 1")
    height, hosts = len(m), prod(m)
    counts = [prod(m[level:]) * prod(w[:level]) for level in range(1, height + 1)]
    first = np.concatenate([[0], np.cumsum(counts)])
    host = np.arange(hosts)
    egress = np.zeros((first[-1], hosts), np.uint8)
    cables = []
    for level in range(1, height + 1):
        switch = np.arange(counts[level - 1])
        below, width = prod(m[:level]), prod(w[:level])
        down_ports = m[level - 1] * p[level - 1]
        down = 1 + _down(host, level, m, w, p)
        up = down
        if level < height:
            spread = w[level] * p[level]
            up = 1 + down_ports + host // width % spread
            cables.append(_cable_up(switch, int(first[level - 1]), int(first[level]), level, m, w, p))
        # `width` switches of this level are above each subtree of `below` hosts; switch // width is the index of the
        # subtree.
        is_below = (host // below)[np.newaxis] == (switch // width)[:, np.newaxis]
        egress[first[level - 1] : first[level]] = np.where(is_below, down.astype(np.uint8), up.astype(np.uint8))
    digits = len(str(max(counts)))
    return build(
        SyntheticPlan(
            name=name,
            switch_name=[f"L{level + 1}-{n + 1:0{digits}}" for level, count in enumerate(counts) for n in range(count)],
            host_switch=host // m[0],
            host_port=1 + host % m[0],
            cable=np.concatenate(cables) if cables else np.zeros((0, 4), np.int64),
            egress=egress,
        ),
        gbps,
        rail,
    )


def generate_tree(name: str, arity: int, levels: int, gbps: float = 100.0, rail: int = 0) -> SyntheticSubnet:
    """Return a k-ary n-tree: k**n hosts, and n * k**(n-1) switches with 2k ports each.

    Raises:
        UsageError: the numbers describe no k-ary n-tree.
    """
    return generate_xgft(name, [arity] * levels, [1] + [arity] * (levels - 1), (), gbps, rail)


def _down(host: Indices, level: int, m: list[int], w: list[int], p: list[int]) -> Indices:
    """Return, for each host, the index of the port that leads down to the host on a switch above it, on level `level`.

    The first cables to all children have the lowest indices, then the second cables to all children, and so on.
    """
    child = host // prod(m[: level - 1]) % m[level - 1]
    cable = host // prod(w[: level - 1]) % (w[level - 1] * p[level - 1]) // w[level - 1]
    return np.asarray(child + m[level - 1] * cable)


def _cable_up(
    switch: Indices, first: int, first_above: int, level: int, m: list[int], w: list[int], p: list[int]
) -> Indices:
    """Return the cables of a level's switches to their parents: int [cable, 4], switch, port, switch, port."""
    width, spread = prod(w[:level]), w[level] * p[level]
    position, up = np.repeat(switch, spread), np.tile(np.arange(spread), len(switch))
    x, y = position // width, position % width
    parent, cable = up % w[level], up // w[level]
    above = x // m[level] * (width * w[level]) + parent * width + y
    own_port = 1 + m[level - 1] * p[level - 1] + up
    return np.stack([first + position, own_port, first_above + above, 1 + x % m[level] + m[level] * cable], axis=1)


def generate_codes_tree(name: str, leaves: int, radix: int, gbps: float = 100.0, rail: int = 0) -> SyntheticSubnet:
    """Return CODES' fat-tree.

    The ports of a leaf lead to its hosts, then to the second-level switches of its pod. The ports of a second-level
    switch lead to leaves, then to top switches. The ports of a top switch lead to second-level switches, pod by pod.

    Args:
        name: the name that the user wrote.
        leaves: number of leaf switches, a multiple of half the radix.
        radix: number of ports of a switch.
        gbps: data rate of each link in one direction, in Gbit/s.

    Raises:
        UsageError: the numbers describe no fat-tree of CODES.
    """
    half = radix // 2
    if radix < 2 or radix % 2 or leaves < half or leaves % half or leaves // half > radix:
        raise UsageError(f"{name}: expected an even radix, and 1 to radix pods with radix / 2 leaves each")
    pods = leaves // half
    repetitions = radix // pods
    while half % repetitions:
        repetitions -= 1
    groups = half // repetitions
    second, top = leaves, 2 * leaves
    index = np.arange(leaves)
    pod, within = index // half, index % half
    each = np.arange(half)
    below = np.stack(np.broadcast_arrays(
        index[:, None], half + 1 + each, second + pod[:, None] * half + each, within[:, None] + 1
    ), axis=-1)  # fmt: skip
    above = np.stack(np.broadcast_arrays(
        second + index[:, None], half + 1 + each,
        top + within[:, None] // repetitions * half + each,
        pod[:, None] * repetitions + within[:, None] % repetitions + 1,
    ), axis=-1)  # fmt: skip
    host = np.arange(leaves * half)
    home, rank = host // half, host % half
    up, spread = half + 1 + rank, half + 1 + home % half
    egress = np.empty((top + groups * half, len(host)), np.int64)
    egress[:second] = np.where(index[:, None] == home, rank + 1, up)
    egress[second:top] = np.where(pod[:, None] == home // half, home % half + 1, spread)
    egress[top:] = home // half * repetitions + rank % repetitions + 1
    names = [f"leaf{each + 1}" for each in range(leaves)]
    names += [f"pod{each // half + 1}-{each % half + 1}" for each in range(leaves)]
    names += [f"top{each + 1}" for each in range(groups * half)]
    cables = np.concatenate([below.reshape(-1, 4), above.reshape(-1, 4)])
    return build(SyntheticPlan(name, names, home, rank + 1, cables, egress.astype(np.uint8)), gbps, rail)


def generate_dragonfly(
    name: str,
    switches_each: int,
    hosts_each: int,
    globals_each: int,
    groups: int | None = None,
    gbps: float = 100.0,
    rail: int = 0,
) -> SyntheticSubnet:
    """Return a dragonfly. A route has at most one local cable, one global cable and another local cable.

    Global cable k of group i, at switch k // h, leads to group (i + 1 + k mod (g - 1)) mod g; g is the number of
    groups. Cables are placed in complete rounds: in each round, each group gets one cable to each other group. The
    position of the destination's switch in its group, modulo the number of rounds, selects the round.

    Args:
        name: the name that the user wrote.
        switches_each: a, switches per group.
        hosts_each: p, hosts per switch.
        globals_each: h, global cables per switch.
        groups: g. If None: a * h + 1, the largest number of directly joined
            groups.
        gbps: data rate of each link in one direction, in Gbit/s.

    Raises:
        UsageError: the numbers describe no dragonfly.
    """
    a, p, h = switches_each, hosts_each, globals_each
    g = a * h + 1 if groups is None else groups
    if min(a, p, h) < 1 or not 2 <= g <= a * h + 1:
        raise UsageError(
            f"{name}: expected numbers of at least 1, and 2 to {max(a * h, 0) + 1} groups, to cable each pair of groups"
        )
    rounds = a * h // (g - 1)
    switches = a * g
    group, position = np.divmod(np.arange(switches), a)
    # Cables within a group use the first ports after those of hosts, in the order of the switches.
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

    The ports of a switch lead first to its hosts, then to the next and the previous switch in each dimension. If both
    directions of a ring are equally long, packets go to the next switch.

    Args:
        name: the name that the user wrote.
        sizes: size of each dimension; the last dimension varies fastest.
        hosts_each: hosts per switch.
        gbps: data rate of each link in one direction, in Gbit/s.

    Raises:
        UsageError: the numbers describe no torus.
    """
    if not sizes or min(sizes) < 2 or hosts_each < 1:
        raise UsageError(f"{name}: expected at least 2 switches in each dimension, and at least 1 host on each switch")
    switches = prod(sizes)
    position = np.stack(np.unravel_index(np.arange(switches), sizes), axis=1)
    egress_to = np.zeros((switches, switches), np.int64)
    cables = []
    # The first differing dimension decides: the loop begins with the last dimension, and overwrites ports.
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
