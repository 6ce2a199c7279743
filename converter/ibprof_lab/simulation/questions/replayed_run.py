# SPDX-License-Identifier: Apache-2.0
"""Prediction of a recorded run's time on other hosts, with other forwarding tables, or next to another job.

The recording does not show the messages that a rank waits for. A replay therefore consists of two simulations, in which
ranks wait as early, or as late, as the recording allows. A replay on the recorded network is calibrated with the
measured time. Then the run is replayed on the network to predict for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ibprof.errors import InconsistentError, UsageError
from ibprof_lab.simulation.measure.message_latency import Effort, Latency
from ibprof_lab.simulation.questions.congestion_threshold import Simulate
from ibprof_lab.simulation.study.cell import Cell, Setting, list_fabric_notes, set_up
from ibprof_lab.simulation.study.simulated_machine import (
    MachineOptions,
    NamedHosts,
    allocate_named,
    make_setting,
    refuse_option,
    share_rest,
    stay_as_recorded,
)
from ibprof_lab.simulation.workload.recorded_program import RecordedProgram, load_program
from ibprof_lab.simulation.workload.workloads import Role, Workload, list_run_notes, load_recorded

JOB, OTHER = "job", "other"
"""Names of the recorded job and of the other job in simulations."""

FARTHEST = 0.25
"""There is no prediction if the replay on the recorded network deviates from the measured time by more than this
fraction."""

LEAST_ERROR = 0.05
"""Smallest half width of a prediction's interval, relative to the prediction."""

_EFFORT = Effort(messages=1, background=1, warm_up=0, least_warm_up=0)
"""Effort for the smallest number of operations that `MeanOperation` accepts: ten replays of the run."""


