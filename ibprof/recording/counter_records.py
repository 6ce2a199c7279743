# SPDX-License-Identifier: Apache-2.0
"""Read the records that have an origin (region, operation and site): counters, demands, sizes and times.

Network addresses of peers are replaced by ranks. Times are ticks of each process's clock. Times of short calls are
estimated from a random sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof.native.headers import recording_layout
from ibprof.profile.row_arrays import Columns
from ibprof.recording.host_file import Owners, RecordingFile, Records, locate_records

_OF_ORIGIN = ("region", "operation", "site")


Indices = npt.NDArray[np.intp]


def read_counters(file: RecordingFile) -> tuple[Records, Owners]:
    """Read the counters of a file. By redo logs, finish moves of bytes that a kill interrupted.

    Returns:
        `ibp_counter` with region, operation and site, process by process; and the index of each counter's process.

    Raises:
        InputError: an origin or a redo log is invalid.
    """
    counters, owner = _read_with_origin(file, "IBP_SEGMENT_COUNTERS")
    _redo(file, "counters", "messages", counters, owner)
    return counters, owner


def read_demands(file: RecordingFile) -> tuple[Records, Owners]:
    """Read the demands of a file. By redo logs, finish moves of bytes that a kill interrupted.

    Returns:
        `ibp_demand` with region, operation and site, process by process; and the index of each demand's process.

    Raises:
        InputError: an origin or a redo log is invalid.
    """
    demands, owner = _read_with_origin(file, "IBP_SEGMENT_DEMANDS")
    _redo(file, "demands", "calls", demands, owner)
    return demands, owner


def _redo(file: RecordingFile, what: str, number: str, records: Records, owner: Owners) -> None:
    """Finish interrupted moves of `bytes` and `number` from one record to another, by the processes' redo logs."""
    constants = recording_layout().constants
    logged = np.where(file.processes["redo_kind"] == 0, constants["IBP_SEGMENT_COUNTERS"], file.processes["redo_kind"])
    is_of_kind = logged == constants[f"IBP_SEGMENT_{what.upper()}"]
    for index in np.flatnonzero((file.processes["redo_from"] != 0) & is_of_kind):
        process = file.processes[index]
        mine = np.flatnonzero(owner == index)
        numbers = int(process["redo_into"]), int(process["redo_from"])
        if not all(1 <= number <= len(mine) for number in numbers):
            raise InputError(file.path, None, f"a redo log within {len(mine)} {what}", f"{what} {numbers}")
        into, emptied = mine[numbers[0] - 1], mine[numbers[1] - 1]
        records["bytes"][into], records[number][into] = process["redo_bytes"], process["redo_messages"]
        records["bytes"][emptied] = records[number][emptied] = 0


def read_sizes(file: RecordingFile) -> tuple[Records, Owners]:
    """Read the message sizes of a file.

    Returns:
        `ibp_sizes` with region, operation and site, process by process; and the index of each record's process.

    Raises:
        InputError: an origin is invalid.
    """
    return _read_with_origin(file, "IBP_SEGMENT_SIZES")


def read_times(file: RecordingFile) -> tuple[Records, Owners]:
    """Read the times of a file; origins without calls are left out.

    Returns:
        `ibp_time` with region, operation and site, process by process; and the index of each record's process.

    Raises:
        InputError: an origin is invalid.
    """
    times, owner = _read_with_origin(file, "IBP_SEGMENT_TIMES")
    called = np.flatnonzero(times["calls"])
    return times[called], owner[called]


def _read_with_origin(file: RecordingFile, kind: str) -> tuple[Records, Owners]:
    if f"{kind}_OF_1" in recording_layout().constants:
        records, owner = file.records(f"{kind}_OF_1")
        if len(records):
            return records, owner
    records, owner = file.records(kind)
    origins, origins_owner = file.records("IBP_SEGMENT_ORIGINS")
    origin = locate_records(file, "an origin", records["origin"], owner, origins_owner)
    types = recording_layout().types
    located = np.empty(len(records), _located(records.dtype, types["origin"]))
    for name in located.dtype.names or ():
        located[name] = origins[name][origin] if name in _OF_ORIGIN else records[name]
    return located, owner


def _located(record: np.dtype[np.void], origin: np.dtype[np.void]) -> np.dtype[np.void]:
    """Return a record type with the origin's region, operation and site in place of the origin's index."""
    kept = [name for name in record.names or () if name != "origin" and not name.startswith("reserved")]
    members: list[tuple[str, Any]] = [(name, origin[name]) for name in _OF_ORIGIN]
    return np.dtype([*members, *((name, record[name]) for name in kept)])


