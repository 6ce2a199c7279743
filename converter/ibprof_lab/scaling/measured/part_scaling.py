# SPDX-License-Identifier: Apache-2.0
"""Seconds as a function of the number of processes p: forms of few terms, and random draws of all forms that fit.

A form is one or two of the terms p^a log2(p)^b, with coefficients of at least 0. Cross-validation gives the weight of a
form: each number of processes is predicted from the others. Each random draw chooses a form by weight, and a variance
of the noise. The draw then fits the coefficients to the runs plus this noise. All draws together show the uncertainty
of the form, of its coefficients, and of a run.

Source: A. Calotoiu, T. Hoefler, M. Poke, F. Wolf, "Using automated performance modeling to find scalability bugs in
complex codes", SC'13: the normal form and its choice by cross-validation. J. A. Hoeting, D. Madigan, A. E. Raftery,
C. T. Volinsky, "Bayesian Model Averaging: A Tutorial", Statistical Science 14(4), 1999: the average over forms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Term = tuple[float, int]

_CONSTANT, _DIVIDED = (0.0, 0), (-1.0, 0)
_TERMS: tuple[Term, ...] = (
    _DIVIDED, (-1.5, 0), (-1.0, 1), (-2 / 3, 0), (-0.5, 0), (0.0, 1), (0.5, 0), (1.0, 0), (1.0, 1), (2.0, 0),
)  # fmt: skip
"""Exponents a and b of each term.

Divided work takes p^-1, or p^-1.5 if it also fits caches better. Surfaces of blocks take p^(-2/3) in 3 dimensions, and
p^(-1/2) in 2. Trees take log2(p), and a message to each process takes p."""

FORMS: tuple[tuple[Term, ...], ...] = (
    (_CONSTANT,),
    *((term,) for term in _TERMS),
    *((_CONSTANT, term) for term in _TERMS),
    *((_DIVIDED, term) for term in ((0.0, 1), (0.5, 0), (1.0, 0), (1.0, 1), (2.0, 0))),
)

_LEAST_NOISE = 0.03
"""Equal runs are assumed to scatter by at least this share."""

_NOISE_RUNS = 2
"""The assumed scatter counts as much as this number of runs."""


@dataclass(frozen=True, slots=True)
class PartDraws:
    """Draws of a part's seconds.

    Attributes:
        form: the form with the largest weight, with its coefficients, such as `0.1 + 2 p^-1`.
        seconds: float64 [draw, p], without the noise of a run.
        noise: float64 [draw], relative standard deviation of a run.
    """

    form: str
    seconds: Floats
    noise: Floats


def draw_part(
    processes: Floats, seconds: Floats, floor: Floats, noise: float, at: Floats, ranks: Floats, rng: np.random.Generator
) -> PartDraws:
    """Return draws of seconds at other numbers of processes.

    Args:
        processes, seconds: values of each run.
        floor: smallest seconds that matter, for each run. An error is relative to `seconds` or `floor`, whichever is
            larger.
        noise: relative scatter between equal runs.
        at: numbers of processes to evaluate. The seconds at the last number give the order of growth of the forms.
        ranks: float64 [draw], 0 to 1: position of each draw's form in the order of growth, 1 for the fastest growing
            form. Two parts that are drawn with the same `ranks` grow together: nothing shows that their errors would
            cancel.
    """
    sizes = np.unique(processes)
    usable = [form for form in FORMS if len(form) <= len(sizes)]
    scale = np.maximum(seconds, floor)
    target = (seconds / scale)[None]
    scaled = [_evaluate(form, processes) / scale for form in usable]
    found = [_fit(columns, target)[0] for columns in scaled]
    misfit = np.array([(((c @ x) - target[0]) ** 2).sum() for c, x in zip(found, scaled, strict=True)])
    assumed = max(noise, _LEAST_NOISE) ** 2
    if len(sizes) > 2:
        scores = np.array([_cross_validate(columns, target, processes) for columns in scaled])
    else:  # two sizes cannot be cross-validated: all forms that pass through both count
        scores = misfit / len(processes)
    weights = (scores + _LEAST_NOISE**2) ** (-len(sizes) / 2)
    weights /= weights.sum()
    draws = len(ranks)
    order = np.argsort([float((c @ _evaluate(form, at[-1:]))[0]) for c, form in zip(found, usable, strict=True)])
    chosen = order[np.minimum(np.searchsorted(np.cumsum(weights[order]), ranks), len(order) - 1)]
    freedom = len(processes) - np.array([min(len(form), len(sizes)) for form in usable]) + _NOISE_RUNS
    variance = (np.maximum(misfit, scores * freedom) + _NOISE_RUNS * assumed) / freedom
    spread = np.sqrt(variance[chosen] * freedom[chosen] / rng.chisquare(freedom[chosen]))
    drawn = np.zeros((draws, len(at)))
    for number in np.unique(chosen):
        rows = np.flatnonzero(chosen == number)
        expected = found[number] @ scaled[number]
        runs = expected + spread[rows, None] * rng.standard_normal((len(rows), len(processes)))
        drawn[rows] = _fit(scaled[number], runs) @ _evaluate(usable[number], at)
    best = int(weights.argmax())
    return PartDraws(_describe(usable[best], found[best]), drawn, spread)


def _evaluate(form: Iterable[Term], processes: Floats) -> Floats:
    """Return the terms' values: float64 [term, p]."""
    return np.stack([processes**power * np.log2(processes) ** logs for power, logs in form])


def _fit(columns: Floats, target: Floats) -> Floats:
    """Return coefficients of at least 0 with least squares, [row, term], for one or two columns [term, run]."""
    products, norms = target @ columns.T, (columns**2).sum(axis=1)
    alone: Floats = np.maximum(products / np.maximum(norms, 1e-300), 0)
    if len(columns) == 1:
        return alone
    mixed = float(columns[0] @ columns[1])
    determinant = norms[0] * norms[1] - mixed**2
    is_singular = determinant <= 1e-12 * norms[0] * norms[1]
    both = (products * norms[::-1] - products[:, ::-1] * mixed) / (np.inf if is_singular else determinant)
    # Where the free solution has a coefficient below 0, one term alone is best.
    gains = alone * products
    single = np.where(gains == gains.max(axis=1, keepdims=True), alone, 0)
    single[:, 1] = np.where((single > 0).all(axis=1), 0, single[:, 1])
    found: Floats = np.where((both < 0).any(axis=1, keepdims=True) | is_singular, single, both)
    return found


def _cross_validate(columns: Floats, target: Floats, processes: Floats) -> float:
    """Return the mean square of the errors of predictions at each number of processes from all other numbers."""
    errors = []
    for size in np.unique(processes):
        rest = processes != size
        found = _fit(columns[:, rest], target[:, rest])[0]
        errors.append((((found @ columns)[~rest] - target[0, ~rest]) ** 2).mean())
    return float(np.mean(errors))


def _describe(form: Iterable[Term], coefficients: Floats) -> str:
    names = []
    for (power, logs), coefficient in zip(form, coefficients.tolist(), strict=True):
        factor = {0.0: "", 1.0: "p"}.get(power, f"p^{power:.3g}")
        if coefficient:
            names.append(" ".join(filter(None, [f"{coefficient:.3g}", factor, "log2(p)" if logs else ""])))
    return " + ".join(names) or "0"
