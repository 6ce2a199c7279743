# SPDX-License-Identifier: Apache-2.0
"""The names of a profile's parts in its OTF2 archive; docs/formats/profile.md explains the names.

The name of a property is `ibprof::` plus the name of an attribute in `profile_data`. The index of a tuple's element, or
the name of an inner attribute, follows after `.`. Attributes with the value None are not stored.
"""

from __future__ import annotations

import struct
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ibprof.profile.profile_data import Direction, Kind, Opcode, Source

VERSION = 1
"""Version of the archive's contents. Increase the version if older readers would misread new contents."""

VERSION_PROPERTY = "ibprof::version"

SAMPLES_PROPERTY = "ibprof::samples"
"""Property with the number of samples. The samples are in another file. Archives of 0.1.0 lack this property."""

# Attributes of a Profile, a Rank and a PortPair that are stored elsewhere, not as properties.
NOT_OF_RUN = (
    *("hosts", "ranks", "regions", "operations", "counters", "region_times", "sizes", "marks"),
    *("pairs", "transfers", "intervals", "interval_times", "demands", "times", "sites"),
    *("collective_samples", "message_samples"),
)
NOT_OF_RANK = ("host",)
NOT_OF_PAIR = ("host",)

HOST_CLASS = "node"
PORT_CLASS = "port"
INTERFACE_CLASS = "interface"
PAIR_CLASS = "port pair"

# The parameter before a counter is the counter's peer.
PEER_PARAMETERS = {
    Direction.SENT: "destination",
    Direction.FETCHED: "fetched from",
    Direction.RECEIVED: "received from",
}
PAIR_PARAMETER = "port pair"
SITE_PARAMETER = "call site"
"""Parameter with the number of a site's call path. Metrics up to the next `SITE_PARAMETER` belong to the site."""
OBJECT_PARAMETER = "object"
CALLER_OBJECT_PARAMETER = "object of caller"
"""Parameter with the program or library of a caller; a site has `OBJECT_PARAMETER` instead."""
ADDRESS_PARAMETER = "address"
BUILD_ID_PARAMETER = "build id"
NAME_PARAMETER = "name"
SIZE_PARAMETER = "message bytes from"
MARK_PARAMETER = "mark"
MARK_REGION_PARAMETER = "mark of region"

TIME_MEMBERS = ("visits", "wall_ns", "first_ns", "last_ns")
MARK_MEMBERS = ("time_ns", "sent_bytes", "sent_messages", "received_bytes", "received_messages")
SIZE_MEMBER = "messages by size"
TRANSFER_MEMBER = "bytes posted"
INTERVAL_MEMBER = "bytes to ranks"
INTERVAL_PARAMETER = "interval from"
INTERVAL_TIME_MEMBERS = ("interval time_ns", "interval_end_ns")
"""Values of an interval's metric, after `INTERVAL_PARAMETER`: time inside MPI calls, and end of the interval."""
DEMAND_PARAMETER = "asked of"
DEMAND_MEMBERS = ("bytes asked", "calls")
CALL_MEMBERS = ("calls timed", "time_ns", "error_ns")
"""Values of a call site's metric: number of calls, time inside the calls, and standard error of this time."""

Tag = tuple[Direction, Kind, Source]


PREFIX = "ibprof::"

Thing = TypeVar("Thing")

Value = int | float | str


def to_bits(form: str, value: int | float) -> int:
    """Return a member of OTF2's union of attribute values as the union's 64 bits.

    Args:
        form: the member's format in `struct`: `I` (number of a string), `Q`, `q` or `d`.
        value: the member's value.
    """
    bits: int = struct.unpack("=Q", struct.pack(f"={form}", value).ljust(8, b"\0"))[0]
    return bits


def from_bits(form: str, bits: int) -> Any:
    """Return a member of OTF2's union of attribute values, from the union's 64 bits."""
    return struct.unpack_from(f"={form}", struct.pack("=Q", bits))[0]


def counter_members(tag: Tag) -> tuple[str, str]:
    """Return the names of a counter's two values, such as `bytes sent user openmpi`."""
    words = " ".join(word.name.lower() for word in tag)
    return f"bytes {words}", f"messages {words}"


def parse_counter_member(name: str) -> Tag:
    """Return the tag of a counter, from the name of the counter's first value.

    Raises:
        LookupError, ValueError: the name is invalid.
    """
    _, direction, kind, source = name.upper().split(" ")
    return Direction[direction], Kind[kind], Source[source]


def transfer_members(opcode: Opcode) -> tuple[str, str]:
    """Return the names of two values for an opcode: bytes (`bytes posted write`), and number of work requests."""
    return f"{TRANSFER_MEMBER} {opcode.name.lower()}", f"messages posted {opcode.name.lower()}"


