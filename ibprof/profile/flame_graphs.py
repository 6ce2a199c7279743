# SPDX-License-Identifier: Apache-2.0
"""Write call sites as flame graphs: as folded stacks, or as a speedscope file.

Folded stacks are lines `region;operation;line WEIGHT`, which speedscope and flamegraph.pl read.
Source: speedscope 1.25.0, file-format-schema.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from ibprof.profile.call_report import CallSum
from ibprof.text.quantities import name_call, printable

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


STACK = ("region", "operation", "site")
"""Keys of a stack, outermost first."""

TIME = "time"


def write_speedscope(name: str, rows: Sequence[CallSum]) -> str:
    """Return the text of a speedscope file: one profile of times, one of bytes. A profile of zeros is left out.

    Args:
        name: the run's name.
        rows: sums with the keys `STACK`.
    """
    frames: dict[str, int] = {}
    weights = {
        "time inside calls, all ranks": ("microseconds", [round((row.time_s or 0) * 1e6) for row in rows]),
        "bytes sent": ("bytes", [row.bytes for row in rows]),
    }
    profiles = [
        _sample(title, unit, zip(rows, amounts, strict=True), frames)
        for title, (unit, amounts) in weights.items()
        if any(amounts)
    ]
    file = {
        "$schema": SCHEMA,
        "name": printable(name),
        "exporter": f"ibprof {version('ibprof')}",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": each} for each in frames]},
        "profiles": profiles,
    }
    return json.dumps(file) + "\n"


def _name(row: CallSum) -> tuple[str, ...]:
    region, operation, *site = row.key
    return (region, name_call(operation), *site)


def _sample(
    title: str, unit: str, weighted: Iterable[tuple[CallSum, int]], frames: dict[str, int]
) -> dict[str, object]:
    """Return a profile with a sample for each stack. Add the names of frames to `frames`."""
    found = [(row, weight) for row, weight in weighted if weight]
    samples = [[frames.setdefault(printable(name), len(frames)) for name in _name(row) if name] for row, _ in found]
    weights = [weight for _, weight in found]
    return {
        "type": "sampled",
        "name": title,
        "unit": unit,
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }


def write_folded(rows: Iterable[CallSum], by: str) -> str:
    """Return a line for each row whose weight is not 0.

    Args:
        rows: sums with the keys `STACK`.
        by: weight of a line: `time` (microseconds over all ranks) or `bytes`.
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
    """Return a line for each stack whose weight is not 0. The outermost name comes first."""
    lines = []
    for names, weight in stacks:
        if weight:
            stack = ";".join(printable(name).replace(";", ",") for name in names if name)
            lines.append(f"{stack} {weight}\n")
    return "".join(lines)
