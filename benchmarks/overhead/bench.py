# SPDX-License-Identifier: Apache-2.0
"""Runs of a program with and without ibprof that take turns, and what their times say."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).parent
RESAMPLES = 10_000

Values = npt.NDArray[np.float64]
Measured = TypeVar("Measured")

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
    library: Path

    def build(self, name: str) -> Path:
        """Compiles one of the programs beside this file."""
        program = self.folder / name
        subprocess.run(
            [self.mpi / "mpicc", "-O2", "-o", program, HERE / f"{name}.c", "-lm"], check=True, env=self._environment()
        )
        return program

    @property
    def variants(self) -> list[str]:
        """The ways that can be compared: Open MPI's own monitoring is not in every build."""
        return [WITHOUT, WITH, *([MONITORED] if "MCA pml: monitoring" in self.ask("ompi_info") else [])]

    def run(self, variant: str, ranks: int, *command: str | Path) -> str:
        """Runs a program in one of the ways that are compared, and gives its output."""
        line: list[str | Path] = [self.mpi / "mpirun", "-n", str(ranks), "--mca", "pml", "ob1"]
        if variant == WITH:
            line += ["-x", f"LD_PRELOAD={self.library}", "-x", f"IBPROF_OUTPUT={self.recording}"]
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


def take_turns(variants: Sequence[str], rounds: int, measure: Callable[[str], Measured]) -> dict[str, list[Measured]]:
    """Measures each variant once a round, in an order that changes from round to round."""
    measured: dict[str, list[Measured]] = {variant: [] for variant in variants}
    for number in range(rounds):
        shift = number % len(variants)
        for variant in [*variants[shift:], *variants[:shift]]:
            measured[variant].append(measure(variant))
    return measured


def ratio_interval(values: npt.ArrayLike, base: npt.ArrayLike) -> tuple[float, float, float]:
    """The median of ratios of values measured in the same round, and its bootstrap interval of 95 %."""
    ratios: Values = np.asarray(values, float) / np.asarray(base, float)
    resampled = np.random.default_rng(1).choice(ratios, (RESAMPLES, len(ratios)))
    low, high = np.percentile(np.median(resampled, axis=1), [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table of Markdown."""
    for row in (heads, ["---"] * len(heads), *rows):
        print(f"| {' | '.join(row)} |")
    print(flush=True)
