# SPDX-License-Identifier: Apache-2.0
"""Measure time and stress of an inferred topology's three-dimensional positions, in the modes `fast` and `paper`.

Run it from a checkout, with ibprof installed:

    python benchmarks/positions.py [--case NAME ...] [--mode fast|paper ...] [--gamma G]
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import numpy as np

from ibprof_lab.lab_choices import GAMMA, POSITION_METHODS
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.outputs.vertex_positions import position_vertices

REFERENCE_EDGES = 200_000
"""Maximum number of edges for the mode `paper`. With more edges, this mode takes many minutes."""


def make(
    hosts: int, switches: int, edges: list[tuple[int, int]], seconds: list[float] | None = None
) -> InferredTopology:
    return InferredTopology(
        method="made",
        hosts=tuple(f"n{host}" for host in range(hosts)),
        switches=tuple(f"s{switch}" for switch in range(switches)),
        edge=np.array(edges, np.int32),
        latency_seconds=np.full(len(edges), 1e-6) if seconds is None else np.array(seconds),
        support=np.full(len(edges), np.nan),
        probability=np.ones(len(edges)),
    )


def make_tree(hosts: int, leaf: int, pod: int) -> InferredTopology:
    """Return a tree: hosts on leaf switches, leaf switches on pod switches, pod switches on one switch."""
    leaves, pods = hosts // leaf, hosts // pod
    edges = [(host, hosts + host // leaf) for host in range(hosts)]
    edges += [(hosts + each, hosts + leaves + each * leaf // pod) for each in range(leaves)]
    edges += [(hosts + leaves + each, hosts + leaves + pods) for each in range(pods)]
    return make(hosts, leaves + pods + 1, edges)


def make_torus(*extents: int) -> InferredTopology:
    number = np.arange(int(np.prod(extents))).reshape(extents)
    edges = set()
    for axis in range(len(extents)):
        pairs = np.stack([number.ravel(), np.roll(number, -1, axis).ravel()], axis=1)
        edges |= {(min(a, b), max(a, b)) for a, b in pairs.tolist() if a != b}
    return make(number.size, 0, sorted(edges))


def make_complete(hosts: int) -> InferredTopology:
    """Return a complete graph, as in the published method. Each edge has one of three lengths, with 5% error."""
    a, b = np.triu_indices(hosts, 1)
    level = 2e-6 + 2e-6 * (a // 20 != b // 20) + 2e-6 * (a // 100 != b // 100)
    errors = np.exp(0.05 * np.random.default_rng(1).standard_normal(len(a)))
    return make(hosts, 0, list(zip(a.tolist(), b.tolist(), strict=True)), (level * errors).tolist())


CASES = {
    "tree-64": lambda: make_tree(64, 8, 32),
    "torus-4x4x4": lambda: make_torus(4, 4, 4),
    "tree-500": lambda: make_tree(500, 20, 100),
    "all-pairs-500": lambda: make_complete(500),
    "tree-10000": lambda: make_tree(10_000, 20, 500),
    "torus-20x25x20": lambda: make_torus(20, 25, 20),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--mode", choices=POSITION_METHODS, action="append")
    parser.add_argument("--gamma", type=float, default=GAMMA)
    arguments = parser.parse_args()
    print("| topology | vertices | edges | mode | time | of the processor | links miss by | stress f | f1 | f2 |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, mode in product(arguments.case or CASES, arguments.mode or POSITION_METHODS):
        topology = CASES[name]()
        if mode != "fast" and (len(topology.edge) > REFERENCE_EDGES or topology.vertices > 1000):
            continue
        times = []
        for _ in range(3 if mode == "fast" else 1):
            began = time.process_time()
            space = position_vertices(topology, mode, arguments.gamma)
            times.append((space.seconds, time.process_time() - began))
        passed, used = (min(each) for each in zip(*times, strict=True))
        print(
            f"| {name} | {topology.vertices:,} | {len(topology.edge):,} | {mode} | {passed:.2f} s | {used:.2f} s | "
            f"{space.deviation:.0%} | {space.stress:.4g} | {space.f1:.4g} | {space.f2:.4g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
