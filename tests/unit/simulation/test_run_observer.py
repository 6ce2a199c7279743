# SPDX-License-Identifier: Apache-2.0
"""Each result of an observed simulation includes all messages, and observing does not change the simulation."""

from __future__ import annotations

import numpy as np
import pytest

from ibprof_converter.traffic.link_loads import load_links
from ibprof_lab.simulation.engine.packet_engine import Client, Job, Simulation, Step, Stop
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork, index_network
from ibprof_lab.simulation.measure.run_observer import Watch, bin_edges, bin_values
from ibprof_lab.simulation.measure.run_tables import (
    BUSY_COLUMNS,
    CLIENT_COLUMNS,
    LATENCY_COLUMNS,
    QUEUE_COLUMNS,
    TIME_COLUMNS,
    add_busy,
    client_rows,
    describe_links,
    find_busy,
    latency_rows,
    list_flows,
    load_ends,
    queue_rows,
    time_rows,
)
from ibprof_testing.samples.fabrics import read_subnet


@pytest.fixture(scope="module")
def network() -> SimulatedNetwork:
    return index_network(read_subnet("xgft:2:4,4:1,2@100"), Hardware(wire_ns=6.4))


def make(network: SimulatedNetwork) -> Simulation:
    jobs = [Job("short", interval=3000, jitter=0.2, limit=200), Job("long", limit=30)]
    clients = [Client(host, 0, [Step((host + 5) % 16, 700)]) for host in range(16)]
    clients += [Client(host, 1, [Step((host + 3) % 16, 60_000)]) for host in range(0, 16, 2)]
    return Simulation(network, jobs, clients, seed=4)


def test_a_histogram_holds_each_value_in_a_narrow_bin() -> None:
    values = np.exp(np.random.default_rng(1).uniform(0, 30, 10_000))
    edges, counts = bin_edges(), bin_values(values)
    assert counts.sum() == len(values)
    assert (counts == np.histogram(values, edges)[0]).all()
    assert (np.diff(edges) <= edges[:-1] / 64 + 1e-12).all()
    for part in (0.1, 0.5, 0.95, 0.999):
        quantile = np.interp(part * counts.sum(), np.concatenate([[0], np.cumsum(counts)]), edges)
        assert quantile == pytest.approx(np.quantile(values, part), rel=1 / 64)


def test_looking_changes_nothing_and_nothing_is_lost(network: SimulatedNetwork) -> None:
    plain = make(network)
    samples = plain.run().copy()
    assert plain.state.stop == Stop.DONE
    watch = Watch(make(network), every_ns=50)
    watched = []
    while watch.simulation.state.stop != Stop.DONE:
        watched.append(watch.run(watch.simulation.state.now + 20_011))
    assert (np.concatenate(watched) == samples).all()
    assert watch.simulation.state == plain.state
    ns = samples["ticks"] * network.tick_ns
    job = plain.job_of_client[samples["client"]]
    end = (samples["start"] + samples["ticks"]) * network.tick_ns
    for number in range(2):
        assert (watch.histogram(number) == bin_values(ns[job == number])).all()
        over = watch.over_time(number)
        assert over.messages.sum() == (job == number).sum()
        assert np.nansum(over.messages * over.mean_ns) == pytest.approx(ns[job == number].sum())
        third = (job == number) & (end >= over.begin_ns[2]) & (end < over.begin_ns[2] + over.width_ns)
        assert over.messages[2] == third.sum()
    messages, mean = watch.by_client()
    assert messages.tolist() == [200] * 16 + [30] * 8
    assert mean[3] == pytest.approx(ns[samples["client"] == 3].mean())


def test_queues_over_time_are_what_lies_there(network: SimulatedNetwork) -> None:
    watch = Watch(make(network), every_ns=500)
    watch.run(network.ticks(60_000))
    queues = watch.queues()
    assert 100 < len(queues.time_ns) < 256
    other = make(network)
    for look in (0, 7, 50):
        other.run(network.ticks(float(queues.time_ns[look])))
        assert (other.look_at_ends().queued == queues.bytes[look]).all()
    assert queues.bytes.max() > 0


def test_rows_say_what_happened(network: SimulatedNetwork) -> None:
    watch = Watch(make(network))
    watch.run(1 << 60)
    simulation = watch.simulation
    latencies, clients = list(latency_rows(watch)), list(client_rows(watch))
    assert sum(row["messages"] for row in latencies) == 16 * 200 + 8 * 30
    assert [row["bytes"] for row in clients] == [200 * 700] * 16 + [30 * 60_000] * 8
    last = simulation.look_at_clients().last
    assert max(row["last_us"] for row in clients) == pytest.approx(network.to_ns(int(last.max())) / 1000, abs=1e-3)
    for rows, columns in (
        (latencies, LATENCY_COLUMNS),
        (clients, CLIENT_COLUMNS),
        (list(time_rows(watch)), TIME_COLUMNS),
        (list(queue_rows(watch)), QUEUE_COLUMNS),
    ):
        assert rows
        assert all(tuple(row) == columns for row in rows)
    fabric = network.subnet.fabric
    (row,) = add_busy(
        simulation,
        [
            {
                "job": "long",
                **{
                    f"{end}_guid": f"0x{int(fabric.node_guid[fabric.link_node[0, at]]):016x}"
                    for at, end in enumerate("ab")
                },
                **{f"{end}_port": int(fabric.link_port[0, at]) for at, end in enumerate("ab")},
            }
        ],
    )
    ends = simulation.look_at_ends()
    # A link at 100 Gb/s sends 12.5 bytes/ns, and packets take whole ticks.
    for end, column in enumerate(BUSY_COLUMNS):
        assert row[column] == pytest.approx(float(ends.bytes[end, 1]) / 12.5 / 1000, rel=2e-3)


