# SPDX-License-Identifier: Apache-2.0
"""Fit c n^i g(p) to the bytes #x that recorded runs exchange, with confidence intervals.

Each function g is the cost of a common algorithm. The performance model normal form has the same functions (Calotoiu et
al., "Using automated performance modeling to find scalability bugs in complex codes", SC'13). If several forms fit the
recorded bytes about equally well, all are reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import Direction, Kind, Profile, Source
from ibprof_lab.lab_choices import HOSTS, RANKS

Floats = npt.NDArray[np.float64]

_POWERS_OF_SIZE = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)

_FORMS: dict[str, Callable[[Floats], Floats]] = {
    "1": np.ones_like,
    "log2(p)": np.log2,
    "sqrt(p)": np.sqrt,
    "(sqrt(p) - 1)": lambda p: np.sqrt(p) - 1,
    "(p - 1)": lambda p: p - 1,
    "p": lambda p: p,
    "p log2(p)": lambda p: p * np.log2(p),
    "sqrt(p) (sqrt(p) - 1)": lambda p: p - np.sqrt(p),
    "(p - 1) / p": lambda p: (p - 1) / p,
    "p sqrt(p)": lambda p: p**1.5,
    "p (p - 1)": lambda p: p * (p - 1),
    "p^2": lambda p: p**2,
}

_CONFIDENCE = 0.95
_AS_GOOD = 2.0
"""Report other forms whose leave-one-out error is at most this multiple of the best form's error."""

_ROUNDING = 1e-6
"""Forms with at most this leave-one-out error count as exact; all exact forms are reported."""

WHOLE = "*"
"""Name in place of a region's name, for the sum over all regions."""


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A value and its 95% confidence interval; with too few points, `low` and `high` are not finite."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ExchangeForm:
    """The form c n^i g(p).

    Attributes:
        power: the exponent i.
        name: name of g.
    """

    power: float
    name: str

    def evaluate(self, n: Floats | float, p: Floats | float) -> Floats:
        """Return n^i g(p), dimensionless."""
        shaped: Floats = np.asarray(n, float) ** self.power * _FORMS[self.name](np.asarray(p, float))
        return shaped

    def __str__(self) -> str:
        size = {0.0: "", 1.0: "n "}.get(self.power, f"n^{self.power:g} ")
        return (size + ("" if self.name == "1" and size else self.name)).strip()


@dataclass(frozen=True, slots=True)
class ExchangeFit:
    """A fitted #x(n, p).

    Attributes:
        form: best-fitting form.
        coefficient: the coefficient c, in Byte.
        scatter: standard deviation of log(measured bytes / fitted bytes).
        points: number of runs that exchanged bytes.
        alternatives: other forms that are reported (see `_AS_GOOD`).
        size_exponent, process_exponent: exponents i and j of a fitted power law n^i p^j, for comparison with `form`.
            None if n or p is constant, or if there are too few points.
        sizes, processes: smallest and largest measured n and p.
    """

    form: ExchangeForm
    coefficient: ConfidenceInterval
    scatter: float
    points: int
    alternatives: tuple[ExchangeForm, ...]
    size_exponent: ConfidenceInterval | None
    process_exponent: ConfidenceInterval | None
    sizes: tuple[float, float]
    processes: tuple[int, int]

    def exchange(self, n: float, p: float) -> float:
        """Return #x(n, p), in Byte."""
        return self.coefficient.value * float(self.form.evaluate(n, p))

    def spread(self) -> float:
        """Return the upper 95% bound of measured bytes / fitted bytes for a further run; nan for a single point."""
        if self.scatter < _ROUNDING:
            return 1.0
        return math.exp(find_quantile_t(self.points - 1) * self.scatter * math.sqrt(1 + 1 / self.points))


