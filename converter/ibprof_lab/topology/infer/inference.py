# SPDX-License-Identifier: Apache-2.0
"""Topology inference from measured delays: the best model, and notes on details that the delays do not determine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from ibprof.text.quantities import count_of
from ibprof_lab.topology.infer.candidate import FLOOR, Floats, blocks
from ibprof_lab.topology.infer.direct_networks import describe_grid, find_slow_hosts
from ibprof_lab.topology.infer.few_pairs import attach_hosts, find_complete_hosts
from ibprof_lab.topology.infer.levels import is_network
from ibprof_lab.topology.infer.model_choice import CLOSE, LARGEST, MODELS, ModelChoice, choose_model, find_unconfirmed
from ibprof_lab.topology.infer.pair_delays import PairDelays, fill_gaps
from ibprof_lab.topology.infer.reliability import WEAK, name_some, refuse, weigh_support
from ibprof_lab.topology.infer.two_rails import TwoRails, find_two_rails
from ibprof_lab.topology.model.inferred_topology import InferredTopology

_NOISY = 0.25

_GAIN_OF_RAILS = 1.2
"""Two rails are assumed if they improve the score by more than this per pair, after `TwoRails.cost` is subtracted. For
a ring of switches, the score improves by 0.4 per pair; for real rails, by at least 1.5."""

_ALIKE = 0.01
"""If the factors of slow hosts differ by less than this, the note shows one factor for all slow hosts."""

_MANY_HOSTS = 2048

NO_PAIRS: npt.NDArray[np.integer] = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class Inference:
    """An inferred topology, and pairs to measure again.

    Attributes:
        again: int [pair, 2], pairs of hosts to measure again, as indices of the input (of processes if all run on one
            host). The delay of each pair deviates too far from the explained delay, or is the only delay that supports
            a switch.
        refusal: sentence with the reason why the topology is unreliable; None if it is reliable.
    """

    topology: InferredTopology
    again: npt.NDArray[np.integer]
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class InferenceEffort:
    """Limits of an inference.

    Attributes:
        models: models to try, from `MODELS`.
        replicates: number of resampled delay matrices for the support of edges; 0 to compute no support.
        seconds: time limit for resampling.
    """

    models: tuple[str, ...] = MODELS
    replicates: int = 100
    seconds: float = 10.0
    seed: int = 0


def infer(values: PairDelays, effort: InferenceEffort | None = None) -> Inference:
    """Infer the topology that best explains measured delays.

    Args:
        values: a delay for each pair of hosts.
        effort: limits of the inference; None for the defaults.
    """
    effort = effort or InferenceEffort()
    core = find_complete_hosts(values.seconds)
    if core is not None and (found := _infer_from_core(values, core, effort)) is not None:
        return found
    chosen, said = _leave_out(values.seconds)
    notes = [*values.notes, *(text.format(name_some(values.hosts, which)) for text, which in said)]
    hosts = tuple(values.hosts[host] for host in chosen)
    delays = values.seconds if len(chosen) == len(values.hosts) else values.seconds[np.ix_(chosen, chosen)]
    if len(chosen) < 3:
        return Inference(_explain_few(hosts, delays, notes), NO_PAIRS)
    if len(chosen) > _MANY_HOSTS:
        effort = replace(effort, replicates=0)
    errors = FLOOR if values.is_stated else 0.0
    choice = choose_model(delays, effort.models, errors)
    rails, choice = _prefer_two_rails(choice, delays, effort.models)
    if rails is not None:
        notes.append(
            f"{rails.share:.0%} of the pairs take a second rail or route, with delays {rails.factor:.2f} times "
            "as long; the inference removed this factor"
        )
        delays = rails.even_out(delays)
    answer = _resample(choice, hosts, effort)
    if answer.refusal and answer.choice.candidate.model != "levels" and "levels" in effort.models:
        # In networks with cycles, the switches may be reliable although the links are not.
        simple = _resample(choose_model(delays, ("levels",), errors), hosts, effort)
        if not simple.refusal and simple.choice.candidate.switches > 1:
            notes.append(
                f"the model {answer.choice.candidate.model} explains delays better, but {answer.refusal}. The topology "
                "therefore has only nested switches; further routes between switches may exist"
            )
            answer = simple
    choice, topology = answer.choice, answer.topology
    if choice.levels is not None and choice.measured.sum() < len(chosen) * (len(chosen) - 1):
        notes.append("pairs that were not measured have an estimated delay")
    notes += _describe_hosts(choice, hosts)
    if answer.drawn < effort.replicates:
        notes.append(
            f"support comes from {answer.drawn} resampled {'matrix' if answer.drawn == 1 else 'matrices'}: more would "
            f"have taken over {effort.seconds:g} s"
        )
    # NUMA distances of the firmware cannot be measured again.
    again = (
        np.zeros_like(choice.measured)
        if values.is_stated
        else (find_unconfirmed(choice.candidate, len(hosts)) | choice.outliers) & choice.measured
    )
    upper = ((rows.start, np.triu(again[rows], rows.start + 1)) for rows in blocks(len(again)))
    pairs = np.concatenate([np.argwhere(part) + np.array([first, 0]) for first, part in upper])
    if outliers := int(np.count_nonzero(choice.outliers)) // 2:
        notes.append(f"{count_of(outliers, 'outlying pair')} with over 3.5 times the usual deviation")
    unknown = _doubts(choice, topology.support, hosts)
    if choice.candidate.switches == 1 and choice.candidate.model != "direct":
        unknown.append(
            "all hosts are on one switch, or on several switches whose delays differ by less than about "
            f"{max(2 * choice.noise, 0.01):.0%}"
        )
    topology = replace(topology, noise=choice.noise, notes=tuple(notes), unknown=tuple(unknown))
    return Inference(topology, chosen[pairs], answer.refusal)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A model, its topology, the number of resampled matrices, and the reason if the topology is unreliable."""

    choice: ModelChoice
    topology: InferredTopology
    drawn: int
    refusal: str | None


