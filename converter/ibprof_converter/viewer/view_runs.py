# SPDX-License-Identifier: Apache-2.0
"""Describe the runs of a view by arrays of ranks, flows and forwarding tables; all runs use the same indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.verdict.verdict_data import Verdict, VerdictKind
from ibprof_converter.fabric.fabric_graph import LIDS
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis
from ibprof_converter.hotspots.coverage import Coverage, ask_question
from ibprof_converter.hotspots.link_report import has_fault
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.subnet_routes import NONE as NO_ROW
from ibprof_converter.routing.tables import UNREACHABLE
from ibprof_converter.traffic.link_loads import Loads
from ibprof_converter.traffic.traffic_data import ALL, NO_LID, NO_RANK, PortCounters, Traffic
from ibprof_converter.viewer.time_arrays import RunTimes, describe_times
from ibprof_converter.viewer.view_file import NONE, Arrays

FLOW_LIMIT = 1 << 21
"""Largest number of flows that the page can sum exactly: the sum of 2**21 numbers with 32 bits is below 2**53."""

_NAME_CAUSE = (VerdictKind.HOST_LINKS, VerdictKind.SWITCH_LINKS, VerdictKind.UNKNOWN)
"""Kinds of verdicts with sentences that name a cause. With all other verdicts, the network needs no change."""


@dataclass(frozen=True, slots=True)
class ViewRun:
    """One run of a view: traffic on the fabric.

    Attributes:
        name: name of the run, unique in the file.
        loads: the link loads, which are written only if the page cannot compute loads from flows.
        coverage: unseen and modelled data.
        times: activity over time of the ranks of `placed`, or else of its jobs; None if it was not recorded.
        known: for each rail bool [link, end], true if the load is known; None if all loads are known.
        verdict: verdict on the run; None if unknown, or shown outside the view.
        diagnosis: diagnosis of the run's links; None if not diagnosed.
        rank_parts: float32 [rank, 4]: waiting, transfer, unsplit time and error of waiting of each rank of `placed`, in
            seconds; NaN if unknown. None without samples.
    """

    name: str
    placed: Traffic | PortCounters
    loads: Loads
    coverage: Coverage
    times: RunTimes | None = None
    known: tuple[npt.NDArray[np.bool_], ...] | None = None
    verdict: Verdict | None = None
    diagnosis: Diagnosis | None = None
    rank_parts: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class RunPairChange:
    """The change between two runs.

    Attributes:
        before, after: indices of the two runs.
        text: text on the change and its reason.
    """

    before: int
    after: int
    text: str


@dataclass(frozen=True, slots=True)
class SharedNames:
    """Names of all runs of a file, so that an index is that of the same name in each run."""

    regions: tuple[str, ...]
    operations: tuple[str, ...]
    jobs: tuple[str, ...]
    sites: tuple[str, ...]
    ranks: tuple[str, ...]


def share_names(runs: Sequence[ViewRun]) -> SharedNames:
    """Return the names of all runs; the first run's names come first."""
    traffics = [run.placed for run in runs if isinstance(run.placed, Traffic)]

    def join(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for each in names for name in each))

    return SharedNames(
        regions=join([each.regions for each in traffics]) or (ALL,),
        operations=join([each.operations for each in traffics]) or (ALL,),
        jobs=join([each.jobs for each in traffics]) or (ALL,),
        sites=join([each.sites for each in traffics]) or (ALL,),
        # Sort ranks, so that each job's ranks are consecutive, and a group of peers is a range in each run.
        ranks=tuple(sorted(join([each.rank_names for each in traffics]), key=_rank_order)),
    )


def _rank_order(name: str) -> tuple[int, ...]:
    parts = name.split(":")
    return len(parts), *map(int, parts)


def describe_nothing(notes: Sequence[str]) -> dict[str, object]:
    """Return the header of a run without traffic: it contains only notes."""
    return {
        "name": "",
        "coverage": {"origin": "", "rails": None, "nic": None, "not_seen": [], "modelled": [], "notes": list(notes)},
        "bytes_total": "0",
        "bytes_routed": "0",
        "bytes_on_host": "0",
        "bytes_unrouted": {},
    }


