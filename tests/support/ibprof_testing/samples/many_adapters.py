# SPDX-License-Identifier: Apache-2.0
"""A synthetic fabric like those of GPU clusters: hosts with eight adapters in one subnet, each on a leaf of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.outputs.ibdiagnet_files import write_fdbs, write_lst
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.tables import ForwardingTables

HOSTS = 4
ADAPTERS = 8

DEVICES = (10, 2, 3, 4, 6, 7, 8, 9)
"""Number in the name of the adapter at each leaf: mlx5_10 has the first GUIDs and LIDs, and the last name."""

OTHERS = {4: "storage1 mlx5_0", 3: "Mellanox Technologies Aggregation Node"}
"""Adapters at the fifth port of some leaves: of a host with one adapter, and of no host."""


def make_fabric() -> tuple[Fabric, ForwardingTables]:
    """Make four hosts gpu1 .. gpu4 with eight adapters each, and hosts with one at the fifth port of each leaf."""
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


def write_dumps(folder: Path) -> Path:
    """Write the fabric as ibdiagnet's files; return the list of links."""
    fabric, tables = make_fabric()
    links = folder / "ibdiagnet.lst"
    with links.open("w") as file:
        write_lst(file, fabric, "synthetic: hosts with several adapters in one subnet")
    with (folder / "ibdiagnet.fdbs").open("w") as file:
        write_fdbs(file, tables)
    return links
