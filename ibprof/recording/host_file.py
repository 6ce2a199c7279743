# SPDX-License-Identifier: Apache-2.0
"""One file of a recording: what the processes of one host counted in one run."""

from __future__ import annotations

import mmap
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof.native.recording_layout import recording_layout

Records = npt.NDArray[np.void]

SIZE_LIMIT = 1 << 36
"""Bytes of a file, many times those of a large host. A sparse file can have any size and would take forever."""

_PAGES_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """The counters of one host's processes in one run.

    Attributes:
        path: of the file.
        host: its name.
        job: the launcher's name of the job, empty for a single process.
        run: name of the run, empty without one.
        start_ns: start of the first process of this host.
        operations: names, which counters refer to by index.
        cut_short: space was assigned that the file does not have: it was copied in part, or its disk was full.
        storage: the file on the node's own storage that this is a copy of; empty where processes mapped this one.
        on_node: that file exists and was read instead of the copy.
        processes: `ibp_process` [process] of those that recorded something, in the order of their start.
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
    _is_mapped: bool = field(repr=False)
    _bytes: npt.NDArray[np.uint8] = field(repr=False)
    _segments: Records = field(repr=False)
    _owner: npt.NDArray[np.intp] = field(repr=False)

    def records(self, kind: str) -> tuple[Records, npt.NDArray[np.intp]]:
        """Read all records of one kind.

        Args:
            kind: of the segments: `IBP_SEGMENT_...`.

        Returns:
            The records, process by process, each in the order in which they were made, and the index of each record's
            process.
        """
        layout = recording_layout()
        number = layout.constants[kind]
        chosen = np.flatnonzero((self._segments["kind"] == number) & (self._owner >= 0))
        chosen = chosen[np.argsort(self._owner[chosen], kind="stable")]
        record = layout.types[layout.record_names[number]]
        if not len(chosen):
            return np.empty(0, record), np.empty(0, np.intp)
        used = self._segments["used"][chosen]
        begins = (self._segments["offset"][chosen] + layout.types["segment"].itemsize).tolist()
        sizes = (used * np.uint64(record.itemsize)).tolist()
        # As bytes: numpy compares the fields of structs again for each part.
        parts = [self._bytes[begin : begin + size] for begin, size in zip(begins, sizes, strict=True)]
        return np.concatenate(parts).view(record), np.repeat(self._owner[chosen], used)

    def release(self) -> None:
        """Release the memory of records that were read; later reads load them from disk again."""
        if self._is_mapped:
            self._map.madvise(mmap.MADV_DONTNEED)

    def counters(self) -> tuple[Records, npt.NDArray[np.intp]]:
        """Read the counters as `records` does, and apply the redo logs of their processes."""
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
    """Read the header of a file, its segments, and its processes.

    Raises:
        InputError: it is no recording, of another version or byte order, or damaged.
    """
    whole, is_mapped = _map_file(path)
    data = np.frombuffer(whole, np.uint8)
    header = _read_header(path, data)
    on_node = _map_storage(header)
    if on_node:
        whole, is_mapped = on_node
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
        _is_mapped=is_mapped,
        _bytes=data,
        _segments=segments,
        _owner=owner,
    )


def decode_text(raw: bytes) -> str:
    r"""Decode a text of the recording; bytes that are not UTF-8 become `\xNN`, so that every output stays valid."""
    return bytes(raw).partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _map_file(path: Path) -> tuple[mmap.mmap, bool]:
    """Return the bytes of a file, and whether they are mapped from it."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(path, None, "a recording", "something other than a file")
        if not status.st_size:
            raise InputError(path, None, "a recording", "an empty file")
        if status.st_size > SIZE_LIMIT:
            raise InputError(path, None, f"at most {SIZE_LIMIT:,} bytes", f"{status.st_size:,}")
        with path.open("rb") as file:
            # Mapped: most pages of a large recording are read once, and none is copied early. But reading a hole
            # allocates a page of an in-memory file system; if that is full, the process gets SIGBUS.
            if os.lseek(file.fileno(), 0, os.SEEK_HOLE) >= status.st_size:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), True
            file.seek(0)
            held = mmap.mmap(-1, status.st_size)
            file.readinto(held)
            return held, False
    except OSError as error:
        raise InputError(path, None, "a readable file", (error.strerror or str(error)).lower()) from error


