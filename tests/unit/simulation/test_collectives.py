# SPDX-License-Identifier: Apache-2.0
"""The messages of collectives bring the right data to each rank, and the engine sends them in the right order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from ibprof_lab.simulation.engine.packet_engine import Client, Job, Simulation, Step, Stop
from ibprof_lab.simulation.engine.simulated_network import Hardware, index_network
from ibprof_lab.simulation.measure.run_observer import Operations
from ibprof_lab.simulation.workload.host_assignment import HostAssignment, make_clients
from ibprof_lab.simulation.workload.workloads import (
    SCHEDULES,
    CollectivePart,
    Role,
    Schedule,
    Workload,
    all_gather,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
)
from ibprof_testing.samples.fabrics import read_subnet

SIZES = range(2, 18)
Message = tuple[int, int, int]
"""(sender, receiver, receiver's slot for the message)"""


def play(parts: list[CollectivePart]) -> Iterator[Message]:
    """Yield a collective's messages in a valid order. Each step waits for messages in its rank's slots below `awaits`.

    Fail if no rank can continue.
    """
    came: list[set[int]] = [set() for _ in parts]
    position = [0] * len(parts)
    while any(at < len(part.steps) for at, part in zip(position, parts, strict=True)):
        before = sum(position)
        for rank, part in enumerate(parts):
            if position[rank] == len(part.steps):
                continue
            step = part.steps[position[rank]]
            if set(range(step["awaits"])) <= came[rank]:
                position[rank] += 1
                to, slot = int(step["client"]), int(step["slot"])
                assert slot not in came[to]
                came[to].add(slot)
                yield rank, to, slot
        assert sum(position) > before, "nobody can go on"
    assert [sorted(each) for each in came] == [list(range(part.arrivals)) for part in parts]


@pytest.mark.parametrize("ranks", SIZES)
@pytest.mark.parametrize("schedule", [all_reduce, barrier])
def test_everyone_hears_of_everyone(schedule: Schedule, ranks: int) -> None:
    """In a reduction or barrier, each rank's result depends on the data of every other rank."""
    heard = [{rank} for rank in range(ranks)]
    for sender, receiver, _ in play([schedule(rank, ranks, 8) for rank in range(ranks)]):
        heard[receiver] |= heard[sender]
    assert heard == [set(range(ranks))] * ranks


@pytest.mark.parametrize("ranks", SIZES)
def test_a_broadcast_reaches_everyone_once_from_those_who_have_it(ranks: int) -> None:
    has = {0}
    for sender, receiver, _ in play([broadcast(rank, ranks, 8) for rank in range(ranks)]):
        assert sender in has
        assert receiver not in has
        has.add(receiver)
    assert has == set(range(ranks))


@pytest.mark.parametrize("ranks", SIZES)
def test_an_allgather_hands_on_each_share(ranks: int) -> None:
    has = [[rank] for rank in range(ranks)]
    for sender, receiver, slot in play([all_gather(rank, ranks, 8) for rank in range(ranks)]):
        has[receiver].append(has[sender][slot])
    assert all(sorted(each) == list(range(ranks)) for each in has)


@pytest.mark.parametrize("ranks", SIZES)
def test_an_all_to_all_joins_every_pair(ranks: int) -> None:
    pairs = Counter((sender, to) for sender, to, _ in play([all_to_all(rank, ranks, 8) for rank in range(ranks)]))
    assert pairs == Counter((a, b) for a in range(ranks) for b in range(ranks) if a != b)


@pytest.mark.parametrize("role", SCHEDULES)
@pytest.mark.parametrize("ranks", [2, 7, 16])
def test_the_engine_keeps_to_the_order(role: Role, ranks: int) -> None:
    """Two rounds end.

    A message begins when all awaited messages have arrived. A round begins after the previous round.
    """
    network = index_network(read_subnet("xgft:2:4,4:1,4@100"), Hardware())
    workload = Workload("job", role, 3000, interval_ns=2000, jitter=0)
    assigned = HostAssignment(np.zeros(0, np.int64), (np.random.default_rng(3).permutation(16)[:ranks],))
    jobs, clients = make_clients(network, [workload], assigned, ["job"], seed=1)
    simulation = Simulation(network, jobs, clients)
    samples = []
    while simulation.look_at_clients().steps.min() < 2 * max(len(client.steps) for client in clients):
        samples.append(simulation.run(simulation.state.now + 10_000).copy())
        assert simulation.state.stop == Stop.TIME
    done = np.concatenate(samples)
    came: dict[int, list[tuple[int, int]]] = {client: [] for client in range(len(clients))}
    begun: dict[int, list[int]] = {client: [] for client in range(len(clients))}
    position = [0] * len(clients)
    for sample in done:
        number = int(sample["client"])
        step = np.asarray(clients[number].steps)[position[number] % len(clients[number].steps)]
        position[number] += 1
        begun[number].append(int(sample["start"]))
        if int(step["client"]) in came:
            came[int(step["client"])].append((int(step["slot"]), int(sample["start"] + sample["ticks"])))
    for number, client in enumerate(clients):
        arrived = {slot: [at for each, at in came[number] if each == slot] for slot in range(client.arrivals)}
        for turn, start in enumerate(begun[number]):
            turn_of_round = turn // len(client.steps)
            awaits = np.asarray(client.steps)["awaits"][turn % len(client.steps)]
            assert all(arrived[slot][turn_of_round] < start for slot in range(awaits))
            if turn_of_round and turn % len(client.steps) == 0:
                ended = max((arrived[slot][turn_of_round - 1] for slot in range(client.arrivals)), default=0)
                assert start >= ended + network.ticks(2000)


@pytest.mark.parametrize("jitter", [0, 0.5])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_ranks_of_a_broadcast_do_not_lag_behind_each_other(seed: int, jitter: float) -> None:
    """With and without jitter, an operation takes as long as its deepest branch. The root waits for no messages."""
    network = index_network(read_subnet("xgft:1:8:1@100"), Hardware())
    workload = Workload("job", Role.BROADCAST, 10_000, interval_ns=500_000, jitter=jitter)
    jobs, clients = make_clients(
        network, [workload], HostAssignment(np.zeros(0, np.int64), (np.arange(8),)), ["job"], seed
    )
    simulation = Simulation(network, jobs, clients)
    _, ticks = Operations(simulation, 0).note(simulation.run(network.ticks(10_000_000)))
    alone = Simulation(network, [Job("one", limit=1)], [Client(0, 0, [Step(1, 10_000)])]).run()["ticks"]
    assert len(ticks) >= 15
    assert set(ticks.tolist()) == {3 * int(alone[0]) + 2}


def test_a_broadcast_to_one_rank_is_an_operation() -> None:
    network = index_network(read_subnet("xgft:1:8:1@100"), Hardware())
    workload = Workload("job", Role.BROADCAST, 10_000, interval_ns=5000)
    simulation = Simulation(
        network, *make_clients(network, [workload], HostAssignment(np.zeros(0, np.int64), (np.arange(2),)), ["job"], 1)
    )
    assert simulation.is_collective.tolist() == [True]
    samples = simulation.run(100_000)
    assert Operations(simulation, 0).note(samples)[1].tolist() == samples["ticks"].tolist()


@pytest.mark.parametrize("jitter", [0, 0.5])
@pytest.mark.parametrize("at_a_time", [1_000, 33_333, 10_000_000])
def test_an_operation_lasts_from_its_first_start_to_its_last_arrival(at_a_time: int, jitter: float) -> None:
    """A barrier of 16 ranks takes 4 rounds, each a message's latency and a tick, for any order of arrivals.

    All ranks have the same random time between operations, so that no rank is late.
    """
    network = index_network(read_subnet("xgft:1:16:1@100"), Hardware())
    workload = Workload("job", Role.BARRIER, 1, interval_ns=2000, jitter=jitter)
    assigned = HostAssignment(np.zeros(0, np.int64), (np.arange(16),))
    jobs, clients = make_clients(network, [workload], assigned, ["job"], seed=1)
    simulation = Simulation(network, jobs, clients)
    operations, found, messages = Operations(simulation, 0), [], set()
    while simulation.state.now < 200_000:
        samples = simulation.run(simulation.state.now + at_a_time)
        messages |= set(samples["ticks"].tolist())
        found.append(np.stack(operations.note(samples)))
    begin, ticks = np.concatenate(found, axis=1)
    (message,) = messages
    assert len(begin) > 20
    assert (ticks == 4 * message + 3).all()
    between = np.diff(begin) - (4 * message + 3)
    usual = network.ticks(2000)
    assert ((between >= (1 - jitter) * usual) & (between <= (1 + jitter) * usual)).all()
    assert len(set(between.tolist())) > 10 if jitter else set(between.tolist()) == {usual}
