# SPDX-License-Identifier: Apache-2.0
"""Files of version 0.1.0 are read as version 0.1.0 read them. In newer files, unknown records are skipped."""

from __future__ import annotations

import json
import lzma
import tarfile
from pathlib import Path

import numpy as np
import pytest

from ibprof.load import load_profile
from ibprof.native.headers import recording_layout
from ibprof.profile.profile_summary import summarize
from ibprof.recording.host_file import Records
from ibprof.recording.recording_reader import read_recording
from ibprof_testing.paths import ROOT
from ibprof_testing.samples.recordings import PAGE, Process, counter, make_recording

OLD = ROOT / "tests" / "data" / "recordings" / "0.1.0"
REWORDED = ("name", "not_seen")


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
@pytest.mark.parametrize("form", ["recording", "profile"])
def test_files_of_0_1_0_read_as_they_did(form: str, name: str, tmp_path: Path) -> None:
    if form == "recording":
        path = tmp_path / f"{name}.ibprof"
        path.write_bytes(lzma.decompress((OLD / f"{name}.ibprof.xz").read_bytes()))
    else:
        path = tmp_path / f"{name}.otf2"
        with tarfile.open(OLD / f"{name}.otf2.tar.xz") as archive:
            archive.extractall(tmp_path, filter="data")
    then = json.loads((OLD / f"{name}.json").read_text())
    now = summarize(load_profile(path))
    compared = [key for key in then if key not in REWORDED]
    assert {key: now[key] for key in compared} == {key: then[key] for key in compared}
    assert now["bytes"] > 0


def segments(data: bytearray) -> Records:
    """Return the segments in a file's bytes."""
    record = recording_layout().types["segment"]
    whole = np.frombuffer(data, np.uint8)
    heads = whole[: len(whole) // PAGE * PAGE].reshape(-1, PAGE)[:, : record.itemsize].view(record)[:, 0]
    chosen: Records = heads[heads["magic"] == recording_layout().constants["IBP_SEGMENT_MAGIC"]]
    return chosen


def change_records(path: Path, kind: str, record_bytes: int, number: int | None = None) -> None:
    """Change the size of the records of a kind, and the kind's number, as if another version had written them."""
    layout = recording_layout()
    data = bytearray(path.read_bytes())
    for segment in segments(data):
        if segment["kind"] != layout.constants[kind]:
            continue
        begin = int(segment["offset"])
        head = layout.types["segment"].itemsize
        size, used = int(segment["record_bytes"]), int(segment["used"])
        old = np.frombuffer(bytes(data[begin + head : begin + head + used * size]), np.uint8).reshape(used, size)
        new = np.full((used, record_bytes), 0xAB, np.uint8)
        kept = min(size, record_bytes)
        new[:, :kept] = old[:, :kept]
        segment["record_bytes"], segment["version"] = record_bytes, 9
        segment["capacity"] = (int(segment["bytes"]) - head) // record_bytes
        segment["kind"] = number or segment["kind"]
        data[begin : begin + head + new.size] = segment.tobytes() + new.tobytes()
    path.write_bytes(data)


def make(folder: Path) -> Path:
    process = Process(0, counters=[[counter(1, 5), counter(2, 7)]], fields={"notes": b"said\n", "marks_seen": 3})
    return make_recording(folder, [process])


@pytest.mark.parametrize("kind", ["counter", "process", "region", "origin"])
def test_of_longer_records_the_known_part_is_read(kind: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    expected = summarize(read_recording(path))
    plural = {"process": "PROCESS"}.get(kind, f"{kind.upper()}S")
    change_records(path, f"IBP_SEGMENT_{plural}", recording_layout().types[kind].itemsize + 24)
    assert summarize(read_recording(path)) == expected


def test_what_shorter_records_lack_is_zero(tmp_path: Path) -> None:
    path = make(tmp_path)
    record = recording_layout().types["process"]
    assert record.fields is not None
    change_records(path, "IBP_SEGMENT_PROCESS", record.fields["notes"][1])
    change_records(path, "IBP_SEGMENT_COUNTERS", 24)
    run = read_recording(path)
    assert (run.ranks[0].notes, run.ranks[0].marks_seen) == ((), 3)
    assert (run.counters.bytes.tolist(), run.counters.messages.tolist()) == ([5, 7], [0, 0])


def test_an_unknown_kind_is_skipped_and_said(tmp_path: Path) -> None:
    path = make(tmp_path)
    change_records(path, "IBP_SEGMENT_COUNTERS", 8, number=4321)
    run = read_recording(path)
    assert not len(run.counters.bytes)
    assert run.ranks[0].notes[1:] == ("ibprof 9.8.7 recorded more than this version can read (segments of kind 4321)",)


def test_a_longer_header_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    path = make(tmp_path)
    expected = summarize(read_recording(path))
    layout = recording_layout()
    data = bytearray(path.read_bytes())
    size, names = layout.types["file_header"].itemsize, layout.constants["IBP_OPERATION_NAME_BYTES"]
    header = np.frombuffer(data[:size], layout.types["file_header"]).copy()
    header["header_bytes"] = size + 64
    used = names * int(header["operation_count"][0])
    data[size + 64 : size + 64 + used] = data[size : size + used]
    data[: size + 64] = header.tobytes() + b"\xab" * 64
    path.write_bytes(data)
    assert summarize(read_recording(path)) == expected
