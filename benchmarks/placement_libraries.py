# SPDX-License-Identifier: Apache-2.0
"""Place ranks by SharedMap, KaHIP, METIS and Scotch on trees of equal hosts, for comparison."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof_converter.placement.placement_problem import Neighbours, SlotOfRank

Integers = npt.NDArray[np.int64]


class RankGraph:
    """A graph of ranks.

    Entries first[rank] to first[rank + 1] - 1 of `other` and `weight` are a rank's neighbours and their weights.
    Weights are integers, proportional to bytes.
    """

    def __init__(self, neighbours: Neighbours) -> None:
        self.first = neighbours.first.astype(np.int64)
        self.other = neighbours.rank.astype(np.int64)
        volume = neighbours.volume().astype(np.float64)
        # The libraries sum weights as 32-bit integers.
        scale = max(volume.sum() / 2**30, volume[volume > 0].min(initial=np.inf) if len(volume) else 1.0)
        self.weight = np.maximum(1, np.round(volume / scale)).astype(np.int64)

    @property
    def ranks(self) -> int:
        return len(self.first) - 1

    def part(self, ranks: Integers) -> tuple[Integers, Integers, Integers]:
        """Return the part of the graph that contains only `ranks`: first, other and weight."""
        number = np.full(self.ranks, -1)
        number[ranks] = np.arange(len(ranks))
        owner = number[np.repeat(np.arange(self.ranks), np.diff(self.first))]
        other = number[self.other]
        inside = np.flatnonzero((owner >= 0) & (other >= 0))
        inside = inside[np.argsort(owner[inside], kind="stable")]
        first = np.concatenate([[0], np.cumsum(np.bincount(owner[inside], minlength=len(ranks)))])
        return first, other[inside], self.weight[inside]


def repair(part: Integers, sizes: Sequence[int]) -> Integers:
    """Move ranks from too large parts to too small parts. Some libraries return parts of unequal size."""
    part = part.copy()
    count = np.bincount(part, minlength=len(sizes))
    for number in np.flatnonzero(count > sizes).tolist():
        for rank in np.flatnonzero(part == number)[sizes[number] :]:
            free = np.flatnonzero(np.bincount(part, minlength=len(sizes)) < sizes)
            part[rank] = free[np.argmin(np.abs(free - number))]
    return part


def as_slots(part: Integers, size: int) -> SlotOfRank:
    """Return the slot of each rank. Part k gets slots k * size to (k + 1) * size - 1."""
    order = np.argsort(part, kind="stable")
    slot = np.empty(len(part), np.uint32)
    slot[order] = np.arange(len(part)) // size * size + np.arange(len(part)) % size
    return slot


Library = Callable[[RankGraph, Sequence[int]], SlotOfRank]
"""A function that places a graph on a tree. The second argument is the tree: number of children of a node
at each level, beginning with the slots of a host."""


def sharedmap(mode: str) -> Library:
    def run(graph: RankGraph, tree: Sequence[int]) -> SlotOfRank:
        import chszlablib  # noqa: PLC0415

        levels = [size for size in tree if size > 1]
        given = chszlablib.Graph.from_csr(graph.first, graph.other, edge_weights=graph.weight)
        distance = [10**level for level in range(len(levels))]
        found = chszlablib.Decomposition.process_map(given, levels, distance, mode=mode, imbalance=0.0, threads=2)
        return as_slots(repair(np.asarray(found.assignment, np.int64), [1] * graph.ranks), 1)

    return run


def multisection(cut: Callable[..., Integers]) -> Library:
    """Return a function that divides the ranks by `cut`, level by level, from the top of the tree down."""

    def run(graph: RankGraph, tree: Sequence[int]) -> SlotOfRank:
        slot = np.zeros(graph.ranks, np.uint32)
        pending = [(np.arange(graph.ranks), 0, len(tree) - 1)]
        while pending:
            ranks, begin, level = pending.pop()
            if level == 0:
                slot[ranks] = begin + np.arange(len(ranks))
                continue
            size = len(ranks) // tree[level]
            part = np.zeros(len(ranks), np.int64)
            if size == 1:
                part = np.arange(len(ranks))
            elif tree[level] > 1:
                part = repair(cut(*graph.part(ranks), tree[level]), [size] * tree[level])
            pending += [(ranks[part == each], begin + each * size, level - 1) for each in range(tree[level])]
        return slot

    return run


def kahip(mode: str) -> Library:
    def cut(first: Integers, other: Integers, weight: Integers, parts: int) -> Integers:
        import kahip as library  # noqa: PLC0415

        ones = np.ones(len(first) - 1, np.int64)
        arrays = [each.tolist() for each in (ones, first, weight, other)]
        _, part = library.kaffpa(*arrays, parts, 0.0, True, 1, getattr(library, mode))
        return np.asarray(part, np.int64)

    return multisection(cut)


def metis() -> Library:
    def cut(first: Integers, other: Integers, weight: Integers, parts: int) -> Integers:
        import pymetis  # noqa: PLC0415

        arrays = {"xadj": first.tolist(), "adjncy": other.tolist(), "eweights": weight.tolist()}
        options = pymetis.Options(ufactor=1, seed=1)
        _, part = pymetis.part_graph(parts, **arrays, recursive=True, options=options)
        return np.asarray(part, np.int64)

    return multisection(cut)


def scotch(graph: RankGraph, tree: Sequence[int]) -> SlotOfRank:
    levels = [size for size in tree[::-1] if size > 1]
    with tempfile.TemporaryDirectory() as name:
        source, target, mapping = (Path(name) / each for each in ("g.grf", "t.tgt", "m.map"))
        rows = []
        for rank in range(graph.ranks):
            entries = slice(graph.first[rank], graph.first[rank + 1])
            edges = zip(graph.weight[entries].tolist(), graph.other[entries].tolist(), strict=True)
            rows.append(f"{graph.first[rank + 1] - graph.first[rank]} " + " ".join(f"{w} {o}" for w, o in edges))
        source.write_text(f"0\n{graph.ranks} {len(graph.other)}\n0 010\n" + "\n".join(rows) + "\n")
        words = [f"{size} {10 ** (len(levels) - level - 1)}" for level, size in enumerate(levels)]
        target.write_text(f"tleaf {len(levels)} " + " ".join(words) + "\n")
        subprocess.run(["scotch_gmap", source, target, mapping, "-b0.001", "-Cf"], check=True, capture_output=True)
        found = np.loadtxt(mapping, dtype=np.int64, skiprows=1)
    part = np.zeros(graph.ranks, np.int64)
    part[found[:, 0]] = found[:, 1]
    return as_slots(repair(part, [1] * graph.ranks), 1)


LIBRARIES: dict[str, Library] = {
    "SharedMap": sharedmap("strong"),
    "KaHIP": kahip("STRONG"),
    "METIS": metis(),
    "Scotch": scotch,
}
