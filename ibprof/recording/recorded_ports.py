# SPDX-License-Identifier: Apache-2.0
"""Read ports, counters, work requests, settings and grids from a recording; describe the age of copied counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof.native.headers import recording_layout
from ibprof.profile.profile_data import (
    AdapterChoice,
    Grid,
    HardwareCounter,
    Interface,
    Opcode,
    Port,
    PortPair,
    Transport,
)
from ibprof.profile.row_arrays import Columns
from ibprof.recording.host_file import RecordingFile, Records, decode_text

Indices = npt.NDArray[np.intp]

_BOOT = "boot"
"""Name of the choice IBP_CHOICE_BOOT."""

_TRANSPORT_COUNTS = ("handles", "sent_bytes", "received_bytes", "segments", "retransmitted", "min_rtt_us")

_NEGATIVE = 1 << 63
"""Unsigned 64-bit differences of at least this value are wrapped negative numbers."""


def _read_hardware(file: RecordingFile) -> dict[tuple[str, int], list[HardwareCounter]]:
    """Read the counters of ports, by device and port number; counters of an interface have port number 0."""
    hardware: dict[tuple[str, int], list[HardwareCounter]] = {}
    records, _ = file.records("IBP_SEGMENT_HARDWARE")
    for record in records:
        after = int(record["after"]) if record["read_again"] else None
        counter = HardwareCounter(decode_text(record["name"]), int(record["before"]), after)
        hardware.setdefault((decode_text(record["device"]), int(record["port"])), []).append(counter)
    return hardware


def read_ports(file: RecordingFile) -> list[Port]:
    """Read the ports of a host, with their hardware counters."""
    hardware = _read_hardware(file)
    records, _ = file.records("IBP_SEGMENT_PORTS")
    ports = [
        Port(
            device=decode_text(record["device"]),
            port=int(record["port"]),
            lid=int(record["lid"]) or None,
            lmc=int(record["lmc"]),
            node_guid=f"{record['node_guid']:#018x}",
            port_guid=f"{record['port_guid']:#018x}",
            gids=tuple(text for text in map(decode_text, record["gids"]) if text),
            rate_gbps=float(record["rate_gbps"]),
            link_layer=decode_text(record["link_layer"]),
            state=int(record["state"]),
            pci=(pci := decode_text(record["pci"])),
            # Records of version 1 have zeros in these fields, and no PCI function.
            numa_node=int(record["numa_node"]) if pci and record["numa_node"] >= 0 else None,
            near_cores=decode_text(record["near_cores"]),
            width=int(record["width"]),
            pci_width=int(record["pci_width"]),
            pci_width_max=int(record["pci_width_max"]),
            pci_gts=float(record["pci_gts"]),
            pci_gts_max=float(record["pci_gts_max"]),
        )
        for record in records
    ]
    return [replace(port, hardware=tuple(hardware.get((port.device, port.port), ()))) for port in ports]


def read_interfaces(file: RecordingFile) -> list[Interface]:
    """Read the network interfaces of a host, with their counters."""
    hardware = _read_hardware(file)
    records, _ = file.records("IBP_SEGMENT_INTERFACES")
    speeds = [int(speed) if speed > 0 else None for speed in records["speed_mbps"]]
    return [
        Interface(
            name=(name := decode_text(record["name"])),
            device=decode_text(record["device"]),
            type=int(record["type"]),
            mtu=int(record["mtu"]),
            speed_mbps=speed if record["is_physical"] else None,
            numa_node=int(record["numa_node"]) if record["numa_node"] >= 0 else None,
            is_up=bool(record["is_up"]),
            hardware=tuple(hardware.get((name, 0), ())),
            virtual_mbps=None if record["is_physical"] else speed,
        )
        for record, speed in zip(records, speeds, strict=True)
    ]


def read_transports(file: RecordingFile) -> list[tuple[Transport, ...]]:
    """Return the transports of each process of a file."""
    records, owner = file.records("IBP_SEGMENT_TRANSPORTS")
    transports: list[list[Transport]] = [[] for _ in file.processes]
    for record, process in zip(records, owner.tolist(), strict=True):
        numbers = {name: int(record[name]) for name in _TRANSPORT_COUNTS}
        transports[process].append(Transport(decode_text(record["kind"]), decode_text(record["device"]), **numbers))
    return [tuple(each) for each in transports]


def read_choices(file: RecordingFile) -> list[tuple[AdapterChoice, ...]]:
    """Return the settings that choose adapters and cores, for each process of a file."""
    records, owner = file.records("IBP_SEGMENT_CHOICES")
    choices: list[list[AdapterChoice]] = [[] for _ in file.processes]
    for record, process in zip(records, owner.tolist(), strict=True):
        if decode_text(record["name"]) != _BOOT:
            choices[process].append(AdapterChoice(decode_text(record["name"]), decode_text(record["text"])))
    return [tuple(each) for each in choices]


def read_boots(file: RecordingFile) -> list[int]:
    """Return a hash of the machine's boot identifier for each process of a file; 0 where unknown."""
    records, owner = file.records("IBP_SEGMENT_CHOICES")
    boots = [0] * len(file.processes)
    for record, process in zip(records, owner.tolist(), strict=True):
        if decode_text(record["name"]) == _BOOT:
            digest = blake2b(decode_text(record["text"]).encode(), digest_size=7).digest()
            boots[process] = int.from_bytes(digest, "little")
    return boots


