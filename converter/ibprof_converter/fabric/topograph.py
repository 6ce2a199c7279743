# SPDX-License-Identifier: Apache-2.0
"""Parse the JSON of topograph's graph engine: hosts, and the switches above each host.

    {"instances": [{"id": "node01", "network_layers": ["leaf1", "spine1"]}, ...]}

The first element of `network_layers` is the leaf switch. ibprof assumes missing data, such as speeds, as for Slurm's
topology.

Source: docs.nvidia.com/topograph, engines/graph.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.listing import Listing
from ibprof_converter.fabric.slurm_listing import NamedLink, describe_assumptions, list_assumed

_SIGN = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"instances"\s*:')
_NAME = re.compile(r"[^\s,:=\[\]#]{1,255}")
_ID = re.compile(r'"id"\s*:')


@dataclass(frozen=True, slots=True)
class Instance:
    """A host, and the names of the switches above the host, from the leaf switch upwards."""

    line: int | None
    name: str
    layers: Sequence[str]


def looks_like_topograph(head: bytes) -> bool:
    """Return true if the beginning of a file is JSON of topograph's graph engine."""
    return _SIGN.match(head) is not None


def parse_topograph(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the hosts and the switches above them.

    Raises:
        InputError: the file is invalid, or no host has a switch.
    """
    log = DamageLog(path)
    instances = read_instances(path, data)
    switches = list(dict.fromkeys(layer for each in instances for layer in each.layers))
    is_switch = set(switches)
    links = []
    for each in instances:
        line = each.line or 1
        if each.name in is_switch or not each.layers:
            found = "the name of a switch" if each.name in is_switch else "none"
            log.lose(line, InputError(path, line, f"a host {each.name!r} with its switches", found))
            continue
        links += [NamedLink(line, above, below) for below, above in pairwise((each.name, *each.layers))]
    return list_assumed(path, switches, links, log, describe_assumptions("topograph's graph"))


def read_instances(path: str | PathLike[str], data: bytes) -> list[Instance]:
    """Return the instances in the order of the file.

    Raises:
        InputError: the file is not JSON, or an instance has no valid name or no valid switches.
    """
    text = data.decode("utf-8-sig", "backslashreplace")
    expected = 'JSON with "instances", each with an "id"'
    try:
        instances = json.loads(text)["instances"]
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise InputError(path, line, expected, quote_found(str(error))) from None
    if not isinstance(instances, list):
        raise InputError(path, None, expected, quote_found(json.dumps(instances)))
    found = []
    for line, each in zip(_number_ids(text, len(instances)), instances, strict=True):
        if not isinstance(each, dict) or "id" not in each:
            raise InputError(path, line, expected, quote_found(json.dumps(each)))
        name, layers = each["id"], each.get("network_layers") or []
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not name.isprintable():
            raise InputError(path, line, "the name of a host", quote_found(json.dumps(name)))
        if not isinstance(layers, list) or not all(isinstance(layer, str) and layer for layer in layers):
            raise InputError(path, line, 'names of switches in "network_layers"', quote_found(json.dumps(layers)))
        found.append(Instance(line, name, layers))
    return found


def _number_ids(text: str, count: int) -> Sequence[int | None]:
    """Return the line number of each "id" in the text; if the text has not `count` ids, `count` times None."""
    lines = [number for number, line in enumerate(text.split("\n"), 1) for _ in _ID.finditer(line)]
    return lines if len(lines) == count else [None] * count
