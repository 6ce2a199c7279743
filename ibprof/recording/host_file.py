# SPDX-License-Identifier: Apache-2.0
"""Read one file of a recording: the records of one host's processes in one run."""

from __future__ import annotations

import mmap
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof.native.headers import recording_layout

Records = npt.NDArray[np.void]
Owners = npt.NDArray[np.intp]

SIZE_LIMIT = 1 << 36
"""Maximum size of a recording file in bytes, far above usual sizes. Reading a huge sparse file would take forever."""

_PAGES_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """The records of one host's processes in one run.

    Attributes:
        job: the launcher's name of the job; empty for a single process.
        run: name that `ibprof run` gave the run; otherwise empty.
        launch: identifier of the launch on the host.
        start_ns: start of the host's first process.
        operations: operation names; counters have indices of these names.
        cut_short: true if segments are missing (partial copy, or full disk).
        full: reason for incomplete recording, a value of `enum ibp_full`.
        storage: original file on the node's storage; empty if this file is the original.
        on_node: true if the original exists and was read instead of the copy.
        library: version of the ibprof that wrote the file.
        skipped: unknown kinds of segments, from a newer ibprof; ascending.
        processes: recorded processes in the order of their start, `ibp_process` [process].
    """

    path: Path
    host: str
    job: str
    run: str
    launch: str
    start_ns: int
    operations: tuple[str, ...]
    cut_short: bool
    full: int
    storage: str
    on_node: bool
    library: str
    skipped: tuple[int, ...]
    processes: Records
    _map: mmap.mmap = field(repr=False)
    _is_mapped: bool = field(repr=False)
    _bytes: npt.NDArray[np.uint8] = field(repr=False)
    _segments: Records = field(repr=False)
    _owner: npt.NDArray[np.intp] = field(repr=False)

    def records(self, kind: str) -> tuple[Records, npt.NDArray[np.intp]]:
        """Read all records of one kind.

        Args:
            kind: kind of the segments, `IBP_SEGMENT_...`.

        Returns:
            The records, process by process, in the order of creation, and the index of each record's process.
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
        sizes = self._segments["record_bytes"][chosen].tolist()
        parts = [
            _resize(self._bytes[begin : begin + count * size].reshape(count, size), record.itemsize)
            for begin, count, size in zip(begins, used.tolist(), sizes, strict=True)
        ]
        return np.concatenate(parts).view(record)[:, 0], np.repeat(self._owner[chosen], used)

    def count(self, kind: str) -> int:
        """Return the number of records of one kind, `IBP_SEGMENT_...`."""
        chosen = (self._segments["kind"] == recording_layout().constants[kind]) & (self._owner >= 0)
        return int(self._segments["used"][chosen].sum())

    def has_zero_page(self) -> bool:
        """Return whether a page has only zeros in used records: the page was not copied, or not written to disk.

        A single record of zeros is valid. A segment without its first page was not found, so it is not checked.
        """
        layout = recording_layout()
        head, page = layout.types["segment"].itemsize, layout.constants["IBP_PAGE_BYTES"]
        sizes = self._segments["record_bytes"].astype(np.uint64)
        ends = self._segments["offset"] + head + self._segments["used"] * sizes
        for offset, end, size in zip(self._segments["offset"].tolist(), ends.tolist(), sizes.tolist(), strict=True):
            second, last = offset + page, end // page * page
            if second < last and not self._bytes[second:last].reshape(-1, page).any(axis=1).all():
                return True
            if last > offset and end - last >= 2 * size and not self._bytes[last:end].any():
                return True
        return False

    def release(self) -> None:
        """Release the memory of records that were read; later reads load the records from disk again."""
        if self._is_mapped:
            self._map.madvise(mmap.MADV_DONTNEED)


def locate_records(
    file: RecordingFile, what: str, index: npt.NDArray[np.uint32], owner: Owners, records_owner: Owners
) -> Owners:
    """Convert each record's index in its process to the record's index in the file.

    Args:
        what: noun for the records in the error message.
        index, owner: index of each record in a process; index of the process.
        records_owner: process of each record in the file.

    Raises:
        InputError: a process lacks the record.
    """
    processes = len(file.processes)
    begin = np.searchsorted(records_owner, np.arange(processes))
    count = np.bincount(records_owner, minlength=processes)
    beyond = np.flatnonzero(index >= count[owner])
    if len(beyond):
        limit, found = count[owner[beyond[0]]], index[beyond[0]]
        raise InputError(file.path, None, f"{what} below {limit}", str(found))
    return begin[owner] + index.astype(np.intp)


def open_recording_file(path: Path) -> RecordingFile:
    """Read a file's header, segments and processes.

    Raises:
        InputError: the file is no recording, has another version or byte order, or is damaged.
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
    first = _header_bytes(header)
    operations = data[first : first + int(header["operation_count"]) * names].view(f"S{names}")
    if not all(operations):
        raise InputError(path, None, f"names of {len(operations)} operations", "an empty name")
    segments = _find_segments(path, data, header)
    processes, owner = _find_processes(path, data, segments)
    file = RecordingFile(
        path=path,
        host=decode_text(header["host"]),
        job=decode_text(header["job"]),
        run=decode_text(header["run"]),
        launch=decode_text(header["launch"]),
        start_ns=int(header["start_ns"]),
        operations=tuple(decode_text(name) for name in operations),
        cut_short=int(header["end_bytes"]) > len(data) or _has_gap(header, segments, processes),
        full=int(header["full"]),
        storage=decode_text(header["storage"]),
        on_node=on_node is not None,
        library=decode_text(header["library_version"]),
        skipped=tuple(np.setdiff1d(segments["kind"], list(layout.record_names)).tolist()),
        processes=processes,
        _map=whole,
        _is_mapped=is_mapped,
        _bytes=data,
        _segments=segments,
        _owner=owner,
    )
    file.release()  # frees the pages that were read with the segment headers
    return file


