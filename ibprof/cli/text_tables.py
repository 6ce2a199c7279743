# SPDX-License-Identifier: Apache-2.0
"""Tables of texts on stdout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ibprof.text.quantities import printable


def print_pairs(pairs: Mapping[str, str]) -> None:
    """Print names and values; empty values are left out."""
    width = max(map(len, pairs))
    for name, value in pairs.items():
        if value:
            print(f"{name:{width}}  {printable(value)}")
    print()


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns; names in a profile are untrusted text and must not control the terminal."""
    lines = [tuple(map(printable, row)) for row in rows]
    if not lines:
        return
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    for line in (head, *lines):
        print("  ".join(f"{text:{width}}" for text, width in zip(line, widths, strict=True)).rstrip())
    print()
