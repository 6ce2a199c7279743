# SPDX-License-Identifier: Apache-2.0
"""Causes that lie in the tables: destinations that share a link although others were as near."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import format_seconds
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.hotspots.causes.load_cause import ROUTING, LoadCause, make_finding, name_end
from ibprof_converter.hotspots.causes.situation import LinkDirection, Situation, joins_switches
from ibprof_converter.routing.balanced_tables import balance_tables
from ibprof_converter.routing.route_choice import are_modelled
from ibprof_converter.routing.spread import spread_matrix
from ibprof_converter.routing.subnet import Subnet

_UNEVEN = 1.4
"""Times what the busiest link of its kind carries under balanced tables, when all hosts send to all."""

_GAIN = 0.9

HOSTS_LIMIT = 3000
"""Hosts beyond which balanced tables take longer to make than a report may."""


def find_bad_tables(situation: Situation, busiest: LinkDirection) -> Iterator[LoadCause]:
    """Find whether the tables lead more over the most loaded link than shortest routes must.

    Modelled tables are not the subnet's: nothing is said of them.
    """
    subnet = situation.subnets[busiest.rail]
    if are_modelled([subnet]):
        return
    lids = _host_lids(subnet)
    if not 1 < len(lids) <= HOSTS_LIMIT:
        return
    balanced = balance(subnet)
    peers = _find_peers(situation, busiest)
    present = float(_all_to_all(subnet, lids)[busiest.link, busiest.end])
    possible = float(_all_to_all(balanced, lids)[peers].max(initial=0.0))
    if present < _UNEVEN * possible:
        return
    after = situation.changed(
        subnets=[balanced if rail == busiest.rail else balance(each) for rail, each in enumerate(situation.subnets)]
    )
    if after.max_seconds > _GAIN * situation.max_seconds:
        return
    yield make_finding(
        ROUTING,
        situation,
        after,
        [name_end(situation, busiest)],
        [
            f"if all hosts sent to all, the tables would put {present:,.0f} flows on {name_end(situation, busiest)}; "
            f"with shortest routes that share links evenly no link of its kind need carry more than {possible:,.0f}",
            f"the same traffic with such tables: {format_seconds(after.max_seconds)} on the busiest link",
        ],
        "have the subnet manager route anew (on fat-trees the engines ftree or updn with all leaves and spines seen; "
        "after cables were changed, a full sweep): neither the placement nor the cabling is at fault",
    )


def balance(subnet: Subnet) -> Subnet:
    """Return a rail with balanced tables."""
    return Subnet(subnet.fabric, balance_tables(subnet.fabric, subnet.tables), ())


def _host_lids(subnet: Subnet) -> npt.NDArray[np.int32]:
    fabric = subnet.fabric
    lids: npt.NDArray[np.int32] = fabric.port_lid[fabric.node_kind[fabric.port_node] == NodeKind.CA]
    return lids


def _all_to_all(subnet: Subnet, lids: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    one = np.broadcast_to(np.uint64(1), (len(lids), len(lids)))
    loads = spread_matrix(subnet.routes, lids, lids, one).bytes[:, :, 0]
    return loads.astype(np.float64)


def _find_peers(situation: Situation, end: LinkDirection) -> npt.NDArray[np.bool_]:
    """Find the directions between the same two levels of switches as a given one; bool [link, end]."""
    subnet, level = situation.subnets[end.rail], situation.levels[end.rail]
    node = subnet.fabric.link_node
    sender, receiver = level[node[end.link, end.end]], level[node[end.link, 1 - end.end]]
    alike = (level[node] == sender) & (level[node[:, ::-1]] == receiver)
    return np.asarray(alike & joins_switches(subnet)[:, np.newaxis])
