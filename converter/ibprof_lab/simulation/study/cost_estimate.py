# SPDX-License-Identifier: Apache-2.0
"""Estimates of a simulation's packet hops and processor time, by bounds for closed queueing networks.

A client sends its next message after its previous message is complete. A client's cycle (time between starts of
messages) is therefore at least its interval plus the time of a message alone. The cycle is also at least the time in
which the servers' links carry one message of every client.

Source: P. J. Denning and J. P. Buzen, "The operational analysis of queueing network models", ACM Computing Surveys
10(3), 1978.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ibprof_lab.lab_choices import ServerPlacement
from ibprof_lab.simulation.engine.deadlock import follow_routes
from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.study.cell import Cell, NetworkSource, load_lanes, load_network
from ibprof_lab.simulation.workload.host_assignment import choose_servers
from ibprof_lab.simulation.workload.workloads import Role, Workload

_MESSAGES = 8
"""In simulations that end at a required precision, most means settle after this number of messages per client."""

_STEADY_PAIRS, _STEADY_OTHERS = (90, 550), (180, 700)
"""Messages per client between the warm-up and a steady state, for the role PAIRS and for other roles. The second number
of each role is for simulations in which the servers' links limit a job's rate."""

_NS_OF_HOP = 50.0
"""Processor time for each packet hop that the engine does not skip, ns."""

_NS_OF_SHORT = 55.0
"""Processor time for each skipped hop of a message of one packet, ns. About half of this time is for the message
itself, not for its hops."""

_NS_OF_PAIRS, _NS_OF_OTHERS = (4.0, 8.0), (15.0, 30.0)
"""Processor time for each skipped hop of a message of several packets, ns, for the role PAIRS and for other roles. The
second number of each role is for the same simulations as in `_STEADY_PAIRS`."""


@lru_cache(maxsize=8)
def find_mean_hops(source: NetworkSource, hardware: Hardware) -> float:
    """Return the mean number of links between two hosts, over all leaf switches and at most 64 destinations."""
    network = load_network(source, hardware)
    chosen = np.unique(np.linspace(0, network.hosts - 1, 64).astype(int))
    leaves = len(np.unique(network.host_leaf))
    between = [sum(len(leaf) for leaf, _ in follow_routes(network, int(host))) for host in chosen]
    return float(np.mean([(2.0 * leaves + links) / leaves for links in between]))


def find_transfer_ns(cell: Cell, workload: Workload) -> float:
    """Return the time of one message alone on the network, ns."""
    setting = cell.setting
    network = setting.load()
    byte_ns = network.to_ns(float(np.median(network.end_byte_ticks)) / 2**32)
    if (at_servers := _find_server_byte_ns(cell, workload)) is not None:
        byte_ns = float(np.maximum(at_servers, byte_ns).mean())
    hops = find_mean_hops(setting.network, setting.hardware)
    packet = min(workload.bytes, setting.hardware.packet_bytes)
    each = packet * byte_ns + setting.hardware.switch_ns + setting.hardware.wire_ns
    gaps_ns = workload.bytes / setting.hardware.packet_bytes * setting.hardware.nic_gap_ns
    return workload.bytes * byte_ns + (hops - 1) * each + gaps_ns


def find_bottleneck_ns(cell: Cell, workload: Workload) -> float:
    """Return the time in which the servers' links carry one message of every client, ns; 0 for jobs without servers.
    The slowest server's link determines this time, since each client uses all servers in turn.
    """
    at_servers = _find_server_byte_ns(cell, workload)
    if at_servers is None:
        return 0.0
    setting = cell.setting
    network = setting.load()
    clients = round(workload.share * (network.hosts - setting.servers))
    return clients * workload.bytes * float(at_servers.max()) / setting.servers


def find_bound_ns(cell: Cell, workload: Workload) -> float:
    """Return the interval below which the servers' links delay requests, ns (N S/(n B) - S/B in
    `congestion_threshold`); 0 for jobs without servers.
    """
    at_servers = _find_server_byte_ns(cell, workload)
    if at_servers is None:
        return 0.0
    return find_bottleneck_ns(cell, workload) - workload.bytes * float(at_servers.max())


def _find_server_byte_ns(cell: Cell, workload: Workload) -> npt.NDArray[np.float64] | None:
    """Return the time of a byte on each server's link, ns, float64 [server]; None for jobs without servers."""
    setting = cell.setting
    if workload.role is not Role.IO or not setting.servers:
        return None
    # Placements that do not depend on the seed are cached with seed 0.
    seed = cell.seed if setting.server_placement is ServerPlacement.RANDOM else 0
    taken = tuple(host for each in cell.workloads for host in each.hosts)
    return _list_server_byte_ns(setting.network, setting.hardware, setting.servers, setting.server_placement, seed,
                                setting.server_hosts, taken)  # fmt: skip


