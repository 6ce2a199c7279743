# SPDX-License-Identifier: Apache-2.0
"""Hosts whose delays to all others are longer, or shorter, by one factor: cores of another clock, busy hosts.

Levels separate such a host from its switch, and neighbours of a slow host look like a group of their own. A class of
slow cores is farther from one another than from fast ones, so that the fast ones look like a group. Factors and the
delays of switches are therefore fitted together.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.binary_trees import RootedTree
from ibprof_lab.topology.infer.candidate import FLOOR, Candidate, Floats, score
from ibprof_lab.topology.infer.nested_levels import as_candidate, find_levels, find_levels_robustly
from ibprof_lab.topology.infer.residual_pattern import LEAST_STEP, NORMAL, OUTLYING

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
