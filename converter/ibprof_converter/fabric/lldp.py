# SPDX-License-Identifier: Apache-2.0
"""Read the links of an Ethernet fabric from LLDP: `lldpcli show neighbors -f json` or `-f json0`, a file for each node.

A file lists the neighbours of one node, and is named like the node: `node01.json`. A node without a file is known from
the files of its neighbours. A node is a switch if the file of a neighbour states that this node bridges or routes.
Without this data, a node is a switch if it has a host as neighbour, or more than `_MOST_OF_A_HOST` links.

Ethernet has no LIDs and no forwarding tables. So nodes are numbered in the order of their names, and routes are
modelled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.dump_files import SUFFIXES, read_dump
from ibprof_converter.fabric.fabric_graph import NodeKind, Origin
from ibprof_converter.fabric.listing import LAST_UNICAST_LID, PORTS_NOT_GIVEN, End, LinkRow, Listing, list_rows
from ibprof_converter.fabric.node_names import natural_key

_MOST_OF_A_HOST = 16
_MOST_PORTS = 254
_FIRST_GUID = 0x5001 << 48

_SIGN = re.compile(rb'^\s{0,99}\{\s{0,99}"lldp"\s{0,9}:\s{0,99}[\[{]')
_GIGABITS = re.compile(r"([0-9]{1,4})Gig", re.IGNORECASE)
_MEGABITS = re.compile(r"([0-9]{1,5})Base", re.IGNORECASE)
_INTERFACE_NAMES = ("ifname", "local")

_REMARK = "LLDP lists only links: LIDs are synthetic, in the order of the nodes' names; {speeds}"

Interface = tuple[str, str]
"""(name of a node, name of one of its interfaces)."""


@dataclass(slots=True)
class _Neighbours:
    """Content of a fabric's files.

    Attributes:
        links: pair of interfaces, sorted -> number of the link's first entry, and its speed in Gb/s.
        bridges: node -> true if the node bridges or routes. Nodes without this data are absent.
    """

    links: dict[tuple[Interface, Interface], tuple[int, float]] = field(default_factory=dict)
    bridges: dict[str, bool] = field(default_factory=dict)


def looks_like_lldp(head: bytes) -> bool:
    """Return true if the beginning of a file is output of `lldpcli -f json`."""
    return _SIGN.match(head) is not None


def parse_lldp(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the neighbours of one node.

    Args:
        path: path of the file; the file name without suffix is the node's name.

    Raises:
        InputError: the file is not JSON of lldpcli, or lists no neighbours.
    """
    found = _Neighbours()
    _add(found, path, data)
    return _list(DamageLog(path), found)


def parse_lldp_files(name: str | PathLike[str], paths: Sequence[str | PathLike[str]]) -> Listing:
    """Parse the neighbours of several nodes as one fabric.

    Args:
        name: name of the folder or of the first file, for messages.
        paths: paths of the files; damaged files are left out and reported.

    Raises:
        InputError: no file lists a neighbour. The error names the first damaged file, if any.
    """
    found = _Neighbours()
    log = DamageLog(name if Path(name).is_dir() or len(paths) == 1 else f"{fspath(name)} and {len(paths) - 1} more")
    first: InputError | None = None
    for path in paths:
        try:
            _add(found, path, read_dump(path))
        except InputError as error:
            first = first or error
            log.miss(f"links that only this node lists are missing: {error}")
    if first is not None and not found.links:
        raise first
    return _list(log, found)


def _add(found: _Neighbours, path: str | PathLike[str], data: bytes) -> None:
    name = Path(path).name
    for suffix in (*filter(None, SUFFIXES), ".json"):
        name = name.removesuffix(suffix)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(path, getattr(error, "lineno", None), "JSON as lldpcli writes it", "other text") from error
    for interface, entry in _list_entries(path, _simplify(document)):
        chassis, port = _part(path, entry, "chassis"), _part(path, entry, "port")
        other = next((key for key, value in chassis.items() if isinstance(value, dict) and key != "id"), None)
        about = chassis[other] if other is not None else chassis
        identifier = _part(path, about, "id")
        peer = other if other is not None else str(identifier.get("value", ""))
        if not peer:
            raise InputError(path, None, "a neighbour with a name or an id", quote_found(interface))
        flags = about.get("capability", [])
        flags = [flags] if isinstance(flags, dict) else flags if isinstance(flags, list) else []
        if flags:
            found.bridges[peer] = found.bridges.get(peer, False) or any(
                isinstance(flag, dict) and flag.get("enabled") is True and flag.get("type") in ("Bridge", "Router")
                for flag in flags
            )
        link = tuple(sorted([(name, interface), (peer, _name_port(path, port))]))
        speed = _read_speed(port)
        known = found.links.get((link[0], link[1]), (len(found.links) + 1, speed))
        found.links[link[0], link[1]] = (known[0], speed if np.isnan(known[1]) else known[1])


