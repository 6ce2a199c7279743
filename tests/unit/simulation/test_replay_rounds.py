# SPDX-License-Identifier: Apache-2.0
"""A recorded run with phases is measured in whole rounds. Messages between ranks of the same host are left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import Intervals
from ibprof_lab.simulation.engine.packet_engine import Client, Job, Simulation, Step
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork, index_network
from ibprof_lab.simulation.measure.latency_measurement import measure
from ibprof_lab.simulation.measure.message_latency import QUICK, Effort, Latency
from ibprof_lab.simulation.measure.run_observer import Watch, bin_values
from ibprof_lab.simulation.study.cell import Cell, Outcome, Setting, run_cell
from ibprof_lab.simulation.workload.workloads import Role, Workload
from ibprof_testing.samples.fabrics import read_subnet
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

ROUND_NS = 2e6
EARLY, LATE = 600, 20
"""Numbers of a client's messages in the two phases of a round."""


@pytest.fixture(scope="module")
def network() -> SimulatedNetwork:
    return index_network(read_subnet("xgft:2:4,4:1,4@100"), Hardware())


def in_two_phases(network: SimulatedNetwork, host: int, job: int = 0) -> Client:
    """Return a client with many small messages in the first half of a round, and few large messages at the end."""
    at = [*np.linspace(0, ROUND_NS / 2, EARLY), *np.linspace(0.99, 0.999, LATE) * ROUND_NS]
    sizes = [64] * EARLY + [200_000] * LATE
    to = (host + 4) % 16
    steps = [Step(to, size, pause=0, window=network.ticks(when)) for size, when in zip(sizes, at, strict=True)]
    return Client(host, job, steps)


def a_run(network: SimulatedNetwork, limit: int = 0) -> Job:
    return Job("run", round=network.ticks(ROUND_NS), limit=limit)


def measure_run(network: SimulatedNetwork, effort: Effort | None = None, limit: int = 0) -> Latency:
    clients = [in_two_phases(network, host) for host in range(4)]
    simulation = Simulation(network, [a_run(network, limit)], clients)
    return measure(simulation, np.ones(4, np.bool_), effort or Effort())


def test_the_late_phase_of_a_run_is_measured(network: SimulatedNetwork) -> None:
    """The last messages of a round arrive after the round's end, but belong to the round."""
    latency = measure_run(network)
    assert latency.is_settled
    assert latency.note == "2 whole rounds of the recorded run"
    assert latency.messages == 2 * 4 * (EARLY + LATE)
    assert latency.left_out_ns == 0
    assert latency.measured_ns == pytest.approx(2 * ROUND_NS)
    assert latency.half == pytest.approx(0, abs=0.01 * latency.mean)
    sizes = np.array([64] * EARLY + [200_000] * LATE)
    at_least = (sizes * 8 / 100).mean()
    assert at_least < latency.mean < 2 * at_least
    assert latency.most > 200_000 * 8 / 100 > 10 * latency.quantiles[1]


def other_job(network: SimulatedNetwork, effort: Effort, measured: int, interval_ns: float = 30_000.0) -> Latency:
    """Measure a run next to pairs of hosts that disturb the run."""
    jobs = [a_run(network), Job("pairs", interval=network.ticks(interval_ns), jitter=0.5)]
    clients = [in_two_phases(network, host) for host in range(4)]
    clients += [Client(host, 1, [Step((host - 8) % 16 + 4, 100_000)], start=host) for host in range(8, 12)]
    return measure(Simulation(network, jobs, clients), np.repeat([measured == 0, measured == 1], 4), effort)


@pytest.mark.parametrize("precision", [1e-6, 0.0])
def test_ten_rounds_are_enough(network: SimulatedNetwork, precision: float) -> None:
    latency = other_job(network, Effort(precision=precision, messages=100_000), 0)
    assert latency.is_settled
    assert latency.note == "10 whole rounds of the recorded run"
    assert latency.messages == 10 * 4 * (EARLY + LATE)
    assert latency.half > 0


