# SPDX-License-Identifier: Apache-2.0
"""Clients in a closed loop agree with queueing theory, and so does the threshold of I/O congestion."""

from __future__ import annotations

import numpy as np
import pytest

from ibprof_lab.simulation.engine.packet_engine import Client, Job, Simulation, Step, Stop
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork, index_network
from ibprof_testing.samples.fabrics import read_subnet

BYTES_A_NS = 12.5


def make(name: str) -> SimulatedNetwork:
    return index_network(read_subnet(name), Hardware(gbps=100))


def measure_throughput(
    network: SimulatedNetwork, job: Job, clients: list[Client], warm_up_ns: float, ns: float
) -> float:
    """Return the throughput in messages/ns, measured after a warm-up."""
    simulation = Simulation(network, [job], clients)
    simulation.run(network.ticks(warm_up_ns))
    before = simulation.state.steps
    simulation.run(network.ticks(warm_up_ns + ns))
    assert simulation.state.stop == Stop.TIME
    return (simulation.state.steps - before) / ns


@pytest.mark.parametrize("size", [4096, 100_000])
@pytest.mark.parametrize("interval_ns", [0.0, 20_000.0])
@pytest.mark.parametrize("count", [1, 2, 5, 12, 30])
def test_a_closed_network_keeps_to_its_bounds(size: int, interval_ns: float, count: int) -> None:
    """N / (N D + Z) <= X <= min(N / (D + Z), 1 / Dmax).

    X is the throughput of N clients, Z the interval. D is the time of a lone message, Dmax its time on the last link.

    Source: P. J. Denning and J. P. Buzen, "The operational analysis of queueing network models", ACM Computing Surveys
    10(3), 1978, asymptotic bounds.
    """
    network = make("xgft:1:31:1@100")
    alone = Simulation(network, [Job("one", limit=1)], [Client(1, 0, [Step(0, size)])]).run()
    demand, on_link = network.to_ns(int(alone["ticks"][0])), size / BYTES_A_NS
    clients = [Client(host, 0, [Step(0, size)], start=host * 97) for host in range(1, count + 1)]
    job = Job("all", interval=network.ticks(interval_ns))
    cycle = count * demand + interval_ns
    found = measure_throughput(network, job, clients, 5 * cycle, 100 * cycle)
    upper = min(count / (demand + interval_ns), 1 / on_link)
    assert count / cycle * 0.98 <= found <= upper * 1.02
    if count == 1 or (interval_ns == 0 and count == 30):
        assert found == pytest.approx(upper, rel=0.02)


CLIENTS, SERVERS = 56, 8
SIZE = 1 << 18


def load_of_servers(part_of_threshold: float) -> tuple[float, float]:
    """Return two fractions: the utilisation of the servers' links, and the load that clients offer."""
    network = make("xgft:2:8,8:1,8@100")
    threshold_ns = CLIENTS * SIZE / (SERVERS * BYTES_A_NS) - SIZE / BYTES_A_NS
    interval_ns = part_of_threshold * threshold_ns
    random = np.random.default_rng(4)
    steps = [Step(server, SIZE) for server in range(SERVERS)]
    clients = [
        Client(
            SERVERS + client,
            0,
            steps,
            next=int(random.integers(SERVERS)),
            start=int(random.integers(network.ticks(interval_ns + SIZE / BYTES_A_NS) + 1)),
        )
        for client in range(CLIENTS)
    ]
    job = Job("io", interval=network.ticks(interval_ns), jitter=0.05)
    cycle = threshold_ns + SIZE / BYTES_A_NS
    found = measure_throughput(network, job, clients, 10 * cycle, 40 * cycle) * SIZE
    most = SERVERS * BYTES_A_NS
    return found / most, CLIENTS * SIZE / (interval_ns + SIZE / BYTES_A_NS) / most


@pytest.mark.parametrize("part", [2.0, 4.0])
def test_above_the_threshold_servers_keep_up(part: float) -> None:
    """I* = N S / (n B) - S / B: at longer intervals, the servers carry all requested bytes."""
    carried, asked = load_of_servers(part)
    assert asked < 1
    assert carried == pytest.approx(asked, rel=0.08)


@pytest.mark.parametrize("part", [0.0, 0.25])
def test_below_the_threshold_servers_are_the_limit(part: float) -> None:
    carried, asked = load_of_servers(part)
    assert asked > 1.2
    assert 0.85 < carried <= 1.001
