# SPDX-License-Identifier: Apache-2.0
"""Reliability of an inferred topology: the support of its edges, and the reason to refuse the topology.

The support of an edge is the fraction of resampled delay matrices from which the edge is inferred again. For the model
`levels`, the matrices have random subsets of the hosts. For other models, the matrices have synthetic delays: the
explained delays with errors sampled from the residuals.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import count_of, format_seconds
from ibprof_lab.topology.infer.binary_trees import find_additive
from ibprof_lab.topology.infer.candidate import Candidate, Floats, find_attached_switches
from ibprof_lab.topology.infer.direct_networks import find_direct, find_regular_links, find_slow_hosts, find_switched
from ibprof_lab.topology.infer.levels import NETWORK_STEP, find_levels, find_support, is_network
from ibprof_lab.topology.infer.model_choice import FEWER_HOSTS, ModelChoice
from ibprof_lab.topology.model.inferred_topology import InferredTopology

Mark = frozenset[int] | tuple[object, ...]

WEAK = 0.7
"""A topology is refused if the support of an edge is below this.

Source: D. M. Hillis and J. J. Bull, "An empirical test of bootstrapping as a method for assessing confidence in
phylogenetic analysis", Systematic Biology 42, 1993: groups with a support of 70% and more are mostly real.
"""

_MAJORITY = 0.5
"""For the model `levels`, a switch with a support below this is dropped."""

_CERTAIN = 10
"""For models other than `levels`, sampling ends after this many samples if all of them have every edge. An edge with
the true support `WEAK` is in all of these samples with a probability of 3%."""

_OF_HOSTS = 0.7
"""Fraction of the hosts in each random subset."""

_FEWEST_HOSTS = 6

_ALIKE = 0.5
_FEWEST_TOGETHER, _FEW_TOGETHER = 2, 3
"""A topology is refused if no delay was measured between a host and a neighbouring switch with at least
`_FEWEST_TOGETHER` hosts. A topology is also refused if a host alone on its switch has an outlying delay to a
neighbouring switch. This second test covers only neighbouring switches with one link to another switch and at most
`_FEW_TOGETHER` hosts."""


def weigh_support(
    choice: ModelChoice, names: tuple[str, ...], replicates: int, seconds: float, seed: int
) -> tuple[ModelChoice, Floats | None, int]:
    """Compute the support of edges by resampling; in the model `levels`, drop the switches with a support below 0.5.

    Args:
        replicates: number of samples; 0 to compute no support.
        seconds: time limit for sampling.

    Returns:
        The model; the support of each edge (float64 [edge]), or None if not computed; the number of samples. The number
        is also `replicates` if sampling ended early because more samples would not change the result.
    """
    if not replicates:
        return choice, None, 0
    draw = np.random.default_rng(seed)
    samples = _until(replicates, seconds)
    if choice.levels is None or choice.candidate.model != "levels":
        return choice, *_resample_errors(choice, names, draw, samples, replicates)
    hosts = len(choice.delays)
    if hosts < _FEWEST_HOSTS:
        return choice, np.full(len(choice.candidate.edge), np.nan), replicates
    size = max(int(_OF_HOSTS * hosts), 4)
    drawn = (np.sort(draw.choice(hosts, size, replace=False)) for _ in samples)
    split_support, host_support, count = find_support(choice.levels, choice.delays, choice.measured, drawn)
    every = frozenset(range(hosts))
    weak = [
        node for node, group in enumerate(choice.levels.groups(), 1)
        if split_support[every - group if 0 in group else group] < _MAJORITY
    ]  # fmt: skip
    if weak:
        levels = choice.levels.without(weak)
        choice = replace(choice, levels=levels, candidate=levels.as_candidate())
    topology = choice.candidate.as_topology(names)
    support = np.array([
        host_support[a] if a < hosts else split_support.get(split or frozenset(), np.nan)
        for (a, _), split in zip(np.sort(topology.edge, axis=1).tolist(), topology.find_splits(), strict=True)
    ])  # fmt: skip
    return choice, support, count


def _until(replicates: int, seconds: float) -> Iterator[int]:
    until = time.monotonic() + seconds
    for number in range(replicates):
        if number and time.monotonic() > until:
            return
        yield number


def _resample_errors(
    choice: ModelChoice, names: tuple[str, ...], draw: np.random.Generator, samples: Iterator[int], replicates: int
) -> tuple[Floats, int]:
    candidate = choice.candidate
    marks = _mark_edges(candidate.as_topology(names))
    found = np.zeros(len(marks))
    hosts = len(choice.delays)
    kind = np.float64 if hosts <= FEWER_HOSTS else np.float32
    factors = np.exp(candidate.residuals(choice.delays)[choice.measured & ~choice.outliers]).astype(kind)
    above, known = ~np.tri(hosts, dtype=bool), ~np.eye(hosts, dtype=bool)
    explained = candidate.explained[above].astype(kind)
    count = 0
    for _ in samples:
        if count >= _CERTAIN and (found == count).all():
            return found / count, replicates
        sample = np.zeros((hosts, hosts), kind)
        sample[above] = explained * draw.choice(factors, len(explained))
        sample += sample.T
        if (again := _infer_again(candidate, sample, known)) is not None:
            seen = _mark_edges(again.as_topology(names))
            of_host = {mark[1]: mark[2] for mark in seen if isinstance(mark, tuple) and mark[0] == "host"}
            others = set(seen)
            found += [_is_found(mark, others, of_host) for mark in marks]
        count += 1
    return found / max(count, 1), count


def _infer_again(candidate: Candidate, sample: Floats, known: npt.NDArray[np.bool_]) -> Candidate | None:
    if candidate.model == "additive":
        return find_additive(sample, known)
    factor = find_slow_hosts(sample, known)
    if (factor > 1).any():
        sample = sample / factor / factor[:, None]
    if candidate.switches:
        return find_switched(sample, known, find_levels(sample, known, candidate.errors).tree)
    if len(sample) <= FEWER_HOSTS:
        return find_direct(sample, known)
    edge = find_regular_links(sample, known)
    return None if edge is None else replace(candidate, edge=edge, latency=np.zeros(len(edge)))


def _mark_edges(topology: InferredTopology) -> list[Mark]:
    """Return a key for each edge. Keys contain only host indices, and do not depend on switch indices."""
    hosts = len(topology.hosts)
    edge = np.sort(topology.edge, axis=1)
    if not topology.switches:
        return [(a, b) for a, b in edge.tolist()]
    own: dict[int, set[int]] = {}
    for a, b in edge.tolist():
        if a < hosts <= b:
            own.setdefault(b, set()).add(a)
    marks: list[Mark] = []
    for (a, b), split in zip(edge.tolist(), topology.find_splits(), strict=True):
        if a < hosts <= b:
            marks.append(("host", a, frozenset(own[b])))
        elif split is not None:
            marks.append(split)
        else:
            marks.append(tuple(frozenset(own.get(end, {end})) for end in (a, b)))
    return marks


def _is_found(mark: Mark, others: AbstractSet[Mark], of_host: dict[object, object]) -> bool:
    if isinstance(mark, tuple) and mark[0] == "host":
        group, again = mark[2], of_host.get(mark[1])
        if not isinstance(group, frozenset) or not isinstance(again, frozenset):
            return False
        return len(group & again) > _ALIKE * len(group | again)
    return mark in others or (isinstance(mark, tuple) and mark[::-1] in others)


def refuse(topology: InferredTopology, choice: ModelChoice) -> str | None:
    """Return the reason why the topology is unreliable; None if it is reliable."""
    weak = np.flatnonzero(topology.support < WEAK)
    if len(weak):
        worst = int(weak[np.argmin(topology.support[weak])])
        a, b = (topology.names[end] for end in topology.edge[worst])
        return (
            f"{len(weak)} of {count_of(len(topology.edge), 'link')} {'was' if len(weak) == 1 else 'were'} found again "
            f"in less than {WEAK:.0%} of the resampled matrices; the weakest link, from {a} to {b}, in "
            f"{topology.support[worst]:.0%}"
        )
    if choice.candidate.model == "direct":
        return None
    if choice.unexplained and choice.noise > NETWORK_STEP and is_network(choice.delays[choice.measured]):
        return f"no model explains a pattern in the delays; they deviate by {choice.noise:.1%} from the best model"
    if choice.levels is not None and choice.levels.hidden:
        step, hidden = format_seconds(choice.levels.clock_step), choice.levels.hidden
        return (
            f"delays are multiples of {step}, the clock's step. Many deviate from the model by a step or more, and "
            f"may hide {count_of(hidden, 'more switch')}"
        )
    return _refuse_single_hosts(topology, choice.outliers, choice.measured)


def _refuse_single_hosts(
    topology: InferredTopology, outliers: npt.NDArray[np.bool_], measured: npt.NDArray[np.bool_]
) -> str | None:
    """Return a sentence on a host whose switch is uncertain because delays are missing or wrong; else None."""
    hosts = len(topology.hosts)
    switch = find_attached_switches(topology.edge, hosts)
    edge = np.sort(topology.edge, axis=1)
    links = edge[edge[:, 0] >= hosts]
    degree = np.bincount(links.ravel(), minlength=hosts + len(topology.switches))
    for own, other in (*links.tolist(), *links[:, ::-1].tolist()):
        single, group = np.flatnonzero(switch == own), np.flatnonzero(switch == other)
        if len(group) < _FEWEST_TOGETHER:
            continue
        there = f"hosts of {topology.names[other]} ({name_some(topology.hosts, group.tolist())})"
        unknown = single[~measured[np.ix_(single, group)].any(axis=1)]
        if len(unknown):
            host = topology.hosts[unknown[0]]
            return f"no delay between {host} and {there} was measured: {host} may be on that switch"
        is_end = degree[other] == 1 and len(group) <= _FEW_TOGETHER
        if is_end and len(single) == 1 and outliers[np.ix_(single, group)].any():
            host = topology.hosts[single[0]]
            return f"delays between {host} and {there} deviate too far to show whether {host} is on that switch"
    return None


def name_some(hosts: Sequence[str], which: Sequence[int]) -> str:
    """Return the names of at most five hosts, and ", ..." if there are more."""
    names = [hosts[host] for host in which[:5]]
    return ", ".join(names) + (", ..." if len(which) > 5 else "")
