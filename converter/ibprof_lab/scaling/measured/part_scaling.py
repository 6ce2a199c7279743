# SPDX-License-Identifier: Apache-2.0
"""Fits of time as a function of the number of processes p, by random draws of a formula (form) and its coefficients.

A form is one or two of the terms p^a log2(p)^b (1 - 1/p)^c, with coefficients of at least 0. The weight of a form is
computed by cross-validation, which leaves out one number of processes at a time. Each draw chooses a form at random by
weight, adds random noise to the fitted times, and fits the coefficients again. The draws thus contain the uncertainty
of the form, of the coefficients, and of a single run's time.

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
Term = tuple[float, int, int]

_CONSTANT, _DIVIDED, _OTHERS = (0.0, 0, 0), (-1.0, 0, 0), (0.0, 0, 1)
_GROWING: tuple[Term, ...] = ((0.0, 1, 0), (0.5, 0, 0), (1.0, 0, 0), (1.0, 1, 0), (2.0, 0, 0))
_TERMS: tuple[Term, ...] = (_DIVIDED, (-1.5, 0, 0), (-1.0, 1, 0), (-2 / 3, 0, 0), (-0.5, 0, 0), *_GROWING)
"""Exponents a, b and c of each term.

Examples: divided work has the term p^-1, and p^-1.5 if its parts fit caches better. Surfaces of blocks have the term
p^(-2/3) in 3 dimensions, and p^(-1/2) in 2. Trees have the term log2(p), and a message to each process has the term
p. If all other ranks wait for one rank, the mean wait has the term 1 - 1/p."""

FORMS: tuple[tuple[Term, ...], ...] = (
    (_CONSTANT,),
    *((term,) for term in _TERMS),
    *((_CONSTANT, term) for term in _TERMS),
    *((_DIVIDED, term) for term in (*_GROWING, _OTHERS)),
    (_OTHERS,),
)

_LEAST_NOISE = 0.03
"""Smallest assumed relative standard deviation of run times between equal runs."""

_NOISE_RUNS = 2
"""The estimate of a form's variance counts the assumed noise like this number of measured runs."""


@dataclass(frozen=True, slots=True)
class PartDraws:
    """Random draws of one part of the run time.

    Attributes:
        form: text of the form with the largest weight, such as `0.1 + 2 p^-1`.
        seconds: float64 [draw, p], fitted times without the noise of a single run.
        noise: float64 [draw], relative standard deviation of a single run.
    """

    form: str
    seconds: Floats
    noise: Floats


def draw_part(
    processes: Floats, seconds: Floats, floor: Floats, noise: float, at: Floats, ranks: Floats, rng: np.random.Generator
) -> PartDraws:
    """Return random draws of the seconds at the numbers of processes `at`.

    Args:
        processes, seconds: number of processes and time of each run.
        floor: time of each run that is negligible, seconds. Errors are relative to the mean `seconds` of the runs with
            the same number of processes, or to `floor` if `floor` is larger.
        noise: relative scatter between equal runs.
        at: numbers of processes to evaluate.
        ranks: float64 [draw], 0 to 1. Forms are sorted by their seconds at the last element of `at`; a draw chooses the
            form at its quantile. Use the same `ranks` for all parts of a run: with different `ranks`, errors of parts
            would cancel.
    """
    sizes = np.unique(processes)
    usable = [form for form in FORMS if len(form) <= len(sizes)]
    means = np.array([seconds[processes == p].mean() for p in processes])
    scale = np.maximum(means, floor)
    target = (seconds / scale)[None]
    scaled = [_evaluate(form, processes) / scale for form in usable]
    found = [_fit(columns, target)[0] for columns in scaled]
    misfit = np.array([(((c @ x) - target[0]) ** 2).sum() for c, x in zip(found, scaled, strict=True)])
    assumed = max(noise, _LEAST_NOISE) ** 2
    if len(sizes) > 2:
        scores = np.array([_cross_validate(columns, target, processes) for columns in scaled])
    else:  # cross-validation needs three numbers of processes
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
    """Return the value of each term: float64 [term, p]."""
    return np.stack(
        [processes**power * np.log2(processes) ** logs * (1 - 1 / processes) ** others for power, logs, others in form]
    )


def _fit(columns: Floats, target: Floats) -> Floats:
    """Fit one or two terms, `columns` [term, run], to `target` [row, run] by non-negative least squares; return the
    coefficients, [row, term]."""
    products, norms = target @ columns.T, (columns**2).sum(axis=1)
    alone: Floats = np.maximum(products / np.maximum(norms, 1e-300), 0)
    if len(columns) == 1:
        return alone
    mixed = float(columns[0] @ columns[1])
    determinant = norms[0] * norms[1] - mixed**2
    is_singular = determinant <= 1e-12 * norms[0] * norms[1]
    both = (products * norms[::-1] - products[:, ::-1] * mixed) / (np.inf if is_singular else determinant)
    # If the unconstrained solution has a negative coefficient, only one term is used.
    gains = alone * products
    single = np.where(gains == gains.max(axis=1, keepdims=True), alone, 0)
    single[:, 1] = np.where((single > 0).all(axis=1), 0, single[:, 1])
    found: Floats = np.where((both < 0).any(axis=1, keepdims=True) | is_singular, single, both)
    return found


def _cross_validate(columns: Floats, target: Floats, processes: Floats) -> float:
    """Predict the times at each number of processes from all other numbers; return the mean squared error."""
    errors = []
    for size in np.unique(processes):
        rest = processes != size
        found = _fit(columns[:, rest], target[:, rest])[0]
        errors.append((((found @ columns)[~rest] - target[0, ~rest]) ** 2).mean())
    return float(np.mean(errors))


def _describe(form: Iterable[Term], coefficients: Floats) -> str:
    names = []
    for (power, logs, others), coefficient in zip(form, coefficients.tolist(), strict=True):
        factor = {0.0: "", 1.0: "p"}.get(power, f"p^{power:.3g}")
        if coefficient:
            factors = (f"{coefficient:.3g}", factor, "log2(p)" if logs else "", "(1 - 1/p)" if others else "")
            names.append(" ".join(filter(None, factors)))
    return " + ".join(names) or "0"
