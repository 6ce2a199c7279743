# SPDX-License-Identifier: Apache-2.0
"""Parsing and formatting of sizes and times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ibprof.errors import UsageError, quote_found
from ibprof.text.quantities import spell_unit

UNITS_OF_TIME = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
UNITS_OF_SIZE = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
                  "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}  # fmt: skip

LARGEST = 1 << 50
"""Largest size in bytes, and largest time in ns; floats represent smaller whole numbers exactly."""


def parse_quantity(text: str, units: Mapping[str, float]) -> float | None:
    """Parse a number with a unit; return the value in the base unit, or None if the text is not a quantity."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)", spell_unit(text))
    return float(match[1]) * units[match[2]] if match and match[2] in units else None


def parse_size(text: str) -> int:
    """Parse a size such as `4 MiB` into bytes.

    Raises:
        UsageError: the text is not a size in whole bytes.
    """
    size = _parse_in_range(text, UNITS_OF_SIZE, "a size such as 4MiB", 1)
    if not is_whole(size):
        raise UsageError(f"expected whole bytes, found {quote_found(text)}")
    return round(size)


def parse_interval(text: str) -> float:
    """Parse a time such as `500us` into nanoseconds. `0` and `checkpoint` are parsed as 0.

    Raises:
        UsageError: the text is not a time.
    """
    return 0.0 if text in {"0", "checkpoint"} else _parse_in_range(text, UNITS_OF_TIME, "a time such as 500us", 0)


def _parse_in_range(text: str, units: Mapping[str, float], what: str, least: float) -> float:
    amount = parse_quantity(text, units)
    if amount is None or not least <= amount <= LARGEST:
        raise UsageError(f"expected {what} ({', '.join(units)}), found {quote_found(text)}")
    return amount


def is_whole(size: float) -> bool:
    """Return True if a size is a whole number of bytes, except for rounding errors of floats."""
    return abs(size - round(size)) <= 1e-9 * size


def format_size(size: int) -> str:
    """Return a size in the largest unit in which the number has at most two decimals."""
    for unit, factor in sorted(UNITS_OF_SIZE.items(), key=lambda each: -each[1]):
        if size >= factor and 100 * size % factor == 0:
            return f"{size / factor:.15g} {unit}"
    return f"{size} B"


def format_time(nanoseconds: float) -> str:
    """Return a time with its unit, rounded to four digits."""
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= unit:
            return f"{nanoseconds / unit:.4g} {name}"
    return f"{nanoseconds:.4g} ns"


_LIKE_A_SIZE = re.compile(r"[0-9.]+ ?\w*")


def parse_messages(text: str) -> tuple[int | Path, float]:
    """Parse `SIZE[@INTERVAL]` or `PROFILE[@INTERVAL]` into bytes or a path, and an interval in ns (0 if left out).

    Raises:
        UsageError: the text does not have one of these forms.
    """
    name, at, interval = text.rpartition("@") if "@" in text else (text, "", "0")
    try:
        return parse_size(name), parse_interval(interval)
    except UsageError:
        whole = Path(text)
        if not whole.exists() and not Path(name).exists() and _LIKE_A_SIZE.fullmatch(name):
            raise
        if whole.exists() or not at:
            return whole, 0.0
        return Path(name), parse_interval(interval)
