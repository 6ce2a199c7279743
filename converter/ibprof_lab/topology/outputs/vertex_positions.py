# SPDX-License-Identifier: Apache-2.0
"""3-D positions of a topology's vertices, with edge lengths about proportional to latencies; a page of the positions.

The published and the fast method minimise a stress, the sum of two parts. Part f1 is the sum over edges of (d^2 -
M^2)^2, with distance d and expected distance M. Part f2 is gamma times the sum of 1 / d^2 over those pairs of vertices
that have no edge and are nearer than the shortest edge. The published method starts with all vertices near a line. The
fast method starts near the minimum: distances to a few vertices, the pivots, approximate the graph distances.

Source: P. S. Bannikov, A. N. Salnikov, on recognising the topology of a cluster's communication environment by load
tests (in Russian, 2013), stages 1 and 2 of drawing; step lengths as in their program. U. Brandes, C. Pich, "Eigensolver
Methods for Progressive Multidimensional Scaling of Large Data" (2006), pivots.
"""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import dijkstra

from ibprof.native.libraries import load_kernels
from ibprof.text.quantities import count_of
from ibprof_converter.layout.plane_positions import project_on_principal_axes
from ibprof_converter.outputs.atomic_write import write_text
from ibprof_converter.viewer.view_document import LinkValue, describe_link_values
from ibprof_converter.viewer.view_file import NONE, Arrays
from ibprof_converter.viewer.view_runs import describe_nothing
from ibprof_lab.lab_choices import GAMMA
from ibprof_lab.latency.outputs.space_page import write_space_page
from ibprof_lab.topology.model.inferred_topology import NO_EDGE, InferredTopology, attach_hosts, weigh_edges

Floats = npt.NDArray[np.float64]

_PIVOTS = 50
_MAJORISATIONS = 30
_FARTHEST_STEP = 0.5
_SHORTEST = 0.05
_JITTER = 0.35
_PAIRS = 1e8
_FEWEST, _MOST = 25, 300
_PATIENCE, _WORTH_IT = 30, 0.999
_GROW, _SHRINK = 1.5, 16.0
_STILL = 1e-9
_TOO_FAR = 1e6


@dataclass(frozen=True, slots=True)
class VertexPositions:
    """Positions and their quality.

    Attributes:
        position: float64 [vertex, 3], in units of the shortest expected length, centred on 0.
        method: name from `POSITION_METHODS`.
        gamma: weight of the penalty f2.
        f1: penalty of edges with wrong lengths.
        f2: penalty of near vertices without an edge, times `gamma`.
        deviation: typical relative deviation of an edge's length from the expected length.
        seconds: wall time of the computation.
    """

    position: Floats
    method: str
    gamma: float
    f1: float
    f2: float
    deviation: float
    seconds: float

    @property
    def stress(self) -> float:
        """The stress f."""
        return (self.f1 + self.f2) / 2

    def describe(self) -> str:
        """Return a sentence on the quality of the positions."""
        stress, f1, f2 = (f"{round(part, 6):.4g}" for part in (self.stress, self.f1, self.f2))
        return (
            f"positions by the method {self.method} make links about as long as their delays: lengths deviate by "
            f"{self.deviation:.1%}. The stress {stress} is the mean of {f1} (links) and {f2} (near vertices without a "
            f"link, gamma {self.gamma:g})"
        )


@dataclass(frozen=True, slots=True)
class EdgeLengths:
    """Expected lengths of edges.

    Attributes:
        edge: uint32 [edge, 2], two vertices each; parallel edges and the two arcs of a pair are one edge.
        length: float64 [edge], expected length; 1 for the shortest edge.
    """

    vertices: int
    edge: npt.NDArray[np.uint32]
    length: Floats

    def stress(self, place: Floats, gamma: float) -> tuple[Floats, Floats]:
        """Return the stress parts f1 and f2, the number of pairs in f2, float64 [3], and the gradient, [vertex, 3].

        Raises:
            ValueError: a position is not finite.
        """
        kernels = load_kernels()
        place = np.ascontiguousarray(place)
        gradient, stress = np.empty_like(place), np.empty(3)
        status = kernels.lib.ibp_stress(
            kernels.ffi.cast("double (*)[3]", place.ctypes.data),
            self.vertices,
            kernels.ffi.cast("uint32_t (*)[2]", self.edge.ctypes.data),
            kernels.pointer(self.length),
            len(self.edge),
            gamma,
            kernels.ffi.cast("double (*)[3]", gradient.ctypes.data),
            kernels.pointer(stress),
        )
        if status:
            raise ValueError(f"positions that are not finite: {status}")
        return stress, gradient


