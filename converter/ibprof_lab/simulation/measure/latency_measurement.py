# SPDX-License-Identifier: Apache-2.0
"""Measurement of a mean latency: the length of the simulation, the warm-up, and the uncertainty of the mean.

Where a recorded run goes by its time line, whole rounds of it are measured: it has phases, and the last counts too.
Messages that stay on a host are on no network, and have no latency here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.simulation.engine.packet_engine import Simulation, Stop
from ibprof_lab.simulation.measure.latency_statistics import (
    BATCHES,
    SteadyState,
    average_batches,
    average_parts,
    find_drift,
    find_warm_up,
    half_interval,
)
from ibprof_lab.simulation.measure.message_latency import (
    CHUNKS,
    NOTHING,
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
from ibprof_lab.simulation.measure.replay_rounds import Rounds
from ibprof_lab.simulation.measure.run_observer import Watch


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
        latency = Rounds(simulation, clients, effort, watch, whole, round_ticks).measure()
    else:
        latency = _measure(simulation, clients, effort, watch, whole)
    return _check_other_jobs(latency, simulation, clients)


def _check_other_jobs(latency: Latency, simulation: Simulation, clients: npt.NDArray[np.bool_]) -> Latency:
    """A job that does not end says nothing of those next to it after they have ended."""
    own = int(simulation.job_of_client[clients][0])
    progress, until = simulation.look_at_clients(), latency.left_out_ns + latency.measured_ns
    for number, job in enumerate(simulation.jobs):
        of_job = simulation.job_of_client == number
        if number == own or simulation.jobs[own].limit or not job.limit or not of_job.any():
            continue
        ended_ns = simulation.network.to_ns(float(progress.last[of_job].max()))
        if (progress.steps[of_job] >= job.limit).all() and ended_ns < until:
            told = f"job {job.name} had sent all after {ended_ns / 1e3:.0f} µs, and {until / 1e3:.0f} µs were needed"
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
    # A message of each client makes a point of the series that is looked at for its warm-up.
    points = max(len(taken) // max(clients, 1), 1)
    series = average_parts(taken, points)
    cut = min(find_warm_up(series) if precision else points, looked_at)
    kept = samples[sum(len(part) for part in np.array_split(taken, points)[:cut]) :]
    if not len(kept):
        return NOTHING
    begin = float((kept["start"][0] + kept["ticks"][0]) * to_ns) if cut else begin
    latency = describe(simulation, kept, begin, half_interval(average_batches(kept["ticks"] * to_ns, 2 * BATCHES)))
    if steady.is_reached(kept["ticks"]):
        return replace(latency, is_settled=True, note="steady state: the rest of the messages was skipped")
    is_narrow = latency.half <= precision * latency.mean
    drifts = find_drift(latency.over_time).exceeds(precision)
    return replace(
        latency, is_settled=points - cut >= 2 and is_narrow and not drifts, note="the interval is narrow enough"
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
        return replace(latency, is_settled=True, note=f"{effort.messages} messages of each client, or all of them")
    if all_of or simulation.state.stop == Stop.DONE:
        return note_all_sent(latency, effort, stay)
    return replace(latency, is_settled=False, note=f"given up after {effort.hops:g} packet hops")