def describe_run(
    run: ViewRun,
    names: SharedNames,
    subnets: Sequence[Subnet],
    order: Sequence[npt.NDArray[np.intp]],
    first_node: npt.NDArray[np.int64],
) -> tuple[dict[str, object], Arrays]:
    """Return the header and the arrays of a run.

    Args:
        order: for each rail, the link directions in the order of the page.
        first_node: index of each rail's first node on the page.

    Returns:
        The part of the JSON header on the run, and the run's arrays.
    """
    placed, loads, coverage = run.placed, run.loads, run.coverage
    about: dict[str, object] = {
        "name": run.name,
        "coverage": {
            "origin": coverage.origin,
            "rails": coverage.rails,
            "nic": coverage.nic,
            "not_seen": coverage.not_seen,
            "modelled": coverage.modelled,
            "notes": coverage.notes,
        },
        # As text, because JavaScript reads numbers as doubles.
        "bytes_total": str(loads.bytes_total),
        "bytes_routed": str(loads.bytes_routed),
        "bytes_on_host": str(loads.bytes_on_host),
        "bytes_unrouted": {reason: str(amount) for reason, amount in loads.bytes_unrouted.items()},
    }
    if run.verdict is not None:
        about["verdict"] = describe_verdict(run.verdict, run.diagnosis, order) | {"question": ask_question(coverage)}
    arrays: Arrays = {}
    if isinstance(placed, Traffic):
        arrays |= _describe_ranks(placed, names, subnets, first_node)
        if run.rank_parts is not None:
            arrays["rank_parts"] = spread_ranks(run.rank_parts, placed, names, np.nan).ravel()
    if isinstance(placed, Traffic) and (0 < len(placed.bytes) <= FLOW_LIMIT or not loads.bytes_routed):
        arrays |= describe_flows(placed, subnets, order, first_node)
        if run.times is not None:
            arrays |= describe_times(run.times)
            about["visit_regions"] = run.times.regions
            if not len(placed.rank_lid):
                about["began_s"] = int(run.times.sent.begin_ns.min()) / 1e9
        arrays |= _renumber(arrays, placed, names)
    else:
        totals = [loaded.sum(axis=2, dtype=np.uint64).ravel() for loaded in loads.by_rail]
        arrays["load"] = np.concatenate([total[ends] for total, ends in zip(totals, order, strict=True)])
    if run.known is not None:
        known = [known.ravel()[ends] for known, ends in zip(run.known, order, strict=True)]
        arrays["known"] = np.concatenate(known).astype(np.uint8)
    return about, arrays


def _describe_ranks(
    placed: Traffic, names: SharedNames, subnets: Sequence[Subnet], first_node: npt.NDArray[np.int64]
) -> Arrays:
    """Return each rank's node on each rail (int32, sorted by rank), and each rank's job; `NONE` if missing."""
    nodes = []
    for rail, subnet in enumerate(subnets):
        lid = placed.rank_lid[:, rail]
        node = subnet.fabric.lid_node[lid]
        nodes.append(np.where((lid == NO_LID) | (node < 0), NONE, node + first_node[rail]))
    job = np.array([names.jobs.index(name) for name in placed.jobs], np.int32)
    own = np.array([placed.job_of_rank(rank)[0] for rank in range(len(placed.rank_lid))], np.intp)
    return {
        "rank_node": spread_ranks(np.stack(nodes, axis=1).astype(np.int32), placed, names, NONE).ravel(),
        "rank_job": spread_ranks(job[own].reshape(-1, 1), placed, names, NONE).ravel(),
    }