def position_vertices(
    topology: InferredTopology, method: str = "fast", gamma: float = GAMMA, seed: int = 0
) -> VertexPositions:
    """Return a position for each vertex.

    Args:
        topology: the topology, which may be unconnected.
        method: name from `POSITION_METHODS`; `paper` takes minutes for hundreds of vertices.
        gamma: weight of the part f2 of the stress, 0 to 1.
    """
    begun = time.monotonic()
    wanted = find_lengths(topology)
    if topology.vertices == 0:
        return VertexPositions(np.zeros((0, 3)), method, gamma, 0.0, 0.0, 0.0, 0.0)
    place = (_place_fast if method == "fast" else _place_as_published)(wanted, gamma, np.random.default_rng(seed))
    place -= place.mean(axis=0)
    place = project_on_principal_axes(place, 3)  # the viewer then shows the broad side
    (f1, f2, _), _ = wanted.stress(place, gamma)
    drawn = np.linalg.norm(place[wanted.edge[:, 0]] - place[wanted.edge[:, 1]], axis=1)
    missed = float(np.sqrt(np.mean((drawn / wanted.length - 1) ** 2))) if len(drawn) else 0.0
    return VertexPositions(place, method, gamma, float(f1), max(float(f2), 0.0), missed, time.monotonic() - begun)


def find_lengths(topology: InferredTopology) -> EdgeLengths:
    """Return the expected length of each edge, proportional to its latency. The latency of two opposite arcs is the
    mean of their latencies, weighted by probability. Latencies below a twentieth of the median, such as 0, are raised
    to a twentieth.

    Source: formula (2).
    """
    ends = np.sort(topology.edge, axis=1).astype(np.int64)
    apart = ends[:, 0] != ends[:, 1]
    weight = np.maximum(topology.probability, 1e-12)[apart]
    pair, which = np.unique(ends[apart], axis=0, return_inverse=True)
    which = which.ravel()
    total = np.bincount(which, weight, len(pair))
    latency = np.bincount(which, weight * topology.latency_seconds[apart], len(pair)) / total
    if len(pair):
        usual = float(np.median(latency)) or 1.0
        latency = np.maximum(latency, _SHORTEST * usual)
        latency /= latency.min()
    return EdgeLengths(topology.vertices, np.ascontiguousarray(pair.reshape(-1, 2), np.uint32), latency)


def _place_fast(wanted: EdgeLengths, gamma: float, draw: np.random.Generator) -> Floats:
    jitter = _JITTER * (float(np.median(wanted.length)) if len(wanted.edge) else 1.0)
    displaced = draw.normal(0, jitter, (wanted.vertices, 3))
    place = _keep_distances(wanted, displaced) if len(wanted.edge) else displaced
    rounds = int(np.clip(_PAIRS / (len(wanted.edge) + 50 * wanted.vertices), _FEWEST, _MOST))
    return _go_down(wanted, place, gamma, rounds)


def _go_down(wanted: EdgeLengths, place: Floats, gamma: float, rounds: int) -> Floats:
    """Minimise the stress with Barzilai and Borwein's step lengths; return the best positions. The term of a pair in f2
    jumps from gamma to 0 at distance 1: to compare positions, gamma is subtracted from each such term.
    """
    step, best, settled = 1e-3, (np.inf, place), np.inf
    moved, before = np.zeros_like(place), np.zeros_like(place)
    for number in range(rounds):
        (f1, f2, close), gradient = wanted.stress(place, gamma)
        if (reached := f1 + f2 - gamma * close) < best[0]:
            best = reached, place
        if number % _PATIENCE == 0:
            if best[0] > _WORTH_IT * settled:
                break
            settled = best[0]
        if number:
            turned = gradient - before
            across = float((moved * turned).sum())
            step = float((moved * moved).sum()) / across if across > 0 else 2 * step
        before = gradient
        moved = -step * gradient
        # Limit the step of each vertex: two vertices at almost the same position have an almost infinite gradient.
        far = np.sqrt((moved * moved).sum(axis=1))
        moved *= np.minimum(1, _FARTHEST_STEP / np.maximum(far, 1e-300))[:, None]
        place = place + moved
    return best[1]