def test_when_a_client_had_sent_all_is_empty_before_that(network: SimulatedNetwork) -> None:
    jobs = [Job("soon", limit=1), Job("late", limit=1000), Job("never")]
    watch = Watch(Simulation(network, jobs, [Client(job, job, [Step(8 + job, 5000)]) for job in range(3)]))
    watch.run(network.ticks(20_000))
    rows = list(client_rows(watch))
    assert [row["steps"] > 0 for row in rows] == [True, True, True]
    assert [row["last_us"] is not None for row in rows] == [True, False, False]


@pytest.mark.parametrize("reads", [0, 256])
def test_what_stays_at_a_host_is_no_traffic(network: SimulatedNetwork, reads: int) -> None:
    clients = [Client(host, 0, [Step(host, 60_000), Step((host + 5) % 16, 700)]) for host in range(16)]
    watch = Watch(Simulation(network, [Job("some", limit=30, reads=reads)], clients))
    watch.run(1 << 60)
    flows = list_flows(watch)
    assert set(flows.unmapped.values()) == {0}
    found, simulated = load_links(flows, [network.subnet]), load_ends(watch.simulation)
    assert (found.by_rail[0] == simulated.by_rail[0]).all()
    assert found.bytes_on_host == 16 * 15 * (60_000 + reads)


def test_bins_of_tiny_latencies_have_two_edges() -> None:
    network = index_network(read_subnet("xgft:1:16:1"), Hardware(gbps=1e4, switch_ns=0.0))
    clients = [Client(host, 0, [Step((host + 1) % 16, size) for size in range(1, 400)]) for host in range(16)]
    watch = Watch(Simulation(network, [Job("tiny", limit=399)], clients))
    watch.run(1 << 60)
    rows = list(latency_rows(watch))
    assert rows[0]["from_us"] == 0.0005
    assert len(rows) > 10
    assert all(row["from_us"] < row["to_us"] for row in rows)


def test_an_end_is_busy_by_what_it_has_sent() -> None:
    """Two hosts saturate the link to a third host. Sent bytes have arrived, or are in the switch's buffers.

    A buffer's megabyte takes 8 ms to send. A packet adds to the busy time only after the packet was sent.
    """
    network = index_network(read_subnet("xgft:1:3:1@1"), Hardware(lane_bytes=1_000_000))
    jobs = [Job("one"), Job("two")]
    simulation = Simulation(network, jobs, [Client(host, host, [Step(2, 1 << 30)]) for host in range(2)])
    for milliseconds in (1, 10, 30, 100, 400):
        simulation.run(network.ticks(milliseconds * 1e6))
        ends, now, busy = simulation.look_at_ends(), simulation.state.now, find_busy(simulation)
        to_last = int(network.port_end[0, network.egress[0, 2]])
        sent = busy[network.host_end[:2]]
        packet = 4096 * 8  # ns at 1 Gb/s
        assert busy.sum(axis=1).max() <= now * (1 + 1e-12)
        assert packet <= network.to_ns(now - busy[to_last].sum()) <= 2.1 * packet  # the first packet arrives later
        lies = float(ends.queued[to_last]) * 8  # ns
        assert network.to_ns(sent.sum() - busy[to_last].sum()) == pytest.approx(lies, abs=3 * packet)
    assert describe_links(Watch(simulation))[0][1].max() <= 1 + 1e-12
    # The last link carried bytes for 400 ms. The buffers have 3 MB (8 ms per MB).
    assert network.to_ns(sent.sum(axis=1).min()) == pytest.approx((400e6 + 24e6) / 2, rel=0.01)


@pytest.mark.parametrize("reads", [0, 256])
def test_flows_put_on_links_by_the_tables_are_what_was_simulated(network: SimulatedNetwork, reads: int) -> None:
    jobs = [Job("short", interval=3000, limit=50), Job("long", limit=30, reads=reads)]
    steps = [(5, 700), (9, 5000), (6, 0)]
    clients = [Client(host, 0, [Step((host + to) % 16, size) for to, size in steps]) for host in range(16)]
    clients += [Client(host, 1, [Step((host + 3) % 16, 60_000)]) for host in range(0, 16, 2)]
    watch = Watch(Simulation(network, jobs, clients), every_ns=50)
    for until in (100_000, 1 << 60):  # some flows are known before other flows are added
        watch.run(until)
    assert watch.simulation.state.stop == Stop.DONE
    flows = list_flows(watch)
    found, simulated = load_links(flows, [network.subnet]), load_ends(watch.simulation)
    assert (found.by_rail[0] == simulated.by_rail[0]).all()
    assert found.bytes_routed == simulated.bytes_total == watch.simulation.state.bytes_arrived
    assert set(flows.unmapped.values()) == {0}
    busy, short, long, waits, lies = (value for _, value in describe_links(watch))
    assert 0 < busy.max() <= 1
    assert busy == pytest.approx(short + long)
    assert ((long > 0) == (simulated.by_rail[0][:, :, 1].ravel() > 0)).all()
    assert waits.max() > 0
    assert lies.max() <= network.hardware.lane_bytes / 1024
