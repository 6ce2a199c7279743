# SPDX-License-Identifier: Apache-2.0
"""The cases of the Intel MPI Benchmarks, in a folder where they were built."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from outcomes import Case

from ibprof_testing.mpi.mpis import environment

PARTS = ("MPI1", "NBC", "RMA", "EXT", "IO", "MT", "P2P")

# Send few messages, of sizes from 0 to 64 KiB, because the benchmarks' results are not used.
SHORT = ("-iter", "20", "-msglog", "0:16", "-time", "1")
SHORT_P2P = ("-iter", "20", "-msglog", "0:16")
SHORT_MT = ("-repeat", "10", "-count", "1,1024,65536", "-thread_level", "multiple")


def list_cases(target: Path, ranks: int, seconds: float) -> Iterator[Case]:
    """Yield a case for each benchmark that the programs list."""
    for part in PARTS:
        program = target / f"IMB-{part}"
        if not program.exists():
            yield Case(f"IMB-{part}", (str(program),), ranks, target)
            continue
        options = {"P2P": SHORT_P2P, "MT": SHORT_MT}.get(part, SHORT)
        for benchmark in _read_names(program):
            command = (str(program), benchmark, *options)
            yield Case(f"IMB-{part} {benchmark}", command, ranks, target, seconds=seconds)


def _read_names(program: Path) -> list[str]:
    """Return the names of a program's benchmarks, which it lists by `-list`."""
    listed = subprocess.run([program, "-list"], capture_output=True, text=True, check=False, env=environment()).stdout
    # A line with a name ends after the name, or continues with a comment in parentheses. Other indented lines are
    # sentences.
    return re.findall(r"^(?:    +|# )([A-Za-z]\w*)(?: +\(.*)?$", listed, re.MULTILINE)
