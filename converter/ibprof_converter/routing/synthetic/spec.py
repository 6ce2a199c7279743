# SPDX-License-Identifier: Apache-2.0
"""Parse the names of synthetic fabrics, which users type in place of a file."""

from __future__ import annotations

import re
from os import PathLike, fspath
from typing import TYPE_CHECKING

from ibprof.errors import UsageError
from ibprof_converter.choices import FABRIC_FORMS

if TYPE_CHECKING:
    from ibprof_converter.routing.synthetic.build import SyntheticSubnet
    from ibprof_converter.routing.synthetic.rail_fabrics import RailSizes

_KINDS = ("xgft", "tree", "torus", "codes", "dragonfly")
_RAILS_APART = "rail-optimised"
_RAIL_KINDS = (_RAILS_APART, "scalable-unit")
_RATE = r"(?:@([0-9]+(?:\.[0-9]+)?))?"
_SPEC = re.compile(rf"({'|'.join(_KINDS)}):([0-9,;:x]+){_RATE}")
_RAIL_SPEC = re.compile(rf"({'|'.join(_RAIL_KINDS)}):([0-9]{{1,6}})((?:[:;,][a-z]+=[0-9]{{1,6}})*){_RATE}")
_RAIL_SETTINGS = {"rails": 8, "radix": 64, "planes": 1}
_MOST_PLANES = 8
_MOST_RAILS = 16
_DEFAULT_GBPS = 100.0
_MOST_GBPS = 1e6
_EXPECTED = f"expected one of these forms, with GBPS of each link:\n{FABRIC_FORMS.partition(chr(10))[2].rstrip()}"
_LARGEST = 1 << 16
"""Largest number in the name of a synthetic fabric: all subnets have fewer nodes."""


def is_synthetic(name: str | PathLike[str]) -> bool:
    """Return true if a name is that of a synthetic fabric."""
    return fspath(name).startswith(tuple(f"{kind}:" for kind in (*_KINDS, *_RAIL_KINDS)))


def count_subnets(name: str) -> int:
    """Return the number of subnets of a synthetic fabric: planes, or planes * rails if no cable joins the rails.

    Raises:
        UsageError: the name describes no possible fabric of rails.
    """
    return _read_rail_sizes(name)[0].subnets if name.startswith(_RAIL_KINDS) else 1


def _read_rail_sizes(name: str) -> tuple[RailSizes, float]:
    """Return the sizes and the data rate, in Gb/s, of a fabric of rails."""
    from ibprof_converter.routing.synthetic.rail_fabrics import RailSizes  # noqa: PLC0415  (slow to import)

    match = _RAIL_SPEC.fullmatch(name)
    if match is None:
        raise UsageError(f"{name}: {_EXPECTED}")
    kind, number, settings, rate = match.groups()
    apart = kind == _RAILS_APART
    pairs = [part.split("=") for part in re.split("[:;,]", settings)[1:]]
    known = _RAIL_SETTINGS if apart else {**_RAIL_SETTINGS, "hosts": 0}
    for key, _ in pairs:
        if key not in known:
            raise UsageError(f"{name}: expected {', '.join(known)}, found {key!r}")
    if len(pairs) > len({key for key, _ in pairs}):
        raise UsageError(f"{name}: expected each setting once")
    value = known | {key: int(text) for key, text in pairs}
    most = int(number) * (1 if apart else value["radix"] // 2)
    hosts = value.get("hosts") or most
    if not apart and not most - value["radix"] // 2 < hosts <= most:
        raise UsageError(f"{name}: {number} units have {most - value['radix'] // 2 + 1} to {most} hosts, found {hosts}")
    if not (1 <= value["planes"] <= _MOST_PLANES and 1 <= value["rails"] <= _MOST_RAILS):
        raise UsageError(f"{name}: expected from 1 to {_MOST_PLANES} planes, and from 1 to {_MOST_RAILS} rails")
    return RailSizes(hosts, value["rails"], value["radix"], value["planes"], apart), _read_rate(name, rate)


def _read_rate(name: str, rate: str | None) -> float:
    gbps = float(rate) if rate else _DEFAULT_GBPS
    if not 0 < gbps <= _MOST_GBPS:
        raise UsageError(f"{name}: expected links of more than 0 and at most {_MOST_GBPS:g} Gb/s")
    return gbps


def generate(name: str, rail: int = 0, part: int = 0) -> SyntheticSubnet:
    """Return the synthetic fabric that a name describes.

    Args:
        rail: index of the subnet in the list of all rails.
        part: index of the subnet in the fabric, below `count_subnets`.

    Raises:
        UsageError: the name describes no possible fabric.
    """
    # Imported here: most commands only test if a name is synthetic.
    from ibprof_converter.routing.synthetic.regular_networks import (  # noqa: PLC0415  # noqa: PLC0415
        generate_codes_tree,
        generate_dragonfly,
        generate_torus,
        generate_tree,
        generate_xgft,
    )

    if name.startswith(_RAIL_KINDS):
        from ibprof_converter.routing.synthetic.rail_fabrics import generate_rails  # noqa: PLC0415  (slow to import)

        sizes, gbps = _read_rail_sizes(name)
        return generate_rails(name, sizes, gbps, rail - part, part)
    match = _SPEC.fullmatch(name)
    if match is None:
        raise UsageError(f"{name}: {_EXPECTED}")
    kind, numbers, rate = match.groups()
    gbps = _read_rate(name, rate)
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
    raise UsageError(f"{name}: {_EXPECTED}")


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
