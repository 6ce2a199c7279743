# SPDX-License-Identifier: Apache-2.0
"""Hand-made recordings with known contents. cffi builds them from the structs in the header ibprof_recording.h."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from cffi import FFI

PAGE = 4096
OPERATIONS = ("BCAST", "ALLTOALL", "SEND")

Records = Sequence[Mapping[str, Any]]


@dataclass
class Process:
    """Records of one process. Each item of `counters`, `regions`, ... is the list of records of one segment.

    Attributes:
        samples: records of the segments of types 22 (collectives) and 23 (messages), as bytes.
    """

    rank: int
    world_size: int = 4
    fields: Mapping[str, Any] = field(default_factory=dict)
    regions: Sequence[Records] = (({"name": b"main", "visits": 1, "wall_ns": 5, "first_ns": 1, "last_ns": 6},),)
    counters: Sequence[Records] = ()
    sizes: Sequence[Records] = ()
    demands: Sequence[Records] = ()
    marks: Sequence[Records] = ()
    ports: Sequence[Records] = ()
    interfaces: Sequence[Records] = ()
    pairs: Sequence[Records] = ()
    transfers: Sequence[Records] = ()
    hardware: Sequence[Records] = ()
    launch: Sequence[Records] = ()
    addresses: Sequence[Records] = ()
    snapshots: Sequence[Records] = ()
    times: Sequence[Records] = ()
    objects: Sequence[Records] = ()
    sites: Sequence[Records] = ()
    samples: Mapping[int, bytes] = field(default_factory=dict)
    started: bool = True


@cache
def header() -> FFI:
    """Return the structs of the installed header."""
    text = (files("ibprof") / "include" / "ibprof_recording.h").read_text()
    ffi = FFI()
    ffi.cdef(text.partition("/* -- cffi begins -- */")[2].partition("/* -- cffi ends -- */")[0])
    return ffi


_ORIGIN = ("region", "operation", "site")


def counter(peer: int, amount: int, *, messages: int = 1, **fields: int) -> dict[str, int]:
    """Return a counter, by default of user data sent in Open MPI by the first operation in the first region."""
    return {"peer": peer, "bytes": amount, "messages": messages, "source": 1} | fields


def make_recording(
    folder: Path,
    processes: Iterable[Process],
    *,
    host: str = "host0",
    job: str = "job 1",
    run: str = "",
    start_ns: int = 1000,
    gap_pages: int = 0,
    operations: Sequence[str] = OPERATIONS,
    name: str | None = None,
    header_fields: Mapping[str, Any] | None = None,
) -> Path:
    """Write the file of one host.

    Args:
        gap_pages: number of empty pages before each segment. A killed process can leave such pages.
        header_fields: changed fields of the file's header, for example to damage it.
    """
    ffi = header()
    start: dict[str, Any] = {"host": host.encode(), "job": job.encode(), "run": run.encode(), "launch": b"launch"}
    start |= {"magic": 0x4352464F52504249, "version": 2, "byte_order": 0x01020304, "start_ns": start_ns}
    start |= {"header_bytes": ffi.sizeof("struct ibp_file_header"), "library_version": b"9.8.7"}
    names = b"".join(operation.encode().ljust(32, b"\0") for operation in operations)
    first = -(-(ffi.sizeof("struct ibp_file_header") + len(names)) // PAGE) * PAGE
    body = bytearray()

    def add(kind: int, struct: str, records: Records | bytes, process: int | None = None) -> int:
        body.extend(bytes(gap_pages * PAGE))
        offset: int = first + len(body)
        if isinstance(records, bytes):
            array = ffi.from_buffer(f"struct ibp_{struct}[]", records)
        else:
            array = ffi.new(f"struct ibp_{struct}[]", len(records) or 1)
            for place, record in enumerate(records):
                for key, value in record.items():
                    setattr(array[place], key, value)
        size = -(-(ffi.sizeof("struct ibp_segment") + ffi.sizeof(array)) // PAGE) * PAGE
        segment = ffi.new("struct ibp_segment *")
        segment.magic, segment.kind, segment.offset, segment.bytes = 0x53504249, kind, offset, size
        segment.process = offset if process is None else process
        segment.version = 1
        segment.record_bytes = ffi.sizeof(f"struct ibp_{struct}")
        segment.capacity = (size - ffi.sizeof("struct ibp_segment")) // segment.record_bytes
        segment.used = len(array) if isinstance(records, bytes) else len(records)
        body.extend((bytes(ffi.buffer(segment)) + bytes(ffi.buffer(array))).ljust(size, b"\0"))
        return offset

    for process in processes:
        own: dict[str, Any] = {
            "pid": 100 + process.rank,
            "world_rank": process.rank,
            "world_size": process.world_size,
            "source": 1,
        }
        own |= {"flags": 1, "start_ns": start_ns, "stop_ns": start_ns + 50, "mpi": b"An MPI", "command": b"./app"}
        place = add(1, "process", [own | dict(process.fields)] if process.started else [])
        origins: dict[tuple[int, ...], int] = {}
        counters = [_by_origin(records, origins) for records in process.counters]
        sizes = [_by_origin(records, origins) for records in process.sizes]
        demands = [_by_origin(records, origins) for records in process.demands]
        times = [_by_origin(records, origins) for records in process.times]
        named = [dict(zip(_ORIGIN, origin, strict=True)) for origin in origins]
        parts: tuple[Any, ...]
        parts = (2, "port", process.ports), (3, "region", process.regions), (14, "origin", [named] if named else [])
        parts += (15, "counter", counters), (16, "sizes", sizes), (17, "demand", demands)
        parts += (18, "object", process.objects), (19, "site", process.sites), (20, "time", times)
        parts += (6, "mark", process.marks), (7, "pair", process.pairs)
        parts += (8, "transfer", process.transfers), (9, "hardware", process.hardware), (12, "launch", process.launch)
        parts += (10, "address", process.addresses), (11, "snapshot", process.snapshots)
        parts += ((24, "interface", process.interfaces),)
        parts += (
            (22, "collective_sample", [process.samples.get(22)]),
            (23, "message_sample", [process.samples.get(23)]),
        )
        for kind, struct, segments in parts:
            for records in (each for each in segments if each is not None):
                add(kind, struct, records, place)
    start |= {"segments_offset": first, "end_bytes": first + len(body), "operation_count": len(operations)}
    whole = ffi.new("struct ibp_file_header *", start | dict(header_fields or {}))
    folder.mkdir(exist_ok=True)
    path = folder / (name or f"{host}-{start_ns}.ibprof")
    path.write_bytes((bytes(ffi.buffer(whole)) + names).ljust(first, b"\0") + body)
    return path


def _by_origin(records: Records, origins: dict[tuple[int, ...], int]) -> Records:
    """In each record, replace the members that form an origin by the origin's number; add new origins to `origins`."""
    numbered = []
    for record in records:
        origin = tuple(int(record.get(name, 0)) for name in _ORIGIN)
        number = origins.setdefault(origin, len(origins))
        numbered.append({"origin": number} | {name: value for name, value in record.items() if name not in _ORIGIN})
    return numbered
