#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare ibprof's estimated link loads with the packet simulation's loads, for adaptive routing.

    adaptive_estimate.py [--seeds N] [--calibrate]

Fabrics: fat-trees of two and three levels, with all and with 88% of the cables between switches; a dragonfly. Traffic:
shifts, permutations, an all-to-all among a quarter of the hosts, random flows of several sizes, and flows from all
hosts to an eighth of the hosts. All flows begin together. The program prints the errors of each case and of all cases.
It also prints the errors of an estimate that divides traffic evenly among the shortest routes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing import adaptive_bounds
from ibprof_converter.routing.adaptive_paths import AdaptivePaths
from ibprof_converter.routing.subnet import Subnet, join_subnet
from ibprof_lab.simulation.engine.packet_engine import Client, Job, Simulation, Step, Stop
from ibprof_lab.simulation.engine.simulated_network import Hardware, index_network
from ibprof_testing.samples.fabrics import read_subnet

SHAPES = (
    "xgft:2:4,4:1,4",
    "xgft:2:8,8:1,4",
    "xgft:2:8,8:1,8",
    "xgft:3:4,4,4:1,4,4",
    "xgft:3:6,4,4:1,3,2",
    "dragonfly:4,2,2",
)

MISSING = 0.12
_UNIT = 1 << 20
_FEW_FLOWS = 2000

