# SPDX-License-Identifier: Apache-2.0
"""Archiving and reading changes no profile. Other tools read the same numbers. No other file is overwritten."""

from __future__ import annotations

import re
import resource
import subprocess
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import _otf2
import hypothesis.strategies as st
import numpy as np
import otf2
import pytest
from hypothesis import given

from ibprof.archive import archive_reader as archive_read
from ibprof.archive.otf2_archive import read_archive, write_archive
from ibprof.errors import InputError, UsageError
from ibprof.load import load_profile
from ibprof.native import libraries
from ibprof.profile.profile_data import (
    SIZE_BINS,
    Counters,
    Demands,
    Direction,
    HardwareCounter,
    Host,
    Interface,
    Kind,
    Mark,
    MarkKind,
    MessageSamples,
    MessageSizes,
    Opcode,
    Port,
    PortPair,
    Profile,
    Rank,
    RegionTimes,
    Site,
    Source,
    Transfers,
)
from ibprof.profile.profile_rows import COLUMN_TYPES, order_rows
from ibprof.profile.row_arrays import RowArrays
from ibprof.profile.scheduler_job import SchedulerJob
from ibprof.recording.recording_reader import read_recording
from ibprof.sites.code_location import Frame
from ibprof_testing.lab.synthetic_recording import write_recording
from ibprof_testing.machine import find_program
from ibprof_testing.samples.profiles import Count, make_host, make_port, make_profile, make_rank

# OTF2's C library stores any text without NUL.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NUMBER = st.integers(0, 2**64 - 1)
TIME = st.integers(1, 2**62)
SMALL = st.integers(0, 2**31 - 1)
HARDWARE = st.lists(st.builds(HardwareCounter, TEXT, NUMBER, st.none() | NUMBER), max_size=2).map(tuple)
PORT = st.builds(
    Port,
    device=TEXT,
    port=SMALL,
    lid=st.none() | SMALL,
    lmc=SMALL,
    node_guid=TEXT,
    port_guid=TEXT,
    gids=st.lists(TEXT, max_size=3).map(tuple),
    rate_gbps=st.floats(allow_nan=False),
    link_layer=TEXT,
    state=SMALL,
    hardware=HARDWARE,
)

INTERFACE = st.builds(
    Interface,
    name=TEXT,
    device=TEXT,
    type=SMALL,
    mtu=SMALL,
    speed_mbps=st.none() | SMALL,
    numa_node=st.none() | SMALL,
    is_up=st.booleans(),
    hardware=HARDWARE,
    virtual_mbps=st.none() | SMALL,
)
"""An archive of a version without `virtual_mbps` equals an archive with the value None."""


def assert_same(one: Profile, other: Profile) -> None:
    for part in fields(Profile):
        given, theirs = getattr(one, part.name), getattr(other, part.name)
        if not isinstance(given, RowArrays):
            assert given == theirs, part.name
            continue
        for name, mine in given.columns().items():
            read = getattr(theirs, name)
            assert mine.dtype == read.dtype, (part.name, name)
            np.testing.assert_array_equal(mine, read, err_msg=f"{part.name} {name}")