def read_transfers(
    file: RecordingFile,
    host: int,
    ranks: npt.NDArray[np.int32],
    pairs: dict[PortPair, int],
    translate_regions: Callable[[npt.NDArray[np.uint32], Indices], npt.NDArray[np.int32]],
) -> Columns:
    """Read the work requests of a host's processes.

    Args:
        host: the host's index in the profile.
        ranks: ranks of the file's processes.
        pairs: the profile's numbers of pairs of ports. This function adds pairs.
        translate_regions: function that returns the profile's numbers of regions, from numbers in a process and indices
            of processes.

    Returns:
        The columns of `Transfers`.

    Raises:
        InputError: a record refers to a missing record.
    """
    records, owner = file.records("IBP_SEGMENT_TRANSFERS")
    pair = _number_pairs(file, host, pairs, records, owner)
    beyond = np.flatnonzero(records["opcode"] >= len(Opcode))
    if len(beyond):
        raise InputError(file.path, None, f"opcodes below {len(Opcode)}", str(records["opcode"][beyond[0]]))
    keys, amounts = _assign_to_regions(file, records, owner, pair)
    found, sums = _add_up(keys, amounts)
    # While a process runs, sums of regions can be newer than the total: the difference is then negative.
    sums[(sums >= _NEGATIVE).any(axis=1)] = 0
    kept = sums.any(axis=1) & (found[:, 1] != recording_layout().constants["IBP_REGION_OFF"])
    found, sums = found[kept], sums[kept]
    return {
        "rank": ranks[found[:, 0]],
        "region": translate_regions(found[:, 1].astype(np.uint32), found[:, 0].astype(np.intp)),
        "opcode": found[:, 2].astype(np.uint8),
        "pair": found[:, 3].astype(np.int32),
        "bytes": sums[:, 0],
        "messages": sums[:, 1],
    }