def parse_transfer_member(name: str) -> Opcode:
    """Return the opcode of work requests, from a name such as `bytes posted write`.

    Raises:
        LookupError: the name is invalid.
    """
    return Opcode[name.removeprefix(TRANSFER_MEMBER).strip().upper()]


def interval_members(first_peer: int, last_peer: int) -> tuple[str, str, str]:
    """Return the names of an interval's values, such as `bytes to ranks 0-3`."""
    peers = f"{first_peer}-{last_peer}"
    return f"{INTERVAL_MEMBER} {peers}", f"messages to ranks {peers}", "interval_end_ns"


def parse_interval_member(name: str) -> tuple[int, int]:
    """Return the first and the last peer of an interval, from the name of the interval's first value.

    Raises:
        ValueError: the name is invalid.
    """
    first, last = name.removeprefix(INTERVAL_MEMBER).split("-")
    return int(first), int(last)


def size_member(direction: Direction, kind: Kind) -> str:
    """Return the name of a metric of messages by size, such as `messages by size sent user`."""
    return f"{SIZE_MEMBER} {direction.name.lower()} {kind.name.lower()}"


def parse_size_member(name: str) -> tuple[Direction, Kind]:
    """Return the direction and the kind of messages, from a name such as `messages by size sent user`.

    Raises:
        LookupError, ValueError: the name is invalid.
    """
    direction, kind = name.removeprefix(SIZE_MEMBER).strip().upper().split(" ")
    return Direction[direction], Kind[kind]


def lower_bound(size_bin: int) -> int:
    """Return the smallest message size of a bin, in bytes."""
    return 1 << size_bin >> 1


def to_properties(thing: object, leave_out: Sequence[str] = ()) -> Iterator[tuple[str, Value]]:
    """Yield the attributes of a dataclass as names and values of properties.

    Args:
        thing: dataclass whose attributes are numbers, texts, enumerators, None, dataclasses, or tuples.
        leave_out: attributes that are stored elsewhere.
    """
    yield from _write(PREFIX, thing, leave_out)


def from_properties(
    made: Callable[..., Thing], find: Callable[[str], Value | None], leave_out: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a dataclass's attributes from properties, as keyword arguments.

    Args:
        made: the dataclass.
        find: function that returns the value of a property; None for a missing property.
        leave_out: attributes that are stored elsewhere.

    Raises:
        LookupError: a property is missing, or its value is no enumerator's name.
    """
    return _read_all(PREFIX, made, find, leave_out)


def _read_all(
    prefix: str, made: Any, find: Callable[[str], Value | None], leave_out: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        name: _read(prefix + name, hint, find)
        for name, (hint, is_optional) in _attributes(made).items()
        if name not in leave_out and not (is_optional and find(prefix + name) is None)
    }


@lru_cache
def _attributes(made: Any) -> dict[str, tuple[Any, bool]]:
    """Return the type of each attribute of a dataclass, and whether old archives may lack the attribute."""
    hints = get_type_hints(made)
    return {
        column.name: (
            hints[column.name],
            column.default is not MISSING and hints[column.name] in (bool, float, int, str),
        )
        for column in fields(made)
    }


def _write(prefix: str, thing: object, leave_out: Sequence[str]) -> Iterator[tuple[str, Value]]:
    for name in _names(type(thing), leave_out):
        value = getattr(thing, name)
        if isinstance(value, tuple):
            for number, part in enumerate(value):
                if is_dataclass(part):
                    yield from _write(f"{prefix}{name}.{number}.", part, ())
                else:
                    yield f"{prefix}{name}.{number}", part
        elif is_dataclass(value):
            yield from _write(f"{prefix}{name}.", value, ())
        elif isinstance(value, IntEnum):
            yield prefix + name, value.name
        elif value is not None:
            yield prefix + name, value


def _names(made: Any, leave_out: Sequence[str]) -> list[str]:
    return [column.name for column in fields(made) if column.name not in leave_out]


def _read(name: str, kind: Any, find: Callable[[str], Value | None]) -> Any:
    if get_origin(kind) is tuple and is_dataclass(part := get_args(kind)[0]):
        things: list[Any] = []
        first = fields(part)[0].name
        while find(f"{name}.{len(things)}.{first}") is not None:
            things.append(part(**_read_all(f"{name}.{len(things)}.", part, find)))  # type: ignore[operator]
        return tuple(things)
    if get_origin(kind) is tuple:
        texts: list[Value] = []
        while (text := find(f"{name}.{len(texts)}")) is not None:
            texts.append(text)
        return tuple(texts)
    if is_dataclass(kind):
        return kind(**_read_all(f"{name}.", kind, find))  # type: ignore[operator]
    value = find(name)
    if get_origin(kind) in (Union, types.UnionType):
        if value is None:
            return None
        kind = get_args(kind)[0]
    if value is None:
        raise LookupError(f"property {name} is missing")
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return kind[str(value)]
    return kind(value)
