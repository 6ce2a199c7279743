# SPDX-License-Identifier: Apache-2.0
"""The 20 cases of `placement.py`: programs' traffic on fat-trees of equal hosts, with a slot for each rank."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from ibprof_converter.traffic.traffic_data import RankTraffic
from ibprof_testing.samples.placements import make_demand, samplesort, shuffled_halo, transpose

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class PlacementCase:
    """One case.

    Attributes:
        name: the program and the number of ranks.
        demand: function that returns the program's traffic.
        each: number of ranks on a host.
        fabric: a synthetic fat-tree with tapered uplinks.
        tree: number of children of a node by level: slots of a host, hosts of a leaf switch, and so on.
    """

    name: str
    demand: Callable[[], RankTraffic]
    each: int
    fabric: str
    tree: tuple[int, ...]


def geometric(ranks: int, seed: int) -> RankTraffic:
    """Return the traffic between random points of the unit square. Near points exchange more."""
    point = np.random.default_rng(seed).random((ranks, 2))
    pairs = cKDTree(point).query_pairs(float(np.sqrt(8 / (np.pi * ranks))), output_type="ndarray")
    apart = np.linalg.norm(point[pairs[:, 0]] - point[pairs[:, 1]], axis=1)
    size = (1e6 * (1 - 0.9 * apart / apart.max())).astype(np.int64)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    return make_demand(both[:, 0], both[:, 1], np.tile(size, 2), ranks)


def refined_mesh(ranks: int, seed: int) -> RankTraffic:
    """Return the traffic of a mesh that is refined near a circle. Blocks are numbered in the order of their creation.

    Adjacent blocks exchange bytes in proportion to their common face.
    """
    generator = np.random.default_rng(seed)
    blocks = [(0.0, 0.0, 1.0)]
    while len(blocks) < ranks:
        x, y, side = np.array(blocks).T
        apart = np.abs(np.hypot(x + side / 2 - 0.5, y + side / 2 - 0.5) - 0.3) / side
        a, b, size = blocks.pop(int(np.argmin(apart - np.log2(side) + 0.3 * generator.random(len(blocks)))))
        blocks += [(a + i * size / 2, b + j * size / 2, size / 2) for i in range(2) for j in range(2)]
    x, y, side = np.array(blocks[:ranks]).T
    source, destination, amount = [], [], []
    for block in range(ranks):
        across = np.minimum(x + side, x[block] + side[block]) - np.maximum(x, x[block])
        along = np.minimum(y + side, y[block] + side[block]) - np.maximum(y, y[block])
        touches = np.flatnonzero((np.minimum(across, along) > -1e-9) & (np.maximum(across, along) > 1e-9))
        touches = touches[touches != block]
        source.append(np.full(len(touches), block))
        destination.append(touches)
        face = np.maximum(across, along)[touches] / np.minimum(side[touches], side[block])
        amount.append((1e6 * face).astype(np.int64))
    return make_demand(np.concatenate(source), np.concatenate(destination), np.concatenate(amount), ranks)


def recorded(name: str) -> RankTraffic:
    """Read the traffic of a recorded program."""
    with (DATA / f"{name}.csv").open(newline="") as file:
        rows = np.array([[int(row["src"]), int(row["dst"]), int(row["bytes"])] for row in csv.DictReader(file)])
    return make_demand(rows[:, 0], rows[:, 1], rows[:, 2], int(rows[:, :2].max()) + 1)


CASES = (
    PlacementCase("halo 4x4x4", lambda: shuffled_halo((4, 4, 4), 1), 1, "xgft:2:8,8:1,4", (1, 8, 8)),
    PlacementCase("halo 8x4x4", lambda: shuffled_halo((8, 4, 4), 1), 1, "xgft:2:16,8:1,8", (1, 16, 8)),
    PlacementCase("halo 16x16", lambda: shuffled_halo((16, 16), 2), 16, "xgft:2:4,4:1,2", (16, 4, 4)),
    PlacementCase("halo 8x8x8", lambda: shuffled_halo((8, 8, 8), 3), 4, "xgft:2:16,8:1,4", (4, 16, 8)),
    PlacementCase("halo 16x8x8", lambda: shuffled_halo((16, 8, 8), 4), 16, "xgft:2:8,8:1,4", (16, 8, 8)),
    PlacementCase("halo 16x16x16", lambda: shuffled_halo((16, 16, 16), 5), 16, "xgft:3:8,8,4:1,4,2", (16, 8, 8, 4)),
    PlacementCase("geometric 256", lambda: geometric(256, 1), 1, "xgft:2:16,16:1,8", (1, 16, 16)),
    PlacementCase("geometric 1024", lambda: geometric(1024, 2), 4, "xgft:2:16,16:1,8", (4, 16, 16)),
    PlacementCase("geometric 4096", lambda: geometric(4096, 3), 16, "xgft:3:8,8,4:1,4,2", (16, 8, 8, 4)),
    PlacementCase("AMR 256", lambda: refined_mesh(256, 1), 4, "xgft:2:8,8:1,4", (4, 8, 8)),
    PlacementCase("AMR 1024", lambda: refined_mesh(1024, 2), 1, "xgft:3:8,8,16:1,4,4", (1, 8, 8, 16)),
    PlacementCase("AMR 1024, 16 ranks a host", lambda: refined_mesh(1024, 3), 16, "xgft:2:8,8:1,4", (16, 8, 8)),
    PlacementCase("samplesort 64", lambda: samplesort(64, 1), 1, "xgft:2:8,8:1,4", (1, 8, 8)),
    PlacementCase("samplesort 256", lambda: samplesort(256, 2), 4, "xgft:2:8,8:1,4", (4, 8, 8)),
    PlacementCase("samplesort 512", lambda: samplesort(512, 3), 16, "xgft:2:8,4:1,4", (16, 8, 4)),
    PlacementCase("transpose 128 in 8", lambda: transpose(128, 8), 1, "xgft:2:8,16:1,4", (1, 8, 16)),
    PlacementCase("transpose 512 in 16", lambda: transpose(512, 16), 4, "xgft:2:16,8:1,4", (4, 16, 8)),
    PlacementCase("transpose 1024 in 24", lambda: transpose(1024, 24), 16, "xgft:2:8,8:1,4", (16, 8, 8)),
    PlacementCase("LAMMPS 64", lambda: recorded("lammps-64"), 4, "xgft:2:4,4:1,2", (4, 4, 4)),
    PlacementCase("hpcc 64", lambda: recorded("hpcc-64"), 1, "xgft:2:8,8:1,4", (1, 8, 8)),
)
