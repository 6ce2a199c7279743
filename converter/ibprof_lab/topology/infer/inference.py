# SPDX-License-Identifier: Apache-2.0
"""Inference of a topology from measured delays: the model that explains them best, and what it does not determine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from ibprof_lab.topology.infer.candidate import Candidate, Floats, Integers, find_pattern
from ibprof_lab.topology.infer.clock_steps import ClockSteps, find_clock_steps
from ibprof_lab.topology.infer.delay_factors import (
    MOST_EXCEPTIONS,
    HostFactors,
    TwoRails,
    find_host_factors,
    find_two_rails,
)
from ibprof_lab.topology.infer.few_pairs import attach_hosts, find_complete_hosts
from ibprof_lab.topology.infer.model_choice import (
    CLOSE,
    LARGEST_ADDITIVE,
    LARGEST_DIRECT,
    MODELS,
    MUCH_LESS,
    ModelChoice,
    choose_model,
    find_unconfirmed,
)
from ibprof_lab.topology.infer.nested_levels import choose_for_many
from ibprof_lab.topology.infer.pair_delays import PairDelays, fill_gaps
from ibprof_lab.topology.infer.reliability import (
    WEAK,
    describe_near,
    find_hidden_switch,
    find_support,
    name_some,
    refuse,
    refuse_steps,
)
from ibprof_lab.topology.model.inferred_topology import InferredTopology

_NOISY = 0.25

_GAIN_OF_RAILS = 1.2
"""Gain of score a pair beyond naming its rail. A ring of switches gains 0.4 so, delays over two rails 1.5 and more."""

_AS_EXACT = 0.5
"""Share of the deviation above which another model explains delays no better."""

_TRIED = 2
"""Factors of hosts, the best with nested levels, that are tried with all models."""

_ALIKE = 0.01
"""Difference of factors below which one stands for all."""

_MANY_HOSTS = 2048

NO_PAIRS: npt.NDArray[np.integer] = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class Inference:
    """A topology, and what should be measured again.

    Attributes:
        topology: the answer.
        again: int [pair, 2], hosts of the delays (processes where these are of one host) whose delay deviates too far,
            or which alone support a switch.
        refusal: why the answer is not to be relied on, a sentence; None where it is.
    """

    topology: InferredTopology
    again: npt.NDArray[np.integer]
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class InferenceEffort:
    """Limits of an inference.

    Attributes:
        models: to try, of `MODELS`.
        replicates: resampled matrices for the support of edges; 0 for none.
        seconds: limit of time for resampling.
        seed: of resampling.
    """

    models: tuple[str, ...] = MODELS
    replicates: int = 100
    seconds: float = 10.0
    seed: int = 0


def infer(values: PairDelays, effort: InferenceEffort | None = None) -> Inference:
    """Infer the topology that explains delays best.

    Args:
        values: a delay for each pair of hosts.
        effort: what it may cost.
    """
    effort = effort or InferenceEffort()
    core = find_complete_hosts(values.seconds)
    if core is not None and (found := _infer_from_core(values, core, effort)) is not None:
        return found
    chosen, said = _leave_out(values.seconds)
    notes = [*values.notes, *(text.format(name_some(values.hosts, which)) for text, which in said)]
    hosts = tuple(values.hosts[host] for host in chosen)
    if len(chosen) < 3:
        return Inference(_explain_few(hosts, values.seconds[np.ix_(chosen, chosen)], notes), NO_PAIRS)
    if len(chosen) > _MANY_HOSTS:
        seconds = values.seconds if len(chosen) == len(values.hosts) else values.seconds[np.ix_(chosen, chosen)]
        many = choose_for_many(seconds)
        doubt = (
            f"{len(hosts)} hosts: only levels were tried, and their residuals have a pattern; additive trees "
            f"(up to {LARGEST_ADDITIVE} hosts) and direct networks (up to {LARGEST_DIRECT}) may explain a part better"
        )
        topology = _describe(many.candidate, hosts, many.noise, notes, [doubt] if many.unexplained else [])
        return Inference(topology, chosen[many.again])
    delays = values.seconds[np.ix_(chosen, chosen)].astype(np.float64)
    choice = choose_model(delays, effort.models)
    factors, choice = _prefer_host_factors(choice, delays, effort.models, hosts)
    if factors is not None:
        notes.append(_describe_factors(factors, hosts))
        delays = factors.even_out(delays)
    # Before rails: two neighbouring multiples of a step look like two rails.
    steps = find_clock_steps(choice.candidate, delays)
    hidden: tuple[int, ...] = ()
    if steps is not None:
        delays, choice, hidden = _allow_for_steps(steps, delays, hosts, effort)
    rails, choice = _prefer_two_rails(choice, delays, effort.models)
    if rails is not None:
        notes.append(
            f"{rails.share:.0%} of the pairs take a second rail or route, on which a delay is {rails.factor:.2f} times "
            "as long; the topology is of the delays without that"
        )
        delays = rails.even_out(delays)
    answer = _resample(choice, delays, hosts, effort)
    if answer.refusal and choice.candidate.model != "levels" and "levels" in effort.models:
        # Links of networks with cycles are many; the switches may be sure where these are not.
        simple = _resample(choose_model(delays, ("levels",)), delays, hosts, effort)
        # Many links follow the steps of a clock, which only the switches leave to be seen.
        is_coarse = steps is None and find_clock_steps(simple.choice.candidate, delays) is not None
        if not simple.refusal and simple.choice.candidate.switches > 1 and not is_coarse:
            notes.append(
                f"the model {choice.candidate.model} explains delays better, but {answer.refusal}; the topology is of "
                "nested switches alone, between which other routes may exist"
            )
            answer = simple
    choice, support = answer.choice, answer.support
    if answer.drawn < effort.replicates:
        notes.append(
            f"support is of {answer.drawn} resampled matrices: more would have taken over {effort.seconds:g} s"
        )
    again = choice.outliers | find_unconfirmed(choice.candidate, len(hosts))
    pairs = np.argwhere(np.triu(again | again.T, 1) & ~np.isnan(delays))
    outliers = int(np.count_nonzero(np.triu(choice.outliers | choice.outliers.T, 1)))
    if outliers:
        notes.append(f"{outliers} outlying pairs were left out: they deviate by over 3.5 times the usual deviation")
    candidate = choice.candidate if steps is None else steps.shorten(choice.candidate, len(hosts))
    topology = _describe(candidate, hosts, choice.noise, notes, _doubts(choice, support, hosts), support)
    refusal = answer.refusal or refuse_steps(steps, candidate, hosts, hidden)
    return Inference(topology, chosen[pairs], refusal)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A model with the support of its edges, of a number of resampled matrices, and why it is not to be relied on."""

    choice: ModelChoice
    support: Floats | None
    drawn: int
    refusal: str | None


