# SPDX-License-Identifier: Apache-2.0
"""Quantities in user input: message lengths such as `0,64,1K:1M:x2`, times such as `10m`, budgets such as `5%`."""

from __future__ import annotations

import re
from math import nan
from typing import TYPE_CHECKING

from ibprof.errors import UsageError, quote_found
from ibprof.text.quantities import spell_unit

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LONGEST = (1 << 31) - 1
"""Largest message, in bytes, that every MPI library supports: MPI's count of bytes is an int."""

MOST = 100_000
"""Largest number of lengths in a list."""

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

_UNITS_S: dict[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "m": 60, "h": 3600, "": 1}
_LONGEST_S = 1e9


def parse_lengths(text: str) -> npt.NDArray[np.int64]:
    """Parse a list of lengths and ranges: `FIRST:LAST:xFACTOR`, `FIRST:LAST:STEP` or `FIRST:LAST` (doubling).

    K, M and G are powers of 1024. A range includes its last length if a step reaches it.

    Returns:
        Bytes, int64, ascending, without duplicates.

    Raises:
        UsageError: the text has another form.
    """
    import numpy as np  # noqa: PLC0415  (--help needs none of it)

    lengths: set[int] = set()
    for part in text.split(","):
        lengths.update(_parse_range(part.strip()))
        if len(lengths) > MOST:
            raise UsageError(f"expected at most {MOST} lengths, found {quote_found(text)}")
    return np.array(sorted(lengths), dtype=np.int64)


def _parse_range(part: str) -> range | list[int]:
    first, *rest = part.split(":")
    begin = parse_length(first)
    if not rest:
        return [begin]
    if len(rest) > 2:
        raise UsageError(f"expected FIRST:LAST:STEP, found {quote_found(part)}")
    end = parse_length(rest[0])
    step = rest[1].lower() if len(rest) > 1 else "x2"
    if end < begin:
        raise UsageError(f"expected a range that ascends, found {quote_found(part)}")
    if not step.startswith("x"):
        by = parse_length(step.removeprefix("+"))
        if by == 0:
            raise UsageError(f"expected a step above 0, found {quote_found(part)}")
        found = range(begin, end + 1, by)
        if len(found) > MOST:
            raise UsageError(f"expected at most {MOST} lengths, found {quote_found(part)}")
        return found
    factor = float(step[1:]) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", step[1:]) else 0.0
    if factor <= 1 or begin == 0:
        raise UsageError(f"expected a factor above 1 and a first length above 0, found {quote_found(part)}")
    grown = []
    exact = float(begin)
    while round(exact) <= end:
        grown.append(round(exact))
        exact *= factor
        if len(grown) > MOST:
            raise UsageError(f"expected at most {MOST} lengths, found {quote_found(part)}")
    return grown


def parse_length(text: str) -> int:
    """Parse one length, such as 64, 4K or 1M, into bytes.

    Raises:
        UsageError: the text has another form, or the length is above `LONGEST`.
    """
    match = re.fullmatch(r"(\d{1,12})([kmg]?)(?:i?b)?", text.strip().lower())
    length = int(match[1]) * _UNITS[match[2]] if match else -1
    if not 0 <= length <= LONGEST:
        raise UsageError(f"expected bytes such as 64, 4K or 1M up to {LONGEST}, found {quote_found(text)}")
    return length


def format_length(length: int) -> str:
    """Return a length as text that `parse_length` accepts: `4K` for 4096."""
    for unit, size in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if length >= size and length % size == 0:
            return f"{length // size}{unit}"
    return str(length)


def parse_duration(text: str) -> float:
    """Parse a time such as 500us, 1ms, 30s, 10m or 2h into seconds; a number without a unit is in seconds.

    Raises:
        UsageError: the text is not a time above 0.
    """
    typed = spell_unit(text.strip())
    digits = typed.rstrip("abcdefghijklmnopqrstuvwxyz")
    seconds = _read_number(digits) * _UNITS_S.get(typed[len(digits) :], nan)
    if not 0 < seconds < _LONGEST_S:
        raise UsageError(f"expected a time such as 500us, 1ms, 30s, 10m or 2h, found {quote_found(text)}")
    return seconds


def parse_budget(text: str) -> tuple[float, float | None]:
    """Parse a budget: return (0.05, None) for a share of the pairs (5% or 0.05), and (0, 30) for a time (30s).

    Raises:
        UsageError: the text is neither a share nor a time.
    """
    if text.endswith(("s", "m", "min", "h")):
        return 0.0, parse_duration(text)
    share = 0.01 * _read_number(text[:-1]) if text.endswith("%") else _read_number(text)
    if not 0 <= share <= 1:
        raise UsageError(f"expected a share such as 5% or a time such as 30s, found {quote_found(text)}")
    return share, None


def _read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan
