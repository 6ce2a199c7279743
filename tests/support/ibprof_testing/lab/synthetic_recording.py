# SPDX-License-Identifier: Apache-2.0
"""Write a synthetic recording of any size.

python -m ibprof_testing.lab.synthetic_recording FOLDER --ranks 10000 --destinations 500 --regions 3

Each rank sends random amounts to the ranks after it. In each region, half of a rank's destinations get bytes by
MPI_Alltoallv, the other half by MPI_Isend. As in the library's files, sizes of segments double up to a limit.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import RecordingLayout, recording_layout

OPERATIONS = ("NONE", "UNATTRIBUTED", "ALLTOALLV", "ISEND")
LARGEST_SEGMENT_PAGES = 64
START_NS = 1_700_000_000 * 10**9
RUN_NS = 60 * 10**9

Records = npt.NDArray[np.void]


class FileWriter:
    """Build the file of one host, with all its processes."""

    def __init__(self, layout: RecordingLayout, host: str, job: str) -> None:
        self._layout = layout
        self._page = layout.constants["IBP_PAGE_BYTES"]
        names = np.zeros(len(OPERATIONS), f"S{layout.constants['IBP_OPERATION_NAME_BYTES']}")
        names[:] = [name.encode() for name in OPERATIONS]
        header = self._new("file_header")
        self._first = -(-(header.nbytes + names.nbytes) // self._page) * self._page
        header["magic"] = layout.constants["IBP_FILE_MAGIC"]
        header["version"] = layout.constants["IBP_FORMAT_VERSION"]
        header["header_bytes"] = header.itemsize
        header["byte_order"] = layout.constants["IBP_BYTE_ORDER"]
        header["segments_offset"] = self._first
        header["start_ns"] = START_NS
        header["operation_count"] = len(OPERATIONS)
        header["host"], header["job"], header["launch"] = host.encode(), job.encode(), job.encode()
        self._header, self._names = header, names
        self._parts: list[bytes] = []
        self._end = self._first
        self._process = 0

    def begin_process(self, **fields: Any) -> None:
        """Add a process; the following records belong to it."""
        record = self._new("process")
        for name, value in fields.items():
            record[name] = value
        self._process = self._end
        self.add("IBP_SEGMENT_PROCESS", record)

    def add(self, kind: str, records: Records) -> None:
        """Add records of one kind, in as many segments as needed."""
        pages, begin = 1, 0
        while begin < len(records):
            segment = self._new("segment")
            size = max(pages * self._page, -(-(segment.nbytes + records.itemsize) // self._page) * self._page)
            capacity = (size - segment.nbytes) // records.itemsize
            part = records[begin : begin + capacity]
            segment["magic"] = self._layout.constants["IBP_SEGMENT_MAGIC"]
            segment["kind"], segment["version"] = self._layout.constants[kind], 1
            segment["offset"], segment["bytes"], segment["process"] = self._end, size, self._process
            segment["record_bytes"], segment["capacity"], segment["used"] = records.itemsize, capacity, len(part)
            self._parts.append((segment.tobytes() + part.tobytes()).ljust(size, b"\0"))
            self._end += size
            begin += capacity
            pages = min(2 * pages, LARGEST_SEGMENT_PAGES)

    def write(self, path: Path) -> None:
        """Write the file."""
        self._header["end_bytes"] = self._end
        start = (self._header.tobytes() + self._names.tobytes()).ljust(self._first, b"\0")
        path.write_bytes(b"".join([start, *self._parts]))

    def _new(self, struct: str, count: int = 1) -> Records:
        return np.zeros(count, self._layout.types[struct])


def write_recording(folder: Path, ranks: int, destinations: int, regions: int, ranks_a_host: int, seed: int = 1) -> int:
    """Write a recording.

    Returns:
        The bytes that all ranks sent.
    """
    layout = recording_layout()
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    sent = 0
    for first in range(0, ranks, ranks_a_host):
        host = f"host{first // ranks_a_host:05}"
        file = FileWriter(layout, host, "synthetic")
        for rank in range(first, min(first + ranks_a_host, ranks)):
            sent += _add_rank(file, layout, draw, rank, ranks, destinations, regions)
        file.write(folder / f"{host}.ibprof")
    return sent


def _add_rank(
    file: FileWriter,
    layout: RecordingLayout,
    draw: np.random.Generator,
    rank: int,
    ranks: int,
    destinations: int,
    regions: int,
) -> int:
    file.begin_process(
        pid=1000 + rank,
        flags=layout.constants["IBP_PROCESS_FINALIZED"],
        world_rank=rank,
        world_size=ranks,
        source=layout.constants["IBP_SOURCE_OPENMPI"],
        start_ns=START_NS,
        stop_ns=START_NS + RUN_NS,
        mpi=b"synthetic",
        command=b"./synthetic",
    )
    named = np.zeros(regions, layout.types["region"])
    named["name"] = [f"phase {region}".encode() for region in range(regions)]
    named["visits"], named["wall_ns"] = 100, RUN_NS // regions
    named["first_ns"], named["last_ns"] = START_NS, START_NS + RUN_NS
    file.add("IBP_SEGMENT_REGIONS", named)
    # The peers are in random order, as in recordings of real programs.
    peers = (rank + 1 + draw.permutation(min(destinations, ranks - 1))) % ranks
    counters = np.zeros((regions, len(peers)), layout.types["counter"])
    origins = np.zeros((regions, 2), layout.types["origin"])
    origins["region"] = np.arange(regions)[:, None]
    origins["operation"] = 2, 3
    file.add("IBP_SEGMENT_ORIGINS", origins.ravel())
    alternate = (np.arange(len(peers)) + 1) % 2
    counters["origin"] = 2 * np.arange(regions)[:, None] + alternate
    counters["peer"] = peers
    counters["source"] = layout.constants["IBP_SOURCE_OPENMPI"]
    counters["messages"] = draw.integers(1, 1000, counters.shape)
    counters["bytes"] = counters["messages"] * draw.integers(8, 1 << 16, counters.shape).astype(np.uint64)
    file.add("IBP_SEGMENT_COUNTERS", counters.ravel())
    sizes = np.zeros((regions, 2), layout.types["sizes"])
    sizes["origin"] = np.arange(2 * regions).reshape(regions, 2)
    for place in range(2):
        sizes["messages"][:, place, 16] = np.where(alternate == place, counters["messages"], 0).sum(axis=1)
    file.add("IBP_SEGMENT_SIZES", sizes.ravel())
    marks = np.zeros(2, layout.types["mark"])
    marks["time_ns"] = START_NS, START_NS + RUN_NS
    marks["kind"] = layout.constants["IBP_MARK_START"], layout.constants["IBP_MARK_STOP"]
    marks["sent_bytes"][1], marks["sent_messages"][1] = counters["bytes"].sum(), counters["messages"].sum()
    file.add("IBP_SEGMENT_MARKS", marks)
    return int(counters["bytes"].sum())


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=10_000)
    parser.add_argument("--destinations", type=int, default=500)
    parser.add_argument("--regions", type=int, default=3)
    parser.add_argument("--ranks-a-host", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args(argv)
    sent = write_recording(
        wanted.folder, wanted.ranks, wanted.destinations, wanted.regions, wanted.ranks_a_host, wanted.seed
    )
    print(f"{sent} bytes sent by {wanted.ranks} ranks")


if __name__ == "__main__":
    main()