def decode_text(raw: bytes) -> str:
    r"""Decode a text of the recording; invalid UTF-8 becomes `\xNN`, so that every output stays valid."""
    return bytes(raw).partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _map_file(path: Path) -> tuple[mmap.mmap, bool]:
    """Return the bytes of a file, and whether the bytes are memory-mapped."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(path, None, "a recording", "something other than a file")
        if not status.st_size:
            raise InputError(path, None, "a recording", "an empty file")
        if status.st_size > SIZE_LIMIT:
            raise InputError(path, None, f"at most {SIZE_LIMIT:,} bytes", f"{status.st_size:,}")
        with path.open("rb") as file:
            # Map the file, so that pages are loaded only when they are read. Copy a file with holes: reading a hole on
            # a full in-memory file system causes SIGBUS.
            if os.lseek(file.fileno(), 0, os.SEEK_HOLE) >= status.st_size:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), True
            file.seek(0)
            held = mmap.mmap(-1, status.st_size)
            file.readinto(held)
            return held, False
    except OSError as error:
        raise InputError(path, None, "a readable file", (error.strerror or str(error)).lower()) from error


def _map_storage(copy: np.void) -> tuple[mmap.mmap, bool] | None:
    """Return the bytes of a copy's original, and whether the bytes are memory-mapped; None without the original."""
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
    oldest, newest = constants["IBP_OLDEST_FORMAT_VERSION"], constants["IBP_FORMAT_VERSION"]
    if not oldest <= header["version"] <= newest:
        raise InputError(path, None, f"recording format version {oldest} to {newest}", str(header["version"]))
    # Headers of earlier versions are shorter, and followed by other data: cut the other data off.
    header = _resize(data[None, : min(_header_bytes(header), record.itemsize)], record.itemsize).view(record)[0, 0]
    if header["byte_order"] != constants["IBP_BYTE_ORDER"]:
        raise InputError(path, None, "this machine's byte order", f"{header['byte_order']:#010x}")
    names_end = _header_bytes(header) + int(header["operation_count"]) * constants["IBP_OPERATION_NAME_BYTES"]
    first = int(header["segments_offset"])
    if not names_end <= first <= len(data) or first % constants["IBP_PAGE_BYTES"]:
        expected = f"segments from a page boundary between bytes {names_end} and {len(data)}"
        raise InputError(path, None, expected, f"from byte {first}")
    return header


def _header_bytes(header: np.void) -> int:
    """Return the size of a file's header; the names of operations follow it."""
    return int(header["header_bytes"]) or recording_layout().constants["IBP_OLDEST_HEADER_BYTES"]


def _resize(rows: npt.NDArray[np.uint8], record_bytes: int) -> npt.NDArray[np.uint8]:
    """Convert records [record, byte] of another version to this version: cut records, or add zeros to records."""
    if rows.shape[1] == record_bytes:
        return rows
    resized = np.zeros((len(rows), record_bytes), np.uint8)
    known = min(rows.shape[1], record_bytes)
    resized[:, :known] = rows[:, :known]
    return resized


