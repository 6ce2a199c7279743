# SPDX-License-Identifier: Apache-2.0
"""The layout of a recording, as `ibprof_recording.h` describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ibprof.native.headers import recording_header

# The struct that each kind of segment holds.
_RECORDS = {
    "IBP_SEGMENT_PROCESS": "process",
    "IBP_SEGMENT_PORTS": "port",
    "IBP_SEGMENT_REGIONS": "region",
    "IBP_SEGMENT_ORIGINS": "origin",
    "IBP_SEGMENT_OBJECTS": "object",
    "IBP_SEGMENT_SITES": "site",
    "IBP_SEGMENT_COUNTERS": "counter",
    "IBP_SEGMENT_COUNTERS_OF_1": "counter_of_1",
    "IBP_SEGMENT_SIZES": "sizes",
    "IBP_SEGMENT_SIZES_OF_1": "sizes_of_1",
    "IBP_SEGMENT_MARKS": "mark",
    "IBP_SEGMENT_PAIRS": "pair",
    "IBP_SEGMENT_TRANSFERS": "transfer",
    "IBP_SEGMENT_HARDWARE": "hardware",
    "IBP_SEGMENT_ADDRESSES": "address",
    "IBP_SEGMENT_SNAPSHOTS": "snapshot",
    "IBP_SEGMENT_LAUNCH": "launch",
    "IBP_SEGMENT_GRIDS": "grid",
    "IBP_SEGMENT_DEMANDS": "demand",
    "IBP_SEGMENT_TIMES": "time",
    "IBP_SEGMENT_CHOICES": "choice",
    "IBP_SEGMENT_COLLECTIVE_SAMPLES": "collective_sample",
    "IBP_SEGMENT_MESSAGE_SAMPLES": "message_sample",
}


@dataclass(frozen=True, slots=True)
class RecordingLayout:
    """The header as seen from Python.

    Attributes:
        constants: integer defines and enumerators, by name.
        types: structured type of each struct, by name without `ibp_`.
        record_names: struct in a segment, by the number of the segment's kind.
    """

    constants: Mapping[str, int]
    types: Mapping[str, np.dtype[np.void]]
    record_names: Mapping[int, str]


@lru_cache(maxsize=1)
def recording_layout() -> RecordingLayout:
    """Read the installed header.

    Raises:
        MissingToolError: it is not installed.
    """
    header = recording_header()
    types = {name.removeprefix("ibp_"): record for name, record in header.types.items()}
    record_names = {header.constants[kind]: name for kind, name in _RECORDS.items()}
    return RecordingLayout(header.constants, types, record_names)
