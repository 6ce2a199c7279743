# SPDX-License-Identifier: Apache-2.0
"""Describe the coverage of a report, and the commands that dump a fabric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ibprof.native.libraries import sum_exactly
from ibprof.profile.missing_data import COLLECT, StageAccount, account_for_run, describe_gaps, describe_losses
from ibprof.profile.unaccounted import Unaccounted, find_unaccounted
from ibprof.text.quantities import count_of
from ibprof_converter.fabric.damage import DamageKind
from ibprof_converter.fabric.fabric_graph import Fabric, InterfaceChoice
from ibprof_converter.fabric.node_names import host_name, show_some
from ibprof_converter.routing.route_choice import describe_routes, name_routes
from ibprof_converter.routing.subnet import Subnet, find_unlisted
from ibprof_converter.traffic.adapter_policies import (
    MEASURED_RAILS,
    MODELLED,
    RANK,
    RECORDED,
    describe_nic,
    label_of_policy,
)
from ibprof_converter.traffic.hosts import Hosts, account_for_fabrics, describe_lacking, find_lost_hosts
from ibprof_converter.traffic.link_loads import Loads
from ibprof_converter.traffic.traffic_data import NO_LID, PortCounters, RankTraffic, Traffic, describe_origin


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """A command for an administrator.

    Attributes:
        command: the command line.
        files: the files that the command writes.
        remark: advice on running the command.
    """

    command: str
    files: tuple[str, ...]
    remark: str


REQUESTS = (
    DumpRequest(
        "ibdiagnet -o fabric",
        ("fabric/ibdiagnet.lst", "fabric/ibdiagnet.fdbs"),
        "on any node of the subnet, as root; on a busy fabric, check that the .fdbs file has every switch",
    ),
    DumpRequest(
        "echo 'log_flags 0x43' >> /etc/opensm/opensm.conf && kill -HUP $(pidof opensm)",
        ("/var/log/opensm-subnet.lst", "/var/log/opensm.fdbs", "/var/cache/opensm/guid2lid"),
        "instead of ibdiagnet, on the host of OpenSM; OpenSM does not stop. The files have the links' true speeds and "
        "the LMC. They are in other folders if dump_files_dir or OSM_CACHE_DIR is set",
    ),
    DumpRequest(
        "ibnetdiscover > ibnetdiscover.out && dump_fts > dump_fts.out",
        ("ibnetdiscover.out", "dump_fts.out"),
        "instead of the above, on any node of the subnet, as root, if only infiniband-diags is installed",
    ),
)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The sources of a report's data, and the missing and modelled data.

    Attributes:
        origin: source of the traffic.
        rails: how the rail of each byte is known (`Traffic.rail_source`); None without a fabric, and for port counters.
        nic: how the adapter of each byte is known (`Traffic.nic`); None if `rails` is None.
        routes: source of the routes, from `name_routes`; None without routes.
        world_size: number of the job's ranks; None if no run was recorded.
        ranks_recorded: number of recorded ranks.
        hosts: hosts of the recorded ranks.
        not_seen: sentences on bytes and calls that were not recorded.
        modelled: sentences on data that is modelled, not measured.
        notes: sentences with further facts for the reader.
        unaccounted: operations with fewer recorded bytes than their calls requested.
        accounts: for each processing stage, the numbers of bytes, ranks or hosts that the stage kept and left out.
        lost: sentences on hosts, LIDs and lines that were left out when files were read, and on doubtful files.
        interfaces: the choice of adapters; None if all adapters are used.
    """

    origin: str
    rails: str | None
    nic: str | None
    world_size: int | None
    ranks_recorded: int | None
    hosts: tuple[str, ...]
    not_seen: tuple[str, ...]
    modelled: tuple[str, ...]
    notes: tuple[str, ...]
    unaccounted: tuple[Unaccounted, ...] = ()
    routes: str | None = None
    accounts: tuple[StageAccount, ...] = ()
    lost: tuple[str, ...] = ()
    interfaces: InterfaceChoice | None = None


