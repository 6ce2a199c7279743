# SPDX-License-Identifier: Apache-2.0
"""Map traffic between ranks to traffic between LIDs.

An all-to-all over the adapters of all hosts is a matrix of equal entries, which needs almost no memory. For 11,664
hosts, a table of the same flows has 136 million rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.native.libraries import sum_exactly
from ibprof_converter.choices import PATTERN_PREFIX, PLACEMENT_FORMS
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.routing.spread import spread_matrix
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic import adapter_policies
from ibprof_converter.traffic.adapter_policies import (
    SPLIT,
    RailShares,
    choose_adapters,
    label_of_policy,
    share_out,
    spread_flows,
)
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.link_loads import Loads
from ibprof_converter.traffic.patterns import as_rank_traffic
from ibprof_converter.traffic.rank_placement import RankPlacement, place_ranks_as_recorded, place_ranks_by_rule
from ibprof_converter.traffic.traffic_data import (
    ALL,
    NO_LID,
    ONE_SUBNET,
    SINGLE_RAIL,
    RankTraffic,
    Rows,
    Traffic,
    choose_rows,
)
from ibprof_converter.traffic.traffic_reader import choose_flows
from ibprof_converter.traffic.training_jobs import note_training, ranks_a_host

NOT_RECORDED = "rank was not recorded, so its host is unknown"
NOT_IN_FABRIC = "host is not in the fabric"
NO_COMMON_RAIL = "no rail joins the two hosts"


def map_to_lids(
    demand: RankTraffic,
    hosts: Hosts,
    fabrics: Sequence[Fabric],
    rule: str | None,
    policy: str | None,
    nic: str | None = None,
) -> Traffic:
    """Place the ranks on ports; return the traffic between these ports, from LID to LID.

    Args:
        rule: value of `--placement`. If None: the recorded placement.
        policy: value of `--rails`. If None: measured rails if work requests were recorded and ranks stay on their
            recorded hosts, else `split`.
        nic: value of `--nic`. If None: measured adapters if known, else the ranks' recorded choice, else near adapters,
            else `rank`.

    Raises:
        UsageError: the placement or the policy is unknown, or there are too many ranks.
        InputError: the placement file is invalid.
    """
    placement = _find_placement(demand, hosts, fabrics, rule, nic)
    whole = demand if demand.profile and len(demand.profile.transfers.bytes) else demand.whole
    run = whole.profile
    unmeasured = None
    if run and len(run.transfers.bytes):
        # Imported here: few runs recorded the bytes posted to queue pairs.
        from ibprof_converter.traffic.measured_rails import map_measured_to_lids, why_not_measured  # noqa: PLC0415

        unmeasured = why_not_measured(run, fabrics)
        if rule is None and policy is None and nic is None and not unmeasured:
            measured = map_measured_to_lids(whole, run, placement, fabrics)
            return measured if whole is demand else choose_flows(measured, demand)
    on_host, unmapped, usable = _classify_flows(demand, placement)
    reasons = dict(demand.unmapped)
    for reason, rows in unmapped.items():
        if amount := sum_exactly(demand.bytes[rows]):
            reasons[reason] = reasons.get(reason, 0) + amount
    notes = [*placement.notes, *note_training(demand.origin)]
    if nic is None and placement.adapters:
        notes += placement.adapters.notes
    if unmeasured:
        notes.append(f"rails are modelled although work requests were recorded: {unmeasured}")
    on_link = choose_rows(np.logical_or.reduce(usable, axis=1))
    policy = policy or SPLIT
    shares = share_out(
        policy,
        usable[on_link],
        demand.source[on_link],
        demand.destination[on_link],
        demand.bytes[on_link],
        demand.messages[on_link],
    )
    notes += note_incomplete(int((~usable[on_link].all(axis=1)).sum()))
    taken = _take_adapters(demand, placement, on_link, shares, nic)
    flow = taken.flow
    return Traffic(
        rail=taken.rail,
        source_lid=taken.source_lid,
        destination_lid=taken.destination_lid,
        bytes=taken.bytes,
        region=demand.region[flow],
        operation=demand.operation[flow],
        source_rank=demand.source[flow],
        destination_rank=demand.destination[flow],
        regions=demand.regions,
        operations=demand.operations,
        on_host_bytes=sum_exactly(demand.bytes[on_host]),
        unmapped=reasons,
        rail_source=describe_rails(policy, len(fabrics), hosts),
        origin=demand.origin,
        rank_lid=taken.rank_lid,
        nic=taken.nic,
        notes=tuple(notes),
        moved=rule is not None,
        site=demand.site[flow] if len(demand.sites) > 1 else demand.site,
        sites=demand.sites,
        layer=demand.layer,
    )


@dataclass(frozen=True, slots=True)
class _TakenPorts:
    """Shares of flows, with the two ports of each share; the first five arrays have equal length.

    Attributes:
        flow: row of the demand to which each share belongs.
        rail, source_lid, destination_lid: int32, rail and ports of each share.
        bytes: uint64, bytes of each share.
        rank_lid: int32 [rank, rail], ports of the ranks, as in `Traffic`.
        nic: label of the method that chose the adapters (`Traffic.nic`).
    """

    flow: Rows
    rail: npt.NDArray[np.int32]
    source_lid: npt.NDArray[np.int32]
    destination_lid: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]
    rank_lid: npt.NDArray[np.int32]
    nic: str | None


def _take_adapters(
    demand: RankTraffic, placement: RankPlacement, on_link: Rows, shares: RailShares, nic: str | None
) -> _TakenPorts:
    chosen = choose_adapters(placement, nic)
    flow = shares.flow if isinstance(on_link, slice) else on_link[shares.flow]
    source, destination, rail = demand.source[flow], demand.destination[flow], shares.rail
    if chosen.spread is None:
        lids = chosen.lid[source, rail], chosen.lid[destination, rail]
        return _TakenPorts(flow, rail, *lids, shares.bytes, chosen.lid, chosen.nic)
    parts = spread_flows(chosen.spread[source, rail], chosen.spread[destination, rail], shares.bytes)
    rows = np.arange(len(demand.bytes))[flow] if isinstance(flow, slice) else flow
    lids = parts.source_lid, parts.destination_lid
    return _TakenPorts(rows[parts.flow], rail[parts.flow], *lids, parts.bytes, chosen.lid, chosen.nic)


def describe_rails(policy: str, count: int, hosts: Hosts) -> str:
    """Return `Traffic.rail_source` for modelled rails; `count` is the number of rails."""
    if count > 1:
        return f"modelled ({policy})"
    return ONE_SUBNET if hosts.has_several else SINGLE_RAIL


def note_incomplete(flows: int) -> tuple[str, ...]:
    """Return a note on `flows` flows with ports on some rails only; empty if `flows` is 0."""
    if not flows:
        return ()
    return (f"{flows} flow(s) have an end that is not on all rails; these flows take the rails that join both ends",)


def _find_placement(
    demand: RankTraffic, hosts: Hosts, fabrics: Sequence[Fabric], rule: str | None, nic: str | None
) -> RankPlacement:
    slots = ranks_a_host(demand.origin)
    if rule is not None:
        return place_ranks_by_rule(rule, hosts, fabrics, demand.ranks, slots or 1)
    if demand.profile is not None:
        return place_ranks_as_recorded(demand.profile, hosts, fabrics, demand.ranks)
    if slots:
        if demand.ranks != slots * len(hosts.name):
            raise UsageError(
                f"{demand.origin}: expected tp*pp*dp = {slots * len(hosts.name)}, with {slots} ranks on each of "
                f"{len(hosts.name)} hosts (gpus={slots}), or --placement; found {demand.ranks}"
            )
        return place_ranks_by_rule("packed", hosts, fabrics, demand.ranks, slots)
    if demand.origin.startswith(PATTERN_PREFIX):
        return _place_pattern(demand, hosts, nic)
    raise UsageError(f"{demand.origin} names no hosts: add --placement ({PLACEMENT_FORMS})")


def _place_pattern(demand: RankTraffic, hosts: Hosts, nic: str | None) -> RankPlacement:
    """Place each rank of a pattern on an adapter if there are as many ranks as adapters, else on a host."""
    every = np.arange(demand.ranks, dtype=np.int32)
    if demand.ranks == len(hosts.name):
        return RankPlacement(host=every, ports=hosts.ports, notes=())
    ends = hosts.ends
    if nic is None and demand.ranks == len(ends):
        # Bytes between two adapters of a host load links: from the first adapter, and to the second.
        return RankPlacement(every, ends[:, :, np.newaxis], (note_ends(hosts),), label_of_policy(adapter_policies.RANK))
    several = len(ends) > len(hosts.name)
    read_for = f"{demand.ranks} {f'hosts or {hosts.end_noun}' if several else 'hosts'}"
    found = f"{len(hosts.name)} hosts with {len(ends)} {hosts.end_noun}" if several else str(len(hosts.name))
    raise UsageError(
        f"{demand.origin} was read for a fabric of {read_for}, and this fabric has {found}: "
        f"read it for this fabric, or add --placement ({PLACEMENT_FORMS})"
    )


def note_ends(hosts: Hosts) -> str:
    """Return the note that the senders of a pattern are adapters, not hosts."""
    return (
        f"the pattern's senders and receivers are the {len(hosts.ends)} {hosts.end_noun} of {len(hosts.name)} hosts; "
        "with --nic, hosts send and receive instead"
    )


def _classify_flows(
    demand: RankTraffic, placement: RankPlacement
) -> tuple[npt.NDArray[np.bool_], dict[str, npt.NDArray[np.bool_]], npt.NDArray[np.bool_]]:
    """Find flows within a host, flows without a route, and the usable rails of all other flows.

    Returns:
        Three values. bool [flow]: true if the flow is within a host. Reason -> bool [flow]: true if the flow has no
        route for this reason. bool [flow, rail]: true if the flow can use the rail.
    """
    source, destination = demand.source, demand.destination
    source_host, destination_host = placement.host[source], placement.host[destination]
    on_host = (source == destination) | ((source_host == destination_host) & (source_host != NO_HOST))
    present = placement.lid != NO_LID
    usable = present[source] & present[destination] & ~on_host[:, None]
    remaining = ~on_host & ~usable.any(axis=1)
    unknown = remaining & ((source_host == NO_HOST) | (destination_host == NO_HOST))
    somewhere = present.any(axis=1)
    absent = remaining & ~unknown & ~(somewhere[source] & somewhere[destination])
    return (
        on_host,
        {NOT_RECORDED: unknown, NOT_IN_FABRIC: absent, NO_COMMON_RAIL: remaining & ~unknown & ~absent},
        usable,
    )


_FLOWS = 1 << 21
"""Number of flows in one batch."""

_Rows = npt.NDArray[np.intp]


def load_all_to_all(
    text: str, size: int, hosts: Hosts, subnets: Sequence[Subnet], policy: str | None, nic: str | None = None
) -> tuple[Traffic, Loads]:
    """Send `size` bytes between all pairs of adapters, along the rails' forwarding tables.

    Args:
        text: the pattern as given by the user.
        size: bytes per pair.
        policy: value of `--rails`; None means `split`.
        nic: value of `--nic`, not `spread`. If None: all adapters send and receive; else only each host's first
            adapter.

    Returns:
        The traffic, whose flows `Traffic.in_parts` yields, and the link loads.

    Raises:
        UsageError: the policy names a rail without a fabric.
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
    all_hosts = np.arange(len(hosts.ends if nic is None else hosts.name), dtype=np.int32)
    for begin in range(0, len(all_hosts), senders := max(_FLOWS // len(all_hosts), 1)):
        some = all_hosts[begin : begin + senders]
        source, destination = np.repeat(some, len(all_hosts)), np.tile(all_hosts, len(some))
        demand = as_rank_traffic(
            text, source[source != destination], destination[source != destination], size, len(all_hosts)
        )
        yield map_to_lids(demand, hosts, fabrics, None, policy, nic)


def _pair_up(lid: npt.NDArray[np.int32]) -> Iterator[tuple[_Rows, _Rows, npt.NDArray[np.bool_]]]:
    """Group the pairs of adapters by their common rails.

    Yields:
        For each group: rows in `lid` of the source adapters, rows in `lid` of the destination adapters, and bool
            [rail], true for common rails. Each source is paired with each destination.
    """
    present, kind = np.unique(lid != NO_LID, axis=0, return_inverse=True)
    rows = [np.flatnonzero(kind.ravel() == number) for number in range(len(present))]
    for one, other in product(range(len(present)), repeat=2):
        yield rows[one], rows[other], present[one] & present[other]


def _share_out(policy: str, usable: npt.NDArray[np.bool_], size: int) -> Iterator[tuple[int, int]]:
    """Yield (rail, bytes) for each rail that carries bytes of a pair."""
    if usable.any():
        rank, one = np.zeros(1, np.int32), np.ones(1, np.uint64)
        shares = share_out(policy, usable[None], rank, rank + 1, np.array([size], np.uint64), one)
        yield from zip(shares.rail.tolist(), shares.bytes.tolist(), strict=True)


def _describe(text: str, lid: npt.NDArray[np.int32], rail_source: str, incomplete: int) -> Traffic:
    lids, notes = np.zeros(0, np.int32), note_incomplete(incomplete)
    return Traffic.without_ranks(lids, lids, np.zeros(0, np.uint64), lid, text, rail_source=rail_source, notes=notes)
