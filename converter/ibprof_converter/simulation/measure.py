# SPDX-License-Identifier: Apache-2.0
"""How long to simulate, what to leave out, and how sure a mean is.

Where a recorded run goes by its time line, whole rounds of it are measured: it has phases, and the last counts too.
Messages that stay on a host are on no network, and have no latency here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_converter.simulation.deadlock import describe_deadlock
from ibprof_converter.simulation.engine import SAMPLE, Simulation, Stop
from ibprof_converter.simulation.operations import Operations, count_turns
from ibprof_converter.simulation.stationary import Slice, find_drift, find_warm_up
from ibprof_converter.simulation.watch import Watch, bin_values, list_bins

_BATCHES = 20
_SLICES = 40
"""Of the measured time, for means over time."""

_CHUNKS = 40
"""Parts in which simulated time is extended at first."""

_OPERATIONS = 10
"""Of a collective that are measured at least: tens of messages of a rank can be less than one."""

_ROUNDS = 10
"""Of a recorded run that are measured at most, however much they differ."""

_NO_END = 1 << 62
"""Messages of a client without a limit."""

QUANTILES = (0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Effort:
    """When a measurement is good enough.

    Attributes:
        precision: half of the 95 % confidence interval, as a part of the mean; 0: `warm_up` and `messages` are taken
            as they are.
        warm_up: messages of a client that are left out at most; fewer, where the mean is stationary before.
        least_warm_up: messages of a client, on average, that are left out however stationary the mean looks, up to
            `warm_up`; none of jobs that end, of which no more is left out than the mean asks for and what is sent
            before the background's requests have passed. Clients that go from server to server sort themselves over
            tens of messages, too slowly for a test to see it in a few.
        messages: of a client, after which it ends whatever the interval is.
        background: requests of each client of other jobs that must have passed before anything is measured.
        hops: packet hops after which it is given up.
    """

    precision: float = 0.05
    warm_up: int = 50
    least_warm_up: int = 50
    messages: int = 200
    background: int = 50
    hops: float = 1e10

    def left_out(self, limit: int) -> int:
        """Give how many messages of a client are left out in any case; the limit of a job without an end is 0."""
        return 0 if limit else min(self.least_warm_up, self.warm_up)


@dataclass(frozen=True, slots=True)
class Latency:
    """What the messages of a job took, in ns.

    Attributes:
        messages: that were measured, after the warm-up.
        mean: over messages.
        half: of its 95 % confidence interval, by the means of batches in time or of whole rounds; nan where there are
            too few.
        node_mean: mean of the clients' own means, which does not over-sample quiet times.
        deviation: standard deviation.
        least, most: extremes.
        quantiles: of `QUANTILES`.
        left_out_ns: simulated time before the measurement began.
        measured_ns: simulated time of the measurement.
        is_settled: whether it fulfils what was asked of it.
        note: why not, or which rule ended it.
        histogram: lower edge, upper edge in ns, messages, of each bin of `watch.bin_edges` that has any.
        by_client: host by number, messages and their mean, of each client that had any.
        over_time: begin and end in ns, messages and their mean, of equal slices of the measured time.
        operations: of a collective, that began after the warm-up; 0 for other jobs.
        operation_mean: of their durations, from the first message's start to the last one's arrival.
    """

    messages: int
    mean: float
    half: float
    node_mean: float
    deviation: float
    least: float
    most: float
    quantiles: tuple[float, ...]
    left_out_ns: float
    measured_ns: float
    is_settled: bool
    note: str
    histogram: tuple[tuple[float, float, int], ...] = ()
    by_client: tuple[tuple[int, int, float], ...] = ()
    over_time: tuple[Slice, ...] = ()
    operations: int = 0
    operation_mean: float = math.nan


NOTHING = Latency(0, *(math.nan,) * 6, (math.nan,) * len(QUANTILES), 0.0, 0.0, False, "no message was measured")
_ON_HOSTS = "all of its messages stay on their hosts"


def measure(
    simulation: Simulation,
    clients: npt.NDArray[np.bool_],
    effort: Effort,
    watch: Watch | None = None,
    whole: bool = False,
) -> Latency:
    """Run a simulation until what the clients of one job see is known well enough.

    Args:
        simulation: that has not run yet.
        clients: bool [client], which are those of the job that is measured; its steps are sampled.
        effort: what is wanted.
        watch: of the simulation, where it is to keep what happens to all jobs.
        whole: all messages of each client are taken, also where the mean looks settled before: for what changes slowly.
    """
    round_ticks = max(job.round for job in simulation.jobs)
    if round_ticks:
        latency = _Rounds(simulation, clients, effort, watch, whole, round_ticks).measure()
    else:
        latency = _measure(simulation, clients, effort, watch, whole)
    return _look_beside(latency, simulation, clients)


def _look_beside(latency: Latency, simulation: Simulation, clients: npt.NDArray[np.bool_]) -> Latency:
    """A job that does not end says nothing of those beside it after they have ended."""
    own = int(simulation.job_of_client[clients][0])
    progress, until = simulation.look_at_clients(), latency.left_out_ns + latency.measured_ns
    for number, job in enumerate(simulation.jobs):
        of_job = simulation.job_of_client == number
        if number == own or simulation.jobs[own].limit or not job.limit or not of_job.any():
            continue
        ended_ns = simulation.network.to_ns(float(progress.last[of_job].max()))
        if (progress.steps[of_job] >= job.limit).all() and ended_ns < until:
            told = f"job {job.name} had sent all after {ended_ns / 1e3:.0f} us, and {until / 1e3:.0f} us were needed"
            return replace(latency, is_settled=False, note=told)
    return latency


def _measure(
    simulation: Simulation, clients: npt.NDArray[np.bool_], effort: Effort, watch: Watch | None, whole: bool
) -> Latency:
    run = watch.run if watch else simulation.run
    taken: list[npt.NDArray[Any]] = []
    limit = _limits(simulation)
    left_out = effort.left_out(simulation.jobs[int(simulation.job_of_client[clients][0])].limit)
    looked_at = effort.warm_up - left_out
    passed = np.where(clients, 0, np.minimum(limit, effort.background))
    begun, first, begin = not (left_out or passed.any()), np.zeros(len(clients), np.uint64), 0.0
    chunk = _first_chunk(simulation)
    operations = _Operations(simulation, clients)
    while True:
        samples = run(simulation.state.now + chunk, effort.hops)
        operations.note(samples)
        state = simulation.state
        steps = simulation.look_at_clients().steps
        if begun:
            taken.append(samples[_leave_hosts(simulation, clients, samples)])
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
                _summarise(simulation, samples, int(clients.sum()), effort.precision, looked_at, begin)
            )
            settled = ((latency.is_settled and not whole) or all_of) and latency.operations >= operations.needed
            if ended or settled:
                stay = begun and not len(samples) and bool((steps > first)[clients].any())
                return _judge(latency, simulation, all_of, effort, stay)
        if state.stop == Stop.TIME and state.now > _CHUNKS * chunk:
            chunk *= 2


def _limits(simulation: Simulation) -> npt.NDArray[np.uint64]:
    return np.array([job.limit or _NO_END for job in simulation.jobs], np.uint64)[simulation.job_of_client]


def _first_chunk(simulation: Simulation) -> int:
    return max(simulation.network.ticks(50e3), 1)


def _leave_hosts(
    simulation: Simulation, clients: npt.NDArray[np.bool_], samples: npt.NDArray[Any]
) -> npt.NDArray[np.bool_]:
    """Give which messages are of some clients and leave their hosts."""
    client = samples["client"]
    chosen: npt.NDArray[np.bool_] = clients[client] & (samples["host"] != simulation.host_of_client[client])
    return chosen


class _Rounds:
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
        self._round, self._chunk = round_ticks, _first_chunk(simulation)
        self._ends, self._limit = job.limit > 0, _limits(simulation)
        self._own_round = 0 if job.limit else job.round
        repeats = np.array([each.round > 0 for each in simulation.jobs])[simulation.job_of_client]
        self._list = np.where(repeats, simulation.steps_of_client, _NO_END).astype(np.uint64)
        self._operations = _Operations(simulation, clients)
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
            rounds += 1 + rounds // _BATCHES

    def _has_warmed_up(self) -> bool:
        """Whether the background's requests have passed, of a recorded run one whole round at most."""
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
        if now > _CHUNKS * self._chunk and self._chunk * _CHUNKS < self._round:
            self._chunk *= 2
        samples = self._run(min(now + self._chunk, until), self._effort.hops)
        self._operations.note(samples)
        due = self._find_due(samples)
        chosen = _leave_hosts(self._simulation, self._clients, samples) & (due >= self._begin)
        self._taken.append(samples[chosen])
        self._due.append(due[chosen])

    def _find_due(self, samples: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Give the tick that says in which round a message is: its start, or when the run's list began that has it."""
        if not self._own_round:
            return samples["start"].astype(np.int64)
        client = samples["client"]
        lists = count_turns(client, self._done) // self._simulation.steps_of_client[client]
        due: npt.NDArray[np.int64] = lists * self._own_round
        return due

    def _count_rounds(self, end: int) -> int:
        """Give how many rounds are whole, up to a tick."""
        upto = self._simulation.state.now
        if self._own_round:
            lists = (self._simulation.look_at_clients().steps // self._list)[self._clients]
            upto = int(lists.min()) * self._own_round
        return max(min(upto, end) - self._begin, 0) // self._round

    def _run_to(self, tick: int) -> bool:
        """Whether it comes to a tick."""
        while self._simulation.state.now < tick:
            if self._is_over():
                return False
            self._run_on(tick)
        return True

    def _complete(self, end: int) -> bool:
        """Whether it goes on until the messages of the rounds up to a tick are complete, for a round at most."""
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
        """Give what so many whole rounds say, without a note where that is not enough."""
        simulation, effort = self._simulation, self._effort
        sent_all = not came and (self._has_sent_all() or simulation.state.stop == Stop.DONE)
        latency = self._operations.add_to(self._summarise(rounds, sent_all))
        sent = (simulation.look_at_clients().steps - self._first)[self._clients]
        stay = not latency.messages and bool(sent.any())
        if simulation.state.stop == Stop.DEADLOCK:
            return _say_deadlock(latency, simulation)
        if sent_all:
            return _say_all_sent(latency, effort, stay)
        if not came:
            number = simulation.state.now // self._round + 1
            told = f"in round {number} of the recorded run: state an interval for it"
            return replace(latency, is_settled=False, note=f"given up after {effort.hops:g} packet hops, {told}")
        if rounds < 2 or not self._is_enough(latency, sent, rounds):
            return replace(latency, note="")
        if stay:
            return replace(latency, note=_ON_HOSTS)
        return replace(latency, is_settled=True, note=f"{rounds} whole rounds of the recorded run")

    def _is_enough(self, latency: Latency, sent: npt.NDArray[np.uint64], rounds: int) -> bool:
        if latency.operations < self._operations.needed:
            return False
        narrow = 0 < self._effort.precision * latency.mean >= latency.half and not self._whole
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
        batch = number[inside] * min(rounds, _BATCHES) // max(rounds, 1)
        messages, total = np.bincount(batch), np.bincount(batch, values[inside])
        means = total[messages > 0] / messages[messages > 0]
        latency = _describe(self._simulation, samples, self._begin * to_ns, _half_interval(means))
        return latency if all_of else replace(latency, measured_ns=rounds * self._round * to_ns)


class _Operations:
    """The durations of a collective's operations; nothing for other jobs."""

    def __init__(self, simulation: Simulation, clients: npt.NDArray[np.bool_]) -> None:
        job = int(simulation.job_of_client[clients][0])
        self._of = Operations(simulation, job) if simulation.is_collective[job] else None
        self._to_ns = simulation.network.to_ns(1)
        self._begin: list[npt.NDArray[np.int64]] = []
        self._ticks: list[npt.NDArray[np.int64]] = []
        self.needed = _OPERATIONS if self._of else 0

    def note(self, samples: npt.NDArray[Any]) -> None:
        if self._of:
            begin, ticks = self._of.note(samples)
            self._begin.append(begin)
            self._ticks.append(ticks)

    def add_to(self, latency: Latency) -> Latency:
        """Add those that began after the warm-up."""
        if not self._of:
            return latency
        ticks = np.concatenate(self._ticks)[np.concatenate(self._begin) * self._to_ns >= latency.left_out_ns]
        mean = float(ticks.mean() * self._to_ns) if len(ticks) else math.nan
        return replace(latency, operations=len(ticks), operation_mean=mean)


def _summarise(
    simulation: Simulation, samples: npt.NDArray[Any], clients: int, precision: float, looked_at: int, begin: float
) -> Latency:
    to_ns = simulation.network.to_ns(1)
    taken = samples["ticks"] * to_ns
    if not len(taken):
        return NOTHING
    # A message of each client makes a point of the series that is looked at for its warm-up.
    points = max(len(taken) // max(clients, 1), 1)
    series = np.array([part.mean() for part in np.array_split(taken, points)])
    cut = min(find_warm_up(series) if precision else points, looked_at)
    kept = samples[sum(len(part) for part in np.array_split(taken, points)[:cut]) :]
    if not len(kept):
        return NOTHING
    begin = float((kept["start"][0] + kept["ticks"][0]) * to_ns) if cut else begin
    latency = _describe(simulation, kept, begin, _half_interval(_batch_means(kept["ticks"] * to_ns)))
    is_narrow = latency.half <= precision * latency.mean
    drifts = find_drift(latency.over_time).exceeds(precision)
    return replace(
        latency, is_settled=points - cut >= 2 and is_narrow and not drifts, note="the interval is narrow enough"
    )


def _describe(simulation: Simulation, samples: npt.NDArray[Any], begin: float, half: float) -> Latency:
    """Give the figures of messages, of one at least; not whether they are enough."""
    to_ns = simulation.network.to_ns(1)
    end, values = (samples["start"] + samples["ticks"]) * to_ns, samples["ticks"] * to_ns
    by_client = _average_by_client(simulation, samples["client"], values)
    return Latency(
        messages=len(values),
        mean=float(values.mean()),
        half=half,
        node_mean=float(np.mean([each for _, _, each in by_client])),
        deviation=float(values.std()),
        least=float(values.min()),
        most=float(values.max()),
        quantiles=tuple(np.quantile(values, QUANTILES).tolist()),
        left_out_ns=begin,
        measured_ns=float(end[-1]) - begin,
        is_settled=False,
        note="",
        histogram=list_bins(bin_values(values)),
        by_client=by_client,
        over_time=_average_over_time(end, values, begin),
    )


def _average_by_client(
    simulation: Simulation, client: npt.NDArray[Any], values: npt.NDArray[np.float64]
) -> tuple[tuple[int, int, float], ...]:
    messages, total = np.bincount(client), np.bincount(client, values)
    return tuple(
        (int(simulation.host_of_client[each]), int(messages[each]), float(total[each] / messages[each]))
        for each in np.flatnonzero(messages)
    )


def _average_over_time(
    end: npt.NDArray[np.float64], values: npt.NDArray[np.float64], begin: float
) -> tuple[Slice, ...]:
    edges = np.linspace(begin, float(end[-1]), _SLICES + 1)
    which = np.clip(np.searchsorted(edges, end, side="left") - 1, 0, _SLICES - 1)
    messages, total = np.bincount(which, minlength=_SLICES), np.bincount(which, values, _SLICES)
    return tuple(
        (float(edges[at]), float(edges[at + 1]), int(messages[at]), float(total[at] / messages[at]))
        for at in np.flatnonzero(messages)
    )


def _batch_means(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Give the means of batches in time, of values that depend on each other; none of too few."""
    batches = np.array_split(values, _BATCHES) if len(values) >= 2 * _BATCHES else []
    return np.array([part.mean() for part in batches])


def _half_interval(means: npt.NDArray[np.float64]) -> float:
    """Half of the 95 % interval of the mean of means; nan where there are fewer than two."""
    from scipy.stats import t  # noqa: PLC0415  (slow to import)

    if len(means) < 2:
        return math.nan
    return float(t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / math.sqrt(len(means)))


def _judge(latency: Latency, simulation: Simulation, all_of: bool, effort: Effort, stay: bool) -> Latency:
    if simulation.state.stop == Stop.DEADLOCK:
        return _say_deadlock(latency, simulation)
    if latency.is_settled:
        return latency
    if all_of and latency.messages:
        drift = find_drift(latency.over_time)
        if effort.precision and drift.exceeds(effort.precision):
            told = f"{100 * drift.change:+.0f} % ± {100 * drift.half:.0f} in the time that is measured"
            return replace(latency, is_settled=False, note=f"no steady state: the mean still changes, {told}")
        return replace(latency, is_settled=True, note=f"{effort.messages} messages of each client, or all of them")
    if all_of or simulation.state.stop == Stop.DONE:
        return _say_all_sent(latency, effort, stay)
    return replace(latency, is_settled=False, note=f"given up after {effort.hops:g} packet hops")


def _say_deadlock(latency: Latency, simulation: Simulation) -> Latency:
    circle = describe_deadlock(simulation.network, simulation.find_waits())
    return replace(latency, is_settled=False, note=f"deadlock: packets wait for each other in a circle: {circle}")


def _say_all_sent(latency: Latency, effort: Effort, stay: bool) -> Latency:
    early = f"all messages were sent before the other jobs had made {effort.background} requests of each client"
    note = "all messages were sent" if latency.messages else _ON_HOSTS if stay else early
    return replace(latency, is_settled=latency.messages > 0, note=note)
