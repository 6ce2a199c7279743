# SPDX-License-Identifier: Apache-2.0
"""Warm-ups and drifts are found. A measurement ends early only if the mean latency is known well enough."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pytest

from ibprof_lab.cli.sim import main
from ibprof_lab.simulation.measure.message_latency import (
    FULL,
    LEAST,
    Slice,
    SteadyState,
    find_drift,
    find_half,
    find_warm_up,
)
from ibprof_lab.simulation.study.cell import Cell, Outcome, run_cell
from ibprof_lab.simulation.workload.workloads import IO, MPI, Workload
from ibprof_testing.samples.simulated_jobs import KIB, SMALL, US, io, mpi


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
    assert not find_drift(slices_of(np.linspace(99, 101, 40))).exceeds(0.05)  # the drift is significant, but small
    assert not find_drift([]).exceeds(0.05)
    assert not find_drift(slices_of(np.array([1.0, 2.0, 4.0]))).exceeds(0.05)  # three slices cannot show a drift


def test_noise_is_no_drift() -> None:
    """Slices vary by a fifth. In the second series, slices also grow by two fifths from the first to the last."""
    random = np.random.default_rng(11)
    noise = random.normal(1, 0.2, (400, 40))
    assert np.mean([find_drift(slices_of(each)).exceeds(0.05) for each in noise]) < 0.05
    assert np.mean([find_drift(slices_of(each + np.linspace(0, 0.4, 40))).exceeds(0.05) for each in noise]) > 0.5


def autoregressive(lag: float, count: int, seed: int, spread: float = 0.1) -> npt.NDArray[np.float64]:
    """Return a stationary, autocorrelated series with mean 1."""
    random = np.random.default_rng(seed)
    noise = random.normal(0, spread * (1 - lag**2) ** 0.5, count)
    values = accumulate(noise.tolist(), lambda before, each: lag * before + each, initial=random.normal(0, spread))
    return 1 + np.array(list(values)[1:])


@pytest.mark.parametrize("lag", [0.0, 0.9, 0.99])
def test_intervals_cover_the_mean(lag: float) -> None:
    """For each correlation, 95% of 200 intervals, minus three standard errors, contain the mean."""
    series = [autoregressive(lag, 4000, seed) for seed in range(200)]
    covered = np.mean([abs(each.mean() - 1) <= find_half(each) for each in series])
    assert covered > 0.95 - 3 * (0.95 * 0.05 / 200) ** 0.5


@pytest.mark.parametrize("lag", [0.0, 0.9, 0.99])
def test_a_mean_that_ends_a_measurement_is_known_within_1_percent(lag: float) -> None:
    """The rule that ends a measurement is applied to ever longer series. At most 1 of 50 means is off by over 1%."""
    off = []
    for seed in range(50):
        values, state = autoregressive(lag, 200_000 if lag > 0.9 else 20_000, seed), SteadyState(0.005, 20, 1 << 40)
        count = 500
        while count < len(values) and not state.is_reached(values[:count]):
            count += 500
        off.append(abs(values[:count].mean() - 1))
    assert np.sum(np.array(off) > 0.01) <= 1


@pytest.mark.parametrize("lag", [0.0, 0.9])
def test_a_mean_that_ends_a_measurement_is_that_of_all_messages_within_1_percent(lag: float) -> None:
    """A sample of most of 10,000 messages has a mean near the mean of all 10,000, not of infinitely many messages."""
    off, part = [], []
    for seed in range(50):
        spread = 0.3 * ((1 - lag) / (1 + lag)) ** 0.5
        values, state = autoregressive(lag, 10_000, seed, spread), SteadyState(0.005, 10, 1000)
        unlimited = SteadyState(0.005, 10, 1 << 40)
        counts = range(500, len(values), 100)
        ends = next((count for count in counts if state.is_reached(values[:count])), len(values))
        whole = next((count for count in counts if unlimited.is_reached(values[:count])), len(values))
        off.append(abs(values[:ends].mean() / values.mean() - 1))
        part.append(ends / whole)
    assert np.sum(np.array(off) > 0.01) <= 1
    assert np.mean(part) < 0.8


def test_a_drift_is_no_steady_state() -> None:
    """The last values are 10% larger, so there is no steady state, although the mean's interval is narrow."""
    values = autoregressive(0, 100_000, 1, 0.01) * np.linspace(1, 1.1, 100_000)
    assert not SteadyState(0.005, 1, 1 << 40).is_reached(values)
    assert SteadyState(0.005, 1, 1 << 40).is_reached(autoregressive(0, 100_000, 1, 0.01))


def test_few_messages_are_never_enough() -> None:
    same = np.ones(1000)
    assert not SteadyState(0.005, 1000 // LEAST + 1, 1 << 40).is_reached(same)
    assert SteadyState(0.005, 1000 // LEAST, 1 << 40).is_reached(same)
    assert not SteadyState(0.0, 1, 1 << 40).is_reached(same)


def run_both(jobs: tuple[Workload, ...], measured: str) -> tuple[Outcome, Outcome]:
    """Simulate the jobs twice: with all messages, and with measurements that end early."""
    names = tuple(each.name for each in jobs)
    settings = (replace(SMALL, effort=each) for each in (replace(FULL, steady=0.0), FULL))
    every, skipped = (run_cell(Cell(each, jobs, names, measured, 1)) for each in settings)
    return every, skipped


@pytest.mark.parametrize(
    ("jobs", "measured"),
    [
        ((mpi(64 * KIB, 20 * US),), MPI),
        ((io(64 * KIB, 500 * US), mpi(4 * KIB, 10 * US)), IO),
        ((io(4 * KIB, 500 * US), mpi(64 * KIB, 100 * US)), IO),
    ],
)
def test_a_mean_with_skipping_is_that_of_every_message(jobs: tuple[Workload, ...], measured: str) -> None:
    """The means agree within 1%. For a steady job, the early end saves at least 30% of the packet hops."""
    every, skipped = run_both(jobs, measured)
    assert every.latency.messages == pytest.approx(14 * 1000, rel=0.2)
    assert skipped.latency.is_settled
    assert skipped.latency.note.startswith("steady state")
    assert skipped.latency.mean == pytest.approx(every.latency.mean, rel=0.01)
    assert skipped.packet_hops < 0.7 * every.packet_hops


def test_what_is_not_steady_is_simulated_to_its_end() -> None:
    """Next to a checkpoint, MPI's latencies vary too much: the measurement does not end early. Results are equal."""
    every, skipped = run_both((io(256 * KIB), mpi(4 * KIB, 500 * US)), MPI)
    assert repr(skipped.latency) == repr(every.latency)  # since Python 3.13, nan is unequal in dataclasses
    assert skipped.packet_hops == every.packet_hops


def test_every_message_is_for_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "placement", "--every-message", "--dry-run"]) == 2
    assert "--every-message: expected with --full" in capsys.readouterr().err