def _map_storage(copy: np.void) -> tuple[mmap.mmap, bool] | None:
    """Map the node's own file that a file is a copy of; None if it is missing or another one."""
    storage = decode_text(copy["storage"])
    if not storage:
        return None
    try:
        mapped = _map_file(Path(storage))
        header = _read_header(Path(storage), np.frombuffer(mapped[0], np.uint8))
    except InputError:
        return None
    return mapped if all(header[name] == copy[name] for name in ("start_ns", "host", "job", "run", "launch")) else None


def _read_header(path: Path, data: npt.NDArray[np.uint8]) -> np.void:
    layout = recording_layout()
    record, constants = layout.types["file_header"], layout.constants
    magic = np.array([constants["IBP_FILE_MAGIC"]], np.uint64)
    start = bytes(data[: magic.nbytes])
    if start == magic.byteswap().tobytes():
        raise InputError(path, None, "a recording in this machine's byte order", "the other byte order")
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
    """Return the segments in the order of the file. Data inside a segment may look like one; it is skipped."""
    layout = recording_layout()
    record, page = layout.types["segment"], layout.constants["IBP_PAGE_BYTES"]
    magic = layout.constants["IBP_SEGMENT_MAGIC"]
    heads = data[: len(data) // page * page].reshape(-1, page)[:, : record.itemsize].view(record)[:, 0]
    magics, sizes = heads["magic"], heads["bytes"]
    starts = []
    page_index = int(header["segments_offset"]) // page
    # Each segment leads to the next, so few pages of a large file are read.
    while page_index < len(heads):
        if magics[page_index] == magic:
            starts.append(page_index)
            page_index += max(int(sizes[page_index]) // page, 1)
        else:
            page_index = _next_segment(magics, page_index, magic)
    found = heads[starts]
    _check_segments(path, found, np.array(starts, np.uint64) * np.uint64(page), len(data))
    return found


def _next_segment(magics: npt.NDArray[np.uint32], page_index: int, magic: int) -> int:
    """Return the next page that begins with the magic, or the end; other pages were assigned but never filled."""
    for begin in range(page_index, len(magics), _PAGES_AT_ONCE):
        found = np.flatnonzero(magics[begin : begin + _PAGES_AT_ONCE] == magic)
        if len(found):
            return begin + int(found[0])
    return len(magics)


def _check_segments(path: Path, segments: Records, offsets: npt.NDArray[np.uint64], file_bytes: int) -> None:
    """Raise InputError for the first invalid or incomplete segment."""
    layout = recording_layout()
    header, page = layout.types["segment"].itemsize, layout.constants["IBP_PAGE_BYTES"]
    of_kind = np.zeros(max(layout.record_names) + 2, np.uint64)
    for kind, name in layout.record_names.items():
        of_kind[kind] = layout.types[name].itemsize
    size, capacity = segments["bytes"], segments["capacity"].astype(np.uint64)
    record_bytes = of_kind[np.minimum(segments["kind"], len(of_kind) - 1)]
    sound = (record_bytes > 0) & (segments["offset"] == offsets) & (segments["record_bytes"] == record_bytes)
    sound &= (size > 0) & (size % page == 0) & (size <= file_bytes - offsets)
    sound &= (segments["used"] <= capacity) & (header + capacity * record_bytes <= size)
    for index in np.flatnonzero(~sound).tolist():
        _check_segment(path, segments[index], int(offsets[index]), file_bytes)


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
    """Return the processes, and for each segment the index of its process, -1 for none."""
    layout = recording_layout()
    record = layout.types["process"]
    theirs = segments[segments["kind"] == layout.constants["IBP_SEGMENT_PROCESS"]]
    unknown = ~np.isin(segments["process"], theirs["offset"])
    if unknown.any():
        segment = segments[unknown][0]
        expected = f"the offset of a process in the segment at byte {segment['offset']}"
        raise InputError(path, None, expected, str(segment["process"]))
    begins = [offset + layout.types["segment"].itemsize for offset in theirs["offset"].tolist()]
    described = np.concatenate([data[begin : begin + record.itemsize] for begin in begins] or [data[:0]]).view(record)
    # A process that was killed before it described itself recorded nothing.
    started = (theirs["used"] > 0) & (described["start_ns"] != 0)
    number = np.where(started, np.cumsum(started) - 1, -1).astype(np.intp)
    owner = number[np.searchsorted(theirs["offset"], segments["process"])] if len(theirs) else np.empty(0, np.intp)
    return described[started], owner
