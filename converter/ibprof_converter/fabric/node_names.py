# SPDX-License-Identifier: Apache-2.0
"""Information in NodeDescriptions, and the display of lists of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SHOWN = 3
_DIGITS = re.compile(r"([0-9]+)")


def host_name(description: str) -> str:
    """Return the host of an adapter: the first word, as in `host17 HCA-1` or `host17 mlx5_0`; empty if none."""
    words = description.split(maxsplit=1)
    return words[0] if words else ""


def is_aggregation_node(description: str) -> bool:
    """Return whether a CA is the part of a switch that reduces data for collectives (SHARP), so no host."""
    return "aggregation node" in description.lower()


def natural_key(name: str) -> list[tuple[str, int, str]]:
    """Return a sort key that puts host9 before host10."""
    parts = _DIGITS.split(name)
    # Of two numbers the longer is larger; int() refuses thousands of digits.
    numbers = [digits.lstrip("0") for digits in (*parts[1::2], "")]
    return [(word, len(number), number) for word, number in zip(parts[::2], numbers, strict=True)]


def show_some(items: Sequence[str]) -> str:
    """Return the first few of many items, as a list in words."""
    return ", ".join(items[:_SHOWN]) + (", ..." if len(items) > _SHOWN else "")
