# SPDX-License-Identifier: Apache-2.0
"""Call sites as folded stacks, which speedscope and flamegraph.pl read: `region;operation;line WEIGHT`."""

from __future__ import annotations

from collections.abc import Iterable

from ibprof.profile.call_sums import CallSum
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
    lines = []
    for row in rows:
        weight = round((row.time_s or 0) * 1e6) if by == TIME else row.bytes
        if weight:
            stack = ";".join(printable(part).replace(";", ",") for part in row.key if part)
            lines.append(f"{stack} {weight}\n")
    return "".join(lines)
