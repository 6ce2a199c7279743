# SPDX-License-Identifier: Apache-2.0
"""Bytes that ranks sent, compared with port counters: agreement, others' traffic, messages on other networks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ibprof.profile.gaps import describe_gaps
from ibprof.profile.host_sums import HostCheck, check_hosts, describe_hosts
from ibprof.profile.profile_data import UNKNOWN_PEER, Direction, HardwareCounter, Host, Kind, Port, Profile
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

SENT = 10**9


def make_counting_port(guid: int, grown: int | None, **changes: object) -> Port:
    """A port whose counter of 4-byte words grew by a number of bytes; None where it was not read again."""
    counter = HardwareCounter("port_xmit_data", 7, None if grown is None else 7 + grown // 4)
    return make_port(guid, guid, device=f"mlx5_{guid % 16}", hardware=(counter,), **changes)


def make_run(*ports: Port, counts: tuple[Count, ...] = (Count(0, 1, SENT, 100),)) -> Profile:
    """Rank 0 and 2 on host a, which has the ports; rank 1 on b, which has none."""
    hosts: list[Host] = [make_host("a", *ports), make_host("b")]
    return make_profile(counts, ranks=[make_rank(0, 0), make_rank(1, 1), make_rank(2, 0)], hosts=hosts)


def test_two_rails_that_carried_it_agree() -> None:
    run = make_run(make_counting_port(0xA0, 520_000_000), make_counting_port(0xA1, 520_000_000))
    a, b = check_hosts(run)
    assert (a.bytes_sent, a.hardware_sent, a.unexplained_sent) == (SENT, 1_040_000_000, 0)
    assert b == HostCheck("b", 0, None, None)
    assert not list(describe_hosts(run))
    assert not any("counted" in sentence for sentence in describe_gaps(run))


def test_the_rest_is_not_this_jobs() -> None:
    run = make_run(make_counting_port(0xA0, 3 * SENT))
    unexplained = check_hosts(run)[0].unexplained_sent
    # The wire's headers are at most an eighth here.
    assert unexplained is not None
    assert 1.8 * SENT < unexplained < 2 * SENT
    (sentence,) = describe_hosts(run)
    assert sentence.startswith("the ports of a counted 3 GB sent; its ranks' messages do not explain at least 1.8")
    assert sentence in list(describe_gaps(run))
    assert summarize(run)["hosts"][0]["unexplained_sent"] == unexplained


def test_messages_that_went_another_way() -> None:
    (sentence,) = describe_hosts(make_run(make_counting_port(0xA0, SENT // 100)))
    assert "10 MB sent, fewer than the 1 GB that its ranks sent to other hosts" in sentence


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
    check = check_hosts(make_run(make_counting_port(0xA0, SENT), counts=(count,)))[0]
    assert check.bytes_sent == surely
    assert check.unexplained_sent is not None
    assert (check.unexplained_sent < SENT // 10) == perhaps


def test_a_port_that_does_not_tell_leaves_its_host_out() -> None:
    counting, silent = make_counting_port(0xA0, SENT), make_counting_port(0xA1, None)
    assert check_hosts(make_run(counting, silent)) == ()
    assert check_hosts(make_run(counting, replace(silent, state=1)))[0].hardware_sent == SENT
    assert not list(describe_hosts(make_run(silent)))


def test_where_ports_are_measured_they_are_distinguished() -> None:
    run = make_run(make_counting_port(0xA0, 9 * SENT))
    measured = replace(run, pairs=(make_pair(0, 0xA0, 9, "mlx5_0"),), transfers=make_transfers([Posted(0, 0, SENT)]))
    said = [each for each in describe_gaps(measured) if "a mlx5_0/1" in each or "the ports of a" in each]
    assert len(said) == 1
    assert said[0].startswith("a mlx5_0/1 sent at least")
