# SPDX-License-Identifier: Apache-2.0
"""Fabrics for simulations: read once per process, with the virtual lanes of their routes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof.profile.missing_data import StageAccount
from ibprof_converter.hotspots.coverage import describe_lost
from ibprof_converter.routing.route_choice import describe_routes, read_routed_subnet
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.hosts import account_for_fabrics, find_hosts
from ibprof_lab.simulation.engine.deadlock import assign_lanes, refuse_adaptive_deadlock
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork, index_network


@dataclass(frozen=True, slots=True)
class NetworkSource:
    """The origin of a simulated network: its fabric and its routes.

    Attributes:
        fabric: path of a dump, or the name of a synthetic fabric.
        routes: source of the routes, from `parse_routes`; None for the fabric's tables, or a model without tables.
    """

    fabric: str
    routes: str | None = None


Lanes = npt.NDArray[np.uint8]
"""uint8 [switch, switch], virtual lane of packets from leaf switch to leaf switch."""


@lru_cache(maxsize=4)
def _read_network(source: NetworkSource) -> tuple[Subnet, Lanes | None, str]:
    """Return a fabric, the virtual lanes of its routes, and a digest of all properties that packets depend on."""
    subnet = read_routed_subnet(source.fabric, source.routes)
    network = index_network(subnet, Hardware(gbps=1.0))  # lanes depend only on routes
    digest = hashlib.sha256()
    for array in (network.end_to, network.port_end, network.egress, network.host_end, subnet.fabric.link_gbps):
        digest.update(np.ascontiguousarray(array).tobytes())
    return subnet, assign_lanes(network), digest.hexdigest()[:16]


def digest_network(source: NetworkSource) -> str:
    """Return a digest of a fabric's links and routes: a changed dump is another fabric."""
    return _read_network(source)[2]


@lru_cache(maxsize=4)
def load_network(source: NetworkSource, hardware: Hardware) -> SimulatedNetwork:
    """Read a fabric; cached for later simulations of this process."""
    return index_network(_read_network(source)[0], hardware)


def load_lanes(source: NetworkSource) -> Lanes | None:
    """Return the virtual lanes that keep the routes of a fabric free of cycles; None if one lane is enough."""
    return _read_network(source)[1]


def count_lanes(source: NetworkSource) -> int:
    """Return the number of virtual lanes that keep the routes of a fabric free of cycles."""
    lanes = load_lanes(source)
    return 1 if lanes is None else int(lanes.max()) + 1


@lru_cache(maxsize=4)
def refuse_adaptive_routing(source: NetworkSource) -> None:
    """Check that adaptive routing cannot deadlock on a fabric.

    Raises:
        InconsistentError: adaptive routing can deadlock.
    """
    refuse_adaptive_deadlock(load_network(source, Hardware(gbps=1.0)))


def can_route_adaptively(source: NetworkSource) -> bool:
    """Return True if packets can choose among the shortest routes of a fabric without deadlocks."""
    try:
        refuse_adaptive_routing(source)
    except InconsistentError:
        return False
    return True


def list_fabric_notes(source: NetworkSource) -> list[str]:
    """Return notes on a fabric: omitted parts of its dumps, warnings, and virtual lanes against cycles."""
    subnet = _read_network(source)[0]
    lost = describe_lost([subnet], find_hosts([subnet.fabric]))
    notes = [*lost, *filter(None, [describe_routes([subnet])]), *subnet.warnings]
    if (lanes := count_lanes(source)) > 1:
        notes.append(
            f"routes close cycles: pairs of leaf switches are spread over {lanes} virtual lanes, which break them; "
            "SLs in a dump are ignored"
        )
    return notes


def account_for_network(source: NetworkSource) -> list[StageAccount]:
    """Return the accounts of a fabric's links and hosts."""
    fabrics = [_read_network(source)[0].fabric]
    return list(account_for_fabrics(fabrics, find_hosts(fabrics)))


def name_route_source(source: NetworkSource) -> str:
    """Return the source of a network's routes: `tables`, `modelled:MODEL` or `opensm:ENGINE`."""
    return _read_network(source)[0].route_source
