# SPDX-License-Identifier: Apache-2.0
"""What a recording that was copied from its nodes' own storage may lack."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import numpy as np

from ibprof.native.recording_layout import recording_layout
from ibprof.recording.host_file import RecordingFile


def describe_copy(file: RecordingFile, process: np.void) -> Iterator[str]:
    """Say how old the counters of a process are that did not live to copy them itself at its end."""
    if not file.storage or process["flags"] & recording_layout().constants["IBP_PROCESS_FINALIZED"]:
        return
    if file.on_node:
        yield (
            f"its counters are exact, read from the storage of its node ({file.storage}): nowhere else are they whole; "
            "`ibprof collect --from-node` on that node brings them"
        )
        return
    moment = datetime.fromtimestamp(int(process["copied_ns"]) / 1e9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    yield (
        f"its counters are those of {moment}, when they were last copied from the storage of its node "
        f"({file.storage}), which is not to be seen from here: what it sent later is missing, unless "
        "`ibprof collect --from-node` on that node brings it"
    )
    if process["copy_begun_ns"] != process["copied_ns"]:
        yield "it ended while its counters were copied: some are newer than others"