def _find_segments(path: Path, data: npt.NDArray[np.uint8], header: np.void) -> Records:
    """Return the segments in the order of the file. Data inside a segment are skipped, whatever they look like."""
    layout = recording_layout()
    record, page = layout.types["segment"], layout.constants["IBP_PAGE_BYTES"]
    magic = layout.constants["IBP_SEGMENT_MAGIC"]
    heads = data[: len(data) // page * page].reshape(-1, page)[:, : record.itemsize].view(record)[:, 0]
    magics, sizes = heads["magic"], heads["bytes"]
    starts = []
    page_index = int(header["segments_offset"]) // page
    # A segment's size leads to the next segment, so few pages of a large file are read.
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
    """Return the index of the next page that begins with the magic, or the number of pages if there is none."""
    for begin in range(page_index, len(magics), _PAGES_AT_ONCE):
        found = np.flatnonzero(magics[begin : begin + _PAGES_AT_ONCE] == magic)
        if len(found):
            return begin + int(found[0])
    return len(magics)


def _has_gap(header: np.void, segments: Records, processes: Records) -> bool:
    """Return whether the found segments fill less than the assigned part of the file, though no process was killed."""
    ended = processes["flags"] & recording_layout().constants["IBP_PROCESS_FINALIZED"]
    assigned = int(header["end_bytes"]) - int(header["segments_offset"])
    return bool(ended.all()) and int(segments["bytes"].sum()) < assigned


def _check_segments(path: Path, segments: Records, offsets: npt.NDArray[np.uint64], file_bytes: int) -> None:
    """Raise InputError for the first invalid or incomplete segment."""
    layout = recording_layout()
    header, page = layout.types["segment"].itemsize, layout.constants["IBP_PAGE_BYTES"]
    size, capacity, record_bytes = segments["bytes"], segments["capacity"].astype(np.uint64), segments["record_bytes"]
    sound = (record_bytes > 0) & (segments["offset"] == offsets)
    sound &= (size > 0) & (size % page == 0) & (size <= file_bytes - offsets)
    sound &= (segments["used"] <= capacity) & (header + capacity * record_bytes <= size)
    for index in np.flatnonzero(~sound).tolist():
        _check_segment(path, segments[index], int(offsets[index]), file_bytes)


def _check_segment(path: Path, segment: np.void, offset: int, file_bytes: int) -> None:
    layout = recording_layout()
    header, page = layout.types["segment"].itemsize, layout.constants["IBP_PAGE_BYTES"]
    where = f"in the segment at byte {offset}"
    size, used, capacity = int(segment["bytes"]), int(segment["used"]), int(segment["capacity"])
    record_bytes = int(segment["record_bytes"])
    if segment["offset"] != offset:
        raise InputError(path, None, f"its own offset {where}", str(segment["offset"]))
    if not size or size % page or offset + size > file_bytes:
        expected = f"whole pages of {page} bytes that end within the file's {file_bytes} bytes {where}"
        raise InputError(path, None, expected, f"{size} bytes")
    if not record_bytes:
        raise InputError(path, None, f"records of 1 byte or more {where}", "0")
    if not used <= capacity or header + capacity * record_bytes > size:
        expected = f"at most the records that {size} bytes can hold {where}"
        raise InputError(path, None, expected, f"{used} used of {capacity}, of {record_bytes} bytes each")


def _find_processes(path: Path, data: npt.NDArray[np.uint8], segments: Records) -> tuple[Records, npt.NDArray[np.intp]]:
    """Return the processes, and the index of each segment's process; -1 without a process."""
    layout = recording_layout()
    record = layout.types["process"]
    theirs = segments[segments["kind"] == layout.constants["IBP_SEGMENT_PROCESS"]]
    unknown = ~np.isin(segments["process"], theirs["offset"])
    if unknown.any():
        segment = segments[unknown][0]
        expected = f"the offset of a process in the segment at byte {segment['offset']}"
        raise InputError(path, None, expected, str(segment["process"]))
    begins = [offset + layout.types["segment"].itemsize for offset in theirs["offset"].tolist()]
    sizes = theirs["record_bytes"].tolist()
    first = [
        _resize(data[None, begin : begin + size], record.itemsize) for begin, size in zip(begins, sizes, strict=True)
    ]
    described = np.concatenate([*first, np.empty((0, record.itemsize), np.uint8)]).view(record)[:, 0]
    # Leave out processes that were killed before they described themselves: they recorded nothing.
    started = (theirs["used"] > 0) & (described["start_ns"] != 0)
    number = np.where(started, np.cumsum(started) - 1, -1).astype(np.intp)
    owner = number[np.searchsorted(theirs["offset"], segments["process"])] if len(theirs) else np.empty(0, np.intp)
    return described[started], owner