def columns(rows: list[tuple[Any, ...]], names: tuple[str, ...]) -> dict[str, Any]:
    turned = zip(*rows, strict=True) if rows else [()] * len(names)
    return {name: np.array(column, COLUMN_TYPES[name]) for name, column in zip(names, turned, strict=True)}


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    regions, operations = (draw(st.lists(TEXT, min_size=1, max_size=4, unique=True)) for _ in range(2))
    devices = (st.lists(each, max_size=2).map(tuple) for each in (PORT, INTERFACE))
    host = st.builds(Host, TEXT, *devices)
    hosts = draw(st.lists(host, min_size=1, max_size=3))
    size = draw(st.integers(1, 6))
    numbers = sorted(draw(st.sets(st.integers(0, size - 1), min_size=1)))
    rest: dict[str, st.SearchStrategy[Any]] = {
        "host": st.integers(0, len(hosts) - 1),
        "start_ns": TIME,
        "stop_ns": st.none() | TIME,
    }
    rest |= {"notes": st.lists(TEXT, max_size=2).map(tuple), "source": st.sampled_from(Source)}
    rest |= dict.fromkeys(("lost_bytes", "lost_messages", "off_ns", "marks_seen", "queue_pairs_unseen"), NUMBER)
    ranks = [draw(st.builds(Rank, rank=st.just(number), pid=SMALL, thread_level=SMALL, **rest)) for number in numbers]
    rank = st.sampled_from(numbers)
    frames = st.lists(st.builds(Frame, TEXT, TEXT, SMALL), max_size=3).map(tuple)
    place = st.builds(Site, TEXT, SMALL, TEXT, TEXT, NUMBER, build_id=TEXT, name=TEXT)
    around = st.fixed_dictionaries({"inlined_in": frames}) | st.fixed_dictionaries(
        {"callers": st.lists(place, max_size=3).map(tuple)}
    )
    site = st.builds(lambda site, around: replace(site, **around), place, around)
    sites = draw(st.lists(site, max_size=3, unique=True))
    call = rank, *(st.integers(0, len(names) - 1) for names in (regions, operations)), st.integers(0, len(sites))
    tag = st.integers(0, len(Direction) - 1), st.integers(0, len(Kind) - 1)
    counter_key = st.tuples(*call, *tag, st.integers(0, len(Source) - 1), st.integers(0, 2**32 - 1))
    counters = [(*key, *value) for key, value in draw(st.dictionaries(counter_key, st.tuples(NUMBER, NUMBER))).items()]
    times = draw(st.dictionaries(st.tuples(*call[:2]), st.tuples(NUMBER, NUMBER, NUMBER, NUMBER)))
    size_row = st.dictionaries(st.integers(0, SIZE_BINS - 1), st.integers(1, 2**64 - 1), min_size=1, max_size=3)
    sizes = draw(st.dictionaries(st.tuples(*call, *tag), size_row, max_size=4))
    messages = np.zeros((len(sizes), SIZE_BINS), np.uint64)
    for row, found in enumerate(sizes.values()):
        messages[row, list(found)] = list(found.values())
    mark = st.builds(Mark, rank, TIME, st.sampled_from(MarkKind), call[1], NUMBER, NUMBER, NUMBER, NUMBER)
    lid = st.none() | SMALL
    pair = st.builds(PortPair, st.integers(0, len(hosts) - 1), TEXT, SMALL, lid, TEXT, lid, TEXT)
    pairs = draw(st.lists(pair, max_size=3, unique=True))
    moved = st.tuples(*call[:2], st.integers(0, len(Opcode) - 1), st.integers(0, max(len(pairs) - 1, 0)))
    transfers = draw(st.dictionaries(moved, st.tuples(NUMBER, NUMBER), max_size=4 if pairs else 0))
    asked = draw(st.dictionaries(st.tuples(*call, NUMBER), st.tuples(NUMBER, NUMBER), max_size=4))
    keys = ("rank", "region", "operation", "site", "direction", "kind")
    return Profile(
        name=draw(TEXT),
        mpi=draw(TEXT),
        command=draw(TEXT),
        job=draw(TEXT),
        world_size=size,
        operations_asked=draw(TEXT),
        hosts=tuple(hosts),
        ranks=tuple(ranks),
        regions=tuple(regions),
        operations=tuple(operations),
        counters=order_rows(Counters(**columns(counters, (*keys, "source", "peer", "bytes", "messages")))),
        region_times=order_rows(
            RegionTimes(
                **columns(
                    [(*key, *value) for key, value in times.items()],
                    ("rank", "region", "visits", "wall_ns", "first_ns", "last_ns"),
                )
            )
        ),
        sizes=order_rows(MessageSizes(**columns(list(sizes), keys), messages=messages)),
        marks=tuple(sorted(draw(st.lists(mark, max_size=5)), key=lambda mark: mark.rank)),
        pairs=tuple(pairs),
        demands=order_rows(
            Demands(
                **columns([(*key, *value) for key, value in asked.items()], (*keys[:4], "partner", "bytes", "calls"))
            )
        ),
        scheduler=draw(st.builds(SchedulerJob, *[TEXT] * len(fields(SchedulerJob)))),
        sites=tuple(sites),
        sites_without_lines=tuple(draw(st.lists(TEXT, max_size=2))),
        transfers=order_rows(
            Transfers(
                **columns(
                    [(*key, *value) for key, value in transfers.items()],
                    ("rank", "region", "opcode", "pair", "bytes", "messages"),
                )
            )
        ),
    )


@given(profiles())
def test_a_profile_survives_its_archive(run: Profile) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "profile.otf2"
        write_archive(run, path)
        assert_same(run, read_archive(path))


SAMPLE = make_profile(
    [
        Count(0, 1, 2**63, messages=3),
        Count(0, 1, 5, direction=Direction.RECEIVED),
        Count(1, 0, 7, operation=1, region=1, direction=Direction.FETCHED),
        Count(1, 0, 9, operation=1, region=1, kind=Kind.CONTROL),
    ],
    ranks=[make_rank(0, start_ns=100, stop_ns=900), make_rank(1, start_ns=120, stop_ns=800)],
    hosts=[make_host("node7", make_port(12, 0xABC))],
    regions=("main", "exchange"),
    operations=("SEND", "GET"),
    world_size=3,
)


