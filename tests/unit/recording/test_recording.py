# SPDX-License-Identifier: Apache-2.0
"""Recordings are read back unchanged, runs are distinguished, and errors name the damaged file."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ibprof.errors import InconsistentError, InputError, UsageError
from ibprof.native.headers import recording_layout
from ibprof.profile import profile_data
from ibprof.profile.missing_data import CUT_SHORT, describe_incomplete
from ibprof.profile.profile_data import HardwareCounter, Mark, MarkKind, PortPair, Profile
from ibprof.recording.recording_reader import read_recording
from ibprof_testing.lab.synthetic_recording import write_recording
from ibprof_testing.samples.recordings import PAGE, Process, counter, header, make_recording


def rows(run: Profile) -> list[tuple[object, ...]]:
    c = run.counters
    columns = c.rank, c.peer, c.region, c.operation, c.kind, c.direction, c.bytes, c.messages
    lists = [column.tolist() for column in columns]
    return [
        (rank, peer, run.regions[region], run.operations[operation], *rest)
        for rank, peer, region, operation, *rest in zip(*lists, strict=True)
    ]


def test_numpy_types_have_the_layout_that_the_compiler_gives_the_structs() -> None:
    """cffi uses the compiler's layout, and the library asserts the sizes. numpy's types must equal cffi's."""
    layout = recording_layout()
    for name, record in layout.types.items():
        ctype = header().typeof(f"struct ibp_{name}")
        assert record.itemsize == header().sizeof(ctype)
        assert record.names == tuple(field for field, _ in ctype.fields)
        assert record.fields is not None
        assert [record.fields[field][1] for field, _ in ctype.fields] == [part.offset for _, part in ctype.fields]
    text = (files("ibprof") / "include" / "ibprof_recording.h").read_text()
    asserted = dict(re.findall(r"sizeof\(struct ibp_(\w+)\) == (\d+)", text))
    assert {name: layout.types[name].itemsize for name in asserted} == {key: int(n) for key, n in asserted.items()}


@pytest.mark.parametrize("name", ["Source", "Kind", "Direction", "MarkKind", "Opcode"])
def test_enumerations_are_those_of_the_header(name: str) -> None:
    members = {member.name: int(member) for member in getattr(profile_data, name)}
    c_name = {"MarkKind": "mark_kind"}.get(name, name.lower())
    prefix = f"IBP_{c_name.removesuffix('_kind').upper()}_"
    theirs = header().typeof(f"enum ibp_{c_name}").relements
    assert {key.removeprefix(prefix): value for key, value in theirs.items()} == members
    assert recording_layout().constants["IBP_PEER_UNKNOWN"] == profile_data.UNKNOWN_PEER
    assert recording_layout().constants["IBP_SIZE_BINS"] == profile_data.SIZE_BINS


def test_names_are_merged_over_ranks_and_hosts(tmp_path: Path) -> None:
    other = [{"name": b"halo"}, {"name": b"main"}]
    one = Process(0, regions=[[{"name": b"main"}], [{"name": b"halo"}]], counters=[[counter(1, 7, region=1)]])
    two = Process(1, regions=[other], counters=[[counter(0, 8, region=0, operation=1)]])
    make_recording(tmp_path, [one], host="a")
    make_recording(tmp_path, [two], host="b", operations=("SEND", "BCAST"))
    run = read_recording(tmp_path)
    assert run.regions == ("main", "halo")
    assert rows(run) == [(0, 1, "halo", "BCAST", 0, 0, 7, 1), (1, 0, "halo", "BCAST", 0, 0, 8, 1)]
    assert [host.name for host in run.hosts] == ["a", "b"]
    assert [(rank.rank, rank.host) for rank in run.ranks] == [(0, 0), (1, 1)]


def test_several_segments_gaps_and_processes_in_any_order(tmp_path: Path) -> None:
    three = Process(3, counters=[[counter(0, 1)], [counter(1, 2), counter(2, 4)]])
    zero = Process(0, counters=[[counter(3, 8)]])
    run = read_recording(make_recording(tmp_path, [three, zero], gap_pages=3))
    assert [(row[0], row[1], row[6]) for row in rows(run)] == [(0, 3, 8), (3, 0, 1), (3, 1, 2), (3, 2, 4)]


