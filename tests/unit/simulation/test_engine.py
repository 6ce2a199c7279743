# SPDX-License-Identifier: Apache-2.0
"""The packet engine agrees with exact latencies, queueing theory, reference loads of links, and known deadlocks."""

from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from ibprof.errors import InconsistentError
from ibprof_converter.cli import layout
from ibprof_lab.simulation.engine.deadlock import _find_cycle, assign_lanes, describe_cycle, find_cycle
from ibprof_lab.simulation.engine.packet_engine import Client, Job, Simulation, Step, Stop, interrupted
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork, index_network
from ibprof_lab.simulation.measure.latency_measurement import measure
from ibprof_lab.simulation.measure.message_latency import Effort
from ibprof_testing.samples.fabrics import OPENSM, find_sample, read_subnet

TREE = "xgft:2:4,4:1,2@100"
RING = "torus:6:1@100"
EXACT = Hardware(packet_bytes=4096, lane_bytes=65536, switch_ns=96.0, wire_ns=6.4, gbps=100)
"""All times of this hardware are multiples of the tick, 0.64 ns."""


def make(name: str, hardware: Hardware = EXACT) -> SimulatedNetwork:
    return index_network(read_subnet(name), hardware)


def count_hops(network: SimulatedNetwork, source: int, destination: int) -> int:
    """Return the number of links on the path, counted hop by hop."""
    end, hops = int(network.host_end[source]), 1
    while (node := int(network.end_to[end])) >= network.hosts:
        end = int(network.port_end[node - network.hosts, network.egress[node - network.hosts, destination]])
        hops += 1
    assert node == destination
    return hops


def test_a_packet_alone_takes_exactly_its_time_between_any_two_hosts() -> None:
    network = make(TREE)
    for source in range(network.hosts):
        for destination in range(network.hosts):
            if source == destination:
                continue
            sample = Simulation(network, [Job("one", limit=1)], [Client(source, 0, [Step(destination, 1000)])]).run()
            hops = count_hops(network, source, destination)
            ns = hops * (1000 * 8 / 100 + 6.4) + (hops - 1) * 96
            assert network.to_ns(int(sample["ticks"][0])) == pytest.approx(ns)


@pytest.mark.parametrize("packets", [2, 7, 100])
def test_a_message_is_pipelined(packets: int) -> None:
    """The first packet arrives after a packet's latency, and the packets after it one transmission time apart."""
    network = make(TREE)
    job, step = Job("one", limit=1), Step(network.hosts - 1, packets * 4096)
    (sample,) = Simulation(network, [job], [Client(0, 0, [step])]).run()
    hops, sending = count_hops(network, 0, network.hosts - 1), 4096 * 8 / 100
    ns = hops * (sending + 6.4) + (hops - 1) * 96 + (packets - 1) * sending
    assert network.to_ns(int(sample["ticks"])) == pytest.approx(ns)


def test_a_host_pauses_between_packets() -> None:
    """One message of 4 MiB, and 1,024 messages of 4 KiB, each become 1,024 packets with 1,023 pauses of 10 ns."""
    network = make(TREE, replace(EXACT, switch_ns=100, wire_ns=10, nic_gap_ns=10, tick_ns=0.02))
    to = network.hosts - 1
    hops, sending = count_hops(network, 0, to), 4096 * 8 / 100
    first = hops * (sending + 10) + (hops - 1) * 100
    whole = Simulation(network, [Job("one", limit=1)], [Client(0, 0, [Step(to, 1 << 22)])])
    assert network.to_ns(int(whole.run()["ticks"][0])) == pytest.approx(first + 1023 * (sending + 10))
    many = Simulation(network, [Job("many", limit=1)], 1024 * [Client(0, 0, [Step(to, 4096)])])
    assert network.to_ns(int(many.run()["ticks"].max())) == pytest.approx(first + 1023 * (sending + 10))
    for simulation in whole, many:
        assert simulation.look_at_ends().busy.max() == network.ticks(1024 * sending)  # a link is not busy in pauses


