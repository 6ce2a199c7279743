# SPDX-License-Identifier: Apache-2.0
"""Synthetic fabrics, which a user names instead of a file."""

from __future__ import annotations

import re
from os import PathLike, fspath
from typing import TYPE_CHECKING

from ibprof.errors import UsageError
from ibprof_converter.choices import FABRIC_FORMS

if TYPE_CHECKING:
    from ibprof_converter.routing.synthetic.build import SyntheticSubnet

_KINDS = ("xgft", "tree", "torus", "codes", "dragonfly")
_SPEC = re.compile(rf"({'|'.join(_KINDS)}):([0-9,;:x]+)(?:@([0-9]+(?:\.[0-9]+)?))?")
_DEFAULT_GBPS = 100.0
_MOST_GBPS = 1e6
_LARGEST = 1 << 16
"""A number larger than the nodes of any subnet."""


def is_synthetic(name: str | PathLike[str]) -> bool:
    """Return true if a name denotes a synthetic fabric."""
    return fspath(name).startswith(tuple(f"{kind}:" for kind in _KINDS))


def generate(name: str, rail: int = 0) -> SyntheticSubnet:
    """Return the synthetic fabric of a name.

    Raises:
        UsageError: the name describes no possible fabric.
    """
    # Most commands only ask if a name is synthetic.
    from ibprof_converter.routing.synthetic.fat_trees import generate_codes_tree, generate_tree, generate_xgft  # noqa: PLC0415
    from ibprof_converter.routing.synthetic.flat_networks import generate_dragonfly, generate_torus  # noqa: PLC0415

    match = _SPEC.fullmatch(name)
    if match is None:
        raise UsageError(f"{name}: expected one of\n{FABRIC_FORMS}".rstrip())
    kind, numbers, rate = match.groups()
    gbps = float(rate) if rate else _DEFAULT_GBPS
    if not 0 < gbps <= _MOST_GBPS:
        raise UsageError(f"{name}: expected links of more than 0 and at most {_MOST_GBPS:g} Gb/s")
    parts = [_read_numbers(name, part) for part in re.split("[;:]", numbers)]
    if kind == "xgft" and len(parts) in (3, 4) and len(parts[0]) == 1:
        if any(len(part) != parts[0][0] for part in parts[1:]):
            raise UsageError(f"{name}: expected {parts[0][0]} numbers for {parts[0][0]} levels")
        return generate_xgft(name, parts[1], parts[2], parts[3] if len(parts) > 3 else (), gbps, rail)
    if kind == "tree" and len(parts) == 1 and len(parts[0]) == 2:
        return generate_tree(name, parts[0][0], parts[0][1], gbps, rail)
    if kind == "torus" and len(parts) == 2 and len(parts[1]) == 1:
        return generate_torus(name, parts[0], parts[1][0], gbps, rail)
    if kind == "codes" and len(parts) == 1 and len(parts[0]) == 2:
        return generate_codes_tree(name, parts[0][0], parts[0][1], gbps, rail)
    if kind == "dragonfly" and len(parts) == 1 and len(parts[0]) in (3, 4):
        a, p, h = parts[0][:3]
        return generate_dragonfly(name, a, p, h, parts[0][3] if len(parts[0]) > 3 else None, gbps, rail)
    raise UsageError(f"{name}: expected one of\n{FABRIC_FORMS}".rstrip())


def _read_numbers(name: str, text: str) -> list[int]:
    numbers = re.split("[,x]", text)
    for number in numbers:
        if not number.isdigit():
            raise UsageError(f"{name}: expected numbers, found {text!r}")
        if len(number) > len(str(_LARGEST)):
            raise UsageError(f"{name}: larger than any subnet")
    values = [int(number) for number in numbers]
    size = 1
    for value in values:
        size *= max(value, 1)
        if size > _LARGEST:
            raise UsageError(f"{name}: larger than any subnet")
    return values