def fit_exchange(sizes: Sequence[float], processes: Sequence[int], exchanged: Sequence[float]) -> ExchangeFit | None:
    """Find the form that best fits the runs' bytes.

    If runs with one process exchange no bytes, the form must have g(1) = 0. If these runs exchange bytes, the form must
    have g(1) > 0.

    Args:
        sizes, processes, exchanged: n, p and bytes of each run.

    Returns:
        The fit. None if some runs had several processes, but no run exchanged bytes.

    Raises:
        ValueError: fewer than two different numbers of processes are usable, or only some runs with one process
            exchange bytes. Runs of several processes that exchange no bytes are not usable.
    """
    n, p, x = (np.asarray(each, float) for each in (sizes, processes, exchanged))
    has_bytes = x > 0
    if not has_bytes.any() and (p > 1).any():
        return None
    silent_alone = bool(np.any(~has_bytes & (p == 1)))
    spoken = p[has_bytes]
    if len(np.unique(spoken)) + silent_alone < 2:
        raise ValueError("expected runs with at least two different numbers of processes")
    points = n[has_bytes], spoken, np.log(x[has_bytes])
    powers = _POWERS_OF_SIZE if len(np.unique(points[0])) > 1 else (0.0,)
    scored = []
    for name, form_of in _FORMS.items():
        at_one = float(form_of(np.ones(1))[0])
        if (at_one and silent_alone) or (not at_one and (spoken == 1).any()):
            continue
        scored += [(_score(ExchangeForm(power, name), *points), ExchangeForm(power, name)) for power in powers]
    if not scored:
        raise ValueError("expected bytes in all single-process runs or in none, found both")
    best_score, best = min(scored, key=lambda each: each[0])
    bound = max(best_score * _AS_GOOD, _ROUNDING)
    logs = points[2] - np.log(best.evaluate(points[0], spoken))
    count = len(logs)
    scatter = float(np.std(logs, ddof=1)) if count > 1 else math.nan
    off = find_quantile_t(count - 1) * scatter / math.sqrt(count) if count > 1 else math.nan
    middle = float(np.mean(logs))
    exponents = _free_exponents(*points)
    return ExchangeFit(
        form=best,
        coefficient=ConfidenceInterval(math.exp(middle), math.exp(middle - off), math.exp(middle + off)),
        scatter=scatter,
        points=count,
        alternatives=tuple(form for score, form in scored if score <= bound and form != best),
        size_exponent=exponents[0],
        process_exponent=exponents[1],
        sizes=(float(n.min()), float(n.max())),
        processes=(int(p.min()), int(p.max())),
    )


def _score(form: ExchangeForm, n: Floats, p: Floats, log_x: Floats) -> float:
    """Return the leave-one-out error of a form: the RMS deviation of each point from the fit to the other points."""
    residual = log_x - np.log(form.evaluate(n, p))
    residual = residual - residual.mean()
    count = len(residual)
    return float(np.sqrt(np.mean(residual**2))) * count / max(count - 1, 1)


def _free_exponents(n: Floats, p: Floats, log_x: Floats) -> tuple[ConfidenceInterval | None, ConfidenceInterval | None]:
    columns = [np.log(each) if len(np.unique(each)) > 1 else None for each in (n, p)]
    varied = [column for column in columns if column is not None]
    matrix = np.stack([np.ones_like(n), *varied], axis=1)
    free = matrix.shape[1]
    if not varied or len(log_x) <= free or np.linalg.matrix_rank(matrix) < free:
        return None, None
    found = np.linalg.lstsq(matrix, log_x, rcond=None)[0]
    variance = float(np.sum((log_x - matrix @ found) ** 2)) / (len(log_x) - free)
    half = find_quantile_t(len(log_x) - free) * np.sqrt(variance * np.diag(np.linalg.inv(matrix.T @ matrix)))
    intervals = iter(
        [ConfidenceInterval(float(e), float(e - h), float(e + h)) for e, h in zip(found[1:], half[1:], strict=True)]
    )
    size, process = (next(intervals) if column is not None else None for column in columns)
    return size, process


def find_quantile_t(freedom: int) -> float:
    """Return the 97.5% quantile of Student's t for this number of degrees of freedom; infinite for 0."""
    from scipy.stats import t  # noqa: PLC0415  (slow to import)

    return float(t.ppf((1 + _CONFIDENCE) / 2, freedom)) if freedom > 0 else math.inf


