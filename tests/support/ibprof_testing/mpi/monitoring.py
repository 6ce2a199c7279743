# SPDX-License-Identifier: Apache-2.0
"""Use Open MPI's own count of messages as an independent reference.

Open MPI's component `pml/monitoring` works in the same layer as ibprof's hooks, and shares no code with them. At
MPI_Finalize, each rank writes a file. The file has lines `E sender receiver BYTES bytes N msgs sent HISTOGRAM` for
messages of the program and of collectives. Lines with `I` are for messages that the component considers internal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ibprof_testing.mpi.matrices import Matrix, add_up
from ibprof_testing.mpi.mpis import Mpi, run_mpi

LINE = re.compile(r"^[EI]\s+(\d+)\s+(\d+)\s+(\d+) bytes\s+(\d+) msgs sent", re.MULTILINE)
ONE_FILE_A_RANK = 3

# Number and size of the probe messages that libibprof.so sends to its own rank.
PROBES, PROBE_BYTES = 2, 7


def run_monitored(
    mpi: Mpi,
    ranks: int,
    command: Sequence[str | Path],
    folder: Path,
    recording: Path | None = None,
    mca: Mapping[str, str] | None = None,
) -> Matrix:
    """Run a command under Open MPI's monitoring; return the traffic between ranks.

    Args:
        folder: a new folder for the monitoring's files.
        recording: folder for ibprof's recording of the same run; None for no recording.
    """
    folder.mkdir()
    switch_on: dict[str, str | int] = {
        "pml": "ob1,monitoring",
        "pml_monitoring_enable": 1,
        "pml_monitoring_enable_output": ONE_FILE_A_RANK,
        "pml_monitoring_filename": str(folder / "o"),
    }
    run_mpi(mpi, ranks, command, mca=switch_on | dict(mca or {}), recording=recording)
    rows: list[tuple[int, int, int, int]] = []
    for rank in range(ranks):
        for found in LINE.findall((folder / f"o.{rank}.prof").read_text()):
            sender, receiver, size, messages = map(int, found)
            rows.append((sender, receiver, size, messages))
        if recording:
            rows.append((rank, rank, -PROBES * PROBE_BYTES, -PROBES))
    return add_up(rows)
