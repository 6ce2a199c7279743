# SPDX-License-Identifier: Apache-2.0
"""The reliability of an answer: support of its edges by resampling, and the reason for a refusal.

A resampled matrix has the delays that the answer explains, with newly sampled errors. Errors that pairs share are
sampled as such: one of a host for all its pairs, one of a route for all pairs of hosts of the same two switches, and
the rest of each pair by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import format_seconds
from ibprof_lab.topology.infer.additive_tree import find_additive
from ibprof_lab.topology.infer.candidate import FLOOR, Candidate, Floats, find_attached_switches, find_switches
from ibprof_lab.topology.infer.clock_steps import ClockSteps
from ibprof_lab.topology.infer.direct_networks import find_direct, find_switched
from ibprof_lab.topology.infer.model_choice import ModelChoice
from ibprof_lab.topology.infer.nested_levels import NearGroup, as_candidate, find_levels, join_slow_hosts
from ibprof_lab.topology.model.inferred_topology import InferredTopology

_ALIKE = 0.5
"""Share of common hosts beyond which two switches are the same."""

ToTopology = Callable[[Candidate], InferredTopology]

Mark = frozenset[int] | tuple[object, ...]
Splits = AbstractSet[frozenset[int]]
"""Hosts on one side of each link."""

WEAK = 0.7
"""Support of an edge below which an answer is refused.

Source: D. M. Hillis and J. J. Bull, "An empirical test of bootstrapping as a method for assessing confidence in
phylogenetic analysis", Systematic Biology 42, 1993: groups of 70% and more are mostly real ones.
"""

_NEARLY_A_SWITCH = 3.5
"""Times the errors' deviation. Hosts that are nearer to one another by more may have a switch."""

_FEWEST_TOGETHER, _FEW_TOGETHER = 2, 3
"""Hosts of a switch to which another may belong that one wrong delay sets apart."""


def find_support(
    choice: ModelChoice, delays: Floats, to_topology: ToTopology, replicates: int, seconds: float, seed: int
) -> tuple[Floats, int]:
    """Return each edge's support.

    An edge of a tree is found again where it splits the hosts equally. A host's edge is found again where its switch
    has mostly the same hosts; an edge of another network where its ends are linked.

    Args:
        choice: the answer.
        delays: float64 [n, n], as measured, nan where not.
        to_topology: makes a topology of a candidate.
        replicates: number of matrices.
        seconds: limit, after which no more matrices are sampled.
        seed: of the sampling.

    Returns:
        float64 [edge], and the number of matrices that were sampled.
    """
    candidate = choice.candidate
    answer = to_topology(candidate)
    marks = _mark_edges(answer)
    found = np.zeros(len(marks))
    above = np.triu_indices(len(delays), 1)
    believed = ~np.isnan(delays) & ~choice.outliers
    links = int(np.count_nonzero(answer.edge.min(axis=1) >= len(answer.hosts)))
    residuals = np.where(believed, candidate.residuals(delays), 0.0)
    errors = split_errors(residuals, believed, find_switches(candidate.edge, len(answer.hosts)), links)
    draw = np.random.default_rng(seed)
    until = time.monotonic() + seconds
    sampled = 0
    known = ~np.eye(len(delays), dtype=bool)
    for _ in range(replicates):
        if sampled and time.monotonic() > until:
            break
        sample = candidate.explained.astype(np.float64)
        sample[above] *= np.exp(errors.draw(draw)[above])
        sample.T[above] = sample[above]
        again = _ask_again(candidate, sample, known)
        if again is not None:
            seen = _mark_edges(to_topology(again))
            groups = [mark for mark in seen if isinstance(mark, tuple) and mark[0] == "host"]
            of_host = {mark[1]: mark[2] for mark in groups}
            others = set(seen)
            found += [_is_found(mark, others, of_host) for mark in marks]
        sampled += 1
    return found / max(sampled, 1), sampled


