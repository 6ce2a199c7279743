# SPDX-License-Identifier: Apache-2.0
"""Times and shares that limit a measurement, as users type them."""

from __future__ import annotations

from math import nan

from ibprof.errors import UsageError, quote_found
from ibprof.text.quantities import spell_unit

_UNITS_S: dict[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "m": 60, "h": 3600, "": 1}
_LONGEST_S = 1e9


def parse_duration(text: str) -> float:
    """Return the seconds of a time such as 500us, 1ms, 30s, 10m or 2h; of a number without a unit, itself.

    Raises:
        UsageError: it is no time above 0.
    """
    typed = spell_unit(text.strip())
    digits = typed.rstrip("abcdefghijklmnopqrstuvwxyz")
    seconds = _read_number(digits) * _UNITS_S.get(typed[len(digits) :], nan)
    if not 0 < seconds < _LONGEST_S:
        raise UsageError(f"expected a time such as 500us, 1ms, 30s, 10m or 2h, found {quote_found(text)}")
    return seconds


def parse_budget(text: str) -> tuple[float, float | None]:
    """Return a share of the pairs, of 5% or 0.05, and None; or 0 and the seconds of a time such as 30s.

    Raises:
        UsageError: it is neither.
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
