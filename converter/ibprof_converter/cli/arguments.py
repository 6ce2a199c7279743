# SPDX-License-Identifier: Apache-2.0
"""Quantities on command lines, as `type` of an argument."""

from __future__ import annotations

import argparse

from ibprof.errors import UsageError, quote_found
from ibprof_converter.latency.measure.message_lengths import parse_lengths


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


def number_between(text: str, least: float, most: float) -> float:
    """Take a number in a range.

    Raises:
        argparse.ArgumentTypeError: it is none, or out of it.
    """
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"expected a number from {least:g} to {most:g}, found {quote_found(text)}")
    return number
