# SPDX-License-Identifier: Apache-2.0
"""What recording costs a program: time per message, per call on two ranks, memory, and time to end.

Each figure is a ratio of runs with and without that take turns, so that what else the machine does meets both. Prints
Markdown. Run it where ibprof is installed, from a checkout, on a quiet machine:

    python benchmarks/overhead/run.py [--mpi FOLDER_OF_MPIRUN] [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.installed import find_library

HERE = Path(__file__).parent
SELF_SEND_GOAL = 1.10
MESSAGES = 1_000_000
CALLS = ("PingPong", "Bcast", "Alltoall", "Reduce", "Scatter")
SIZES = {"8 B": 8, "1 KiB": 1 << 10, "64 KiB": 1 << 16, "1 MiB": 1 << 20}
RESAMPLES = 10_000

Values = npt.NDArray[np.float64]

# What Open MPI needs to run as root, and with more ranks than cores; no search for networks that are not there.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_btl": "^openib,ofi,uct",
}
WITHOUT, WITH, MONITORED = "without", "ibprof", "monitoring"


@dataclass(frozen=True, slots=True)
class Bench:
    """An MPI, and a folder for what is compiled and recorded."""

    mpi: Path
    folder: Path

    def build(self, name: str) -> Path:
        """Compiles one of the programs beside this file."""
        program = self.folder / name
        subprocess.run(
            [self.mpi / "mpicc", "-O2", "-o", program, HERE / f"{name}.c"], check=True, env=self._environment()
        )
        return program

    def run(self, variant: str, ranks: int, *command: str | Path) -> str:
        """Runs a program in one of the ways that are compared, and gives its output."""
        line: list[str | Path] = [self.mpi / "mpirun", "-n", str(ranks), "--mca", "pml", "ob1"]
        if variant == WITH:
            line += ["-x", f"LD_PRELOAD={find_library()}", "-x", f"IBPROF_OUTPUT={self.recording}"]
        elif variant == MONITORED:
            line[-1] = "ob1,monitoring"
            line += ["--mca", "pml_monitoring_enable", "1"]
        done = subprocess.run([*line, *command], stdout=subprocess.PIPE, text=True, check=True, env=self._environment())
        return done.stdout

    @property
    def recording(self) -> Path:
        """Where runs are recorded."""
        return self.folder / "profile.ibprof"

    def ask(self, program: str, *options: str) -> str:
        """What one of the MPI's own programs says."""
        line: list[str | Path] = [self.mpi / program, *options]
        done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, env=self._environment())
        return done.stdout

    @staticmethod
    def _environment() -> dict[str, str]:
        return {**os.environ, **ENVIRONMENT}


def take_turns(variants: Sequence[str], rounds: int, measure: Callable[[str], float]) -> dict[str, Values]:
    """Measures each variant once a round, in an order that changes from round to round."""
    measured: dict[str, list[float]] = {variant: [] for variant in variants}
    for number in range(rounds):
        shift = number % len(variants)
        for variant in [*variants[shift:], *variants[:shift]]:
            measured[variant].append(measure(variant))
    return {variant: np.array(values) for variant, values in measured.items()}


def time_program(
    bench: Bench, variants: Sequence[str], rounds: int, ranks: int, *command: str | Path
) -> dict[str, Values]:
    """Times a program that prints the time of what it does."""
    return take_turns(variants, rounds, lambda variant: float(bench.run(variant, ranks, *command)))


def ratio_interval(values: Values, base: Values) -> tuple[float, float, float]:
    """The median of ratios of values measured in the same round, and its bootstrap interval of 95 %."""
    ratios = values / base
    resampled = np.random.default_rng(1).choice(ratios, (RESAMPLES, len(ratios)))
    low, high = np.percentile(np.median(resampled, axis=1), [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in (heads, ["---"] * len(heads), *rows):
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def show_self_send(bench: Bench, rounds: int) -> bool:
    """Shows the cost of a message, and tells whether the goals are met."""
    program = bench.build("selfsend")
    variants = [WITHOUT, WITH, *([MONITORED] if "MCA pml: monitoring" in bench.ask("ompi_info") else [])]
    measured = time_program(bench, variants, rounds, 1, program, str(MESSAGES))
    print(f"Self-send of 8 bytes (Irecv, Send, Wait), {MESSAGES:,} messages, {rounds} rounds\n")
    rows, ratios = [], {}
    for variant, values in measured.items():
        ratios[variant], low, high = ratio_interval(values, measured[WITHOUT])
        rows.append([variant, f"{np.median(values):.1f}", f"{ratios[variant]:.3f}", f"{low:.3f} to {high:.3f}"])
    show_table(["", "ns a message", "ratio", "95 % interval"], rows)
    return ratios[WITH] <= min(SELF_SEND_GOAL, ratios.get(MONITORED, SELF_SEND_GOAL))


def show_two_ranks(bench: Bench, rounds: int) -> None:
    program = bench.build("two_ranks")
    rows = []
    for call in CALLS:
        cells = [call]
        for size in SIZES.values():
            command = (program, call, str(size))
            measured = time_program(bench, [WITHOUT, WITH], rounds, 2, *command)
            ratio, low, high = ratio_interval(measured[WITH], measured[WITHOUT])
            cells.append(f"{np.median(measured[WITHOUT]):.2f} us, {ratio:.2f} ({low:.2f} to {high:.2f})")
        rows.append(cells)
    print(f"Two ranks: a call without ibprof, and the ratio with it (95 % interval), {rounds} rounds\n")
    show_table(["", *SIZES], rows)


def show_footprint(bench: Bench, rounds: int, ranks: int) -> None:
    program = bench.build("footprint")
    resident: dict[str, list[float]] = {WITHOUT: [], WITH: []}

    def measure(variant: str) -> float:
        lines = [line.split() for line in bench.run(variant, ranks, program).splitlines()]
        ended = time.time()
        resident[variant] += [float(kib) for kib, _ in lines]
        return ended - max(float(moment) for _, moment in lines)

    to_end = take_turns([WITHOUT, WITH], rounds, measure)
    recorded = [file.stat().st_size for file in bench.recording.iterdir()]
    print(f"{ranks} ranks, six operations between all of them, {rounds} rounds, medians\n")
    rows = [
        [
            variant,
            f"{np.median(resident[variant]):,.0f}",
            f"{np.median(to_end[variant]) * 1e3:.1f}",
        ]
        for variant in (WITHOUT, WITH)
    ]
    show_table(["", "resident KiB a rank", "ms from MPI_Finalize to the end of mpirun"], rows)
    print(f"Counters on disk: {np.median(recorded) / ranks / 1024:.1f} KiB a rank.")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--mpi", type=Path, default=Path("/usr/bin"), metavar="FOLDER", help="of mpirun (default: /usr/bin)"
    )
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="of measuring each figure (default: 15)")
    parser.add_argument("--ranks", type=int, default=8, metavar="N", help="for the memory (default: 8)")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(wanted.mpi, Path(folder))
        version = bench.ask("mpirun", "--version").splitlines()[0]
        print(f"{version}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
        goals_met = show_self_send(bench, wanted.rounds)
        show_footprint(bench, wanted.rounds, wanted.ranks)
        print()
        show_two_ranks(bench, wanted.rounds)
    sys.exit(not goals_met)


if __name__ == "__main__":
    main()