def print_archive(path: Path, *options: str) -> str:
    program = find_program("otf2-print", package="otf2-tools")
    return subprocess.run([program, *options, path], capture_output=True, text=True, check=True).stdout


def test_otf2_print_shows_the_numbers_of_the_profile(tmp_path: Path) -> None:
    """OTF2's own tool, not ibprof's reader, reads and prints the events."""
    write_archive(SAMPLE, tmp_path / "profile.otf2")
    found = []
    entered: dict[str, list[str]] = {"0": [], "1": []}
    peer: dict[str, str] = {}
    for line in print_archive(tmp_path / "profile.otf2").splitlines():
        kind, location = [*line.split()[:2], "", ""][:2]
        texts, value = re.findall(r'"([\w ]+)"', line), line.rpartition(" ")[2]
        if kind == "ENTER":
            entered[location].append(texts[0])
        elif kind == "LEAVE":
            entered[location].pop()
        elif kind == "PARAMETER_UINT64":
            peer[location] = f"{texts[0]} {value}"
        elif kind == "METRIC":
            assert [text.partition(" ")[0] for text in texts] == ["bytes", "messages"]
            tag = texts[0].partition(" ")[2]
            numbers = map(int, re.findall(r"UINT64; (\d+)", line))
            found.append((int(location), *entered[location], peer[location], tag, *numbers))
    assert sorted(found) == [
        (0, "main", "SEND", "destination 1", "sent user openmpi", 2**63, 3),
        (0, "main", "SEND", "received from 1", "received user openmpi", 5, 1),
        (1, "exchange", "GET", "destination 0", "sent control openmpi", 9, 1),
        (1, "exchange", "GET", "fetched from 0", "fetched user openmpi", 7, 1),
    ]


def test_otf2_print_shows_hosts_ports_and_ranks(tmp_path: Path) -> None:
    write_archive(SAMPLE, tmp_path / "profile.otf2")
    shown = print_archive(tmp_path / "profile.otf2", "-G")
    assert re.search(r'SYSTEM_TREE_NODE .*"node7".*Class: "node"', shown)
    assert re.search(r'SYSTEM_TREE_NODE .*"mlx5_0 port 1".*Class: "port".*Parent: "node::node7"', shown)
    assert re.search(r'SYSTEM_TREE_NODE_PROPERTY .*"ibprof::lid".*Value: 12$', shown, re.MULTILINE)
    assert re.search(r'LOCATION .*Name: "rank 1".*# Events: 8,', shown)
    assert re.search(r"Ticks per Seconds: 1000000000, Global Offset: 100, Length: 800", shown)


def test_each_otf2_library_writes_the_same_and_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries are ibprof's own, the library of PyPI's package otf2, and the system's older library."""
    site = Site("solve.c", 17, "solve", "a.out", 2**63, build_id="ab", name="halo")
    sites = (replace(site, callers=(replace(site, line=3), replace(site, function="main"))),)
    ranks = tuple(replace(rank, notes=("-1", "ä")) for rank in SAMPLE.ranks)
    run = replace(SAMPLE, sites=sites, ranks=ranks, counters=order_rows(SAMPLE.counters))
    shown = []
    names = [str(files("ibprof") / "lib" / "libibprof_otf2.so"), "libopen-trace-format2.so.10"]
    for library in [*names, *map(str, Path(_otf2.__file__).parent.glob("_otf2*.so"))]:
        monkeypatch.setattr(libraries, "find_otf2_libraries", lambda library=library: [library])
        forget_library()
        write_archive(run, tmp_path / "profile.otf2")
        assert_same(run, read_archive(tmp_path / "profile.otf2"))
        shown.append(print_archive(tmp_path / "profile.otf2", "-G") + print_archive(tmp_path / "profile.otf2"))
    forget_library()
    assert len(shown) == 3
    assert len(set(shown)) == 1
    assert "METRIC" in shown[0]


def forget_library() -> None:
    libraries.load_otf2.cache_clear()
    libraries._load_functions.cache_clear()


def test_times_never_decrease_even_when_the_clock_was_set_back(tmp_path: Path) -> None:
    marks = (Mark(0, 500, MarkKind.OFF, 0, 0, 0, 0, 0), Mark(0, 50, MarkKind.ON, 0, 0, 0, 0, 0))
    run = replace(SAMPLE, marks=marks)
    write_archive(run, tmp_path / "profile.otf2")
    with otf2.reader.open(str(tmp_path / "profile.otf2")) as trace:
        times = [event.time for location, event in trace.events if location.name == "rank 0"]
    assert times == sorted(times)
    assert read_archive(tmp_path / "profile.otf2").marks == marks


