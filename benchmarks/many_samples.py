# SPDX-License-Identifier: Apache-2.0
"""Measure time and memory of merging many ranks' recordings, with and without samples.

Run it from a checkout, with ibprof installed. 4,096 ranks take 1 GB in the folder:

    python benchmarks/many_samples.py [--ranks 4096] [--per-host 64] [--folder DIR]

Each rank's samples fill the recorder's table. Every collective has all ranks as members, and every message goes to the
next rank.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ibprof.native.headers import recording_layout
from ibprof_testing.samples.recordings import Process, counter, make_recording

COLLECTIVES, MESSAGES = 1 << 10, 1 << 11

MERGE = """
import resource, sys, time
from pathlib import Path
from ibprof.recording.recording_reader import read_recording
begun = time.process_time()
run = read_recording(Path(sys.argv[1]))
took = time.process_time() - begun
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(f"{len(run.collective_samples.rank)} and {len(run.message_samples.rank)} samples: {took:.2f} s, {most} MB")
"""


def make_samples(rank: int, ranks: int) -> dict[int, bytes]:
    """Return the sample records of one rank: kind of record -> bytes."""
    types = recording_layout().types
    collectives, messages = (
        np.zeros(COLLECTIVES, types["collective_sample"]),
        np.zeros(MESSAGES, types["message_sample"]),
    )
    number = np.arange(COLLECTIVES, dtype=np.uint64)
    collectives["size"], collectives["member"] = ranks, rank
    half = MESSAGES // 2
    messages["side"][half:] = 1
    messages["peer"][:half], messages["peer"][half:] = (rank + 1) % ranks, (rank - 1) % ranks
    for records, numbers in ((collectives, number), (messages, np.tile(number[:half], 2))):
        records["communicator"], records["number"], records["level"] = 7, numbers * 16, 4
        begun = numbers.astype(np.int64) * 1_000_000 + rank
        for name, after in (("start_ns", 0), ("post_ns", 0), ("enter_ns", 0), ("exit_ns", 5000)):
            if name in (records.dtype.names or ()):
                records[name] = begun + after
    return {22: collectives.tobytes(), 23: messages.tobytes()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--per-host", type=int, default=64)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        for what, is_sampled in (("with samples", True), ("without", False)):
            folder = Path(name) / what.replace(" ", "-")
            for first in range(0, given.ranks, given.per_host):
                ranks = range(first, min(first + given.per_host, given.ranks))
                processes = [
                    Process(
                        rank,
                        given.ranks,
                        counters=[[counter((rank + 1) % given.ranks, 8)]],
                        samples=make_samples(rank, given.ranks) if is_sampled else {},
                    )
                    for rank in ranks
                ]
                make_recording(folder, processes, host=f"n{first // given.per_host}")
            print(f"{given.ranks} ranks {what}:", end=" ", flush=True)
            subprocess.run([sys.executable, "-c", MERGE, folder], check=True)


if __name__ == "__main__":
    main()
