# SPDX-License-Identifier: Apache-2.0
"""Which model explains delays best: levels, an additive tree, or a network with circles; wrong values do not count."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from ibprof_converter.topology.infer.additive_tree import find_additive
from ibprof_converter.topology.infer.candidate import FLOOR, Candidate, Floats, score
from ibprof_converter.topology.infer.direct_networks import find_direct, find_switched
from ibprof_converter.topology.infer.nested_levels import Levels, as_candidate, find_levels, find_levels_robustly
from ibprof_converter.topology.infer.slow_hosts import join_slow_hosts

MODELS = ("levels", "additive", "direct")

OUTLYING = 3.5
"""Times the residuals' scaled median absolute deviation: beyond it a value is doubtful."""

NORMAL = 1.4826
"""Median absolute deviation -> standard deviation, for normal errors."""

CLOSE = 10.0
"""Models whose scores differ by less explain delays about as well: a factor of 150 in likelihood."""

_ROUNDS = 4
_MOST_DOUBTED = 0.25
_SOME_DOUBTED = 0.005
_NORMALLY_DOUBTED = 0.001
"""Of normal errors 0.0005 deviate as far: so few are left to count."""

_FEW_HOSTS = 48
"""Up to so many hosts all models are tried anyway; above, costly ones where simple ones leave more than errors over."""

LARGEST_ADDITIVE = 1024
LARGEST_DIRECT = 512
_PATTERN = 2.8
"""Times sigma sqrt(n): errors alone make about 2, and seldom more than this with ten hosts."""

_LOOKED_AT = 192
"""Hosts whose delays to one another are looked at for a pattern."""

_ITERATIONS = 40

_FEW_TOGETHER = 3


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that explains delays best.

    Attributes:
        candidate: its graph.
        levels: the nested switches, where that was looked for.
        doubtful: bool [n, n], measured delays that deviate too far from it.
        scores: model -> what it came to; less is better.
        noise: typical relative deviation of a delay from what is explained.
        unexplained: whether what is left over has a pattern.
        untried: models that were left out as too costly.
    """

    candidate: Candidate
    doubtful: npt.NDArray[np.bool_]
    scores: dict[str, float]
    noise: float
    unexplained: bool
    untried: tuple[str, ...]


def choose_model(delays: Floats, models: tuple[str, ...] = MODELS) -> ModelChoice:
    """Find the graph that explains delays best.

    Delays that deviate by more than `OUTLYING` from a first answer are left out of a second one, and so on while the
    answer gets better; each is judged by all that was measured.

    Args:
        delays: float64 [n, n], seconds, symmetric, nan where not measured; n at least 3, and the measured pairs connect
            all hosts.
        models: to be tried.
    """
    measured = ~np.isnan(delays)
    np.fill_diagonal(measured, False)
    filled = fill_gaps(delays, measured)
    best = _improve(_choose_once(filled, measured, delays, measured, models), delays, measured, models)
    share = np.count_nonzero(best.doubtful) / max(int(measured.sum()), 1)
    if share > _SOME_DOUBTED and len(delays) <= LARGEST_DIRECT:
        robust = as_candidate(find_levels_robustly(filled))
        doubtful, _ = find_outliers(robust, delays, measured)
        known, working = _without(doubtful, delays, measured, robust)
        other = _improve(_choose_once(working, known, delays, measured, models), delays, measured, models)
        best = min(best, other, key=lambda choice: min(choice.scores.values()))
    return best


def _improve(
    best: ModelChoice, delays: Floats, measured: npt.NDArray[np.bool_], models: tuple[str, ...]
) -> ModelChoice:
    """Leave out what deviates from an answer, and ask again, while the answer gets better."""
    for _ in range(_ROUNDS):
        share = np.count_nonzero(best.doubtful) / max(int(measured.sum()), 1)
        if not _NORMALLY_DOUBTED < share <= _MOST_DOUBTED:
            break
        known, working = _without(best.doubtful, delays, measured, best.candidate)
        choice = _choose_once(working, known, delays, measured, models)
        if min(choice.scores.values()) >= min(best.scores.values()):
            break
        best = choice
    return best


def _without(
    doubtful: npt.NDArray[np.bool_], delays: Floats, measured: npt.NDArray[np.bool_], candidate: Candidate
) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Give what is left to be believed, and delays with what is explained in place of all else."""
    known = measured & ~doubtful
    return known, np.where(known | np.eye(len(delays), dtype=bool), delays, candidate.explained)