def test_data_that_looks_like_a_segment_is_data(tmp_path: Path) -> None:
    path = make_recording(tmp_path, [Process(0, counters=[[counter(number % 4, 1) for number in range(400)]])])
    data = bytearray(path.read_bytes())
    segment = data.rindex(b"IBPS")
    records = segment + header().sizeof("struct ibp_segment")
    boundary = segment + PAGE
    assert (boundary - records) % 32 == 16, "a counter's bytes lie at the boundary"
    data[boundary : boundary + 8] = (0x53504249).to_bytes(8, "little")
    path.write_bytes(data)
    assert 0x53504249 in read_recording(path).counters.bytes


def test_a_counter_that_was_changing_hands_is_put_right(tmp_path: Path) -> None:
    redo = {"redo_from": 1, "redo_into": 3, "redo_bytes": 30, "redo_messages": 3}
    segments = [[counter(1, 10), counter(2, 5)], [counter(1, 20, region=1)]]
    regions = [[{"name": b"main"}, {"name": b"closed"}]]
    run = read_recording(
        make_recording(tmp_path, [Process(9, 10), Process(0, 10, fields=redo, counters=segments, regions=regions)])
    )
    assert rows(run) == [(0, 2, "main", "BCAST", 0, 0, 5, 1), (0, 1, "closed", "BCAST", 0, 0, 30, 3)]


def test_all_else_that_a_process_records(tmp_path: Path) -> None:
    messages = [0] * 65
    messages[4] = 2
    port = {"device": b"mlx5_0", "port": 1, "lid": 7, "lmc": 2, "state": 4, "node_guid": 0xAB, "port_guid": 0xAC}
    port |= {"rate_gbps": 100.0, "link_layer": b"InfiniBand", "gids": [b"fe80::1"]}
    mark = {"time_ns": 1010, "kind": 1, "region": 0, "sent_bytes": 9, "sent_messages": 2}
    told: dict[str, object] = {
        "flags": 2,
        "stop_ns": 0,
        "lost_bytes": 3,
        "lost_messages": 1,
        "marks_seen": 4,
        "regions_refused": 5,
    }
    told |= {"notes": b"coll/sm is not seen\n", "operations": b"bcast"}
    process = Process(0, fields=told, ports=[[port]], sizes=[[{"messages": messages, "operation": 2}]], marks=[[mark]])
    run = read_recording(make_recording(tmp_path, [process]))
    (rank,) = run.ranks
    assert (rank.stop_ns, rank.finalized, rank.lost_bytes, rank.marks_seen) == (None, False, 3, 4)
    assert rank.notes[0] == "coll/sm is not seen"
    assert "a region could not be added 5 times" in rank.notes[1]
    (found,) = run.hosts[0].ports
    assert (found.lid, found.node_guid, found.gids) == (7, "0x00000000000000ab", ("fe80::1",))
    assert run.operations_asked == "bcast"
    assert run.marks == (Mark(0, 1010, MarkKind.CLOSE, 0, 9, 2, 0, 0),)
    assert (run.operations[run.sizes.operation[0]], run.sizes.messages[0, 4]) == ("SEND", 2)
    assert (run.region_times.wall_ns[0], run.world_size) == (5, 4)


def test_a_process_that_was_killed_before_it_began_is_not_there(tmp_path: Path) -> None:
    processes = [Process(0), Process(1, started=False), Process(2, fields={"start_ns": 0})]
    assert [rank.rank for rank in read_recording(make_recording(tmp_path, processes)).ranks] == [0]


def lids(there: int) -> dict[str, Any]:
    return {"device": b"mlx5_0", "port": 1, "lid": 5, "remote_lid": there}


