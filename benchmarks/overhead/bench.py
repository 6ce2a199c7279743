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
WITHOUT, WITH, MONITORED, WRAPPED = "without", "ibprof", "monitoring", "empty wrappers"


@dataclass(frozen=True, slots=True)
class Bench:
    """An MPI, and a folder for what is compiled and recorded."""

    mpi: Path
    folder: Path
    library: Path
    suffix: str = ""

    def program(self, name: str) -> Path:
        """Where one of the MPI's own programs is."""
        return self.mpi / (name + self.suffix)

    def build(self, name: str) -> Path:
        """Compiles one of the programs beside this file."""
        program = self.folder / name
        subprocess.run(
            [self.program("mpicc"), "-O2", "-o", program, HERE / f"{name}.c", "-lm"],
            check=True,
            env=self._environment(),
        )
        return program

    def build_library(self, name: str) -> Path:
        """Compiles one of the libraries beside this file, which is to be preloaded."""
        library = self.folder / f"lib{name}.so"
        if not library.exists():
            subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-o", library, HERE / f"{name}.c"], check=True)
        return library

    @property
    def variants(self) -> list[str]:
        """The ways that can be compared: Open MPI's own monitoring is not in every build."""
        if self.is_mpich_like:
            return [WITHOUT, WITH]
        return [WITHOUT, WITH, *([MONITORED] if "MCA pml: monitoring" in self.ask("ompi_info") else [])]

    @property
    def is_mpich_like(self) -> bool:
        """Whether the launcher is hydra: options are its own, and nothing has to be said about components."""
        return "Open MPI" not in self.version

    @property
    def version(self) -> str:
        """What the launcher calls itself and its version."""
        said = self.ask("mpirun", "--version")
        return said.splitlines()[0] if "Open MPI" in said else "MPICH " + said.split("Version:")[1].split()[0]

    def run(self, variant: str, ranks: int, *command: str | Path) -> str:
        """Runs a program in one of the ways that are compared, and gives its output."""
        line: list[str | Path] = [self.program("mpirun"), "-n", str(ranks)]
        preload = {"LD_PRELOAD": str(self.library), "IBPROF_OUTPUT": str(self.recording)} if variant == WITH else {}
        if variant == WRAPPED:
            preload = {"LD_PRELOAD": str(self.build_library("wrapper"))}
        if self.is_mpich_like:
            line += [word for name, value in preload.items() for word in ("-genv", name, value)]
        else:
            line += ["--mca", "pml", "ob1,monitoring" if variant == MONITORED else "ob1"]
            line += [word for name, value in preload.items() for word in ("-x", f"{name}={value}")]
            line += ["--mca", "pml_monitoring_enable", "1"] if variant == MONITORED else []
        whole = [*line, *command]
        done = subprocess.run(whole, stdout=subprocess.PIPE, text=True, check=False, env=self._environment())
        if done.returncode:  # launchers that follow one another at once meet in their folders now and then
            done = subprocess.run(whole, stdout=subprocess.PIPE, text=True, check=True, env=self._environment())
        return done.stdout

    @property
    def recording(self) -> Path:
        """Where runs are recorded."""
        return self.folder / "profile.ibprof"

    def ask(self, program: str, *options: str) -> str:
        """What one of the MPI's own programs says."""
        line: list[str | Path] = [self.program(program), *options]
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
    return median_interval(np.asarray(values, float) / np.asarray(base, float))


def undisturbed_interval(values: npt.ArrayLike, base: npt.ArrayLike) -> tuple[float, float, float]:
    """The ratio of the lower quartiles over all rounds, and its bootstrap interval of 95 % over the rounds.

    Whatever else a machine does only makes runs longer: the lower quartile is a time of runs that it left alone, with
    and without ibprof alike, and scatters less than the median.
    """
    both: Values = np.array([values, base], float)
    with_us, without = np.percentile(both, 25, axis=1)
    rounds = np.random.default_rng(1).integers(0, both.shape[1], (RESAMPLES, both.shape[1]))
    resampled = np.percentile(both[:, rounds], 25, axis=2)
    low, high = np.percentile(resampled[0] / resampled[1], [2.5, 97.5])
    return float(with_us / without), float(low), float(high)


def median_interval(values: Values) -> tuple[float, float, float]:
    """The median of values, and its bootstrap interval of 95 %."""
    resampled = np.random.default_rng(1).choice(values, (RESAMPLES, len(values)))
    low, high = np.percentile(np.median(resampled, axis=1), [2.5, 97.5])
    return float(np.median(values)), float(low), float(high)


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table of Markdown."""
    for row in (heads, ["---"] * len(heads), *rows):
        print(f"| {' | '.join(row)} |")
    print(flush=True)