def _renumber(own: Arrays, placed: Traffic, names: SharedNames) -> Arrays:
    """Convert the columns of flows and intervals with ranks or names to indices into `names`."""
    rank = np.append(_number(placed.rank_names, names.ranks), np.int32(NO_RANK))  # `NO_RANK` indexes the last element
    addresses = own["rank_address"].reshape(placed.rank_lid.shape)
    region, operation, job = (
        _number(mine, shared).astype(np.uint16)
        for mine, shared in (
            (placed.regions, names.regions),
            (placed.operations, names.operations),
            (placed.jobs, names.jobs),
        )
    )
    timed = rank if len(placed.rank_lid) else job
    ends = ("flow_source_rank", "flow_destination_rank")
    moments = ("time_rank", "time_first_peer", "time_last_peer", "mpi_rank", "visit_rank")
    sites = {}
    if names.sites != (ALL,):
        own_site = own["flow_site"] if "flow_site" in own else np.zeros(len(own["flow_job"]), np.uint16)
        sites = {"flow_site": _number(placed.sites, names.sites).astype(np.uint16)[own_site]}
    return (
        {name: rank[own[name]] for name in ends}
        | {name: timed[own[name]].astype(np.int32) for name in moments if name in own}
        | sites
        | {
            "flow_region": region[own["flow_region"]],
            "flow_operation": operation[own["flow_operation"]],
            "flow_job": job[own["flow_job"]],
            "rank_address": spread_ranks(addresses, placed, names, NONE).ravel(),
        }
    )


def spread_ranks(values: npt.NDArray[Any], placed: Traffic, names: SharedNames, nothing: float) -> npt.NDArray[Any]:
    """Return a row for each rank of all runs: its row in `values` if the rank is in this run, else `nothing`."""
    spread = np.full((len(names.ranks), values.shape[1]), nothing, values.dtype)
    number = _number(placed.rank_names, names.ranks)[: len(values)]
    spread[number] = values[: len(number)]
    return spread


def _number(own: Sequence[str], shared: Sequence[str]) -> npt.NDArray[np.int32]:
    place = {name: number for number, name in enumerate(shared)}
    return np.array([place[name] for name in own], np.int32)


def describe_verdict(
    verdict: Verdict, diagnosis: Diagnosis | None, order: Sequence[npt.NDArray[np.intp]]
) -> dict[str, object]:
    """Return the verdict as a JSON object.

    Args:
        diagnosis: diagnosis of the run's links; None if not diagnosed.
        order: for each rail, the link directions in the order of the page.

    Returns:
        `Verdict.as_json`, with `has_fault`, `end` (the page's index of the most loaded link direction, or None) and
        `first_cause` (as in a report). `first_cause` is None if the verdict names no cause.
    """
    causes = diagnosis.causes if diagnosis and verdict.kind in _NAME_CAUSE else ()
    return verdict.as_json() | {
        "has_fault": has_fault(verdict, diagnosis),
        "end": _number_busiest(diagnosis, order) if diagnosis else None,
        "first_cause": causes[0].as_json() if causes else None,
    }


def _number_busiest(diagnosis: Diagnosis, order: Sequence[npt.NDArray[np.intp]]) -> int | None:
    busiest = diagnosis.busiest_at
    if busiest is None:
        return None
    before = sum(len(ends) for ends in order[: busiest.rail])
    return before + int(np.flatnonzero(order[busiest.rail] == 2 * busiest.link + busiest.end)[0])