def _resample(choice: ModelChoice, delays: Floats, hosts: tuple[str, ...], effort: InferenceEffort) -> _Answer:
    to_topology = partial(_as_topology, hosts=hosts)
    support, drawn = None, 0
    if effort.replicates:
        support, drawn = find_support(choice, delays, to_topology, effort.replicates, effort.seconds, effort.seed)
    return _Answer(choice, support, drawn, refuse(_as_topology(choice.candidate, hosts, support), choice, delays > 0))


def _infer_from_core(values: PairDelays, core: npt.NDArray[np.integer], effort: InferenceEffort) -> Inference | None:
    """Infer the topology of hosts of which all pairs were measured, and attach the others; None without switches."""
    chosen, said = _leave_out(values.seconds)
    if not np.isin(core, chosen).all():
        return None
    names = tuple(values.hosts[host] for host in chosen)
    seconds = values.seconds[np.ix_(chosen, chosen)].astype(np.float64)
    inside = np.searchsorted(chosen, core)
    within = values.seconds[np.ix_(core, core)]
    part = PairDelays(tuple(values.hosts[host] for host in core), within, values.statistic, values.length, ())
    found = infer(part, effort)
    if found.topology.method != "levels":
        return None
    attached = attach_hosts(found.topology, inside, names, seconds)
    share = np.count_nonzero(np.triu(seconds > 0, 1)) / (len(names) * (len(names) - 1) / 2)
    notes = [
        *values.notes,
        *(text.format(name_some(values.hosts, which)) for text, which in said if which),
        f"{share:.1%} of the pairs were measured: the switches are those of {len(core)} hosts, and the others were "
        "attached by their delays",
        *found.topology.notes,
    ]
    unknown = list(found.topology.unknown)
    if len(attached.undecided):
        few = name_some(names, attached.undecided.tolist())
        unknown.append(f"{len(attached.undecided)} hosts could as well be on another switch: {few}")
    topology = replace(attached.topology, notes=tuple(notes), unknown=tuple(unknown))
    again = np.concatenate([core[found.again].reshape(-1, 2), chosen[attached.outlying].reshape(-1, 2)])
    return Inference(topology, again, found.refusal)


