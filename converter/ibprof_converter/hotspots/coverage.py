# SPDX-License-Identifier: Apache-2.0
"""Coverage of an answer: what was recorded, missed and modelled; and the commands that dump a fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ibprof.profile.gaps import describe_gaps
from ibprof.profile.unaccounted import Unaccounted, find_unaccounted
from ibprof_converter.routing.route_choice import describe_routes, name_routes
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.adapter_policies import MODELLED, RECORDED, describe_nic
from ibprof_converter.traffic.measured_rails import MEASURED
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic, describe_origin


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """A command for an administrator.

    Attributes:
        command: the command line.
        files: the files that it writes.
        remark: where and how to run it.
    """

    command: str
    files: tuple[str, ...]
    remark: str


REQUESTS = (
    DumpRequest(
        "ibdiagnet -o fabric",
        ("fabric/ibdiagnet.lst", "fabric/ibdiagnet.fdbs"),
        "on any node of the subnet, as root; on a busy fabric look whether every switch is in the .fdbs",
    ),
    DumpRequest(
        "echo 'log_flags 0x43' >> /etc/opensm/opensm.conf && kill -HUP $(pidof opensm)",
        ("/var/log/opensm-subnet.lst", "/var/log/opensm.fdbs", "/var/cache/opensm/guid2lid"),
        "instead of ibdiagnet, on the host of OpenSM, which goes on running; these have the links' true speeds and the "
        "LMC (they lie elsewhere where dump_files_dir or OSM_CACHE_DIR is set)",
    ),
    DumpRequest(
        "ibnetdiscover > ibnetdiscover.out && dump_fts > dump_fts.out",
        ("ibnetdiscover.out", "dump_fts.out"),
        "instead of the above, on any node of the subnet, as root, where infiniband-diags is all there is",
    ),
)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of an answer.

    Attributes:
        origin: where the traffic comes from.
        rails: source of the rail of each byte; None where there is no fabric, and for bytes counted at the ports.
        nic: source of the adapter of each byte in a subnet, as in `Traffic`.
        routes: where routes come from, as `name_routes` returns it; None where there are none.
        world_size: ranks of the job; None where no run was recorded.
        ranks_recorded: number of recorded ranks.
        hosts: hosts of the recorded ranks.
        not_seen: gaps of the numbers, a sentence each.
        modelled: parts that are modelled, not measured, a sentence each.
        notes: further facts for the reader, a sentence each.
        unaccounted: operations with fewer recorded bytes than their calls requested.
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


def describe_coverage(
    demand: RankTraffic | None, placed: Traffic | PortCounters | None, subnets: Sequence[Subnet]
) -> Coverage:
    """Return the coverage of an answer.

    Args:
        demand: the traffic between ranks; None where it knows no ranks.
        placed: the traffic on the fabric; None where there is no fabric.
        subnets: the rails.
    """
    run = demand.whole.profile if demand else None
    source = placed or demand
    if source is None:
        raise TypeError("a coverage is of a demand or a placed traffic")
    notes = [*(placed.notes if placed else ()), *(warning for subnet in subnets for warning in subnet.warnings)]
    modelled = []
    if isinstance(placed, Traffic) and subnets:
        if routes := describe_routes(subnets):
            modelled.append(routes)
        modelled.append(
            "loads are sums over the job along static routes: when they flow, and what queues, is not in them"
        )
        if placed.rail_source.startswith(("modelled", "assumed")):
            modelled.append(f"which rail bytes take: {placed.rail_source}")
        if placed.nic and MODELLED in placed.nic:
            modelled.append(f"which adapter of a host bytes take: {describe_nic(placed.nic)}")
        if placed.nic and RECORDED in placed.nic:
            modelled.append(
                "each rank is taken to send by the adapter that its environment names; its MPI may use others too, as "
                "UCX does for large messages (UCX_MAX_RNDV_RAILS), which only measured rails show"
            )
        if placed.rail_source == MEASURED:
            modelled.append(
                "which ranks and operations bytes on a link are of: those measured between two hosts are shared out as "
                "the messages are that their ranks sent in the same region"
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
    )