def test_transfers_are_distinguished_by_region_and_pair(tmp_path: Path) -> None:
    everything, off = 0xFFFFFFFF, 0xFFFFFFFE
    regions = [[{"name": b"main"}, {"name": b"halo"}, {"name": b"solve"}]]
    transfers = [
        {"pair": 0, "region": everything, "bytes": 100, "messages": 10, "opcode": 1, "writer": 1},
        {"pair": 0, "region": everything, "bytes": 50, "messages": 5, "opcode": 1, "writer": 2},
        {"pair": 0, "region": 1, "bytes": 30, "messages": 3, "opcode": 1},
        {"pair": 0, "region": off, "bytes": 20, "messages": 2, "opcode": 1},
        {"pair": 0, "region": 2, "bytes": 1, "messages": 1, "opcode": 1},
        {"pair": 1, "region": everything, "bytes": 7, "messages": 1, "opcode": 2, "writer": 1},
    ]
    one = Process(
        0,
        regions=regions,
        pairs=[[lids(6)], [lids(7)]],
        transfers=[transfers[:2], transfers[2:]],
        fields={"transfers_region": 2, "queue_pairs_unseen": 3},
    )
    two = Process(1, pairs=[[lids(7)]], transfers=[[{"region": everything, "bytes": 4, "messages": 4}]])
    run = read_recording(make_recording(tmp_path, [one, two]))
    moved = run.transfers
    columns = (moved.rank, moved.region, moved.opcode, moved.pair, moved.bytes, moved.messages)
    found = [
        (rank, run.regions[region], opcode, run.pairs[pair].remote_lid, *amount)
        for rank, region, opcode, pair, *amount in zip(*(column.tolist() for column in columns), strict=True)
    ]
    assert found == [
        (0, "halo", 1, 6, 30, 3),
        (0, "solve", 1, 6, 150 - 30 - 20, 15 - 3 - 2),
        (0, "solve", 2, 7, 7, 1),
        (1, "main", 0, 7, 4, 4),
    ]
    assert len(run.pairs) == 2
    assert [rank.queue_pairs_unseen for rank in run.ranks] == [3, 0]


def test_an_ethernet_pair_is_known_by_its_gids(tmp_path: Path) -> None:
    pair = {
        "device": b"rxe0",
        "port": 1,
        "gid": [0] * 10 + [255, 255, 10, 0, 0, 1],
        "remote_gid": [254, 128] + [0] * 14,
    }
    run = read_recording(make_recording(tmp_path, [Process(0, pairs=[[pair]], transfers=[[{"region": 0xFFFFFFFF}]])]))
    assert run.pairs == (
        PortPair(
            host=0,
            device="rxe0",
            port=1,
            lid=None,
            gid="0000:0000:0000:0000:0000:ffff:0a00:0001",
            remote_lid=None,
            remote_gid="fe80:0000:0000:0000:0000:0000:0000:0000",
        ),
    )
    assert not len(run.transfers.rank)


def test_hardware_counters_of_a_killed_host_have_no_end(tmp_path: Path) -> None:
    port = {"device": b"mlx5_0", "port": 1, "state": 4}
    of = {"device": b"mlx5_0", "port": 1}
    hardware = [of | {"name": b"port_xmit_data", "before": 5, "after": 9, "read_again": 1}]
    hardware += [of | {"name": b"port_rcv_data", "before": 6}, of | {"name": b"other", "port": 2}]
    run = read_recording(make_recording(tmp_path, [Process(0, ports=[[port]], hardware=[hardware])]))
    (found,) = run.hosts[0].ports
    assert found.hardware == (HardwareCounter("port_xmit_data", 5, 9), HardwareCounter("port_rcv_data", 6, None))


def test_speeds_of_virtual_interfaces_are_apart_from_those_of_adapters(tmp_path: Path) -> None:
    speeds = {"eth0": (25_000, 1), "eth1": (-1, 1), "veth0": (10_000, 0), "br0": (-1, 0), "dummy0": (0, 0)}
    records = [
        {"name": name.encode(), "speed_mbps": speed, "is_physical": physical}
        for name, (speed, physical) in speeds.items()
    ]
    run = read_recording(make_recording(tmp_path, [Process(0, interfaces=[records])]))
    assert {each.name: (each.speed_mbps, each.virtual_mbps) for each in run.hosts[0].interfaces} == {
        "eth0": (25_000, None),
        "eth1": (None, None),
        "veth0": (None, 10_000),
        "br0": (None, None),
        "dummy0": (None, None),
    }