def _keep_distances(wanted: EdgeLengths, displaced: Floats) -> Floats:
    """Return positions whose distances to pivots approximate the graph distances, float64 [vertex, 3].

    The random displacements `displaced` separate vertices with equal distances to all pivots, such as hosts of one
    switch.
    """
    pivots, distance = _find_pivots(wanted)
    place = _scale_pivots(distance) + displaced
    weight = 1 / np.where(distance > 0, distance, np.inf) ** 2
    weight /= np.maximum(weight.sum(axis=1), 1e-300)[:, None]
    # Majorisation: each vertex moves to the weighted mean of the positions at the right distances from the pivots.
    for _ in range(_MAJORISATIONS):
        pushed = np.empty_like(place)
        apart = [place[:, axis, None] - place[pivots, axis] for axis in range(3)]
        drawn = np.sqrt(apart[0] ** 2 + apart[1] ** 2 + apart[2] ** 2)
        longer = weight * distance / np.maximum(drawn, 1e-9)
        for axis in range(3):
            pushed[:, axis] = (weight * place[pivots, axis]).sum(axis=1) + (longer * apart[axis]).sum(axis=1)
        place = pushed
    return place + 0.1 * displaced


def _find_pivots(wanted: EdgeLengths) -> tuple[npt.NDArray[np.intp], Floats]:
    """Choose vertices far from each other as pivots; return the pivots, and distances, float64 [vertex, pivot]."""
    count = wanted.vertices
    graph = weigh_edges(wanted.edge, wanted.length, count)
    pivots = np.zeros(min(_PIVOTS, count), np.intp)
    distance = np.empty((count, len(pivots)))
    nearest = np.full(count, np.inf)
    for number in range(len(pivots)):
        (distance[:, number],) = dijkstra(graph, directed=True, indices=pivots[number : number + 1])
        nearest = np.minimum(nearest, distance[:, number])
        pivots[number + 1 : number + 2] = nearest.argmax()
    # A finite distance places unconnected components side by side.
    apart = np.isinf(distance)
    distance[apart] = 1.5 * distance[~apart].max() + 1
    return pivots, distance


def _scale_pivots(distance: Floats) -> Floats:
    """Return positions by classical multidimensional scaling of the distances to pivots, float64 [vertex, 3]."""
    squared = distance**2
    centred = -0.5 * (squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean())
    place = project_on_principal_axes(centred, 3)
    spread = float(np.sqrt((place**2).sum(axis=1)).mean())
    return place * (float(distance.mean()) / 2 / spread) if spread > 0 else place


def _place_as_published(wanted: EdgeLengths, gamma: float, draw: np.random.Generator) -> Floats:
    """Minimise the stress from random positions near a line. A step that reduces the stress makes the next step longer.
    Any other step is reverted, and makes the next step shorter. Descents from new random positions follow until all
    steps are used.
    """
    count = wanted.vertices
    rounds = int(np.clip(100 * _PAIRS / (len(wanted.edge) + 50 * count), 100 * _FEWEST, 100 * _MOST))
    best: tuple[float, Floats] = (np.inf, np.zeros((count, 3)))
    while rounds > 0:
        start = np.arange(count)[:, None] / count + draw.normal(0, 1.0, (count, 3))
        stress, place, used = _descend(wanted, start, gamma, rounds)
        best = min(best, (stress, place), key=lambda each: each[0])
        rounds -= used
    return best[1]


