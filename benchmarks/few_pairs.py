# SPDX-License-Identifier: Apache-2.0
"""Count the pairs and rounds that `ibprof-latency measure --few-pairs` measures, and check the inferred tree.

Run it from a checkout, with ibprof installed:

    python benchmarks/few_pairs.py [--seeds 6]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from ibprof_lab.topology.infer.few_pairs import PairSearch
from ibprof_lab.topology.infer.inference import InferenceEffort, infer
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_testing.samples.topologies import SHAPES, Made, Matrix, disturb, tree

SECONDS_OF_A_DIRECTION, SECONDS_OF_A_BARRIER = (11 + 1.5) * 1e-3, 3e-4
"""Estimated seconds of `ibprof-latency measure`: to measure a pair in one direction, and for a round's barrier.

Each direction takes 11 batches of 1 ms, after 1.5 ms to find the batch length. Without `--few-pairs`, pairs are
measured in both directions; with `--few-pairs`, in one direction.
"""

CASES = {
    "2 levels, 256 hosts": SHAPES["2 levels"](256),
    "3 levels, 256 hosts": SHAPES["3 levels"](256),
    "director, 256 hosts": SHAPES["director"](256),
    "2 levels, 1,008 hosts": tree(28, 36),
    "3 levels, 1,008 hosts": tree(4, 7, 36),
}


def search(true: Matrix, seed: int) -> tuple[Matrix, int, int, float]:
    """Return the measured delays, the number of rounds, the number of pairs, and the search's processor time in s."""
    chooser = PairSearch(len(true), seed)
    measured = np.full_like(true, np.nan)
    np.fill_diagonal(measured, 0.0)
    rounds = pairs = 0
    own = 0.0
    while True:
        begin = time.process_time()
        chosen = chooser.choose_pairs(measured)
        own += time.process_time() - begin
        if chosen is None:
            return measured, rounds, pairs, own
        a, b = np.array(chosen).T
        measured[a, b] = measured[b, a] = true[a, b]
        rounds += 1
        pairs += len(chosen)


def is_exact(seconds: Matrix, made: Made) -> bool:
    names = tuple(f"n{host}" for host in range(made.hosts))
    topology = infer(PairDelays(names, seconds, "median", 0, ()), InferenceEffort(replicates=0)).topology
    found = {split for split in topology.find_splits() if split and 1 < len(split) < made.hosts - 1}
    return found == made.splits()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=6)
    seeds = parser.parse_args().seeds
    print(
        "| hosts | noise | exact by few pairs | exact by all pairs | pairs | rounds | time | choosing them | "
        "rounds of all | time |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, made in CASES.items():
        for noise in (0.02, 0.05, 0.08):
            few = every = rounds = pairs = 0
            own = 0.0
            for seed in range(seeds):
                true = disturb(made.delays(), noise, seed)
                measured, used, count, took = search(true, seed)
                few += is_exact(measured, made)
                every += is_exact(true, made)
                rounds += used
                pairs += count
                own += took
            share = pairs / seeds / (made.hosts * (made.hosts - 1) / 2)
            print(
                f"| {name} | {noise:.0%} | {few}/{seeds} | {every}/{seeds} | {share:.1%} | {rounds / seeds:.0f} | "
                f"{rounds / seeds * (SECONDS_OF_A_DIRECTION + SECONDS_OF_A_BARRIER):.1f} s | {own / seeds:.1f} s | "
                f"{made.hosts - 1} | {(made.hosts - 1) * (2 * SECONDS_OF_A_DIRECTION + SECONDS_OF_A_BARRIER):.1f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
