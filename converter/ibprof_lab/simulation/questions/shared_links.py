# SPDX-License-Identifier: Apache-2.0
"""The link directions that two jobs both send on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.routing.spread import spread
from ibprof_lab.simulation.engine.packet_engine import Simulation, Stop
from ibprof_lab.simulation.measure.run_tables import find_busy
from ibprof_lab.simulation.study.cell import Cell
from ibprof_lab.simulation.study.cell_run import Prepared, set_up

_HOPS = 3e7
"""Packet hops after which loads of links are looked at in any case."""

_MESSAGES = 20
"""Of each client, or a round of a recorded run, after which they are."""

_CHUNK_NS = 1e6
_PARTS = 20
"""Of the time so far: by one of them it goes on at a time, where that is more."""


@dataclass(frozen=True, slots=True)
class SharedLink:
    """A link direction that several jobs send on.

    Attributes:
        end: index of the link direction.
        name, port: the node that sends, and by which port.
        to: the node that receives.
        busy: part of the time that each job keeps it sending.
    """

    end: int
    name: str
    port: int
    to: str
    busy: Mapping[str, float]


def find_shared_links(cell: Cell, most: int = 5) -> tuple[list[SharedLink], int]:
    """Return the link directions that are busiest with all jobs of a cell, and how many all of them send on.

    By the forwarding tables, that is for each message of each client, however seldom it sends; with adaptive routing
    for those that were sent while it was looked at.

    Args:
        cell: all of whose jobs run.
        most: link directions to list.
    """
    prepared = set_up(cell)
    simulation = prepared.simulation
    fabric = simulation.network.subnet.fabric
    busy = _find_busy_parts(simulation)
    sends = simulation.look_at_ends().bytes > 0 if cell.setting.adaptive else _trace(prepared)
    shared = np.flatnonzero(sends.all(axis=1))
    worst = shared[np.argsort(-busy[shared].min(axis=1), kind="stable")][:most]
    links = [
        SharedLink(
            end=int(end),
            name=str(fabric.node_name[fabric.link_node[end // 2, end % 2]]),
            port=int(fabric.link_port[end // 2, end % 2]),
            to=str(fabric.node_name[fabric.link_node[end // 2, 1 - end % 2]]),
            busy={job.name: float(busy[end, number]) for number, job in enumerate(simulation.jobs)},
        )
        for end in worst
    ]
    return links, len(shared)


def _trace(prepared: Prepared) -> npt.NDArray[np.bool_]:
    """Return which link directions lie on the routes of a job's messages: bool [link direction, job]."""
    simulation = prepared.simulation
    network = simulation.network
    flows = [(client.job, client.host, host) for client in prepared.clients for host in client.destinations()]
    job, source, destination = np.array(flows, np.int64).reshape(-1, 3).T
    lid = network.subnet.fabric.port_lid[network.host_port]
    ones = np.ones(len(job), np.uint64)
    loads = spread(network.subnet.routes, lid[source], lid[destination], ones, job, len(simulation.jobs))
    return loads.bytes.reshape(-1, len(simulation.jobs)) > 0


def _find_busy_parts(simulation: Simulation) -> npt.NDArray[np.float64]:
    """Return the part of the time that each link direction sends each job's bytes, once all clients have begun.

    Where they do not begin within `_HOPS` packet hops, it is that of the time since the beginning.
    """
    network = simulation.network
    of_rounds = np.array([job.round > 0 for job in simulation.jobs])[simulation.job_of_client]
    wanted = np.where(of_rounds, simulation.steps_of_client, _MESSAGES)
    began, before = 0, np.zeros((len(network.end_to), len(simulation.jobs)))
    while (state := simulation.state).packet_hops < _HOPS and state.stop not in {Stop.DONE, Stop.DEADLOCK}:
        simulation.run(state.now + max(network.ticks(_CHUNK_NS), state.now // _PARTS), _HOPS)
        progress = simulation.look_at_clients()
        if (progress.steps >= wanted).all():
            break
        if not began and ((progress.steps > 0) | progress.busy).all():
            began, before = simulation.state.now, find_busy(simulation)
    busy: npt.NDArray[np.float64] = (find_busy(simulation) - before) / max(simulation.state.now - began, 1)
    return busy.clip(0, 1)