def test_a_pause_delays_no_packet_of_a_slow_job() -> None:
    """A packet that arrives after the pause is sent immediately."""
    network = make(TREE, replace(EXACT, nic_gap_ns=1000))
    job, step = Job("slow", interval=network.ticks(5000), limit=20), Step(network.hosts - 1, 1000)
    ticks = Simulation(network, [job], [Client(0, 0, [step])]).run()["ticks"]
    (alone,) = Simulation(make(TREE), [replace(job, limit=1)], [Client(0, 0, [step])]).run()["ticks"]
    assert set(ticks.tolist()) == {int(alone)}


def test_slow_links_take_their_time() -> None:
    network = make("xgft:1:2:1@10", Hardware(switch_ns=96, wire_ns=6.4, tick_ns=0.64))
    (sample,) = Simulation(network, [Job("one", limit=1)], [Client(0, 0, [Step(1, 1000)])]).run()
    assert network.to_ns(int(sample["ticks"])) == pytest.approx(2 * (800 + 6.4) + 96)


@pytest.mark.parametrize(("fastest", "gbps"), [("100", "56.25"), ("400", "56"), ("56", "2.5"), ("100", "25")])
def test_a_packet_takes_whole_ticks_of_which_the_last_has_begun(fastest: str, gbps: str) -> None:
    """A packet's time is rounded up to whole ticks. A tick is the time of 64 bits on the fastest link."""
    subnet = read_subnet("xgft:1:2:1@100")
    subnet = replace(subnet, fabric=replace(subnet.fabric, link_gbps=np.array([float(fastest), float(gbps)])))
    network = index_network(subnet, Hardware(switch_ns=0))
    for size in (*range(1, 4097, 31), *range(504, 4097, 504)):  # multiples of 504 bytes may take whole ticks
        sample = Simulation(network, [Job("one", limit=1)], [Client(0, 0, [Step(1, size)])]).run()
        on_links = [math.ceil(Fraction(8 * size, 64) * Fraction(fastest) / Fraction(each)) for each in (fastest, gbps)]
        assert int(sample["ticks"][0]) == sum(on_links) + 2


def test_poisson_arrivals_wait_as_in_m_d_1() -> None:
    """Many hosts send to one host at random times. The mean wait at the host's link is rho s / (2 (1 - rho))."""
    network = make("xgft:1:33:1@100", Hardware(packet_bytes=4096, lane_bytes=1 << 22, switch_ns=96, wire_ns=6.4))
    random = np.random.default_rng(7)
    service, rho, messages = 4096 * 8 / 100, 0.7, 60_000
    starts = np.cumsum(random.exponential(service / rho, messages))
    senders = random.integers(1, 33, messages)
    clients = [
        Client(int(host), 0, [Step(0, 4096)], start=network.ticks(float(start)))
        for host, start in zip(senders, starts, strict=True)
    ]
    simulation = Simulation(network, [Job("poisson", limit=1)], clients)
    waits = []
    while simulation.state.stop != Stop.DONE:
        samples = simulation.run().copy()
        waits.append(network.to_ns(1) * samples["ticks"] - (2 * (service + 6.4) + 96))
    wait = np.concatenate(waits)
    assert len(wait) == messages
    # Packets also wait at the senders' links: 32 queues with a load of rho / 32 each.
    own = rho / 32 * service / (2 * (1 - rho / 32))
    expected = rho * service / (2 * (1 - rho))
    batches = wait.reshape(30, -1).mean(axis=1)
    half = 2.05 * batches.std(ddof=1) / math.sqrt(len(batches))
    assert expected - half - own < wait.mean() < expected + half + 2 * own
    assert half < 0.1 * expected


def test_a_link_that_is_asked_for_more_carries_what_it_can() -> None:
    network = make("xgft:1:9:1@100")
    clients = [Client(host, 0, [Step(0, 1 << 20)]) for host in range(1, 9)]
    simulation = Simulation(network, [Job("all", sampled=False)], clients)
    simulation.run(network.ticks(5e6))
    into = [end for end in range(len(network.end_to)) if network.end_to[end] == 0]
    ends = simulation.look_at_ends()
    assert ends.bytes[into, 0].sum() * 8 / 5e6 == pytest.approx(100, rel=2e-3)
    assert ends.busy[into].sum(axis=1).max() <= simulation.state.now + network.ticks(EXACT.lane_bytes * 8 / 100)
    assert ends.most_queued[network.host_end[1:]].max() <= EXACT.lane_bytes


