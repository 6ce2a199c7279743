# SPDX-License-Identifier: Apache-2.0
"""The I/O load of a job that Darshan recorded: size, number and time of its requests.

Source: the POSIX module of Darshan's logs (darshan-util manual, "Additional modules"), which counts all requests that
reach the file system's client, of MPI-IO and HDF5 too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import InputError, MissingToolError, quote_found
from ibprof_lab.simulation.workload import darshan_sums

READ_REQUEST = 256
"""Bytes of what a client sends to be answered with what it reads; a log does not have them."""

_ENDING = ".darshan"
_LONGEST_S = 600


@dataclass(frozen=True, slots=True)
class DarshanLoad:
    """Requests of a job.

    Attributes:
        processes: of the job.
        requests: reads and writes, of all processes.
        bytes: moved by them.
        read_bytes: the part of them that was read.
        span_ns: from the first request's start to the last one's end.
    """

    processes: int
    requests: int
    bytes: int
    read_bytes: int
    span_ns: float

    @property
    def request_bytes(self) -> int:
        """Mean size of a request."""
        return max(round(self.bytes / self.requests), 1)

    @property
    def reads(self) -> int:
        """Bytes of what a client sends where most bytes are read; 0 where they are written."""
        return READ_REQUEST if 2 * self.read_bytes > self.bytes else 0

    def cycle_ns(self, clients: int) -> float:
        """Return the mean time from a client's request to its next, where the requests are spread over clients."""
        return self.span_ns * clients / self.requests

    def describe(self, path: Path) -> str:
        """Return what is simulated of the log, in a sentence."""
        return (
            f"{path}: {self.requests:,} requests of {self.request_bytes:,} bytes by {self.processes:,} processes in "
            f"{self.span_ns / 1e9:.3g} s, {self.read_bytes / self.bytes:.0%} of the bytes read. They are simulated as "
            f"{'reads' if self.reads else 'writes'}, evenly over this time: bursts within it are stronger"
        )


def is_darshan_log(path: Path) -> bool:
    """Return whether a file's name is that of a log of Darshan."""
    return path.name.endswith(_ENDING)


def read_darshan_load(path: Path) -> DarshanLoad:
    """Read a log with PyDarshan.

    Raises:
        MissingToolError: PyDarshan is not installed.
        InputError: the file is no log, or has no requests.
    """
    with path.open("rb"):
        pass  # Darshan's library has no message for a file that is missing
    # In a process of its own: the library aborts on damaged logs.
    line = [sys.executable, "-m", darshan_sums.__name__, str(path)]
    done = subprocess.run(line, capture_output=True, text=True, errors="replace", timeout=_LONGEST_S, check=False)
    if done.returncode == darshan_sums.NOT_INSTALLED:
        raise MissingToolError(f"{path}: logs of Darshan need PyDarshan: pip install darshan")
    if done.returncode:
        said = done.stderr.strip().splitlines()
        found = quote_found(said[-1]) if done.returncode > 0 and said else "what Darshan's library ends at"
        raise InputError(path, None, "a log of Darshan", found)
    sums = json.loads(done.stdout.splitlines()[-1])
    load = DarshanLoad(**sums)
    if not load.requests or not load.bytes or load.span_ns <= 0:
        raise InputError(path, None, "requests with times in the module POSIX", f"{load.requests} of them")
    return load