@dataclass(frozen=True, slots=True)
class ReplayQuestion:
    """A recorded run and the simulations for a prediction of its time.

    Attributes:
        recorded: two simulations on the recorded network; ranks wait early in the first, and late in the second. Empty
            for a run on one host.
        wanted: the same two simulations on the other network, for each seed.
        notes: sentences for the user.
    """

    run: RecordedProgram
    recorded: tuple[Cell, ...]
    wanted: tuple[tuple[Cell, Cell], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplayedTime:
    """A prediction of a run's time.

    Attributes:
        measured: measured time of the recorded run, seconds.
        computing: time of the recorded run outside MPI, seconds.
        replayed: times of both simulations (early and late waits) on the recorded network; None for a run on one host.
        seconds, low, high: predicted time and its interval, seconds.
        predicted: times of both simulations on the other network, before calibration.
    """

    measured: float
    computing: float
    replayed: tuple[float, float] | None
    seconds: float
    low: float
    high: float
    predicted: tuple[float, float]


def ask_replay(
    profile: Path,
    machine: MachineOptions,
    to_fabric: str | None,
    to_routes: str | None,
    to_hosts: Sequence[str] | None,
    next_to: Path | None,
    next_to_hosts: Sequence[str] | None,
    seeds: int,
) -> ReplayQuestion:
    """Return the simulations for a prediction. `ibprof-sim replay` has options of the same names.

    Args:
        profile: recorded run.
        machine: the recorded network.
        to_fabric, to_routes: fabric and routes of the other network; None if they are as recorded.
        to_hosts: hosts on the other network, in the order of the lowest rank on each; None for the recorded hosts.
        next_to: profile of another job that runs at the same time; None if there is no other job.
        next_to_hosts: names of the other job's hosts; None for its recorded hosts.
        seeds: number of random seeds, which determine when the other job starts.

    Raises:
        IbprofError: an option is invalid on the fabric, or the recording has no times.
    """
    if next_to_hosts and not next_to:
        raise UsageError("--next-to-hosts names the hosts of a second job, but --next-to does not name this job")
    setting = replace(make_setting(replace(machine, servers=1)), servers=0, effort=_EFFORT)
    network = setting.load()
    byte_ns = network.to_ns(float(network.end_byte_ticks[network.host_end].min()) / 2**32)
    job = Workload(JOB, Role.REPLAY, 1, share=0.5, profile=str(profile), byte_ns=byte_ns)
    run = load_program(profile, byte_ns, waits_late=False)
    recorded, notes = _replay_where_recorded(setting, job)
    there = replace(
        setting,
        fabric=to_fabric or setting.fabric,
        routes=to_routes or (None if to_fabric else setting.routes),
    )
    jobs, hosts = [job], [("--to-hosts", to_hosts)]
    if next_to:
        load_program(next_to, byte_ns, waits_late=False)
        jobs.append(replace(job, name=OTHER, profile=str(next_to)))
        hosts.append(("--next-to-hosts", next_to_hosts))
    named, taken = NamedHosts(there), dict[int, str]()
    jobs = [
        allocate_named(there, each, names, named, taken, refuse_option(option)) if names else each
        for each, (option, names) in zip(jobs, hosts, strict=True)
    ]
    jobs, more = stay_as_recorded(there, jobs, named, [])
    jobs = share_rest(jobs, (JOB, OTHER))
    notes += [*more, *list_run_notes(jobs), *list_fabric_notes(there.network)]
    # One job on known hosts does not depend on the seed: use a single seed.
    drawn = range(1, (seeds if len(jobs) > 1 or not jobs[0].hosts else 1) + 1)
    wanted = tuple(_both(there, jobs, seed) for seed in drawn)
    for cell in (*recorded, *wanted[0]):
        set_up(cell)
    return ReplayQuestion(run, recorded, wanted, tuple(dict.fromkeys(notes)))


def _replay_where_recorded(setting: Setting, job: Workload) -> tuple[tuple[Cell, ...], list[str]]:
    """Return `ReplayQuestion.recorded`, and notes for the user."""
    if load_recorded(job).was_on_one_host:
        return (), []
    (placed,), notes = stay_as_recorded(setting, [job], NamedHosts(setting), [])
    if not placed.hosts:
        raise InconsistentError("; ".join(notes) + ". Give the recording's fabric with --fabric")
    return _both(setting, [placed], 1), notes


def _both(setting: Setting, jobs: Sequence[Workload], seed: int) -> tuple[Cell, Cell]:
    names = tuple(job.name for job in jobs)
    early, late = (
        Cell(setting, tuple(replace(job, waits_late=late) for job in jobs), names, JOB, seed) for late in (False, True)
    )
    return early, late


def answer_replay(question: ReplayQuestion, simulate: Simulate) -> ReplayedTime:
    """Run the simulations, and predict the recorded run's time on the other network.

    Raises:
        InconsistentError: the replay on the recorded network deviates too far from the measured time, or a simulation
            has no result.
    """
    cells = [*question.recorded, *(cell for pair in question.wanted for cell in pair)]
    outcomes = simulate(list(dict.fromkeys(cells)))
    measured, computing = question.run.seconds, question.run.computing
    seeds = [tuple(_find_seconds(outcomes[cell.key].latency) for cell in pair) for pair in question.wanted]
    spread = max(_find_spread(outcomes[cell.key].latency) for pair in question.wanted for cell in pair)
    early, late = (sum(pair[side] for pair in seeds) / len(seeds) for side in (0, 1))
    ends = [value for pair in seeds for value in pair]
    replayed_ends = None
    if not question.recorded:
        seconds = (early + late) / 2
        ends.append(seconds)
    else:
        replayed_early, replayed_late = (_find_seconds(outcomes[cell.key].latency) for cell in question.recorded)
        replayed_ends = replayed_early, replayed_late
        gap = replayed_early - replayed_late
        part = min(max((measured - replayed_late) / gap, 0.0), 1.0) if gap else 0.5
        replayed = replayed_late + part * gap
        if abs(replayed / measured - 1) > FARTHEST:
            raise InconsistentError(
                "no prediction: the run's messages do not explain its time in MPI. The replay on the recorded network "
                f"takes {replayed:.3g} s. The run took {measured:.3g} s, of which {computing:.3g} s outside of MPI"
            )
        raw = late + part * (early - late)
        # The replay's error on the other network is unknown. `added` assumes the same error in seconds as on the
        # recorded network; `scaled` assumes an error proportional to the time.
        added, scaled = raw + measured - replayed, raw * measured / replayed
        seconds = (added + scaled) / 2
        ends = [*(value * measured / replayed for value in ends), added, scaled]
    error = LEAST_ERROR * seconds + spread
    return ReplayedTime(
        measured=measured,
        computing=computing,
        replayed=replayed_ends,
        seconds=seconds,
        low=min(ends) - error,
        high=max(ends) + error,
        predicted=(early, late),
    )


def _find_seconds(latency: Latency) -> float:
    if not latency.operations:
        raise InconsistentError(f"no prediction: the replay gave no run time: {latency.note}")
    return latency.operation_mean / 1e9


def _find_spread(latency: Latency) -> float:
    """Return the half width of a 95% interval for the mean time of two successive replays."""
    batches = min(20, latency.operations // 2)
    half = latency.operation_half / 1e9
    return half * batches**0.5 if half > 0 else 0.0
