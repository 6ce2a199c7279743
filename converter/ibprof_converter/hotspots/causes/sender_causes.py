# SPDX-License-Identifier: Apache-2.0
"""Find causes in the choice of rails, adapters, senders and receivers; advise on MPI calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.profile.row_arrays import find_distinct, number_keys
from ibprof.text.quantities import format_bytes, format_seconds, printable
from ibprof_converter.hotspots.causes.load_cause import (
    ADAPTERS,
    FEW_TO_MANY,
    MANY_TO_FEW,
    ONE_ADAPTER,
    ONE_RAIL,
    PROGRAM,
    Change,
    LoadCause,
    list_some,
)
from ibprof_converter.hotspots.causes.situation import PairBytes, Situation
from ibprof_converter.routing.subnet_routes import scan_flows
from ibprof_converter.traffic.hosts import NO_HOST
from ibprof_converter.traffic.traffic_data import NO_LID

_UNEVEN = 1.25
"""A rail is overloaded if its bytes are at least 1.25 times the mean bytes of all rails."""

_CONCENTRATED = 3.0
"""A host is one of few receivers (senders) if it receives (sends) at least 3 times the participating hosts' mean."""

_ALL_ADAPTERS = (
    "Open MPI and MPICH with UCX: UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 UCX_MAX_RNDV_RAILS=2, with the ports that "
    "`ibv_devinfo` lists; NCCL: NCCL_IB_HCA=mlx5_0,mlx5_1"
)

_SEVERAL = 2.5
"""A host has many partners if, over its partners, (sum of bytes)² / sum of (bytes²) is at least 2.5."""
_GATHER = "use more roots, or let ranks write their own parts; a tree does not change the bytes that a root receives"
_REDUCE = "reduce along a tree, so that no rank receives from many; or reduce over fewer ranks at a time"
_SCATTER = "use more roots, or let ranks read their own parts; a tree does not change the bytes that a root sends"
_BROADCAST = "broadcast along a tree or a pipeline, so that the root sends to few ranks"
_EVENLY = "let all ranks {} about the same number of bytes; another algorithm does not change a rank's number of bytes"
_RECEIVERS = "use more ranks that receive (aggregators, servers), each on a separate host"
_SENDERS = "use more ranks that send (servers, readers), each on a separate host"

_FAMILIES = ("allreduce", "reduce", "gather", "scatter", "alltoall", "bcast", "send", "put", "get")

_ADVICE: Mapping[str, Mapping[str, str]] = {
    MANY_TO_FEW: {
        "gather": _GATHER,
        "reduce": _REDUCE,
        "allreduce": _REDUCE,
        "alltoall": _EVENLY.format("receive"),
        "send": _RECEIVERS,
        "put": _RECEIVERS,
    },
    FEW_TO_MANY: {
        "scatter": _SCATTER,
        "bcast": _BROADCAST,
        "alltoall": _EVENLY.format("send"),
        "send": _SENDERS,
        "get": _SENDERS,
    },
}


def try_adapters(situation: Situation) -> Iterator[Change]:
    """Try two changes: divide the bytes of each pair of hosts evenly over rails, or over adapters in a subnet."""
    rails = len(situation.subnets)
    flows = situation.flows
    if not len(flows.bytes):
        return
    if rails > 1:
        by_rail = np.bincount(flows.rail, weights=flows.bytes.astype(np.float64), minlength=rails)
        busiest = int(by_rail.argmax())
        share = float(by_rail[busiest] / max(by_rail.sum(), 1.0))
        amounts = ", ".join(f"rail {rail}: {format_bytes(amount)}" for rail, amount in enumerate(by_rail.tolist()))
        yield Change(
            cause=ONE_RAIL,
            kind=ADAPTERS,
            what="the bytes of each pair of hosts divided evenly over its rails",
            after=situation.changed(flows=_share_over_rails(situation)),
            why_not="" if share * rails >= _UNEVEN else "all rails carry about the same number of bytes",
            at=(f"rail {busiest}",),
            evidence=(f"of {rails} rails, rail {busiest} carries {share * 100:.0f}% of the bytes ({amounts})",),
            advice="use all adapters of a host, so that all rails carry the same number of bytes",
            change=_ALL_ADAPTERS,
        )
    if situation.hosts.has_several:
        most = situation.hosts.ports.shape[2]
        yield Change(
            cause=ONE_ADAPTER,
            kind=ADAPTERS,
            what="the bytes of each pair of hosts divided evenly over its adapters in a subnet",
            after=situation.changed(flows=_share_over_adapters(situation)),
            at=(f"hosts with up to {most} adapters in one subnet",),
            evidence=(
                f"hosts have up to {most} adapters in one subnet, but do not divide bytes evenly over these adapters",
            ),
            advice="use all adapters of a host, or bind each rank to an adapter near it",
            change=_ALL_ADAPTERS,
        )


