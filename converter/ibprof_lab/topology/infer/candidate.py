# SPDX-License-Identifier: Apache-2.0
"""Candidates: graphs that may explain delays, their scores, and tests for patterns in the residuals.

On real machines, pairs that share a host, a route or a place on a chip have similar errors. A mean delay over many
pairs with similar errors is no more exact than the delay of one pair. A test that treats pairs as independent therefore
finds a false switch in every group of hosts with slightly shorter delays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.model.inferred_topology import InferredTopology

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]
Rows = slice | npt.NDArray[np.integer]

FLOOR = 0.003
"""Smallest assumed relative error of a delay. The value is above 0, so that the likelihood of a perfect fit is
finite."""

OUTLYING = 3.5
"""A delay is an outlier if its residual exceeds this number of scaled median absolute deviations of all residuals."""

NORMAL = 1.4826
"""Ratio of the standard deviation to the median absolute deviation, for normally distributed errors."""

LEAST_STEP = 0.02
"""A link is assumed only if it increases the logarithm of a delay by at least this value. Clocks, cables and firmware
cause smaller differences."""

_STEP_WITH_PATTERN = 5.0
"""If the residuals have a pattern (docs/inference.md), a link must increase a delay's logarithm by at least this many
standard deviations of the residuals. With 4, ibprof finds a false switch in 1 of 60 synthetic processors whose errors
depend on the position. With 8, ibprof misses links of a cluster with queueing delays."""

_PATTERN = 2.8
"""If `ResidualPattern.strength` exceeds this, the residuals certainly have a pattern. Residuals with independent errors
have a strength of about 2, and seldom exceed this limit even with only ten hosts."""

_LIKELY_PATTERN = 2.1
"""If `ResidualPattern.strength` exceeds this, the residuals probably have a pattern. Of a hundred matrices with
independent errors (6 to 192 hosts), one exceeds this limit. A false alarm does little harm: much longer links are still
found."""

_LOOKED_AT = 192
"""The test for a pattern uses the residuals of at most this many hosts."""

_ITERATIONS = 40
_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Candidate:
    """A graph over hosts and switches.

    Attributes:
        model: `levels`, `additive` or `direct`.
        switches: number of switches; their vertices follow the hosts' vertices.
        edge: int32 [edge, 2], the two vertices of each edge.
        latency: float64 [edge], latency of each edge, seconds.
        overhead: message cost independent of the path, seconds.
        explained: float64 [host, host], delays predicted by the graph, seconds.
        parameters: number of fitted values.
        errors: known standard deviation of the logarithm of a delay; 0 if it was estimated from the delays.
    """

    model: str
    switches: int
    edge: Integers
    latency: Floats
    overhead: float
    explained: Floats
    parameters: int
    errors: float = 0.0

    def as_topology(self, hosts: tuple[str, ...], support: Floats | None = None) -> InferredTopology:
        """Return the topology with host names; `support` is float64 [edge], or None if unknown."""
        return InferredTopology(
            method=self.model,
            hosts=hosts,
            switches=tuple(f"switch{index + 1}" for index in range(self.switches)),
            edge=_number_switches(self.edge, len(hosts), self.switches),
            latency_seconds=self.latency,
            support=np.full(len(self.edge), np.nan) if support is None else support,
            probability=np.ones(len(self.edge)),
            overhead_seconds=self.overhead,
        )

    def residuals(self, delays: npt.NDArray[np.floating], rows: Rows = slice(None)) -> Floats:
        """Return log(delay / explained delay) for some rows of the matrix, float64 [row, host]; 0 on the diagonal."""
        with np.errstate(divide="ignore", invalid="ignore"):
            residuals = delays[rows] / self.explained[rows]
            np.log(residuals, out=residuals)
        own = np.arange(len(delays))[rows]
        residuals[np.arange(len(own)), own] = 0.0
        return residuals


def _number_switches(edge: Integers, hosts: int, switches: int) -> Integers:
    """Number the switches in the order of their first hosts; switches without hosts come last."""
    ends = np.sort(edge, axis=1)
    on_switch = ends[(ends[:, 0] < hosts) & (ends[:, 1] >= hosts)]
    first = np.full(switches, hosts)
    np.minimum.at(first, on_switch[:, 1] - hosts, on_switch[:, 0])
    number = np.arange(hosts + switches)
    number[hosts + np.argsort(first, kind="stable")] = hosts + np.arange(switches)
    return np.sort(number[edge], axis=1).astype(np.int32)


def score(candidate: Candidate, delays: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> float:
    """Return Schwarz's criterion if the logarithms of delays have Laplace-distributed errors; smaller is better.

    Args:
        delays: float64 [host, host], seconds.
        known: bool [host, host], True for delays that are scored.
    """
    above = np.triu(known, 1)
    pairs = int(np.count_nonzero(above))
    deviation = float(np.abs(candidate.residuals(delays)[above]).mean()) if pairs else 0.0
    return 2 * pairs * log(max(deviation, FLOOR)) + candidate.parameters * log(max(pairs, 2))


def find_attached_switches(edge: Integers, hosts: int) -> npt.NDArray[np.integer]:
    """Return the vertex of each host's switch, int [host]; for a host without a switch, the host's vertex."""
    switch = np.arange(hosts)
    ends = np.sort(edge, axis=1)
    on_switch = ends[(ends[:, 0] < hosts) & (ends[:, 1] >= hosts)]
    switch[on_switch[:, 0]] = on_switch[:, 1]
    return switch


def find_switches(edge: Integers, hosts: int) -> npt.NDArray[np.integer]:
    """Return the index of each host's switch, int [host]; a host without a switch has a separate index."""
    numbered: npt.NDArray[np.integer] = np.unique(find_attached_switches(edge, hosts), return_inverse=True)[1]
    return numbered


