# SPDX-License-Identifier: Apache-2.0
"""Causes that lie in who sends to whom: a rail that is not used, many hosts that talk to few."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ibprof.profile.exact_sums import find_distinct, number_keys
from ibprof.text.quantities import format_bytes, format_seconds, printable
from ibprof_converter.hotspots.causes.load_cause import (
    FEW_TO_MANY,
    GAIN,
    MANY_TO_FEW,
    ONE_RAIL,
    LoadCause,
    list_some,
    make_finding,
)
from ibprof_converter.hotspots.causes.situation import LinkDirection, PairBytes, Situation
from ibprof_converter.routing.flow_index import FlowIndex
from ibprof_converter.traffic.hosts import NO_HOST
from ibprof_converter.traffic.traffic_data import NO_LID

_UNEVEN = 1.25
"""Times its even share that a rail must carry."""

_CONCENTRATED = 3.0
"""Times the mean of all hosts that take part, that a host must receive (or send) to be one of few."""

_SEVERAL = 2.5
"""How many partners of equal weight make many."""


def find_unused_rails(situation: Situation) -> Iterator[LoadCause]:
    """Find whether one rail carries what several could."""
    rails = len(situation.subnets)
    flows = situation.flows
    if rails < 2 or not len(flows.bytes):
        return
    by_rail = np.bincount(flows.rail, weights=flows.bytes.astype(np.float64), minlength=rails)
    busiest = int(by_rail.argmax())
    share = float(by_rail[busiest] / max(by_rail.sum(), 1.0))
    if share * rails < _UNEVEN:
        return
    after = situation.changed(flows=_share_out(situation))
    if after.max_seconds > GAIN * situation.max_seconds:
        return
    amounts = ", ".join(f"rail {rail}: {format_bytes(amount)}" for rail, amount in enumerate(by_rail.tolist()))
    yield make_finding(
        ONE_RAIL,
        situation,
        after,
        [f"rail {busiest}"],
        [f"of {rails} rails, rail {busiest} carries {share * 100:.0f}% of the bytes ({amounts})"],
        "let the MPI use all adapters of a host (Open MPI with UCX: UCX_NET_DEVICES with the ports of all rails and "
        "UCX_MAX_RNDV_RAILS; btl openib: btl_openib_ignore_locality): shared evenly, each rail carries its part",
    )


def _share_out(situation: Situation) -> PairBytes:
    """Share each pair of hosts out evenly over the rails that both are on, by adapters of the same number."""
    flows, hosts = situation.flows, situation.hosts
    source, destination = situation.flow_hosts
    of_source, of_destination = situation.flow_adapters
    known = (source != NO_HOST) & (destination != NO_HOST)
    usable = (hosts.lid[source] != NO_LID) & (hosts.lid[destination] != NO_LID) & known[:, np.newaxis]
    count = usable.sum(axis=1)
    movable = np.flatnonzero(count > 1)
    parts = [np.flatnonzero(count <= 1)]
    rail, first, last = [flows.rail[parts[0]]], [flows.source_lid[parts[0]]], [flows.destination_lid[parts[0]]]
    amount = [flows.bytes[parts[0]]]
    for number in range(len(situation.subnets)):
        here = movable[usable[movable, number]]
        turn = (np.cumsum(usable[here], axis=1)[:, number] - 1).astype(np.uint64)
        shares = count[here].astype(np.uint64)
        rail.append(np.full(len(here), number, np.int32))
        first.append(hosts.port(source[here], number, of_source[here]))
        last.append(hosts.port(destination[here], number, of_destination[here]))
        amount.append(flows.bytes[here] // shares + (turn < flows.bytes[here] % shares))
    return PairBytes.add_up(np.concatenate(rail), np.concatenate(first), np.concatenate(last), np.concatenate(amount))


def find_concentration(situation: Situation) -> Iterator[LoadCause]:
    """Find whether the most loaded link direction is hot since many hosts send to few, or few to many."""
    source, destination = situation.flow_hosts
    known = (source != NO_HOST) & (destination != NO_HOST)
    for cause, one, other in ((MANY_TO_FEW, destination, source), (FEW_TO_MANY, source, destination)):
        few = _concentrated(situation, one, other, known)
        if not len(few):
            continue
        after = situation.changed(flows=_relieve(situation, few, one, other, cause == MANY_TO_FEW))
        if after.max_seconds > GAIN * situation.max_seconds:
            continue
        seconds = _own_seconds(situation, cause == MANY_TO_FEW)
        names = [printable(situation.hosts.name[host]) for host in few]
        worst = int(few[0])
        partners = len(find_distinct(other[known & (one == worst)]))
        taking_part = find_distinct(source[known], destination[known])
        verb, relation = ("receives", "from") if cause == MANY_TO_FEW else ("sends", "to")
        times = seconds[worst] / max(float(seconds[taking_part].mean()), 1e-300)
        yield make_finding(
            cause,
            situation,
            after,
            names,
            [
                f"{names[0]} {verb} {relation} {partners} hosts, and its own link needs "
                f"{format_seconds(seconds[worst])} for that, {times:.1f} times the mean of the {len(taking_part)} "
                "hosts that take part",
                "no placement and no routing makes a host's own link faster",
            ],
            f"spread what {list_some(names)} {verb} over more hosts (more aggregators or servers, a tree in place of a "
            "flat gather or scatter)",
        )
        return


def _own_seconds(situation: Situation, receiving: bool) -> npt.NDArray[np.float64]:
    """Return the time of each host's own link directions, the largest of its rails: float64 [host]."""
    result = np.zeros(len(situation.hosts.name))
    for rail, subnet in enumerate(situation.subnets):
        fabric = subnet.fabric
        for end in (0, 1):
            host = situation.hosts.of_node[rail][fabric.link_node[:, end]]
            known = host != NO_HOST
            seconds = situation.seconds[rail][:, 1 - end if receiving else end]
            np.maximum.at(result, host[known], seconds[known])
    return result


