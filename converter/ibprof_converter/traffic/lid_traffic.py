# SPDX-License-Identifier: Apache-2.0
"""Map traffic between ranks to traffic between LIDs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.native.kernel_library import sum_exactly
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.measured_rails import map_measured_to_lids, why_not_measured
from ibprof_converter.traffic.patterns import PREFIX
from ibprof_converter.traffic.rail_policies import SPLIT, share_out
from ibprof_converter.traffic.rank_placement import FORMS, RankPlacement, place_ranks_as_recorded, place_ranks_by_rule
from ibprof_converter.traffic.traffic_data import NO_LID, RankTraffic, Traffic, choose_rows

NOT_RECORDED = "rank was not recorded, so its host is unknown"
NOT_IN_FABRIC = "host is not in the fabric"
NO_COMMON_RAIL = "no rail joins the two hosts"


def map_to_lids(
    demand: RankTraffic, hosts: Hosts, fabrics: Sequence[Fabric], rule: str | None, policy: str | None
) -> Traffic:
    """Return the traffic by the ports that the bytes of each rank pair leave and enter.

    Args:
        demand: bytes between ranks.
        hosts: of the fabrics.
        fabrics: the rails.
        rule: `--placement`; None: as recorded.
        policy: `--rails`; None: as measured, where work requests were recorded and the ranks are where they ran; else
            `split`.

    Raises:
        UsageError: the placement is unknown, or the ranks do not fit.
        InputError: the placement file is invalid.
    """
    placement = _find_placement(demand, hosts, fabrics, rule)
    run = demand.profile
    unmeasured = why_not_measured(run, fabrics) if run and len(run.transfers.bytes) else None
    if run and len(run.transfers.bytes) and rule is None and policy is None and not unmeasured:
        return map_measured_to_lids(demand, run, placement, fabrics)
    on_host, unmapped, usable = _classify_flows(demand, placement)
    reasons = dict(demand.unmapped)
    for reason, rows in unmapped.items():
        if amount := sum_exactly(demand.bytes[rows]):
            reasons[reason] = reasons.get(reason, 0) + amount
    notes = list(placement.notes)
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
    flow = shares.flow if isinstance(on_link, slice) else on_link[shares.flow]
    source, destination = demand.source[flow], demand.destination[flow]
    return Traffic(
        rail=shares.rail,
        source_lid=placement.lid[source, shares.rail],
        destination_lid=placement.lid[destination, shares.rail],
        bytes=shares.bytes,
        region=demand.region[flow],
        operation=demand.operation[flow],
        source_rank=source,
        destination_rank=destination,
        regions=demand.regions,
        operations=demand.operations,
        on_host_bytes=sum_exactly(demand.bytes[on_host]),
        unmapped=reasons,
        rail_source=describe_rails(policy, len(fabrics)),
        origin=demand.origin,
        rank_lid=placement.lid,
        notes=tuple(notes),
        moved=rule is not None,
    )


def describe_rails(policy: str, count: int) -> str:
    """Return how the rail of bytes is known, given the number of rails."""
    return f"modelled ({policy})" if count > 1 else "single rail"


def note_incomplete(flows: int) -> tuple[str, ...]:
    """Return a note on flows with an end that is not on all rails; empty if there are none."""
    if not flows:
        return ()
    return (f"{flows} flow(s) have an end that is not on all rails; they take the rails that join both ends",)


def _find_placement(demand: RankTraffic, hosts: Hosts, fabrics: Sequence[Fabric], rule: str | None) -> RankPlacement:
    if rule is not None:
        return place_ranks_by_rule(rule, hosts, fabrics, demand.ranks)
    if demand.profile is not None:
        return place_ranks_as_recorded(demand.profile, hosts, fabrics, demand.ranks)
    if demand.origin.startswith(PREFIX):
        if demand.ranks != len(hosts.name):
            raise UsageError(
                f"{demand.origin} was read for a fabric of {demand.ranks} hosts, and this one has {len(hosts.name)}: "
                f"read it for this fabric, or add --placement ({FORMS})"
            )
        every = np.arange(demand.ranks, dtype=np.int32)
        return RankPlacement(host=every, lid=hosts.lid, notes=())
    raise UsageError(f"{demand.origin} names no hosts: add --placement ({FORMS})")


def _classify_flows(
    demand: RankTraffic, placement: RankPlacement
) -> tuple[npt.NDArray[np.bool_], dict[str, npt.NDArray[np.bool_]], npt.NDArray[np.bool_]]:
    """Return flows that stay on a host, flows without a port (by reason), and the usable rails of all other flows."""
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
