# SPDX-License-Identifier: Apache-2.0
"""If a merge of many ranks drops samples, it drops all samples of a collective or message, never some."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ibprof.native.headers import recording_layout
from ibprof.profile.profile_data import Profile
from ibprof.recording import recorded_samples
from ibprof.recording.recording_reader import read_recording
from ibprof_testing.samples.recordings import Process, counter, make_recording

RANKS, INSTANCES, TAGS = 6, 512, 32


def make_samples(rank: int) -> dict[int, bytes]:
    """Return a rank's samples (kind of record -> bytes): collectives, and messages with each tag to the next rank."""
    types = recording_layout().types
    collectives = np.zeros(INSTANCES, types["collective_sample"])
    collectives["communicator"], collectives["number"] = 7, np.arange(INSTANCES)
    collectives["size"], collectives["member"], collectives["level"] = RANKS, rank, 2
    messages = np.zeros(INSTANCES, types["message_sample"])
    messages["communicator"], messages["number"] = 7, np.arange(INSTANCES) // TAGS
    messages["tag"], messages["peer"], messages["level"] = np.arange(INSTANCES) % TAGS, (rank + 1) % RANKS, 3
    return {22: collectives.tobytes(), 23: messages.tobytes()}


def read(folder: Path) -> Profile:
    for host in range(2):
        ranks = range(host, RANKS, 2)
        processes = [Process(rank, RANKS, counters=[[counter(0, 8)]], samples=make_samples(rank)) for rank in ranks]
        make_recording(folder, processes, host=f"n{host}")
    return read_recording(folder)


def test_few_samples_all_stay(tmp_path: Path) -> None:
    run = read(tmp_path)
    assert len(run.collective_samples.rank) == len(run.message_samples.rank) == RANKS * INSTANCES
    assert set(run.collective_samples.level) == {2}


def test_of_many_whole_instances_stay_and_stand_for_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_samples, "MOST_SAMPLES", RANKS * INSTANCES // 4)
    run = read(tmp_path)
    collectives, messages = run.collective_samples, run.message_samples
    _, members = np.unique(collectives.number, return_counts=True)
    assert set(members) == {RANKS}
    assert 0.5 * INSTANCES / 4 < len(members) < 2 * INSTANCES / 4
    assert (set(collectives.level), set(messages.level)) == ({2 + 2}, {3 + 2})
    # Messages with 16 successive tags, such as the messages of a Waitall, are kept or dropped together.
    _, together = np.unique(np.stack([messages.number, messages.tag // 16]), axis=1, return_counts=True)
    assert set(together) == {16 * RANKS}


def test_a_killed_process_replaced_one_of_its_longest_messages(tmp_path: Path) -> None:
    """A kill left a record without a communicator. All records are in use, so more may have been replaced."""
    layout = recording_layout()
    longest = layout.constants["IBP_LONGEST_MAX"]
    messages = np.zeros(longest + 1, layout.types["message_sample"])
    messages["communicator"], messages["number"] = 7, np.arange(longest + 1)
    messages["level"], messages["score_ns"] = layout.constants["IBP_LEVEL_LONG"], 1000 + np.arange(longest + 1)
    messages["communicator"][1] = 0
    messages["level"][-1], messages["score_ns"][-1] = 3, 500
    make_recording(tmp_path, [Process(0, 1, counters=[[counter(0, 8)]], samples={23: messages.tobytes()})])
    samples = read_recording(tmp_path).message_samples
    assert samples.is_long[samples.level == 3].tolist() == [False]
