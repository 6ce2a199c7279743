# SPDX-License-Identifier: Apache-2.0
"""From where on a simulation is measured, and that what never becomes stationary is no result."""

from __future__ import annotations

import numpy as np
import pytest

from ibprof_lab.simulation.engine.packet_engine import Client, Job, Simulation, Step
from ibprof_lab.simulation.engine.simulated_network import Hardware, index_network
from ibprof_lab.simulation.measure.latency_measurement import measure
from ibprof_lab.simulation.measure.latency_statistics import Slice, find_drift, find_warm_up
from ibprof_lab.simulation.measure.message_latency import Effort, Latency
from ibprof_testing.samples.fabrics import read_subnet


def test_a_warm_up_is_found() -> None:
    random = np.random.default_rng(5)
    level = random.normal(10, 0.5, 400)
    assert find_warm_up(level) < 40
    level[:60] += np.linspace(30, 0, 60)
    assert 40 <= find_warm_up(level) <= 80


def slices_of(means: np.ndarray) -> list[Slice]:
    return [(100.0 + 5 * number, 105.0 + 5 * number, 30, float(mean)) for number, mean in enumerate(means)]


def test_a_drift_is_what_a_line_changes_by() -> None:
    rises = find_drift(slices_of(np.linspace(90, 110, 41)[:-1] + 0.25))
    assert rises.change == pytest.approx(0.2, rel=0.02)
    assert rises.half == pytest.approx(0, abs=1e-3)
    assert rises.exceeds(0.05)
    assert find_drift(slices_of(np.linspace(110, 90, 40))).exceeds(0.05)
    assert not find_drift(slices_of(np.linspace(99, 101, 40))).exceeds(0.05)  # surely, but by too little to matter
    assert not find_drift([]).exceeds(0.05)
    assert not find_drift(slices_of(np.array([1.0, 2.0, 4.0]))).exceeds(0.05)  # too few to tell


def test_noise_is_no_drift() -> None:
    """Slices that vary by a fifth, of what is stationary, and of what grows by two fifths."""
    random = np.random.default_rng(11)
    noise = random.normal(1, 0.2, (400, 40))
    assert np.mean([find_drift(slices_of(each)).exceeds(0.05) for each in noise]) < 0.05
    assert np.mean([find_drift(slices_of(each + np.linspace(0, 0.4, 40))).exceeds(0.05) for each in noise]) > 0.5


def measure_messages(sizes: list[int], effort: Effort | None = None, limit: int = 0) -> Latency:
    """One client that sends these, over and over."""
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
    assert latency.messages > 40  # but for what the test leaves out


def test_what_runs_next_to_a_job_that_ended_is_no_result() -> None:
    network = index_network(read_subnet("xgft:1:4:1@100"), Hardware())
    jobs = [Job("measured", interval=1000), Job("short", limit=5)]
    clients = [Client(0, 0, [Step(2, 4096)]), Client(1, 1, [Step(2, 1 << 20)])]
    of_measured = np.array([True, False])
    latency = measure(Simulation(network, jobs, clients), of_measured, Effort(background=5, least_warm_up=0))
    assert not latency.is_settled
    # 5 MiB take 419 us, and what shares their link with them 33 us more.
    assert latency.note.startswith("job short had sent all after 453 µs, and ")
    longer = [jobs[0], Job("short", limit=500)]
    assert measure(Simulation(network, longer, clients), of_measured, Effort(background=5)).is_settled


def test_packet_hops_are_kept_to_however_large_messages_are() -> None:
    network = index_network(read_subnet("xgft:1:4:1@100"), Hardware())
    clients = [Client(host, 0, [Step((host + 1) % 4, 1 << 50)]) for host in range(4)]
    simulation = Simulation(network, [Job("huge")], clients)
    latency = measure(simulation, np.ones(4, bool), Effort(hops=1e6))
    assert latency.note == "given up after 1e+06 packet hops"
    assert simulation.state.packet_hops < 1e8
