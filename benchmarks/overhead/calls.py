# SPDX-License-Identifier: Apache-2.0
"""Measure time and instructions of MPI calls between ranks, by call and message size."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bench import WITH, WITHOUT, WRAPPED, Bench, show_table, take_turns, undisturbed_interval

CALLS = ("PingPong", "Window", "Barrier", "Bcast", "Gather", "Scatter", "Allgather", "Alltoall", "Reduce", "Allreduce")
SIZES = {"8 B": 8, "1 KiB": 1 << 10, "8 KiB": 1 << 13, "64 KiB": 1 << 16, "1 MiB": 1 << 20, "8 MiB": 1 << 23}
BATCHES = 30

# The lower end of a ratio's interval must be at most GOAL_SMALL; from LARGE bytes on, at most GOAL_LARGE.
GOAL_SMALL, GOAL_LARGE, LARGE = 1.05, 1.02, 1 << 10

# Cells with an interval wider than WIDTH are measured again, MORE_ROUNDS rounds at a time.
WIDTH, MORE_ROUNDS = 0.02, 10

# When instructions are counted: batches in a run after the warm-up batch; calls in a batch (short run, long run).
BATCHES_COUNTED, CALLS_COUNTED = 10, (100, 1000)

Cells = dict[str, float]
"""'CALL BYTES' -> microseconds of a call."""


def time_calls(
    bench: Bench, rounds: int, sizes: Sequence[int], keep: Path | None, most_rounds: int
) -> dict[str, list[Cells]]:
    """Time all calls once in each round and variant. Cells with a wide interval get more rounds.

    Args:
        keep: a file of earlier rounds. New rounds are added to this file.
        most_rounds: maximum number of rounds of a cell, including earlier rounds.
    """
    program = bench.build("calls")
    variants = [*bench.variants, WRAPPED]
    measured: dict[str, list[Cells]] = {variant: [] for variant in variants}
    if keep and keep.exists():
        measured |= json.loads(keep.read_text())

    def add_rounds(count: int, wanted: Sequence[tuple[str, int]]) -> None:
        def measure(variant: str) -> Cells:
            cells: Cells = {}
            for size in sizes:
                calls = ",".join(call for call, of_size in wanted if of_size == size)
                said = bench.run(variant, 2, program, str(BATCHES), calls, str(size)) if calls else ""
                cells |= {f"{call} {bytes_}": float(us) for call, bytes_, us in map(str.split, said.splitlines())}
            return cells

        for variant, rounds_of_variant in take_turns(variants, count, measure).items():
            measured[variant] += rounds_of_variant
        if keep:
            keep.write_text(json.dumps(measured))

    # A Barrier has no size.
    cells = [(call, size) for call in CALLS for size in sizes if call != "Barrier" or size == sizes[0]]
    for first in range(0, rounds, MORE_ROUNDS):
        add_rounds(min(MORE_ROUNDS, rounds - first), cells)
    while wide := [
        (call, size)
        for call, size in cells
        if len(column(measured, WITH, call, size)) < most_rounds and _width(measured, call, size) > WIDTH
    ]:
        add_rounds(MORE_ROUNDS, wide)
    return measured


def column(measured: dict[str, list[Cells]], variant: str, call: str, size: int) -> list[float]:
    """Return the times of a cell, one for each round."""
    cell = f"{call} {size}"
    return [cells[cell] for cells in measured[variant] if cell in cells]


def _interval(measured: dict[str, list[Cells]], variant: str, call: str, size: int) -> tuple[float, float, float]:
    return undisturbed_interval(column(measured, variant, call, size), column(measured, WITHOUT, call, size))


def _width(measured: dict[str, list[Cells]], call: str, size: int) -> float:
    _, low, high = _interval(measured, WITH, call, size)
    return high - low


def _show_smallest(measured: dict[str, list[Cells]], size: int) -> None:
    """Show the time that each variant adds to short calls; empty wrappers add the minimum of any preloaded tool."""
    print(f"Nanoseconds that each variant adds to a call of {size} bytes\n")
    rows = []
    for variant in measured:
        if variant == WITHOUT:
            continue
        row = [variant]
        for call in CALLS:
            added = np.array([np.percentile(column(measured, of, call, size), 25) for of in (variant, WITHOUT)])
            row.append(f"{(added[0] - added[1]) * 1e3:.1f}")
        rows.append(row)
    show_table(["", *CALLS], rows)


def show_calls(measured: dict[str, list[Cells]], sizes: Sequence[int]) -> bool:
    """Print all cells; return whether all goals are met."""
    print("Two ranks, lower quartiles: time of a call without ibprof; time with / without (95% interval; rounds)\n")
    rows, failed, wide = [], [], []
    for call in CALLS:
        row = [call]
        for size in sizes:
            without = column(measured, WITHOUT, call, size)
            if not without:
                row.append("")
                continue
            ratio, low, high = _interval(measured, WITH, call, size)
            row.append(f"{np.percentile(without, 25):.3f} µs, {ratio:.3f} ({low:.3f} to {high:.3f}; {len(without)})")
            if low > (GOAL_SMALL if size < LARGE else GOAL_LARGE):
                failed.append(f"{call} {size}")
            if high - low > WIDTH:
                wide.append(f"{call} {size}")
        rows.append(row)
    names = {size: name for name, size in SIZES.items()}
    show_table(["", *(names[size] for size in sizes)], rows)
    _show_smallest(measured, sizes[0])
    for variant in measured:
        if variant == WITHOUT:
            continue
        ratios = [
            _interval(measured, variant, call, size)[0]
            for call in CALLS
            for size in sizes
            if column(measured, variant, call, size)
        ]
        print(
            f"Geometric mean of the ratios to the time without a tool, {variant}: {np.exp(np.mean(np.log(ratios))):.3f}"
        )
    print(f"\nCalls and sizes with an interval wider than {WIDTH}: {len(wide)} ({', '.join(wide) or 'none'})")
    print(
        f"Calls and sizes above the goal ({GOAL_SMALL} below 1 KiB, else {GOAL_LARGE}): {', '.join(failed) or 'none'}\n"
    )
    return not failed


def count_instructions(bench: Bench, call: str, size: int) -> float:
    """Return the library's instructions for one call, counted by callgrind, mean of two ranks.

    The difference between a long and a short run cancels the fixed cost of a run. An error of about 10,000 instructions
    remains, because the search for libraries differs between runs.
    """
    program = bench.build("calls")
    counted = []
    for calls in CALLS_COUNTED:
        for file in bench.folder.glob("callgrind.*"):
            file.unlink()
        valgrind = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={bench.folder}/callgrind.%p"]
        bench.run(WITH, 2, *valgrind, program, str(BATCHES_COUNTED), call, str(size), str(calls))
        of_ranks = [_count_instructions(file, bench.library.name) for file in bench.folder.glob("callgrind.*")]
        assert len(of_ranks) == 2, f"expected files of callgrind for 2 ranks, found {len(of_ranks)}"
        assert all(of_ranks), "callgrind found no instructions of ibprof in a rank"
        counted.append(sum(of_ranks))
    more = CALLS_COUNTED[1] - CALLS_COUNTED[0]
    return (counted[1] - counted[0]) / (more * (BATCHES_COUNTED + 1) * 2)


def _count_instructions(file: Path, library: str) -> int:
    line = re.compile(rf"\s*([\d,]+) .*\[[^\]]*{re.escape(library)}\]$")
    command: list[str | Path] = ["callgrind_annotate", "--threshold=100", file]
    listing = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return sum(int(found[1].replace(",", "")) for found in map(line.match, listing.splitlines()) if found)


def show_instructions(bench: Bench) -> None:
    """Show the library's instructions for a call of each kind."""
    rows = [[call, f"{count_instructions(bench, call, 8):.0f}"] for call in CALLS]
    print("Instructions of libibprof.so for one call of a rank, 8 bytes, two ranks (Window: 16 Isend and 16 Irecv)\n")
    show_table(["", "instructions"], rows)