def _simplify(document: Any) -> Any:
    """Convert the JSON of `-f json0` to the form of `-f json`, with names as keys and no lists of one item."""
    if not (isinstance(document, dict) and isinstance(document.get("lldp"), list)):
        return document
    found = []
    for part in document["lldp"]:
        for entry in part.get("interface", []) if isinstance(part, dict) else []:
            plain = _unwrap(entry)
            chassis = plain.get("chassis") if isinstance(plain, dict) else None
            if isinstance(chassis, dict) and isinstance(chassis.get("name"), str):
                plain["chassis"] = {chassis["name"]: {key: value for key, value in chassis.items() if key != "name"}}
            name = plain.get("name", "") if isinstance(plain, dict) else ""
            found.append({str(name): plain})
    return {"lldp": {"interface": found}}


def _unwrap(part: Any) -> Any:
    """Replace each `[X]` by X, and each `{"value": X}` by X."""
    if isinstance(part, list):
        return _unwrap(part[0]) if len(part) == 1 else [_unwrap(each) for each in part]
    if isinstance(part, dict):
        return part["value"] if set(part) == {"value"} else {key: _unwrap(value) for key, value in part.items()}
    return part


def _list_entries(path: str | PathLike[str], document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the neighbour of each interface. In a document, a single interface is not in a list."""
    found = _part(path, document, "lldp").get("interface", {})
    for part in found if isinstance(found, list) else [found]:
        if not isinstance(part, dict):
            raise InputError(path, None, "`interface` with neighbours", quote_found(str(part)))
        for name, entry in part.items():
            if not isinstance(entry, dict):
                raise InputError(path, None, f"a neighbour of {name!r}", quote_found(str(entry)))
            yield name, entry


def _part(path: str | PathLike[str], document: Any, key: str) -> dict[str, Any]:
    part = document.get(key) if isinstance(document, dict) else None
    if not isinstance(part, dict):
        raise InputError(path, None, f"`{key}` with a mapping", quote_found(str(part)))
    return part


def _name_port(path: str | PathLike[str], port: dict[str, Any]) -> str:
    """Return the name of a neighbour's interface: its id if this is a name, else its description."""
    identifier = _part(path, port, "id")
    value = str(identifier.get("value", ""))
    return value if identifier.get("type") in _INTERFACE_NAMES else str(port.get("descr") or value)


def _read_speed(port: dict[str, Any]) -> float:
    """Return the auto-negotiated speed of a port, in Gb/s; nan if unknown."""
    negotiated = port.get("auto-negotiation")
    current = str(negotiated.get("current", "")) if isinstance(negotiated, dict) else ""
    if match := _GIGABITS.search(current):
        return float(match[1])
    match = _MEGABITS.search(current)
    return float(match[1]) / 1000 if match else float("nan")


def _list(log: DamageLog, found: _Neighbours) -> Listing:
    peers: dict[str, set[str]] = {}
    interfaces: dict[str, set[str]] = {}
    for (one, own), (other, far) in found.links:
        peers.setdefault(one, set()).add(other)
        peers.setdefault(other, set()).add(one)
        interfaces.setdefault(one, set()).add(own)
        interfaces.setdefault(other, set()).add(far)

    def is_switch(name: str) -> bool:
        if name in found.bridges:
            return found.bridges[name]
        return len(interfaces[name]) > _MOST_OF_A_HOST or any(not found.bridges.get(each, True) for each in peers[name])

    switches = {name for name in peers if is_switch(name)}
    ends: dict[Interface, End] = {}
    lid = 0
    for number, name in enumerate(sorted(peers, key=natural_key)):
        guid = _FIRST_GUID + (number << 8)
        if len(interfaces[name]) > _MOST_PORTS:
            raise InputError(log.path, None, f"at most {_MOST_PORTS} links of a node", f"more, of {name!r}")
        lid += name in switches
        for port, interface in enumerate(sorted(interfaces[name], key=natural_key), 1):
            lid += name not in switches
            kind = NodeKind.SWITCH if name in switches else NodeKind.CA
            port_guid = guid if name in switches else guid + port
            ends[name, interface] = End(kind, PORTS_NOT_GIVEN, guid, guid, port_guid, name, lid, port, 0)
    if lid > LAST_UNICAST_LID:
        raise InputError(log.path, None, f"at most {LAST_UNICAST_LID} ports of hosts and switches", str(lid))
    rows = [LinkRow(line, ends[one], ends[other], True, 0, gbps) for (one, other), (line, gbps) in found.links.items()]
    unknown = sum(np.isnan(row.gbps) for row in rows)
    speeds = f"{unknown} speeds are unknown" if unknown else "speeds were negotiated by the ports"
    return replace(list_rows(rows, log), remarks=(_REMARK.format(speeds=speeds),), origin=Origin.ETHERNET)
