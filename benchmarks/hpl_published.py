# SPDX-License-Identifier: Apache-2.0
"""Compare ibprof's two Linpack models with published results.

python benchmarks/hpl_published.py

The program prints two tables. The first table has a row for each system. `data/hpl_published.csv` has R_peak, R_max and
N_max of the TOP500 lists, the number of nodes, and the data rate of a node's link. Each node counts as one process. The
systems' makers published the data rates. The column `source` names a publication of R_max. Unpublished values are
assumed: a grid as square as possible, blocks of 192, a latency of 2 us, and 80% to 97% of the peak in matrix products.
A run's duration is 2/3 N_max^3 / R_max. The systems' operators also published durations.

The second table is for processes that share a node: predictions with and without the terms for sharing.
`data/hpl_shared.csv` has published grids, sizes and performance. Sources: both versions of
netlib.org/benchmark/hpl/results.html (HPL's authors); for Raspberry Pis, github.com/geerlingguy/turing-pi-2-cluster,
issue 1, and top500-benchmark, issue 33, and github.com/deater/performance_results, results/pi-cluster2. The file has
nominal rates of two Ethernets, of the PCI bus of Myrinet's adapter, of QsNet with MPI (netlib.org/utk/papers/advanced-
computers/qsnet.html), and of the memory buses. The rate of matrix products is fitted to one result of each system.
Other results test the model. Memory is assumed to reach half of the bus rate: this factor was chosen after seeing these
results. Latencies are assumed.
"""

from __future__ import annotations

import csv
import math
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from scipy.optimize import brentq

from ibprof_lab.lab_choices import BLOCK
from ibprof_lab.scaling.exchange_fit import ConfidenceInterval
from ibprof_lab.scaling.hpl import HplRun, NodeSharing, predict_hpl, time_hpl
from ibprof_lab.scaling.scaling_model import Cluster, linpack, performance

PUBLISHED = Path(__file__).parent / "data" / "hpl_published.csv"
SHARED = Path(__file__).parent / "data" / "hpl_shared.csv"
OF_BUS = 0.5
LATENCY = 2e-6
SHARES = (0.80, 0.97)
_PETA = 1e15


def square_grid(processes: int) -> tuple[int, int]:
    """Return rows and columns of the most nearly square grid of `processes` processes, with rows <= columns."""
    rows = next(each for each in range(math.isqrt(processes), 0, -1) if processes % each == 0)
    return rows, processes // rows


def print_shared() -> None:
    """Print the errors of predictions for processes that share a node: one row for each system and grid."""
    print("\n| system | processes per node | grid | n | published GFlop/s | without sharing | with sharing |")
    print("|---" * 7 + "|")
    with SHARED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for (name, share, *grid), of_grid in groupby(rows, itemgetter("system", "share", "rows", "columns")):
        (known,) = (row for row in rows if row["system"] == name and row["is_rate"])
        chosen = [row for row in of_grid if row is not known]
        errors = []
        for is_shared in (False, True):
            rate = brentq(partial(_exceed, known, is_shared), 1e6, 1e11)
            errors.append([f"{_exceed(row, is_shared, rate):+.0%}" for row in chosen])
        cells = [[f"{float(row['n']):,.0f}" for row in chosen], [row["gflops"] for row in chosen], *errors]
        if chosen:
            print(f"| {name} | {share} | {' x '.join(grid)} | {' | '.join('; '.join(cell) for cell in cells)} |")


def _read_run(row: dict[str, str]) -> HplRun:
    return HplRun(float(row["n"]), float(row["nb"]), int(row["rows"]), int(row["columns"]))


def _exceed(row: dict[str, str], is_shared: bool, rate: float) -> float:
    """Return a row's (predicted performance) / (published performance) - 1."""
    run = _read_run(row)
    sharing = NodeSharing(int(row["share"]), OF_BUS * float(row["memory_bus_bytes_per_s"])) if is_shared else None
    times = time_hpl(run, rate, float(row["latency_s"]), float(row["link_bytes_per_s"]), sharing)
    return run.operations / times.total / 1e9 / float(row["gflops"]) - 1


def main() -> None:
    heads = (
        "system",
        "published",
        "hours",
        "all bytes over one bandwidth",
        "HPL's model",
        "with 80% to 97% of peak",
        "published is inside",
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
    print_shared()


if __name__ == "__main__":
    main()
