# SPDX-License-Identifier: Apache-2.0
"""Fabrics like in GPU clusters: hosts with eight adapters in one subnet, each adapter at a separate leaf switch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.tables import ForwardingTables
from ibprof_lab.topology.outputs.inferred_fabric import write_fdbs, write_lst

HOSTS = 4
ADAPTERS = 8

DEVICES = (10, 2, 3, 4, 6, 7, 8, 9)
"""Numbers of a host's adapters, by leaf. mlx5_10 has the first GUIDs and LIDs, but the last number."""

OTHERS = {4: "storage1 mlx5_0", 3: "Mellanox Technologies Aggregation Node"}
"""Leaf -> adapter at its fifth port: the only adapter of a host, or an adapter without a host."""


def make_fabric() -> tuple[Fabric, ForwardingTables]:
    """Make four hosts gpu1 .. gpu4 with eight adapters each.

    One leaf also has an aggregation node. Each other leaf also has a host with a single adapter.
    """
    made = generate(f"xgft:2:{HOSTS + 1},{ADAPTERS}:1,4")
    names = []
    adapter = 0
    for node, kind in enumerate(made.fabric.node_kind.tolist()):
        if kind != NodeKind.CA:
            names.append(made.fabric.node_name[node])
            continue
        leaf, place = divmod(adapter, HOSTS + 1)
        adapter += 1
        names.append(
            f"gpu{place + 1} mlx5_{DEVICES[leaf]}" if place < HOSTS else OTHERS.get(leaf, f"spare{leaf} mlx5_0")
        )
    return replace(made.fabric, node_name=tuple(names)), made.tables


def make_subnet() -> Subnet:
    """Return the fabric with its tables."""
    return Subnet(*make_fabric(), ())


COMPUTE_ADAPTERS = tuple(f"mlx5_{number}" for number in range(8))
STORAGE_ADAPTERS = ("mlx5_8", "mlx5_9")


def make_gpu_fabric(
    servers: bool = False, storage_gbps: float = 100, label: str = ""
) -> tuple[Fabric, ForwardingTables]:
    """Make hosts gpu1 .. gpu5, each with eight adapters for computing and two for storage at ten leaf switches.

    Args:
        servers: true to replace gpu5's adapters at the last two leaf switches by storage servers nas8 and nas9.
        storage_gbps: speed of the storage adapters. All other adapters have 100 Gb/s.
        label: suffix of the names of the storage adapters.
    """
    made = generate("xgft:2:5,10:1,4")
    fabric = made.fabric
    switches = int((fabric.node_kind == NodeKind.SWITCH).sum())
    names = list(fabric.node_name[:switches])
    for leaf in range(10):
        ending = f" {label}" if label and leaf >= 8 else ""
        names += [f"gpu{place + 1} mlx5_{leaf}{ending}" for place in range(5)]
        if servers and leaf >= 8:
            names[-1] = f"nas{leaf} mlx5_0"
    is_slow = (fabric.link_node >= switches + 40).any(axis=1)
    speeds = np.where(is_slow, storage_gbps, fabric.link_gbps)
    return replace(fabric, node_name=tuple(names), link_gbps=speeds), made.tables


def write_dumps(folder: Path, made: tuple[Fabric, ForwardingTables] | None = None) -> Path:
    """Write a fabric (by default from `make_fabric`) as ibdiagnet's files; return the path of the list of links."""
    fabric, tables = made or make_fabric()
    links = folder / "ibdiagnet.lst"
    with links.open("w") as file:
        write_lst(file, fabric, "synthetic: hosts with several adapters in one subnet")
    with (folder / "ibdiagnet.fdbs").open("w") as file:
        write_fdbs(file, tables)
    return links