def _concentrated(
    situation: Situation,
    one: npt.NDArray[np.int32],
    other: npt.NDArray[np.int32],
    known: npt.NDArray[np.bool_],
) -> npt.NDArray[np.intp]:
    """Return the few hosts that the bytes of the most loaded link direction go to (or come from), the busiest first."""
    hosts = len(situation.hosts.name)
    amount = np.where(known, situation.flows.bytes.astype(np.float64), 0.0)
    total = np.bincount(one[known], weights=amount[known], minlength=hosts)
    taking_part = len(find_distinct(one[known], other[known]))
    if not taking_part:
        return np.zeros(0, np.intp)
    is_few = total >= _CONCENTRATED * total.sum() / taking_part
    few = np.flatnonzero(is_few)
    few = few[np.argsort(-total[few], kind="stable")]
    # Many is more than one heavy partner.
    pair, inverse = number_keys(one[known].astype(np.int64) * hosts + other[known])
    of_pair = np.bincount(inverse, weights=amount[known])
    squares = np.bincount(pair // hosts, weights=of_pair**2, minlength=hosts)
    partners = total[few] ** 2 / np.maximum(squares[few], 1e-300)
    few = few[partners >= _SEVERAL]
    if not len(few):
        return few
    passing = _flows_on(situation, situation.most_loaded())
    share = amount[passing][np.isin(one[passing], few)].sum() / max(amount[passing].sum(), 1e-300)
    return few if share >= 0.5 else few[:0]


def _flows_on(situation: Situation, end: LinkDirection) -> npt.NDArray[np.intp]:
    here = np.flatnonzero(situation.flows.rail == end.rail)
    routes = situation.subnets[end.rail].routes
    index = FlowIndex(routes, situation.flows.source_lid[here], situation.flows.destination_lid[here])
    return here[index.on(end.link, end.end)]


def _relieve(
    situation: Situation,
    few: npt.NDArray[np.intp],
    one: npt.NDArray[np.int32],
    other: npt.NDArray[np.int32],
    receiving: bool,
) -> PairBytes:
    """Deal what concerns few hosts out to the hosts that take part and have least to do, partner by partner."""
    flows, hosts = situation.flows, situation.hosts
    taking_part = np.unique(np.concatenate([one, other]))
    taking_part = taking_part[taking_part != NO_HOST]
    total = np.bincount(
        one[one != NO_HOST], weights=flows.bytes[one != NO_HOST].astype(float), minlength=len(hosts.name)
    )
    even = total.sum() / len(taking_part)
    replaced = one.copy()
    idle = [int(host) for host in taking_part[np.argsort(total[taking_part], kind="stable")] if host not in set(few)]
    for host in few.tolist():
        helpers = [host, *idle[: max(1, round(total[host] / even / 2))]]
        rows = np.flatnonzero(one == host)
        turn = np.unique(other[rows], return_inverse=True)[1]
        chosen = np.array(helpers)[turn % len(helpers)]
        # Nobody sends to itself, nor over a rail that it is not on.
        usable = (chosen != other[rows]) & (hosts.lid[chosen, flows.rail[rows]] != NO_LID)
        replaced[rows] = np.where(usable, chosen, host)
        idle = idle[len(helpers) - 1 :] + idle[: len(helpers) - 1]
    lid = flows.destination_lid if receiving else flows.source_lid
    lid = np.where(replaced == one, lid, hosts.lid[replaced, flows.rail])
    if receiving:
        return PairBytes.add_up(flows.rail, flows.source_lid, lid, flows.bytes)
    return PairBytes.add_up(flows.rail, lid, flows.destination_lid, flows.bytes)