@pytest.mark.parametrize("name", ["testbed44", "hypercube-4"])
def test_all_to_all_loads_links_as_the_tables_say(name: str, tmp_path: Path) -> None:
    """Each link direction carries the bytes that `ibprof-layout` computes with another algorithm."""
    sample = str(find_sample(name, OPENSM))
    assert layout.main([sample, "pattern:all-to-all:5000", "-o", str(tmp_path / "links.csv")]) == 0
    network = index_network(read_subnet(sample), EXACT)
    everyone = range(network.hosts)
    clients = [Client(host, 0, [Step(to, 5000) for to in everyone if to != host]) for host in everyone]
    jobs = [Job("all-to-all", limit=network.hosts - 1)]
    simulation = Simulation(network, jobs, clients, lanes=assign_lanes(network))
    simulation.run()
    assert simulation.state.stop == Stop.DONE
    fabric, carried = network.subnet.fabric, simulation.look_at_ends().bytes[:, 0]
    end_of = {
        (int(fabric.node_guid[node]), int(port)): end
        for end, (node, port) in enumerate(zip(fabric.link_node.ravel(), fabric.link_port.ravel(), strict=True))
    }
    with (tmp_path / "links.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["a_bytes"]) for row in rows) > 0
    for row in rows:
        for side in "ab":
            assert int(row[f"{side}_bytes"]) == carried[end_of[int(row[f"{side}_guid"], 16), int(row[f"{side}_port"])]]


def test_only_machines_are_hosts() -> None:
    """Jobs run neither on routers nor on aggregation nodes inside switches."""
    names = index_network(read_subnet(str(find_sample("quirks-small", OPENSM))), EXACT).host_names
    assert len(names) == 14
    assert not [name for name in names if "router" in name]
    subnet = read_subnet(str(find_sample("testbed44", OPENSM)))
    first = next(name for name in subnet.fabric.node_name if name.startswith("host"))
    renamed = tuple(
        "Mellanox Technologies Aggregation Node" if name == first else name for name in subnet.fabric.node_name
    )
    assert index_network(subnet, EXACT).host_names[0] == first
    inside = replace(subnet, fabric=replace(subnet.fabric, node_name=renamed))
    assert index_network(inside, EXACT).host_names == index_network(subnet, EXACT).host_names[1:]


@pytest.mark.parametrize("adaptive", [False, True])
def test_bytes_are_conserved(adaptive: bool) -> None:
    network = make("xgft:2:4,4:1,4@100")
    random = np.random.default_rng(3)
    jobs = [Job("a", interval=500, jitter=0.5, limit=20), Job("b", limit=5), Job("reads", limit=4, reads=256)]
    clients = [
        Client(int(a), int(job), [Step(int(b), int(size))], start=int(start))
        for a, b, job, size, start in zip(
            random.integers(16, size=60),
            random.integers(16, size=60),
            random.integers(3, size=60),
            random.integers(1, 100_000, size=60),
            random.integers(1000, size=60),
            strict=True,
        )
    ]
    simulation = Simulation(network, jobs, clients, adaptive=adaptive)
    samples = simulation.run()
    state = simulation.state
    assert (state.stop, state.in_flight) == (Stop.DONE, 0)
    off_host = [client for client in clients if client.host != client.steps[0].host]
    sent = sum(jobs[client.job].limit * (client.steps[0].bytes + jobs[client.job].reads) for client in off_host)
    assert state.bytes_sent == state.bytes_arrived == sent
    assert Counter(samples["client"].tolist()) == {n: jobs[c.job].limit for n, c in enumerate(clients)}
    ends = simulation.look_at_ends()
    assert ends.bytes[network.host_end].sum() == sent
    assert not ends.queued.any()


def test_the_same_seed_gives_the_same() -> None:
    network = make(TREE)
    clients = [Client(host, 0, [Step((host + 5) % 16, 9000)], start=host) for host in range(16)]

    def run(seed: int) -> list[int]:
        simulation = Simulation(network, [Job("j", interval=300, jitter=0.3)], clients, seed=seed, adaptive=True)
        ticks: list[int] = simulation.run(200_000)["ticks"].tolist()
        return ticks

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_rounds_of_a_collective_wait_for_each_other() -> None:
    """Recursive doubling: in each round, a client sends to a partner and waits for the partner's message."""
    network = make(TREE)
    rounds = 4
    clients = [
        Client(
            host,
            0,
            [Step(host ^ 1 << k, 1000, client=host ^ 1 << k, slot=k, awaits=k) for k in range(rounds)],
            arrivals=rounds,
            start=1 if host else 50_000,
        )
        for host in range(16)
    ]
    simulation = Simulation(network, [Job("allreduce", limit=2 * rounds)], clients)
    samples = simulation.run()
    assert simulation.state.stop == Stop.DONE
    first = {k: samples["start"][samples["host"] == (samples["client"] ^ 1 << k)] for k in range(rounds)}
    # Host 0 is late, so its partner in round 0 begins round 1 late too.
    assert first[1][np.argsort(first[1])][-2:].min() > 50_000
    assert simulation.look_at_clients().steps.tolist() == [2 * rounds] * 16


def test_a_ring_has_a_circle_and_lanes_open_it() -> None:
    network = make(RING)
    cycle = find_cycle(network)
    assert len(cycle) >= 3
    assert "-> the first" in describe_cycle(network, cycle)
    lanes = assign_lanes(network)
    assert lanes is not None
    assert lanes.max() == 1
    with pytest.raises(InconsistentError, match="can deadlock"):
        assign_lanes(network, most=1)


def test_tables_with_a_cycle_are_reported() -> None:
    """A leaf sends packets for a host of another leaf up, and the spine sends them back."""
    network = make("xgft:2:4,4:1,4@100")
    egress = network.egress.copy()
    one, other = network.host_leaf[0], network.host_leaf[4]
    spine = network.end_to[network.port_end[one, egress[one, 15]]] - network.hosts
    egress[other, 15] = egress[one, 15]
    egress[spine, 15] = egress[spine, 4]
    with pytest.raises(
        InconsistentError, match="'host16 HCA-1' in a cycle: 'L1-2' port 8 -> 'L2-4' port 2 -> the first"
    ):
        assign_lanes(replace(network, egress=egress))


def test_a_long_cycle_is_found_at_once() -> None:
    """The search must not follow the whole path at each step, which would take several seconds."""
    ends = 40_000
    after = np.append(np.arange(1, ends), 7)
    network = cast("SimulatedNetwork", SimpleNamespace(end_to=np.zeros(ends)))
    begin = process_time()
    assert _find_cycle(network, np.arange(ends) * ends + after) == list(range(7, ends))
    assert process_time() - begin < 2


def test_a_ring_deadlocks_and_is_reported() -> None:
    tight = Hardware(packet_bytes=4096, lane_bytes=4096, switch_ns=96, wire_ns=6.4, gbps=100)
    network = make(RING, tight)
    clients = [Client(host, 0, [Step((host + 2) % 6, 1 << 20)]) for host in range(6)]
    stuck = Simulation(network, [Job("all", limit=1)], clients)
    stuck.run()
    assert stuck.state.stop == Stop.DEADLOCK
    waits = stuck.find_waits()
    assert set(waits[:, 1].tolist()) <= set(waits[:, 0].tolist()) | set(find_cycle(network))
    lanes = assign_lanes(network)
    freed = Simulation(network, [Job("all", limit=1)], clients, lanes=lanes)
    freed.run()
    assert freed.state.stop == Stop.DONE


def test_a_deadlock_is_reported_while_others_go_on() -> None:
    """The messages of six hosts on a ring deadlock. A message within a switch uses no link of the ring."""
    network = make("torus:6:3@100", Hardware(packet_bytes=4096, lane_bytes=4096, switch_ns=96, wire_ns=6.4))
    of_switch = [np.flatnonzero(network.host_leaf == switch) for switch in range(6)]
    ring = [Client(int(of_switch[n][0]), 0, [Step(int(of_switch[(n + 2) % 6][0]), 1 << 20)]) for n in range(6)]
    unaffected = Client(int(of_switch[0][1]), 1, [Step(int(of_switch[0][2]), 4096)])
    simulation = Simulation(network, [Job("ring"), Job("unaffected")], [*ring, unaffected])
    simulation.run(network.ticks(1e6))
    assert simulation.state.stop == Stop.DEADLOCK
    stuck = set(map(tuple, simulation.find_waits(only_stuck=True).tolist()))
    assert {end for pair in stuck for end in pair} >= set(find_cycle(network))
    before = simulation.look_at_clients().steps
    simulation.run(network.ticks(2e6))
    assert set(map(tuple, simulation.find_waits(only_stuck=True).tolist())) == stuck
    progress = simulation.look_at_clients().steps - before
    assert progress[-1] > 1000
    assert not progress[:-1].any()
    latency = measure(simulation, np.array([False] * 6 + [True]), Effort())
    assert latency.note.startswith("deadlock: packets wait for each other in a cycle: '")


@pytest.mark.parametrize("seed", range(40))
def test_what_is_stuck_stays_and_nothing_else_does(seed: int) -> None:
    """On rings with small buffers, stuck packets stay stuck. All clients end if and only if no packet is stuck."""
    draw = np.random.default_rng(seed)
    network = make(("torus:6:1@100", "torus:7:2@100")[seed % 2], Hardware(packet_bytes=4096, lane_bytes=4096))
    hosts = network.hosts
    far = [int(draw.integers(1, 3)) * hosts // (6 + seed % 2) for _ in range(hosts)]
    clients = [
        Client(host, 0, [Step((host + far[host]) % hosts, int(draw.integers(1, 1 << 15)))]) for host in range(hosts)
    ]
    simulation = Simulation(network, [Job("all", limit=20)], clients, seed)
    told = None
    while simulation.state.stop != Stop.DONE:
        before = simulation.state.packet_hops
        simulation.run(simulation.state.now + network.ticks(20e3))
        stuck = {tuple(pair) for pair in simulation.find_waits(only_stuck=True).tolist()}
        assert (told or set()) <= stuck
        if simulation.state.stop == Stop.DEADLOCK:
            assert stuck
            told = stuck
            if simulation.state.packet_hops == before:
                break
    ended = simulation.look_at_clients().steps == 20
    assert ended.all() == (told is None)


@pytest.mark.parametrize("name", ["xgft:3:4,4,4:1,2,2", "dragonfly:4,2,2", "tree:3,3"])
def test_fat_trees_have_no_circle(name: str) -> None:
    network = make(name)
    cycle = find_cycle(network)
    assert (cycle == []) == (not name.startswith("dragonfly"))


def test_tables_with_holes_are_reported() -> None:
    subnet = read_subnet(str(find_sample("testbed44", OPENSM)))
    network = index_network(subnet, Hardware(gbps=100))
    network.egress[:, 3] = 255
    with pytest.raises(InconsistentError, match="has no path to"):
        Simulation(network, [Job("j")], [Client(0, 0, [Step(3, 10)])]).run()


def test_a_table_that_leads_to_another_host_ends_it() -> None:
    network = index_network(read_subnet("xgft:2:4,4:1,4@100"), Hardware())
    egress = network.egress.copy()
    leaf = int(network.host_leaf[5])
    egress[leaf, 5] = egress[leaf, 6]
    simulation = Simulation(replace(network, egress=egress), [Job("j", limit=1)], [Client(0, 0, [Step(5, 100_000)])])
    with pytest.raises(InconsistentError, match="has no path to 'host"):
        simulation.run()


def test_a_long_run_comes_back_for_interrupts_and_limits() -> None:
    """The engine returns regularly to check for interrupts and limits. The result does not change."""
    network = index_network(read_subnet("xgft:2:4,4:1,4@100"), Hardware())
    clients = [Client(host, 0, [Step((host + 5) % 16, 1 << 50)]) for host in range(16)]
    simulation = Simulation(network, [Job("j")], clients)
    simulation.run(hops=1e6)
    state = simulation.state
    assert state.stop == Stop.HOPS
    assert state.packet_hops < 1e8
    interrupted.set()
    try:
        with pytest.raises(KeyboardInterrupt):
            simulation.run()
    finally:
        interrupted.clear()
    simulation.run(simulation.state.now + 10_000)
    again = Simulation(network, [Job("j")], clients)
    again.run(simulation.state.now)
    assert again.state == simulation.state
