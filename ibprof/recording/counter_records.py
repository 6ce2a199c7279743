# SPDX-License-Identifier: Apache-2.0
"""Records of a file that are kept by origin, each with its region and operation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibprof.errors import InputError
from ibprof.native.recording_layout import recording_layout
from ibprof.recording.host_file import Owners, RecordingFile, Records, locate_records

_OF_ORIGIN = ("region", "operation", "site")


def read_counters(file: RecordingFile) -> tuple[Records, Owners]:
    """Read the counters of a file, and apply the redo logs of their processes.

    Returns:
        `ibp_counter` with the members of its origin, process by process, and the index of each counter's process.

    Raises:
        InputError: an origin or a redo log is invalid.
    """
    counters, owner = _read_with_origin(file, "IBP_SEGMENT_COUNTERS")
    _redo(file, "counters", "messages", counters, owner)
    return counters, owner


def read_demands(file: RecordingFile) -> tuple[Records, Owners]:
    """Read the demands of a file, and apply the redo logs of their processes.

    Returns:
        `ibp_demand` with the members of its origin, process by process, and the index of each demand's process.

    Raises:
        InputError: an origin or a redo log is invalid.
    """
    demands, owner = _read_with_origin(file, "IBP_SEGMENT_DEMANDS")
    _redo(file, "demands", "calls", demands, owner)
    return demands, owner


def _redo(file: RecordingFile, what: str, number: str, records: Records, owner: Owners) -> None:
    """Apply the redo logs of a kind of records, whose bytes go with another number."""
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
        `ibp_sizes` with the members of its origin, process by process, and the index of each one's process.

    Raises:
        InputError: an origin is invalid.
    """
    return _read_with_origin(file, "IBP_SEGMENT_SIZES")


def read_times(file: RecordingFile) -> tuple[Records, Owners]:
    """Read the times of a file, without origins that were not called.

    Returns:
        `ibp_time` with the members of its origin, process by process, and the index of each one's process.

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
    """Return the type of records with the members of an origin instead of its index."""
    kept = [name for name in record.names or () if name != "origin" and not name.startswith("reserved")]
    members: list[tuple[str, Any]] = [(name, origin[name]) for name in _OF_ORIGIN]
    return np.dtype([*members, *((name, record[name]) for name in kept)])