def _resample(choice: ModelChoice, hosts: tuple[str, ...], effort: InferenceEffort) -> _Answer:
    choice, support, drawn = weigh_support(choice, hosts, effort.replicates, effort.seconds, effort.seed)
    topology = choice.candidate.as_topology(hosts, support)
    return _Answer(choice, topology, drawn, refuse(topology, choice))


def _infer_from_core(values: PairDelays, core: npt.NDArray[np.integer], effort: InferenceEffort) -> Inference | None:
    """Infer the core's topology, and attach all other hosts. Return None if `_leave_out` drops a core host, or if the
    core's model is not `levels`.
    """
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
        f"{share:.1%} of the pairs were measured. The delays of {len(core)} hosts show the switches; all other hosts "
        "were attached by their delays",
        *found.topology.notes,
    ]
    unknown = list(found.topology.unknown)
    if len(attached.undecided):
        few = name_some(names, attached.undecided.tolist())
        unknown.append(f"{count_of(len(attached.undecided), 'host')} could as well be on another switch: {few}")
    topology = replace(attached.topology, notes=tuple(notes), unknown=tuple(unknown))
    again = np.concatenate([core[found.again].reshape(-1, 2), chosen[attached.outlying].reshape(-1, 2)])
    return Inference(topology, again, found.refusal)


def _prefer_two_rails(
    choice: ModelChoice, delays: npt.NDArray[np.floating], models: tuple[str, ...]
) -> tuple[TwoRails | None, ModelChoice]:
    """Return two rails, and the model for delays without the factor of the slower rail.

    Return None and `choice` if two rails do not explain the delays better than one rail, or if the rails are routes
    between switches (`TwoRails.follow_switches`).
    """
    known = delays > 0
    if choice.levels is None or not is_network(delays[known]):
        return None, choice
    rails = find_two_rails(fill_gaps(delays, known).astype(np.float64), known)
    if rails is None:
        return None, choice
    other = choose_model(rails.even_out(delays), models)
    gain = min(choice.scores.values()) - min(other.scores.values()) - rails.cost(known) - CLOSE
    if rails.follow_switches(other.candidate, known):
        return None, choice
    return (rails, other) if gain > _GAIN_OF_RAILS * np.count_nonzero(np.triu(known, 1)) else (None, choice)


