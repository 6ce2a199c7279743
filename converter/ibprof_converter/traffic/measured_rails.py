# SPDX-License-Identifier: Apache-2.0
"""Map the bytes of recorded work requests to traffic from LID to LID, on measured rails.

The verbs source recorded the bytes posted from port to port. Work requests show neither ranks nor operations. So the
bytes between two hosts are attributed to the messages between these hosts in the same region, in proportion to the
messages' bytes. Only the attribution is modelled; the bytes are measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.profile.port_sums import PortEnd, PortIndex, describe_unmeasured
from ibprof.profile.profile_data import OUTWARD_OPCODES, PortPair, Profile, Source
from ibprof.profile.profile_rows import UNKNOWN_SITE
from ibprof.text.quantities import format_bytes
from ibprof_converter.fabric.fabric_graph import LIDS, NO_NODE, Fabric
from ibprof_converter.fabric.node_names import is_aggregation_node
from ibprof_converter.traffic import adapter_policies
from ibprof_converter.traffic.adapter_policies import MEASURED_RAILS
from ibprof_converter.traffic.rank_placement import RankPlacement, guid_number, lids_by_port_guid
from ibprof_converter.traffic.traffic_data import NO_LID, NO_RANK, RankTraffic, Traffic

_ON_LINKS = "on links, bytes posted to queue pairs (verbs), headers of MPI included"

UNKNOWN_PORT = "port is not in the fabric, or not on the rail of the other end"
UNATTRIBUTED = "UNATTRIBUTED"

_NO_RAIL = -1
_NO_HOST = -1


@dataclass(frozen=True, slots=True)
class _PairEnds:
    """Both ends of each pair of ports, as arrays of equal length. Index 0 is the local end, index 1 the remote end.

    Attributes:
        rail: int32 [pair], the common rail; `_NO_RAIL` if an end is in no fabric, or if the ends are on different
            rails.
        lid: int32 [2, pair], LID of each end in the fabric.
        host: int64 [2, pair], host of each end in the profile, or `_NO_HOST`.
    """

    rail: npt.NDArray[np.int32]
    lid: npt.NDArray[np.int32]
    host: npt.NDArray[np.int64]


def why_not_measured(run: Profile, fabrics: Sequence[Fabric]) -> str | None:
    """Return the reason why a run's rails are modelled despite its work requests; None if rails are measured."""
    if why := describe_unmeasured(run):
        return why
    if any(fabric.plane_of for fabric in fabrics):
        return "the planes of an adapter share its queue pairs, so work requests do not show the plane"
    ports = lids_by_port_guid(fabrics)
    if any(guid_number(port.port_guid) in ports for host in run.hosts for port in host.ports):
        return None
    return "the fabric has no port GUID of the run"


def map_measured_to_lids(
    demand: RankTraffic, run: Profile, placement: RankPlacement, fabrics: Sequence[Fabric]
) -> Traffic:
    """Return the bytes of a run's work requests as traffic from LID to LID.

    Args:
        demand: bytes between the ranks of the run.
        run: a run for which `why_not_measured` returns None.
    """
    transfers = run.transfers
    ends = _find_ends(run, fabrics)
    pair = transfers.pair
    outward = np.isin(transfers.opcode, OUTWARD_OPCODES)
    lids, hosts = ends.lid[:, pair], ends.host[:, pair]
    source_lid, destination_lid = np.where(outward, lids, lids[::-1])
    source_host, destination_host = np.where(outward, hosts, hosts[::-1])
    rail = ends.rail[pair]
    unknown = rail == _NO_RAIL
    loop = ~unknown & (source_lid == destination_lid)
    on_link = np.flatnonzero(~unknown & ~loop)
    flows = _FlowsByHosts(demand, run)
    share = flows.share_out(
        transfers.region[on_link], source_host[on_link], destination_host[on_link], transfers.bytes[on_link]
    )
    row = on_link[share.row]
    operations = demand.operations if UNATTRIBUTED in demand.operations else (*demand.operations, UNATTRIBUTED)
    found = share.flow >= 0
    flow = np.where(found, share.flow, 0)

    def of_flow(column: npt.NDArray[np.int32], otherwise: int) -> npt.NDArray[np.int32]:
        known = column[flow] if len(column) else np.int32(0)
        return np.where(found, known, np.int32(otherwise)).astype(np.int32)

    lost = sum_exactly(transfers.bytes[unknown])
    sites = demand.sites if len(demand.sites) == 1 or UNKNOWN_SITE in demand.sites else (*demand.sites, UNKNOWN_SITE)
    return Traffic(
        rail=rail[row],
        source_lid=source_lid[row],
        destination_lid=destination_lid[row],
        bytes=share.bytes,
        region=transfers.region[row],
        operation=of_flow(demand.operation, operations.index(UNATTRIBUTED)),
        source_rank=of_flow(demand.source, NO_RANK),
        destination_rank=of_flow(demand.destination, NO_RANK),
        regions=demand.regions,
        operations=operations,
        on_host_bytes=sum_exactly(transfers.bytes[loop]),
        unmapped={UNKNOWN_PORT: lost} if lost else {},
        rail_source=MEASURED_RAILS,
        nic=adapter_policies.MEASURED,
        origin=demand.origin,
        rank_lid=adapter_policies.choose_adapters(placement, None).lid,
        notes=(*placement.notes, *_describe_reduction(fabrics, rail, destination_lid, transfers.bytes)),
        site=of_flow(demand.site, sites.index(UNKNOWN_SITE)) if len(sites) > 1 else demand.site,
        sites=sites,
        layer=f"{demand.layer or Source.VERBS.layer}; {_ON_LINKS}",
    )


