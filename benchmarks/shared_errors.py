# SPDX-License-Identifier: Apache-2.0
"""Measure how often `ibprof-topology infer` recovers a topology from delays with dependent errors.

Run it from a checkout, with ibprof installed:

    python benchmarks/shared_errors.py [--seeds 12] [--machines [--effects NAME,...]] [--matrices DIR]

DIR has measured matrices as CSVs: the lower triangle of the delays in ns. Its structure.json has the groups of hosts of
each CSV ({"name.csv": {"cores": N, "groups": [[0, 1], ...]}}). For comparison, average linkage is tried with the
thresholds 1.1, 1.25 and 1.5. A cluster counts as a switch if its parent's height in the dendrogram is at least the
threshold times the cluster's own height.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy.cluster.hierarchy import average
from scipy.spatial.distance import squareform

from ibprof_lab.topology.infer.inference import Inference, InferenceEffort, infer
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_testing.samples.machines import EFFECTS, measure
from ibprof_testing.samples.machines import KINDS as MACHINES
from ibprof_testing.samples.shared_errors import KINDS, RAILS, Sample, over_two_rails, processor, with_errors
from ibprof_testing.samples.topologies import Matrix

REPLICATES = 40
THRESHOLDS = (1.1, 1.25, 1.5)
RATIOS = (1.05, 1.1, 1.2, 1.3, 1.5)

Splits = set[frozenset[int]]


def infer_by_ibprof(delays: Matrix) -> Inference:
    names = tuple(str(host) for host in range(len(delays)))
    return infer(PairDelays(names, delays, "median", 0, ()), InferenceEffort(replicates=REPLICATES))


def find_splits(inferred: Inference) -> Splits:
    hosts = len(inferred.topology.hosts)
    return {split for split in inferred.topology.find_splits() if split and 1 < len(split) < hosts - 1}


def link_average(delays: Matrix, threshold: float) -> Splits:
    """Return the splits by average linkage: clusters whose parent is at least `threshold` times as high."""
    hosts = len(delays)
    filled = np.where(np.isnan(delays), np.nanmedian(delays), delays)
    links = average(squareform(filled, checks=False))
    below = [frozenset([host]) for host in range(hosts)]
    for one, other, _, _ in links:
        below.append(below[int(one)] | below[int(other)])
    splits: Splits = set()
    for one, other, height, _ in links:
        for node in (int(one), int(other)):
            if node >= hosts and height >= threshold * links[node - hosts, 2]:
                away = frozenset(range(hosts)) - below[node] if 0 in below[node] else below[node]
                splits |= {away} if 1 < len(away) < hosts - 1 else set()
    return splits


def show_row(name: str, samples: Iterable[Sample]) -> None:
    exact = refused = wrong = 0
    linked = [0] * len(THRESHOLDS)
    for sample in samples:
        inferred = infer_by_ibprof(sample.delays)
        if inferred.refusal:
            refused += 1
        elif find_splits(inferred) == sample.splits:
            exact += 1
        else:
            wrong += 1
        for column, threshold in enumerate(THRESHOLDS):
            linked[column] += link_average(sample.delays, threshold) == sample.splits
    print(f"| {name} | {exact} | {refused} | {wrong} | {' | '.join(map(str, linked))} |", flush=True)


def read_matrices(folder: Path) -> Iterator[tuple[str, Sample]]:
    for name, about in json.loads((folder / "structure.json").read_text()).items():
        count = about["cores"]
        delays = np.full((count, count), np.nan)
        for row, line in enumerate((folder / name).read_text().splitlines()[:count]):
            for column, cell in enumerate(line.split(",")[:row]):
                if cell.strip():
                    delays[row, column] = delays[column, row] = float(cell) * 1e-9
        np.fill_diagonal(delays, 0.0)
        every = frozenset(range(count))
        away = {every - frozenset(group) if 0 in group else frozenset(group) for group in about["groups"]}
        yield name, Sample(delays, {split for split in away if 1 < len(split) < count - 1})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seeds", type=int, default=12, metavar="N", help="samples for each row (default: %(default)s)"
    )
    parser.add_argument(
        "--machines", action="store_true", help="instead, print a row for each effect in many kinds of processors"
    )
    parser.add_argument(
        "--effects", default=",".join(EFFECTS), metavar="NAME,...", help="effects of --machines (default: all)"
    )
    parser.add_argument("--matrices", type=Path, metavar="DIR", help="print only a row for each matrix in this folder")
    options = parser.parse_args()
    print("| errors | exact | refused | wrong | linkage 1.1 | linkage 1.25 | linkage 1.5 |")
    print("|---|---|---|---|---|---|---|")
    if options.matrices:
        for name, sample in read_matrices(options.matrices):
            show_row(name, [sample])
        return
    show_row("processors", (processor(seed) for seed in range(2 * options.seeds)))
    if options.machines:
        for effect in options.effects.split(","):
            samples = (measure(kind, effect, seed) for kind in MACHINES for seed in range(options.seeds))
            show_row(f"{len(MACHINES)} kinds of processors, effect {effect}", samples)
        return
    for is_costly in (False, True):
        unit = "1 µs for a message and 0.1 µs for each link" if is_costly else "1 µs for each link"
        for kind in KINDS:
            show_row(f"{kind}, {unit}", (with_errors(kind, seed, is_costly) for seed in range(options.seeds)))
        for how in RAILS:
            show_row(f"two rails {how}, {unit}", (
                over_two_rails(seed, is_costly, how, RATIOS[seed % len(RATIOS)]) for seed in range(options.seeds)
            ))  # fmt: skip


if __name__ == "__main__":
    main()
