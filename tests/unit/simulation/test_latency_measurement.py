# SPDX-License-Identifier: Apache-2.0
"""A measurement leaves out the first messages, and has no result if the latencies never become stationary."""

from __future__ import annotations

import numpy as np
import pytest

from ibprof_lab.simulation.engine.packet_engine import Client, Job, Simulation, Step
from ibprof_lab.simulation.engine.simulated_network import Hardware, index_network
from ibprof_lab.simulation.measure.latency_measurement import measure
from ibprof_lab.simulation.measure.message_latency import Effort, Latency
from ibprof_testing.samples.fabrics import read_subnet


def measure_messages(sizes: list[int], effort: Effort | None = None, limit: int = 0) -> Latency:
    """Measure one client that repeats messages of these sizes."""
    network = index_network(read_subnet("xgft:1:4:1@100"), Hardware(switch_ns=0))
    steps = [Step(1, size) for size in sizes]
    simulation = Simulation(network, [Job("one", limit=limit)], [Client(0, 0, steps)])
    return measure(simulation, np.array([True]), effort or Effort())


def test_a_mean_that_grows_on_is_no_result() -> None:
    latency = measure_messages([10_000 + 100 * number for number in range(400)])
    assert not latency.is_settled
    assert latency.note.startswith("no steady state: the mean still changes, +")


def test_a_mean_that_grew_is_measured_after_that() -> None:
    last = 10_000 + 100 * 49
    latency = measure_messages([min(10_000 + 100 * number, last) for number in range(2000)])
    assert latency.is_settled
    assert latency.mean == pytest.approx((last + 4096) * 8 / 100, rel=0.03)


def test_messages_are_left_out_however_stationary_they_look() -> None:
    early, late = 100_000, 200_000
    sizes = [early] * 50 + [late] * 2000
    by_test_alone = measure_messages(sizes, Effort(least_warm_up=0))
    assert by_test_alone.mean == pytest.approx((early + 4096) * 8 / 100, rel=0.01)
    assert measure_messages(sizes).mean == pytest.approx((late + 4096) * 8 / 100, rel=0.01)
    assert measure_messages(sizes, Effort(warm_up=5)).mean == pytest.approx(by_test_alone.mean, rel=0.01)


def test_a_job_that_ends_is_measured_from_its_beginning() -> None:
    latency = measure_messages([100_000], limit=45)
    assert latency.is_settled
    assert latency.messages > 40  # the search for the warm-up can leave out four messages


def test_what_runs_next_to_a_job_that_ended_is_no_result() -> None:
    network = index_network(read_subnet("xgft:1:4:1@100"), Hardware())
    jobs = [Job("measured", interval=1000), Job("short", limit=5)]
    clients = [Client(0, 0, [Step(2, 4096)]), Client(1, 1, [Step(2, 1 << 20)])]
    of_measured = np.array([True, False])
    latency = measure(Simulation(network, jobs, clients), of_measured, Effort(background=5, least_warm_up=0))
    assert not latency.is_settled
    # 5 MiB take 419 us; packets of the measured job on the same link take 33 us more.
    assert latency.note.startswith("job short had sent all its messages after 453 µs, and ")
    longer = [jobs[0], Job("short", limit=500)]
    assert measure(Simulation(network, longer, clients), of_measured, Effort(background=5)).is_settled


def test_packet_hops_are_kept_to_however_large_messages_are() -> None:
    network = index_network(read_subnet("xgft:1:4:1@100"), Hardware())
    clients = [Client(host, 0, [Step((host + 1) % 4, 1 << 50)]) for host in range(4)]
    simulation = Simulation(network, [Job("huge")], clients)
    latency = measure(simulation, np.ones(4, bool), Effort(hops=1e6))
    assert latency.note == "not settled after 1e+06 packet hops"
    assert simulation.state.packet_hops < 1e8