def _describe_hosts(choice: ModelChoice, hosts: tuple[str, ...]) -> Iterator[str]:
    """Yield notes on slow hosts and on a grid of hosts."""
    candidate = choice.candidate
    if choice.levels is not None and candidate.model == "levels" and (factors := choice.levels.factor).any():
        yield _describe_factors(factors, hosts, "on their switch")
    if candidate.model == "direct":
        if (factors := np.log(find_slow_hosts(choice.delays, choice.measured))).any():
            yield _describe_factors(factors, hosts, "near them")
        if grid := describe_grid(candidate.edge, len(hosts)):
            yield f"the links form {grid}"


def _describe_factors(factors: Floats, hosts: tuple[str, ...], near: str) -> str:
    which = np.flatnonzero(factors).tolist()
    ratio = np.exp(factors[which])
    by = f"{ratio.min():.2f}" if np.ptp(ratio) < _ALIKE else f"{ratio.min():.2f} to {ratio.max():.2f}"
    return (
        f"the delays of {count_of(len(which), 'host')} ({name_some(hosts, which)}) are {by} times the delays "
        f"of other hosts {near}; the inference removed this factor"
    )


def _leave_out(seconds: npt.NDArray[np.floating]) -> tuple[npt.NDArray[np.integer], list[tuple[str, list[int]]]]:
    """Return the largest set of hosts that measured pairs connect, and notes, each with the hosts to name in the
    note."""
    measured = seconds > 0
    if measured.sum() == measured.size - len(measured):
        return np.arange(len(seconds)), []
    pairs = np.count_nonzero(measured, axis=1)
    count = 1
    if pairs.min() < len(measured) / 2:  # if each host has pairs with half of the hosts, all hosts are connected
        count, label = connected_components(csr_matrix(measured.astype(np.int8)), directed=False)
    if count <= 1:
        share = 1 - pairs.sum() / max(measured.size - len(measured), 1)
        return np.arange(len(seconds)), [(f"{share:.1%} of the pairs were not measured", [])]
    largest = int(np.bincount(label).argmax())
    out = np.flatnonzero(label != largest).tolist()
    return np.flatnonzero(label == largest), [
        (
            f"{count_of(len(out), 'host')} {'is' if len(out) == 1 else 'are'} left out, since no measured pair leads "
            "to the other hosts: {}",
            out,
        )
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


def _doubts(choice: ModelChoice, support: Floats, hosts: tuple[str, ...]) -> list[str]:
    """Return sentences on details that the delays do not determine."""
    doubts = []
    ranked = sorted(choice.scores.items(), key=lambda item: item[1])
    own = choice.candidate.model
    for model, reached in ranked:
        if model != own and abs(reached - choice.scores[own]) < CLOSE:
            doubts.append(f"the model {model} explains the delays about as well as the model {own}")
    if choice.noise > _NOISY:
        doubts.append(f"no model explains the delays: they deviate by {choice.noise:.0%} from the best model")
    elif choice.unexplained:
        doubts.append(
            f"delays deviate by {choice.noise:.1%} from the best model, in a pattern: the model does not describe a "
            "part of the topology"
        )
    if weak := int(np.count_nonzero(support < WEAK)):
        doubts.append(
            f"{count_of(weak, 'edge')} {'was' if weak == 1 else 'were'} found again in less than {WEAK:.0%} of the "
            "resampled matrices"
        )
    for model in choice.untried:
        doubts.append(f"the model {model} was not tried: it supports at most {LARGEST[model]} hosts, not {len(hosts)}")
    return doubts
