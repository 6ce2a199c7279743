# SPDX-License-Identifier: Apache-2.0
"""Factors of delays that are not of the topology: those of hosts, and that of the slower of two rails.

Some hosts' delays to all others are longer, or shorter, by one factor: cores of another clock, busy hosts. Levels
separate such a host from its switch, and neighbours of a slow host look like a group of their own. Factors and the
delays of switches are therefore fitted together.

On one of two rails or routes a delay is longer by the same factor for all pairs. Which pairs take it need not follow
the topology: rails in turn by rank, by round or by message look like switches, since hosts that share a rail are nearer
to one another. The factor is found first, from the differences of two hosts' delays to a third. Hosts are then linked
by their delays to others without the factor, and each pair is assigned to a rail.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.binary_trees import PrunedTree, RootedTree, link_average
from ibprof_lab.topology.infer.candidate import (
    FLOOR,
    LEAST_STEP,
    NORMAL,
    OUTLYING,
    Candidate,
    Floats,
    find_pattern,
    find_switches,
    sample_hosts,
    score,
)
from ibprof_lab.topology.infer.nested_levels import as_candidate, find_levels, find_levels_robustly

_FEWEST_HOSTS = 6
LARGEST_FACTORS = 512
_FEWEST_FOR_ALL = 10
"""Hosts. With fewer, factors of all of them are more than a quarter of the delays, and follow their errors."""

MOST_EXCEPTIONS = 0.5
"""Share of hosts beyond which a factor is no exception."""

_OWN = 2.0
"""Pairs whose errors weigh as much as the factor of a host, so that factors do not replace switches of two."""

_FREE = 1e-3
"""The same before the first fit, which no factor must bend yet."""

_ROUNDS = 4
_STEPS = 12
_SETTLED = 1e-3

_FEWEST_FOR_RAILS = 8
LARGEST_RAILS = 1024
"""Hosts; the comparison of all rows takes n^3 steps."""

_TRIPLES = 200_000
_BINS = 200
_VALLEY = 0.25
"""Share of the peak at no difference below which that peak ends."""

_APART = 6.0
"""Times the deviation of errors that the rails' delays must differ by."""

_LEAST_SHARE = 0.1
"""Of the pairs on either rail; fewer are outliers."""

_TOWARDS_ABOVE = 0.1
"""Cost of a delay that differs from the one above, in addition to the errors that it leaves."""

_ALIKE = 0.25
"""Share of the rails' difference within which a link's is the same."""

_OF_A_ROUTE = 0.9
"""Share of the pairs of two switches on one rail, on average, from which on that is the route between them."""

_SEVERAL = 4
"""Pairs of two switches that show whether they take one rail."""

_RAIL_ROUNDS = 8
_RAILS_SETTLED = 1e-4


@dataclass(frozen=True, slots=True)
class HostFactors:
    """Factors of hosts.

    Attributes:
        longer: float64 [host], logarithm of each host's factor; 0 for most.
    """

    longer: Floats

    @property
    def hosts(self) -> npt.NDArray[np.integer]:
        """The hosts that have a factor, int [host]."""
        return np.flatnonzero(self.longer)

    def cost(self, known: npt.NDArray[np.bool_]) -> float:
        """Return what the choice of these hosts and their factors cost, as scores of candidates count."""
        pairs = int(np.count_nonzero(np.triu(known, 1)))
        hosts, chosen = len(self.longer), len(self.hosts)
        choices = lgamma(hosts + 1) - lgamma(chosen + 1) - lgamma(hosts - chosen + 1) + log(hosts)
        return chosen * log(max(pairs, 2)) + 2 * choices

    def even_out(self, delays: Floats) -> Floats:
        """Return the delays as they would be if no host had a factor, float64 [n, n]."""
        evened: Floats = delays * np.exp(-(self.longer[:, None] + self.longer))
        return evened

    def reached_with_levels(self, delays: Floats, known: npt.NDArray[np.bool_]) -> float:
        """Return the score of nested levels that explain the delays with these factors."""
        even = self.even_out(delays)
        return score(as_candidate(find_levels(even)), even, known) + self.cost(known)

    def refine(self, candidate: Candidate, delays: Floats, known: npt.NDArray[np.bool_]) -> HostFactors:
        """Return factors that leave no median error of these hosts in what a candidate explains.

        Args:
            candidate: of the delays without the factors.
            delays: float64 [n, n], as measured.
            known: bool [n, n], which of them count.
        """
        left = np.where(known, candidate.residuals(self.even_out(delays)), np.nan)
        longer = self.longer.copy()
        longer[self.hosts] += np.nanmedian(left[self.hosts], axis=1)
        return HostFactors(longer)