def _descend(wanted: EdgeLengths, place: Floats, gamma: float, rounds: int) -> tuple[float, Floats, int]:
    """Return f1 + f2 after the descent, the positions, and the number of steps tried."""
    (f1, f2, _), gradient = wanted.stress(place, gamma)
    best, step = f1 + f2, 1e-3
    for number in range(rounds):
        tried = place - step * gradient
        if np.isfinite(tried).all() and np.abs(tried).max() < _TOO_FAR:
            (f1, f2, _), slope = wanted.stress(tried, gamma)
            if f1 + f2 < best:
                place, gradient, best = tried, slope, f1 + f2
                step *= _GROW
                continue
        step /= _SHRINK
        if step * np.abs(gradient).max() < _STILL:
            return best, place, number + 1
    return best, place, rounds


def write_topology_page(path: Path, topology: InferredTopology, title: str, space: VertexPositions) -> None:
    """Write a web page that shows the topology in 3-D; `title` is plain text, not HTML.

    Two opposite arcs are shown as one link with a value for each direction.

    Raises:
        OSError: the file cannot be written.
    """
    ends, values = _pair_arcs(topology)
    noise = "" if isnan(topology.noise) else f"; delays deviate by {topology.noise:.1%} from this model"
    switches = f"{count_of(len(topology.switches), 'switch')}, " if topology.switches else ""
    header: dict[str, object] = {
        "title": title,
        "node_names": list(topology.names),
        "host_names": list(topology.hosts),
        "about": f"{count_of(len(topology.hosts), 'host')}, {switches}{count_of(len(ends), 'link')} by "
        f"method {topology.method}{noise}; no traffic",
        "runs": [describe_nothing([*topology.notes, *topology.unknown, space.describe()])],
    }
    hosts, number = len(topology.hosts), np.arange(topology.vertices)
    arrays: Arrays = {
        "node_level": (number >= hosts).astype(np.int32),
        "node_host": np.where(number < hosts, number, NONE).astype(np.int32),
    }
    describe_link_values(header, arrays, values)
    write_space_page(path, header, space.position, hosts, ends, arrays)


def _pair_arcs(topology: InferredTopology) -> tuple[npt.NDArray[np.int64], list[LinkValue]]:
    """Return the two vertices of each link, int64 [link, 2], and the links' properties in both directions."""
    low, high = topology.edge.min(axis=1), topology.edge.max(axis=1)
    ends, link = np.unique(np.stack([low, high], axis=1).astype(np.int64), axis=0, return_inverse=True)
    link = link.ravel()
    from_end = 2 * link + (topology.edge[:, 0] == high)
    known = {
        ("delay", "s"): topology.latency_seconds,
        ("probability", ""): topology.probability,
        ("support", ""): topology.support,
        ("throughput", "Gb/s"): topology.throughput.edge_gbps if topology.throughput else None,
    }
    values: list[LinkValue] = []
    for (name, unit), given in known.items():
        if given is None or np.isnan(given).all():
            continue
        value = np.full(2 * len(ends), np.nan)
        value[from_end] = given
        if not topology.directed:
            value[from_end ^ 1] = given
        values.append(LinkValue(name, unit, value))
    # The page first shows the first property: probabilities if they differ, else delays.
    if len(ends) and np.ptp(topology.probability) > 0:
        values.sort(key=lambda each: each.name != "probability")
    return ends, values


def write_positions(path: Path, topology: InferredTopology, space: VertexPositions) -> None:
    """Write positions for `ibprof-view --node-data`, with the node names of `make_fabric`. In a direct network, the
    position of a host is written for its switch; the view places the host next to this switch.

    Raises:
        OSError: the file cannot be written.
    """
    attachment = attach_hosts(topology)
    hosts, switches = len(topology.hosts), len(topology.switches)
    rows = list(zip(attachment.switch_name[:switches], space.position[hosts:].tolist(), strict=True))
    on_switch = zip(attachment.host_switch.tolist(), attachment.host_edge.tolist(), strict=True)
    for host, (switch, edge) in enumerate(on_switch):
        name = attachment.switch_name[switch] if edge == NO_EDGE else f"{topology.hosts[host]} HCA-1"
        rows.append((name, space.position[host].tolist()))

    def write(file: TextIO) -> None:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("node", "x", "y", "z"))
        writer.writerows((name, *(f"{at:.4f}" for at in place)) for name, place in rows)

    write_text(path, write)
