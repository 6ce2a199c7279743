# SPDX-License-Identifier: Apache-2.0
"""Bytes that each line of a program sends, from the program's comments and from a profile."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np

from ibprof.profile.profile_data import Direction, Kind, Profile

STATED = re.compile(r"(?:/\*|!|#|//) ([A-Z]+) (\d+)(?: \*/)?$")


def stated_lines(program: Path) -> dict[tuple[str, int], int]:
    """Return (operation, line) -> bytes, from comments such as `# SEND 100` at the ends of lines."""
    lines = enumerate(program.read_text().splitlines(), 1)
    stated = ((number, STATED.search(line)) for number, line in lines)
    return {(found[1], number): int(found[2]) for number, found in stated if found}


def sent_by_lines(run: Profile) -> dict[tuple[str, str, int], int]:
    """Return the bytes of user data by (base name of the file, operation, line).

    Bytes without a call site have the name "" and the line 0.
    """
    lines: Counter[tuple[str, str, int]] = Counter()
    sent = (run.counters.direction == Direction.SENT) & (run.counters.kind == Kind.USER)
    for row in np.flatnonzero(sent):
        operation, number = run.operations[run.counters.operation[row]], int(run.counters.site[row])
        site = run.sites[number - 1] if number else None
        lines[(Path(site.file).name or site.name) if site else "", operation, site.line if site else 0] += int(
            run.counters.bytes[row]
        )
    return dict(lines)