def _assign_to_regions(
    file: RecordingFile, records: Records, owner: Indices, pair: Indices
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Assign traffic without a region's record to the region that was open at the end of the recording.

    Returns:
        Keys (process, region, opcode, pair), and bytes and messages. The caller must sum rows with equal keys.
    """
    whole = records["region"] == recording_layout().constants["IBP_REGION_ALL"]
    open_region = file.processes["transfers_region"][owner]
    amounts = np.stack([records["bytes"], records["messages"]], axis=1).astype(np.uint64)

    def rows(region: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        return np.stack([owner, region, records["opcode"], pair], axis=1).astype(np.int64)

    # The open region's traffic is the total minus other regions' rows. Add the negated rows: unsigned sums wrap.
    keys = np.concatenate([rows(np.where(whole, open_region, records["region"])), rows(open_region)[~whole]])
    return keys, np.concatenate([amounts, np.zeros(2, np.uint64) - amounts[~whole]])


def _add_up(
    keys: npt.NDArray[np.int64], amounts: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return the sums of amounts over rows with equal keys; sums wrap around."""
    order = np.lexsort(keys.T[::-1])
    keys, amounts = keys[order], amounts[order]
    first = np.flatnonzero(np.concatenate([[True], (keys[1:] != keys[:-1]).any(axis=1)])) if len(keys) else order
    return keys[first], np.add.reduceat(amounts, first, axis=0) if len(first) else amounts


def _number_pairs(
    file: RecordingFile, host: int, pairs: dict[PortPair, int], transfers: Records, owner: Indices
) -> Indices:
    """Return, for each record of `transfers`, the profile's number of its pair of ports."""
    records, pair_owner = file.records("IBP_SEGMENT_PAIRS")
    # Read each distinct record once: processes of a host mostly have the same peer ports.
    raw, which = np.unique(records.view(f"V{records.dtype.itemsize}"), return_inverse=True)
    different = raw.view(records.dtype)
    common = np.array([pairs.setdefault(_read_pair(record, host), len(pairs)) for record in different], np.intp)
    common = common[which.reshape(-1)]
    processes = len(file.processes)
    begin = np.searchsorted(pair_owner, np.arange(processes))
    count = np.bincount(pair_owner, minlength=processes)
    beyond = np.flatnonzero(transfers["pair"] >= count[owner])
    if len(beyond):
        limit, found = count[owner[beyond[0]]], transfers["pair"][beyond[0]]
        raise InputError(file.path, None, f"an index of a pair of ports below {limit}", str(found))
    return common[begin[owner] + transfers["pair"].astype(np.intp)]


def _read_pair(record: np.void, host: int) -> PortPair:
    return PortPair(
        host=host,
        device=decode_text(record["device"]),
        port=int(record["port"]),
        lid=int(record["lid"]) or None,
        gid=_format_gid(record["gid"]),
        remote_lid=int(record["remote_lid"]) or None,
        remote_gid=_format_gid(record["remote_gid"]),
    )


def _format_gid(raw: npt.NDArray[np.uint8]) -> str:
    digits = raw.tobytes().hex()
    return ":".join(digits[place : place + 4] for place in range(0, 32, 4)) if raw.any() else ""


def read_grids(file: RecordingFile) -> list[tuple[Grid, ...]]:
    """Return the positions of a file's processes on their grids, by process.

    Raises:
        InputError: a grid has no dimension, or a process is not on its grid.
    """
    records, owner = file.records("IBP_SEGMENT_GRIDS")
    most = recording_layout().constants["IBP_GRID_DIMENSIONS"]
    grids: list[list[Grid]] = [[] for _ in file.processes]
    for record, process in zip(records, owner.tolist(), strict=True):
        count = int(record["dimensions"])
        if not 1 <= count <= most:
            raise InputError(file.path, None, f"a grid of 1 to {most} dimensions", str(count))
        extents, place = record["extent"][:count], record["place"][:count]
        if not ((place >= 0) & (place < extents)).all():
            raise InputError(file.path, None, f"a position on a grid of {extents.tolist()}", str(place.tolist()))
        periodic = (int(record["periodic"]) >> np.arange(count)) & 1
        grids[process].append(Grid(count, tuple(extents.tolist()), tuple(periodic.tolist()), tuple(place.tolist())))
    return [tuple(each) for each in grids]


def describe_copy(file: RecordingFile, process: np.void) -> Iterator[str]:
    """Yield sentences on the place or age of counters that were not copied from a node at the process's end."""
    if not file.storage or process["flags"] & recording_layout().constants["IBP_PROCESS_FINALIZED"]:
        return
    if file.on_node:
        yield (
            f"its counters are exact: they were read on its node ({file.storage}). Only this node has a complete copy: "
            "run `ibprof collect --from-node` there"
        )
        return
    moment = datetime.fromtimestamp(int(process["copied_ns"]) / 1e9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    yield (
        f"its counters date from {moment}, the last copy from the storage of its node ({file.storage}). This storage "
        "cannot be read from here. Later traffic is missing: run `ibprof collect --from-node` on that node"
    )
    if process["copy_begun_ns"] != process["copied_ns"]:
        yield "it ended while its counters were copied, so some counters are newer than others"
