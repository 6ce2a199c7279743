# SPDX-License-Identifier: Apache-2.0
"""Read the partitions of a subnet from OpenSM's `partitions.conf`, ibdiagnet's `.pkey`, or tables of `smpquery pkeys`.

A port is a full or a limited member of a partition. Two limited members cannot send to each other.

Source: InfiniBand Architecture Specification, volume 1, section 10.9.1; the manual page opensm(8), "PARTITION
CONFIGURATION".
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.dump_files import read_dump
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind, Partitions

PARTITIONS_CONF = "partitions.conf"

DEFAULT_PKEY = 0x7FFF
"""P_Key of the default partition, to which all ports belong, without the bit that marks full members."""

LARGEST_PKEY = 0xFFFF
_SHOWN = 200
"""Messages show at most this number of bytes of an invalid definition."""

_GROUP = re.compile(rb"GROUP PKey:[ ]?0x([0-9A-Fa-f]{1,4})\b")
_GROUP_MEMBER = re.compile(rb"\s+(Full|Part(?:ial)?|Limited|Both)\b.*\bguid=0x([0-9A-Fa-f]{1,16})\b")
_PORT = re.compile(rb"(guid|lid)[ :=]+(0x[0-9A-Fa-f]{1,16}|0|[1-9][0-9]{0,4})\s*", re.IGNORECASE)
_TABLE = re.compile(rb"\s*[0-9]{1,5}:((?: 0x[0-9A-Fa-f]{4})+)\s*")
_AROUND_TABLE = re.compile(rb"\s*|-+\s*|[0-9]+ pkeys capacity .*|ibwarn: .*")

_COMMENT = re.compile(rb"#[^\n]*")
_BEGIN = re.compile(rb"\S")
_DEFINITION = re.compile(rb"([^=,:;\n]*)(?:=\s*(0x[0-9A-Fa-f]{1,4}|0|[1-9][0-9]{0,4})\s*)?(?:,([^:;]*))?:([^;\"{}]*)")
_MULTICAST = re.compile(rb"\bmgid\s*=[^\n;]*")
_MEMBER = re.compile(rb"(0x[0-9A-Fa-f]{1,16}|[1-9][0-9]{0,19}|ALL(?:_[A-Z]+)?|SELF)(?:\s*=\s*(\w*))?")
_DEFAULT_MEMBER = re.compile(rb"defmember\s*=\s*(\w+)")
_FLAG = re.compile(rb"(?:rate|mtu|sl|scope|Q_Key|TClass|FlowLabel)\s*=\s*\w+|ipoib|indx0", re.IGNORECASE)
_KINDS = {b"ALL": None, b"ALL_CAS": NodeKind.CA, b"ALL_SWITCHES": NodeKind.SWITCH, b"ALL_ROUTERS": NodeKind.ROUTER}
_FULL = (b"full", b"both")


@dataclass(slots=True)
class _Members:
    """Content of a file with partitions; a port's partitions are P_Key -> true if the port is a full member.

    Attributes:
        names: P_Key -> name of the partition.
        guids, lids: PORT GUID or LID -> partitions of the port.
        kinds: kind of nodes (None: all nodes) -> partitions of these nodes.
    """

    names: dict[int, str] = field(default_factory=dict)
    guids: dict[int, dict[int, bool]] = field(default_factory=dict)
    lids: dict[int, dict[int, bool]] = field(default_factory=dict)
    kinds: dict[NodeKind | None, dict[int, bool]] = field(default_factory=dict)


def looks_like_partitions(head: bytes) -> bool:
    """Return true if the beginning of a file is a list of partitions."""
    if _GROUP.match(head.lstrip()):
        return True
    lines = [line for line in head.split(b"\n")[:20] if not _AROUND_TABLE.fullmatch(line)]
    if len(lines) > 1 and _PORT.fullmatch(lines[0]) and _TABLE.fullmatch(lines[1]):
        return True
    text = _COMMENT.sub(b"", head).lstrip()
    match = _DEFINITION.match(text)
    if match is None:
        return False
    is_plain = match[2] is None and match[3] is None and match[1].strip().lower() != b"default"
    if is_plain and text[match.end() : match.end() + 1] != b";":  # `key: 1` is a line of another format
        return False
    is_member = _MULTICAST.search(match[4]) or any(map(_MEMBER.fullmatch, map(bytes.strip, match[4].split(b",")[:-1])))
    return bool(is_member or _MEMBER.fullmatch(match[4].strip()))


def apply_partitions(fabric: Fabric, paths: Sequence[Path]) -> Fabric:
    """Add the partitions of its ports to a fabric. If a file names no port of the fabric, add a warning.

    Raises:
        InputError: a line is invalid.
    """
    names: dict[int, str] = {}
    of_node: dict[int, dict[int, bool]] = {}
    warnings = []
    for path in paths:
        read = _read_members(path)
        found = list(_members_in(fabric, read))
        for node, keys in found:
            _join(of_node.setdefault(node, {}), keys)
        names = {**read.names, **names}
        named = read.guids.keys() & set(fabric.port_guid.tolist()) or read.lids.keys() & set(fabric.port_lid.tolist())
        if not named and (read.guids or read.lids):
            warnings.append(f"{path}: not used for {fabric.name}, since it names no port of this fabric")
    made = Partitions(names, of_node) if of_node else None
    return replace(fabric, partitions=made, warnings=(*fabric.warnings, *warnings))


def _members_in(fabric: Fabric, read: _Members) -> Iterator[tuple[int, Mapping[int, bool]]]:
    ports = zip(fabric.port_node.tolist(), fabric.port_guid.tolist(), fabric.port_lid.tolist(), strict=True)
    for node, guid, lid in ports:
        kind = NodeKind(fabric.node_kind[node])
        for keys in (read.guids.get(guid), read.lids.get(lid), read.kinds.get(None), read.kinds.get(kind)):
            if keys:
                yield node, keys


def _join(keys: dict[int, bool], others: Mapping[int, bool]) -> None:
    for key, is_full in others.items():
        keys[key] = keys.get(key, False) or is_full


def _read_members(path: str | PathLike[str]) -> _Members:
    data = read_dump(path)
    text = data.lstrip()
    if _GROUP.match(text):
        return _read_groups(path, data)
    if _PORT.match(text):
        return _read_port_tables(path, data)
    return _read_definitions(path, data)


def _read_groups(path: str | PathLike[str], data: bytes) -> _Members:
    read = _Members()
    key = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        if group := _GROUP.match(line):
            key = int(group[1], 16) & DEFAULT_PKEY
        elif member := _GROUP_MEMBER.match(line):
            _join(read.guids.setdefault(int(member[2], 16), {}), {key: member[1] in (b"Full", b"Both")})
        elif not _AROUND_TABLE.fullmatch(line):
            raise InputError(
                path, number, "GROUP PKey:0x..., or Full or Part and a port with guid=0x...", quote_found(line)
            )
    return read


def _read_port_tables(path: str | PathLike[str], data: bytes) -> _Members:
    """Read tables of `smpquery pkeys`. Before each table, a line `lid N` or `guid 0x...` identifies the port."""
    read = _Members()
    keys: dict[int, bool] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if port := _PORT.fullmatch(line):
            of_ports = read.guids if port[1].lower() == b"guid" else read.lids
            keys = of_ports.setdefault(int(port[2], 0), {})
        elif table := _TABLE.fullmatch(line):
            for key in (int(word, 16) for word in table[1].split()):
                if key & DEFAULT_PKEY:
                    _join(keys, {key & DEFAULT_PKEY: key > DEFAULT_PKEY})
        elif not _AROUND_TABLE.fullmatch(line):
            raise InputError(path, number, "lid N, guid 0x..., or a row of smpquery's P_Key table", quote_found(line))
    return read


def _read_definitions(path: str | PathLike[str], data: bytes) -> _Members:
    """Read OpenSM's `partitions.conf`. A partition without a P_Key gets a negative number: OpenSM chooses the P_Key."""
    read = _Members()
    text = _COMMENT.sub(b"", data)
    number, end = 1, 0
    while first := _BEGIN.search(text, end):
        begin = first.start()
        number += text.count(b"\n", end, begin)
        match = _DEFINITION.match(text, begin)
        key = int(match[2] or b"0", 0) if match else 0
        if match is None or text[match.end() : match.end() + 1] != b";" or key > LARGEST_PKEY:
            found = quote_found(text[begin : begin + _SHOWN].split(b"\n", 1)[0])
            raise InputError(path, number, "NAME=0xKEY[,FLAGS] : MEMBER[=full|limited], ... ;", found)
        end = match.end() + 1
        name = match[1].strip().decode("utf-8", "replace")
        if match[2] is not None:
            key &= DEFAULT_PKEY
        elif name.lower() == "default":
            key = DEFAULT_PKEY
        else:
            # Partitions with equal names in two files are one partition. Each partition without a name is a separate
            # partition.
            key = -1 - zlib.crc32((name or f"{path}:{begin}").encode())
        if name:
            read.names.setdefault(key, name)
        default = _DEFAULT_MEMBER.search(match[3] or b"")
        is_full = default is not None and default[1].lower() in _FULL
        for word in re.split(rb"[,:\n]", _MULTICAST.sub(b"", match[4])):
            member = _MEMBER.fullmatch(word.strip())
            if member and member[1] in _KINDS:
                _join(read.kinds.setdefault(_KINDS[member[1]], {}), {key: _is_full(member[2], is_full)})
            elif member and member[1].isalnum() and member[1] != b"SELF":
                _join(read.guids.setdefault(int(member[1], 0), {}), {key: _is_full(member[2], is_full)})
            elif default := _DEFAULT_MEMBER.fullmatch(word.strip()):
                is_full = default[1].lower() in _FULL
            elif word.strip() and not member and not _FLAG.fullmatch(word.strip()):
                raise InputError(
                    path, number, "a port's GUID, ALL, ALL_CAS, ALL_SWITCHES or SELF", quote_found(word.strip())
                )
        number += text.count(b"\n", begin, end)
    if not any(DEFAULT_PKEY in keys for keys in (*read.kinds.values(), *read.guids.values())):
        _join(read.kinds.setdefault(None, {}), {DEFAULT_PKEY: False})
    return read


def _is_full(word: bytes | None, default: bool) -> bool:
    return default if word is None else word.lower() in _FULL
