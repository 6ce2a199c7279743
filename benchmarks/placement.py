# SPDX-License-Identifier: Apache-2.0
"""Compare placements of `ibprof-place` with packed and random ones, on cases of 128 ranks; show how long it takes.

Run it where ibprof is installed, from a checkout:  python benchmarks/placement.py [--time SECONDS]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ibprof_converter.placement.lower_bound import bound_max_seconds
from ibprof_converter.placement.starting_placements import fabric_aware_slots, packed_slots, random_slots, spread_slots
from ibprof_converter.placement.swap_search import search
from ibprof_converter.routing.subnet import Subnet, read_subnet
from ibprof_testing.samples.placements import hosts_on_all_rails, make_problem, samplesort, shuffled_halo, transpose

FABRICS = Path(__file__).parents[1] / "tests/data/fabrics"
RANKS = 128
CASES = {
    "samplesort": samplesort(RANKS, 0),
    "3-D halo, shuffled": shuffled_halo((8, 4, 4), 1),
    "transpose": transpose(RANKS, 8),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--time", type=float, default=10.0, metavar="SECONDS", help="of each search (default: 10)")
    seconds = parser.parse_args().time
    print("largest time between switches in ms: random is the median and the best of 20 seeds")
    for name, samples in (("dualrail", ("dualrail/rail1", "dualrail/rail2")), ("xgft3-1296", ("xgft3-1296",))):
        subnets = [read_subnet(FABRICS / sample / "ibdiagnet.lst.xz") for sample in samples]
        _, everyone = hosts_on_all_rails(subnets)
        own = sorted(np.random.default_rng(5).choice(everyone, RANKS, replace=False).tolist())
        for what, chosen in (("all hosts free", everyone), ("own scattered hosts", own)):
            for case in CASES:
                print(f"{name}, {what}, {case}: {measure(case, subnets, chosen, seconds)}", flush=True)


def measure(case: str, subnets: Sequence[Subnet], chosen: Sequence[int], seconds: float) -> str:
    began = time.perf_counter()
    problem = make_problem(CASES[case], subnets, chosen)
    packed = packed_slots(problem.slots, RANKS)
    aware = fabric_aware_slots(problem.neighbours, problem.slots, problem.paths).values()
    bound = bound_max_seconds(problem)
    found = search(problem, [packed, spread_slots(problem.slots, RANKS), *aware], 1, seconds, bound)
    took = time.perf_counter() - began
    randoms = [problem.score(random_slots(problem.slots, RANKS, seed)).max_seconds for seed in range(20)]
    best, median = found.score.max_seconds, statistics.median(randoms)
    return (
        f"best {best * 1e3:.3f}, packed {problem.score(packed).max_seconds * 1e3:.3f}, "
        f"random {median * 1e3:.3f} and {min(randoms) * 1e3:.3f} (less by {(1 - best / median) * 100:.0f}%), "
        f"bound {bound * 1e3:.3f}; {took:.1f} s{', stopped by the time limit' if found.stopped_by_clock else ''}"
    )


if __name__ == "__main__":
    main()