def _choose_once(
    working: Floats,
    known: npt.NDArray[np.bool_],
    delays: Floats,
    measured: npt.NDArray[np.bool_],
    models: tuple[str, ...],
) -> ModelChoice:
    hosts = len(working)
    candidates: list[Candidate] = []
    untried: list[str] = []
    levels = find_levels(working)
    if "levels" in models:
        candidates.append(as_candidate(levels))
        if (other := join_slow_hosts(levels, candidates[0], delays, measured)) is not None:
            candidates.append(other)

    def settled() -> bool:
        return bool(hosts > _FEW_HOSTS and candidates and not has_pattern(candidates[-1].residuals(working), known))

    done = settled()
    if "additive" in models and not done:
        if hosts <= LARGEST_ADDITIVE:
            candidates.append(find_additive(working, known))
            done = settled()
        else:
            untried.append("additive")
    if "direct" in models and not done:
        candidates.extend(_with_circles(working, known, levels, untried))
    if not candidates:
        candidates.append(as_candidate(levels))
    scores: dict[str, float] = {}
    best, least = candidates[0], np.inf
    for candidate in candidates:
        reached = score(candidate, delays, measured)
        scores[candidate.model] = min(reached, scores.get(candidate.model, np.inf))
        # Candidates come from the simplest on; a model that is as good is better when it is simpler.
        if reached < least - CLOSE or (candidate.model == best.model and reached < least):
            best, least = candidate, reached
    doubtful, noise = find_outliers(best, delays, measured)
    unexplained = has_pattern(best.residuals(delays), measured & ~doubtful)
    return ModelChoice(best, doubtful, scores, noise, unexplained, tuple(untried))


def _with_circles(working: Floats, known: npt.NDArray[np.bool_], levels: Levels, untried: list[str]) -> list[Candidate]:
    found = [find_switched(working, known, levels.pruned.tree)]
    if len(working) <= LARGEST_DIRECT:
        found.append(find_direct(working, known))
    else:
        untried.append("direct")
    return [each for each in found if each is not None]


def find_outliers(
    candidate: Candidate, delays: Floats, measured: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], float]:
    """Give the measured delays that deviate too far from what is explained, and how far a delay typically does."""
    residuals = np.where(measured, candidate.residuals(delays), 0.0)
    if not measured.any():
        return np.zeros_like(measured), 0.0
    noise = NORMAL * float(np.median(np.abs(residuals[measured])))
    return np.abs(residuals) > OUTLYING * max(noise, FLOOR), noise


def has_pattern(residuals: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> bool:
    """Whether what is left over is more than independent errors.

    The largest eigenvalue of a symmetric matrix of independent errors is near 2 sigma sqrt(n); a pattern, such as a
    host that is slower to all others, adds up along rows and exceeds it.

    Args:
        residuals: [n, n], symmetric, log of delay over what is explained.
        known: bool [n, n], which of them count.

    Source: E. P. Wigner, "On the distribution of the roots of certain symmetric matrices", Annals of Mathematics 67,
        1958.
    """
    rows = np.linspace(0, len(residuals) - 1, min(len(residuals), _LOOKED_AT)).astype(int)
    residuals, known = residuals[np.ix_(rows, rows)], known[np.ix_(rows, rows)]
    if not known.any():
        return False
    limit = OUTLYING * NORMAL * float(np.median(np.abs(residuals[known])))
    left = np.where(known, np.clip(residuals, -limit, limit), 0.0)
    sigma = float(np.sqrt(np.square(left).sum() / np.count_nonzero(known)))
    if sigma < FLOOR:
        return False
    hosts = len(left)
    return _largest_eigenvalue(left) > _PATTERN * sigma * sqrt(hosts)


def _largest_eigenvalue(symmetric: Floats) -> float:
    """Give the largest absolute eigenvalue, to some percent, by power iteration."""
    vector = np.random.default_rng(0).standard_normal(len(symmetric))
    length = 0.0
    for _ in range(_ITERATIONS):
        vector = symmetric @ (vector / np.linalg.norm(vector))
        length = float(np.linalg.norm(vector))
    return length


def find_unconfirmed(candidate: Candidate, hosts: int) -> npt.NDArray[np.bool_]:
    """Give the pairs that a switch rests on almost alone: those of two or three hosts with nothing else below them."""
    end = np.sort(candidate.edge, axis=1)
    degree = np.bincount(candidate.edge.ravel(), minlength=hosts + candidate.switches)
    on_switch = end[(end[:, 0] < hosts) & (end[:, 1] >= hosts)]
    pairs = np.zeros((hosts, hosts), bool)
    count = np.bincount(on_switch[:, 1], minlength=len(degree))
    for switch in np.flatnonzero((count > 1) & (count <= _FEW_TOGETHER) & (degree == count + 1)):
        own = on_switch[on_switch[:, 1] == switch, 0]
        pairs[np.ix_(own, own)] = True
    np.fill_diagonal(pairs, False)
    return pairs


def fill_gaps(delays: npt.NDArray[np.floating], measured: npt.NDArray[np.bool_]) -> Floats:
    """Put something likely where nothing was measured: the least, over all ways by others, of their greatest step."""
    filled = np.where(measured, delays, 0.0)
    missing = ~measured
    np.fill_diagonal(missing, False)
    while missing.any():
        rows = np.flatnonzero(missing.any(axis=1))
        steps = np.where(filled > 0, filled, np.inf)
        guess = filled.copy()
        for row in rows:
            columns = np.flatnonzero(missing[row])
            guess[row, columns] = np.maximum(steps[row][:, None], steps[:, columns]).min(axis=0)
        gained = missing & np.isfinite(guess) & (guess > 0)
        if not gained.any():
            raise ValueError("the measured pairs do not connect the hosts")
        filled = np.where(gained, guess, filled)
        filled = np.where(gained & gained.T, np.minimum(filled, filled.T), filled)
        missing &= ~gained
    return filled
