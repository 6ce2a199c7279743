# SPDX-License-Identifier: Apache-2.0
"""The analytic model: run time = computing time + communication time. For each kernel, there are exact counts and the
slides' approximate formulas.

"Slide" refers to H. Kredel, S. Richling, J. P. Kruse, E. Strohmaier and H. G. Kruse, "A simple concept for the
performance analysis of cluster-computing", ISC'13. The quantities:

    #op  arithmetic operations [Flop]           l_peak  peak of one processing unit [Flop/s]
    #b   bytes of data involved [Byte]          b_c     bandwidth of the network [Byte/s]
    #x   bytes communicated [Byte]              p       processing units
    a = #op / #b, a* = l_peak / b_c [Flop/Byte]    r = #b / #x, x = (1/p) (a/a*) r [-]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Exchange = Callable[[float], float]
"""Bytes communicated between p processing units, #x(p)."""

_MOST_PROCESSES = 1e12
"""Upper limit of p in the search for an optimum, far above any machine."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Hardware parameters (slide 5).

    Attributes:
        peak: l_peak, peak of one processing unit, in Flop/s.
        bandwidth: b_c, bandwidth of the network, in Byte/s.
    """

    peak: float
    bandwidth: float

    @property
    def intensity(self) -> float:
        """The hardware's computational intensity a* = l_peak / b_c, in Flop/Byte (slide 10)."""
        return self.peak / self.bandwidth


@dataclass(frozen=True, slots=True)
class Work:
    """Software parameters (slide 5) of one problem size.

    Attributes:
        operations: #op, in Flop.
        data: #b, in Byte.
        exchange: #x(p), in Byte, for real p >= 1.
    """

    operations: float
    data: float
    exchange: Exchange

    @property
    def intensity(self) -> float:
        """The software's computational intensity a = #op / #b, in Flop/Byte (slide 10)."""
        return self.operations / self.data


@dataclass(frozen=True, slots=True)
class Optimum:
    """Limits of scaling.

    Attributes:
        p_half: number of processing units with which each unit reaches half of its peak, x = 1 (slide 12).
        p_max: number of processing units with the largest total performance (slide 12).
        l_max: largest performance, in Flop/s.

    A limit that does not exist is infinite, for example without communication.
    """

    p_half: float
    p_max: float
    l_max: float


def inverse_communication_intensity(work: Work, p: float) -> float:
    """Return r = #b / #x, data per communicated byte, for p processing units (slide 10); infinite if #x is 0."""
    exchanged = work.exchange(p)
    return work.data / exchanged if exchanged else math.inf


def balance_at_one(work: Work, cluster: Cluster, p: float) -> float:
    """Return p x = (a / a*) r(p), where x is `balance` (slide 12)."""
    return work.intensity / cluster.intensity * inverse_communication_intensity(work, p)


def balance(work: Work, cluster: Cluster, p: float) -> float:
    """Return x = (1/p) (a / a*) r(p), computing time / communication time (slide 10, homogeneous)."""
    return balance_at_one(work, cluster, p) / p


def run_time(work: Work, cluster: Cluster, p: float) -> float:
    """Return the time t = #op / (p l_peak) + #x / b_c, a lower bound, in seconds (slides 9 and 10)."""
    return work.operations / (p * cluster.peak) + work.exchange(p) / cluster.bandwidth


def performance(work: Work, cluster: Cluster, p: float) -> float:
    """Return l = #op / t, which is p l_peak x / (1 + x), in Flop/s (slide 11)."""
    return work.operations / run_time(work, cluster, p)


def speed_up(work: Work, cluster: Cluster, p: float) -> float:
    """Return S = (1 + x1) / (1 + x1 / p) with x1 of `balance_at_one` (slide 11, homogeneous).

    The slide's S is relative to a run on one unit with the communication time of p units. Without communication, S is
    p.
    """
    at_one = balance_at_one(work, cluster, p)
    return (1 + at_one) / (1 + at_one / p) if math.isfinite(at_one) else p


def find_optimum(work: Work, cluster: Cluster) -> Optimum:
    """Find p_half and p_max of slide 12 numerically, without the slide's approximations.

    p_half is the root of x(p) = 1; p_max is the p with the smallest t(p), for real p >= 1. p_half is 1 if the
    communication of one unit takes longer than its computing.
    """
    from scipy.optimize import brentq, minimize_scalar  # noqa: PLC0415  (slow to import)

    def excess(log_p: float) -> float:
        p = math.exp(log_p)
        return math.log(work.operations / (p * cluster.peak)) - math.log(work.exchange(p) / cluster.bandwidth)

    end = math.log(_MOST_PROCESSES)
    begin = math.log1p(1e-9)  # slightly above p = 1: at p = 1, #x can be 0, which has no logarithm
    if not work.exchange(_MOST_PROCESSES) or excess(end) > 0:
        p_half = math.inf
    elif work.exchange(1 + 1e-9) and excess(begin) <= 0:
        p_half = 1.0
    else:
        p_half = math.exp(brentq(excess, begin, end, xtol=1e-14))
    least = minimize_scalar(
        lambda log_p: math.log(run_time(work, cluster, math.exp(log_p))),
        bounds=(0.0, end),
        method="bounded",
        options={"xatol": 1e-10},
    )
    if end - least.x < 1e-3:
        return Optimum(p_half, math.inf, math.inf)
    p_max = math.exp(least.x)
    if run_time(work, cluster, 1.0) <= run_time(work, cluster, p_max):
        p_max = 1.0
    return Optimum(p_half, p_max, performance(work, cluster, p_max))