def _describe_reduction(
    fabrics: Sequence[Fabric], rail: npt.NDArray[np.int32], lid: npt.NDArray[np.int32], bytes: npt.NDArray[np.uint64]
) -> Iterator[str]:
    """Yield a note on bytes that were sent to aggregation nodes (SHARP), if any."""
    total = 0
    for number, fabric in enumerate(fabrics):
        nodes = [node for node, name in enumerate(fabric.node_name) if is_aggregation_node(name)]
        mine = (rail == number) & (lid != NO_LID)
        total += sum_exactly(bytes[mine][np.isin(fabric.lid_node[lid[mine]], nodes)])
    if total:
        yield (
            f"{format_bytes(total)} were sent to aggregation nodes: switches reduce them (SHARP). The link loads lack "
            "the reduction's bytes between switches"
        )


# -- rails and LIDs of the ports of work requests ----------------------------------------------------------------------


def _find_ends(run: Profile, fabrics: Sequence[Fabric]) -> _PairEnds:
    index = PortIndex(run)
    ports = lids_by_port_guid(fabrics)
    rails, lids, hosts = [], [], []
    for pair in run.pairs:
        own, remote = index.ends(pair)
        rail, lid = _find_rail_and_lid(own, pair.lid, ports)
        other_rail, other_lid = _find_rail_and_lid(remote, pair.remote_lid, ports)
        if remote.port is None and rail != _NO_RAIL:
            # The remote host has no recording: its port must be on the rail of the local port.
            other_rail, other_lid = rail, _known_lid(pair, fabrics[rail])
        both = rail == other_rail and NO_LID not in (lid, other_lid)
        rails.append(rail if both else _NO_RAIL)
        lids.append((lid, other_lid))
        hosts.append([_NO_HOST if end.host is None else end.host for end in (own, remote)])
    return _PairEnds(
        rail=np.array(rails, np.int32),
        lid=np.array(lids, np.int32).reshape(-1, 2).T,
        host=np.array(hosts, np.int64).reshape(-1, 2).T,
    )


def _find_rail_and_lid(end: PortEnd, lid: int | None, ports: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return a port's rail and LID: base LID in the fabric + path bits of the recorded LID."""
    if end.port is None:
        return _NO_RAIL, NO_LID
    rail, base = ports.get(guid_number(end.port.port_guid), (_NO_RAIL, NO_LID))
    path = (lid or 0) & ((1 << end.port.lmc) - 1) if end.port.lmc < 8 else 0
    return rail, base | path if base != NO_LID else NO_LID


def _known_lid(pair: PortPair, fabric: Fabric) -> int:
    lid = pair.remote_lid if pair.remote_lid is not None and pair.remote_lid < LIDS else NO_LID
    return lid if fabric.lid_node[lid] != NO_NODE else NO_LID


# -- attribution of measured bytes to ranks and operations -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Share:
    """Parts of work requests' bytes, each attributed to one flow between ranks; arrays with an element per part.

    Attributes:
        row: intp, row of the work requests to which the part belongs.
        flow: intp, row of the demand; -1 if no flow has the region and hosts of the row.
        bytes: uint64, bytes of the part.
    """

    row: npt.NDArray[np.intp]
    flow: npt.NDArray[np.intp]
    bytes: npt.NDArray[np.uint64]


class _FlowsByHosts:
    """The flows between ranks, indexed by region and the hosts of the two ranks."""

    def __init__(self, demand: RankTraffic, run: Profile) -> None:
        host = np.full(demand.ranks + 1, _NO_HOST, np.int64)
        for rank in run.ranks:
            if rank.rank < demand.ranks:
                host[rank.rank] = rank.host
        self._hosts = len(run.hosts) + 1
        key = self._key(demand.region, host[demand.source], host[demand.destination])
        self._order = np.argsort(key, kind="stable")
        self._keys = key[self._order]
        self._bytes = demand.bytes[self._order]

    def _key(self, region: npt.NDArray[np.int32], *hosts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        key = region.astype(np.int64)
        for host in hosts:
            key = key * self._hosts + host + 1
        return key

    def share_out(
        self,
        region: npt.NDArray[np.int32],
        source_host: npt.NDArray[np.int64],
        destination_host: npt.NDArray[np.int64],
        bytes: npt.NDArray[np.uint64],
    ) -> _Share:
        """Distribute each row's bytes over the flows with its region and hosts, in proportion to the flows' bytes."""
        key = self._key(region, source_host, destination_host)
        begin, end = np.searchsorted(self._keys, key), np.searchsorted(self._keys, key, side="right")
        known = (source_host != _NO_HOST) & (destination_host != _NO_HOST) & (end > begin)
        rows, flows, amounts = [], [], []
        for row in np.flatnonzero(known).tolist():
            some = slice(begin[row], end[row])
            parts = split_in_proportion(int(bytes[row]), self._bytes[some])
            used = np.flatnonzero(parts)
            rows.append(np.full(len(used), row, np.intp))
            flows.append(self._order[some][used])
            amounts.append(parts[used])
        alone = np.flatnonzero(~known)
        return _Share(
            row=np.concatenate([*rows, alone]),
            flow=np.concatenate([*flows, np.full(len(alone), -1, np.intp)]),
            bytes=np.concatenate([*amounts, bytes[alone]]),
        )


def split_in_proportion(total: int, weights: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return integers that sum to `total`, in proportion to `weights`, which must not all be 0."""
    return np.fromiter(_parts(total, weights.tolist()), np.uint64, len(weights))


def _parts(total: int, weights: Sequence[int]) -> Iterator[int]:
    whole, before, assigned = sum(weights), 0, 0
    for weight in weights:
        before += weight
        # Round the cumulative share, so that the parts sum to `total` exactly.
        upto = total * before // whole
        yield upto - assigned
        assigned = upto
