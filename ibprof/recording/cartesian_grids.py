# SPDX-License-Identifier: Apache-2.0
"""The Cartesian grids in a file of a recording."""

from __future__ import annotations

import numpy as np

from ibprof.errors import InputError
from ibprof.native.recording_layout import recording_layout
from ibprof.profile.profile_data import Grid
from ibprof.recording.host_file import RecordingFile


def read_grids(file: RecordingFile) -> list[tuple[Grid, ...]]:
    """Return the positions of each process of a file on the grids that it made.

    Raises:
        InputError: a grid has no dimension, or a process is not on it.
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