def test_processes_without_mpi_are_numbered_behind_the_ranks(tmp_path: Path) -> None:
    moved = [[{"region": 0xFFFFFFFF, "bytes": 1, "messages": 1}]]
    late, early = (
        Process(0, 0, fields={"start_ns": start, "pid": start}, pairs=[[lids(6)]], transfers=moved) for start in (9, 8)
    )
    run = read_recording(make_recording(tmp_path / "beside", [late, early, Process(0, 2), Process(1, 2)]))
    assert run.world_size == 2
    assert [rank.rank for rank in run.ranks] == [0, 1, 2, 3]
    assert [rank.pid for rank in run.ranks][2:] == [8, 9]
    assert "is a process without MPI" in run.ranks[2].notes[0]
    alone = tmp_path / "alone"
    make_recording(alone, [late], host="a", run="r")
    make_recording(alone, [early], host="b", run="r")
    run = read_recording(alone)
    assert (run.world_size, [rank.pid for rank in run.ranks]) == (2, [8, 9])
    assert run.transfers.rank.tolist() == [0, 1]


MINUTE = 60 * 10**9


def test_the_newest_run_is_taken_and_others_by_name(tmp_path: Path) -> None:
    for number, start in ((1, 1), (2, 2)):
        for host in ("a", "b"):
            process = Process(0 if host == "a" else 1, 2, counters=[[counter(0, number)]])
            make_recording(tmp_path, [process], host=host, run=f"run {number}", start_ns=start * MINUTE)
    assert set(read_recording(tmp_path).counters.bytes.tolist()) == {2}
    assert set(read_recording(tmp_path, "run 1").counters.bytes.tolist()) == {1}
    with pytest.raises(UsageError, match=r"(?s)no run 'run 3'.*run 1 .*run 2 "):
        read_recording(tmp_path, "run 3")


def test_without_names_jobs_and_times_distinguish_runs(tmp_path: Path) -> None:
    make_recording(tmp_path, [Process(0)], host="a", start_ns=MINUTE)
    make_recording(tmp_path, [Process(1)], host="b", start_ns=2 * MINUTE)
    make_recording(tmp_path, [Process(2)], host="c", job="another", start_ns=2 * MINUTE, name="c.ibprof")
    make_recording(tmp_path, [Process(2)], host="c", start_ns=20 * MINUTE)  # a later job with the same number
    make_recording(tmp_path, [Process(2)], host="c", start_ns=21 * MINUTE)  # that job's next launch, with the same rank
    with pytest.raises(UsageError) as refused:
        read_recording(tmp_path, "?")
    names = re.findall(r"\n  (\S.*?)  \(", str(refused.value))
    assert len(names) == 4
    assert [[rank.rank for rank in read_recording(tmp_path, name).ranks] for name in names] == [[0, 1], [2], [2], [2]]


def test_a_rank_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    make_recording(tmp_path, [Process(1)], host="a", run="x")
    make_recording(tmp_path, [Process(1)], host="b", run="x")
    with pytest.raises(InconsistentError, match="rank 1 was recorded twice"):
        read_recording(tmp_path)


def test_processes_that_disagree_on_their_number_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InconsistentError, match=r"different numbers of ranks: \[2, 4\]"):
        read_recording(make_recording(tmp_path, [Process(0, 2), Process(1, 4)]))


BROKEN = {
    "an empty file": (b"", "expected a recording, found an empty file"),
    "junk": (b"\x00\xff" * 3000, "expected a recording, found a file that begins with"),
    "text": (b"GUID,LID\n", "expected a recording"),
    "half a header": (b"IBPROFRC\1\0\0\0", "expected a header"),
    "the other byte order": (b"CRFORPBI" + bytes(5000), "in this machine's byte order"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_other_files_are_refused(what: str, tmp_path: Path) -> None:
    data, message = BROKEN[what]
    path = tmp_path / "x.ibprof"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as refused:
        read_recording(tmp_path)
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 7}, r"x\.ibprof: expected recording format version 1 to 2, found 7"),
        ({"byte_order": 5}, "byte order"),
        ({"segments_offset": 100}, "segments from a page boundary"),
        ({"segments_offset": 1 << 40}, "segments from a page boundary"),
        ({"operation_count": 1 << 31}, "segments from a page boundary"),
    ],
)
def test_broken_headers_are_refused(fields: dict[str, int], message: str, tmp_path: Path) -> None:
    path = make_recording(tmp_path, [Process(0)], name="x.ibprof", header_fields=fields)
    with pytest.raises(InputError, match=message):
        read_recording(path)


