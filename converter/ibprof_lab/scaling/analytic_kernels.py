# SPDX-License-Identifier: Apache-2.0
"""Kernels of the slides: scalar product, matrix product, Linpack; exact and approximate forms.

`kernel.exact` has the exact counts, `kernel.approximate` the slides' simplification. If the slides print a closed
form, `kernel.closed` evaluates it; tests compare it with the numerical solution of the approximate form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ibprof_lab.scaling.scaling_model import Cluster, Optimum, Work, performance

WORD = 8.0
"""w, bytes of a number in double precision."""

ALPHA = 1 / 3
"""Linpack's share of the communication (slide 19)."""

PRINTED_TOO_SMALL = 16
"""Slide 17 prints x = (3/2048) n / sqrt(p); its #op, #b and #x give (3/128) n / sqrt(p). Unresolved."""


@dataclass(frozen=True, slots=True)
class KernelFormula:
    """An approximation of the slides.

    Attributes:
        quantity: symbol of the quantity.
        text: the formula.
        slide: slide number.
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
        approximate: the slides' approximation of these counts.
        closed: the slides' optimum in closed form.
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
    """Return the scalar product of two vectors of n numbers (slide 15)."""
    data = 2 * n * word
    # y c(n) of slide 12: x = y c(n) / (d(p) p) with d(p) = p.
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
    """Return the product of two n x n matrices by Cannon's algorithm on a sqrt(p) x sqrt(p) grid (slide 17)."""
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
            "one the authors meant is unknown: both are shown, and the exact form follows the derivation",
        ),
    )  # fmt: skip


def linpack(n: float, cluster: Cluster, word: float = WORD, alpha: float = ALPHA) -> AnalyticKernel:
    """Return the solution of a dense system of n equations (slides 19 and 21)."""
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
            " down to 9/10 of l_peak p_1/2; p_max is the exact one",
        ),
    )


KERNELS: dict[str, Callable[[float, Cluster, float], AnalyticKernel]] = {
    "scalar": scalar_product,
    "matrix": matrix_product,
    "linpack": linpack,
}
"""Kernels by command name."""