def _share_over_adapters(situation: Situation) -> PairBytes:
    """Divide the bytes between two hosts evenly over adapters: adapter i sends part i to adapter i."""
    flows, hosts = situation.flows, situation.hosts
    source, destination = situation.flow_hosts
    known = (source != NO_HOST) & (destination != NO_HOST)
    first, group = _group_flows(np.flatnonzero(known), flows.rail, source, destination)
    rail, ends = flows.rail[first], (source[first], destination[first])
    count = np.maximum(*(np.maximum(hosts.adapters[end, rail], 1) for end in ends))
    shares = _share_evenly(flows.bytes[known], group, count)
    parts = [_unchanged(flows, np.flatnonzero(~known))]
    for number in range(shares.shape[1]):
        here = np.flatnonzero(count > number)
        part = np.full(len(here), number)
        lids = (hosts.port(end[here], rail[here], part) for end in ends)
        parts.append((rail[here], *lids, shares[here, number]))
    return PairBytes.add_up(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _share_over_rails(situation: Situation) -> PairBytes:
    """Divide the bytes between two adapters evenly over the hosts' common rails; keep the adapter numbers."""
    flows, hosts = situation.flows, situation.hosts
    source, destination = situation.flow_hosts
    known = np.flatnonzero((source != NO_HOST) & (destination != NO_HOST))
    first, group = _group_flows(known, source, destination, *situation.flow_adapters)
    usable = (hosts.lid[source[first]] != NO_LID) & (hosts.lid[destination[first]] != NO_LID)
    count = usable.sum(axis=1)
    shares = _share_evenly(flows.bytes[known], group, np.maximum(count, 1))
    is_shared = np.zeros(len(source), np.bool_)
    is_shared[known] = (count > 1)[group]
    parts = [_unchanged(flows, np.flatnonzero(~is_shared))]
    turn = np.zeros(len(first), np.intp)
    for number in range(len(situation.subnets)):
        here = np.flatnonzero((count > 1) & usable[:, number])
        lids = (
            hosts.port(end[first[here]], number, adapter[first[here]])
            for end, adapter in zip(situation.flow_hosts, situation.flow_adapters, strict=True)
        )
        parts.append((np.full(len(here), number, np.int32), *lids, shares[here, turn[here]]))
        turn += usable[:, number]
    return PairBytes.add_up(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _group_flows(
    rows: npt.NDArray[np.intp], *columns: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Group rows with equal values in all columns; return the first row of each group, and the group of each row."""
    key = np.zeros(len(rows), np.int64)
    for column in columns:
        key = key * (int(column.max(initial=0)) + 1) + column[rows]
    keys, group = number_keys(key)
    first = np.empty(len(keys), np.intp)
    first[group[::-1]] = rows[::-1]
    return first, group


def _share_evenly(
    amount: npt.NDArray[np.uint64], group: npt.NDArray[np.intp], count: npt.NDArray[np.integer]
) -> npt.NDArray[np.uint64]:
    """Divide each amount into parts that differ by at most 1, larger parts first; sum part i over the group's amounts.

    Args:
        amount, group: uint64 and int [row].
        count: int [group], number of parts into which the group's amounts are divided.

    Returns:
        uint64 [group, part]; 0 for part >= count of the group.
    """
    parts = int(count.max(initial=1))
    whole, rest = np.divmod(amount, count.astype(np.uint64)[group])
    total = np.zeros(len(count), np.uint64)
    np.add.at(total, group, whole)
    having = np.bincount(group * (parts + 1) + rest.astype(np.intp), minlength=len(count) * (parts + 1))
    larger = having.reshape(-1, parts + 1)[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:].astype(np.uint64)
    return np.where(np.arange(parts) < count[:, np.newaxis], total[:, np.newaxis] + larger, np.uint64(0))


def _unchanged(flows: PairBytes, rows: npt.NDArray[np.intp]) -> tuple[npt.NDArray[Any], ...]:
    return flows.rail[rows], flows.source_lid[rows], flows.destination_lid[rows], flows.bytes[rows]


def try_partners(situation: Situation) -> Iterator[Change]:
    """Try more receivers (or senders) if few hosts receive (or send) most bytes of the most loaded link direction."""
    source, destination = situation.flow_hosts
    known = (source != NO_HOST) & (destination != NO_HOST)
    for cause, one, other in ((MANY_TO_FEW, destination, source), (FEW_TO_MANY, source, destination)):
        few = _concentrated(situation, one, other, known)
        if not len(few):
            continue
        receiving = cause == MANY_TO_FEW
        seconds = _own_seconds(situation, receiving)
        names = [printable(situation.hosts.name[host]) for host in few]
        worst = int(few[0])
        partners = len(find_distinct(other[known & (one == worst)]))
        taking_part = find_distinct(source[known], destination[known])
        verb, relation = ("receives", "from") if receiving else ("sends", "to")
        verb_of_all = f"{list_some(names)} {verb if len(names) == 1 else verb[:-1]}"
        times = seconds[worst] / max(float(seconds[taking_part].mean()), 1e-300)
        yield Change(
            cause=cause,
            kind=PROGRAM,
            what=f"the bytes that {verb_of_all}, spread over more hosts",
            after=situation.changed(flows=_relieve(situation, few, one, other, receiving)),
            at=tuple(names),
            evidence=(
                f"{names[0]} {verb} {relation} {partners} hosts; its own link needs {format_seconds(seconds[worst])}, "
                f"{times:.1f} times the mean of the {len(taking_part)} hosts that send or receive",
            ),
            advice=f"spread the bytes that {verb_of_all} over more hosts: use more roots, aggregators or servers. "
            + (
                "A tree instead of a flat gather does not change the bytes that the root receives"
                if receiving
                else "A tree lowers the number of bytes that the root sends in a broadcast, but not in a scatter"
            ),
            change=f"more hosts that {'receive' if receiving else 'send'}, instead of {list_some(names)} alone",
        )


def _own_seconds(situation: Situation, receiving: bool) -> npt.NDArray[np.float64]:
    """Return the largest time of a link direction to each host if `receiving`, else from each host: float64 [host]."""
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
    """Return the few hosts that receive (or send) at least half of the most loaded link direction's bytes, or none."""
    hosts = len(situation.hosts.name)
    amount = np.where(known, situation.flows.bytes.astype(np.float64), 0.0)
    total = np.bincount(one[known], weights=amount[known], minlength=hosts)
    taking_part = len(find_distinct(one[known], other[known]))
    if not taking_part:
        return np.zeros(0, np.intp)
    is_few = total >= _CONCENTRATED * total.sum() / taking_part
    few = np.flatnonzero(is_few)
    few = few[np.argsort(-total[few], kind="stable")]
    # Leave out hosts with a single heavy partner: this traffic is not many-to-few.
    pair, inverse = number_keys(one[known].astype(np.int64) * hosts + other[known])
    of_pair = np.bincount(inverse, weights=amount[known])
    squares = np.bincount(pair // hosts, weights=of_pair**2, minlength=hosts)
    partners = total[few] ** 2 / np.maximum(squares[few], 1e-300)
    few = few[partners >= _SEVERAL]
    if not len(few):
        return few
    busiest = situation.most_loaded()
    here = np.flatnonzero(situation.flows.rail == busiest.rail)
    lids = situation.flows.source_lid[here], situation.flows.destination_lid[here]
    (rows,) = scan_flows(situation.subnets[busiest.rail].routes, *lids, [2 * busiest.link + busiest.end])
    passing = here[rows]
    share = amount[passing][np.isin(one[passing], few)].sum() / max(amount[passing].sum(), 1e-300)
    return few if share >= 0.5 else few[:0]


def _relieve(
    situation: Situation,
    few: npt.NDArray[np.intp],
    one: npt.NDArray[np.int32],
    other: npt.NDArray[np.int32],
    receiving: bool,
) -> PairBytes:
    """Divide the partners of each host in `few` between this host and the least loaded participating hosts."""
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
        # Bytes stay at `host` if the chosen host is the partner itself, or has no port on the rail.
        usable = (chosen != other[rows]) & (hosts.lid[chosen, flows.rail[rows]] != NO_LID)
        replaced[rows] = np.where(usable, chosen, host)
        idle = idle[len(helpers) - 1 :] + idle[: len(helpers) - 1]
    lid = flows.destination_lid if receiving else flows.source_lid
    lid = np.where(replaced == one, lid, hosts.lid[replaced, flows.rail])
    if receiving:
        return PairBytes.add_up(flows.rail, flows.source_lid, lid, flows.bytes)
    return PairBytes.add_up(flows.rail, lid, flows.destination_lid, flows.bytes)


def advise_on_call(cause: LoadCause) -> LoadCause:
    """Return the cause with advice on the MPI call that loads the link most; unchanged if there is no such advice."""
    operation = cause.loaded_by.operation if cause.loaded_by else None
    advice = _ADVICE.get(cause.cause, {}).get(_family(operation or ""))
    if advice is None:
        return cause
    return replace(cause, advice=f"{operation}: {advice}")


def _family(operation: str) -> str:
    """Return the kind of a call: `gather` for MPI_Igatherv, `send` for MPI_Isend and MPI_Rsend."""
    name = operation.removeprefix("MPI_").lower().removesuffix("_init")
    match = re.fullmatch(f"(?:i|i?[bsr])?({'|'.join(_FAMILIES)})[vw]?", name)
    return match[1] if match else ""
