# SPDX-License-Identifier: Apache-2.0
"""Quantities and names as text for people."""

from __future__ import annotations

_STEP = 1000
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def format_bytes(amount: float) -> str:
    """Return bytes with three digits and a decimal unit (1 kB is 1,000 bytes), as for link speeds."""
    power = 0
    while abs(amount) >= 999.5 and power < len(_PREFIXES) - 1:
        amount /= _STEP
        power += 1
    return f"{amount:.3g} {_PREFIXES[power]}B"


def format_seconds(seconds: float) -> str:
    """Return a time with three digits in a suitable unit."""
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def printable(text: str) -> str:
    """Return a name from a file on one line, with escapes for characters that control a terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)
