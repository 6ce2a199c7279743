# SPDX-License-Identifier: Apache-2.0
"""A search that chooses few pairs finds the same tree as all pairs, in fewer and shorter rounds."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ibprof_lab.topology.infer.few_pairs import PairSearch
from ibprof_lab.topology.infer.inference import Inference, InferenceEffort, infer
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_testing.samples.topologies import SHAPES, Matrix, disturb, tree

SECONDS_OF_A_ROUND = (11 + 1.5) * 1e-3 + 3e-4
"""Time of a round by default: 11 batches of 1 ms, the search for the batch length (1.5 ms), and a barrier."""


def search(true: Matrix, seed: int) -> tuple[Matrix, list[list[tuple[int, int]]], PairSearch]:
    """Return the measured delays, the pairs of each round, and the finished search."""
    chooser = PairSearch(len(true), seed)
    measured = np.full_like(true, np.nan)
    np.fill_diagonal(measured, 0.0)
    rounds = []
    while (pairs := chooser.choose_pairs(measured)) is not None:
        rounds.append(pairs)
        a, b = np.array(pairs).T
        assert np.isnan(measured[a, b]).all(), "measured twice"
        assert len(np.unique([a, b])) == 2 * len(pairs), "a host in two pairs of a round"
        measured[a, b] = measured[b, a] = true[a, b]
    return measured, rounds, chooser


def infer_quickly(seconds: Matrix) -> Inference:
    names = tuple(f"n{host}" for host in range(len(seconds)))
    return infer(PairDelays(names, seconds, "median", 0, ()), InferenceEffort(replicates=0))


def splits(found: Inference) -> set[frozenset[int]]:
    hosts = len(found.topology.hosts)
    return {split for split in found.topology.find_splits() if split and 1 < len(split) < hosts - 1}


@pytest.mark.parametrize(
    ("hosts", "noise"), [(64, 0.0), (64, 0.05), pytest.param(256, 0.0, marks=pytest.mark.full), (256, 0.05)]
)
@pytest.mark.parametrize("shape", ["2 levels", "3 levels", "director"])
def test_few_pairs_show_the_tree_of_all_pairs(shape: str, noise: float, hosts: int) -> None:
    made = SHAPES[shape](hosts)
    true = disturb(made.delays(), noise, 1)
    measured, rounds, _ = search(true, 1)
    found = infer_quickly(measured)
    assert splits(infer_quickly(true)) == made.splits()
    # With errors, the test allows one host on a wrong switch, if the result reports this host as doubtful.
    unsure = {int(host) for doubt in found.topology.unknown for host in re.findall(r"another switch: n(\d+)", doubt)}
    assert len(unsure) <= (1 if noise else 0)
    assert {split - unsure for split in splits(found)} == {split - unsure for split in made.splits()}
    assert len(found.topology.edge) == found.topology.vertices - 1
    pairs = sum(len(each) for each in rounds)
    assert pairs < hosts * (hosts - 1) / 2
    if hosts == 256:
        assert pairs < 0.4 * hosts * (hosts - 1) / 2
        assert any("of the pairs were measured" in note for note in found.topology.notes)


@pytest.mark.parametrize("levels", [pytest.param((28, 36), marks=pytest.mark.full), (4, 7, 36)])
def test_a_thousand_hosts_take_less_than_three_seconds(levels: tuple[int, ...]) -> None:
    made = tree(*levels)
    true = disturb(made.delays(), 0.05, 1)
    measured, rounds, _ = search(true, 1)
    assert len(rounds) * SECONDS_OF_A_ROUND < 3.0
    assert splits(infer_quickly(measured)) == made.splits()


@pytest.mark.parametrize("shape", ["torus", "line", "mixed speeds"])
def test_other_networks_need_all_pairs(shape: str) -> None:
    _, _, chooser = search(SHAPES[shape](256).delays(), 1)
    assert not chooser.is_hierarchy


def test_a_host_on_no_switch_of_others_stays_alone() -> None:
    true = disturb(tree(4, 20).delays(), 0.02, 3)
    true[79, :79] = true[:79, 79] = 4.0e-6  # this host has the same delay to all others
    measured, _, _ = search(true, 1)
    found = infer_quickly(measured)
    assert splits(found) == splits(infer_quickly(true))
    assert frozenset(range(60, 79)) in splits(found)