def test_more_ranks_than_a_process_may_have_files_open(tmp_path: Path) -> None:
    run = make_profile([Count(rank, 0, rank + 1) for rank in range(100)], [make_rank(rank) for rank in range(100)])
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 20, before[1]))
    try:
        write_archive(run, tmp_path / "profile.otf2")
        assert_same(run, read_archive(tmp_path / "profile.otf2"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_an_archive_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "profile.otf2"
    write_archive(SAMPLE, path)
    write_archive(replace(SAMPLE, command="second", ranks=SAMPLE.ranks[:1]), path)
    assert read_archive(path).command == "second"
    assert sorted(item.name for item in tmp_path.rglob("*")) == ["0.def", "0.evt", "profile", "profile.def", path.name]


@pytest.mark.parametrize("taken", ["profile.otf2", "profile/notes.txt", "profile"])
def test_other_files_are_never_replaced(taken: str, tmp_path: Path) -> None:
    (tmp_path / taken).parent.mkdir(exist_ok=True)
    (tmp_path / taken).write_text("mine")
    with pytest.raises(InputError):
        write_archive(SAMPLE, tmp_path / "profile.otf2")
    assert (tmp_path / taken).read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_names_and_folders_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ends with \.otf2"):
        write_archive(SAMPLE, tmp_path / "profile")
    with pytest.raises(InputError, match="nowhere"):
        write_archive(SAMPLE, tmp_path / "nowhere" / "profile.otf2")


def test_an_archive_of_another_tool_is_refused(tmp_path: Path) -> None:
    with otf2.writer.open(str(tmp_path), archive_name="other", timer_resolution=1) as trace:
        node = trace.definitions.system_tree_node("node")
        group = trace.definitions.location_group("process", system_tree_parent=node)
        trace.event_writer("thread", group=group)
    with pytest.raises(InputError, match=r"other\.otf2: expected a profile of ibprof"):
        read_archive(tmp_path / "other.otf2")


@pytest.mark.parametrize("content", [b"", b"\3BOTF2", b"text\n", bytes(1000)])
def test_what_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "profile.otf2"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_archive(path)
    with pytest.raises(InputError):
        load_profile(path)


@pytest.mark.parametrize(
    "part", ["profile.def", "profile/0.evt", "profile/0.def", "profile/samples.npz", "profile.otf2"]
)
def test_a_damaged_archive_is_refused(part: str, tmp_path: Path) -> None:
    """One file of the archive is empty, truncated, filled with zeros, or missing."""
    path = tmp_path / "profile.otf2"
    write_archive(replace(SAMPLE, message_samples=make_samples(5)), path)
    whole = (tmp_path / part).read_bytes()
    for left in (b"", whole[: len(whole) // 2], bytes(len(whole))):
        (tmp_path / part).write_bytes(left)
        with pytest.raises(InputError):
            read_archive(path)
    (tmp_path / part).unlink()
    with pytest.raises(InputError):
        read_archive(path)


def make_samples(number: int) -> MessageSamples:
    rows = {name: np.zeros(number, column) for name, column in MessageSamples.column_types().items()}
    return MessageSamples(**rows)


def test_samples_of_another_profile_are_refused(tmp_path: Path) -> None:
    for folder, number in (("one", 5), ("other", 4)):
        (tmp_path / folder).mkdir()
        write_archive(replace(SAMPLE, message_samples=make_samples(number)), tmp_path / folder / "profile.otf2")
    assert len(read_archive(tmp_path / "other" / "profile.otf2").message_samples.rank) == 4
    (tmp_path / "one" / "profile" / "samples.npz").replace(tmp_path / "other" / "profile" / "samples.npz")
    with pytest.raises(InputError, match="expected 4 samples of a profile, found 5"):
        read_archive(tmp_path / "other" / "profile.otf2")


def test_a_recording_as_a_large_job_leaves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recording contains several hosts, segments and batches. The peers of each rank are not sorted."""
    sent = write_recording(tmp_path / "r.ibprof", ranks=40, destinations=30, regions=3, ranks_a_host=16)
    run = read_recording(tmp_path / "r.ibprof")
    assert (len(run.counters.bytes), sum(run.counters.bytes.tolist())) == (40 * 30 * 3, sent)
    write_archive(run, tmp_path / "r.otf2")
    monkeypatch.setattr(archive_read, "_BATCH_EVENTS", 500)
    assert_same(run, read_archive(tmp_path / "r.otf2"))
