# SPDX-License-Identifier: Apache-2.0
"""Predict run times for other numbers of processes and problem sizes, with intervals and a valid range.

The time of a run is computing time plus time in calls. Computing time is a constant plus a multiple of the operations
per process. The time of a call is the time of its algorithm on the measured network, times a factor for each MPI
operation. These factors are fitted to recorded runs. So are the numbers of calls and bytes, as functions of the problem
size n and the number of processes p.

To estimate errors, each run is predicted from all other runs. The 95% intervals are computed from the errors of these
predictions (Student's t). For n or p of 2^d times the largest recorded value, the intervals are sqrt(1 + d^2) times as
wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ibprof_lab.scaling.exchange_fit import ExchangeFit, ExchangeForm, find_quantile_t, fit_exchange, fit_relative_line
from ibprof_lab.scaling.measured.call_costs import (
    MESSAGES,
    RING,
    CallGroup,
    MessageTimes,
    Shares,
    TimedRun,
    time_collective,
)

OfSize = Callable[[float], float]

LEAST_RUNS = 3
"""Smallest number of runs from which errors of predictions can be estimated."""

FARTHEST = 4.0
"""Predictions are valid up to this multiple of the largest recorded p, of the largest n, and of the longest message."""

WIDEST = 2.0
"""A prediction is refused if its interval reaches below half, or above twice, the predicted time."""


class OutOfRangeError(ValueError):
    """The requested prediction is outside the valid range; the message states the reason."""


@dataclass(frozen=True, slots=True)
class PredictedTime:
    """A predicted run time.

    Attributes:
        size, processes: n and p.
        seconds, low, high: wall time and its 95% interval.
        computing: time outside MPI, s.
        groups: operation, or `MESSAGES` -> seconds in its calls.
        beyond: p / the largest recorded number of processes; above 1 the prediction is an extrapolation.
    """

    size: float
    processes: int
    seconds: float
    low: float
    high: float
    computing: float
    groups: dict[str, float]
    beyond: float


@dataclass(frozen=True, slots=True)
class RunCheck:
    """Measured time of a run, and the time predicted from the other runs.

    Attributes:
        size, processes: n and p.
        measured, predicted: wall time, s.
    """

    name: str
    size: float
    processes: int
    measured: float
    predicted: float


@dataclass(frozen=True, slots=True)
class _Quantity:
    """A number of calls or bytes as a function of n and p.

    Attributes:
        fit: fit to quantity x `scale`(p); None if the quantity is always 0.
        others: further forms that fit about as well as `fit`, with their coefficients.
        scale: function of p. No form decreases with p, but the quantity may: the fit is to quantity x `scale`(p).
    """

    fit: ExchangeFit | None
    others: tuple[tuple[ExchangeForm, float], ...]
    scale: OfSize

    def at(self, size: float, processes: int) -> float:
        """Return the quantity."""
        return self.fit.exchange(size, processes) / self.scale(processes) if self.fit else 0.0

    def list_others(self, size: float, processes: int) -> list[float]:
        """Return the quantity by each form in `others`."""
        return [
            coefficient * float(form.evaluate(size, processes)) / self.scale(processes)
            for form, coefficient in self.others
        ]


@dataclass(frozen=True, slots=True)
class _Fit:
    """All fitted parameters of a set of runs.

    Attributes:
        computing: constant seconds, and seconds per operation.
        factors: operation, or `MESSAGES` -> measured time / modelled time.
    """

    computing: tuple[float, float]
    factors: dict[str, float]


@dataclass(slots=True)
class TimeModel:
    """A model of a program on a network.

    Attributes:
        operations: #op as a function of n.
        network: times of a message.
        share: slow-down of messages by shared links (see `call_costs`).
        most_processes: number of slots in the fabric; None if there is no limit.
        longest: longest measured message, bytes.
        checks: check of each run: its time, predicted from all other runs.

    Raises:
        ValueError: the runs do not show how times depend on the number of processes.
    """

    runs: Sequence[TimedRun]
    operations: OfSize
    network: MessageTimes
    share: Shares
    most_processes: int | None = None
    longest: float = math.inf
    checks: tuple[RunCheck, ...] = field(init=False)
    _calls: dict[str, _Quantity] = field(init=False)
    _sizes: dict[str, _Quantity] = field(init=False)
    _fit: _Fit = field(init=False)
    _errors: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        counts = {run.processes for run in self.runs}
        if len(self.runs) < LEAST_RUNS or len(counts) < LEAST_RUNS:
            raise ValueError(
                f"expected {LEAST_RUNS} runs or more with different numbers of processes, found {len(self.runs)} with "
                f"{', '.join(map(str, sorted(counts)))} processes: fewer runs do not show the error of a prediction"
            )
        if min(counts) < 2:
            raise ValueError("expected runs with 2 processes or more: a single process communicates nothing")
        for run in self.runs:
            if not run.seconds > 0:
                raise ValueError(f"{run.name}: expected a run that takes time, found one of {run.seconds:g} s")
            if not 0 < (found := self.operations(run.size)) < math.inf:
                raise ValueError(
                    f"{run.name}: expected operations above 0 for a problem size of {run.size:g}, found {found:g}"
                )
        names = dict.fromkeys(name for run in self.runs for name in run.groups)
        groups = {name: [_group(run, name) for run in self.runs] for name in names}
        self._calls, self._sizes = {}, {}
        for name, of_run in groups.items():
            try:
                self._calls[name] = _fit_quantity(self.runs, [each.calls for each in of_run], float)
                scale = _SCALES.get(name, float)
                self._sizes[name] = _fit_quantity(self.runs, [each.size for each in of_run], scale)
            except ValueError as error:
                raise ValueError(f"{name}: {error} with this operation") from error
        self._fit = self._fit_to(self.runs)
        checks, computing, communicating = [], [], []
        for left_out in self.runs:
            others = [run for run in self.runs if run is not left_out]
            if len({run.processes for run in others}) < 2:
                continue
            fit = self._fit_to(others)
            parts = self._predict(fit, left_out.size, left_out.processes)
            expected = math.fsum(parts[1].values())
            checks.append(
                RunCheck(left_out.name, left_out.size, left_out.processes, left_out.seconds, parts[0] + expected)
            )
            computing.append(_log_ratio(left_out.computing, parts[0]))
            communicating.append(_log_ratio(left_out.communicating, expected))
        self.checks = tuple(checks)
        self._errors = _spread(computing), _spread(communicating)

    @property
    def processes(self) -> tuple[int, int]:
        """Smallest and largest number of processes in the valid range of predictions."""
        counts = [run.processes for run in self.runs]
        most = int(FARTHEST * max(counts))
        return min(counts), most if self.most_processes is None else min(most, self.most_processes)

    @property
    def sizes(self) -> tuple[float, float]:
        """Smallest and largest problem size in the valid range of predictions."""
        found = [run.size for run in self.runs]
        return min(found), max(found) if len(set(found)) == 1 else FARTHEST * max(found)

    def predict(self, size: float, processes: int) -> PredictedTime:
        """Return the predicted time of a run.

        Raises:
            OutOfRangeError: the prediction is outside its valid range.
        """
        self._check_range(size, processes)
        computing, groups = self._predict(self._fit, size, processes)
        communicating = math.fsum(groups.values())
        most = max(run.processes for run in self.runs)
        largest = max(run.size for run in self.runs)
        distance = math.log2(max(processes / most, 1.0)) + math.log2(max(size / largest, 1.0))
        grown = math.sqrt(1 + distance**2)
        parts = ((computing, grown * self._errors[0]), (communicating, grown * self._errors[1]))
        forms = self._doubt_of_forms(size, processes)
        less = math.hypot(forms[0], *(value * -math.expm1(-error) for value, error in parts))
        more = math.hypot(forms[1], *(value * math.expm1(min(error, 50.0)) for value, error in parts))
        seconds = computing + communicating
        if seconds + more > WIDEST * seconds or (seconds - less) * WIDEST < seconds:
            raise OutOfRangeError(
                f"the recorded runs do not determine the time of {processes} processes: its 95% interval is "
                f"{seconds - less:.3g} to {seconds + more:.3g} s. The interval must be within 1/{WIDEST:g} to "
                f"{WIDEST:g} times the predicted time; record more runs, or larger ones"
            )
        return PredictedTime(
            size, processes, seconds, seconds - less, seconds + more, computing, groups, processes / most
        )

    def weak_size(self, processes: int) -> float:
        """Return the problem size that has as many operations per process as the smallest run.

        Raises:
            OutOfRangeError: this problem size is outside the valid range.
        """
        from scipy.optimize import brentq  # noqa: PLC0415  (slow to import)

        first = min(self.runs, key=lambda run: (run.processes, run.size))
        wanted = self.operations(first.size) / first.processes * processes
        least, most = self.sizes
        if not self.operations(least) * (1 - 1e-9) <= wanted <= self.operations(most) * (1 + 1e-9):
            raise OutOfRangeError(
                f"weak scaling to {processes} processes needs a problem size beyond the valid range, {least:g} to "
                f"{most:g}; record runs of larger sizes"
            )
        return float(brentq(lambda n: self.operations(n) - wanted, least * (1 - 1e-9), most * (1 + 1e-9)))

    def _check_range(self, size: float, processes: int) -> None:
        least, most = self.processes
        if not least <= processes <= most:
            limit = (
                f"the fabric has slots for {most}"
                if most == self.most_processes
                else f"recorded runs have {least} to {max(run.processes for run in self.runs)} processes; predictions "
                f"hold up to {FARTHEST:g} times the largest recorded number"
            )
            raise OutOfRangeError(f"{processes} processes are beyond the range of {least} to {most}: {limit}")
        smallest, largest = self.sizes
        if not smallest * (1 - 1e-6) <= size <= largest * (1 + 1e-6):
            raise OutOfRangeError(
                f"a problem size of {size:g} is beyond the range of {smallest:g} to {largest:g} for predictions"
            )
        for name, quantity in self._sizes.items():
            if (length := quantity.at(size, processes)) > FARTHEST * self.longest:
                raise OutOfRangeError(
                    f"{name} would move {length:,.0f} bytes in a call, and delays were measured up to "
                    f"{self.longest:,.0f}; measure longer messages"
                )

    def _fit_to(self, runs: Sequence[TimedRun]) -> _Fit:
        factors = {}
        for name in self._calls:
            groups = [(run.processes, _group(run, name)) for run in runs]
            timed = [(each.seconds, self._time_calls(name, p, each.calls, each.size)) for p, each in groups]
            ratios = [_log_ratio(seconds, modelled) for seconds, modelled in timed if seconds and modelled]
            factors[name] = math.exp(math.fsum(ratios) / len(ratios)) if ratios else 0.0
        shares = np.array([self.operations(run.size) / run.processes for run in runs])
        computing = np.array([max(run.computing, 1e-9) for run in runs])
        return _Fit(fit_relative_line(shares, computing, float(shares.max())), factors)

    def _predict(self, fit: _Fit, size: float, processes: int) -> tuple[float, dict[str, float]]:
        """Return seconds of computing, and (operation, or `MESSAGES`) -> seconds in its calls."""
        constant, each = fit.computing
        groups = {
            name: factor
            * self._time_calls(
                name, processes, self._calls[name].at(size, processes), self._sizes[name].at(size, processes)
            )
            for name, factor in fit.factors.items()
        }
        return constant + each * self.operations(size) / processes, groups

    def _doubt_of_forms(self, size: float, processes: int) -> tuple[float, float]:
        """Return the seconds by which forms in `_Quantity.others` can shorten, and lengthen, the prediction."""
        less = more = 0.0
        for name, factor in self._fit.factors.items():
            calls, length = self._calls[name], self._sizes[name]
            now = calls.at(size, processes), length.at(size, processes)
            others = [(each, now[1]) for each in calls.list_others(size, processes)]
            others += [(now[0], each) for each in length.list_others(size, processes)]
            base = self._time_calls(name, processes, *now)
            changes = [factor * (self._time_calls(name, processes, *other) - base) for other in others]
            less += max(0.0, -min(changes, default=0.0))
            more += max(0.0, max(changes, default=0.0))
        return less, more

    def _time_calls(self, name: str, processes: int, calls: float, size: float) -> float:
        if name != MESSAGES:
            return calls * time_collective(name, processes, size, self.network, self.share)
        start, moving = self.network.times(size)
        return calls * (start + moving * self.share(RING, processes))


_SCALES: dict[str, OfSize] = {"ALLTOALL": lambda processes: processes * processes}
"""Operation -> `_Quantity.scale` for its bytes per call; for all other operations, the scale is p. An all-to-all's
blocks shrink as 1 / p^2."""


def _group(run: TimedRun, name: str) -> CallGroup:
    return run.groups.get(name, CallGroup(0, 0, 0))


def _fit_quantity(runs: Sequence[TimedRun], values: Sequence[float], scale: OfSize) -> _Quantity:
    if not any(values):
        return _Quantity(None, (), scale)
    sizes, processes = [run.size for run in runs], [run.processes for run in runs]
    scaled = np.array([value * scale(run.processes) for run, value in zip(runs, values, strict=True)])
    fit = fit_exchange(sizes, processes, scaled.tolist())
    assert fit is not None
    others = []
    for form in fit.alternatives:
        shaped = np.array([float(form.evaluate(n, p)) for n, p in zip(sizes, processes, strict=True)])
        usable = (shaped > 0) & (scaled > 0)
        if usable.any():
            others.append((form, float(np.exp(np.log(scaled[usable] / shaped[usable]).mean()))))
    return _Quantity(fit, tuple(others), scale)


def _log_ratio(measured: float, predicted: float) -> float:
    least = 1e-9
    return math.log(max(measured, least) / max(predicted, least))


def _spread(errors: Sequence[float]) -> float:
    """Return the half width of the 95% interval of log(measured time / predicted time) for a further run."""
    count = len(errors)
    scatter = math.sqrt(math.fsum(error**2 for error in errors) / count)
    return find_quantile_t(count - 1) * scatter if count > 1 else math.inf
