# SPDX-License-Identifier: Apache-2.0
"""One file of a recording: what the processes of one host counted in one run."""

from __future__ import annotations

import mmap
import stat
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof.recording_layout import recording_layout

Records = npt.NDArray[np.void]

SIZE_LIMIT = 1 << 36
"""Bytes of a file, many times what a large host leaves. A sparse file can have any size and would take forever."""


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """What the processes of one host counted in one run.

    Attributes:
        path: of the file.
        host: its name.
        job: the launcher's name of the job, empty for a lone process.
        run: name of the run, empty where nobody gave one.
        start_ns: when the first process of this host began to record.
        operations: names, which counters refer to by index.
        cut_short: space was handed out that the file does not have: it was copied in part, or its disk was full.
        storage: the file on the node's own storage that this is a copy of; empty where processes mapped this one.
        on_node: that file is there and was read in the place of the copy.
        processes: `ibp_process` [process] of those that recorded something, in the order in which they came.
    """

    path: Path
    host: str
    job: str
    run: str
    start_ns: int
    operations: tuple[str, ...]
    cut_short: bool
    storage: str
    on_node: bool
    processes: Records
    _map: mmap.mmap = field(repr=False)
    _bytes: npt.NDArray[np.uint8] = field(repr=False)
    _segments: Records = field(repr=False)
    _owner: npt.NDArray[np.intp] = field(repr=False)

    def records(self, kind: str) -> tuple[Records, npt.NDArray[np.intp]]:
        """Read all records of one kind.

        Args:
            kind: of the segments: `IBP_SEGMENT_...`.

        Returns:
            The records, process by process, each in the order in which they were made, and the index of the process
            that each belongs to.
        """
        layout = recording_layout()
        number = layout.constants[kind]
        chosen = np.flatnonzero((self._segments["kind"] == number) & (self._owner >= 0))
        chosen = chosen[np.argsort(self._owner[chosen], kind="stable")]
        record = layout.types[layout.record_names[number]]
        parts = [_segment_bytes(self._bytes, segment, record) for segment in self._segments[chosen]]
        if not parts:
            return np.empty(0, record), np.empty(0, np.intp)
        # As bytes: numpy compares the fields of structs anew for each part.
        counts = [len(part) // record.itemsize for part in parts]
        return np.concatenate(parts).view(record), np.repeat(self._owner[chosen], counts)

    def release(self) -> None:
        """Give the memory of what was read back; it is read from disk again when it is asked for."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def counters(self) -> tuple[Records, npt.NDArray[np.intp]]:
        """Read the counters as `records` does, those that were just changing hands put right."""
        counters, owner = self.records("IBP_SEGMENT_COUNTERS")
        for index in np.flatnonzero(self.processes["redo_from"]):
            process = self.processes[index]
            mine = np.flatnonzero(owner == index)
            numbers = int(process["redo_into"]), int(process["redo_from"])
            if not all(1 <= number <= len(mine) for number in numbers):
                raise InputError(self.path, None, f"a redo log within {len(mine)} counters", f"counters {numbers}")
            into, emptied = mine[numbers[0] - 1], mine[numbers[1] - 1]
            counters["bytes"][into], counters["messages"][into] = process["redo_bytes"], process["redo_messages"]
            counters["bytes"][emptied] = counters["messages"][emptied] = 0
        return counters, owner


def open_recording_file(path: Path) -> RecordingFile:
    """Read the header of a file, where its segments are, and its processes.

    Raises:
        InputError: it is no recording, of another version or byte order, or damaged.
    """
    whole = _map_file(path)
    data = np.frombuffer(whole, np.uint8)
    header = _read_header(path, data)
    on_node = _map_storage(header)
    if on_node:
        whole = on_node
        data = np.frombuffer(whole, np.uint8)
        header = _read_header(path, data)
    layout = recording_layout()
    names = layout.constants["IBP_OPERATION_NAME_BYTES"]
    first = layout.types["file_header"].itemsize
    operations = data[first : first + int(header["operation_count"]) * names].view(f"S{names}")
    segments = _find_segments(path, data, header)
    processes, owner = _find_processes(path, data, segments)
    return RecordingFile(
        path=path,
        host=decode_text(header["host"]),
        job=decode_text(header["job"]),
        run=decode_text(header["run"]),
        start_ns=int(header["start_ns"]),
        operations=tuple(decode_text(name) for name in operations),
        cut_short=int(header["end_bytes"]) > len(data),
        storage=decode_text(header["storage"]),
        on_node=on_node is not None,
        processes=processes,
        _map=whole,
        _bytes=data,
        _segments=segments,
        _owner=owner,
    )


def decode_text(raw: bytes) -> str:
    r"""Decode a text of the recording; bytes that are not UTF-8 become `\xNN`, so that every output stays valid."""
    return bytes(raw).partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _map_file(path: Path) -> mmap.mmap:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(path, None, "a recording", "something that is no file")
        if not status.st_size:
            raise InputError(path, None, "a recording", "an empty file")
        if status.st_size > SIZE_LIMIT:
            raise InputError(path, None, f"at most {SIZE_LIMIT:,} bytes", f"{status.st_size:,}")
        # Mapped: most pages of a large recording are read once, and none is copied before it is needed.
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise InputError(path, None, "a readable file", (error.strerror or str(error)).lower()) from error


def _map_storage(copy: np.void) -> mmap.mmap | None:
    """Map the file on the node's own storage that a file is a copy of; None where it is not there, or another one."""
    storage = decode_text(copy["storage"])
    if not storage:
        return None
    try:
        whole = _map_file(Path(storage))
        header = _read_header(Path(storage), np.frombuffer(whole, np.uint8))
    except InputError:
        return None
    return whole if all(header[name] == copy[name] for name in ("start_ns", "host", "job", "run", "launch")) else None


def _read_header(path: Path, data: npt.NDArray[np.uint8]) -> np.void:
    layout = recording_layout()
    record, constants = layout.types["file_header"], layout.constants
    magic = np.array([constants["IBP_FILE_MAGIC"]], np.uint64)
    start = bytes(data[: magic.nbytes])
    if start == magic.byteswap().tobytes():
        raise InputError(path, None, "a recording in this machine's byte order", "one in the other")
    if start != magic.tobytes():
        raise InputError(path, None, "a recording", f"a file that begins with {quote_found(start)}")
    if len(data) < record.itemsize:
        raise InputError(path, None, f"a header of {record.itemsize} bytes", f"the end of the file after {len(data)}")
    header: np.void = data[: record.itemsize].view(record)[0]
    if header["version"] != constants["IBP_FORMAT_VERSION"]:
        expected = f"recording format version {constants['IBP_FORMAT_VERSION']}"
        raise InputError(path, None, expected, str(header["version"]))
    if header["byte_order"] != constants["IBP_BYTE_ORDER"]:
        raise InputError(path, None, "this machine's byte order", f"{header['byte_order']:#010x}")
    names_end = record.itemsize + int(header["operation_count"]) * constants["IBP_OPERATION_NAME_BYTES"]
    first = int(header["segments_offset"])
    if not names_end <= first <= len(data) or first % constants["IBP_PAGE_BYTES"]:
        expected = f"segments from a page boundary between bytes {names_end} and {len(data)}"
        raise InputError(path, None, expected, f"from byte {first}")
    return header


def _find_segments(path: Path, data: npt.NDArray[np.uint8], header: np.void) -> Records:
    """Find the segments, in the order of the file. Pages without the magic were handed out and never filled."""
    layout = recording_layout()
    record, page = layout.types["segment"], layout.constants["IBP_PAGE_BYTES"]
    first = int(header["segments_offset"]) // page
    pages = data[: len(data) // page * page].reshape(-1, page)
    heads = pages[:, : record.itemsize]
    filled = heads[:, : record["magic"].itemsize].copy().view(record["magic"])[:, 0]
    candidates = np.flatnonzero(filled[first:] == layout.constants["IBP_SEGMENT_MAGIC"]) + first
    # What looks like a segment inside a segment is data.
    starts, end = [], 0
    for candidate in candidates:
        if candidate * page >= end:
            segment = heads[candidate].view(record)[0]
            _check_segment(path, segment, int(candidate) * page, len(data))
            starts.append(candidate)
            end = int(segment["offset"]) + int(segment["bytes"])
    return heads[starts].copy().view(record)[:, 0] if starts else np.empty(0, record)


def _check_segment(path: Path, segment: np.void, offset: int, file_bytes: int) -> None:
    layout = recording_layout()
    header, page = layout.types["segment"].itemsize, layout.constants["IBP_PAGE_BYTES"]
    where = f"in the segment at byte {offset}"
    record_name = layout.record_names.get(int(segment["kind"]))
    if record_name is None:
        raise InputError(path, None, f"a known kind {where}", str(segment["kind"]))
    size, used, capacity = int(segment["bytes"]), int(segment["used"]), int(segment["capacity"])
    record_bytes = layout.types[record_name].itemsize
    if segment["offset"] != offset:
        raise InputError(path, None, f"its own offset {where}", str(segment["offset"]))
    if not size or size % page or offset + size > file_bytes:
        expected = f"pages of {page} bytes up to the end of the file at byte {file_bytes} {where}"
        raise InputError(path, None, expected, f"{size} bytes")
    if segment["record_bytes"] != record_bytes:
        raise InputError(path, None, f"records of {record_bytes} bytes {where}", str(segment["record_bytes"]))
    if not used <= capacity or header + capacity * record_bytes > size:
        expected = f"no more records than its {size} bytes hold {where}"
        raise InputError(path, None, expected, f"{used} used of {capacity}")


def _find_processes(path: Path, data: npt.NDArray[np.uint8], segments: Records) -> tuple[Records, npt.NDArray[np.intp]]:
    """Find the processes, and for each segment the index of the process it belongs to, -1 for none."""
    layout = recording_layout()
    record = layout.types["process"]
    theirs = segments[segments["kind"] == layout.constants["IBP_SEGMENT_PROCESS"]]
    unknown = ~np.isin(segments["process"], theirs["offset"])
    if unknown.any():
        segment = segments[unknown][0]
        expected = f"the offset of a process in the segment at byte {segment['offset']}"
        raise InputError(path, None, expected, str(segment["process"]))
    parts = [_segment_bytes(data, segment, record).view(record) for segment in theirs]
    # A process that was killed before it had described itself recorded nothing.
    started = [bool(len(part)) and part["start_ns"][0] != 0 for part in parts]
    processes = [part[:1] for part, recorded in zip(parts, started, strict=True) if recorded]
    number = np.where(started, np.cumsum(started) - 1, -1).astype(np.intp)
    owner = number[np.searchsorted(theirs["offset"], segments["process"])] if len(theirs) else np.empty(0, np.intp)
    return np.concatenate(processes) if processes else np.empty(0, record), owner


def _segment_bytes(data: npt.NDArray[np.uint8], segment: np.void, record: np.dtype[np.void]) -> npt.NDArray[np.uint8]:
    begin = int(segment["offset"]) + recording_layout().types["segment"].itemsize
    return data[begin : begin + int(segment["used"]) * record.itemsize]
