# SPDX-License-Identifier: Apache-2.0
"""Two rails: on the slower rail (or route), the delays of all pairs are longer by the same factor.

Any pair can use the slower rail. Hosts that share the faster rail look like hosts of a common switch, since the delays
between them are shorter. The method first finds the factor from the differences of two hosts' delays to a third host.
The method then ignores this factor while it clusters the hosts, and assigns each pair to a rail.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.binary_trees import link_average
from ibprof_lab.topology.infer.candidate import Candidate, Floats, find_pattern, find_switches, sample_hosts, score
from ibprof_lab.topology.infer.levels import Levels, find_levels

_FEWEST_FOR_RAILS = 8
LARGEST_RAILS = 1024
"""Largest number of hosts for the search, which takes n^3 steps for n hosts."""

_TRIPLES = 200_000
_BINS = 200
_VALLEY = 0.25
"""The histogram of differences between delays has a peak at 0. The peak ends where the histogram falls below this
fraction of the peak's height."""

_APART = 6.0
"""Smallest difference between the logarithms of the rails' delays, in standard deviations of the errors."""

_LEAST_SHARE = 0.1
"""Each rail must have at least this fraction of the pairs."""

_TOWARDS_ABOVE = 0.1
"""A node's delay minimises the mean error of the node's pairs plus this multiple of the difference from the parent's
delay."""

_ALIKE = 0.25
"""Relative tolerance with which the height difference of two switches is compared with the rails' difference."""

_OF_A_ROUTE = 0.9
"""The rails are routes between switches if at least this fraction of host pairs uses the most frequent rail of their
two switches."""

_SEVERAL = 4
"""Pairs of switches with fewer host pairs than this are ignored in the test with `_OF_A_ROUTE`."""

_RAIL_ROUNDS = 8
_RAILS_SETTLED = 1e-4


@dataclass(frozen=True, slots=True)
class TwoRails:
    """Two rails: the pairs of hosts on the slower rail, and the factor of their delays.

    Attributes:
        factor: delay on the slower rail / delay on the faster rail, above 1.
        slower: bool [n, n], symmetric, True for pairs on the slower rail.
    """

    factor: float
    slower: npt.NDArray[np.bool_]

    @property
    def share(self) -> float:
        """Fraction of the pairs that are on the slower rail."""
        return np.count_nonzero(self.slower) / (len(self.slower) * (len(self.slower) - 1))

    def cost(self, known: npt.NDArray[np.bool_]) -> float:
        """Return the cost of storing the rail of each measured pair, one bit per pair, in the unit of `score`."""
        return np.count_nonzero(np.triu(known, 1)) * 2 * log(2)

    def follow_switches(self, candidate: Candidate, known: npt.NDArray[np.bool_]) -> bool:
        """Return True if most host pairs between the same two switches use the same rail. The rails are then two
        kinds of routes between switches, such as the two directions around a ring.
        """
        hosts = len(known)
        switch = find_switches(candidate.edge, hosts)
        route = np.minimum.outer(switch, switch) * hosts + np.maximum.outer(switch, switch)
        between = np.triu(known, 1) & np.not_equal.outer(switch, switch)
        pairs = np.bincount(route[between], minlength=hosts * hosts)
        slower = np.bincount(route[between & self.slower], minlength=hosts * hosts)
        several = pairs >= _SEVERAL
        alike = np.maximum(slower, pairs - slower)[several].sum()
        return bool(several.any() and alike >= _OF_A_ROUTE * pairs[several].sum())

    def even_out(self, delays: npt.NDArray[np.floating]) -> Floats:
        """Return the delays as if all pairs took the faster rail, float64 [n, n]."""
        return np.where(self.slower, delays / self.factor, delays)


