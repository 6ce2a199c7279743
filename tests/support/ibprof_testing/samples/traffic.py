# SPDX-License-Identifier: Apache-2.0
"""Hand-made traffic, for tests of outputs."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from ibprof_converter.cli import layout


def write_matrix(path: Path, ranks: int, amounts: Sequence[int] = (1, 1 << 20), seed: int = 7) -> str:
    """Write a matrix of random amounts for all pairs of ranks, and return the file's path."""
    draw = random.Random(seed)
    pairs = [(one, other) for one in range(ranks) for other in range(ranks) if one != other]
    rows = [f"{one},{other},{draw.randint(*amounts)},1" for one, other in pairs]
    path.write_text("\n".join(["src,dst,bytes,messages", *rows, ""]))
    return str(path)


def keep_pairs(matrix: str, path: Path, wanted: Callable[[int, int], bool]) -> str:
    """Copy a matrix, with 0 bytes for pairs that are not `wanted`. The number of ranks stays the same."""
    lines = [line.split(",") for line in Path(matrix).read_text().split()[1:]]
    kept = [[a, b, amount if wanted(int(a), int(b)) else "0", count] for a, b, amount, count in lines]
    path.write_text("\n".join(["src,dst,bytes,messages", *map(",".join, kept), ""]))
    return str(path)


def loads_in_csv(arguments: Sequence[str], path: Path) -> list[list[str]]:
    """Run `ibprof-layout` with -o links.csv, and return the loads: [link][end], in the order of links.csv."""
    assert layout.main([*arguments, "-o", str(path)]) == 0
    with path.open(newline="") as file:
        return [[row["a_bytes"], row["b_bytes"]] for row in csv.DictReader(file)]