# -- processing units with different work ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkShare:
    """Work and speed of processing unit k (slides 7 to 11).

    Attributes:
        operations: omega_k, the unit's fraction of #op.
        data: delta_k, the unit's fraction of #b.
        peak: l_peak_k, in Flop/s.
        intensity: a_k = omega_k #op / (delta_k #b), in Flop/Byte.
        balance: x_k = omega_k (a / a*_k) r.
        time: omega_k #op / l_peak_k (1 + 1 / x_k), in seconds.
    """

    operations: float
    data: float
    peak: float
    intensity: float
    balance: float
    time: float


@dataclass(frozen=True, slots=True)
class WorkShares:
    """Results of the model for processing units of different speed.

    Attributes:
        units: work and speed of each processing unit.
        slowest: index of the unit that determines the time.
        time: t, time of the slowest unit, in seconds (slide 10).
        performance: #op / t, in Flop/s.
        speed_up: T / t (slide 11); T is the time if the slowest unit does all work, with the same communication.
    """

    units: tuple[WorkShare, ...]
    slowest: int
    time: float
    performance: float
    speed_up: float


def share_work(
    operations: float,
    data: float,
    exchanged: float,
    bandwidth: float,
    peaks: Sequence[float],
    operation_shares: Sequence[float] | None = None,
    data_shares: Sequence[float] | None = None,
) -> WorkShares:
    """Evaluate the model for processing units of different speed (slides 7 to 11).

    Args:
        operations, data, exchanged: #op in Flop, #b and #x in Byte.
        bandwidth: b_c, in Byte/s.
        peaks: l_peak_k of each unit, in Flop/s.
        operation_shares, data_shares: omega_k and delta_k of each unit, each with the sum 1; None for equal shares.

    Raises:
        ValueError: a list of shares does not have the length of `peaks`, has a negative share, or does not add up to 1.
    """
    p = len(peaks)
    omega = list(operation_shares or [1 / p] * p)
    delta = list(data_shares or omega)
    for name, shares in (("operations", omega), ("data", delta)):
        if len(shares) != p:
            raise ValueError(f"expected {p} shares of {name}, one for each peak, found {len(shares)}")
        if min(shares) < 0 or not math.isclose(sum(shares), 1, rel_tol=1e-6):
            raise ValueError(f"expected shares of {name} that add up to 1, found a sum of {sum(shares):.9g}")
    communicating = exchanged / bandwidth
    units = []
    for o, d, peak in zip(omega, delta, peaks, strict=True):
        computing = o * operations / peak
        units.append(
            WorkShare(
                operations=o,
                data=d,
                peak=peak,
                intensity=o * operations / (d * data) if d else math.inf,
                balance=computing / communicating if communicating else math.inf,
                time=computing + communicating,
            )
        )
    slowest = max(range(p), key=lambda k: units[k].time)
    time = units[slowest].time
    alone = operations / peaks[slowest] + communicating
    return WorkShares(tuple(units), slowest, time, operations / time, alone / time)


WORD = 8.0
"""w, bytes of a number in double precision."""

ALPHA = 1 / 3
"""Factor alpha of Linpack's communication (slide 19)."""

PRINTED_TOO_SMALL = 16
"""Slide 17 prints x = (3/2048) n / sqrt(p), but its #op, #b and #x give (3/128) n / sqrt(p), 16 times as much. The
reason is unknown."""


@dataclass(frozen=True, slots=True)
class KernelFormula:
    """An approximate formula on the slides.

    Attributes:
        quantity: symbol of the quantity.
        value: value for the given problem and cluster.
    """

    quantity: str
    text: str
    slide: int
    value: float


@dataclass(frozen=True, slots=True)
class AnalyticKernel:
    """A kernel at one problem size on one cluster.

    Attributes:
        slide: number of the slide that defines the kernel.
        exact: exact counts of operations, data and exchange.
        approximate: the slides' approximations of these counts.
        closed: optimum by the slides' closed formulas.
        formulas: the slides' formulas with their values.
        notes: notes on the formulas, a sentence each.
    """

    name: str
    slide: int
    exact: Work
    approximate: Work
    closed: Optimum
    formulas: tuple[KernelFormula, ...]
    notes: tuple[str, ...] = ()


