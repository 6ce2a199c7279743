# SPDX-License-Identifier: Apache-2.0
"""Quantities on command lines, as `type` of an argument; options from parsed arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from math import inf, nan
from typing import Any, TypeVar

from ibprof.errors import UsageError, quote_found
from ibprof_converter.latency.model.message_lengths import parse_lengths

T = TypeVar("T")

_UNITS_S: dict[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "m": 60, "h": 3600, "": 1}
_LONGEST_S = 1e9


def fill_options(kind: type[T], arguments: argparse.Namespace, **others: Any) -> T:
    """Return options whose fields are the arguments of the same names.

    Args:
        kind: a dataclass.
        arguments: as parsed.
        others: fields that no argument has, or not in this form.
    """
    named = {each.name for each in fields(kind)} - others.keys()  # type: ignore[arg-type]
    return kind(**{name: getattr(arguments, name) for name in named}, **others)


def parse_share(text: str) -> float:
    """Take a share, as 0.2 or 20%."""
    return 0.01 * number_between(text[:-1], 0, 1e6) if text.endswith("%") else number_between(text, 0, 1e4)


def parse_length(text: str) -> int:
    """Take one length of messages, as 64K."""
    try:
        (length,) = parse_lengths(text)
    except (UsageError, ValueError):
        raise argparse.ArgumentTypeError(f"expected bytes, such as 64K, found {quote_found(text)}") from None
    return int(length)


def parse_positive(text: str, most: float = inf) -> float:
    """Take a number above 0."""
    number = _read_number(text)
    if not 0 < number <= most:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {quote_found(text)}")
    return number


def parse_duration(text: str) -> float:
    """Take a time with its unit, such as 500us, 1ms, 30s, 10m or 2h; seconds without one."""
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz")
    seconds = _read_number(digits) * _UNITS_S.get(text.strip()[len(digits) :], nan)
    if not 0 < seconds < _LONGEST_S:
        raise argparse.ArgumentTypeError(
            f"expected a time such as 500us, 1ms, 30s, 10m or 2h, found {quote_found(text)}"
        )
    return seconds


def parse_budget(text: str) -> tuple[float, float | None]:
    """Take a share of the pairs, as 5%, or a time, as 30s."""
    if text.endswith(("s", "m", "min", "h")):
        return 0.0, parse_duration(text)
    share = 0.01 * _read_number(text[:-1]) if text.endswith("%") else _read_number(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(
            f"expected a share such as 5% or a time such as 30s, found {quote_found(text)}"
        )
    return share, None


def number_between(text: str, least: float, most: float) -> float:
    """Take a number in a range.

    Raises:
        argparse.ArgumentTypeError: it is invalid, or out of range.
    """
    number = _read_number(text)
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"expected a number from {least:g} to {most:g}, found {quote_found(text)}")
    return number


def number_in(least: float, most: float = inf) -> Callable[[str], float]:
    """Return the `type` of a number in a range."""
    return lambda text: number_between(text, least, most)


def count_in(least: int, most: int = 999_999_999) -> Callable[[str], int]:
    """Return the `type` of a whole number in a range."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"expected a whole number from {least} to {most}, found {quote_found(text)}"
            )
        return number

    return parse


def _read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan
