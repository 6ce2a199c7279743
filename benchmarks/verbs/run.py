# SPDX-License-Identifier: Apache-2.0
"""Measure the time that ibprof's verbs source adds to a post, with a mock provider that does no work.

    python benchmarks/verbs/run.py [LIBIBPROF.SO]

Runs with and without ibprof alternate. Times in ns are from the fastest batch, which is the least disturbed. The added
time is also shown for the median batch. With valgrind, the output includes instructions per post.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from ibprof.native.installed_files import find_library

HERE = Path(__file__).parent
BATCHES = 400
ROUNDS = 5
CASES = [(count, way) for way in ("list", "built") for count in (1, 64, 1000)]
POSTS_A_BATCH = 4000


def main() -> None:
    library = Path(sys.argv[1]) if len(sys.argv) > 1 else find_library()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        program = build(folder)
        print("request queue pairs without, ns with, ns added, ns median added, ns added instructions")
        for count, way in CASES:
            bare, preloaded = [], []
            for _ in range(ROUNDS):
                bare.append(run(program, folder, count, way, None))
                preloaded.append(run(program, folder, count, way, library))
            least = [min(times[0] for times in side) for side in (bare, preloaded)]
            middle = [statistics.median(times[1] for times in side) for side in (bare, preloaded)]
            added = instructions(program, folder, count, way, library)
            print(
                f"{way:7} {count:11} {least[0]:11.2f} {least[1]:8.2f} {least[1] - least[0]:9.2f} "
                f"{middle[1] - middle[0]:16.2f} {added:>18}"
            )


def build(folder: Path) -> Path:
    (folder / "lib").mkdir()
    provider = folder / "lib" / "libibverbs.so.1"
    compiler = ["cc", "-O2", "-Wall"]
    subprocess.run(
        [*compiler, "-shared", "-fPIC", "-Wl,-soname,libibverbs.so.1", "-o", provider, HERE / "provider.c"], check=True
    )
    subprocess.run([*compiler, "-o", folder / "post", HERE / "post.c", provider], check=True)
    return folder / "post"


def surroundings(folder: Path, library: Path | None) -> dict[str, str]:
    added = {"LD_LIBRARY_PATH": str(folder / "lib"), "IBPROF_OUTPUT": str(folder / "profile.ibprof")}
    return os.environ | added | ({"LD_PRELOAD": str(library)} if library else {})


def run(program: Path, folder: Path, count: int, way: str, library: Path | None) -> tuple[float, float]:
    command: list[str | Path] = [program, str(count), way, str(BATCHES)]
    done = subprocess.run(command, env=surroundings(folder, library), capture_output=True, text=True, check=True)
    least, median = map(float, done.stdout.split())
    return least, median


def instructions(program: Path, folder: Path, count: int, way: str, library: Path) -> str:
    """Return the number of instructions that ibprof adds to a post, as text; `-` without valgrind.

    Fixed costs cancel: each count is the difference between a run of many and a run of few batches.
    """
    if not shutil.which("valgrind"):
        return "-"
    totals = []
    for preload in (None, library):
        for batches in (2, 12):
            command: list[str | Path] = [
                "valgrind",
                "--tool=callgrind",
                "--callgrind-out-file=/dev/null",
                program,
                str(count),
                way,
                str(batches),
            ]
            done = subprocess.run(
                command, env=surroundings(folder, preload), capture_output=True, text=True, check=False
            )
            found = re.search(r"Collected : (\d+)", done.stderr)
            if done.returncode or not found:
                return "-"
            totals.append(int(found[1]))
    few, many, ibprof_few, ibprof_many = totals
    return f"{((ibprof_many - ibprof_few) - (many - few)) / (10 * POSTS_A_BATCH):.1f}"


if __name__ == "__main__":
    main()
