# SPDX-License-Identifier: Apache-2.0
"""Choice of the model that explains delays best: levels, an additive tree, or a network with cycles.

Levels are the answer unless they leave a pattern in the delays of a network, which another model explains.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.additive_tree import find_additive
from ibprof_lab.topology.infer.candidate import FLOOR, NORMAL, OUTLYING, Candidate, Floats, find_pattern, score
from ibprof_lab.topology.infer.direct_networks import find_direct, find_regular, find_switched
from ibprof_lab.topology.infer.levels import Levels, find_levels, is_far, is_network
from ibprof_lab.topology.infer.pair_delays import fill_gaps

MODELS = ("levels", "additive", "direct")

CLOSE = 10.0
"""Models whose scores differ by less explain delays about equally well: a factor of 150 in likelihood."""

LARGEST = {"additive": 1024, "direct": 2048}
"""Number of hosts up to which a model is tried."""

FEWER_HOSTS = 256
"""Up to this number of hosts links of any length are looked for, beyond only those that are all alike."""

_FEW_HOSTS = 16
"""Up to this number of hosts a pattern in the delays may not show."""

_EXPLAINED = 2.3
"""Strength of the pattern that a model may leave: the largest of independent errors of some hundred matrices."""

_MUCH_LESS = 0.25
"""Share of the deviation below which a model explains far more than another, even if a pattern is left."""

_LEFT_OUT = 0.3
"""Error of levels for one pair, as a logarithm, beyond which other models are tried."""

_FEW_TOGETHER = 3


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that explains delays best.

    Attributes:
        candidate: its graph.
        levels: nested switches, whatever the model.
        delays: [n, n], seconds, that the candidate is of: as measured, gaps filled, without factors of hosts that
            levels set aside.
        measured: bool [n, n], which of them were measured.
        outliers: bool [n, n], measured delays that deviate too far from it.
        scores: model -> its score; less is better.
        noise: typical relative deviation of a delay from what is explained.
        unexplained: whether the residuals have a pattern.
        untried: models that were left out as too costly.
    """

    candidate: Candidate
    levels: Levels
    delays: npt.NDArray[np.floating]
    measured: npt.NDArray[np.bool_]
    outliers: npt.NDArray[np.bool_]
    scores: dict[str, float]
    noise: float
    unexplained: bool
    untried: tuple[str, ...]


def choose_model(
    delays: npt.NDArray[np.floating], models: tuple[str, ...] = MODELS, errors: float = 0.0
) -> ModelChoice:
    """Find the graph that explains delays best.

    Args:
        delays: float [n, n], seconds, symmetric, nan where not measured; n at least 3, and the measured pairs connect
            all hosts.
        models: to try.
        errors: deviation of the delays where it is known, of their logarithm; else 0.
    """
    measured = delays > 0
    hosts = len(delays)
    if hosts <= LARGEST["additive"]:
        delays = delays.astype(np.float64)
    filled = delays if measured.sum() == hosts * (hosts - 1) else fill_gaps(delays, measured)
    levels = find_levels(filled, measured, errors)
    factor = levels.factor
    even = filled * np.exp(-(factor[:, None] + factor)) if factor.any() else filled
    nested = levels.as_candidate()
    found, untried = _find_others(filled, measured, levels, nested, even, models)
    if "levels" in models or not found:
        found.insert(0, nested)
    best, of_best, least = found[0], filled, np.inf
    scores: dict[str, float] = {}
    for candidate in found:
        values = even if candidate is nested else filled
        reached = score(candidate, values, measured)
        if candidate is nested:
            reached += 2 * np.count_nonzero(factor) * log(max(hosts, 2))
        scores[candidate.model] = min(reached, scores.get(candidate.model, np.inf))
        # Candidates come from the simplest on; of equally good models the simpler one is taken.
        is_better = reached < least if candidate.model == best.model else reached < least - CLOSE and _explains_more(
            best.residuals(of_best), candidate.residuals(values), measured
        )  # fmt: skip
        if is_better:
            best, of_best, least = candidate, values, reached
    outliers, noise = find_outliers(best, of_best, measured)
    unexplained = find_pattern(best.residuals(of_best), measured & ~outliers).is_certain
    return ModelChoice(best, levels, of_best, measured, outliers, scores, noise, unexplained, untried)


def _find_others(
    delays: npt.NDArray[np.floating], known: npt.NDArray[np.bool_], levels: Levels, nested: Candidate,
    even: npt.NDArray[np.floating], models: tuple[str, ...],
) -> tuple[list[Candidate], tuple[str, ...]]:  # fmt: skip
    """Return the other models that may explain more than levels, and those that are too costly."""
    found: list[Candidate] = []
    untried: list[str] = []
    hosts = len(delays)
    if "levels" in models:
        is_seen = hosts <= _FEW_HOSTS or levels.factor.any() or find_pattern(nested.residuals(even), known).is_certain
        # Between places slopes are no cables, but some pairs may be far from any level.
        is_left = is_far(delays[known]) and bool((np.abs(nested.residuals(even))[known] > _LEFT_OUT).any())
        if not is_seen or not (is_network(delays[known]) or is_left or levels.errors):
            return [], ()
    exact = delays.astype(np.float64, copy=False)
    if "direct" in models:
        if (switched := find_switched(exact, known, levels.tree)) is not None:
            found.append(switched)
        # Where all links are alike, their number is known at once.
        find = find_direct if hosts <= FEWER_HOSTS else find_regular
        if hosts <= LARGEST["direct"] and (direct := find(exact, known)) is not None:
            found.append(direct)
            # Its links show how small errors are, and so switches between which levels saw only a slope.
            errors = max(find_outliers(direct, exact, known)[1], FLOOR)
            if hosts <= FEWER_HOSTS:
                finer = find_switched(exact, known, find_levels(exact, known, errors).tree, errors)
                found += [finer] if finer is not None else []
    if "additive" in models and hosts <= LARGEST["additive"] and not _is_explained(found, delays, known):
        found.insert(0, find_additive(exact, known))
    untried += [model for model, most in LARGEST.items() if model in models and hosts > most]
    return found, tuple(untried)


def _is_explained(found: list[Candidate], delays: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> bool:
    """Return whether a network of many hosts leaves no pattern, so that the costly search for a tree is in vain."""
    if len(delays) <= FEWER_HOSTS:
        return False
    return any(not find_pattern(each.residuals(delays), known).is_certain for each in found)


def _explains_more(simple: Floats, free: Floats, measured: npt.NDArray[np.bool_]) -> bool:
    """Return whether a model with more freedom explains what a simpler one leaves, not only a part of a pattern in it.

    A model with many parameters always follows errors that pairs share a little better, by switches that are not there.

    Args:
        simple, free: what the models leave, of the logarithm of a delay.
        measured: which delays count.
    """
    left, still = find_pattern(simple, measured), find_pattern(free, measured)
    return still.strength < _EXPLAINED or still.deviation < _MUCH_LESS * left.deviation


def find_outliers(
    candidate: Candidate, delays: npt.NDArray[np.floating], measured: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], float]:
    """Return which delays deviate too far from what is explained, bool [n, n], and the typical deviation."""
    residuals = np.where(measured, candidate.residuals(delays), 0)
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