def _mark_edges(topology: InferredTopology) -> list[Mark]:
    """Return what identifies each edge whatever its vertices are called: the hosts beyond it, or its hosts."""
    hosts = len(topology.hosts)
    edge = np.sort(topology.edge, axis=1)
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


def _is_found(mark: Mark, others: set[Mark], of_host: dict[object, object]) -> bool:
    if isinstance(mark, tuple) and mark[0] == "host":
        group, again = mark[2], of_host.get(mark[1])
        if not isinstance(group, frozenset) or not isinstance(again, frozenset):
            return False
        return len(group & again) > _ALIKE * len(group | again)
    return mark in others or (isinstance(mark, tuple) and mark[::-1] in others)


def _ask_again(candidate: Candidate, sample: Floats, known: npt.NDArray[np.bool_]) -> Candidate | None:
    if candidate.model == "levels":
        levels = find_levels(sample)
        plain = as_candidate(levels)
        return join_slow_hosts(levels, plain, sample, known) or plain
    if candidate.model == "additive":
        return find_additive(sample, known)
    if candidate.switches:
        return find_switched(sample, known, find_levels(sample).significant)
    return find_direct(sample, known)


@dataclass(frozen=True, slots=True)
class SharedErrors:
    """Errors of the logarithm of delays, by what shares them.

    Attributes:
        switch: int [host], the switch of each.
        of_host: float64 [host], in all delays of a host.
        of_route: float64 [route], in all delays between hosts of the same two switches; also for hosts of one switch,
            whose delay to one another is fitted for itself, so that its error does not show.
        of_pair: float64 [pair], the rest.
    """

    switch: npt.NDArray[np.integer]
    of_host: Floats
    of_route: Floats
    of_pair: Floats

    def draw(self, source: np.random.Generator) -> Floats:
        """Return errors of all pairs, float64 [host, host], symmetric: each part drawn from those that were found."""
        hosts, switches = len(self.switch), int(self.switch.max()) + 1
        of_host = source.choice(self.of_host, hosts)
        of_route = _mirror(source.choice(self.of_route, (switches, switches)))
        of_pair = _mirror(source.choice(self.of_pair, (hosts, hosts)))
        drawn: Floats = of_host[:, None] + of_host + of_route[np.ix_(self.switch, self.switch)] + of_pair
        return drawn


def split_errors(
    residuals: Floats, known: npt.NDArray[np.bool_], switch: npt.NDArray[np.integer], links: int
) -> SharedErrors:
    """Split residuals into what hosts share, what routes share, and the rest.

    Links between switches are fitted to the delays of routes, and follow their errors: what is left of these is too
    small, and is scaled by the degrees of freedom.

    Args:
        residuals: float64 [host, host], symmetric, 0 where not known.
        known: bool [host, host].
        switch: int [host], of each host, from 0 on.
        links: number of links between switches in the model that leaves the residuals.
    """
    left = residuals - (np.median(residuals[known]) if known.any() else 0.0)
    left = np.where(known, left, 0.0)
    of_host = left.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    left = np.where(known, left - of_host[:, None] - of_host, 0.0)
    switches = int(switch.max()) + 1
    route = np.minimum.outer(switch, switch) * switches + np.maximum.outer(switch, switch)
    pairs = np.triu(known, 1)
    count = np.bincount(route[pairs], minlength=switches * switches)
    mean = np.bincount(route[pairs], left[pairs], switches * switches) / np.maximum(count, 1)
    left = left - mean[route]
    within = np.arange(switches) * (switches + 1)
    between = np.setdiff1d(np.flatnonzero(count), within)
    scale = sqrt(len(between) / max(len(between) - links, 1))
    return SharedErrors(switch, of_host, _or_none(scale * mean[between]), _or_none(left[pairs]))


def _or_none(values: Floats) -> Floats:
    return values if len(values) else np.zeros(1)


