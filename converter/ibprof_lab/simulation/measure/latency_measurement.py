# SPDX-License-Identifier: Apache-2.0
"""Measurement of a mean latency: the length of the simulation, the warm-up, and the uncertainty of the mean.

A recorded run that follows its time line is measured over whole replays (rounds), so that all phases of the run count.
Messages within a host are left out, since they do not use the network.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.simulation.engine.packet_engine import SAMPLE, Simulation, Stop
from ibprof_lab.simulation.measure.message_latency import (
    BATCHES,
    CHUNKS,
    NO_END,
    NOTHING,
    ON_HOSTS,
    Effort,
    Latency,
    MeanOperation,
    SteadyState,
    average_batches,
    average_parts,
    describe,
    find_drift,
    find_first_chunk,
    find_warm_up,
    half_interval,
    leave_hosts,
    list_limits,
    note_all_sent,
    note_deadlock,
)
from ibprof_lab.simulation.measure.run_observer import Watch, count_turns

_ROUNDS = 10
"""The measurement of a recorded run ends after this many rounds, even if the interval of the mean is still wide."""


def measure(
    simulation: Simulation,
    clients: npt.NDArray[np.bool_],
    effort: Effort,
    watch: Watch | None = None,
    whole: bool = False,
) -> Latency:
    """Run a simulation until the mean latency of one job's messages has the required precision.

    Args:
        simulation: simulation that has not run yet.
        clients: bool [client], True for clients of the measured job. The job's steps must be sampled.
        effort: required precision, and limits.
        watch: observer that runs the simulation and records all jobs; None to run without observer.
        whole: True to measure all messages, even if the mean has the required precision earlier.
    """
    round_ticks = max(job.round for job in simulation.jobs)
    if round_ticks:
        latency = Rounds(simulation, clients, effort, watch, whole, round_ticks).measure()
    else:
        latency = _measure(simulation, clients, effort, watch, whole)
    return _check_other_jobs(latency, simulation, clients)


def _check_other_jobs(latency: Latency, simulation: Simulation, clients: npt.NDArray[np.bool_]) -> Latency:
    """Return the latency, marked as not settled if another job ended earlier than the measurement."""
    own = int(simulation.job_of_client[clients][0])
    progress, until = simulation.look_at_clients(), latency.left_out_ns + latency.measured_ns
    for number, job in enumerate(simulation.jobs):
        of_job = simulation.job_of_client == number
        if number == own or simulation.jobs[own].limit or not job.limit or not of_job.any():
            continue
        ended_ns = simulation.network.to_ns(float(progress.last[of_job].max()))
        if (progress.steps[of_job] >= job.limit).all() and ended_ns < until:
            times = f"after {ended_ns / 1e3:.0f} µs, and the measurement needed {until / 1e3:.0f} µs"
            told = f"job {job.name} had sent all its messages {times}"
            return replace(latency, is_settled=False, note=told)
    return latency


def _measure(
    simulation: Simulation, clients: npt.NDArray[np.bool_], effort: Effort, watch: Watch | None, whole: bool
) -> Latency:
    run = watch.run if watch else simulation.run
    taken: list[npt.NDArray[Any]] = []
    limit = list_limits(simulation)
    left_out = effort.left_out(simulation.jobs[int(simulation.job_of_client[clients][0])].limit)
    looked_at = effort.warm_up - left_out
    passed = np.where(clients, 0, np.minimum(limit, effort.background))
    begun, first, begin = not (left_out or passed.any()), np.zeros(len(clients), np.uint64), 0.0
    chunk = find_first_chunk(simulation)
    operations = MeanOperation(simulation, clients)
    steady = SteadyState(0.0 if whole else effort.steady, int(clients.sum()), effort.messages)
    while True:
        samples = run(simulation.state.now + chunk, effort.hops)
        operations.note(samples)
        state = simulation.state
        steps = simulation.look_at_clients().steps
        if begun:
            taken.append(samples[leave_hosts(simulation, clients, samples)])
        else:
            begun = bool((steps >= passed).all() and steps[clients].mean() >= left_out)
            first, begin = steps, simulation.network.to_ns(state.now)
        enough = begun and not whole and sum(len(each) for each in taken) >= 4 * clients.sum()
        ended = state.stop in {Stop.DONE, Stop.DEADLOCK}
        wanted = np.minimum(limit, first + looked_at + effort.messages)
        all_of = begun and bool((steps >= wanted)[clients].all())
        ended = ended or state.packet_hops >= effort.hops
        if enough or all_of or ended:
            samples = np.concatenate(taken) if taken else samples[:0]
            latency = operations.add_to(
                _summarise(simulation, samples, int(clients.sum()), effort.precision, looked_at, begin, steady)
            )
            precision = max(effort.precision, effort.steady)
            narrow = latency.is_settled and not whole and operations.is_narrow(latency, precision)
            settled = (narrow or all_of) and operations.are_enough(latency)
            if ended or settled:
                stay = begun and not len(samples) and bool((steps > first)[clients].any())
                return _judge(latency, simulation, all_of, effort, stay)
        if state.stop == Stop.TIME and state.now > CHUNKS * chunk:
            chunk *= 2


def _summarise(
    simulation: Simulation,
    samples: npt.NDArray[Any],
    clients: int,
    precision: float,
    looked_at: int,
    begin: float,
    steady: SteadyState,
) -> Latency:
    to_ns = simulation.network.to_ns(1)
    taken = samples["ticks"] * to_ns
    if not len(taken):
        return NOTHING
    # Search for the warm-up in means over N successive messages; N is the number of clients.
    points = max(len(taken) // max(clients, 1), 1)
    series = average_parts(taken, points)
    cut = min(find_warm_up(series) if precision else points, looked_at)
    kept = samples[sum(len(part) for part in np.array_split(taken, points)[:cut]) :]
    if not len(kept):
        return NOTHING
    begin = float((kept["start"][0] + kept["ticks"][0]) * to_ns) if cut else begin
    latency = describe(simulation, kept, begin, half_interval(average_batches(kept["ticks"] * to_ns, 2 * BATCHES)))
    if steady.is_reached(kept["ticks"]):
        return replace(latency, is_settled=True, note="steady state: the remaining messages were not simulated")
    is_narrow = latency.half <= precision * latency.mean
    drifts = find_drift(latency.over_time).exceeds(precision)
    return replace(
        latency, is_settled=points - cut >= 2 and is_narrow and not drifts, note="the mean's interval is narrow enough"
    )


def _judge(latency: Latency, simulation: Simulation, all_of: bool, effort: Effort, stay: bool) -> Latency:
    if simulation.state.stop == Stop.DEADLOCK:
        return note_deadlock(latency, simulation)
    if latency.is_settled:
        return latency
    if all_of and latency.messages:
        drift = find_drift(latency.over_time)
        if effort.precision and drift.exceeds(effort.precision):
            told = f"{100 * drift.change:+.0f}% ± {100 * drift.half:.0f} in the time that is measured"
            note = f"no steady state: the mean still changes, {told}"
            return replace(latency, is_settled=False, change=drift.change, note=note)
        note = f"{effort.messages} messages of each client were measured, or all messages of a client with fewer"
        return replace(latency, is_settled=True, note=note)
    if all_of or simulation.state.stop == Stop.DONE:
        return note_all_sent(latency, effort, stay)
    return replace(latency, is_settled=False, note=f"not settled after {effort.hops:g} packet hops")


class Rounds:
    """Measures messages of a recorded run, or of another job, during whole rounds of the recorded run.

    A message of the recorded run belongs to the round of its recorded time, even if the message starts late. A message
    of another job belongs to the round in which the message starts.
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
        """Run until enough rounds are measured, or the simulation ends."""
        while not self._has_warmed_up():
            # A job with a limit may end within a round: run in pieces that are shorter than a round.
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
        """Return True if the warm-up has ended. Each client of other jobs must have completed `Effort.background`
        messages, or all messages of its limit or round. The measured job must have completed the messages that `Effort`
        leaves out, on average over its clients.
        """
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
        """Run for one piece of simulated time, at most until the tick `until`, and record the completed messages."""
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
        """Return a tick in each message's round: the start of the message, or of the round for the recorded run."""
        if not self._own_round:
            return samples["start"].astype(np.int64)
        client = samples["client"]
        lists = count_turns(client, self._done) // self._simulation.steps_of_client[client]
        due: npt.NDArray[np.int64] = lists * self._own_round
        return due

    def _count_rounds(self, end: int) -> int:
        """Return the number of complete rounds from the start of the measurement to a tick."""
        upto = self._simulation.state.now
        if self._own_round:
            lists = (self._simulation.look_at_clients().steps // self._list)[self._clients]
            upto = int(lists.min()) * self._own_round
        return max(min(upto, end) - self._begin, 0) // self._round

    def _run_to(self, tick: int) -> bool:
        """Run until a tick; return False if the simulation ends before this tick."""
        while self._simulation.state.now < tick:
            if self._is_over():
                return False
            self._run_on(tick)
        return True

    def _complete(self, end: int) -> bool:
        """Run until all messages of the rounds before a tick are complete. Stop at the latest one round after the tick.
        Return False if the simulation ends before these messages are complete."""
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
        """Return the latency over complete rounds. Its `note` is empty if more rounds must be measured."""
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
            told = f"in round {number} of the recorded run: state an interval for the run"
            return replace(latency, is_settled=False, note=f"not settled after {effort.hops:g} packet hops, {told}")
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
        """Return the latency over the messages of complete rounds; for a job that has ended, over all messages."""
        samples = np.concatenate([np.zeros(0, SAMPLE), *self._taken])
        number = (np.concatenate([np.zeros(0, np.int64), *self._due]) - self._begin) // self._round
        inside = number < rounds
        if not all_of:
            samples, number, inside = samples[inside], number[inside], inside[inside]
        if not len(samples):
            return NOTHING
        to_ns = self._simulation.network.to_ns(1)
        values = samples["ticks"] * to_ns
        # Use at most `BATCHES` batches of successive rounds, since the means of short rounds are correlated.
        batch = number[inside] * min(rounds, BATCHES) // max(rounds, 1)
        messages, total = np.bincount(batch), np.bincount(batch, values[inside])
        means = total[messages > 0] / messages[messages > 0]
        latency = describe(self._simulation, samples, self._begin * to_ns, half_interval(means))
        return latency if all_of else replace(latency, measured_ns=rounds * self._round * to_ns)
