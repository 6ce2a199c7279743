# SPDX-License-Identifier: Apache-2.0
"""On measured rails, work requests show the bytes from port to port, and ports' counters show the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ibprof.errors import UsageError
from ibprof.profile.communication_matrix import Matrix, Selection, build_matrix
from ibprof.profile.missing_data import describe_gaps
from ibprof.profile.port_sums import (
    HostCheck,
    PortIndex,
    bytes_posted,
    check_hosts,
    describe_hosts,
    describe_unmeasured,
)
from ibprof.profile.profile_data import (
    UNKNOWN_PEER,
    Direction,
    HardwareCounter,
    Host,
    Kind,
    Mark,
    MarkKind,
    Opcode,
    Port,
    Profile,
)
from ibprof.profile.profile_summary import summarize
from ibprof_testing.samples.profiles import (
    Count,
    Posted,
    make_host,
    make_pair,
    make_port,
    make_profile,
    make_rank,
    make_transfers,
)

# Two hosts with two adapters each. Two subnets have the same LIDs and the same prefix.
HOSTS = [
    make_host(name, make_port(lid, guid, device="mlx5_0"), make_port(lid, guid + 1, device="mlx5_1"))
    for name, lid, guid in (("a", 5, 0xA0), ("b", 6, 0xB0))
]
A0, A1, B0, B1 = (f"0x{guid:016x}" for guid in (0xA0, 0xA1, 0xB0, 0xB1))


def make_run(*posted: Posted, counts: tuple[Count, ...] = (), unseen: int = 0) -> Profile:
    run = make_profile(
        counts,
        ranks=[make_rank(0, 0), make_rank(1, 1, queue_pairs_unseen=unseen)],
        hosts=HOSTS,
        regions=("main", "x"),
    )
    pairs = (make_pair(0, 5, 6), make_pair(0, 5, 6, "mlx5_1"), make_pair(1, 6, 5), make_pair(0, 5, 5))
    return replace(run, pairs=pairs, transfers=make_transfers(posted))


def rows(matrix: Matrix) -> list[tuple[str, str, int, int]]:
    return list(matrix.rows())


RUN = make_run(
    Posted(0, 0, 100),
    Posted(0, 0, 50, 5, opcode=Opcode.SEND),
    Posted(0, 1, 7, region=1),
    Posted(1, 2, 2**63, opcode=Opcode.READ),
    Posted(1, 2, 2**63, opcode=Opcode.READ, region=1),
    Posted(1, 2, 8, opcode=Opcode.ATOMIC),
    Posted(1, 2, 3),
    Posted(0, 3, 1000),
)


def test_reads_go_to_who_posted_them_and_rails_are_apart() -> None:
    matrix = build_matrix(RUN, "port", Selection())
    assert rows(matrix) == [(A0, B0, 2**64 + 158, 9), (A1, B1, 7, 1), (B0, A0, 3, 1)]
    assert matrix.labels[matrix.names.index(A1)] == "a mlx5_1/1"
    assert matrix.notes == [
        "bytes are those posted to queue pairs (verbs), headers of MPI included: ports are measured"
    ]


def test_regions_of_transfers() -> None:
    assert rows(build_matrix(RUN, "port", Selection(region="x"))) == [(A0, B0, 2**63, 1), (A1, B1, 7, 1)]
    closed = replace(RUN, marks=(Mark(0, 0, MarkKind.CLOSE, 1, 0, 0, 0, 0),))
    assert rows(build_matrix(closed, "port", Selection(region="x", since_start=True))) == [(A1, B1, 7, 1)]


def test_what_work_requests_do_not_know_is_refused_on_hosts_with_several_ports() -> None:
    with pytest.raises(UsageError, match="2 active ports"):
        build_matrix(RUN, "port", Selection(operation="SEND"))


@pytest.mark.parametrize(
    ("pair", "names"),
    [
        (make_pair(0, 5, 9), (A0, "LID 9 from a mlx5_0/1")),
        (make_pair(0, None, None), (A0, "unknown from a mlx5_0/1")),
        (make_pair(0, None, None, "", gid="::1"), ("::1", "unknown from a unknown device/1")),
        (make_pair(1, None, None, gid="::2", remote_gid="::3"), (B0, "::3")),
        (make_pair(0, 5, 6, "mlx5_1", remote_gid="::9"), (A1, B1)),
    ],
)
def test_ends_that_were_not_recorded_have_a_name(pair: object, names: tuple[str, str]) -> None:
    own, remote = PortIndex(RUN).ends(pair)  # type: ignore[arg-type]
    assert (own.name, remote.name) == names


def test_a_gid_goes_before_a_lid_and_path_bits_are_the_port_s() -> None:
    ports = [make_port(8, guid, lmc=1, gids=(f"fe80::{guid:x}",)) for guid in (0xC0, 0xC1)]
    run = replace(RUN, hosts=(make_host("c", ports[0]), make_host("d", ports[1])))
    index = PortIndex(run)
    assert index.ends(make_pair(0, 8, 8, remote_gid="fe80::c1"))[1].host == 1
    one = PortIndex(replace(run, hosts=run.hosts[:1]))
    assert one.ends(make_pair(0, 8, 9))[1].name == "0x00000000000000c0"
    assert one.ends(make_pair(0, 8, 10))[1].host is None


def test_loops_are_on_no_wire() -> None:
    assert bytes_posted(RUN) == 2**64 + 168
    assert bytes_posted(make_profile([], ranks=[make_rank(0)])) == 0


def test_what_is_missing_is_said() -> None:
    assert describe_unmeasured(RUN) is None
    assert describe_unmeasured(make_run()) == "no work requests were recorded at queue pairs"
    unseen = make_run(Posted(0, 0, 1), unseen=3)
    assert (describe_unmeasured(unseen) or "").startswith("3 queue pair(s) bypass verbs")
    assert "queue pairs are incomplete: 3 queue" in build_matrix(unseen, "port", Selection()).notes[1]
    other_way = make_run(Posted(0, 0, 500), counts=(Count(0, 1, 1000), Count(0, 0, 99999)))
    assert (describe_unmeasured(other_way) or "").startswith("only 500 of 1000 bytes between hosts")
    assert describe_unmeasured(make_run(Posted(0, 0, 1024), counts=(Count(0, 1, 1000),))) is None


SENT = 10**9


def make_counting_port(guid: int, grown: int | None, **changes: object) -> Port:
    """Return a port whose counter of 4-byte words grew by `grown` bytes; None: the counter was not read at the end."""
    counter = HardwareCounter("port_xmit_data", 7, None if grown is None else 7 + grown // 4)
    return make_port(guid, guid, device=f"mlx5_{guid % 16}", hardware=(counter,), **changes)


def make_counted_run(*ports: Port, counts: tuple[Count, ...] = (Count(0, 1, SENT, 100),)) -> Profile:
    """Return a run with ranks 0 and 2 on host a, and rank 1 on host b. Only host a has ports."""
    hosts: list[Host] = [make_host("a", *ports), make_host("b")]
    return make_profile(counts, ranks=[make_rank(0, 0), make_rank(1, 1), make_rank(2, 0)], hosts=hosts)


def test_two_rails_that_carried_it_agree() -> None:
    run = make_counted_run(make_counting_port(0xA0, 520_000_000), make_counting_port(0xA1, 520_000_000))
    a, b = check_hosts(run)
    assert (a.bytes_sent, a.hardware_sent, a.unexplained_sent) == (SENT, 1_040_000_000, 0)
    assert b == HostCheck("b", 0, None, None)
    assert not list(describe_hosts(run))
    assert not any("counted" in sentence for sentence in describe_gaps(run))


def test_the_rest_is_not_this_jobs() -> None:
    run = make_counted_run(make_counting_port(0xA0, 3 * SENT))
    unexplained = check_hosts(run)[0].unexplained_sent
    # In this test, headers are at most an eighth of the bytes on the wire.
    assert unexplained is not None
    assert 1.8 * SENT < unexplained < 2 * SENT
    (sentence,) = describe_hosts(run)
    assert sentence.startswith("the ports of a counted 3 GB of sent data; messages of its ranks do not explain")
    assert sentence in list(describe_gaps(run))
    assert summarize(run)["hosts"][0]["unexplained_sent"] == unexplained


def test_messages_that_went_another_way() -> None:
    (sentence,) = describe_hosts(make_counted_run(make_counting_port(0xA0, SENT // 100)))
    assert "10 MB of sent data, less than the 1 GB that its ranks sent to other hosts" in sentence


@pytest.mark.parametrize(
    ("count", "surely", "perhaps"),
    [
        (Count(1, 0, SENT, direction=Direction.FETCHED), SENT, True),
        (Count(0, 1, SENT, direction=Direction.RECEIVED), 0, False),
        (Count(0, 2, SENT), 0, False),
        (Count(0, UNKNOWN_PEER, SENT), 0, True),
        (Count(0, 1, SENT, kind=Kind.CONTROL), 0, True),
    ],
    ids=["fetched", "received", "within the host", "to whom is not known", "control"],
)
def test_what_leaves_a_host(count: Count, surely: int, perhaps: bool) -> None:
    check = check_hosts(make_counted_run(make_counting_port(0xA0, SENT), counts=(count,)))[0]
    assert check.bytes_sent == surely
    assert check.unexplained_sent is not None
    assert (check.unexplained_sent < SENT // 10) == perhaps


def test_a_port_that_does_not_tell_leaves_its_host_out() -> None:
    counting, silent = make_counting_port(0xA0, SENT), make_counting_port(0xA1, None)
    assert check_hosts(make_counted_run(counting, silent)) == ()
    assert check_hosts(make_counted_run(counting, replace(silent, state=1)))[0].hardware_sent == SENT
    assert not list(describe_hosts(make_counted_run(silent)))


def test_where_ports_are_measured_they_are_distinguished() -> None:
    run = make_counted_run(make_counting_port(0xA0, 9 * SENT))
    measured = replace(run, pairs=(make_pair(0, 0xA0, 9, "mlx5_0"),), transfers=make_transfers([Posted(0, 0, SENT)]))
    said = [each for each in describe_gaps(measured) if "a mlx5_0/1" in each or "the ports of a" in each]
    assert len(said) == 1
    assert said[0].startswith("a mlx5_0/1 sent at least")
