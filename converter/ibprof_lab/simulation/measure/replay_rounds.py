# SPDX-License-Identifier: Apache-2.0
"""Measure over whole replays of a trace, for the replayed job or for one running alongside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.simulation.engine.packet_engine import SAMPLE, Simulation, Stop
from ibprof_lab.simulation.measure.latency_statistics import BATCHES, half_interval
from ibprof_lab.simulation.measure.message_latency import (
    CHUNKS,
    NO_END,
    NOTHING,
    ON_HOSTS,
    Effort,
    Latency,
    MeanOperation,
    describe,
    find_first_chunk,
    leave_hosts,
    list_limits,
    note_all_sent,
    note_deadlock,
)
from ibprof_lab.simulation.measure.run_observer import Watch, count_turns

_ROUNDS = 10
"""Of a recorded run that are measured at most, however much they differ."""


class Rounds:
    """Measures whole rounds of a recorded run: its own messages, or those of another job meanwhile.

    A message of the run belongs to the round that it is of, however late it starts; another job's to that in which it
    starts.
    """

    def __init__(
        self,
        simulation: Simulation,
        clients: npt.NDArray[np.bool_],
        effort: Effort,
        watch: Watch | None,
        whole: bool,
        round_ticks: int,
    ) -> None:
        job = simulation.jobs[int(simulation.job_of_client[clients][0])]
        self._simulation, self._clients, self._effort, self._whole = simulation, clients, effort, whole
        self._run = watch.run if watch else simulation.run
        self._round, self._chunk = round_ticks, find_first_chunk(simulation)
        self._ends, self._limit = job.limit > 0, list_limits(simulation)
        self._own_round = 0 if job.limit else job.round
        repeats = np.array([each.round > 0 for each in simulation.jobs])[simulation.job_of_client]
        self._list = np.where(repeats, simulation.steps_of_client, NO_END).astype(np.uint64)
        self._operations = MeanOperation(simulation, clients)
        self._taken: list[npt.NDArray[Any]] = []
        self._due: list[npt.NDArray[np.int64]] = []
        self._done = np.zeros(len(clients), np.int64)
        self._first = np.zeros(len(clients), np.uint64)
        self._begin = 0

    def measure(self) -> Latency:
        """Run until enough rounds are known."""
        while not self._has_warmed_up():
            # What ends may have no round left to wait for.
            self._begin = self._simulation.state.now + self._chunk if self._ends else self._begin + self._round
            came = self._run_to(self._begin)
            if not came:
                return self._judge(0, came)
        self._first = self._simulation.look_at_clients().steps
        rounds = 2
        while True:
            end = self._begin + rounds * self._round
            came = self._run_to(end) and self._complete(end)
            latency = self._judge(self._count_rounds(end), came)
            if latency.note:
                return latency
            rounds += 1 + rounds // BATCHES

    def _has_warmed_up(self) -> bool:
        """Return whether the background's requests have passed, of a recorded run one whole round at most."""
        steps, effort = self._simulation.look_at_clients().steps, self._effort
        left_out = 0 if self._ends else effort.left_out(0)
        if self._own_round:
            left_out = 0 if effort.precision else effort.warm_up
        passed = np.minimum(np.minimum(self._limit, self._list), effort.background)
        return bool((steps >= passed)[~self._clients].all() and steps[self._clients].mean() >= left_out)

    def _is_over(self) -> bool:
        state = self._simulation.state
        return (
            state.stop in {Stop.DONE, Stop.DEADLOCK} or state.packet_hops >= self._effort.hops or self._has_sent_all()
        )

    def _has_sent_all(self) -> bool:
        return bool((self._simulation.look_at_clients().steps >= self._limit)[self._clients].all())

    def _run_on(self, until: int) -> None:
        """Go on for a part of the way, so that hops are looked at in between."""
        now = self._simulation.state.now
        if now > CHUNKS * self._chunk and self._chunk * CHUNKS < self._round:
            self._chunk *= 2
        samples = self._run(min(now + self._chunk, until), self._effort.hops)
        self._operations.note(samples)
        due = self._find_due(samples)
        chosen = leave_hosts(self._simulation, self._clients, samples) & (due >= self._begin)
        self._taken.append(samples[chosen])
        self._due.append(due[chosen])

    def _find_due(self, samples: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the tick that decides the round of a message: its start, or the start of the run's list with it."""
        if not self._own_round:
            return samples["start"].astype(np.int64)
        client = samples["client"]
        lists = count_turns(client, self._done) // self._simulation.steps_of_client[client]
        due: npt.NDArray[np.int64] = lists * self._own_round
        return due

    def _count_rounds(self, end: int) -> int:
        """Return the number of whole rounds up to a tick."""
        upto = self._simulation.state.now
        if self._own_round:
            lists = (self._simulation.look_at_clients().steps // self._list)[self._clients]
            upto = int(lists.min()) * self._own_round
        return max(min(upto, end) - self._begin, 0) // self._round

    def _run_to(self, tick: int) -> bool:
        """Return whether it comes to a tick."""
        while self._simulation.state.now < tick:
            if self._is_over():
                return False
            self._run_on(tick)
        return True

    def _complete(self, end: int) -> bool:
        """Return whether it goes on until the messages of the rounds up to a tick are complete, for a round at most."""
        progress, until = self._simulation.look_at_clients(), end + self._round
        wanted = (progress.steps + progress.busy)[self._clients]
        if self._own_round:
            wanted = self._list[self._clients] * np.uint64(-(-end // self._own_round))
        while self._simulation.state.now < until:
            if (self._simulation.look_at_clients().steps[self._clients] >= wanted).all():
                break
            if self._is_over():
                return False
            self._run_on(until)
        return True

    def _judge(self, rounds: int, came: bool) -> Latency:
        """Return the latency over a number of whole rounds, without a note where they are too few."""
        simulation, effort = self._simulation, self._effort
        sent_all = not came and (self._has_sent_all() or simulation.state.stop == Stop.DONE)
        latency = self._operations.add_to(self._summarise(rounds, sent_all))
        sent = (simulation.look_at_clients().steps - self._first)[self._clients]
        stay = not latency.messages and bool(sent.any())
        if simulation.state.stop == Stop.DEADLOCK:
            return note_deadlock(latency, simulation)
        if sent_all:
            return note_all_sent(latency, effort, stay)
        if not came:
            number = simulation.state.now // self._round + 1
            told = f"in round {number} of the recorded run: state an interval for it"
            return replace(latency, is_settled=False, note=f"given up after {effort.hops:g} packet hops, {told}")
        if rounds < 2 or not self._is_enough(latency, sent, rounds):
            return replace(latency, note="")
        if stay:
            return replace(latency, note=ON_HOSTS)
        return replace(latency, is_settled=True, note=f"{rounds} whole rounds of the recorded run")

    def _is_enough(self, latency: Latency, sent: npt.NDArray[np.uint64], rounds: int) -> bool:
        if not self._operations.are_enough(latency):
            return False
        precision = self._effort.precision
        narrow = 0 < precision * latency.mean >= latency.half and not self._whole
        narrow = narrow and self._operations.is_narrow(latency, precision)
        if self._own_round:
            return narrow or rounds >= _ROUNDS or not latency.messages or sent.mean() >= self._effort.messages
        return (narrow and latency.messages >= 4 * len(sent)) or bool((sent >= self._effort.messages).all())

    def _summarise(self, rounds: int, all_of: bool) -> Latency:
        """Summarise the messages of whole rounds, or all, of a job that has ended."""
        samples = np.concatenate([np.zeros(0, SAMPLE), *self._taken])
        number = (np.concatenate([np.zeros(0, np.int64), *self._due]) - self._begin) // self._round
        inside = number < rounds
        if not all_of:
            samples, number, inside = samples[inside], number[inside], inside[inside]
        if not len(samples):
            return NOTHING
        to_ns = self._simulation.network.to_ns(1)
        values = samples["ticks"] * to_ns
        # Rounds that are shorter than what makes means independent are taken together.
        batch = number[inside] * min(rounds, BATCHES) // max(rounds, 1)
        messages, total = np.bincount(batch), np.bincount(batch, values[inside])
        means = total[messages > 0] / messages[messages > 0]
        latency = describe(self._simulation, samples, self._begin * to_ns, half_interval(means))
        return latency if all_of else replace(latency, measured_ns=rounds * self._round * to_ns)
