# SPDX-License-Identifier: Apache-2.0
"""Estimate the processor time of a study's `--full` simulations from a sample, stratified by estimated time.

Run it where ibprof is installed. FOLDER keeps finished simulations, so a stopped program can continue:

    python benchmarks/full_cost.py -o FOLDER [--seed N] [--workers N]

A stratum's time is its estimated time, multiplied by (measured / estimated time) of its sample: a ratio estimator (W.
G. Cochran, Sampling Techniques, 1977, chapter 6). The standard error follows from the simulations' deviations from this
ratio, with the finite-population correction.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import t

from ibprof_lab.simulation.measure.message_latency import FULL
from ibprof_lab.simulation.study.cost_estimate import estimate_seconds
from ibprof_lab.simulation.study.simulated_machine import MachineOptions
from ibprof_lab.simulation.study.study_file import plan_preset
from ibprof_lab.simulation.study.sweep import keep_results, open_pool, run_cells

STUDY = "interference"
STRATA = ((0.0, 5.0, 8), (5.0, 20.0, 8), (20.0, 60.0, 5), (60.0, 150.0, 4), (150.0, float("inf"), 3))
"""Lower and upper limit of a stratum's estimated seconds, and the number of simulations to measure."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="folder for the simulations")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the sample (default: %(default)s)")
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="number of processes (default: %(default)s)"
    )
    options = parser.parse_args()
    draw = np.random.default_rng(options.seed)
    plan = plan_preset(STUDY, MachineOptions(None, effort=FULL), (1,), False)
    cells = list({cell.key: cell for cell in plan.cells}.values())
    estimated = np.array([estimate_seconds(cell) for cell in cells])
    strata = [(np.flatnonzero((low <= estimated) & (estimated < high)), few) for low, high, few in STRATA]
    chosen = [np.sort(draw.choice(all_of, few, replace=False)) for all_of, few in strata]
    with open_pool(options.workers) as pool, keep_results(options.output) as folder:
        if pool is None:
            return
        outcomes = run_cells([cells[number] for number in np.concatenate(chosen)], folder, pool)
    print("| estimated, s | simulations | estimated, min | measured | min | measured / estimated | standard error |")
    print("|---|---|---|---|---|---|---|")
    total, variance, freedom = 0.0, 0.0, 0.0
    for (low, high, few), (all_of, _), sample in zip(STRATA, strata, chosen, strict=True):
        measured = np.array([outcomes[cells[number].key].cpu_seconds for number in sample])
        ratio = measured.sum() / estimated[sample].sum()
        left = measured - ratio * estimated[sample]
        square = (1 - few / len(all_of)) * (left**2).sum() / (few - 1) / few
        error = np.sqrt(square) / estimated[sample].mean()
        minutes = estimated[all_of].sum() / 60
        total, of_stratum = total + ratio * minutes, (error * minutes) ** 2
        variance, freedom = variance + of_stratum, freedom + of_stratum**2 / (few - 1)
        name = f"{low:g} to {high:g}" if np.isfinite(high) else f"{low:g} and more"
        shown = [name, len(all_of), f"{minutes:.1f}", few, f"{measured.sum() / 60:.1f}", f"{ratio:.2f}", f"{error:.2f}"]
        print(f"| {' | '.join(map(str, shown))} |")
    half = t.ppf(0.975, variance**2 / freedom) * np.sqrt(variance)
    print(f"\nestimate: {estimated.sum() / 3600:.1f} core-hours; from the sample: {total / 60:.1f} ± {half / 60:.1f} "
          f"core-hours (95%), or {total / 120:.1f} ± {half / 120:.1f} hours on two cores")  # fmt: skip


if __name__ == "__main__":
    main()