@pytest.mark.parametrize(
    ("process", "message"),
    [
        (Process(0, counters=[[counter(1, 5, region=9)]]), "expected a region below 1, found 9"),
        (Process(0, counters=[[counter(1, 5, operation=3)]]), "expected operation below 3, found 3"),
        (Process(0, counters=[[counter(1, 5, kind=3)]]), "expected kind below 3"),
        (Process(0, counters=[[counter(1, 5, origin=1)]]), "expected an origin below 1, found 1"),
        (Process(0, marks=[[{"kind": 99}]]), "kinds of marks below 7, found 99"),
        (Process(0, fields={"redo_from": 1, "redo_into": 5}), "redo log within 0 counters"),
        (Process(0, transfers=[[{"pair": 1}]], pairs=[[{}]]), "an index of a pair of ports below 1, found 1"),
        (Process(0, transfers=[[{"opcode": 4}]], pairs=[[{}]]), "opcodes below 4, found 4"),
        (Process(5, 4), "ranks 0 to 3, since MPI_COMM_WORLD has 4 ranks, found rank 5"),
        (Process(0, started=False), "a recorded process"),
    ],
)
def test_records_that_point_nowhere_are_refused(process: Process, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_recording(make_recording(tmp_path, [process]))


@pytest.mark.parametrize("field", ["offset", "bytes", "process", "record_bytes", "capacity", "used"])
def test_broken_segments_are_refused(field: str, tmp_path: Path) -> None:
    path = make_recording(tmp_path, [Process(0, counters=[[counter(1, 5)]])])
    data = bytearray(path.read_bytes())
    offset = dict(header().typeof("struct ibp_segment").fields)[field].offset
    place = data.rindex(b"IBPS") + offset
    data[place : place + 4] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    with pytest.raises(InputError, match="segment at byte"):
        read_recording(path)


def test_a_file_that_was_cut_is_refused_or_says_so(tmp_path: Path) -> None:
    path = make_recording(tmp_path, [Process(0, counters=[[counter(1, 5)]])])
    whole = path.read_bytes()
    said = []
    for size in range(0, len(whole), PAGE // 2):
        path.write_bytes(whole[:size])
        try:
            said.append(CUT_SHORT in read_recording(path).ranks[0].notes)
        except InputError:
            continue
    assert said, "at the least the last segment can be missing"
    assert all(said)


def test_a_zero_page_is_refused_or_named(tmp_path: Path) -> None:
    """Each page of the file is zeroed in turn, as if the file system had lost the page."""
    write_recording(tmp_path / "r.ibprof", ranks=4, destinations=3, regions=90, ranks_a_host=4)
    (path,) = (tmp_path / "r.ibprof").iterdir()
    whole = path.read_bytes()
    assert not describe_incomplete(read_recording(path))
    said = []
    for begin in range(0, len(whole), PAGE):
        if not any(whole[begin : begin + PAGE]):
            continue
        path.write_bytes(whole[:begin] + bytes(PAGE) + whole[begin + PAGE :])
        with suppress(InputError):
            said.append(CUT_SHORT in describe_incomplete(read_recording(path)))
    assert len(said) > 10
    assert all(said)


@pytest.mark.parametrize("places", [300, pytest.param(2000, marks=pytest.mark.full)])
def test_any_damage_is_refused_in_words(places: int, tmp_path: Path) -> None:
    """If any bit of the file is flipped, the file is read or refused, without a traceback."""
    path = make_recording(tmp_path, [Process(0, counters=[[counter(1, 5)]]), Process(1)])
    whole = path.read_bytes()
    random = np.random.default_rng(1)
    for place in random.integers(0, len(whole), places).tolist() + list(range(0, 64)) + list(range(8192, 8240)):
        data = bytearray(whole)
        data[place] ^= 1 << int(random.integers(8))
        path.write_bytes(data)
        try:
            read_recording(path)
        except (InputError, InconsistentError):
            continue


def test_a_large_recording_is_read_at_once(tmp_path: Path) -> None:
    """A recording of 100,000 counters must be read in less than 1.5 s of processor time."""
    counters = [counter(peer, 1) for peer in range(100)]
    path = make_recording(tmp_path, [Process(rank, 1000, counters=[counters]) for rank in range(1000)])
    read_recording(path)
    begin = time.process_time()
    run = read_recording(path)
    took = time.process_time() - begin
    assert len(run.counters.bytes) == 100_000
    assert took < 1.5