def _allow_for_steps(
    steps: ClockSteps, delays: Floats, hosts: tuple[str, ...], effort: InferenceEffort
) -> tuple[Floats, ModelChoice, tuple[int, ...]]:
    """Return delays whose errors by a coarse clock are alike for all, their model, and hosts whose switch it may hide.

    Errors of a clock are no shares of a delay; next to a constant that is added, they are about the same share of each.
    """
    spread = steps.spread_out(delays, effort.seed)
    by_shares = choose_model(spread, effort.models)
    longer = steps.lengthen(spread)
    choice = choose_model(longer, effort.models)
    shorter = steps.shorten(choice.candidate, len(hosts)).explained - delays > steps.seconds
    of_shares, of_alike = (_find_splits(each, hosts) for each in (by_shares, choice))
    return longer, choice, find_hidden_switch(of_shares, of_alike, len(hosts), shorter)


def _prefer_two_rails(
    choice: ModelChoice, delays: Floats, models: tuple[str, ...]
) -> tuple[TwoRails | None, ModelChoice]:
    """Return two rails and the model of the delays without them, where both together explain the delays better."""
    known = delays > 0
    rails = find_two_rails(fill_gaps(delays, known), known)
    if rails is None:
        return None, choice
    other = choose_model(rails.even_out(delays), models)
    gain = choice.reached - other.reached - rails.cost(known) - CLOSE
    if rails.follow_switches(other.candidate, known):
        return None, choice
    return (rails, other) if gain > _GAIN_OF_RAILS * np.count_nonzero(np.triu(known, 1)) else (None, choice)


def _prefer_host_factors(
    choice: ModelChoice, delays: Floats, models: tuple[str, ...], hosts: tuple[str, ...]
) -> tuple[HostFactors | None, ModelChoice]:
    """Return factors of hosts and the model of the delays without them, where both explain the delays better.

    A model without factors that explains delays about as well is kept where it is a tree with fewer switches. It is
    also kept where it has the same switches, unless it leaves a pattern and few hosts have factors. A tree with fewer
    switches that leaves no pattern is kept too, if factors do not explain far more.
    """
    known = delays > 0
    filled = fill_gaps(delays, known)
    reached = [(each.reached_with_levels(filled, known), each) for each in find_host_factors(filled, known)]
    best = sorted((each for each in reached if each[0] < choice.reached - CLOSE), key=lambda each: each[0])[:_TRIED]
    if not best:
        return None, choice
    tried = [(each, choose_model(each.even_out(delays), models)) for _, each in best]
    factors, other = min(tried, key=lambda each: each[1].reached + each[0].cost(known))
    factors = factors.refine(other.candidate, delays, known)
    other = choose_model(factors.even_out(delays), models)
    gain = choice.reached - other.reached - factors.cost(known)
    left = find_pattern(choice.candidate.residuals(delays), known)
    still = find_pattern(other.candidate.residuals(factors.even_out(delays)), known)
    splits = [_find_splits(each, hosts) for each in (choice, other)]
    are_exceptions = len(factors.hosts) <= MOST_EXCEPTIONS * len(hosts)
    is_as_exact = still.deviation > _AS_EXACT * left.deviation
    is_explained = is_as_exact or (not left.is_likely and still.deviation > MUCH_LESS * left.deviation)
    needs_more = other.candidate.switches > choice.candidate.switches and choice.candidate.model != "direct"
    is_same = is_as_exact and splits[0] == splits[1] and not (left.is_likely and are_exceptions)
    is_kept = is_same or (needs_more and is_explained)
    return (factors, other) if gain > CLOSE and not is_kept else (None, choice)


def _describe_factors(factors: HostFactors, hosts: tuple[str, ...]) -> str:
    which = factors.hosts.tolist()
    ratio = np.exp(factors.longer[which])
    by = f"{ratio.min():.2f}" if np.ptp(ratio) < _ALIKE else f"{ratio.min():.2f} to {ratio.max():.2f}"
    return (
        f"{len(which)} hosts ({name_some(hosts, which)}) have {by} times the delays of others on their switch; the "
        "topology is of the delays without that"
    )


