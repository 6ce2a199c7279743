# SPDX-License-Identifier: Apache-2.0
"""Choice of the model that explains delays best: levels, an additive tree, or a network with cycles.

The model `levels` is chosen by default. Another model is chosen if it explains a pattern in the residuals of `levels`,
and if the delays are typical of a network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log
from typing import cast

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.binary_trees import find_additive
from ibprof_lab.topology.infer.candidate import (
    FLOOR,
    NORMAL,
    OUTLYING,
    Candidate,
    Floats,
    blocks,
    find_pattern,
    sample_hosts,
    score,
)
from ibprof_lab.topology.infer.direct_networks import (
    find_direct,
    find_far_hosts,
    find_regular,
    find_slow_hosts,
    find_switched,
)
from ibprof_lab.topology.infer.levels import Levels, find_levels, is_far, is_network
from ibprof_lab.topology.infer.pair_delays import fill_gaps

MODELS = ("levels", "additive", "direct")

CLOSE = 10.0
"""Two models explain the delays about equally well if their scores differ by less than this (likelihood ratio 150)."""

LARGEST = {"additive": 1024, "direct": 16384}
"""A model is tried for at most this many hosts."""

FEWER_HOSTS = 256
"""For more hosts than this, the search for networks with cycles assumes that all links have the same latency."""

_FEW_HOSTS = 16
"""With at most this many hosts, all models are tried, since residuals of few hosts may not show a pattern."""

_EXPLAINED = 2.3
"""A model explains a pattern if the `ResidualPattern.strength` of the model's residuals is below this. The limit is the
largest strength found in many matrices with independent errors."""

_MUCH_LESS = 0.25
"""A model also explains a pattern if the `ResidualPattern.deviation` of its residuals is less than this fraction of the
simpler model's deviation."""

_LEFT_OUT = 0.3
"""For delays between sites, other models are tried if a residual of the model `levels` exceeds this."""

_MUCH_MORE = 100.0
"""For delays between sites, other models are also tried if a residual exceeds this multiple of the median residual."""

_FEW_TOGETHER = 3


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that explains delays best.

    Attributes:
        candidate: graph of the model.
        levels: nested switches; None if a regular network was found without a search for nested switches.
        delays: [n, n], delays that the candidate was fitted to, seconds. If `levels` is None, unmeasured delays are
            nan; else, they are estimated. For the model `levels`, the factors of hosts are removed.
        measured: bool [n, n], True for measured delays.
        outliers: bool [n, n], True for measured delays that deviate too far from the explained delays.
        scores: model -> score; smaller is better.
        noise: typical relative deviation of a measured delay from the explained delay.
        unexplained: True if the residuals have a pattern.
        untried: models that were not tried, since there are more hosts than `LARGEST`.
    """

    candidate: Candidate
    levels: Levels | None
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
        delays: float [n, n], seconds, symmetric, nan where not measured; n at least 3. Measured pairs must connect all
            hosts.
        models: models to try.
        errors: known standard deviation of the logarithm of a delay; 0 if unknown.
    """
    measured = delays > 0
    hosts = len(delays)
    if hosts <= LARGEST["additive"]:
        delays = delays.astype(np.float64)
    if "direct" in models and FEWER_HOSTS < hosts <= LARGEST["direct"] and (regular := _try_regular(delays, measured)):
        return regular
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
    far = is_far(delays[measured])
    for candidate in found:
        values = even if candidate is nested else filled
        reached = score(candidate, values, measured)
        if candidate is nested:
            reached += 2 * np.count_nonzero(factor) * log(max(hosts, 2))
        scores[candidate.model] = min(reached, scores.get(candidate.model, np.inf))
        # The simplest candidate comes first, and is chosen among equally good candidates.
        is_better = reached < least if candidate.model == best.model else reached < least - CLOSE and _explains_more(
            best.residuals(of_best), candidate.residuals(values), measured, far
        )  # fmt: skip
        if is_better:
            best, of_best, least = candidate, values, reached
    outliers, noise = find_outliers(best, of_best, measured)
    unexplained = find_pattern(best.residuals(of_best), measured & ~outliers).is_certain
    return ModelChoice(best, levels, of_best, measured, outliers, scores, noise, unexplained, untried)


def _try_regular(delays: npt.NDArray[np.floating], measured: npt.NDArray[np.bool_]) -> ModelChoice | None:
    """Return a regular network if it explains the delays; None if other models must be tried."""
    rows = sample_hosts(len(delays))
    among = np.ix_(rows, rows)
    seen = np.log(delays[rows][measured[rows]])
    if not is_network(np.exp(seen)):
        return None
    even, restore = _even_out(cast("Floats", delays), measured)
    regular = find_regular(even, measured)
    if regular is None:
        return None
    found = restore(regular)
    left = find_pattern(replace(found, explained=found.explained[among]).residuals(delays[among]), measured[among])
    if left.is_certain or left.deviation > _MUCH_LESS * float(seen.std()):
        return None
    outliers, noise = find_outliers(found, delays, measured)
    return ModelChoice(
        found, None, delays, measured, outliers, {found.model: 0.0}, noise, unexplained=False, untried=()
    )


