# SPDX-License-Identifier: Apache-2.0
"""In programs with known numbers of calls, all ranks sample the same collectives and messages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from pathlib import Path

import numpy as np
import pytest

from ibprof.archive.otf2_archive import read_archive, write_archive
from ibprof.native.headers import recording_layout
from ibprof.profile.profile_data import Profile, Side, Unsampled
from ibprof.recording.host_file import open_recording_file
from ibprof.recording.recording_reader import read_recording
from ibprof.waiting.wait_split import measure_waiting
from ibprof_testing.mpi.mpis import MPICH_LIKE, SYSTEM, THROUGH_NETWORK, Build, Mpi, find_mpi, find_mpich_like, run_mpi
from ibprof_testing.paths import ROOT

ON = {"IBPROF_TIME": "1"} | THROUGH_NETWORK
MPIS = (SYSTEM, "5.0.11", "mpich-5.0.2", "intel")
RANKS = 4
MEMORY_BYTES = 256 << 10


def find_any(name: str) -> Mpi:
    return find_mpich_like(name) if name in MPICH_LIKE else find_mpi(name)


def record(name: str, program: str, ranks: int, arguments: list[str | int], build: Build, folder: Path) -> Profile:
    mpi = find_any(name)
    run_mpi(mpi, ranks, [build(mpi, program, "-g", "-pthread"), *map(str, arguments)], recording=folder, env=ON)
    return read_recording(folder)


def find_instances(run: Profile) -> dict[Hashable, list[int]]:
    rows: dict[Hashable, list[int]] = defaultdict(list)
    samples = run.collective_samples
    for row, instance in enumerate(zip(samples.communicator.tolist(), samples.number.tolist(), strict=True)):
        rows[instance].append(row)
    return rows


Envelope = tuple[tuple[int, int], int, int, int]
"""Sender and receiver of a message, its communicator, its sequence number, and its tag."""


def find_messages(run: Profile) -> dict[Envelope, dict[Side, int]]:
    samples = run.message_samples
    ends: dict[Envelope, dict[Side, int]] = defaultdict(dict)
    columns = (samples.rank, samples.peer, samples.communicator, samples.number, samples.tag, samples.side)
    for row, (rank, peer, communicator, number, tag, side) in enumerate(
        zip(*(c.tolist() for c in columns), strict=True)
    ):
        whom = (rank, peer) if side == Side.SENDER else (peer, rank)
        assert side not in ends[whom, communicator, number, tag]
        ends[whom, communicator, number, tag][Side(side)] = row
    return ends


def check_causes(run: Profile) -> Counter[str]:
    """Check that no message was received before its send. Return each operation's number of matched messages."""
    samples, operations = run.message_samples, Counter[str]()
    for ends in find_messages(run).values():
        if {Side.SENDER, Side.RECEIVER} <= ends.keys():
            sent, received = ends[Side.SENDER], ends[Side.RECEIVER]
            assert samples.post_ns[sent] < samples.exit_ns[received]
            operations[run.operations[samples.operation[sent]]] += 1
    assert (samples.post_ns <= samples.enter_ns).all()
    assert (samples.enter_ns <= samples.exit_ns).all()
    return operations


@pytest.mark.parametrize("name", MPIS)
def test_members_sample_the_same_collectives(name: str, build: Build, tmp_path: Path) -> None:
    rounds = 40
    run = record(name, "sampled_collectives.c", RANKS, [rounds, 1], build, tmp_path / "recording")
    samples, counts = run.collective_samples, Counter[tuple[str, int]]()
    for rows in find_instances(run).values():
        size = int(samples.size[rows[0]])
        assert len(rows) == size
        assert sorted(samples.member[rows].tolist()) == list(range(size))
        assert (samples.size[rows] == size).all()
        assert len(set(samples.operation[rows].tolist())) == 1
        assert len(set(samples.rank[rows].tolist())) == size
        assert not samples.level[rows].any()
        counts[run.operations[samples.operation[rows[0]]], size] += 1
    assert counts["ALLREDUCE", 4] == counts["ALLTOALL", 4] == counts["IREDUCE", 4] == rounds
    assert counts["BCAST", 2] == 2 * rounds
    assert counts["BARRIER", 4] == 2 * rounds  # between groups, and on the merged communicator
    assert counts["BARRIER", 2] == 2 * rounds  # Comm_create_group and Comm_create
    assert counts["SCAN", 4] == 20
    of = {name: samples.operation == run.operations.index(name) for name in ("IREDUCE", "BCAST", "ALLTOALL")}
    assert (samples.root[of["IREDUCE"]] == 3).all()
    assert (samples.root[of["BCAST"]] == 1).all()
    assert (samples.bytes[of["ALLTOALL"]] == 16 * 8).all()
    assert (samples.root[of["ALLTOALL"]] == -1).all()
    assert not samples.bytes[samples.operation == run.operations.index("BARRIER")].any()
    assert {run.operations[end] for end in samples.end_operation[of["IREDUCE"]]} == {"WAIT"}
    assert all(not any(rank.unsampled_collectives) for rank in run.ranks)
    assert (samples.start_ns <= samples.enter_ns).all()
    assert (samples.enter_ns < samples.exit_ns).all()


