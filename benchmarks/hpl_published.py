# SPDX-License-Identifier: Apache-2.0
"""Compare both Linpack models with published results.

python benchmarks/hpl_published.py

Prints a table, a system a row. `data/hpl_published.csv` has R_peak, R_max and N_max of the TOP500's lists, a source of
R_max, the nodes as processes, and the data rate of one link of a node by its makers. What is not published is assumed:
a grid as square as possible, blocks of 192, 2 us, and 80% to 97% of the peak in matrix products. 2/3 N_max^3 / R_max is
the run's duration, which the operators of these systems published too.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

from ibprof_lab.lab_choices import BLOCK
from ibprof_lab.scaling.analytic_kernels import linpack
from ibprof_lab.scaling.exchange_fit import ConfidenceInterval
from ibprof_lab.scaling.hpl import HplRun, predict_hpl
from ibprof_lab.scaling.scaling_model import Cluster, performance

PUBLISHED = Path(__file__).parent / "data" / "hpl_published.csv"
LATENCY = 2e-6
SHARES = (0.80, 0.97)
_PETA = 1e15


def square_grid(processes: int) -> tuple[int, int]:
    """Return rows and columns, rows at most columns, as near to each other as they divide the processes."""
    rows = next(each for each in range(math.isqrt(processes), 0, -1) if processes % each == 0)
    return rows, processes // rows


def main() -> None:
    """Print the table."""
    heads = (
        "system",
        "published",
        "hours",
        "all bytes over one bandwidth",
        "HPL's model",
        "80% to 97% of peak",
        "inside",
    )
    print(f"| {' | '.join(heads)} |")
    print("|---" * len(heads) + "|")
    with PUBLISHED.open(newline="") as file:
        for row in csv.DictReader(file):
            processes, n = int(row["processes"]), float(row["nmax"])
            peak, r_max = float(row["rpeak_tflops"]) * 1e12, float(row["rmax_tflops"]) * 1e12
            cluster = Cluster(peak / processes, float(row["link_bytes_per_s"]))
            one = performance(linpack(n, cluster).exact, cluster, processes)
            run = HplRun(n, BLOCK, *square_grid(processes))
            rates = [share * cluster.peak for share in (sum(SHARES) / 2, *SHARES)]
            found = predict_hpl(
                run,
                ConfidenceInterval(*rates),
                ConfidenceInterval(*[LATENCY] * 3),
                ConfidenceInterval(*[cluster.bandwidth] * 3),
            )
            is_inside = found.low <= r_max <= found.high
            print(
                f"| {row['system']} ({row['list']}) | {r_max / _PETA:.2f} | {run.operations / r_max / 3600:.1f} "
                f"| {one / _PETA:.2f} | {found.value / _PETA:.2f} | {found.low / _PETA:.2f} to "
                f"{found.high / _PETA:.2f} | {'yes' if is_inside else 'no'} |"
            )


if __name__ == "__main__":
    main()
