# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of recording: time per message and call, instructions, memory, whole programs, end of a job.

Runs with and without ibprof alternate: other work on the machine affects all runs alike. The program prints Markdown.
Run it from a checkout on an idle machine, with ibprof installed:

    python benchmarks/overhead/run.py [PART ...] [--mpi FOLDER_OF_MPIRUN] [--suffix .mpich] [--rounds N] [--quick]

Parts: self-send, cases, calls, instructions, footprint, transform, imb. Without PART, all parts run; imb runs only
with --imb. The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bench import MONITORED, WITH, WITHOUT, Bench, ratio_interval, show_table, take_turns
from calls import SIZES, show_calls, show_instructions, time_calls
from cases import count_cases, show_counts, show_times
from programs import show_imb, show_transform

from ibprof.native.installed_files import find_library

SELF_SEND_GOAL, SELF_SEND_NS_GOAL = 1.08, 5.0
MESSAGES, QUICK_MESSAGES = 1_000_000, 200_000
PARTS = ("self-send", "cases", "calls", "instructions", "footprint", "transform", "imb")
QUICK_ROUNDS, QUICK_SIZES = 5, (8, 1 << 10, 1 << 16)


def show_self_send(bench: Bench, rounds: int, messages: int) -> bool:
    """Print the cost of a message; return whether the goals are met."""
    program = bench.build("selfsend")
    measured = take_turns(bench.variants, rounds, lambda variant: float(bench.run(variant, 1, program, str(messages))))
    print(f"Self-send of 8 bytes (Irecv, Send, Wait), medians of {rounds} rounds of {messages:,} messages\n")
    rows, ratios = [], {}
    for variant, values in measured.items():
        ratios[variant], low, high = ratio_interval(values, measured[WITHOUT])
        rows.append([variant, f"{np.median(values):.1f}", f"{ratios[variant]:.3f}", f"{low:.3f} to {high:.3f}"])
    show_table(["", "ns a message", "ratio", "95% interval"], rows)
    added = float(np.median(np.array(measured[WITH]) - np.array(measured[WITHOUT])))
    print(f"ibprof adds {added:.1f} ns to a message\n")
    goal = min(SELF_SEND_GOAL, ratios.get(MONITORED, SELF_SEND_GOAL))
    return ratios[WITH] <= goal and added <= SELF_SEND_NS_GOAL


def show_footprint(bench: Bench, rounds: int, ranks: int) -> None:
    """Print the memory, and the time from MPI_Finalize to the end of the process."""
    program = bench.build("footprint")
    resident: dict[str, list[float]] = {WITHOUT: [], WITH: []}

    def measure(variant: str) -> float:
        lines = [line.split() for line in bench.run(variant, ranks, program).splitlines()]
        ended = time.time()
        resident[variant] += [float(kib) for kib, _ in lines]
        return ended - max(float(moment) for _, moment in lines)

    to_end = take_turns([WITHOUT, WITH], rounds, measure)
    recorded = [file.stat().st_size for file in bench.recording.iterdir()]
    print(f"{ranks} ranks that use six operations with each other, medians of {rounds} rounds\n")
    rows = [
        [variant, f"{np.median(resident[variant]):,.0f}", f"{np.median(to_end[variant]) * 1e3:.1f}"]
        for variant in (WITHOUT, WITH)
    ]
    show_table(["", "resident KiB a rank", "ms from MPI_Finalize to the end of mpirun"], rows)
    print(f"Recording on disk: {np.median(recorded) / ranks / 1024:.1f} KiB a rank.\n")


def run_parts(wanted: argparse.Namespace, parts: Sequence[str], bench: Bench) -> bool:
    """Run the chosen parts; return whether all goals are met."""
    sizes = QUICK_SIZES if wanted.quick else tuple(SIZES.values())
    met = True
    if "self-send" in parts:
        met &= show_self_send(bench, wanted.rounds, QUICK_MESSAGES if wanted.quick else MESSAGES)
    if "cases" in parts:
        met &= show_times(bench, wanted.rounds, QUICK_MESSAGES if wanted.quick else MESSAGES)
    if "calls" in parts:
        met &= show_calls(time_calls(bench, wanted.rounds, sizes, wanted.keep, wanted.most_rounds), sizes)
    if "instructions" in parts:
        met &= show_counts(count_cases(bench))
        show_instructions(bench)
    if "footprint" in parts:
        show_footprint(bench, wanted.rounds, wanted.ranks)
    if "transform" in parts:
        show_transform(bench, wanted.rounds)
    if "imb" in parts:
        show_imb(wanted.imb, bench, wanted.rounds)
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--mpi", type=Path, default=Path("/usr/bin"), metavar="FOLDER", help="folder of mpirun (default: /usr/bin)"
    )
    parser.add_argument("--suffix", default="", help="suffix of the names mpirun and mpicc, such as .mpich")
    parser.add_argument("--imb", type=Path, metavar="FOLDER", help="folder of IMB-MPI1 and its mpirun")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each measurement (default: 30)")
    parser.add_argument(
        "--most-rounds",
        type=int,
        default=0,
        metavar="N",
        help="repeat calls with wide intervals until they have N rounds",
    )
    parser.add_argument("--ranks", type=int, default=8, metavar="N", help="number of ranks in `footprint` (default: 8)")
    parser.add_argument("--quick", action="store_true", help=f"measure only {QUICK_ROUNDS} rounds and few sizes")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="file of earlier rounds of `calls`; new rounds are added to it. --rounds 0 only shows the file.",
    )
    parser.add_argument("--library", type=Path, metavar="FILE", help="libibprof.so (default: the installed one)")
    wanted = parser.parse_args()
    if wanted.rounds is None:
        wanted.rounds = QUICK_ROUNDS if wanted.quick else 30
    parts = wanted.parts or [part for part in PARTS if part != "imb" or wanted.imb]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(wanted.mpi, Path(folder), wanted.library or find_library(), wanted.suffix)
        print(f"{bench.version}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}\n")
        goals_met = run_parts(wanted, parts, bench)
    sys.exit(not goals_met)


if __name__ == "__main__":
    main()