def find_host_factors(delays: Floats, known: npt.NDArray[np.bool_]) -> list[HostFactors]:
    """Find factors of some hosts, or of all, that explain the delays together with nested levels.

    Args:
        delays: float64 [n, n], seconds, symmetric, above 0 except on the diagonal.
        known: bool [n, n], which of them were measured.

    Returns:
        Factors of the hosts that differ from most, and of all; empty where no host differs.
    """
    hosts = len(delays)
    if not _FEWEST_HOSTS <= hosts <= LARGEST_FACTORS:
        return []
    found = []
    # Rows are alike whatever the factors; but where rows differ little, the mean delays are more exact.
    for tree in (find_levels(delays).significant, find_levels_robustly(delays).significant):
        longer = _fit_with_tree(tree, delays, known)
        usual = NORMAL * float(np.median(np.abs(longer)))
        is_odd = np.abs(longer) > max(LEAST_STEP, OUTLYING * usual)
        if 0 < np.count_nonzero(is_odd) <= MOST_EXCEPTIONS * hosts:
            found.append(HostFactors(np.where(is_odd, longer, 0.0)))
        if np.abs(longer).max() > FLOOR and hosts >= _FEWEST_FOR_ALL:
            found.append(HostFactors(longer))
    return found


def _fit_with_tree(tree: RootedTree, delays: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    """Return logarithms of the factors of hosts, fitted in turn with the tree of what they leave."""
    logs = np.log(np.where(known, delays, 1.0))
    longer = _fit(logs, known, tree.meeting_nodes())
    for _ in range(_ROUNDS):
        before = longer
        # With the nodes that only independent errors would allow, no factor is lost in too coarse a tree.
        again = find_levels(HostFactors(longer).even_out(delays)).significant
        longer = _fit(logs, known, again.meeting_nodes())
        if np.abs(longer - before).max() < _SETTLED:
            break
    return longer


def _fit(logs: Floats, known: npt.NDArray[np.bool_], meeting: npt.NDArray[np.integer]) -> Floats:
    """Return logarithms of factors by which hosts in a tree explain delays best, by absolute errors; most are near 0.

    Args:
        logs: float64 [n, n], of the delays.
        known: bool [n, n], which of them count.
        meeting: int [n, n], the node of each pair.
    """
    hosts, nodes = len(logs), int(meeting.max()) + 1
    host, node = np.arange(hosts), hosts + np.arange(nodes)
    place = (host[:, None] * nodes + meeting).ravel()
    weight, own = known.astype(np.float64), np.full(hosts, _FREE)
    for _ in range(_STEPS):
        # Normal equations of weighted least squares, where the weights are those of absolute errors.
        system = np.zeros((hosts + nodes,) * 2)
        system[:hosts, :hosts] = weight
        system[host, host] += weight.sum(axis=1) + own
        system[:hosts, hosts:] = np.bincount(place, weight.ravel(), hosts * nodes).reshape(hosts, nodes)
        system[hosts:, :hosts] = system[:hosts, hosts:].T
        system[node, node] = np.bincount(meeting.ravel(), weight.ravel(), nodes) / 2 + 1e-12
        sums = (weight * logs).sum(axis=1), np.bincount(meeting.ravel(), (weight * logs).ravel(), nodes) / 2
        fitted = np.linalg.solve(system, np.concatenate(sums))
        longer, height = fitted[:hosts], fitted[hosts:]
        left = np.abs(logs - longer[:, None] - longer - height[meeting])
        usual = max(NORMAL * float(np.median(left[known])), FLOOR)
        weight = known * usual / np.maximum(left, usual)
        own = _OWN * usual / np.maximum(np.abs(longer), usual)
    return np.asarray(longer - np.median(longer))


@dataclass(frozen=True, slots=True)
class TwoRails:
    """Which pairs of hosts take the slower of two rails.

    Attributes:
        factor: by which a delay is longer there, above 1.
        slower: bool [n, n], symmetric.
    """

    factor: float
    slower: npt.NDArray[np.bool_]

    @property
    def share(self) -> float:
        """Share of the pairs on the slower rail."""
        return np.count_nonzero(self.slower) / (len(self.slower) * (len(self.slower) - 1))

    def cost(self, known: npt.NDArray[np.bool_]) -> float:
        """Return what naming the rail of each measured pair costs, a bit each, as scores of candidates count."""
        return np.count_nonzero(np.triu(known, 1)) * 2 * log(2)

    def follow_switches(self, candidate: Candidate, known: npt.NDArray[np.bool_]) -> bool:
        """Return whether all hosts of two switches have one rail: that is a route between switches, as in a ring."""
        hosts = len(known)
        switch = find_switches(candidate.edge, hosts)
        route = np.minimum.outer(switch, switch) * hosts + np.maximum.outer(switch, switch)
        between = np.triu(known, 1) & np.not_equal.outer(switch, switch)
        pairs = np.bincount(route[between], minlength=hosts * hosts)
        slower = np.bincount(route[between & self.slower], minlength=hosts * hosts)
        several = pairs >= _SEVERAL
        alike = np.maximum(slower, pairs - slower)[several].sum()
        return bool(several.any() and alike >= _OF_A_ROUTE * pairs[several].sum())

    def even_out(self, delays: Floats) -> Floats:
        """Return the delays as they would be if all pairs took the faster rail, float64 [n, n]."""
        return np.where(self.slower, delays / self.factor, delays)


def find_two_rails(delays: Floats, known: npt.NDArray[np.bool_]) -> TwoRails | None:
    """Find two rails, where they explain more than naming the rail of each pair costs.

    Args:
        delays: float64 [n, n], seconds, symmetric, above 0 except on the diagonal.
        known: bool [n, n], which of them were measured.

    Returns:
        None where there is one rail, or rails that errors hide.
    """
    hosts = len(delays)
    if not _FEWEST_FOR_RAILS <= hosts <= LARGEST_RAILS:
        return None
    some = sample_hosts(hosts)
    # Rails show in some of the hosts already; most fabrics have none, which is then soon known.
    if len(some) < hosts and find_two_rails(delays[np.ix_(some, some)], known[np.ix_(some, some)]) is None:
        return None
    logs = np.log(np.where(known, delays, 1.0))
    longer = _find_difference(logs, known)
    if longer is None:
        return None
    slower = _assign_along_tree(logs, known, longer)
    for _ in range(_RAIL_ROUNDS):
        even = np.where(slower, delays * exp(-longer), delays)
        levels = find_levels(even)
        candidate = as_candidate(levels)
        left = np.where(known, logs - np.log(np.where(known, candidate.explained, 1.0)), 0.0)
        again = known & (left > longer / 2)
        if not again.any() or not (known & ~again).any():
            return None
        before, longer = longer, float(left[again].mean() - left[known & ~again].mean())
        settled = bool((again == slower).all()) and abs(longer - before) < _RAILS_SETTLED
        slower = again
        if settled:
            apart = _find_rails_as_switches(levels.pruned, slower, known, longer)
            if not apart.any():
                break
            slower = slower | apart
    found = TwoRails(exp(longer), slower)
    return found if _is_worth_it(found, delays, known) else None


def _find_rails_as_switches(
    pruned: PrunedTree, slower: npt.NDArray[np.bool_], known: npt.NDArray[np.bool_], longer: float
) -> npt.NDArray[np.bool_]:
    """Return the pairs that rather take the slower rail than that a switch makes their delays as much longer.

    By chance all pairs of a host with its switch's others take the slower rail. The others then look like hosts of a
    switch of their own, whose link takes exactly the rails' difference, while no pair that meets above it is on the
    slower rail.
    """
    tree, height = pruned.tree, pruned.height
    meeting = np.where(known, tree.meeting_nodes(), -1)
    step = height[tree.parent] - height
    alike = np.flatnonzero(np.abs(step[1:] - longer) < _ALIKE * longer) + 1
    above = [node for node in np.unique(tree.parent[alike]).tolist() if not slower[meeting == node].any()]
    apart: npt.NDArray[np.bool_] = np.isin(meeting, above)
    return apart


def _find_difference(logs: Floats, known: npt.NDArray[np.bool_]) -> float | None:
    """Return the most frequent difference of two hosts' delays to a third beyond none, of logarithms."""
    hosts = len(logs)
    one, other, third = np.random.default_rng(0).integers(0, hosts, (3, _TRIPLES))
    valid = known[one, third] & known[other, third] & (one != other)
    difference = np.abs(logs[one, third] - logs[other, third])[valid]
    if not len(difference):
        return None
    width = max(float(np.quantile(difference, 0.98)) / _BINS, 1e-4)
    count = np.bincount((difference / width).astype(int).clip(max=_BINS + 1))[: _BINS + 1].astype(float)
    smooth = np.convolve(np.pad(count, 2, mode="reflect"), np.full(5, 0.2), "valid")
    ends = np.flatnonzero(smooth < _VALLEY * smooth[:3].max())
    if not len(ends):
        return None
    return float((ends[0] + int(np.argmax(smooth[ends[0] :])) + 0.5) * width)


def _assign_along_tree(logs: Floats, known: npt.NDArray[np.bool_], longer: float) -> npt.NDArray[np.bool_]:
    """Assign pairs to rails along a tree of hosts: pairs that meet in a node have one delay, or `longer` more."""
    hosts = len(logs)
    tree = link_average(_compare_rows(logs, known, longer))
    slower = np.zeros((hosts, hosts), bool)
    below: list[list[int]] = [[host] for host in range(hosts)]
    above = np.full(2 * hosts - 1, 2 * hosts - 2)
    for node, (a, b) in enumerate(tree.child.tolist(), hosts):
        below.append(below[a] + below[b])
        above[[a, b]] = node
    delay = np.full(2 * hosts - 1, np.nan)
    for node in range(2 * hosts - 2, hosts - 1, -1):
        a, b = tree.child[node - hosts].tolist()
        rows, columns = below[a], below[b]
        values = logs[np.ix_(rows, columns)]
        middle = float(np.median(values))
        starts = (float(values.min()), float(values.max()) - longer, middle, middle - longer)
        # Pairs that all take one rail do not show which; what meets above mostly has the same delay, or little more.
        near = middle if np.isnan(delay[above[node]]) else delay[above[node]]
        costs = [_off_both(values - start, longer).mean() + _TOWARDS_ABOVE * abs(start - near) for start in starts]
        delay[node] = starts[int(np.argmin(costs))]
        beyond = np.abs(values - delay[node] - longer) < np.abs(values - delay[node])
        slower[np.ix_(rows, columns)] = beyond
        slower[np.ix_(columns, rows)] = beyond.T
    return slower & known


def _compare_rows(logs: Floats, known: npt.NDArray[np.bool_], longer: float) -> npt.NDArray[np.float32]:
    """Return the mean difference of hosts' delays to others, without a rail's, float32 [n, n]; at most `longer`."""
    hosts = len(logs)
    unlike = np.zeros((hosts, hosts), np.float32)
    for host in range(hosts - 1):
        difference = np.minimum(_off_both(np.abs(logs[host] - logs[host + 1 :]), longer), longer)
        both = known[host] & known[host + 1 :]
        total = np.where(both, difference, 0.0).sum(axis=1)
        unlike[host, host + 1 :] = total / np.maximum(both.sum(axis=1), 1)
    return unlike + unlike.T


def _off_both(values: Floats, longer: float) -> Floats:
    """Return the distance of values from the nearer of 0 and `longer`."""
    nearer: Floats = np.minimum(np.abs(values), np.abs(values - longer))
    return nearer


def _is_worth_it(found: TwoRails, delays: Floats, known: npt.NDArray[np.bool_]) -> bool:
    """Return whether the rails differ by more than the errors, and gain more than a bit a pair that names its rail."""
    if not _LEAST_SHARE <= found.share <= 1 - _LEAST_SHARE:
        return False
    even = found.even_out(delays)
    candidate = as_candidate(find_levels(even))
    left = find_pattern(np.where(known, candidate.residuals(even), 0.0), known)
    if log(found.factor) < _APART * left.deviation:
        return False
    alone = score(as_candidate(find_levels(delays)), delays, known)
    return score(candidate, even, known) + found.cost(known) < alone
