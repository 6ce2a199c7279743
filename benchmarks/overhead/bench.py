# SPDX-License-Identifier: Apache-2.0
"""Alternate runs of a program with and without ibprof, and compare their times."""

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

# With these variables, Open MPI runs as root and with more ranks than cores, and does not search for networks.
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
    """An MPI, and a folder for programs and recordings."""

    mpi: Path
    folder: Path
    library: Path
    suffix: str = ""

    def program(self, name: str) -> Path:
        """Return the path of one of the MPI's own programs."""
        return self.mpi / (name + self.suffix)

    def build(self, name: str) -> Path:
        """Compile one of the programs in this file's folder."""
        program = self.folder / name
        subprocess.run(
            [self.program("mpicc"), "-O2", "-o", program, HERE / f"{name}.c", "-lm"],
            check=True,
            env=self._environment(),
        )
        return program

    def build_library(self, name: str) -> Path:
        """Compile one of the libraries in this file's folder, for preloading."""
        library = self.folder / f"lib{name}.so"
        if not library.exists():
            subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-o", library, HERE / f"{name}.c"], check=True)
        return library

    @property
    def variants(self) -> list[str]:
        """Return the variants that can be compared. Some builds of Open MPI lack its monitoring component."""
        if self.is_mpich_like:
            return [WITHOUT, WITH]
        return [WITHOUT, WITH, *([MONITORED] if "MCA pml: monitoring" in self.ask("ompi_info") else [])]

    @property
    def is_mpich_like(self) -> bool:
        """Return whether the launcher is Hydra. Hydra has other options than Open MPI's mpirun."""
        return "Open MPI" not in self.version

    @property
    def version(self) -> str:
        """Return the launcher's name and version, as the launcher prints them."""
        said = self.ask("mpirun", "--version")
        return said.splitlines()[0] if "Open MPI" in said else "MPICH " + said.split("Version:")[1].split()[0]

    def run(
        self,
        variant: str,
        ranks: int,
        *command: str | Path,
        preloaded: Sequence[Path] = (),
        first: Sequence[Path] = (),
    ) -> str:
        """Run a program as one of the variants, and return its output.

        Libraries in `first` are preloaded before ibprof's library, libraries in `preloaded` after ibprof's library.

        Call sites and times are recorded only if the environment has IBPROF_SITES=1 and IBPROF_TIME=1.
        """
        line: list[str | Path] = [self.program("mpirun"), "-n", str(ranks)]
        of_variant = {WITH: self.library, WRAPPED: self.build_library("wrapper") if variant == WRAPPED else None}
        libraries = [library for library in (*first, of_variant.get(variant), *preloaded) if library]
        own = {name: os.environ.get(name, "0") for name in ("IBPROF_SITES", "IBPROF_TIME")}
        settings = {"IBPROF_OUTPUT": str(self.recording), **own} if variant == WITH else {}
        if libraries:
            settings["LD_PRELOAD"] = ":".join(map(str, libraries))
        if self.is_mpich_like:
            line += [word for name, value in settings.items() for word in ("-genv", name, value)]
        else:
            line += ["--mca", "pml", "ob1,monitoring" if variant == MONITORED else "ob1"]
            line += [word for name, value in settings.items() for word in ("-x", f"{name}={value}")]
            line += ["--mca", "pml_monitoring_enable", "1"] if variant == MONITORED else []
        whole = [*line, *command]
        done = subprocess.run(whole, stdout=subprocess.PIPE, text=True, check=False, env=self._environment())
        if done.returncode:  # try again: perhaps the previous launcher's session folder still existed
            done = subprocess.run(whole, stdout=subprocess.PIPE, text=True, check=True, env=self._environment())
        return done.stdout

    @property
    def recording(self) -> Path:
        return self.folder / "profile.ibprof"

    def ask(self, program: str, *options: str) -> str:
        """Return the output of one of the MPI's own programs."""
        line: list[str | Path] = [self.program(program), *options]
        done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, env=self._environment())
        return done.stdout

    @staticmethod
    def _environment() -> dict[str, str]:
        return {**os.environ, **ENVIRONMENT}


def take_turns(variants: Sequence[str], rounds: int, measure: Callable[[str], Measured]) -> dict[str, list[Measured]]:
    """Measure each variant once in each round. The order of variants changes from round to round."""
    measured: dict[str, list[Measured]] = {variant: [] for variant in variants}
    for number in range(rounds):
        shift = number % len(variants)
        for variant in [*variants[shift:], *variants[:shift]]:
            measured[variant].append(measure(variant))
    return measured


def ratio_interval(values: npt.ArrayLike, base: npt.ArrayLike) -> tuple[float, float, float]:
    """Return the median over all rounds of value / base, and the median's 95% bootstrap interval."""
    return median_interval(np.asarray(values, float) / np.asarray(base, float))


def undisturbed_interval(values: npt.ArrayLike, base: npt.ArrayLike) -> tuple[float, float, float]:
    """Return (lower quartile of values) / (lower quartile of base), and the ratio's 95% bootstrap interval.

    Other work on the machine only makes runs longer. The lower quartile represents undisturbed runs, with and without
    ibprof, and varies less than the median.
    """
    both: Values = np.array([values, base], float)
    recorded, bare = np.percentile(both, 25, axis=1)
    rounds = np.random.default_rng(1).integers(0, both.shape[1], (RESAMPLES, both.shape[1]))
    resampled = np.percentile(both[:, rounds], 25, axis=2)
    low, high = np.percentile(resampled[0] / resampled[1], [2.5, 97.5])
    return float(recorded / bare), float(low), float(high)


def median_interval(values: Values) -> tuple[float, float, float]:
    """Return the median of values, and the median's 95% bootstrap interval."""
    resampled = np.random.default_rng(1).choice(values, (RESAMPLES, len(values)))
    low, high = np.percentile(np.median(resampled, axis=1), [2.5, 97.5])
    return float(np.median(values)), float(low), float(high)


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in (heads, ["---"] * len(heads), *rows):
        print(f"| {' | '.join(row)} |")
    print(flush=True)