def _find_others(
    delays: npt.NDArray[np.floating], known: npt.NDArray[np.bool_], levels: Levels, nested: Candidate,
    even: npt.NDArray[np.floating], models: tuple[str, ...],
) -> tuple[list[Candidate], tuple[str, ...]]:  # fmt: skip
    """Return candidates of other models, and the models that were not tried because of more hosts than `LARGEST`."""
    found: list[Candidate] = []
    untried: list[str] = []
    hosts = len(delays)
    if "levels" in models:
        is_seen = hosts <= _FEW_HOSTS or levels.factor.any() or find_pattern(nested.residuals(even), known).is_certain
        is_seen = is_seen or bool((find_far_hosts(delays, known) > 1).any())  # slow hosts may hide a pattern
        # Between sites, distances cause a pattern. Other models are tried only if nested switches fit badly.
        left = np.abs(nested.residuals(even))[known]
        is_left = is_far(delays[known]) and bool((left > min(_LEFT_OUT, _MUCH_MORE * np.median(left))).any())
        if not is_seen or not (is_network(delays[known]) or is_left or levels.errors):
            return [], ()
    exact = cast("Floats", delays)  # float32 for many hosts, to save memory
    if "direct" in models and hosts <= LARGEST["direct"]:
        found += _find_networks(exact, known, levels)
    # Skip the costly tree search for many hosts if a network with cycles leaves no pattern in the residuals.
    explains = hosts > FEWER_HOSTS and any(not find_pattern(each.residuals(delays), known).is_certain for each in found)
    if "additive" in models and hosts <= LARGEST["additive"] and not explains:
        found.insert(0, find_additive(exact, known))
    untried += [model for model, most in LARGEST.items() if model in models and hosts > most]
    return found, tuple(untried)


def _find_networks(delays: Floats, known: npt.NDArray[np.bool_], levels: Levels) -> list[Candidate]:
    """Return networks with cycles: of switches, and of directly linked hosts."""
    even, restore = _even_out(delays, known)
    tree = levels.tree if even is delays else find_levels(even, known, levels.errors).tree
    if len(delays) > FEWER_HOSTS:
        found = [find_switched(even, known, tree), find_regular(even, known)]
    else:
        found = [find_switched(even, known, tree), direct := find_direct(even, known)]
        if direct is not None:
            # The network of hosts shows the true size of the errors. If these errors are smaller than the errors
            # assumed so far, search for switches again.
            errors = max(find_outliers(direct, even, known)[1], FLOOR)
            found.append(find_switched(even, known, find_levels(even, known, errors).tree, errors))
    return [restore(each) for each in found if each is not None]


def _even_out(delays: Floats, known: npt.NDArray[np.bool_]) -> tuple[Floats, Callable[[Candidate], Candidate]]:
    """Return delays without the factors of slow hosts, and a function that adds the factors to a candidate."""
    factor: Floats = find_slow_hosts(delays, known).astype(delays.dtype)
    slow = int(np.count_nonzero(factor > 1))
    if not slow:
        return delays, lambda candidate: candidate
    return delays / factor / factor[:, None], lambda candidate: replace(
        candidate,
        explained=candidate.explained * factor * factor[:, None],
        parameters=candidate.parameters + slow,
    )


def _explains_more(simple: Floats, free: Floats, measured: npt.NDArray[np.bool_], far: bool) -> bool:
    """Return True if a model with more parameters explains the whole pattern that a simpler model leaves.

    To explain a part of the pattern is not enough, since false switches always explain a part. Between sites, the
    residuals `free` must have no pattern, since some tree nearly fits distances on a map.

    Args:
        simple, free: residuals of the simpler model and of the model with more parameters.
        measured: True for residuals that are tested.
        far: True if the delays are longer than in a network in one building.
    """
    left, still = find_pattern(simple, measured), find_pattern(free, measured)
    return still.strength < _EXPLAINED or (not far and still.deviation < _MUCH_LESS * left.deviation)


def find_outliers(
    candidate: Candidate, delays: npt.NDArray[np.floating], measured: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], float]:
    """Return a mask of delays that deviate too far from explained delays, bool [n, n], and the typical deviation."""
    if not measured.any():
        return np.zeros_like(measured), 0.0
    rows = slice(None) if len(delays) <= LARGEST["additive"] else sample_hosts(len(delays))
    noise = NORMAL * float(np.median(np.abs(candidate.residuals(delays, rows))[measured[rows]]))
    limit = OUTLYING * max(noise, FLOOR)
    outliers = np.concatenate([np.abs(candidate.residuals(delays, rows)) > limit for rows in blocks(len(delays))])
    outliers &= measured
    return outliers, noise


def find_unconfirmed(candidate: Candidate, hosts: int) -> npt.NDArray[np.bool_]:
    """Return pairs on a lowest switch of 2 or 3 hosts, which one wrong delay can cause, bool [n, n]."""
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
