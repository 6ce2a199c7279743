# SPDX-License-Identifier: Apache-2.0
"""Gaps of a recording that was copied from its nodes' own storage."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import numpy as np

from ibprof.native.recording_layout import recording_layout
from ibprof.recording.host_file import RecordingFile


def describe_copy(file: RecordingFile, process: np.void) -> Iterator[str]:
    """Yield the age of a process's counters, if it did not copy them itself at its end."""
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
