# SPDX-License-Identifier: Apache-2.0
"""Processes of a recording as ranks: numbers, notes, and positions on Cartesian grids."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import numpy as np

from ibprof.errors import InputError
from ibprof.native.headers import recording_layout
from ibprof.profile.profile_data import Grid
from ibprof.recording.host_file import RecordingFile


def read_grids(file: RecordingFile) -> list[tuple[Grid, ...]]:
    """Return the positions of each process of a file on its grids.

    Raises:
        InputError: a grid has no dimension, or its process is not on it.
    """
    records, owner = file.records("IBP_SEGMENT_GRIDS")
    most = recording_layout().constants["IBP_GRID_DIMENSIONS"]
    grids: list[list[Grid]] = [[] for _ in file.processes]
    for record, process in zip(records, owner.tolist(), strict=True):
        count = int(record["dimensions"])
        if not 1 <= count <= most:
            raise InputError(file.path, None, f"a grid of 1 to {most} dimensions", str(count))
        extents, place = record["extent"][:count], record["place"][:count]
        if not ((place >= 0) & (place < extents)).all():
            raise InputError(file.path, None, f"a place on a grid of {extents.tolist()}", str(place.tolist()))
        periodic = (int(record["periodic"]) >> np.arange(count)) & 1
        grids[process].append(Grid(count, tuple(extents.tolist()), tuple(periodic.tolist()), tuple(place.tolist())))
    return [tuple(each) for each in grids]


def describe_copy(file: RecordingFile, process: np.void) -> Iterator[str]:
    """Yield the age of a process's counters, if the process did not copy them itself at its end."""
    if not file.storage or process["flags"] & recording_layout().constants["IBP_PROCESS_FINALIZED"]:
        return
    if file.on_node:
        yield (
            f"its counters are exact, read from the storage of its node ({file.storage}), their only complete copy; "
            "run `ibprof collect --from-node` on that node to copy them"
        )
        return
    moment = datetime.fromtimestamp(int(process["copied_ns"]) / 1e9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    yield (
        f"its counters are those of {moment}, when they were last copied from the storage of its node "
        f"({file.storage}), which cannot be read from here. Later traffic is missing; "
        "run `ibprof collect --from-node` on that node to copy it"
    )
    if process["copy_begun_ns"] != process["copied_ns"]:
        yield "it ended while its counters were copied, so some are newer than others"