@dataclass(frozen=True, slots=True)
class ResidualPattern:
    """Strength and size of a pattern in residuals.

    Attributes:
        strength: largest eigenvalue of the residuals / (sigma sqrt(n)), about 2 for independent errors. A pattern, such
            as one host with longer delays to all others, causes a larger strength.
        deviation: sigma, the root mean square of the residuals after outliers are clipped.

    Source: E. P. Wigner, "On the distribution of the roots of certain symmetric matrices", Annals of Mathematics 67,
    1958.
    """

    strength: float
    deviation: float

    @property
    def is_certain(self) -> bool:
        """True if independent errors cannot explain the residuals."""
        return self.strength > _PATTERN

    @property
    def is_likely(self) -> bool:
        """True if independent errors are unlikely to explain the residuals."""
        return self.strength > _LIKELY_PATTERN

    @property
    def least_step(self) -> float:
        """A link is assumed only if it increases the logarithm of a delay by at least this value."""
        with_pattern = _STEP_WITH_PATTERN * self.deviation if self.is_likely else 0.0
        return max(LEAST_STEP, with_pattern)


def blocks(count: int, size: int = _BLOCK) -> Iterator[slice]:
    """Yield slices of up to `size` rows. Temporary arrays of a slice are smaller than arrays of all rows."""
    return (slice(begin, min(begin + size, count)) for begin in range(0, count, size))


def sample_hosts(hosts: int) -> npt.NDArray[np.integer]:
    """Return the indices of all hosts, or of a sample of `_LOOKED_AT` hosts if there are more."""
    return np.linspace(0, hosts - 1, min(hosts, _LOOKED_AT)).astype(int)


def find_pattern(residuals: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> ResidualPattern:
    """Look for a pattern in residuals.

    Args:
        residuals: [n, n], symmetric, logarithm of measured delay / explained delay.
        known: bool [n, n], True for residuals that are tested.
    """
    rows = sample_hosts(len(residuals))
    residuals, known = residuals[np.ix_(rows, rows)], known[np.ix_(rows, rows)]
    if not known.any():
        return ResidualPattern(0.0, 0.0)
    limit = OUTLYING * NORMAL * float(np.median(np.abs(residuals[known])))
    left = np.where(known, np.clip(residuals, -limit, limit), 0.0)
    sigma = float(np.sqrt(np.square(left).sum() / np.count_nonzero(known)))
    if sigma < FLOOR:
        return ResidualPattern(0.0, sigma)
    return ResidualPattern(_largest_eigenvalue(left) / (sigma * sqrt(len(left))), sigma)


def _largest_eigenvalue(symmetric: Floats) -> float:
    """Return the largest absolute eigenvalue, computed by power iteration to an error of a few percent."""
    vector = np.random.default_rng(0).standard_normal(len(symmetric))
    length = 0.0
    for _ in range(_ITERATIONS):
        vector = symmetric @ (vector / np.linalg.norm(vector))
        length = float(np.linalg.norm(vector))
    return length