def describe_coverage(
    demand: RankTraffic | None,
    placed: Traffic | PortCounters | None,
    subnets: Sequence[Subnet],
    hosts: Hosts | None = None,
    loads: Loads | None = None,
) -> Coverage:
    """Return the coverage of a report.

    Args:
        demand: the traffic between ranks; None if the traffic has no ranks.
        placed: the traffic on the fabric; None without a fabric.
        hosts: the rails' hosts; None without a fabric.
        loads: the rails' link loads; None without a fabric.
    """
    run = demand.whole.profile if demand else None
    source = placed or demand
    if source is None:
        raise TypeError("expected a demand or a placed traffic, found neither")
    notes = [*(placed.notes if placed else ()), *(warning for subnet in subnets for warning in subnet.warnings)]
    in_turn, doubts = _describe_turns(placed, subnets, hosts) if hosts and isinstance(placed, Traffic) else ((), ())
    notes += in_turn
    doubts = (*(demand.whole.doubts if demand else ()), *doubts)
    modelled = []
    if isinstance(placed, Traffic) and subnets:
        if routes := describe_routes(subnets):
            modelled.append(routes)
        modelled.append(
            "link loads are sums over the job's run time along static routes; they do not show when bytes flow or queue"
        )
        if placed.rail_source.startswith(("modelled", "assumed")):
            modelled.append(f"rails that carry the bytes: {placed.rail_source}")
        if placed.nic and MODELLED in placed.nic:
            modelled.append(f"adapters that send the bytes: {describe_nic(placed.nic)}")
        if placed.nic and RECORDED in placed.nic:
            modelled.append(
                "each rank is assumed to send only by the adapter that its environment names. UCX, for example, also "
                "uses other adapters for large messages (UCX_MAX_RNDV_RAILS). Only measured rails show these adapters"
            )
        if placed.rail_source == MEASURED_RAILS:
            modelled.append(
                "ranks and operations of the bytes on a link: measured bytes between hosts are attributed in "
                "proportion to the ranks' messages in the same region"
            )
    return Coverage(
        origin=describe_origin(source),
        rails=placed.rail_source if isinstance(placed, Traffic) and subnets else None,
        nic=placed.nic if isinstance(placed, Traffic) and subnets else None,
        world_size=run.world_size if run else None,
        ranks_recorded=len(run.ranks) if run else None,
        hosts=tuple(host.name for host in run.hosts) if run else (),
        not_seen=tuple(describe_gaps(run)) if run else (),
        modelled=tuple(modelled),
        notes=tuple(notes),
        unaccounted=tuple(find_unaccounted(run)) if run else (),
        routes=name_routes(subnets) if isinstance(placed, Traffic) and subnets else None,
        accounts=tuple(_keep_accounts(demand, placed, subnets, hosts, loads)),
        lost=(*doubts, *(describe_lost(subnets, hosts) if hosts else ())),
        interfaces=next((subnet.fabric.interfaces for subnet in subnets), None),
    )


