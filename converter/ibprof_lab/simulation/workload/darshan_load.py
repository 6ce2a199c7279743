# SPDX-License-Identifier: Apache-2.0
"""The I/O load of a job that Darshan recorded: size, number and time of its requests.

Source: the POSIX module of Darshan's logs (darshan-util manual, "Additional modules"). Darshan's POSIX module counts
all requests to the file system's client, including requests of MPI-IO and HDF5. `python -m
ibprof_lab.simulation.workload.darshan_load LOG` prints the load of a log as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ibprof.errors import InputError, MissingToolError, quote_found

READ_REQUEST = 256
"""Assumed size of a client's read request, in bytes; logs do not contain this size."""

_ENDING = ".darshan"
_LONGEST_S = 600
_MODULE = "POSIX"

_NOT_INSTALLED = 4
"""Exit status of this module as a process if PyDarshan is not installed."""


@dataclass(frozen=True, slots=True)
class DarshanLoad:
    """The I/O requests of a job.

    Attributes:
        requests: number of reads and writes, over all processes.
        bytes: sum of bytes read and bytes written.
        read_bytes: bytes read.
        span_ns: time from the first request's start to the last request's end.
    """

    processes: int
    requests: int
    bytes: int
    read_bytes: int
    span_ns: float

    @property
    def request_bytes(self) -> int:
        """Mean size of a request, bytes."""
        return max(round(self.bytes / self.requests), 1)

    @property
    def reads(self) -> int:
        """`Workload.reads` for this load: `READ_REQUEST` if more bytes are read than written; else 0."""
        return READ_REQUEST if 2 * self.read_bytes > self.bytes else 0

    def cycle_ns(self, clients: int) -> float:
        """Return the mean time between starts of a client's requests, if all clients have equally many requests."""
        return self.span_ns * clients / self.requests

    def describe(self, path: Path) -> str:
        """Return a sentence on the simulated load."""
        return (
            f"{path}: {self.requests:,} requests of {self.request_bytes:,} bytes by {self.processes:,} processes in "
            f"{self.span_ns / 1e9:.3g} s, {self.read_bytes / self.bytes:.0%} of the bytes read. They are simulated as "
            f"{'reads' if self.reads else 'writes'}, evenly over this time, without the job's bursts"
        )


def is_darshan_log(path: Path) -> bool:
    """Return True if a file name has the suffix of Darshan logs."""
    return path.name.endswith(_ENDING)


def read_darshan_load(path: Path) -> DarshanLoad:
    """Read a log with PyDarshan.

    Raises:
        MissingToolError: PyDarshan is not installed.
        InputError: the file is not a log, or has no requests.
    """
    with path.open("rb"):
        pass  # fail here if the file is missing: Darshan's library prints no message
    # A separate process reads the log: the library aborts on damaged logs.
    line = [sys.executable, "-m", __name__, str(path)]
    done = subprocess.run(line, capture_output=True, text=True, errors="replace", timeout=_LONGEST_S, check=False)
    if done.returncode == _NOT_INSTALLED:
        raise MissingToolError(f"{path}: logs of Darshan need PyDarshan: pip install darshan")
    if done.returncode:
        said = done.stderr.strip().splitlines()
        found = quote_found(said[-1]) if done.returncode > 0 and said else "a file that crashes Darshan's library"
        raise InputError(path, None, "a log of Darshan", found)
    load = DarshanLoad(**json.loads(done.stdout.splitlines()[-1]))
    if not load.requests or not load.bytes or load.span_ns <= 0:
        raise InputError(path, None, "requests with times in the module POSIX", f"{load.requests} requests")
    return load


def main() -> int:
    """Print the fields of `DarshanLoad` for the log in the first argument."""
    try:
        import darshan  # noqa: PLC0415  (an optional dependency)
    except ImportError:
        return _NOT_INSTALLED
    report = darshan.DarshanReport(sys.argv[1], read_all=False)
    if _MODULE in report.modules:
        report.mod_read_all_records(_MODULE, dtype="pandas")
    tables = [table for table in report.records.get(_MODULE, ()) if len(table["counters"])]
    written, read = (_sum(tables, f"POSIX_BYTES_{kind}") for kind in ("WRITTEN", "READ"))
    begin, end = _find_span(tables)
    sums = {
        "processes": int(report.metadata["job"]["nprocs"]),
        "requests": _sum(tables, "POSIX_WRITES") + _sum(tables, "POSIX_READS"),
        "bytes": written + read,
        "read_bytes": read,
        "span_ns": (end - begin) * 1e9,
    }
    print(json.dumps(sums))
    return 0


def _sum(tables: list[dict[str, Any]], counter: str) -> int:
    """Return the sum of a counter over files; unknown values, which are negative, are left out."""
    return sum(int(table["counters"][counter].clip(lower=0).sum()) for table in tables)


def _find_span(tables: list[dict[str, Any]]) -> tuple[float, float]:
    """Return first start and last end of all requests, seconds since the job's start. A file without requests has end 0
    and is left out.
    """
    starts, ends = [], []
    for table in tables:
        for kind in ("READ", "WRITE"):
            start, end = (table["fcounters"][f"POSIX_F_{kind}_{what}_TIMESTAMP"] for what in ("START", "END"))
            starts += start[end > 0].tolist()
            ends += end[end > 0].tolist()
    return min(starts, default=0.0), max(ends, default=0.0)


if __name__ == "__main__":
    sys.exit(main())
