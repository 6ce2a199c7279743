# SPDX-License-Identifier: Apache-2.0
"""Positions in space: the stress agrees with the formula. Feasible lengths are reached. Unusual graphs work."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibprof_converter.layout.plane_positions import project_on_principal_axes
from ibprof_lab.lab_choices import POSITION_METHODS
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.outputs.vertex_positions import EdgeLengths, find_lengths, position_vertices
from ibprof_testing.samples.topologies import SHAPES

Floats = npt.NDArray[np.float64]


def topology_of(vertices: int, edges: list[tuple[int, int]], latency: list[float], **more: object) -> InferredTopology:
    edge = np.array(edges, np.int32).reshape(-1, 2)
    fields = {"support": np.full(len(edge), np.nan), "probability": np.ones(len(edge))} | more
    names = tuple(f"n{vertex}" for vertex in range(vertices))
    return InferredTopology("made", names, (), edge, np.array(latency, np.float64), **fields)  # type: ignore[arg-type]


def stress_by_formula(place: Floats, wanted: EdgeLengths, gamma: float) -> tuple[float, float]:
    """Return f1 and f2 by the published formulas, as sums over ordered pairs."""
    squared = ((place[:, None] - place[None]) ** 2).sum(axis=-1)
    length = np.zeros(squared.shape)
    a, b = wanted.edge.T
    length[a, b] = length[b, a] = wanted.length
    f1 = float((((squared - length**2) ** 2)[length > 0]).sum())
    f2 = 0.0
    for i in range(len(place)):
        for j in range(len(place)):
            if i == j or length[i, j] or squared[i, j] >= 1:
                continue
            f2 += gamma * (1 / squared[i, j] if squared[i, j] else 1)
    return f1, f2


@given(st.integers(2, 25), st.floats(0, 1), st.floats(0.3, 40), st.integers(0, 2**32 - 1))
def test_the_stress_is_the_published_one_and_has_its_slope(
    vertices: int, share: float, extent: float, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    a, b = np.triu_indices(vertices, 1)
    kept = draw.random(len(a)) < share
    edge = np.ascontiguousarray(np.stack([a, b], axis=1)[kept], np.uint32)
    wanted = EdgeLengths(vertices, edge, 1 + draw.random(len(edge)))
    place = draw.uniform(-extent, extent, (vertices, 3))
    (f1, f2, _), gradient = wanted.stress(place, 0.7)
    expected = stress_by_formula(place, wanted, 0.7)
    scale = max(expected) + 1
    assert f1 == pytest.approx(expected[0], abs=1e-9 * scale)
    # The kernel adds all close pairs, then subtracts pairs with an edge. Rounding errors are relative to the first sum.
    assert f2 == pytest.approx(expected[1], rel=1e-6, abs=1e-6 * scale)
    # If a pair's distance is near 1, where f2 has a step, the gradient is not compared.
    squared = ((place[a] - place[b]) ** 2).sum(axis=1)
    step = 1e-6
    if np.abs(squared - 1).min() < 1e-4 * (1 + extent) or squared.min() < 1e-3:
        return
    axis, vertex = int(draw.integers(3)), int(draw.integers(vertices))
    ahead, behind = place.copy(), place.copy()
    ahead[vertex, axis] += step
    behind[vertex, axis] -= step
    slope = sum(stress_by_formula(ahead, wanted, 0.7)) - sum(stress_by_formula(behind, wanted, 0.7))
    size = np.abs(gradient).max() + 1
    assert gradient[vertex, axis] == pytest.approx(slope / 4 / step, abs=1e-4 * size + 1e-6 * scale)


def test_two_vertices_at_one_place_count_as_published() -> None:
    wanted = EdgeLengths(3, np.array([[0, 1]], np.uint32), np.ones(1))
    place = np.zeros((3, 3))
    (f1, f2, close), _ = wanted.stress(place, 0.5)
    assert (f1, f2, close) == (2.0, 4 * 0.5, 4)


def test_places_that_are_no_numbers_are_refused() -> None:
    wanted = EdgeLengths(2, np.array([[0, 1]], np.uint32), np.ones(1))
    with pytest.raises(ValueError, match="not finite"):
        wanted.stress(np.full((2, 3), np.nan), 0.5)


@pytest.mark.parametrize("method", POSITION_METHODS)
def test_lengths_that_fit_into_space_are_kept(method: str) -> None:
    # A tetrahedron with a tail; the shortest edge has length 1.
    edges = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 4)]
    latency = [2e-6, 2e-6, 2e-6, 2e-6, 2e-6, 2e-6, 1e-6]
    space = position_vertices(topology_of(5, edges, latency), method)
    drawn = [float(np.linalg.norm(space.position[a] - space.position[b])) for a, b in edges]
    assert drawn == pytest.approx([2.0] * 6 + [1.0], abs=0.02)
    assert space.deviation < 0.02
    assert space.stress == pytest.approx((space.f1 + space.f2) / 2)


def test_arcs_of_a_pair_are_joined_by_their_probabilities() -> None:
    arcs = topology_of(
        3, [(0, 1), (1, 0), (2, 1)], [1e-6, 4e-6, 8e-6], directed=True, probability=np.array([1, 0.5, 1])
    )
    wanted = find_lengths(arcs)
    assert wanted.edge.tolist() == [[0, 1], [1, 2]]
    assert wanted.length == pytest.approx([1.0, 8 / ((1 * 1 + 4 * 0.5) / 1.5)])


def test_fast_is_no_worse_than_the_published_descent() -> None:
    made = SHAPES["torus"](16)
    edges = sorted(made.edges())
    topology = topology_of(16, edges, [1e-6] * len(edges))
    fast, paper = (position_vertices(topology, method) for method in POSITION_METHODS)
    assert fast.stress <= 1.1 * paper.stress


@pytest.mark.parametrize(
    ("vertices", "edges"), [(0, []), (1, []), (2, []), (2, [(0, 1)]), (5, [(0, 1), (2, 3)]), (4, [(0, 1), (1, 1)])]
)
def test_odd_graphs_have_places(vertices: int, edges: list[tuple[int, int]]) -> None:
    for latency in (1e-6, 0.0):
        space = position_vertices(topology_of(vertices, edges, [latency] * len(edges)))
        assert space.position.shape == (vertices, 3)
        assert np.isfinite(space.position).all()
        assert len(np.unique(space.position, axis=0)) == vertices


def test_the_same_seed_gives_the_same_places() -> None:
    made = SHAPES["torus"](16)
    topology = topology_of(16, sorted(made.edges()), [1e-6] * len(made.edges()))
    one, other = (position_vertices(topology, seed=3).position for _ in range(2))
    assert one.tolist() == other.tolist()


@pytest.mark.parametrize("signs", list(product((1, -1), repeat=3)))
def test_the_positions_are_the_same_whatever_signs_the_eigenvectors_have(
    signs: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A LAPACK library may return an eigenvector with either sign."""
    chain = topology_of(4, [(0, 1), (1, 2), (2, 3)], [1e-6, 3e-6, 4e-6])
    expected = position_vertices(chain).position

    def decompose(
        matrix: Floats, found: Callable[[Floats], tuple[Floats, Floats]] = np.linalg.eigh
    ) -> tuple[Floats, Floats]:
        values, vectors = found(matrix)
        return values, vectors * np.array([1, *signs])[-len(values) :]

    monkeypatch.setattr(np.linalg, "eigh", decompose)
    assert position_vertices(chain).position == pytest.approx(expected, abs=1e-6)


def test_rotated_points_have_the_same_coordinates_on_their_principal_axes() -> None:
    draw = np.random.default_rng(4)
    points = draw.normal(size=(20, 3)) * [9, 3, 1]
    expected = project_on_principal_axes(points, 3)
    assert np.ptp(expected, axis=0).argsort().tolist() == [2, 1, 0]
    for _ in range(20):
        rotation, _ = np.linalg.qr(draw.normal(size=(3, 3)))
        assert project_on_principal_axes(points @ rotation, 3) == pytest.approx(expected)
    assert project_on_principal_axes(points[:, :1], 2)[:, 1].tolist() == [0.0] * 20
