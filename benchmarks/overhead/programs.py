# SPDX-License-Identifier: Apache-2.0
"""Measure the time of whole programs with and without ibprof: a kernel like NPB's FT, and the Intel MPI Benchmarks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
from bench import WITH, WITHOUT, Bench, show_table, take_turns, undisturbed_interval

SIDE, TRANSFORMS = 1024, 20
IMB = ("PingPong", "Bcast", "Alltoall", "Reduce", "Scatter")
IMB_SIZES = "3:20"


def show_transform(bench: Bench, rounds: int) -> None:
    """Show the time of a two-dimensional Fourier transform on two ranks."""
    program = bench.build("transform")
    measured = take_turns(
        bench.variants, rounds, lambda variant: float(bench.run(variant, 2, program, str(SIDE), str(TRANSFORMS)))
    )
    rows = []
    for variant, values in measured.items():
        ratio, low, high = undisturbed_interval(values, measured[WITHOUT])
        rows.append([variant, f"{np.percentile(values, 25) * 1e3:.1f}", f"{ratio:.3f}", f"{low:.3f} to {high:.3f}"])
    print(f"Fourier transforms of {SIDE} x {SIDE} complex numbers on two ranks, lower quartiles of {rounds} rounds\n")
    show_table(["", "ms", "ratio", "95% interval"], rows)


def show_imb(folder: Path, bench: Bench, rounds: int) -> None:
    """Show the time of each benchmark of IMB-MPI1 (in bin/ of PyPI's impi-rt) with Intel MPI, summed over all sizes."""

    def measure(variant: str) -> dict[str, float]:
        preload = {"LD_PRELOAD": str(bench.library), "IBPROF_OUTPUT": str(bench.recording)} if variant == WITH else {}
        line: list[str | Path] = [
            folder / "mpirun",
            "-n",
            "2",
            *(word for name, value in preload.items() for word in ("-genv", name, value)),
        ]
        line += [folder / "IMB-MPI1", "-iter", "500", "-iter_policy", "off", "-msglog", IMB_SIZES, "-npmin", "2", *IMB]
        unpacked = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": str(folder.parent / "lib"),
            "FI_PROVIDER_PATH": str(folder.parent / "lib"),
        }
        env = {**os.environ, **unpacked, "I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp"}
        done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, env=env)
        return _sum_times(done.stdout)

    measured = take_turns([WITHOUT, WITH], rounds, measure)
    rows = []
    for name in IMB:
        values = {variant: [times[name] for times in measured[variant]] for variant in measured}
        ratio, low, high = undisturbed_interval(values[WITH], values[WITHOUT])
        rows.append([name, f"{np.percentile(values[WITHOUT], 25):.1f}", f"{ratio:.3f}", f"{low:.3f} to {high:.3f}"])
    print(f"IMB-MPI1 with Intel MPI over TCP: times summed over 8 B to 1 MiB, lower quartiles of {rounds} rounds\n")
    show_table(["", "µs", "ratio", "95% interval"], rows)


def _sum_times(text: str) -> dict[str, float]:
    """Return the time of each benchmark in IMB's tables, summed over the sizes.

    The time is in column 3 for PingPong, and in column 5 for collectives.
    """
    sums: dict[str, float] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("# Benchmarking "):
            name = line.split()[2]
        fields = line.split()
        if name and fields and fields[0].isdigit():
            sums[name] = sums.get(name, 0.0) + float(fields[2 if name == "PingPong" else 4])
    return sums
