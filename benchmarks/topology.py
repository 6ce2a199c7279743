# SPDX-License-Identifier: Apache-2.0
"""Measure how often `ibprof-topology infer` and two published methods recover a topology, and how long they take.

Run it from a checkout, with ibprof installed:

    python benchmarks/topology.py recovery [--hosts 16,64,256] [--seeds 30] [--shapes line] [--methods ibprof,bufe]
        [--log FILE] [--patience 10]
    python benchmarks/topology.py wrong [--hosts 16,64] [--seeds 30]
    python benchmarks/topology.py time
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.topology.infer.inference import InferenceEffort, infer
from ibprof_lab.topology.infer.model_choice import choose_model, find_unconfirmed
from ibprof_lab.topology.infer.pair_delays import PairDelays, take_pair_delays
from ibprof_lab.topology.infer.published_methods import infer_bannikov_salnikov, infer_bufe
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_testing.samples.topologies import SHAPES, Made, Matrix, disturb

NOISES = (0.0, 0.02, 0.05, 0.08, 0.12)
DIRECT_NOISES = (0.0, 0.005, 0.01, 0.02, 0.05)
EPSILON = 0.2
CLIQUE_SECONDS = {16: 2.0, 64: 2.0, 256: 5.0}
"""Number of hosts -> limit of the search's CPU time in s. Other work on the machine hardly changes CPU time."""

Draw = tuple[str, int, str, float, int]
"""Shape, hosts, method, noise, seed."""

Outcome = tuple[bool, float, bool]
"""True if the whole topology was recovered; F1 score of the parts; True if the search gave up."""

Infer = Callable[[Matrix], InferredTopology]


def infer_by_ibprof(matrix: Matrix) -> InferredTopology:
    names = tuple(str(host) for host in range(len(matrix)))
    return infer(PairDelays(names, matrix, "median", 0, ()), InferenceEffort(replicates=0)).topology


def bufe(matrix: Matrix) -> InferredTopology:
    return infer_bufe(matrix, [str(host) for host in range(len(matrix))], EPSILON, CLIQUE_SECONDS.get(len(matrix), 5.0))


def bannikov_salnikov(matrix: Matrix) -> InferredTopology:
    return infer_bannikov_salnikov(matrix[None], [str(host) for host in range(len(matrix))])


METHODS: dict[str, tuple[str, Infer]] = {
    "ibprof": ("ibprof", infer_by_ibprof),
    "bufe": ("Bufe", bufe),
    "bannikov-salnikov": ("Bannikov, Salnikov", bannikov_salnikov),
}


def find_parts(topology: InferredTopology) -> tuple[set[object], set[object]]:
    """Return the splits and the links. `judge` compares the splits of a tree, or the links of a direct network."""
    hosts = len(topology.hosts)
    splits: set[object] = {split for split in topology.find_splits() if split and 1 < len(split) < hosts - 1}
    return splits, {(min(edge), max(edge)) for edge in topology.edge.tolist()}


def judge(topology: InferredTopology, made: Made) -> tuple[bool, float]:
    """Return whether the topology has exactly the true parts, and the F1 score of the parts."""
    splits, links = find_parts(topology)
    found, wanted = (links, set(made.edges())) if made.is_direct else (splits, set(made.splits()))
    exact = found == wanted and (made.is_direct or len(topology.edge) == topology.vertices - 1)
    both = len(found & wanted)
    return exact, 2 * both / (len(found) + len(wanted)) if found or wanted else float(exact)


