# SPDX-License-Identifier: Apache-2.0
"""By measured bytes or by ports of a run's hosts, ibprof finds rails that the run used and the fabric lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ibprof.profile.profile_data import Port, Profile
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.traffic.rank_placement import describe_other_rails
from ibprof_testing.samples.fabrics import read_subnet
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

FABRIC = read_subnet("xgft:2:4,4:1,4@100").fabric
ADAPTERS = FABRIC.node_kind[FABRIC.port_node] == NodeKind.CA
GUIDS, LIDS = FABRIC.port_guid[ADAPTERS].tolist(), FABRIC.port_lid[ADAPTERS].tolist()


def make_run(*posted: Posted, second: bool = True) -> Profile:
    """Return a run of two ranks on the fabric's first hosts, which have a second adapter on another rail."""

    def ports(host: int) -> tuple[Port, Port]:
        other = make_port(100 + host, 0xABC00 + host, device="mlx5_1", gids=("fe80::2",))
        return make_port(LIDS[host], GUIDS[host]), other if second else replace(other, state=1)

    hosts = [make_host(f"host0{host + 1}", *ports(host)) for host in (0, 1)]
    run = make_profile([Count(0, 1, 100)], [make_rank(0, 0), make_rank(1, 1)], hosts)
    pairs = (make_pair(0, LIDS[0], LIDS[1]), make_pair(0, 100, 101, "mlx5_1"))
    return replace(run, pairs=pairs, transfers=make_transfers(posted))


@pytest.mark.parametrize(
    ("here", "there", "said"), [(50, 50, "50% of the run's bytes"), (25, 75, "25% of"), (100, 0, None)]
)
def test_measured_bytes_of_this_rail_count(here: int, there: int, said: str | None) -> None:
    posted = [Posted(0, pair, size) for pair, size in ((0, here), (1, there)) if size]
    found = describe_other_rails(make_run(*posted), FABRIC)
    assert found is None if said is None else found is not None and found.startswith(said)


def test_without_measured_bytes_active_ports_of_other_rails_are_counted() -> None:
    found = describe_other_rails(make_run(), FABRIC)
    assert found is not None
    assert found.startswith("2 hosts have active ports on other rails; the simulation sends all bytes of the run")
    assert describe_other_rails(make_run(second=False), FABRIC) is None
