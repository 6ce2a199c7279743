# SPDX-License-Identifier: Apache-2.0
"""Reports name the ranks, call, line and region that load the busiest link, and the number of equally busy links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ibprof_converter.hotspots.causes.load_cause import find_alike, find_loaders
from ibprof_converter.hotspots.causes.situation import PairBytes, Situation
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.traffic_data import Traffic
from ibprof_testing.samples.planted_causes import make_rails


def make_traffic(lids: np.ndarray) -> Traffic:
    """Ranks 1 to 7 each send to rank 0: 95 bytes by gather, and 5 by all-to-all. Rank 8 sends 10 bytes to rank 9."""
    senders = np.arange(1, 8)
    source = np.concatenate([senders, senders, [8]]).astype(np.int32)
    destination = np.concatenate([np.zeros(14), [9]]).astype(np.int32)
    amount = np.concatenate([np.full(7, 95), np.full(7, 5), [10]]).astype(np.uint64)
    call = np.concatenate([np.zeros(7), np.ones(7), np.zeros(1)]).astype(np.int32)
    return Traffic(
        rail=np.zeros(15, np.int32),
        source_lid=lids[source],
        destination_lid=lids[destination],
        bytes=amount,
        region=call,
        operation=call,
        source_rank=source,
        destination_rank=destination,
        regions=("checkpoint", "*"),
        operations=("GATHERV", "ALLTOALL"),
        on_host_bytes=0,
        unmapped={},
        rail_source="one subnet",
        origin="by hand",
        rank_lid=lids[:, np.newaxis],
        site=call,
        sites=("io.py:88", "solve.c:7"),
    )


def test_a_gather_is_named_with_its_ranks_line_and_region() -> None:
    (subnet,) = make_rails("tree:4,2")
    lids = find_hosts([subnet.fabric]).lid[:, 0]
    traffic = make_traffic(lids)
    case = Situation([subnet], find_hosts([subnet.fabric]), PairBytes.of_traffic(traffic))
    found = find_loaders(traffic, [subnet], case.most_loaded())
    assert found is not None
    assert found.text == "7 ranks' MPI_Gatherv at io.py:88 in 'checkpoint' to rank 0, 95% of the bytes on the link"
    assert (found.bytes, found.share, found.hosts) == (7 * 95, 0.95, 7)
    assert replace(found, share=1.0).text == "7 ranks' MPI_Gatherv at io.py:88 in 'checkpoint' to rank 0"
    assert find_alike(case).text == "1 link to hosts alike"


def test_equal_halves_are_both_named() -> None:
    (subnet,) = make_rails("tree:4,2")
    lids = find_hosts([subnet.fabric]).lid[:, 0]
    traffic = make_traffic(lids)
    halves = replace(traffic, bytes=np.concatenate([np.full(14, 50), [10]]).astype(np.uint64))
    case = Situation([subnet], find_hosts([subnet.fabric]), PairBytes.of_traffic(halves))
    found = find_loaders(halves, [subnet], case.most_loaded())
    assert found is not None
    gather, exchange = "7 ranks' MPI_Gatherv at io.py:88 in 'checkpoint'", "7 ranks' MPI_Alltoall at solve.c:7"
    assert found.text == f"{gather} to rank 0 and {exchange} to rank 0, each with 50% of the bytes on the link"


def test_all_links_of_hosts_in_a_shift_are_alike() -> None:
    (subnet,) = make_rails("tree:4,2")
    hosts = find_hosts([subnet.fabric])
    lids = hosts.lid[:, 0]
    flows = PairBytes.add_up(np.zeros(16, np.int32), lids, np.roll(lids, 1), np.full(16, 7, np.uint64))
    alike = find_alike(Situation([subnet], hosts, flows))
    # One host of each leaf sends to another leaf. Uplinks and hosts' links are equally busy; hosts' links are named.
    assert (alike.count, alike.kind) == (16, "links to hosts")
