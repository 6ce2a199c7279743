# SPDX-License-Identifier: Apache-2.0
"""Pulled and moved cables of a regular fabric are found exactly, without a plan of the cabling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.layout.node_levels import find_levels
from ibprof_converter.layout.regular_cabling import fit_regular_cabling
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample
from ibprof_testing.samples.routed_plants import cut, join, leaf_to_leaf, leaves, switch_links, wrong_spine

SHAPES = {
    "xgft:2:8,8:1,8": "tree of 2 levels",
    "xgft:2:8,8:1,4:1,2": "tree of 2 levels",
    "xgft:3:4,4,4:1,4,2": "tree of 3 levels",
    "torus:6x6:1": "torus of 6 x 6 switches",
    "torus:3x4x5:1": "torus of 3 x 4 x 5 switches",
    "dragonfly:4,2,2": "dragonfly of 9 groups of 4 switches",
}


def pairs_of(fabric: Fabric, pairs: np.ndarray) -> list[tuple[str, ...]]:
    return sorted(tuple(sorted(fabric.node_name[node] for node in pair)) for pair in pairs.tolist())


def groups_of(pair: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(end.split("-")[0] for end in pair))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_whole_fabric_fits(shape: str) -> None:
    fitted = fit_regular_cabling(generate(shape).fabric)
    assert fitted is not None
    assert fitted.name.startswith(SHAPES[shape])
    assert not len(fitted.extra)
    assert not len(fitted.missing)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", SHAPES)
def test_pulled_cables_are_those_that_are_missing(shape: str, seed: int) -> None:
    fabric = generate(shape).fabric
    links = np.array(switch_links(fabric))
    # The two pulled cables have no switch in common. If they shared a switch, several regular fabrics could fit.
    draw = np.random.default_rng(seed).permutation(links)
    first = draw[0]
    second = next(link for link in draw if not np.isin(fabric.link_node[link], fabric.link_node[first]).any())
    gone = np.array([first, second])
    broken = cut(fabric, gone.tolist())
    fitted = fit_regular_cabling(broken)
    assert fitted is not None
    assert not len(fitted.extra)
    found, pulled = (pairs_of(fabric, pairs) for pairs in (fitted.missing, fabric.link_node[gone]))
    if shape.startswith("dragonfly"):
        # In a dragonfly, any switch of a group may have the cable to another group, so only groups are compared.
        assert sorted(map(groups_of, found)) == sorted(map(groups_of, pulled))
        return
    assert found == pulled


@pytest.mark.parametrize("shape", ["xgft:2:8,8:1,8", "xgft:3:4,4,4:1,4,2", "xgft:2:12,6:1,12"])
def test_a_cable_in_the_wrong_spine_is_found(shape: str) -> None:
    fabric = generate(shape).fabric
    broken = wrong_spine(2, 0, 3)(fabric)
    fitted = fit_regular_cabling(broken)
    assert fitted is not None
    (extra,) = fitted.extra.tolist()
    new = {tuple(pair) for pair in zip(broken.link_node[extra].tolist(), broken.link_port[extra].tolist(), strict=True)}
    old = set(zip(fabric.link_node.ravel().tolist(), fabric.link_port.ravel().tolist(), strict=True))
    assert not new <= old, "the cable that was moved, not the one that belongs to this spine"
    assert len(fitted.missing) == 1
    assert leaves(fabric)[2] in fitted.missing[0]


def test_leaves_that_are_joined_are_found() -> None:
    fabric = generate("xgft:2:8,8:1,8").fabric
    broken = leaf_to_leaf(1, 6, 3)(fabric)
    fitted = fit_regular_cabling(broken)
    assert fitted is not None
    assert pairs_of(broken, broken.link_node[fitted.extra]) == [("L1-2", "L1-7")]
    assert pairs_of(broken, fitted.missing) == [("L1-2", "L2-4"), ("L1-7", "L2-4")]


def test_a_cable_across_a_torus_is_found() -> None:
    fabric = generate("torus:6x6:1").fabric
    names = list(fabric.node_name)
    lost = [
        link
        for link in switch_links(fabric)
        if {names[node] for node in fabric.link_node[link]} in ({"sw0-0", "sw0-1"}, {"sw3-3", "sw3-4"})
    ]
    assert len(lost) == 2
    broken = join(cut(fabric, lost), names.index("sw0-0"), names.index("sw3-3"))
    fitted = fit_regular_cabling(broken)
    assert fitted is not None
    assert pairs_of(broken, broken.link_node[fitted.extra]) == [("sw0-0", "sw3-3")]
    assert pairs_of(broken, fitted.missing) == [("sw0-0", "sw0-1"), ("sw3-3", "sw3-4")]


@pytest.mark.parametrize("seed", range(6))
def test_an_irregular_fabric_fits_none(seed: int) -> None:
    """The fabric has random cables, as many as a torus."""
    fabric = generate("torus:6x6:1").fabric
    links = switch_links(fabric)
    broken = cut(fabric, links)
    draw = np.random.default_rng(seed)
    for _ in links:
        one, other = draw.choice(36, 2, replace=False)
        broken = join(broken, int(one), int(other))
    assert fit_regular_cabling(broken) is None


@pytest.mark.parametrize("sample", ["testbed44", "xgft3-512", "xgft3-1296-partial", "quirks-small", "dragonfly-72"])
def test_real_dumps_of_whole_fabrics_have_no_cable_out_of_place(sample: str) -> None:
    fitted = fit_regular_cabling(load_sample(sample, IBDIAGNET).fabric)
    assert fitted is None or (len(fitted.extra), len(fitted.missing)) == (0, 0)


@pytest.mark.parametrize(
    ("shape", "swaps"),
    [
        ("xgft:2:4,4:1,3", 36),
        ("xgft:2:4,4:1,2", 12),
        ("xgft:2:2,3:1,3", 18),
        ("xgft:2:2,3:1,2", 6),
        ("xgft:2:4,6:1,3", 90),
        ("xgft:2:2,8:1,4", 336),
    ],
)
def test_two_cables_that_changed_places_are_named_in_a_small_tree(shape: str, swaps: int) -> None:
    fabric = generate(shape).fabric
    links = switch_links(fabric)
    tried = 0
    for place, one in enumerate(links):
        for other in links[place + 1 :]:
            if np.isin(fabric.link_node[one], fabric.link_node[other]).any():
                continue  # Swapping two cables of one switch leaves the same fabric.
            node, port = fabric.link_node.copy(), fabric.link_port.copy()
            for ends in (node, port):
                ends[[one, other], 1] = ends[[other, one], 1]
            fitted = fit_regular_cabling(replace(fabric, link_node=node, link_port=port))
            assert fitted is not None
            assert pairs_of(fabric, node[fitted.extra]) == pairs_of(fabric, node[[one, other]])
            assert pairs_of(fabric, fitted.missing) == pairs_of(fabric, fabric.link_node[[one, other]])
            tried += 1
    assert tried == swaps


def test_two_cables_of_pods_of_three_leaves_that_changed_places_are_named() -> None:
    """ibprof may name another pair of cables that fits, but names the two lower switches of the swapped cables."""
    fabric = generate("xgft:3:2,3,3:1,2,2").fabric
    links, level = switch_links(fabric), find_levels(fabric)
    tried = 0
    for place, one in enumerate(links):
        for other in links[place + 1 :]:
            ends = fabric.link_node[[one, other]]
            lower = level[ends].min(axis=1)
            if lower[0] != lower[1] or np.isin(ends[0], ends[1]).any():
                continue
            node, port = fabric.link_node.copy(), fabric.link_port.copy()
            for each in (node, port):
                each[[one, other], 1] = each[[other, one], 1]
            fitted = fit_regular_cabling(replace(fabric, link_node=node, link_port=port))
            assert fitted is not None
            assert len(fitted.extra) == len(fitted.missing) == 2
            assert set(ends[level[ends] == lower[:, None]]) <= set(node[fitted.extra].ravel())
            tried += 1
    assert tried == 174