def _describe_turns(
    placed: Traffic, subnets: Sequence[Subnet], hosts: Hosts
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the result of `describe_lacking` if ranks use a host's adapters in turn; else return empty tuples."""
    if not (placed.nic and label_of_policy(RANK) in placed.nic):
        return (), ()
    lids = zip(subnets, placed.rank_lid.T, hosts.of_node, strict=True)
    used = {
        host for subnet, lid, of_node in lids for host in of_node[subnet.fabric.lid_node[lid[lid != NO_LID]]].tolist()
    }
    return describe_lacking(hosts, used)


def _keep_accounts(
    demand: RankTraffic | None,
    placed: Traffic | PortCounters | None,
    subnets: Sequence[Subnet],
    hosts: Hosts | None,
    loads: Loads | None,
) -> Iterator[StageAccount]:
    if demand and (run := demand.whole.profile):
        yield from account_for_run(run)
    yield from account_for_fabrics([subnet.fabric for subnet in subnets], hosts)
    if demand:
        left_out = demand.unmapped
        sent = sum_exactly(demand.bytes)
        yield StageAccount("read", "bytes", sent + sum(left_out.values()), sent, left_out)
    # Leave out the stage "place" if rails were measured: bytes counted at ports differ from the bytes of the MPI calls.
    if demand and isinstance(placed, Traffic) and placed.in_parts is None and placed.rail_source != MEASURED_RAILS:
        left_out = {reason: amount - demand.unmapped.get(reason, 0) for reason, amount in placed.unmapped.items()}
        left_out = {reason: amount for reason, amount in left_out.items() if amount}
        kept = sum_exactly(placed.bytes) + placed.on_host_bytes
        yield StageAccount("place", "bytes", sum_exactly(demand.bytes), kept, left_out)
    if loads:
        kept = loads.bytes_routed + loads.bytes_on_host
        yield StageAccount("route", "bytes", loads.bytes_total, kept, dict(loads.bytes_unrouted))
        # The stage "report" leaves no bytes out: reports also show bytes without a route.
        yield StageAccount("report", "bytes", loads.bytes_total, kept + sum(loads.bytes_unrouted.values()))


def describe_lost(subnets: Sequence[Subnet], hosts: Hosts) -> Iterator[str]:
    """Yield sentences on hosts, adapters, lines and LIDs that the readers of fabric files left out."""
    fabrics = [subnet.fabric for subnet in subnets]
    lost = find_lost_hosts(fabrics, hosts)
    if lost:
        total = len(hosts.name) + len(lost)
        by_reason: dict[str, list[str]] = {}
        for name, reason in lost.items():
            by_reason.setdefault(reason, []).append(name)
        why = "; ".join(f"{reason} ({show_some(names)})" for reason, names in by_reason.items())
        verb = "is" if len(lost) == 1 else "are"
        yield f"{len(lost)} of {count_of(total, 'host')} ({len(lost) / total:.0%}) {verb} left out: {why}."
    adapters = [name for fabric in fabrics for name, _ in fabric.left_out if host_name(name) not in lost]
    if adapters:
        yield f"{count_of(len(adapters), 'adapter')} left out: no active link ({show_some(adapters)})."
    for subnet in subnets:
        fabric = subnet.fabric
        name = Path(fabric.name).name
        if fabric.synthetic_lids:
            yield f"No port of {name} has a LID: LIDs are synthetic."
        if half := int(fabric.link_half.sum()):
            yield f"{name} lists {half} of {count_of(fabric.links, 'link')} from one end only: the file may be cut."
        if damaged := [each for each in fabric.damage if each.kind is DamageKind.LOST]:
            yield f"{count_of(len(damaged), 'part')} of {name} cannot be used: {damaged[0].text}."
        if unlisted := int(find_unlisted(fabric, subnet.tables).sum()):
            yield f"The forwarding tables lead to {count_of(unlisted, 'LID')} that no port of {name} has."


def describe_assumed_speeds(fabrics: Sequence[Fabric]) -> str:
    """Return sentences on rails whose links have assumed speeds; empty if there are none."""
    reasons: dict[str, list[str]] = {}
    for fabric in fabrics:
        if fabric.assumed_speeds:
            reasons.setdefault(fabric.assumed_speeds, []).append(Path(fabric.name).name)
    return " ".join(f"Speeds of {show_some(names)} are assumed: {reason}." for reason, names in reasons.items())


def ask_question(coverage: Coverage) -> str:
    """Return the question that the verdict answers."""
    is_job = coverage.world_size is not None
    return "Is the network why this job is slow?" if is_job else "Which links does this traffic load?"


def describe_left_out(coverage: Coverage) -> Iterator[str]:
    """Yield sentences on ranks and bytes that were left out before routing, or one sentence that nothing was left out.

    The verdict, not this function, names left-out hosts and bytes without a route.
    """
    partial = any(each.left_out for each in coverage.accounts if each.stage != COLLECT)
    if partial or coverage.lost or coverage.not_seen:
        routed = any(each.stage == "route" for each in coverage.accounts)
        before = (each for each in coverage.accounts if each.stage in ("record", COLLECT) or not routed)
        yield from describe_losses(before, complete=False)
    else:
        yield from describe_losses(coverage.accounts)
