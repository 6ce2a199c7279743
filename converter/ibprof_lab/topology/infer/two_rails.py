# SPDX-License-Identifier: Apache-2.0
"""Two rails: delays on the slower of two rails, or routes, are longer by the same factor for all pairs.

The pairs on the slower rail need not follow the topology. Rails that alternate by rank, by round or by message look
like switches, since hosts with a common rail are nearer to each other. The method first finds the factor from the
differences of two hosts' delays to a third host. It then links hosts by their delays without the factor, and assigns
each pair to a rail.
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
"""Rails are searched for at most this many hosts, since the comparison of all rows takes n^3 steps."""

_TRIPLES = 200_000
_BINS = 200
_VALLEY = 0.25
"""The histogram of differences has a peak at 0. The peak ends where the histogram falls below this share of its
height."""

_APART = 6.0
"""Smallest difference of the rails' delays, in standard deviations of the errors."""

_LEAST_SHARE = 0.1
"""Smallest share of pairs on either rail; fewer pairs are outliers."""

_TOWARDS_ABOVE = 0.1
"""Cost of the difference between the delays of a node and of its parent, per unit of the logarithm. It is added to the
cost of the node's errors."""

_ALIKE = 0.25
"""The latency of a link counts as equal to the rails' difference if it deviates from this difference by less than this
share."""

_OF_A_ROUTE = 0.9
"""If at least this share of the host pairs of two switches uses the same rail, on average, the rail is a route between
the switches."""

_SEVERAL = 4
"""Two switches with fewer host pairs between them do not show whether the pairs use the same rail."""

_RAIL_ROUNDS = 8
_RAILS_SETTLED = 1e-4


@dataclass(frozen=True, slots=True)
class TwoRails:
    """Pairs on the slower of two rails, and the factor of their delays.

    Attributes:
        factor: delay on the slower rail / delay on the faster rail, above 1.
        slower: bool [n, n], symmetric, pairs on the slower rail.
    """

    factor: float
    slower: npt.NDArray[np.bool_]

    @property
    def share(self) -> float:
        """Share of the pairs on the slower rail."""
        return np.count_nonzero(self.slower) / (len(self.slower) * (len(self.slower) - 1))

    def cost(self, known: npt.NDArray[np.bool_]) -> float:
        """Return the cost of naming each measured pair's rail, one bit per pair, in the unit of candidates' scores."""
        return np.count_nonzero(np.triu(known, 1)) * 2 * log(2)

    def follow_switches(self, candidate: Candidate, known: npt.NDArray[np.bool_]) -> bool:
        """Return True if nearly all host pairs of the same two switches have the same of the two delays.

        Then these are two kinds of routes between switches, such as the two directions round a ring, and no rails.
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
    """Find two rails whose improvement of the score exceeds the cost of naming the rail of each pair.

    Args:
        delays: float64 [n, n], seconds, symmetric, above 0 except on the diagonal.
        known: bool [n, n], measured delays.

    Returns:
        The rails; None if there is one rail, or if errors hide the rails.
    """
    hosts = len(delays)
    if not _FEWEST_FOR_RAILS <= hosts <= LARGEST_RAILS:
        return None
    some = sample_hosts(hosts)
    # A sample of the hosts suffices to show rails, and quickly excludes rails for most fabrics.
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
    """Return pairs whose longer delays show the slower rail rather than a switch.

    By chance all pairs between a host and the other hosts of its switch may take the slower rail. The other hosts then
    look like hosts of a separate switch. The link of this false switch adds exactly the difference of the rails, and no
    pair that meets above this switch is on the slower rail.
    """
    tree, height = levels.tree, levels.height
    meeting = np.where(known, tree.meeting_nodes(), -1)
    step = height[tree.parent] - height
    alike = np.flatnonzero(np.abs(step[1:] - longer) < _ALIKE * longer) + 1
    above = [node for node in np.unique(tree.parent[alike]).tolist() if not slower[meeting == node].any()]
    apart: npt.NDArray[np.bool_] = np.isin(meeting, above)
    return apart


def _find_difference(logs: Floats, known: npt.NDArray[np.bool_]) -> float | None:
    """Return the most frequent nonzero difference of two hosts' delays to a third host, in logarithms."""
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
    """Assign pairs to rails along a tree.

    All pairs that meet in a node have the same delay, or a delay that is longer by `longer`.
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
        # If all pairs of a node take the same rail, their delays do not show which rail. Pairs that meet in the node
        # above mostly have a similar delay.
        near = middle if np.isnan(delay[above[node]]) else delay[above[node]]
        costs = [_off_both(values - start, longer).mean() + _TOWARDS_ABOVE * abs(start - near) for start in starts]
        delay[node] = starts[int(np.argmin(costs))]
        beyond = np.abs(values - delay[node] - longer) < np.abs(values - delay[node])
        slower[np.ix_(rows, columns)] = beyond
        slower[np.ix_(columns, rows)] = beyond.T
    return slower & known


def _compare_rows(logs: Floats, known: npt.NDArray[np.bool_], longer: float) -> npt.NDArray[np.float32]:
    """Return the mean difference between two hosts' delays to all third hosts, float32 [n, n].

    A difference near `longer`, the difference of the rails, counts as its distance from `longer`. Each difference
    counts at most as `longer`.
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
    """Return the distance of values from the nearer of 0 and `longer`."""
    nearer: Floats = np.minimum(np.abs(values), np.abs(values - longer))
    return nearer


def _is_worth_it(found: TwoRails, delays: Floats, known: npt.NDArray[np.bool_]) -> bool:
    """Return True if the rails differ by more than the errors, and gain more than one bit per pair."""
    if not _LEAST_SHARE <= found.share <= 1 - _LEAST_SHARE:
        return False
    even = found.even_out(delays)
    candidate = find_levels(even, known).as_candidate()
    left = find_pattern(np.where(known, candidate.residuals(even), 0.0), known)
    if log(found.factor) < _APART * left.deviation:
        return False
    alone = score(find_levels(delays, known).as_candidate(), delays, known)
    return score(candidate, even, known) + found.cost(known) < alone
