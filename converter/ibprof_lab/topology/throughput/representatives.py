# SPDX-License-Identifier: Apache-2.0
"""Pairs that are worth another, longer measurement once the topology is known.

Pairs whose messages take the same links between the same switches form a class, and a few of them represent it. The
latency of a host's link follows from the delays to two others and between these, (ab + ac - bc) / 2. That of a link
between switches follows from two hosts on either side, (ac + bd - ab - cd) / 2. Their number is a multiple of the
number of links, whereas all pairs are the square of the number of hosts.

Source: Bufe (see `bufe`), section 2.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.residual_pattern import NORMAL, OUTLYING
from ibprof_lab.topology.model.host_attachment import NO_EDGE
from ibprof_lab.topology.model.inferred_routes import InferredRoutes
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.throughput.pair_jobs import Pair, PairJob, make_job, put_into_rounds

_FLOOR = 0.02
"""Relative deviation below which a pair is never an outlier."""


def choose_representatives(routes: InferredRoutes, each: int = 1) -> list[Pair]:
    """Return pairs that determine the latency of every link.

    Args:
        routes: of the topology.
        each: number of sets, each of other hosts as far as possible.
    """
    pairs: dict[Pair, None] = {}
    for turn in range(each):
        for one, other in _of_links(routes, turn):
            if one != other:
                pairs[min(one, other), max(one, other)] = None
    return list(pairs)


def _of_links(routes: InferredRoutes, turn: int) -> Iterator[Pair]:
    for one, other in routes.attachment.cable.tolist():
        near, far = routes.behind(one, other), routes.behind(other, one)
        if near and far:
            a, b = (near[(2 * turn + place) % len(near)] for place in (0, 1))
            c, d = (far[(2 * turn + place) % len(far)] for place in (0, 1))
            yield from ((a, b), (c, d), (a, c), (b, d), (a, d), (b, c))
    for host in range(routes.hosts):
        if routes.attachment.host_edge[host] != NO_EDGE:
            others = _nearest(routes, host, 2 * turn + 2)
            if len(others) > 1:
                b, c = others[-2:]
                yield from ((host, b), (host, c), (b, c))
            elif others:
                yield host, others[0]


def _nearest(routes: InferredRoutes, host: int, count: int) -> list[int]:
    """Return other hosts, the nearest first; on the same switch those that follow in its order."""
    own = routes.attachment.host_switch
    distance = routes.distance[own[host], own]
    order = np.lexsort(((np.arange(routes.hosts) - host) % routes.hosts, distance))
    return [int(other) for other in order[: count + 1] if other != host][:count]


def find_unexplained_pairs(topology: InferredTopology, seconds: npt.NDArray[np.floating]) -> list[Pair]:
    """Return the pairs whose delay the topology does not explain, the worst first.

    Args:
        topology: that is known.
        seconds: [host, host], the measured delays of its hosts; nan where not measured.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(np.log(seconds / topology.explain_delays()))
    off = np.triu(np.fmax(off, off.T), 1)
    known = np.isfinite(off) & (np.triu(seconds, 1) > 0)
    if not known.any():
        return []
    limit = OUTLYING * max(NORMAL * float(np.median(off[known])), _FLOOR)
    found = np.argwhere(known & (off > limit))
    worst = np.argsort(-off[tuple(found.T)], kind="stable")
    return [(int(one), int(other)) for one, other in found[worst]]


def schedule_pairs(routes: InferredRoutes, pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Put pairs into rounds in which no two share a switch, and so no link: other messages disturb delays."""

    def job_of(pair: Pair) -> PairJob:
        return make_job(routes, [pair], (f"switch {switch}" for switch in routes.switches(*pair)))

    return [[job.pairs[0] for job in jobs] for jobs in put_into_rounds([job_of(pair) for pair in pairs])]
