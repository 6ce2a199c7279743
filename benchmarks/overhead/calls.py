# SPDX-License-Identifier: Apache-2.0
"""Time and instructions of calls between ranks, by call and size."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bench import WITH, WITHOUT, Bench, show_table, take_turns, undisturbed_interval

CALLS = ("PingPong", "Window", "Barrier", "Bcast", "Gather", "Scatter", "Allgather", "Alltoall", "Reduce", "Allreduce")
SIZES = {"8 B": 8, "1 KiB": 1 << 10, "8 KiB": 1 << 13, "64 KiB": 1 << 16, "1 MiB": 1 << 20, "8 MiB": 1 << 23}
BATCHES = 30

# The lower bound that a cell must not exceed, below 1 KiB and from there on.
GOAL_SMALL, GOAL_LARGE, LARGE = 1.05, 1.02, 1 << 10

Cells = dict[str, float]
"""'CALL BYTES' -> microseconds of a call."""


def time_calls(bench: Bench, rounds: int, sizes: Sequence[int], keep: Path | None) -> dict[str, list[Cells]]:
    """Times all calls once a round in each variant.

    Args:
        keep: a file of rounds measured before, to which these are added.
    """
    program = bench.build("calls")
    arguments = (str(BATCHES), ",".join(CALLS), ",".join(map(str, sizes)))

    def measure(variant: str) -> Cells:
        lines = (line.split() for line in bench.run(variant, 2, program, *arguments).splitlines())
        return {f"{call} {size}": float(us) for call, size, us in lines}

    measured = take_turns(bench.variants, rounds, measure)
    if keep:
        for variant, before in json.loads(keep.read_text() if keep.exists() else "{}").items():
            measured[variant] = before + measured[variant]
        keep.write_text(json.dumps(measured))
    return measured


def show_calls(measured: dict[str, list[Cells]], sizes: Sequence[int]) -> bool:
    """Shows every cell, and tells whether all goals are met."""

    def column(variant: str, cell: str) -> list[float]:
        return [cells[cell] for cells in measured[variant]]

    print(
        f"Two ranks: a call without ibprof, and the ratio with it (95 % interval), lower quartiles of "
        f"{len(measured[WITH])} rounds\n"
    )
    rows, failed = [], []
    for call in CALLS:
        row = [call]
        for size in sizes:
            cell = f"{call} {size}"
            if cell not in measured[WITH][0]:
                row.append("")
                continue
            ratio, low, high = undisturbed_interval(column(WITH, cell), column(WITHOUT, cell))
            row.append(f"{np.percentile(column(WITHOUT, cell), 25):.3f} us, {ratio:.3f} ({low:.3f} to {high:.3f})")
            if low > (GOAL_SMALL if size < LARGE else GOAL_LARGE):
                failed.append(cell)
        rows.append(row)
    names = {size: name for name, size in SIZES.items()}
    show_table(["", *(names[size] for size in sizes)], rows)
    for variant in measured:
        if variant == WITHOUT:
            continue
        medians = [
            undisturbed_interval(column(variant, f"{call} {size}"), column(WITHOUT, f"{call} {size}"))[0]
            for call in CALLS
            for size in sizes
            if f"{call} {size}" in measured[WITH][0]
        ]
        print(f"Geometric mean of the ratios, {variant}: {np.exp(np.mean(np.log(medians))):.3f}")
    print(f"\nAbove the goal ({GOAL_SMALL} below 1 KiB, else {GOAL_LARGE}): {', '.join(failed) or 'none'}\n")
    return not failed


def count_instructions(bench: Bench, call: str, size: int) -> float:
    """Instructions of the library for one call, mean over two ranks, as callgrind counts them.

    Runs of two lengths are compared, so that what a run costs once falls out.
    """
    program = bench.build("calls")
    counted = []
    for calls in (50, 150):
        for file in bench.folder.glob("callgrind.*"):
            file.unlink()
        valgrind = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={bench.folder}/callgrind.%p"]
        bench.run(WITH, 2, *valgrind, program, "4", call, str(size), str(calls))
        counted.append(sum(_count_ours(file, bench.library.name) for file in bench.folder.glob("callgrind.*")))
    return (counted[1] - counted[0]) / (100 * 5 * 2)


def _count_ours(file: Path, library: str) -> int:
    line = re.compile(rf"\s*([\d,]+) .*\[[^\]]*{re.escape(library)}\]$")
    command = ["callgrind_annotate", "--threshold=100", file]
    listing = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return sum(int(found[1].replace(",", "")) for found in map(line.match, listing.splitlines()) if found)


def show_instructions(bench: Bench) -> None:
    """Shows what a call of each kind costs in instructions of ours."""
    rows = [[call, f"{count_instructions(bench, call, 8):.0f}"] for call in CALLS]
    print("Instructions of the library a call and rank, 8 bytes, two ranks (Window: 16 Isend and 16 Irecv)\n")
    show_table(["", "instructions"], rows)