def scalar_product(n: float, cluster: Cluster, word: float = WORD) -> AnalyticKernel:
    """Return the kernel of the scalar product of two vectors of n numbers (slide 15)."""
    data = 2 * n * word
    # This y is y * c(n) of slide 12's equation x = y * c(n) / (d(p) * p), with d(p) = p.
    y = 2 * n / word * cluster.bandwidth / cluster.peak
    p_best = math.sqrt(y)
    approximate = Work(2 * n, data, lambda p: p * word)
    return AnalyticKernel(
        name="scalar",
        slide=15,
        exact=Work(2 * n - 1, data, lambda p: p * word),
        approximate=approximate,
        closed=Optimum(p_best, p_best, performance(approximate, cluster, p_best)),
        formulas=(
            KernelFormula("#op", "2 n", 15, 2 * n),
            KernelFormula("#b", "2 n w", 15, data),
            KernelFormula("p x", "(2 n / w) (b_c / l_peak); (3/64) n for bwGRiD", 15, y),
            KernelFormula("p_1/2", "sqrt(p x): y r(n, p) = p", 12, p_best),
            KernelFormula("p_max", "sqrt(p x): p^2 d'(p) = y c(n), d(p) = p", 12, p_best),
        ),
    )


def matrix_product(n: float, cluster: Cluster, word: float = WORD) -> AnalyticKernel:
    """Return the kernel of Cannon's product of two n x n matrices on a sqrt(p) x sqrt(p) grid (slide 17)."""
    data = 2 * n**2 * word
    derived = n / word * cluster.bandwidth / cluster.peak
    printed = derived / PRINTED_TOO_SMALL
    p_half, p_max = printed ** (2 / 3), (2 * printed) ** (2 / 3)
    return AnalyticKernel(
        name="matrix",
        slide=17,
        exact=Work(2 * n**3 - n**2, data, lambda p: 2 * n**2 * (math.sqrt(p) - 1) * word),
        approximate=Work(2 * n**3, data, lambda p: 2 * n**2 * math.sqrt(p) * word),
        closed=Optimum(p_half, p_max, cluster.peak * printed / (math.sqrt(p_max) + printed / p_max)),
        formulas=(
            KernelFormula("#op", "2 n^3", 17, 2 * n**3),
            KernelFormula("#b", "2 n^2 w", 17, data),
            KernelFormula("sqrt(p) x, printed", "(n / w) (b_c / l_peak) / 16; (3/2048) n for bwGRiD", 17, printed),
            KernelFormula("sqrt(p) x, derived", "(n / w) (b_c / l_peak); (3/128) n for bwGRiD", 17, derived),
            KernelFormula("p_1/2, printed x", "(sqrt(p) x)^(2/3): y r(n, p) = p", 12, p_half),
            KernelFormula("p_1/2, derived x", "(sqrt(p) x)^(2/3): y r(n, p) = p", 12, derived ** (2 / 3)),
            KernelFormula("p_max, printed x", "(2 sqrt(p) x)^(2/3): p^2 d'(p) = y c(n), d(p) = sqrt(p)", 12, p_max),
            KernelFormula("p_max, derived x", "(2 sqrt(p) x)^(2/3): p^2 d'(p) = y c(n), d(p) = sqrt(p)", 12,
                    (2 * derived) ** (2 / 3)),
        ),
        notes=(
            f"slide 17 prints an x that is {PRINTED_TOO_SMALL} times smaller than its own #op, #b and #x give. Which "
            "x the authors meant is unknown: both x are shown, and the exact form has the derived x",
        ),
    )  # fmt: skip


def linpack(n: float, cluster: Cluster, word: float = WORD, alpha: float = ALPHA) -> AnalyticKernel:
    """Return the kernel of Linpack, the solution of a dense system of n equations (slides 19 and 21)."""
    data = 2 * n**2 * word

    def exchange(p: float) -> float:
        return 3 * alpha * (1 + math.log2(p) / 12) * n**2 * word

    y = n / (3 * word) * cluster.bandwidth / cluster.peak
    p_half = y / (3 * alpha)
    p_max = 24 * math.log(2) * p_half
    l_max = cluster.peak * p_half * 9 / 10
    work = Work(2 / 3 * n**3, data, exchange)
    return AnalyticKernel(
        name="linpack",
        slide=19,
        exact=work,
        approximate=work,
        closed=Optimum(p_half, p_max, l_max),
        formulas=(
            KernelFormula("#op", "(2/3) n^3", 19, work.operations),
            KernelFormula("#b", "2 n^2 w", 19, data),
            KernelFormula("y", "n b_c / (3 w l_peak); n/128 for bwGRiD", 19, y),
            KernelFormula("p_1/2", "y / (3 alpha)", 21, p_half),
            KernelFormula("p_max", "24 ln(2) p_1/2", 21, p_max),
            KernelFormula("l_max", "(9/10) l_peak y / (3 alpha)", 21, l_max),
        ),
        notes=(
            "slide 21's p_1/2 leaves out the factor 2 / (1 + log2(p) / 12) of r, and its l_max rounds the exact maximum"
            " down to 9/10 of l_peak p_1/2; its p_max is exact",
        ),
    )


KERNELS: dict[str, Callable[[float, Cluster, float], AnalyticKernel]] = {
    "scalar": scalar_product,
    "matrix": matrix_product,
    "linpack": linpack,
}
"""Kernels by command name."""