def test_a_round_begins_when_the_background_has_passed(network: SimulatedNetwork) -> None:
    latency = other_job(network, Effort(background=100), 0)
    assert latency.left_out_ns == pytest.approx(3 * ROUND_NS)
    assert latency.messages % (4 * (EARLY + LATE)) == 0


@pytest.mark.parametrize("interval_ns", [10_000.0, 100_000.0])
def test_another_job_is_measured_in_whole_rounds_too(network: SimulatedNetwork, interval_ns: float) -> None:
    """Measured times are whole rounds of the recorded run. Warm-ups take one or three rounds."""
    latency = other_job(network, Effort(precision=1e-6), 1, interval_ns)
    assert latency.is_settled
    rounds = latency.measured_ns / ROUND_NS
    assert rounds == pytest.approx(round(rounds))
    assert latency.note == f"{round(rounds)} whole rounds of the recorded run"
    assert latency.left_out_ns == pytest.approx(ROUND_NS * (1 if interval_ns < 20_000 else 3))
    assert latency.messages >= 4 * 200


def test_short_rounds_are_many(network: SimulatedNetwork) -> None:
    """The measured job sends only in few rounds, so ten rounds do not suffice."""
    jobs = [Job("run", round=network.ticks(5000)), Job("pairs", interval=network.ticks(50_000), jitter=0.5)]
    clients = [Client(0, 0, [Step(4, 64)]), Client(1, 1, [Step(5, 4096)])]
    effort = Effort(precision=0.0, warm_up=5, messages=50)
    latency = measure(Simulation(network, jobs, clients), np.array([False, True]), effort)
    assert latency.is_settled
    assert 50 <= latency.messages < 60


@pytest.mark.parametrize(("hops", "number"), [(1000, 1), (30_000, 2)])
def test_a_run_that_is_too_long_is_given_up(network: SimulatedNetwork, hops: float, number: int) -> None:
    latency = measure_run(network, Effort(hops=hops, messages=100_000))
    assert not latency.is_settled
    told = f"in round {number} of the recorded run: state an interval for the run"
    assert latency.note == f"not settled after {hops:g} packet hops, {told}"
    assert latency.messages == (number - 1) * 4 * (EARLY + LATE)


def test_a_run_that_ends_is_measured_to_its_end(network: SimulatedNetwork) -> None:
    limit = EARLY + LATE + EARLY // 2
    latency = measure_run(network, limit=limit)
    assert latency.is_settled
    assert latency.messages == 4 * limit
    assert latency.note == "all messages were sent"


def test_ranks_that_are_late_are_measured_to_the_end_of_their_lists(network: SimulatedNetwork) -> None:
    """A round begins every 100 µs, but the messages of a round take five times as long."""
    steps = [Step(4, 100_000, pause=0, window=0)] * 62 + [Step(4, 64, pause=0, window=0)]
    simulation = Simulation(network, [Job("run", round=network.ticks(100_000))], [Client(0, 0, steps)])
    latency = measure(simulation, np.array([True]), Effort(precision=0.5))
    assert latency.is_settled
    assert latency.least < 2000
    assert latency.messages == 2 * 63


# -- runs as cells of a study

RANKS = 13
PLACES = [make_rank(rank, min(rank, RANKS - 2)) for rank in range(RANKS)]
"""The last two ranks share a host."""
HOSTS = [make_host(f"host{number}") for number in range(RANKS - 1)]


def make_line(rows: list[tuple[int, int, int, int, int, int, int]]) -> Intervals:
    """Return intervals from rows: rank, begin, end, first peer, last peer, bytes, messages."""
    types = ("i4", "u8", "u8", "u4", "u4", "u8", "u8")
    columns = np.array(rows, np.int64).T
    return Intervals(*(column.astype(kind) for column, kind in zip(columns, types, strict=True)))


def simulate(path: Path, counts: list[Count], line: Intervals | None = None, interval_ns: float = 0.0) -> Outcome:
    run = make_profile(counts, PLACES, HOSTS, operations=("SEND", "ISEND"))
    write_archive(replace(run, intervals=line) if line else run, path / "profile.otf2")
    workload = Workload("run", Role.PROFILE, 0, interval_ns=interval_ns, share=1, profile=str(path / "profile.otf2"))
    return run_cell(Cell(Setting("xgft:2:4,4:1,4@100", servers=0, effort=QUICK), (workload,), ("run",), "run", seed=1))