Flow = tuple[int, int, float]


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of the estimated link loads in one case.

    Attributes:
        name: fabric and traffic.
        bottleneck: (estimate - simulation) / simulation, for the largest load of any link direction.
        shared_bottleneck: as `bottleneck`, for an estimate with even shares.
        moved: fraction of bytes between switches that the estimate and the simulation put on different links.
        shared_moved: as `moved`, for an estimate with even shares.
        noise: as `moved`, for two simulations with different seeds.
    """

    name: str
    bottleneck: float
    shared_bottleneck: float
    moved: float
    shared_moved: float
    noise: float


def without_cables(subnet: Subnet, seed: int) -> Subnet:
    """Return a fabric without some of its cables between switches."""
    fabric = subnet.fabric
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    kept = ~(between & (np.random.default_rng(seed).random(fabric.links) < MISSING))
    names = ("link_node", "link_port", "link_gbps", "link_lanes", "link_half", "link_unequal")
    return join_subnet(replace(fabric, **{name: getattr(fabric, name)[kept] for name in names}), subnet.tables)


def machines(seeds: int) -> Iterator[tuple[str, Subnet]]:
    for shape in SHAPES:
        subnet = read_subnet(shape)
        yield shape, subnet
        if shape.startswith("xgft"):
            for seed in range(1, seeds + 1):
                yield f"{shape} less cables ({seed})", without_cables(subnet, seed)


def patterns(hosts: int, seed: int) -> Iterator[tuple[str, list[Flow]]]:
    """Yield (name, flows) of each traffic pattern among hosts. All flows except random ones have the size 1."""
    random = np.random.default_rng(seed)
    yield "shift by 1", [(host, (host + 1) % hosts, 1) for host in range(hosts)]
    yield "shift by half", [(host, (host + hosts // 2) % hosts, 1) for host in range(hosts)]
    target = random.permutation(hosts).tolist()
    yield "permutation", [(host, other, 1) for host, other in enumerate(target) if other != host]
    some = random.permutation(hosts)[: max(hosts // 4, 4)].tolist()
    yield "all to all", [(one, other, 1) for one in some for other in some if one != other]
    ends = random.integers(0, hosts, (2, 3 * hosts)).tolist()
    sizes = random.choice([0.1, 0.5, 1, 2], 3 * hosts).tolist()
    yield "random flows", [(one, other, size) for one, other, size in zip(*ends, sizes, strict=True) if one != other]
    servers = random.permutation(hosts)[: max(hosts // 8, 1)].tolist()
    yield "to servers", [(host, servers[host % len(servers)], 1) for host in range(hosts) if host not in servers]


def compare(name: str, subnet: Subnet, flows: list[Flow]) -> Errors | None:
    """Simulate flows with two seeds. Return the errors of the estimate against the mean of both simulations.

    Return None if packets deadlock: around a missing cable, a shortest path can lead down and up again.
    """
    network = index_network(subnet, Hardware())
    unit = _UNIT if len(flows) < _FEW_FLOWS else _UNIT // 8
    sizes = [max(1, int(unit * size)) for *_, size in flows]
    clients = [Client(one, 0, [Step(other, size)]) for (one, other, _), size in zip(flows, sizes, strict=True)]
    loads: list[npt.NDArray[np.float64]] = []
    for seed in (1, 2):
        simulation = Simulation(network, [Job("flows", limit=1)], clients, seed=seed, adaptive=True)
        simulation.run()
        if simulation.state.stop == Stop.DEADLOCK:
            return None
        assert simulation.state.stop == Stop.DONE
        loads.append(simulation.look_at_ends().bytes.sum(axis=1).astype(float).reshape(-1, 2))
    lid = subnet.fabric.port_lid[network.host_port]
    source, destination = (lid[np.array([flow[end] for flow in flows], np.intp)] for end in (0, 1))
    paths = AdaptivePaths(subnet.routes.network)
    found = adaptive_bounds.bound_adaptive(paths, [(source, destination, np.array(sizes, np.uint64))])
    between = (subnet.fabric.node_kind[subnet.fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    real = (loads[0] + loads[1]) / 2
    total = real[between].sum() or 1.0

    def moved(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
        return float(np.abs(one[between] - other[between]).sum() / 2 / total)

    return Errors(
        name,
        float(found.estimate.max() / real.max() - 1),
        float(found.shared.max() / real.max() - 1),
        moved(found.estimate, real),
        moved(found.shared, real),
        moved(loads[0], loads[1]),
    )


def compare_all(seeds: int, seed: int) -> list[Errors]:
    found = []
    for name, subnet in machines(seeds):
        hosts = index_network(subnet, Hardware()).hosts
        found += [compare(f"{name}, {traffic}", subnet, flows) for traffic, flows in patterns(hosts, seed)]
    return [each for each in found if each is not None]


def summarise(errors: list[Errors]) -> str:
    """Return the median, the 95th percentile and the maximum of each error over all cases, as text."""
    words = []
    for name in ("bottleneck", "shared_bottleneck", "moved", "shared_moved", "noise"):
        values = np.abs([getattr(each, name) for each in errors])
        words.append(f"{name} {np.median(values):.1%} ({np.percentile(values, 95):.1%}, {values.max():.1%})")
    return "; ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2, help="number of damaged fabrics for each shape")
    parser.add_argument("--calibrate", action="store_true", help="also try other values of the estimate's parameters")
    arguments = parser.parse_args()
    errors = compare_all(arguments.seeds, seed=7)
    for each in errors:
        loads = f"largest load off by {each.bottleneck:+.1%} (even shares: {each.shared_bottleneck:+.1%})"
        moved = f"on wrong links (even shares: {each.shared_moved:.1%}; between two seeds: {each.noise:.1%})"
        print(f"{each.name:<46}  {loads}, {each.moved:.1%} of bytes {moved}")
    print(f"{len(errors)} cases, median (95th percentile, maximum): {summarise(errors)}")
    others = compare_all(arguments.seeds + 2, seed=11)
    print(f"{len(others)} cases with other traffic on more damaged fabrics: {summarise(others)}")
    if arguments.calibrate:
        for back in (0, 0.5, 0.8, 1.0, 1.2):
            for rounds, exponent in ((2, 0.5), (8, 0.3), (8, 0.5), (16, 0.5)):
                adaptive_bounds.BACK_PRESSURE = back
                adaptive_bounds.ROUNDS, adaptive_bounds.EXPONENT = rounds, exponent
                found = summarise(compare_all(arguments.seeds, seed=7))
                print(f"back pressure {back}, {rounds} rounds, exponent {exponent}: {found}")


if __name__ == "__main__":
    main()