def fit_relative_line(x: Floats, y: Floats, scale: float) -> tuple[float, float]:
    """Fit y = start + slope x with the least squared relative errors; return start and slope, both at least 0.

    Args:
        x, y: coordinates of the points; y above 0.
        scale: order of magnitude of x.
    """
    from scipy.optimize import nnls  # noqa: PLC0415  (slow to import)

    start, slope = nnls(np.stack([1 / y, x / scale / y], axis=1), np.ones(len(x)))[0]
    return float(start), float(slope) / scale


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """Bytes exchanged in one run.

    Attributes:
        size: problem size n.
        processes: p, ranks in MPI_COMM_WORLD.
        exchanged: (region, operation) -> bytes; entries with 0 bytes are left out.
        seconds: region -> wall time, the largest of all ranks; `WHOLE` -> time of the run.
        notes: sentences about data that was not recorded.
    """

    name: str
    size: float
    processes: int
    exchanged: dict[tuple[str, str], int]
    seconds: dict[str, float]
    notes: tuple[str, ...]

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of all visited regions, the longest time first."""
        return tuple(sorted((each for each in self.seconds if each != WHOLE), key=lambda each: -self.seconds[each]))

    def bytes_in(self, region: str) -> int:
        """Return the bytes exchanged in one region; `WHOLE` for all regions."""
        return sum(amount for (where, _), amount in self.exchanged.items() if region in (where, WHOLE))


def choose_ends(profiles: Sequence[Profile]) -> str:
    """Return `HOSTS`, to count bytes between hosts, if any profile has several hosts; else `RANKS`."""
    return HOSTS if any(len(profile.hosts) > 1 for profile in profiles) else RANKS


def sum_exchange(profile: Profile, size: float, between: str) -> RecordedExchange:
    """Return the bytes exchanged in a run.

    Args:
        size: problem size n.
        between: `HOSTS` counts bytes between hosts, `RANKS` bytes between ranks.
    """
    counters = profile.counters
    place = np.full(profile.world_size + 1, -1, np.int64)
    for rank in profile.ranks:
        place[rank.rank] = rank.host if between == HOSTS else rank.rank
    notes = []
    if between == RANKS:
        place[:-1] = np.arange(profile.world_size)
    mine = place[counters.rank]
    theirs = place[np.minimum(counters.peer, profile.world_size).astype(np.int64)]
    rows = (counters.kind == Kind.USER) & (counters.direction != Direction.RECEIVED) & (counters.source != Source.VERBS)
    rows &= (mine != theirs) | (theirs < 0)
    exchanged: dict[tuple[str, str], int] = {}
    for region, operation, amount in zip(
        counters.region[rows].tolist(), counters.operation[rows].tolist(), counters.bytes[rows].tolist(), strict=True
    ):
        key = profile.regions[region], profile.operations[operation]
        exchanged[key] = exchanged.get(key, 0) + amount
    if missing := profile.world_size - len(profile.ranks):
        notes.append(f"{missing} of {profile.world_size} ranks were not recorded: their bytes are missing")
    if lost := sum(rank.lost_bytes for rank in profile.ranks):
        notes.append(f"the peers of {lost} bytes are unknown: these bytes are left out")
    if profile.operations_asked:
        notes.append(f"only {profile.operations_asked} were recorded")
    return RecordedExchange(
        name=profile.name,
        size=size,
        processes=profile.world_size,
        exchanged=exchanged,
        seconds=_seconds(profile),
        notes=tuple(notes),
    )


def _seconds(profile: Profile) -> dict[str, float]:
    times = profile.region_times
    longest: dict[str, float] = {}
    for region, wall_ns in zip(times.region.tolist(), times.wall_ns.tolist(), strict=True):
        name = profile.regions[region]
        longest[name] = max(longest.get(name, 0.0), wall_ns / 1e9)
    spans = [rank.stop_ns - rank.start_ns - rank.off_ns for rank in profile.ranks if rank.stop_ns is not None]
    if spans:
        longest[WHOLE] = max(spans) / 1e9
    return longest