@lru_cache(maxsize=64)
def _list_server_byte_ns(
    source: NetworkSource,
    hardware: Hardware,
    servers: int,
    placement: ServerPlacement,
    seed: int,
    named: tuple[int, ...],
    taken: tuple[int, ...],
) -> npt.NDArray[np.float64]:
    network = load_network(source, hardware)
    hosts = choose_servers(network, servers, placement, np.random.default_rng(seed), named, taken)
    byte_ns: npt.NDArray[np.float64] = network.to_ns(1) * network.end_byte_ticks[network.host_end[hosts]] / 2**32
    return byte_ns


def find_cycle_ns(cell: Cell, workload: Workload) -> float:
    """Return a lower bound of the time between the starts of successive messages of a client, ns."""
    own = max(workload.interval_ns + find_transfer_ns(cell, workload), workload.window_ns)
    return max(own, find_bottleneck_ns(cell, workload))


def estimate_hops(cell: Cell) -> float:
    """Estimate the packet hops of a simulation; for most simulations, the error is less than a factor of 3."""
    return sum(_estimate_hops_of_jobs(cell).values())


def estimate_seconds(cell: Cell) -> float:
    """Estimate the processor time of a simulation, s; mostly, the error is less than a factor of 4."""
    hops = _estimate_hops_of_jobs(cell)
    return sum(hops[each.name] * _find_hop_ns(cell, each) for each in _list_running(cell)) / 1e9


def _list_running(cell: Cell) -> list[Workload]:
    return [each for each in cell.workloads if each.name in cell.running]


def _has_full_servers(cell: Cell) -> bool:
    """Return True if the servers' links limit the rate of a running job."""
    return any(find_cycle_ns(cell, each) <= find_bottleneck_ns(cell, each) for each in _list_running(cell))


def _find_hop_ns(cell: Cell, workload: Workload) -> float:
    setting, running = cell.setting, _list_running(cell)
    lanes = load_lanes(setting.network)
    if setting.adaptive or lanes is not None or any(each.reads for each in running):
        return _NS_OF_HOP
    if workload.bytes <= setting.hardware.packet_bytes:
        return _NS_OF_SHORT
    return (_NS_OF_PAIRS if workload.role is Role.PAIRS else _NS_OF_OTHERS)[_has_full_servers(cell)]


def _estimate_hops_of_jobs(cell: Cell) -> dict[str, float]:
    setting, effort = cell.setting, cell.setting.effort
    network = setting.load()
    mean_hops = find_mean_hops(setting.network, setting.hardware)
    running = _list_running(cell)
    cycle = {each.name: find_cycle_ns(cell, each) for each in running}
    ends_early = (effort.precision or effort.steady) and not setting.adaptive
    of_measured = next(each for each in running if each.name == cell.measured)
    steady = (_STEADY_PAIRS if of_measured.role is Role.PAIRS else _STEADY_OTHERS)[_has_full_servers(cell)]
    usual = _MESSAGES if effort.precision else min(steady, effort.messages) + effort.warm_up
    limit = of_measured.limit
    measured = effort.left_out(limit) + usual if ends_early else effort.warm_up + effort.messages
    simulated = max(
        cycle[each.name] * max(each.limit, measured if each.name == cell.measured else effort.background)
        for each in running
    )
    hops = {}
    for each in running:
        clients = each.share * (network.hosts - setting.servers)
        packets = -(-each.bytes // setting.hardware.packet_bytes)
        hops[each.name] = clients * simulated / cycle[each.name] * packets * mean_hops
    part = min(effort.hops / max(sum(hops.values()), 1.0), 1.0)
    return {name: part * of_job for name, of_job in hops.items()}