def find_two_rails(delays: Floats, known: npt.NDArray[np.bool_]) -> TwoRails | None:
    """Find two rails that improve the score by more than their cost (see `TwoRails.cost`).

    Args:
        delays: float64 [n, n], seconds, symmetric, above 0 except on the diagonal.
        known: bool [n, n], True for measured delays.

    Returns:
        The rails. None for fewer hosts than `_FEWEST_FOR_RAILS`, for more than `LARGEST_RAILS`, or if two rails do not
        improve the score.
    """
    hosts = len(delays)
    if not _FEWEST_FOR_RAILS <= hosts <= LARGEST_RAILS:
        return None
    some = sample_hosts(hosts)
    # For most fabrics, a sample of the hosts quickly shows that there is only one rail.
    if len(some) < hosts and find_two_rails(delays[np.ix_(some, some)], known[np.ix_(some, some)]) is None:
        return None
    logs = np.log(np.where(known, delays, 1.0))
    longer = _find_difference(logs, known)
    if longer is None:
        return None
    slower = _assign_along_tree(logs, known, longer)
    for _ in range(_RAIL_ROUNDS):
        even = np.where(slower, delays * exp(-longer), delays)
        levels = find_levels(even, known)
        candidate = levels.as_candidate()
        left = np.where(known, logs - np.log(np.where(known, candidate.explained, 1.0)), 0.0)
        again = known & (left > longer / 2)
        if not again.any() or not (known & ~again).any():
            return None
        before, longer = longer, float(left[again].mean() - left[known & ~again].mean())
        settled = bool((again == slower).all()) and abs(longer - before) < _RAILS_SETTLED
        slower = again
        if settled:
            apart = _find_rails_as_switches(levels, slower, known, longer)
            if not apart.any():
                break
            slower = slower | apart
    found = TwoRails(exp(longer), slower)
    return found if _is_worth_it(found, delays, known) else None


def _find_rails_as_switches(
    levels: Levels, slower: npt.NDArray[np.bool_], known: npt.NDArray[np.bool_], longer: float
) -> npt.NDArray[np.bool_]:
    """Return pairs on the slower rail whose long delays look like a further switch, bool [n, n].

    A host seems to be on another switch if, by chance, all its pairs within its switch are on the slower rail. Chance
    is assumed if the parent switch is higher by about the rails' difference, and if no pair of hosts with the parent as
    lowest common switch is on the slower rail.
    """
    tree, height = levels.tree, levels.height
    meeting = np.where(known, tree.meeting_nodes(), -1)
    step = height[tree.parent] - height
    alike = np.flatnonzero(np.abs(step[1:] - longer) < _ALIKE * longer) + 1
    above = [node for node in np.unique(tree.parent[alike]).tolist() if not slower[meeting == node].any()]
    apart: npt.NDArray[np.bool_] = np.isin(meeting, above)
    return apart


def _find_difference(logs: Floats, known: npt.NDArray[np.bool_]) -> float | None:
    """Return the most frequent difference between two hosts' log delays to a third host, outside the peak at 0."""
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
    """Return the pairs on the slower rail, bool [n, n]. All pairs that meet at a node of a binary tree of hosts are
    assumed to have the same log delay; on the slower rail, `longer` is added.
    """
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
        # If all pairs of a node use the same rail, only the parent's delay indicates which rail.
        near = middle if np.isnan(delay[above[node]]) else delay[above[node]]
        costs = [_off_both(values - start, longer).mean() + _TOWARDS_ABOVE * abs(start - near) for start in starts]
        delay[node] = starts[int(np.argmin(costs))]
        beyond = np.abs(values - delay[node] - longer) < np.abs(values - delay[node])
        slower[np.ix_(rows, columns)] = beyond
        slower[np.ix_(columns, rows)] = beyond.T
    return slower & known


def _compare_rows(logs: Floats, known: npt.NDArray[np.bool_], longer: float) -> npt.NDArray[np.float32]:
    """Return the mean difference between two hosts' log delays to all third hosts, float32 [n, n]. The rails cause
    differences of about `longer`: each difference counts as its `_off_both`, but at most as `longer`.
    """
    hosts = len(logs)
    unlike = np.zeros((hosts, hosts), np.float32)
    for host in range(hosts - 1):
        difference = np.minimum(_off_both(np.abs(logs[host] - logs[host + 1 :]), longer), longer)
        both = known[host] & known[host + 1 :]
        total = np.where(both, difference, 0.0).sum(axis=1)
        unlike[host, host + 1 :] = total / np.maximum(both.sum(axis=1), 1)
    return unlike + unlike.T


def _off_both(values: Floats, longer: float) -> Floats:
    """Return the distance of each value from 0 or from `longer`, whichever is smaller."""
    nearer: Floats = np.minimum(np.abs(values), np.abs(values - longer))
    return nearer


def _is_worth_it(found: TwoRails, delays: Floats, known: npt.NDArray[np.bool_]) -> bool:
    """Return True if the rails differ by more than the errors, and improve the score by more than their cost."""
    if not _LEAST_SHARE <= found.share <= 1 - _LEAST_SHARE:
        return False
    even = found.even_out(delays)
    candidate = find_levels(even, known).as_candidate()
    left = find_pattern(np.where(known, candidate.residuals(even), 0.0), known)
    if log(found.factor) < _APART * left.deviation:
        return False
    alone = score(find_levels(delays, known).as_candidate(), delays, known)
    return score(candidate, even, known) + found.cost(known) < alone