def _leave_out(seconds: npt.NDArray[np.floating]) -> tuple[npt.NDArray[np.integer], list[tuple[str, list[int]]]]:
    """Choose the largest set of hosts that measured pairs connect."""
    measured = seconds > 0
    if measured.sum() == measured.size - len(measured):
        return np.arange(len(seconds)), []
    count, label = connected_components(csr_matrix(measured.astype(np.int8)), directed=False)
    if count <= 1:
        share = 1 - measured.sum() / max(measured.size - len(measured), 1)
        return np.arange(len(seconds)), [(f"{share:.1%} of the pairs were not measured; likely delays stand in", [])]
    largest = int(np.bincount(label).argmax())
    out = np.flatnonzero(label != largest).tolist()
    return np.flatnonzero(label == largest), [
        (f"{len(out)} hosts are left out, since no measured pair connects them with the others: {{}}", out)
    ]


def _explain_few(hosts: tuple[str, ...], seconds: npt.NDArray[np.floating], notes: list[str]) -> InferredTopology:
    edges = [(0, 1)] if len(hosts) == 2 else []
    why = {
        0: "there are no hosts, or no pair of them was measured",
        1: "one host: there is no pair to measure",
        2: "two hosts: one delay does not show whether a cable or switches lie between them",
    }[len(hosts)]
    return InferredTopology(
        method="none",
        hosts=hosts,
        switches=(),
        edge=np.array(edges, np.int32).reshape(-1, 2),
        latency_seconds=np.array([seconds[edge] for edge in edges], np.float64),
        support=np.full(len(edges), np.nan),
        probability=np.ones(len(edges)),
        notes=tuple(notes),
        unknown=(why,),
    )


def _as_topology(candidate: Candidate, hosts: tuple[str, ...], support: Floats | None = None) -> InferredTopology:
    return InferredTopology(
        method=candidate.model,
        hosts=hosts,
        switches=tuple(f"switch{index + 1}" for index in range(candidate.switches)),
        edge=_number_switches(candidate.edge, len(hosts), candidate.switches),
        latency_seconds=candidate.latency,
        support=np.full(len(candidate.edge), np.nan) if support is None else support,
        probability=np.ones(len(candidate.edge)),
        overhead_seconds=candidate.overhead,
    )


def _find_splits(choice: ModelChoice, hosts: tuple[str, ...]) -> set[frozenset[int]]:
    return {split for split in _as_topology(choice.candidate, hosts).find_splits() if split}


def _number_switches(edge: Integers, hosts: int, switches: int) -> Integers:
    """Number switches in the order of their first hosts, then those without any."""
    ends = np.sort(edge, axis=1)
    on_switch = ends[(ends[:, 0] < hosts) & (ends[:, 1] >= hosts)]
    first = np.full(switches, hosts)
    np.minimum.at(first, on_switch[:, 1] - hosts, on_switch[:, 0])
    number = np.arange(hosts + switches)
    number[hosts + np.argsort(first, kind="stable")] = hosts + np.arange(switches)
    return np.sort(number[edge], axis=1).astype(np.int32)


def _describe(
    candidate: Candidate,
    hosts: tuple[str, ...],
    noise: float,
    notes: list[str],
    unknown: list[str],
    support: Floats | None = None,
) -> InferredTopology:
    if candidate.switches == 1 and candidate.model != "direct":
        unknown = [
            *unknown,
            "all hosts are on one switch, or on several whose delays differ by less than these delays can show, "
            f"about {max(2 * noise, 0.01):.0%}",
        ]
    topology = _as_topology(candidate, hosts, support)
    return replace(topology, noise=noise, notes=tuple(notes), unknown=tuple(unknown))


def _doubts(choice: ModelChoice, support: Floats | None, hosts: tuple[str, ...]) -> list[str]:
    """Return what the delays do not determine, and why."""
    doubts = []
    ranked = sorted(choice.scores.items(), key=lambda item: item[1])
    own = choice.candidate.model
    for model, reached in ranked:
        if model != own and abs(reached - choice.scores[own]) < CLOSE:
            doubts.append(f"the model {model} explains the delays about as well as the model {own}")
    if choice.noise > _NOISY:
        doubts.append(f"no model explains the delays: they deviate by {choice.noise:.0%} from the best one")
    elif choice.unexplained:
        doubts.append(
            f"delays deviate by {choice.noise:.1%} from the best model, in a pattern: part of the topology is of "
            "another kind"
        )
    if choice.near is not None:
        doubts.append(describe_near(choice.near, hosts) + ": too little for a switch")
    if support is not None and (weak := int(np.count_nonzero(support < WEAK))):
        doubts.append(f"{weak} edges were found again in less than {WEAK:.0%} of the resampled matrices")
    for model in choice.untried:
        limit = LARGEST_ADDITIVE if model == "additive" else LARGEST_DIRECT
        doubts.append(f"{len(hosts)} hosts: the model {model} was not tried, which takes up to {limit}")
    return doubts
