# SPDX-License-Identifier: Apache-2.0
"""Generate fabrics of GPU clusters: hosts with one adapter per rail, units with one leaf per rail, spines and cores.

A unit has radix / 2 hosts, because each leaf has this number of ports to hosts. The number of spines is the smallest
number that divides the cables of each leaf evenly. With at most `radix` leaf switches, two levels are enough. With more
leaves, each group of spines joins the leaves of one rail in at most radix / 2 units. Cores join the spines with equal
indices in all groups. Routes are d-mod-k.

Source: NVIDIA DGX SuperPOD Reference Architecture (DGX B200, 64-port switches, and DGX B300 XDR, 144-port switches),
tables of components by number of scalable units. In `rail-optimised` each rail is a separate network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_converter.fabric.listing import LAST_UNICAST_LID
from ibprof_converter.routing.synthetic.build import SyntheticPlan, SyntheticSubnet, build

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RailSizes:
    """Sizes of a fabric of rails.

    Attributes:
        hosts, rails: number of hosts, and number of adapters of each host.
        radix: number of ports of a switch, even.
        planes: number of networks; each adapter has a port on each network.
        apart: true if no cable joins the rails: then each rail is a subnet.
    """

    hosts: int
    rails: int
    radix: int
    planes: int
    apart: bool

    @property
    def subnets(self) -> int:
        """Number of subnets: `planes` * `rails` if each rail is separate (`apart`), else `planes`."""
        return self.planes * (self.rails if self.apart else 1)


def generate_rails(name: str, sizes: RailSizes, gbps: float, number: int, part: int) -> SyntheticSubnet:
    """Return one subnet of a fabric of rails.

    The adapter of a host on rail r is `gpuH mlx5_r`. If a subnet contains all rails, the adapters of a host have
    successive LIDs. An adapter has the same NODE GUID and LID on all planes. On plane p (from 0), the adapter uses port
    p + 1.

    Args:
        name: the name that the user wrote.
        sizes: the numbers in the name.
        gbps: data rate of each link in one direction, in Gbit/s.
        number: index of the fabric's first subnet in the list of all rails.
        part: index of the subnet in the fabric, below `sizes.subnets`: rail * planes + plane.

    Raises:
        UsageError: the numbers describe no fabric of rails.
    """
    rail, plane = divmod(part, sizes.planes)
    rails = 1 if sizes.apart else sizes.rails
    half = sizes.radix // 2
    if sizes.radix % 2 or min(sizes.hosts, sizes.rails, sizes.planes, half) < 1:
        raise UsageError(f"{name}: expected numbers of at least 1, and an even radix")
    if sizes.hosts * rails > LAST_UNICAST_LID:
        found = sizes.hosts * rails
        raise UsageError(f"{name}: expected at most {LAST_UNICAST_LID} adapters, one for each LID, found {found}")
    adapters = np.arange(sizes.hosts * rails)
    host = adapters // rails
    units = -(-sizes.hosts // half)
    tree = _Tree.plan(name, units, rails, half)
    leaf, place = host // half * rails + adapters % rails, host % half
    suffix = f"-p{plane + 1}" if sizes.planes > 1 else ""
    prefix = f"r{rail + 1}-" if sizes.apart else ""
    digits = len(str(max(units, tree.groups * tree.spines, tree.spines * tree.cores)))
    names = [
        f"leaf{each // rails + 1:0{digits}}" + (f"-r{each % rails + 1}" if rails > 1 else "")
        for each in range(tree.leaves)
    ]
    names += [f"spine{each + 1:0{digits}}" for each in range(tree.groups * tree.spines)]
    names += [f"core{each + 1:0{digits}}" for each in range(tree.spines * tree.cores)]
    digits = len(str(sizes.hosts))
    notes = [f"rail {rail + 1}"] * sizes.apart + [f"plane {plane + 1}"] * (sizes.planes > 1)
    return build(
        SyntheticPlan(
            name=f"{name} ({', '.join(notes)})" if notes else name,
            switch_name=[f"{prefix}{each}{suffix}" for each in names],
            host_switch=leaf,
            host_port=1 + place,
            cable=tree.list_cables(),
            egress=tree.route(leaf, place),
            adapter_name=[
                f"gpu{each // rails + 1:0{digits}} mlx5_{rail if sizes.apart else each % rails}"
                for each in adapters.tolist()
            ],
            plane=plane,
            plane_of=f"{name} rail {rail + 1}" if sizes.planes > 1 else "",
            first_adapter=rail * sizes.hosts,
            part=part,
        ),
        gbps,
        number,
    )


@dataclass(frozen=True, slots=True)
class _Tree:
    """Switches above the adapters. Leaf u * rails + r joins rail r of unit u; switches of higher levels follow.

    Attributes:
        units, rails: numbers of units and of rails; the tree has units * rails leaves.
        half: number of cables from a leaf to spines; also the largest number of adapters at a leaf.
        span: number of leaves below one group of spines.
        groups, spines: number of groups of spines; number of spines in a group.
        cores: number of cores that join the spines with equal indices in their groups; 0 in a tree with two levels.
    """

    units: int
    rails: int
    half: int
    span: int
    groups: int
    spines: int
    cores: int

    @classmethod
    def plan(cls, name: str, units: int, rails: int, half: int) -> _Tree:
        """Return the smallest tree in which each level has as many cables up as down."""
        leaves = units * rails
        if leaves == 1:
            return cls(units, rails, half, 1, 0, 0, 0)
        if leaves <= 2 * half:
            return cls(units, rails, half, leaves, 1, _divide(half, -(-leaves // 2)), 0)
        groups = -(-units // half) * rails
        if groups > 2 * half:
            raise UsageError(f"{name}: more than three levels of switches with {2 * half} ports")
        span = min(units, half)
        return cls(units, rails, half, span, groups, _divide(half, span), _divide(half, -(-groups // 2)))

    @property
    def leaves(self) -> int:
        return self.units * self.rails

    def group(self, leaf: Indices) -> tuple[Indices, Indices]:
        """Return the group of each leaf, and the leaf's index in the group."""
        if not self.cores:
            return leaf * 0, leaf
        unit, rail = leaf // self.rails, leaf % self.rails
        return unit // self.half * self.rails + rail, unit % self.half

    def list_cables(self) -> Indices:
        """Return all cables between switches: int [cable, 4], switch, port, switch, port.

        Cable j of a switch with n parents leads to parent j mod n.
        """
        if not self.groups:
            return np.zeros((0, 4), np.int64)
        leaf, up = _cross(self.leaves, self.half)
        group, within = self.group(leaf)
        spine = self.leaves + group * self.spines + up % self.spines
        cables = [np.stack([leaf, 1 + self.half + up, spine, 1 + within + self.span * (up // self.spines)], axis=1)]
        if self.cores:
            spine, up = _cross(self.groups * self.spines, self.half)
            group, index = spine // self.spines, spine % self.spines
            core = self.leaves + self.groups * self.spines + index * self.cores + up % self.cores
            port = 1 + group + self.groups * (up // self.cores)
            cables.append(np.stack([self.leaves + spine, 1 + self.half + up, core, port], axis=1))
        return np.concatenate(cables)

    def route(self, leaf: Indices, place: Indices) -> npt.NDArray[np.uint8]:
        """Return the egress port of each switch for each adapter: uint8 [switch, adapter].

        Args:
            leaf, place: int [adapter], each adapter's leaf, and the adapter's index on this leaf.
        """
        spines = self.groups * self.spines
        egress = np.empty((self.leaves + spines + self.spines * self.cores, len(leaf)), np.uint8)
        egress[: self.leaves] = 1 + self.half + place
        egress[leaf, np.arange(len(leaf))] = 1 + place
        if not self.groups:
            return egress
        group, within = self.group(leaf)
        cables = self.half // self.spines
        down = 1 + within + self.span * (place // self.spines)
        egress[self.leaves : self.leaves + spines] = down
        if self.cores:
            up = (leaf // self.rails * cables + place // self.spines) % self.half
            above = egress[self.leaves : self.leaves + spines].reshape(self.groups, self.spines, -1)
            for each in range(self.groups):
                above[each] = np.where(group == each, down, 1 + self.half + up)
            egress[self.leaves + spines :] = 1 + group + self.groups * (up // self.cores)
        return egress


def _divide(cables: int, least: int) -> int:
    """Return the smallest number of parents, at least `least`, that divides a switch's cables evenly."""
    return next(each for each in range(least, cables + 1) if cables % each == 0)


def _cross(first: int, second: int) -> tuple[Indices, Indices]:
    """Return all pairs (number of one range, number of a second range), as two columns."""
    return np.repeat(np.arange(first), second), np.tile(np.arange(second), first)
