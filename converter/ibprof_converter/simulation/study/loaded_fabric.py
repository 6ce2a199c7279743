# SPDX-License-Identifier: Apache-2.0
"""Fabrics as simulations need them: read once per process, with the virtual lanes of their routes."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_converter.routing.route_choice import describe_routes, read_routed_subnet
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.simulation.engine.deadlock import assign_lanes, refuse_adaptive_deadlock
from ibprof_converter.simulation.engine.simulated_network import Hardware, SimulatedNetwork, index_network

Lanes = npt.NDArray[np.uint8]
"""[switch, switch], the virtual lane of packets from leaf switch to leaf switch."""


@lru_cache(maxsize=4)
def _read_network(fabric: str) -> tuple[Subnet, Lanes | None, str]:
    """Return a fabric, the virtual lanes that its routes need, and a digest of all that packets depend on."""
    subnet = read_routed_subnet(fabric)
    network = index_network(subnet, Hardware(gbps=1.0))  # lanes depend on routes alone
    digest = hashlib.sha256()
    for array in (network.end_to, network.port_end, network.egress, network.host_end, subnet.fabric.link_gbps):
        digest.update(np.ascontiguousarray(array).tobytes())
    return subnet, assign_lanes(network), digest.hexdigest()[:16]


def digest_network(fabric: str) -> str:
    """Return a digest of a fabric's links and routes: a dump that was changed is another fabric."""
    return _read_network(fabric)[2]


@lru_cache(maxsize=4)
def load_network(fabric: str, hardware: Hardware) -> tuple[Subnet, SimulatedNetwork, Lanes | None]:
    """Read a fabric and find the virtual lanes that it needs; cached for later simulations of this process."""
    subnet, lanes, _ = _read_network(fabric)
    return subnet, index_network(subnet, hardware), lanes


def count_lanes(fabric: str) -> int:
    """Return the number of virtual lanes that keep the routes of a fabric free of cycles."""
    lanes = _read_network(fabric)[1]
    return 1 if lanes is None else int(lanes.max()) + 1


@lru_cache(maxsize=4)
def refuse_adaptive_routing(fabric: str) -> None:
    """Check that adaptive routing cannot deadlock on a fabric.

    Raises:
        InconsistentError: it can.
    """
    refuse_adaptive_deadlock(load_network(fabric, Hardware(gbps=1.0))[1])


def can_route_adaptively(fabric: str) -> bool:
    """Return whether packets may choose among the shortest routes of a fabric without any deadlock."""
    try:
        refuse_adaptive_routing(fabric)
    except InconsistentError:
        return False
    return True


def list_fabric_notes(fabric: str) -> list[str]:
    """Return what a user should know of a fabric: warnings of its dumps, and virtual lanes against cycles."""
    subnet = load_network(fabric, Hardware(gbps=1.0))[0]
    notes = [*filter(None, [describe_routes([subnet])]), *subnet.warnings]
    if (lanes := count_lanes(fabric)) > 1:
        notes.append(
            f"routes close cycles: pairs of leaf switches are spread over {lanes} virtual lanes, which break them; "
            "SLs in a dump are ignored"
        )
    return notes