def show_recovery(
    shapes: list[str], sizes: list[int], methods: list[str], seeds: int, log: Path | None, patience: int
) -> None:
    known = read_log(log)
    for shape, hosts in product(shapes, sizes):
        made = SHAPES[shape](hosts)
        delays = made.delays()
        for name in methods:
            cells = []
            for noise in DIRECT_NOISES if made.is_direct else NOISES:
                # Without noise, all samples have the same matrix: one sample is enough.
                results: list[Outcome] = []
                for seed in range(seeds if noise else 1):
                    key = (shape, hosts, name, noise, seed)
                    if key not in known:
                        topology = METHODS[name][1](disturb(delays, noise, seed))
                        known[key] = (*judge(topology, made), name == "bufe" and bool(topology.unknown))
                        append_log(log, key, known[key])
                    results.append(known[key])
                    if len(results) == patience and all(each[2] for each in results):
                        break
                draws = len(results) if noise else seeds
                exact, gave_up = (sum(each[column] for each in results) * draws // len(results) for column in (0, 2))
                cells.append(
                    f"{exact}/{draws} ({statistics.fmean(each[1] for each in results):.2f})"
                    + (f", gave up {gave_up}" if gave_up else "")
                )
            print(f"| {shape} | {hosts} | {METHODS[name][0]} | {' | '.join(cells)} |", flush=True)


def read_log(path: Path | None) -> dict[Draw, Outcome]:
    """Return the outcomes of an earlier run, so that an interrupted run can continue."""
    if path is None or not path.exists():
        return {}
    rows = (json.loads(line) for line in path.read_text().splitlines() if line.endswith("]]"))
    return {tuple(key): tuple(outcome) for key, outcome in rows}


def append_log(path: Path | None, key: Draw, outcome: Outcome) -> None:
    if path is not None:
        with path.open("a") as file:
            print(json.dumps([key, outcome]), file=file)


def show_wrong(shapes: list[str], sizes: list[int], seeds: int) -> None:
    """Print how often trees are recovered if 5% of the delays are grossly wrong: before and after a remeasurement.

    The noise of all delays is 5%. Outlying pairs are measured again in 3 rounds.
    """
    for shape in shapes:
        for hosts in sizes:
            made = SHAPES[shape](hosts)
            if made.is_direct:
                continue
            at_once, after, share = 0, 0, 0.0
            for seed in range(seeds):
                matrix = disturb(made.delays(), 0.05, seed, wrong=0.05)
                at_once += judge(infer_by_ibprof(matrix), made)[0]
                measured = np.zeros(matrix.shape, bool)
                for attempt in range(3):
                    choice = choose_model(matrix)
                    again = choice.outliers | find_unconfirmed(choice.candidate, hosts)
                    measured |= again
                    fresh = disturb(made.delays(), 0.05, 1000 + 10 * seed + attempt, wrong=0.05)
                    matrix = np.where(again, fresh, matrix)
                after += judge(infer_by_ibprof(matrix), made)[0]
                share += measured.mean()
            print(f"| {shape} | {hosts} | {at_once}/{seeds} | {after}/{seeds} | {share / seeds:.1%} |", flush=True)


def show_time() -> None:
    for hosts, leaf, pod in ((1024, 16, 128), (10000, 20, 500)):
        host = np.arange(hosts)
        matrix = np.full((hosts, hosts), 6e-6, np.float32)
        matrix[host[:, None] // pod == host // pod] = 4e-6
        matrix[host[:, None] // leaf == host // leaf] = 2e-6
        draw = np.random.default_rng(1)
        for row in range(hosts):
            matrix[row] *= np.exp(0.05 * draw.standard_normal(hosts, np.float32))
        np.fill_diagonal(matrix, 0)
        delays = Delays(tuple(f"n{each}" for each in host), np.array([8]), matrix[None])
        best = np.inf, np.inf
        for _ in range(5 if hosts < 5000 else 2):
            began = time.perf_counter()
            values = take_pair_delays(delays)
            taken = time.perf_counter()
            topology = infer(values, InferenceEffort(replicates=0)).topology
            best = min(best, (time.perf_counter() - taken, taken - began))
        assert len(topology.switches) == -(-hosts // leaf) + hosts // pod + 1
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{hosts} hosts: {best[1]:.3f} s to join both directions, {best[0]:.3f} s to infer, {peak:.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("recovery", "wrong", "time"))
    parser.add_argument("--hosts", default="16,64,256", metavar="N,...")
    parser.add_argument("--shapes", default=",".join(SHAPES), metavar="NAME,...")
    parser.add_argument("--seeds", type=int, default=30, metavar="N")
    parser.add_argument("--methods", default=",".join(METHODS), metavar="NAME,...")
    parser.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="for recovery: file that keeps samples' outcomes, so that a stopped run continues",
    )
    parser.add_argument(
        "--patience",
        type=int,
        default=0,
        metavar="N",
        help="for recovery: skip the other samples of a cell if the search gave up on its first N samples",
    )
    arguments = parser.parse_args()
    shapes, sizes = arguments.shapes.split(","), [int(each) for each in arguments.hosts.split(",")]
    if arguments.what == "recovery":
        show_recovery(shapes, sizes, arguments.methods.split(","), arguments.seeds, arguments.log, arguments.patience)
    elif arguments.what == "wrong":
        show_wrong(shapes, sizes, arguments.seeds)
    else:
        show_time()


if __name__ == "__main__":
    main()
