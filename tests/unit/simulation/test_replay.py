# SPDX-License-Identifier: Apache-2.0
"""A simulated job that replays a recorded run has the run's partners, bytes and times."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.errors import InconsistentError
from ibprof.profile.profile_data import Direction, Intervals, Profile
from ibprof_lab.lab_choices import JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.packet_engine import Simulation, Stop
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork, index_network
from ibprof_lab.simulation.study.cell import Cell, Setting, run_cell
from ibprof_lab.simulation.study.result_tables import list_results, list_whole_times
from ibprof_lab.simulation.workload import recorded_messages
from ibprof_lab.simulation.workload.host_assignment import assign_hosts, make_clients
from ibprof_lab.simulation.workload.recorded_messages import lay_out_messages
from ibprof_lab.simulation.workload.workloads import Role, Workload
from ibprof_testing.samples.fabrics import read_subnet
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

COUNTS = [
    Count(0, 1, 1003, messages=10),
    Count(0, 2, 4096, messages=1, operation=0),
    Count(1, 0, 7_000_000, messages=7),
    Count(2, 3, 64, messages=2),  # both ranks are on one host
    Count(3, 0, 50, messages=50),
]
RANKS = [make_rank(0, 0), make_rank(1, 1), make_rank(2, 2), make_rank(3, 2)]
HOSTS = [make_host(name) for name in ("a", "b", "c")]


def make_line(rows: list[tuple[int, int, int, int, int, int, int]]) -> Intervals:
    """Return intervals from rows: rank, begin, end, first peer, last peer, bytes, messages."""
    columns = np.array(rows, np.int64).T
    types = ("i4", "u8", "u8", "u4", "u4", "u8", "u8")
    return Intervals(*(column.astype(kind) for column, kind in zip(columns, types, strict=True)))


LINE = make_line(
    [
        (0, 1_000_000, 1_100_000, 1, 2, 303, 3),
        (0, 5_000_000, 5_200_000, 1, 2, 4796, 8),
        (1, 2_000_000, 3_000_000, 0, 0, 7_000_000, 7),
        (2, 1_000_000, 9_000_000, 0, 3, 64, 2),
        (3, 4_000_000, 4_100_000, 0, 3, 50, 50),
    ]
)


@pytest.fixture(scope="module")
def network() -> SimulatedNetwork:
    return index_network(read_subnet("xgft:2:4,4:1,4@100"), Hardware())


def make_run(line: Intervals | None = None) -> Profile:
    run = make_profile(COUNTS, RANKS, HOSTS)
    return replace(run, intervals=line) if line else run


def sent(messages: recorded_messages.Recorded) -> Counter[tuple[int, int]]:
    total: Counter[tuple[int, int]] = Counter()
    for source, destination, size in zip(messages.source, messages.destination, messages.bytes, strict=True):
        total[int(source), int(destination)] += int(size)
    return total


@pytest.mark.parametrize("with_times", [False, True])
def test_partners_bytes_and_messages_are_those_of_the_run(with_times: bool) -> None:
    messages = lay_out_messages(make_run(LINE), "run", with_times)
    assert sent(messages) == {(count.rank, count.peer): count.bytes for count in COUNTS}
    pairs = Counter(zip(messages.source.tolist(), messages.destination.tolist(), strict=True))
    assert pairs == {(count.rank, count.peer): count.messages for count in COUNTS}
    assert messages.host.tolist() == [0, 1, 2, 2]
    assert messages.one_of == 1


def test_a_run_on_one_host_is_given_a_host_a_rank() -> None:
    run = make_profile(COUNTS, [make_rank(rank, 0) for rank in range(4)], HOSTS[:1])
    messages = lay_out_messages(run, "run", with_times=False)
    assert messages.host.tolist() == [0, 1, 2, 3]
    assert messages.was_on_one_host
    assert not lay_out_messages(make_run(), "run", with_times=False).was_on_one_host


def test_messages_begin_within_their_intervals() -> None:
    messages = lay_out_messages(make_run(LINE), "run", with_times=True)
    begin, source, destination = messages.begin_ns + 1_000_000, messages.source, messages.destination
    of_first = begin[(source == 0) & (destination == 1)]
    # The intervals' bytes show that 3 messages of 101 bytes were in the first interval, and the large message later.
    assert ((of_first >= 1_000_000) & (of_first <= 1_100_000)).sum() == 3
    assert ((of_first >= 5_000_000) & (of_first <= 5_200_000)).sum() == 7
    (alone,) = begin[(source == 0) & (destination == 2)]
    assert 5_000_000 <= alone <= 5_200_000
    assert np.diff(begin[source == 1]) == pytest.approx(np.full(6, 1_000_000 / 7))
    assert messages.duration_ns == 8_000_000


def test_a_long_run_is_thinned_out_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_messages, "MESSAGES_MOST", 10)
    messages = lay_out_messages(make_run(), "run", with_times=False)
    assert messages.one_of == 7
    assert len(messages.bytes) == 10
    pairs = Counter(zip(messages.source.tolist(), messages.destination.tolist(), strict=True))
    assert pairs == {(0, 1): 2, (1, 0): 1, (3, 0): 7}
    with pytest.raises(InconsistentError, match="too many"):
        lay_out_messages(make_run(LINE), "run", with_times=True)


def test_large_messages_begin_in_the_intervals_that_have_their_bytes() -> None:
    """Rank 0 sends small messages, then small messages and messages of 4 KiB, then large messages."""
    counts = [
        Count(0, 1, 400 * 64, messages=400, operation=0),
        Count(0, 1, 20 << 20, messages=20, operation=1),
        Count(0, 1, 40 << 12, messages=40, operation=2),
    ]
    phases = [(100, 64 * 100), (100, 64 * 100), (240, 64 * 200 + (40 << 12)), (10, 10 << 20), (10, 10 << 20)]
    line = make_line([(0, 10 + at, 11 + at, 1, 1, size, messages) for at, (messages, size) in enumerate(phases)])
    run = replace(make_profile(counts, RANKS, HOSTS), intervals=line)
    messages = lay_out_messages(run, "run", with_times=True)
    at = messages.begin_ns.astype(int)
    assert np.bincount(at).tolist() == [each for each, _ in phases]
    assert np.bincount(at, messages.bytes).tolist() == [size for _, size in phases]


def test_what_was_fetched_is_in_the_time_line_of_who_fetched_it() -> None:
    counts = [
        Count(0, 1, 500, messages=5),
        Count(1, 0, 700, messages=7, direction=Direction.FETCHED),
    ]
    line = make_line([(0, 10, 20, 1, 1, 500, 5), (1, 30, 40, 0, 0, 700, 7)])
    run = replace(make_profile(counts, RANKS, HOSTS), intervals=line)
    messages = lay_out_messages(run, "run", with_times=True)
    assert set(messages.source.tolist()) == {0}
    assert (messages.begin_ns < 10).sum() == 5
    assert (messages.begin_ns > 20).sum() == 7


def test_empty_messages_are_messages() -> None:
    run = make_profile([Count(0, 1, 0, messages=3), Count(1, 0, 64)], RANKS, HOSTS)
    assert sorted(lay_out_messages(run, "run", with_times=False).bytes.tolist()) == [0, 0, 0, 64]


def test_what_cannot_be_replayed() -> None:
    with pytest.raises(InconsistentError, match="has no time line: record with IBPROF_INTERVAL"):
        lay_out_messages(make_run(), "run", with_times=True)
    with pytest.raises(InconsistentError, match="no rank sent anything"):
        lay_out_messages(make_profile([], RANKS, HOSTS), "run", with_times=False)


def test_a_slow_network_has_long_ticks(tmp_path: Path) -> None:
    """All clients begin within a single tick."""
    write_archive(make_run(LINE), tmp_path / "profile.otf2")
    slow = index_network(read_subnet("xgft:2:4,4:1,4@0.02"), Hardware())
    assert slow.tick_ns > 1000
    assert len(simulate(slow, tmp_path / "profile.otf2", 1))


def simulate(network: SimulatedNetwork, path: Path, interval_ns: float, share: float = 1) -> np.ndarray:
    workload = Workload("run", Role.PROFILE, 0, interval_ns=interval_ns, jitter=0, share=share, profile=str(path))
    random = np.random.default_rng(1)
    assigned = assign_hosts(network, [workload], 0, ServerPlacement.SPREAD, JobPlacement.RANDOM_NODE, random)
    assert len(assigned.jobs[0]) == 3
    jobs, clients = make_clients(network, [workload], assigned, ["run"], seed=1)
    simulation = Simulation(network, jobs, clients)
    samples = simulation.run(network.ticks(7_990_000)).copy()
    assert simulation.state.stop == Stop.TIME
    return samples


def test_a_profile_runs_by_its_time_line(network: SimulatedNetwork, tmp_path: Path) -> None:
    """Each message is sent once, at the recorded time, or later if the previous message delays it."""
    write_archive(make_run(LINE), tmp_path / "profile.otf2")
    samples = simulate(network, tmp_path / "profile.otf2", 0)
    assert sorted(samples["bytes"].tolist()) == sorted(
        [101] * 3 + [100] * 7 + [4096] + [1_000_000] * 7 + [32] * 2 + [1] * 50
    )
    start_ms = samples["start"] * network.tick_ns / 1e6
    assert start_ms[samples["bytes"] == 1_000_000] == pytest.approx(1 + (np.arange(7) + 0.5) / 7, abs=1e-3)


def test_ranks_of_a_time_line_do_not_drift_apart(network: SimulatedNetwork, tmp_path: Path) -> None:
    """Even with jitter, each message begins at the same time within the tenth round as within the first."""
    apart = [Count(rank, 3 - rank, 4000, messages=4) for rank in range(4)]
    line = make_line([(rank, 1_000_000, 9_000_000, 0, 3, 4000, 4) for rank in range(4)])
    ranks = [make_rank(rank, rank) for rank in range(4)]
    run = replace(make_profile(apart, ranks, [make_host(name) for name in "abcd"]), intervals=line)
    write_archive(run, tmp_path / "profile.otf2")
    workload = Workload("run", Role.PROFILE, 0, jitter=0.5, share=1, profile=str(tmp_path / "profile.otf2"))
    assigned = assign_hosts(
        network, [workload], 0, ServerPlacement.SPREAD, JobPlacement.RANDOM_NODE, np.random.default_rng(1)
    )
    simulation = Simulation(network, *make_clients(network, [workload], assigned, ["run"], seed=1))
    samples = simulation.run(network.ticks(80_000_000))
    for client in range(4):
        start = samples["start"][samples["client"] == client].reshape(-1, 4).astype(np.int64)
        assert len(start) == 10
        assert (np.diff(start, axis=0) == network.ticks(8_000_000)).all()


def test_what_was_late_is_not_so_in_the_next_round(network: SimulatedNetwork, tmp_path: Path) -> None:
    """Three ranks send more in 0.3 ms than a link can carry. The next round still begins on time."""
    counts = [Count(rank, 0, 10 << 20, messages=10) for rank in (1, 2, 3)]
    rows = [(rank, 1_000_000 * rank, 1_000_000 * rank + 300_000, 0, 0, 10 << 20, 10) for rank in (1, 2, 3)]
    line = make_line([*rows, (0, 1_000_000, 9_000_000, 1, 1, 64, 1)])
    ranks = [make_rank(rank, rank) for rank in range(4)]
    run = replace(make_profile([*counts, Count(0, 1, 64)], ranks, [make_host(name) for name in "abcd"]), intervals=line)
    write_archive(run, tmp_path / "profile.otf2")
    workload = Workload("run", Role.PROFILE, 0, share=1, profile=str(tmp_path / "profile.otf2"))
    assigned = assign_hosts(
        network, [workload], 0, ServerPlacement.SPREAD, JobPlacement.RANDOM_NODE, np.random.default_rng(1)
    )
    simulation = Simulation(network, *make_clients(network, [workload], assigned, ["run"], seed=1))
    samples = simulation.run(network.ticks(5 * 8_000_000))
    for client in (1, 2, 3):
        own = samples[samples["client"] == client]
        start_ms = own["start"].reshape(5, 10) * network.tick_ns / 1e6
        assert start_ms[:, 0] == pytest.approx(client - 1 + 0.015 + 8 * np.arange(5), abs=1e-3)
        assert (start_ms[:, -1] - start_ms[:, 0] > 0.5).all()  # in the recorded run, these messages took 0.27 ms


def test_a_profile_runs_at_an_interval(network: SimulatedNetwork, tmp_path: Path) -> None:
    write_archive(make_run(), tmp_path / "profile.otf2")
    samples = simulate(network, tmp_path / "profile.otf2", 100_000)
    for client in range(4):
        own = samples[samples["client"] == client]
        gaps = own["start"][1:] - (own["start"] + own["ticks"])[:-1]
        assert gaps.tolist() == [network.ticks(100_000)] * len(gaps)
        assert len(gaps) > 20
    # The job has as many hosts as the recorded run, whatever `share` is.
    assert np.array_equal(simulate(network, tmp_path / "profile.otf2", 100_000, share=1 / 16), samples)


def test_a_run_has_no_one_size_in_tables(tmp_path: Path) -> None:
    write_archive(make_run(), tmp_path / "profile.otf2")
    path = str(tmp_path / "profile.otf2")
    workload = Workload("run", Role.PROFILE, 1, interval_ns=1000, share=1, limit=20, profile=path)
    cell = Cell(Setting("xgft:2:4,4:1,4@100", servers=0), (workload,), ("run",), "run", 1)
    outcomes = {cell.key: run_cell(cell)}
    assert [row["bytes"] for row in list_whole_times([cell], outcomes)] == [None] * 4
    (row,) = list_results([cell], outcomes)
    assert (row["run_bytes"], row["run_limit"]) == (None, 20)