def find_times(file: RecordingFile, times: Records, owner: Owners) -> Columns:
    """Estimate the time inside the calls of each record, as csrc/preload/counting/times.h describes.

    One random call in W is timed, and represents W calls. Source: Horvitz and Thompson, Journal of the American
    Statistical Association 47, 1952.

    Args:
        times: `ibp_time`.
        owner: index of each record's process.

    Returns:
        The columns `calls`, `time_ns` and `error_ns` of `CallTimes`.

    Raises:
        InputError: a process has times but no clock.
    """
    tick_ns = find_tick_ns(file, owner)
    weight = file.processes[owner]["times_weight"].astype(np.float64)
    variance = weight * (weight - 1) * np.maximum(times["sampled_squares"], 0)
    return {
        "calls": times["calls"].astype(np.uint64),
        "time_ns": _whole(_inside_ticks(file, times, owner) * tick_ns),
        "error_ns": _whole(np.sqrt(variance) * tick_ns),
    }


def find_overlaps(file: RecordingFile, times: Records, owner: Owners) -> list[int]:
    """Return the time, in ns, that `times` of each process count more than once because several threads were in calls.

    The result is a lower bound: calls without a measured time, and lost calls of a killed process, are left out.

    Args:
        times: `ibp_time`.
        owner: index of each record's process.
    """
    found = [0] * len(file.processes)
    for index in np.intersect1d(owner, np.flatnonzero(file.processes["busy_ticks"])).tolist():
        ticks = float(times["ticks"][owner == index].sum()) - float(file.processes["busy_ticks"][index])
        found[index] = max(round(ticks * float(find_tick_ns(file, np.array([index]))[0])), 0)
    return found


def _inside_ticks(file: RecordingFile, times: Records, owner: Owners) -> npt.NDArray[np.float64]:
    """Return the ticks inside each record's calls: measured, plus an estimate for calls that were not timed."""
    weight = file.processes[owner]["times_weight"].astype(np.float64)
    inside: npt.NDArray[np.float64] = times["ticks"] + weight * times["sampled_ticks"]
    return inside


def find_tick_ns(file: RecordingFile, owner: Owners) -> npt.NDArray[np.float64]:
    """Return the ns per tick of each process's clock, for the processes in `owner`.

    Raises:
        InputError: a process has no clock.
    """
    process = file.processes[owner]
    ticks = process["clock_ticks"][:, 1].astype(np.int64) - process["clock_ticks"][:, 0].astype(np.int64)
    elapsed_ns = process["clock_ns"][:, 1].astype(np.int64) - process["clock_ns"][:, 0].astype(np.int64)
    if (np.minimum(ticks, elapsed_ns) <= 0).any() or (process["times_weight"] < 1).any():
        raise InputError(file.path, None, "a clock that was read at two moments", "times without such a clock")
    length: npt.NDArray[np.float64] = elapsed_ns / ticks
    return length


def _whole(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Return the nearest integers, at most 2**62: damaged files may have larger numbers."""
    return np.nan_to_num(np.minimum(np.rint(numbers), 2.0**62)).astype(np.uint64)


def find_owners(files: Sequence[RecordingFile], ranks: Sequence[npt.NDArray[np.int32]]) -> dict[bytes, int]:
    """Return network address -> rank, for the addresses that processes recorded as their own.

    Args:
        ranks: ranks of each file's processes, int32 [process].
    """
    owners: dict[bytes, int] = {}
    for file, rank in zip(files, ranks, strict=True):
        records, owner = file.records("IBP_SEGMENT_ADDRESSES")
        for index in np.flatnonzero(records["own"]):
            owners[_key(records[index])] = int(rank[owner[index]])
    return owners


def resolve_peers(
    file: RecordingFile, peers: npt.NDArray[np.uint32], owner: Indices, owners: dict[bytes, int]
) -> npt.NDArray[np.uint32]:
    """Replace addresses by ranks.

    Args:
        peers: uint32 [counter], recorded numbers of peers.
        owner: process of each counter, in the order of the file.
        owners: result of `find_owners`.

    Returns:
        uint32 [counter]; IBP_PEER_UNKNOWN for an address without a recorded process.

    Raises:
        InputError: a counter refers to an address that the counter's process did not record.
    """
    constants = recording_layout().constants
    unknown, first = constants["IBP_PEER_UNKNOWN"], constants["IBP_PEER_ADDRESS"]
    by_address = np.flatnonzero((peers >= first) & (peers != unknown))
    if not len(by_address):
        return peers
    records, record_owner = file.records("IBP_SEGMENT_ADDRESSES")
    rank_of_record = np.array([owners.get(_key(record), unknown) for record in records], np.uint32)
    begin = np.searchsorted(record_owner, np.arange(len(file.processes)))
    count = np.bincount(record_owner, minlength=len(file.processes))
    number = peers[by_address].astype(np.intp) - first
    process = owner[by_address]
    beyond = np.flatnonzero(number >= count[process])
    if len(beyond):
        limit = count[process[beyond[0]]]
        raise InputError(file.path, None, f"an address below {limit}", str(number[beyond[0]]))
    resolved = peers.copy()
    resolved[by_address] = rank_of_record[begin[process] + number]
    return resolved


def _key(record: np.void) -> bytes:
    return int(record["bytes"]).to_bytes(4, "little") + bytes(record["address"])