def test_a_profile_by_its_time_line_is_measured_to_its_end(tmp_path: Path) -> None:
    counts = [Count(0, 1, 64_000, messages=1000, operation=0), Count(0, 1, 10 << 20, messages=10, operation=1)]
    line = make_line([(0, 1_000, 4_000_000, 1, 1, 64_000, 1000), (0, 9_000_000, 9_900_000, 1, 1, 10 << 20, 10)])
    latency = simulate(tmp_path, counts, line).latency
    assert latency.note == "2 whole rounds of the recorded run"
    assert latency.messages == 2 * 1010
    assert latency.most > (1 << 20) * 8 / 100


@pytest.mark.parametrize("small", [15, 2000])
def test_a_profile_at_intervals_is_not_measured_by_its_first_messages_alone(tmp_path: Path, small: int) -> None:
    """All messages of a client's list are measured, or as many as the effort allows."""
    ring = [(rank, (rank + 1) % (RANKS - 1)) for rank in range(RANKS - 1)]
    counts = [Count(*pair, 64 * small, messages=small, operation=0) for pair in ring]
    counts += [Count(*pair, 1 << 20, operation=1) for pair in ring]
    latency = simulate(tmp_path, counts, interval_ns=10_000).latency
    assert latency.is_settled
    assert min(messages for _, messages, _ in latency.by_client) >= QUICK.messages
    assert (latency.most > (1 << 20) * 8 / 100) == (small < QUICK.messages)


LOCAL = Count(RANKS - 2, RANKS - 1, 64 * 500, messages=500)
STAYS = (LOCAL.rank, 0, 2_000_000, LOCAL.peer, LOCAL.peer, LOCAL.bytes, LOCAL.messages)


@pytest.mark.parametrize("interval_ns", [0.0, 10_000.0])
def test_messages_that_stay_on_a_host_have_no_latency(tmp_path: Path, interval_ns: float) -> None:
    line = make_line([(0, 0, 2_000_000, 1, 1, 6400, 100), STAYS])
    latency = simulate(tmp_path, [Count(0, 1, 6400, messages=100), LOCAL], line, interval_ns).latency
    assert latency.is_settled
    assert latency.least > 100
    assert len(latency.by_client) == 1
    assert sum(messages for *_, messages in latency.histogram) == latency.messages
    assert latency.messages == 200 or interval_ns


@pytest.mark.parametrize("interval_ns", [0.0, 10_000.0])
def test_a_job_that_stays_on_its_hosts_has_no_mean(tmp_path: Path, interval_ns: float) -> None:
    line = make_line([STAYS])
    latency = simulate(tmp_path, [LOCAL], line, interval_ns).latency
    assert (latency.is_settled, latency.messages) == (False, 0)
    assert np.isnan(latency.mean)
    assert latency.note == "all messages of the job stay on their hosts"


def test_what_is_kept_of_messages_that_stay_on_a_host(network: SimulatedNetwork) -> None:
    """For messages within a host, the results have bytes but no latencies."""
    steps = [Step(0, 1000), Step(5, 70)]
    watch = Watch(Simulation(network, [Job("one", limit=20)], [Client(0, 0, steps), Client(1, 0, [Step(1, 9)])]))
    watch.run(1 << 60)
    messages, mean = watch.by_client()
    assert messages.tolist() == [10, 0]
    assert np.isnan(mean[1])
    assert watch.histogram(0).sum() == watch.over_time(0).messages.sum() == 10
    assert not watch.histogram(0)[: bin_values(np.array([100.0])).argmax()].any()
    flows = watch.flows()
    assert {(int(c), int(h)): int(b) for c, h, b in zip(flows.client, flows.host, flows.bytes, strict=True)} == {
        (0, 0): 10_000,
        (0, 5): 700,
        (1, 1): 180,
    }
