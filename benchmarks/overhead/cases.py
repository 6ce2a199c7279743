# SPDX-License-Identifier: Apache-2.0
"""Measure the instructions and the time of a message that a process sends to itself.

Cases differ in communicator, datatype, threads and kind of request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from bench import MONITORED, WITH, WITHOUT, Bench, show_table, take_turns, undisturbed_interval

# Case of cases.c -> maximum number of instructions that ibprof may add to a message. A message consists of Irecv, Send
# and Wait; with persistent requests, of Startall and Waitall.
GOALS = {
    "World": 75,
    "Self": 100,
    "Dup": 100,
    "Split": 100,
    "TwoCommunicators": 100,
    "TwoTypes": 100,
    "DerivedType": 120,
    "Persistent": 150,
    "PersistentDup": 150,
    "ThreadMultiple": 175,
    "ThreadMultipleDup": 175,
}
TIMED_ALONE = ("TwoThreads",)

# Largest allowed (time with ibprof) / (time without ibprof), for cases on one communicator.
RATIO_GOAL, WITH_RATIO_GOAL = 1.10, ("World", "Self", "Dup", "Split", "TwoCommunicators")

MESSAGES_COUNTED = 10_000
WARM_UP = 100
"""As in cases.c."""

Counts = dict[str, dict[str, float]]
"""case -> variant -> instructions of a message."""


def count_instructions(bench: Bench, variant: str, program: Path, case: str, messages: int = MESSAGES_COUNTED) -> float:
    """Return callgrind's count of all instructions per message: in the program, in MPI and in ibprof."""
    for file in bench.folder.glob("callgrind.*"):
        file.unlink()
    valgrind = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={bench.folder}/callgrind.%p"]
    valgrind += ["--collect-atstart=no", "--toggle-collect=exchange_*"]
    bench.run(variant, 1, *valgrind, program, case, str(messages), preloaded=[bench.build_library("apart")])
    (file,) = bench.folder.glob("callgrind.*")
    found = re.search(r"^(?:totals|summary): (\d+)", file.read_text(), re.MULTILINE)
    assert found, f"callgrind counted nothing: {file.read_text()[:500]}"
    assert int(found[1]), "callgrind did not see the program's messages"
    return int(found[1]) / (messages + WARM_UP)


def count_added(bench: Bench, case: str, messages: int, variant: str = WITH) -> float:
    """Count the instructions that ibprof, or another variant, adds to a message of one case."""
    program = bench.build("cases")
    counted, bare = (count_instructions(bench, each, program, case, messages) for each in (variant, WITHOUT))
    return counted - bare


def count_cases(bench: Bench) -> Counts:
    program = bench.build("cases")
    return {
        case: {variant: count_instructions(bench, variant, program, case) for variant in bench.variants}
        for case in GOALS
    }


def show_counts(counted: Counts) -> bool:
    """Show the instructions added to a message; return whether the goals are met."""
    print("Instructions of a self-send of 8 bytes without a tool, and instructions that each tool adds\n")
    rows, met = [], True
    for case, of_variant in counted.items():
        added = of_variant[WITH] - of_variant[WITHOUT]
        by_monitoring = f"{of_variant[MONITORED] - of_variant[WITHOUT]:.0f}" if MONITORED in of_variant else ""
        rows.append([case, f"{of_variant[WITHOUT]:.0f}", f"{added:.0f}", str(GOALS[case]), by_monitoring])
        met &= round(added) <= GOALS[case]
    show_table(["", "without", "ibprof adds", "goal", "monitoring adds"], rows)
    return met


def _time(bench: Bench, command: Sequence[str | Path], variant: str) -> float:
    return float(bench.run(variant, 1, *command))


def show_times(bench: Bench, rounds: int, messages: int) -> bool:
    """Show the time of a message; return whether the goals are met."""
    program = bench.build("cases")
    print(f"Time of a self-send of 8 bytes, lower quartiles of {rounds} rounds\n")
    rows, met = [], True
    for case in (*GOALS, *TIMED_ALONE):
        command = (program, case, str(messages))
        measured = take_turns(bench.variants, rounds, partial(_time, bench, command))
        row, ratios = [case, f"{np.percentile(measured[WITHOUT], 25):.1f}"], {}
        for variant in bench.variants[1:]:
            ratios[variant], low, high = undisturbed_interval(measured[variant], measured[WITHOUT])
            row.append(f"{ratios[variant]:.3f} ({low:.3f} to {high:.3f})")
        rows.append(row)
        met &= ratios[WITH] <= ratios.get(MONITORED, ratios[WITH])
        met &= case not in WITH_RATIO_GOAL or ratios[WITH] <= RATIO_GOAL
    show_table(["", "ns without", *(f"{variant}, ratio" for variant in bench.variants[1:])], rows)
    return met