def _mirror(square: Floats) -> Floats:
    upper = np.triu(square, 1)
    mirrored: Floats = upper + upper.T + np.diag(np.diag(square))
    return mirrored


def refuse(topology: InferredTopology, choice: ModelChoice, measured: npt.NDArray[np.bool_]) -> str | None:
    """Return why an answer is not to be relied on."""
    weak = np.flatnonzero(topology.support < WEAK)
    if len(weak):
        worst = int(weak[np.argmin(topology.support[weak])])
        a, b = (topology.names[end] for end in topology.edge[worst])
        return (
            f"{len(weak)} of {len(topology.edge)} links were found again in less than {WEAK:.0%} of the resampled "
            f"matrices, the weakest from {a} to {b} in {topology.support[worst]:.0%}"
        )
    near = choice.near
    if near is not None and near.step > _NEARLY_A_SWITCH * near.deviation and near.deviation > FLOOR:
        return describe_near(near, topology.hosts) + ": that may be a switch"
    return _refuse_single_hosts(topology, choice.outliers, measured) if choice.candidate.model != "direct" else None


def _refuse_single_hosts(
    topology: InferredTopology, outliers: npt.NDArray[np.bool_], measured: npt.NDArray[np.bool_]
) -> str | None:
    """Return which host may as well be on a switch next to its own, since delays between them are missing or wrong."""
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
            return f"no delay between {host} and {there} was measured: it may be on that switch"
        is_end = degree[other] == 1 and len(group) <= _FEW_TOGETHER
        if is_end and len(single) == 1 and outliers[np.ix_(single, group)].any():
            host = topology.hosts[single[0]]
            return f"delays between {host} and {there} deviate too far to show whether it is on it"
    return None


def find_hidden_switch(
    of_shares: Splits, of_alike: Splits, hosts: int, shorter: npt.NDArray[np.bool_]
) -> tuple[int, ...]:
    """Return a few hosts that have a switch if errors are shares of delays, but none if the clock's are alike for all.

    Args:
        of_shares, of_alike: splits of the hosts by the links of the answers under these two assumptions.
        hosts: their number.
        shorter: bool [n, n], whether a delay is shorter than the second answer explains, by more than the clock errs.

    Returns:
        Ascending; empty where there is no such switch.
    """
    every = frozenset(range(hosts))
    sides = (side for split in of_shares - of_alike for side in (split, every - split))
    few = sorted(tuple(sorted(side)) for side in sides if _FEWEST_TOGETHER <= len(side) <= _FEW_TOGETHER)
    return next((group for group in few if shorter[np.ix_(group, group)].any()), ())


def refuse_steps(
    steps: ClockSteps | None, candidate: Candidate, hosts: tuple[str, ...], hidden: Sequence[int]
) -> str | None:
    """Return why delays that a coarse clock measured do not show the links that were found."""
    if steps is None or not (hidden or steps.hides_links_of(candidate, len(hosts))):
        return None
    which = "links that add less than two of these steps"
    if hidden:
        which = f"whether {name_some(hosts, hidden)} have a switch of their own"
    return (
        f"delays are multiples of {format_seconds(steps.seconds)}, and {steps.share:.0%} of them are another multiple "
        f"than is explained: the clock's errors hide {which}"
    )


def describe_near(near: NearGroup, hosts: tuple[str, ...]) -> str:
    """Return which hosts are nearer to one another than errors explain, and by how much."""
    return (
        f"{len(near.hosts)} hosts ({name_some(hosts, near.hosts.tolist())}) are nearer to one another by "
        f"{np.expm1(near.step):.1%}, while errors deviate by {near.deviation:.1%}"
    )


def name_some(hosts: Sequence[str], which: Sequence[int]) -> str:
    """Return the names of the first few hosts of many."""
    names = [hosts[host] for host in which[:5]]
    return ", ".join(names) + (", ..." if len(which) > 5 else "")
