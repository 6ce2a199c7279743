# SPDX-License-Identifier: Apache-2.0
"""The names of a profile's parts in its OTF2 archive; docs/formats/profile.md explains them."""

from __future__ import annotations

from ibprof.profile.profile_data import Direction, Kind, Opcode, Source

VERSION = 1
"""Version of the archive's contents; it increases when an older reader would misread them."""

VERSION_PROPERTY = "ibprof::version"

# Attributes of a Profile, a Host and a Rank that are no properties.
NOT_OF_RUN = (
    *("hosts", "ranks", "regions", "operations", "counters", "region_times", "sizes", "marks"),
    *("pairs", "transfers", "intervals", "interval_times", "demands", "times", "sites"),
    *("collective_samples", "message_samples"),
)
NOT_OF_RANK = ("host",)
NOT_OF_PAIR = ("host",)

HOST_CLASS = "node"
PORT_CLASS = "port"
PAIR_CLASS = "port pair"

# The parameter before a counter holds the peer.
PEER_PARAMETERS = {
    Direction.SENT: "destination",
    Direction.FETCHED: "fetched from",
    Direction.RECEIVED: "received from",
}
PAIR_PARAMETER = "port pair"
SITE_PARAMETER = "call site"
"""The number of a call path. Holds for the metrics that follow it, until the next one or the end of the operation."""
OBJECT_PARAMETER = "object"
CALLER_OBJECT_PARAMETER = "object of caller"
"""Of a call path that is the caller of a site, in the place of the object."""
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
"""After the same parameter: the time inside MPI calls."""
DEMAND_PARAMETER = "asked of"
DEMAND_MEMBERS = ("bytes asked", "calls")
CALL_MEMBERS = ("calls timed", "time_ns", "error_ns")
"""Of a call site: the number of calls, the time inside them, and its standard error."""

Tag = tuple[Direction, Kind, Source]


def counter_members(tag: Tag) -> tuple[str, str]:
    """Return the names of the two values of a counter: `bytes sent user openmpi`."""
    words = " ".join(word.name.lower() for word in tag)
    return f"bytes {words}", f"messages {words}"


def parse_counter_member(name: str) -> Tag:
    """Parse the name of a counter's first value.

    Raises:
        LookupError, ValueError: it is invalid.
    """
    _, direction, kind, source = name.upper().split(" ")
    return Direction[direction], Kind[kind], Source[source]


def transfer_members(opcode: Opcode) -> tuple[str, str]:
    """Return the names of the two values of a transfer: `bytes posted write`."""
    return f"{TRANSFER_MEMBER} {opcode.name.lower()}", f"messages posted {opcode.name.lower()}"


def parse_transfer_member(name: str) -> Opcode:
    """Parse the name of a transfer's first value.

    Raises:
        LookupError: it is invalid.
    """
    return Opcode[name.removeprefix(TRANSFER_MEMBER).strip().upper()]


def interval_members(first_peer: int, last_peer: int) -> tuple[str, str, str]:
    """Return the names of the values of an interval: `bytes to ranks 0-3`."""
    peers = f"{first_peer}-{last_peer}"
    return f"{INTERVAL_MEMBER} {peers}", f"messages to ranks {peers}", "interval_end_ns"


def parse_interval_member(name: str) -> tuple[int, int]:
    """Parse the name of an interval's first value.

    Raises:
        ValueError: it is invalid.
    """
    first, last = name.removeprefix(INTERVAL_MEMBER).split("-")
    return int(first), int(last)


def size_member(direction: Direction, kind: Kind) -> str:
    """Return the name of the number of messages of a size: `messages by size sent user`."""
    return f"{SIZE_MEMBER} {direction.name.lower()} {kind.name.lower()}"


def parse_size_member(name: str) -> tuple[Direction, Kind]:
    """Parse the name of a number of messages of a size.

    Raises:
        LookupError, ValueError: it is invalid.
    """
    direction, kind = name.removeprefix(SIZE_MEMBER).strip().upper().split(" ")
    return Direction[direction], Kind[kind]


def lower_bound(size_bin: int) -> int:
    """Return the smallest number of bytes of a message in a size bin."""
    return 1 << size_bin >> 1