def describe_flows(
    traffic: Traffic,
    subnets: Sequence[Subnet],
    order: Sequence[npt.NDArray[np.intp]],
    first_node: npt.NDArray[np.int64],
) -> Arrays:
    """Return arrays: the flows, the addresses, and the forwarding tables' columns for these addresses.

    An address is a LID, on a rail, of a flow's sender or receiver, or of a rank. Ranks are included because the page
    also shows routes of ranks without traffic.

    A packet starts on `address_end`, the link direction from the adapter's port. If the sender is a switch,
    `address_end` is `NONE`. Each switch sends the packet out of port `table[node_table[node] + address_column]`. The
    packet's path ends at the port or switch of the destination.

    Args:
        order: for each rail, the link directions in the order of the page.
        first_node: index of each rail's first node on the page.
    """
    rail = traffic.rail.astype(np.int64) if len(subnets) > 1 else np.zeros(len(traffic.rail), np.int64)
    # As in routing, an invalid LID becomes LID 0, which no port has.
    lids = [np.where((lid >= 0) & (lid < LIDS), lid, 0) for lid in (traffic.source_lid, traffic.destination_lid)]
    source, destination = (rail * LIDS + lid for lid in lids)
    ranks = traffic.rank_lid.astype(np.int64)
    placed = np.where((ranks > 0) & (ranks < LIDS), ranks + np.arange(ranks.shape[1]) * LIDS, NONE)
    address = np.unique(np.concatenate([source, destination, placed[placed != NONE]]))
    column = np.full(len(address), NONE, np.int32)
    node = np.full(len(address), NONE, np.int32)
    end = np.full(len(address), NONE, np.int32)
    node_table = np.full(int(first_node[-1]), NONE, np.int32)
    tables = []
    used, first_end = 0, 0
    aims = np.zeros(len(address), np.bool_)
    aims[np.searchsorted(address, np.concatenate([destination, placed[placed != NONE]]))] = True
    for number, (subnet, ends) in enumerate(zip(subnets, order, strict=True)):
        here = np.flatnonzero(address // LIDS == number)
        lid = (address[here] % LIDS).astype(np.int64)
        node[here], end[here] = _locate(subnet, ends, lid, int(first_node[number]), first_end)
        first_end += len(ends)
        wanted = aims[here]
        column[here[wanted]] = np.arange(int(wanted.sum()))
        rows, table = _cut_tables(subnet, lid[wanted])
        node_table[first_node[number] + rows] = used + np.arange(len(rows)) * table.shape[1]
        tables.append(table.ravel())
        used += table.size
    wide = np.uint32 if len(address) > np.iinfo(np.uint16).max else np.uint16
    return {
        "address_node": node,
        "address_end": end,
        "address_column": column,
        "node_table": node_table,
        "table": np.concatenate(tables),
        "rank_address": np.where(placed == NONE, NONE, np.searchsorted(address, placed)).astype(np.int32).ravel(),
        "flow_source": np.searchsorted(address, source).astype(wide),
        "flow_destination": np.searchsorted(address, destination).astype(wide),
        "flow_source_rank": traffic.source_rank.astype(np.int32),
        "flow_destination_rank": traffic.destination_rank.astype(np.int32),
        "flow_region": traffic.region.astype(np.uint16),
        "flow_operation": traffic.operation.astype(np.uint16),
        "flow_job": (traffic.job if len(traffic.jobs) > 1 else np.zeros(len(rail))).astype(np.uint16),
        **({"flow_site": traffic.site.astype(np.uint16)} if len(traffic.sites) > 1 else {}),
        # Split bytes into halves of 32 bits, which the page can sum as doubles.
        "flow_bytes_low": (traffic.bytes & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        "flow_bytes_high": (traffic.bytes >> np.uint64(32)).astype(np.uint32),
    }


def _locate(
    subnet: Subnet, ends: npt.NDArray[np.intp], lid: npt.NDArray[np.int64], first_node: int, first_end: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the page's indices of each LID's node and transmit direction; `NONE` without one."""
    fabric, network = subnet.fabric, subnet.routes.network
    renumbered = np.full(len(ends) + 1, NONE, np.int64)  # `NONE` indexes the last element
    renumbered[ends] = np.arange(len(ends)) + first_end
    port = fabric.lid_port[lid]
    known = port >= 0
    node = np.where(known, fabric.lid_node[lid].astype(np.int64) + first_node, NONE)
    end = np.full(len(lid), NONE, np.int64)
    end[known] = network.end_at[fabric.port_node[port[known]], fabric.port_number[port[known]]]
    return node, renumbered[end]


def _cut_tables(subnet: Subnet, lid: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the nodes with forwarding tables, and their egress ports to the given LIDs: uint8 [node, LID]."""
    network = subnet.routes.network
    switch = np.flatnonzero(network.row != NO_ROW)
    egress = network.tables.port
    cut = np.full((len(switch), len(lid)), UNREACHABLE, np.uint8)
    within = lid < egress.shape[1]
    cut[:, within] = egress[network.row[switch][:, None], lid[within]]
    return network.switch_node[switch].astype(np.int64), cut
