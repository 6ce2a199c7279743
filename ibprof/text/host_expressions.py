# SPDX-License-Identifier: Apache-2.0
"""Slurm's short form of the names of hosts: `rack[1-2]n[01-03,7],login1`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ibprof.errors import UsageError, quote_found

_LARGEST = 1 << 20
"""Largest number of hosts of one expression."""

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def expand_hosts(expression: str) -> list[str]:
    """Expand a Slurm host list expression, `rack[1-2]n[01-03,7],login1`.

    Raises:
        UsageError: it is invalid, or stands for too many hosts.
    """
    hosts: list[str] = []
    for item in _split(expression):
        names = [""]
        for number, part in enumerate(re.split(r"\[([^\[\]]*)\]", item)):
            pieces = _expand_ranges(expression, part) if number % 2 else [part]
            if len(names) * len(pieces) + len(hosts) > _LARGEST:
                raise UsageError(f"{quote_found(expression)}: more than {_LARGEST} hosts")
            names = [name + piece for name in names for piece in pieces]
        if any(set(name) & set("[]") or not name for name in names):
            raise UsageError(f"{quote_found(expression)}: expected hosts as node[01-04,7],login1")
        hosts += names
    if not hosts:
        raise UsageError(f"{quote_found(expression)}: expected hosts as node[01-04,7],login1")
    return hosts


def _split(expression: str) -> Iterator[str]:
    """Yield the items between commas outside brackets, without empty ones."""
    depth, item = 0, ""
    for letter in f"{expression},":
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            if item.strip():
                yield item.strip()
            item = ""
        else:
            item += letter
    if item:  # within a bracket
        yield item


def _expand_ranges(expression: str, text: str) -> list[str]:
    numbers: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or last < first or last - first > _LARGEST:
            raise UsageError(f"{quote_found(expression)}: expected numbers as [01-04,7], found {quote_found(part)}")
        numbers += [f"{number:0{len(match[1])}}" for number in range(first, last + 1)]
    return numbers


_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.DOTALL)


def join_hosts(names: Iterable[str]) -> str:
    """Return the expression that `expand_hosts` expands to these names, in their order: `node[01-04],node09`."""
    runs: list[tuple[str, str, str]] = []
    for name in names:
        found = _NUMBERED.fullmatch(name)
        prefix, number = (found[1], found[2]) if found else (name, "")
        if runs and number:
            before, first, last = runs[-1]
            if before == prefix and last and len(last) == len(number) and int(number) == int(last) + 1:
                runs[-1] = before, first, number
                continue
        runs.append((prefix, number, number))
    return ",".join(
        f"{prefix}{first}" if first == last else f"{prefix}[{first}-{last}]" for prefix, first, last in runs
    )