def test_what_finds_no_space_is_counted(build: Build, tmp_path: Path) -> None:
    """ibprof cannot sample 11 collectives: ten on a communicator without an identifier, and one on a graph."""
    run = record(MPIS[0], "beyond_capacity.c", 1, [], build, tmp_path / "recording")
    samples = run.collective_samples
    assert "COMM_CREATE_GROUP" not in {run.operations[each] for each in samples.operation}
    assert sum(run.ranks[0].unsampled_collectives) == 10 + 1
    assert not samples.bytes[samples.operation == run.operations.index("BARRIER")].any()
    assert (samples.start_ns < samples.exit_ns).all()


@pytest.mark.parametrize(
    ("name", "topology", "edges"), [(SYSTEM, "graph", 1), ("mpich-5.0.2", "graph", 1), (SYSTEM, "grid", 2)]
)
def test_collectives_are_split_up_to_the_limit_of_sources(
    name: str, topology: str, edges: int, build: Build, tmp_path: Path
) -> None:
    """With one source more than the limit in docs/verdict.md, all time in neighbourhood collectives is unsplit.

    In a grid, each rank has two sources for each dimension. With more than 83 dimensions, ibprof once wrote beyond an
    array. MPICH 5.0.2 crashes in a grid of 32 dimensions, also without ibprof.
    """
    most = recording_layout().constants["IBP_SOURCES_MAX"] - 1
    assert f"beyond {most} recorded sources" in " ".join(
        (ROOT / "docs" / "verdict.md").read_text(encoding="utf-8").split()
    )
    for count in (most // edges, most // edges + 1, 5 * most // edges):
        folder = tmp_path / str(count)
        run = record(name, "many_sources.c", 1, [topology, count], build, folder)
        fits = count * edges <= most
        assert sum(run.ranks[0].unsampled_collectives) == (not fits)
        measured = measure_waiting(run)
        assert measured
        rows = measured.shares.operation == run.operations.index("NEIGHBOR_ALLGATHER")
        total = measured.total(rows)
        assert (total.unsplit_s > 0.99 * (total.wait_s + total.transfer_s + total.unsplit_s)) == (not fits)


def test_memory_is_bounded(build: Build, tmp_path: Path) -> None:
    """With 10,000 communicators and more calls than ibprof can store, samples still allow estimates."""
    rounds, duplicates = 3000, 10_000
    run = record(SYSTEM, "sampled_collectives.c", RANKS, [rounds, duplicates], build, tmp_path / "recording")
    samples, weighted = run.collective_samples, Counter[str]()
    for rows in find_instances(run).values():
        if len(rows) == samples.size[rows[0]]:
            weighted[run.operations[samples.operation[rows[0]]]] += 1 << int(samples.level[rows].max())
    assert weighted["ALLTOALL"] == pytest.approx(rounds, rel=0.15)
    assert weighted["ALLREDUCE"] == pytest.approx(rounds, rel=0.15)
    assert all(rank.unsampled_collectives[Unsampled.FULL] for rank in run.ranks)
    file = open_recording_file(next((tmp_path / "recording").glob("*")))
    kinds = ("IBP_SEGMENT_COLLECTIVE_SAMPLES", "IBP_SEGMENT_MESSAGE_SAMPLES")
    records = [file.records(kind)[0] for kind in kinds]
    assert sum(found.nbytes for found in records) / RANKS < MEMORY_BYTES / 2


@pytest.mark.parametrize("name", MPIS)
def test_both_ends_sample_the_same_messages(name: str, build: Build, tmp_path: Path) -> None:
    rounds, ranks = 24, 2 if "mpich" in name else RANKS  # ranks of MPICH spin, so more ranks than cores are slow
    run = record(name, "sampled_messages.c", ranks, [rounds], build, tmp_path / "recording")
    operations = check_causes(run)
    assert not run.message_samples.level.any()
    assert operations["ISEND"] == 3 * ranks * rounds  # MPI_Mprobe receives a third of the ISENDs
    assert operations["SENDRECV"] == operations["STARTALL"] == ranks * rounds
    assert operations["SEND"] == 3 * (ranks - 1) * rounds
    for rank in run.ranks:
        assert not sum(rank.unsampled_messages)
    sent = run.message_samples.side == Side.SENDER
    has_both = operations["ISENDRECV"] > 0
    assert has_both == (name != SYSTEM)
    assert set(run.message_samples.bytes[sent].tolist()) == {800, 80, 400, 16, 40} | ({24} if has_both else set())
    completed = {
        operation: set(run.message_samples.completed[run.message_samples.end_operation == number].tolist())
        for number, operation in enumerate(run.operations)
    }
    assert completed["SEND"] == completed["MPROBE"] == completed["WAITANY"] == {1}
    assert completed["SENDRECV"] == {2}
    assert not has_both or completed["ISENDRECV"] == {1}


@pytest.mark.parametrize("name", MPIS)
def test_rare_large_messages_keep_their_samples(name: str, build: Build, tmp_path: Path) -> None:
    run = record(name, "rare_large_messages.c", 2, [], build, tmp_path / "recording")
    operations = check_causes(run)
    samples = run.message_samples
    sent = samples.side == Side.SENDER
    is_large = sent & (samples.bytes == 8192 * 8)
    assert is_large.sum() == 20  # ten sends and ten starts of persistent sends
    assert not samples.level[is_large].any()
    assert samples.level[sent & ~is_large & samples.is_chosen].min() > 3
    assert operations["SEND"] > 10
    assert operations["START"] > 10


def test_threads_sample_their_own_messages(build: Build, tmp_path: Path) -> None:
    """Messages of several threads with one tag have no order: ibprof samples none of them after a second thread sends.

    With or without ibprof, this program does not end on MPICH 5.0.2 if ranks on one host use the network.
    """
    rounds = 40
    run = record(SYSTEM, "sampled_threads.c", 2, [rounds], build, tmp_path / "recording")
    check_causes(run)
    samples = run.message_samples
    per_tag = Counter(samples.tag[samples.side == Side.SENDER].tolist())
    assert all(per_tag[tag] == 2 * rounds for tag in (0, 1, 2))
    assert per_tag[99] < rounds
    # Messages with tag 50 are sampled at both ends, because a single thread received them. The probes receive none.
    assert Counter(samples.side[samples.tag == 50].tolist()) == {
        Side.SENDER: 2 * rounds,
        Side.RECEIVER: 2 * rounds,
        Side.WAITER: 2,
    }
    assert all(len(rows) == 2 for rows in find_instances(run).values())


def test_archive_keeps_samples(build: Build, tmp_path: Path) -> None:
    run = record(SYSTEM, "sampled_messages.c", 2, [5], build, tmp_path / "recording")
    write_archive(run, tmp_path / "profile.otf2")
    write_archive(run, tmp_path / "profile.otf2")  # replaces it
    kept = read_archive(tmp_path / "profile.otf2")
    assert kept.ranks == run.ranks
    assert run.ranks[0].clock_offset_ns
    for rows, others in (
        (run.collective_samples, kept.collective_samples),
        (run.message_samples, kept.message_samples),
    ):
        assert len(rows.rank)
        assert all(np.array_equal(column, getattr(others, name)) for name, column in rows.columns().items())


def test_cancelled_receives_with_wildcards_take_no_number(build: Build, tmp_path: Path) -> None:
    """In Open MPI, a cancelled receive may have received a message. Both ends of this message are recorded."""
    run = record(SYSTEM, "cancelled_receives.c", 2, [], build, tmp_path / "run")
    messages = find_messages(run)
    assert all({Side.SENDER, Side.RECEIVER} <= ends.keys() for ends in messages.values())
    assert Counter(tag for *_, tag in messages) == {1: 40, 2: 40}
    assert {tag for (*_, tag), ends in messages.items() if Side.WAITER in ends} == {2}  # MPI_Probe waited for it
    check_causes(run)
    assert not sum(rank.unsampled_messages[Unsampled.ORDER] for rank in run.ranks if rank.unsampled_messages)


def test_partitioned_messages_do_not_match_wildcards(build: Build, tmp_path: Path) -> None:
    """While a receive with wildcards is pending, partitioned and other messages are numbered separately."""
    messages, tag = 10, 7
    run = record("mpich-5.0.2", "partitions_and_wildcards.c", 2, [messages], build, tmp_path / "run")
    found = find_messages(run)
    assert all(set(ends) == {Side.SENDER, Side.RECEIVER} for ends in found.values())
    numbers: dict[int, list[int]] = defaultdict(list)
    for _, _, number, of_tag in sorted(found):
        numbers[of_tag].append(number)
    assert numbers == {tag: list(range(messages)), 9: [0], -2 - tag: [0]}
