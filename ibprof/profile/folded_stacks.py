# SPDX-License-Identifier: Apache-2.0
"""Call sites as folded stacks, which speedscope and flamegraph.pl read: `region;operation;line WEIGHT`."""

from __future__ import annotations

from collections.abc import Iterable

from ibprof.profile.call_sums import CallSum
from ibprof.text.call_names import name_call
from ibprof.text.quantities import printable

STACK = ("region", "operation", "site")
"""Keys of a stack, the outermost first."""

TIME = "time"


def write_folded(rows: Iterable[CallSum], by: str) -> str:
    """Return a line for each row that has a weight.

    Args:
        rows: sums by `STACK`.
        by: `time` in microseconds over all ranks, or `bytes`.
    """
    return fold_stacks(
        (
            (region, name_call(operation), site),
            round((row.time_s or 0) * 1e6) if by == TIME else row.bytes,
        )
        for row in rows
        for region, operation, site in [row.key]
    )


def fold_stacks(stacks: Iterable[tuple[Iterable[str], int]]) -> str:
    """Return a line for each stack, names from the outermost, that has a weight."""
    lines = []
    for names, weight in stacks:
        if weight:
            stack = ";".join(printable(name).replace(";", ",") for name in names if name)
            lines.append(f"{stack} {weight}\n")
    return "".join(lines)
