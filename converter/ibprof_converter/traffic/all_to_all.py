# SPDX-License-Identifier: Apache-2.0
"""All-to-all over the adapters of all hosts of a fabric, spread over its links as a matrix of equal entries.

As flows, 11,664 hosts need 136 million rows; a matrix costs next to nothing. Both give the same link loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import sum_exactly
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.routing.spread import spread_matrix
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic import adapter_policies
from ibprof_converter.traffic.adapter_policies import label_of_policy
from ibprof_converter.traffic.hosts import Hosts
from ibprof_converter.traffic.lid_traffic import NO_COMMON_RAIL, describe_rails, map_to_lids, note_ends, note_incomplete
from ibprof_converter.traffic.link_loads import Loads
from ibprof_converter.traffic.patterns import as_rank_traffic
from ibprof_converter.traffic.rail_policies import SPLIT, share_out
from ibprof_converter.traffic.traffic_data import ALL, NO_LID, Traffic

_FLOWS = 1 << 21
"""Number of flows in one batch."""

_Rows = npt.NDArray[np.intp]


def load_all_to_all(
    text: str, size: int, hosts: Hosts, subnets: Sequence[Subnet], policy: str | None, nic: str | None = None
) -> tuple[Traffic, Loads]:
    """Send `size` bytes from each adapter of all hosts to every other, along the forwarding tables of the rails.

    Args:
        text: the pattern that the user gives.
        size: bytes per pair.
        hosts: the fabrics' hosts.
        subnets: the rails.
        policy: `--rails`; None: `split`.
        nic: `--nic`, except `spread`; the ends are then the hosts, each with its first adapter.

    Returns:
        The traffic, with its flows in parts, and the link loads.

    Raises:
        UsageError: the policy names a rail that was not given.
    """
    policy = policy or SPLIT
    by_rail = [np.zeros((subnet.fabric.links, 2, 1), np.uint64) for subnet in subnets]
    unrouted: dict[str, int] = {}
    routed = incomplete = 0
    lid = hosts.ends if nic is None else hosts.lid
    for source, destination, usable in _pair_up(lid):
        pairs = len(source) * len(destination) - len(np.intersect1d(source, destination))
        if not usable.any() and pairs * size:
            unrouted[NO_COMMON_RAIL] = unrouted.get(NO_COMMON_RAIL, 0) + pairs * size
        incomplete += pairs if usable.any() and not usable.all() else 0
        for rail, share in _share_out(policy, usable, size):
            matrix = np.broadcast_to(np.uint64(share), (len(source), len(destination)))
            loads = spread_matrix(subnets[rail].routes, lid[source, rail], lid[destination, rail], matrix)
            by_rail[rail] += loads.bytes
            routed += sum_exactly(loads.routed)
            for reason, amount in loads.unrouted.items():
                unrouted[reason.label] = unrouted.get(reason.label, 0) + amount
    count = len(lid)
    loads_of_all = Loads(
        by_rail=tuple(by_rail),
        groups=((ALL, ALL),),
        bytes_total=size * count * (count - 1),
        bytes_routed=routed,
        bytes_on_host=0,
        bytes_unrouted=unrouted,
    )
    traffic = _describe(text, lid, describe_rails(policy, len(subnets), hosts), incomplete)
    if hosts.has_several:
        label = label_of_policy(nic or adapter_policies.RANK)
        traffic = replace(traffic, nic=label, notes=(*(() if nic else (note_ends(hosts),)), *traffic.notes))
    fabrics = [subnet.fabric for subnet in subnets]
    return replace(traffic, in_parts=partial(_make_parts, text, size, hosts, fabrics, policy, nic)), loads_of_all


def _make_parts(
    text: str, size: int, hosts: Hosts, fabrics: Sequence[Fabric], policy: str, nic: str | None
) -> Iterator[Traffic]:
    """Yield the flows in parts, each from some of the senders."""
    all_hosts = np.arange(len(hosts.ends if nic is None else hosts.name), dtype=np.int32)
    for begin in range(0, len(all_hosts), senders := max(_FLOWS // len(all_hosts), 1)):
        some = all_hosts[begin : begin + senders]
        source, destination = np.repeat(some, len(all_hosts)), np.tile(all_hosts, len(some))
        demand = as_rank_traffic(
            text, source[source != destination], destination[source != destination], size, len(all_hosts)
        )
        yield map_to_lids(demand, hosts, fabrics, None, policy, nic)


def _pair_up(lid: npt.NDArray[np.int32]) -> Iterator[tuple[_Rows, _Rows, npt.NDArray[np.bool_]]]:
    """Yield the pairs of ends by their common rails: sources, destinations, bool [rail]."""
    present, kind = np.unique(lid != NO_LID, axis=0, return_inverse=True)
    rows = [np.flatnonzero(kind.ravel() == number) for number in range(len(present))]
    for one, other in product(range(len(present)), repeat=2):
        yield rows[one], rows[other], present[one] & present[other]


def _share_out(policy: str, usable: npt.NDArray[np.bool_], size: int) -> Iterator[tuple[int, int]]:
    """Yield the rails that a pair's bytes take, with the bytes on each rail."""
    if usable.any():
        rank, one = np.zeros(1, np.int32), np.ones(1, np.uint64)
        shares = share_out(policy, usable[None], rank, rank + 1, np.array([size], np.uint64), one)
        yield from zip(shares.rail.tolist(), shares.bytes.tolist(), strict=True)


def _describe(text: str, lid: npt.NDArray[np.int32], rail_source: str, incomplete: int) -> Traffic:
    lids, notes = np.zeros(0, np.int32), note_incomplete(incomplete)
    return Traffic.without_ranks(lids, lids, np.zeros(0, np.uint64), lid, text, rail_source=rail_source, notes=notes)
