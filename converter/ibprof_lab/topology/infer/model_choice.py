# SPDX-License-Identifier: Apache-2.0
"""Choice of the model that explains delays best: levels, an additive tree, or a network with cycles.

Outliers do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.additive_tree import find_additive
from ibprof_lab.topology.infer.candidate import FLOOR, NORMAL, OUTLYING, Candidate, Floats, find_pattern, score
from ibprof_lab.topology.infer.direct_networks import find_direct, find_switched
from ibprof_lab.topology.infer.nested_levels import (
    Levels,
    NearGroup,
    as_candidate,
    find_levels,
    find_levels_robustly,
    join_slow_hosts,
)
from ibprof_lab.topology.infer.pair_delays import fill_gaps

MODELS = ("levels", "additive", "direct")

CLOSE = 10.0
"""Models whose scores differ by less explain delays about equally well: a factor of 150 in likelihood."""

_ROUNDS = 4
_MOST_OUTLIERS = 0.25
_SOME_OUTLIERS = 0.005
_NORMAL_OUTLIERS = 0.001
"""Share of outliers that normal errors explain: 0.0005 of them deviate as far."""

_FEW_HOSTS = 48
"""Up to this number of hosts all models are tried; above, costly models only where simple ones leave a pattern."""

LARGEST_ADDITIVE = 1024
LARGEST_DIRECT = 512
_FEW_TOGETHER = 3

_EXPLAINED = 2.3
"""Strength of the pattern that a model may leave: the largest of independent errors of some hundred matrices."""

MUCH_LESS = 0.25
"""Share of the deviation below which a model explains far more than another, even if a pattern is left."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that explains delays best.

    Attributes:
        candidate: its graph.
        outliers: bool [n, n], measured delays that deviate too far from it.
        scores: model -> its score; less is better.
        noise: typical relative deviation of a delay from what is explained.
        unexplained: whether the residuals have a pattern.
        untried: models that were left out as too costly.
        near: hosts that levels, if these were chosen, do not put on a switch of their own; None where there are none.
        step: least increase of the logarithm of a delay from a switch to the one above; 0 for other models than levels.
    """

    candidate: Candidate
    outliers: npt.NDArray[np.bool_]
    scores: dict[str, float]
    noise: float
    unexplained: bool
    untried: tuple[str, ...]
    near: NearGroup | None = None
    step: float = 0.0

    @property
    def reached(self) -> float:
        """The score of the candidate."""
        return self.scores[self.candidate.model]


def choose_model(delays: Floats, models: tuple[str, ...] = MODELS) -> ModelChoice:
    """Find the graph that explains delays best.

    Delays that deviate by more than `OUTLYING` from a first answer are left out of a second one, and so on while the
    answer improves. Each answer is scored by all measured delays.

    Args:
        delays: float64 [n, n], seconds, symmetric, nan where not measured; n at least 3, and the measured pairs connect
            all hosts.
        models: to try.
    """
    measured = ~np.isnan(delays)
    np.fill_diagonal(measured, False)
    filled = fill_gaps(delays, measured)
    best = _improve(_choose_once(filled, measured, delays, measured, models), delays, measured, models)
    share = np.count_nonzero(best.outliers) / max(int(measured.sum()), 1)
    if share > _SOME_OUTLIERS and len(delays) <= LARGEST_DIRECT:
        robust = as_candidate(find_levels_robustly(filled))
        outliers, _ = find_outliers(robust, delays, measured)
        other = _improve(_choose_without(outliers, robust, delays, measured, models), delays, measured, models)
        if _is_better(other, best, delays, measured):
            best = other
    return best


def _improve(
    best: ModelChoice, delays: Floats, measured: npt.NDArray[np.bool_], models: tuple[str, ...]
) -> ModelChoice:
    """Leave out the outliers of an answer, and infer again, while the answer improves."""
    for _ in range(_ROUNDS):
        share = np.count_nonzero(best.outliers) / max(int(measured.sum()), 1)
        if not _NORMAL_OUTLIERS < share <= _MOST_OUTLIERS:
            break
        choice = _choose_without(best.outliers, best.candidate, delays, measured, models)
        if not _is_better(choice, best, delays, measured):
            break
        best = choice
    alike = _find_alike_pairs(best, delays)
    if alike.any():
        choice = _choose_without(best.outliers & ~alike, best.candidate, delays, measured, models)
        if choice.reached < best.reached:
            best = choice
    return best


def _find_alike_pairs(best: ModelChoice, delays: Floats) -> npt.NDArray[np.bool_]:
    """Return outliers, bool [n, n], that are as short as the delays of other switches of two or three hosts.

    While gross errors hide small ones, some such switches gain too little, and their pairs look wrong.
    """
    hosts = len(delays)
    of_switch = find_unconfirmed(best.candidate, hosts)
    taken = np.asarray(of_switch.any(axis=1))
    short = best.outliers & (delays < best.candidate.explained) & ~taken & ~taken[:, None]
    if not of_switch.any() or not short.any():
        return np.zeros_like(of_switch)
    height = np.log(best.candidate.explained[of_switch])
    margin = OUTLYING * max(best.noise, FLOOR)
    logs = np.log(np.where(short, delays, np.inf))
    alike: npt.NDArray[np.bool_] = short & (logs > height.min() - margin) & (logs < height.max() + margin)
    return alike


def _is_better(choice: ModelChoice, best: ModelChoice, delays: Floats, measured: npt.NDArray[np.bool_]) -> bool:
    """Return whether an answer without some outliers is better, and not only closer to errors that pairs share.

    Outliers hide switches, and what these explain is a pattern then. Nested switches that leave none are better, and so
    are those whose links add more to a delay than such a pattern could.
    """
    if choice.reached >= best.reached:
        return False
    left, still = (find_pattern(each.candidate.residuals(delays), measured) for each in (best, choice))
    if not left.is_likely or still.deviation < MUCH_LESS * left.deviation:
        return True
    return choice.candidate.model == "levels" and (not still.is_likely or choice.step > left.least_step)


def _choose_without(
    outliers: npt.NDArray[np.bool_],
    candidate: Candidate,
    delays: Floats,
    measured: npt.NDArray[np.bool_],
    models: tuple[str, ...],
) -> ModelChoice:
    """Choose a model without the outliers of a candidate: what it explains stands in for them."""
    known = measured & ~outliers
    working = np.where(known | np.eye(len(delays), dtype=bool), delays, candidate.explained)
    return _choose_once(working, known, delays, measured, models)


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
        if hosts <= _FEW_HOSTS or not candidates:
            return False
        return not find_pattern(candidates[-1].residuals(working), known).is_certain

    done = settled()
    if "additive" in models and not done:
        if hosts <= LARGEST_ADDITIVE:
            candidates.append(find_additive(working, known))
            done = settled()
        else:
            untried.append("additive")
    if "direct" in models and not done:
        candidates.extend(_with_cycles(working, known, levels, untried))
    if not candidates:
        candidates.append(as_candidate(levels))
    scores: dict[str, float] = {}
    best, least = candidates[0], np.inf
    for candidate in candidates:
        reached = score(candidate, delays, measured)
        scores[candidate.model] = min(reached, scores.get(candidate.model, np.inf))
        # Candidates come from the simplest on; of equally good models the simpler one is taken.
        if candidate.model == best.model:
            is_better = reached < least
        else:
            is_better = reached < least - CLOSE and _explains_more(best, candidate, delays, measured)
        if is_better:
            best, least = candidate, reached
    outliers, noise = find_outliers(best, delays, measured)
    unexplained = find_pattern(best.residuals(delays), measured & ~outliers).is_certain
    is_nested = best.model == "levels"
    near, step = (levels.near, levels.least_step) if is_nested else (None, 0.0)
    return ModelChoice(best, outliers, scores, noise, unexplained, tuple(untried), near, step)


def _explains_more(simple: Candidate, free: Candidate, delays: Floats, measured: npt.NDArray[np.bool_]) -> bool:
    """Return whether a model with more freedom explains what a simpler one leaves, not only a part of a pattern in it.

    A model with many parameters always follows errors that pairs share a little better, by switches that are not there.
    """
    left, still = (find_pattern(candidate.residuals(delays), measured) for candidate in (simple, free))
    return still.strength < _EXPLAINED or still.deviation < MUCH_LESS * left.deviation


def _with_cycles(working: Floats, known: npt.NDArray[np.bool_], levels: Levels, untried: list[str]) -> list[Candidate]:
    found = [find_switched(working, known, levels.significant)]
    if len(working) <= LARGEST_DIRECT:
        found.append(find_direct(working, known))
    else:
        untried.append("direct")
    return [each for each in found if each is not None]


def find_outliers(
    candidate: Candidate, delays: Floats, measured: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], float]:
    """Return which delays deviate too far from what is explained, bool [n, n], and the typical deviation."""
    residuals = np.where(measured, candidate.residuals(delays), 0.0)
    if not measured.any():
        return np.zeros_like(measured), 0.0
    noise = NORMAL * float(np.median(np.abs(residuals[measured])))
    return np.abs(residuals) > OUTLYING * max(noise, FLOOR), noise


def find_unconfirmed(candidate: Candidate, hosts: int) -> npt.NDArray[np.bool_]:
    """Return the pairs that alone support a switch, bool [n, n]: those of 2 or 3 hosts with nothing else below."""
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
