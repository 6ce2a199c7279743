# SPDX-License-Identifier: Apache-2.0
"""Bannikov and Salnikov's method, for comparison: arcs between processes, each with the share of lengths that has it.

There are no switches: on a hierarchical network nearly all pairs become arcs, as the authors say. The delays need not
be symmetric.

Source: P. S. Bannikov, A. N. Salnikov, on recognising the topology of a cluster's communication environment by load
tests (in Russian, 2013). Formula (1) is printed with = where < is meant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import shortest_path

from ibprof.errors import UsageError
from ibprof_lab.topology.infer.direct_networks import find_detours
from ibprof_lab.topology.model.inferred_topology import InferredTopology

Floats = npt.NDArray[np.float64]
Arcs = npt.NDArray[np.bool_]

_ROUNDING = 1e-6

LARGEST = 4096


def infer_bannikov_salnikov(
    delays: npt.NDArray[np.floating], hosts: Sequence[str], epsilon_s: float = 0.1, epsilon_d: float = 0.5
) -> InferredTopology:
    """Infer a directed graph of processes.

    Args:
        delays: [L, n, n], seconds, nan where not measured; each length has a local topology.
        hosts: a name for each process.
        epsilon_s: how much longer than the first arc of a shared-memory group its other arcs may be; 0 to 0.5.
        epsilon_d: how much the two directions of a duplex channel may differ; else only the shorter one is an arc. 0 to
            1.

    Raises:
        UsageError: there are more than `LARGEST` processes; the time grows with the cube of their number.
    """
    count = len(hosts)
    if count > LARGEST:
        raise UsageError(f"--method bannikov-salnikov: expected at most {LARGEST} processes, found {count}")
    present = np.zeros((count, count))
    total = np.zeros((count, count))
    for matrix in delays:
        values = np.where(matrix > 0, matrix, np.inf).astype(np.float64)
        np.fill_diagonal(values, np.inf)
        arcs = find_local_topology(values, epsilon_s, epsilon_d)
        present += arcs
        total[arcs] += values[arcs]
    a, b = np.nonzero(present)
    return InferredTopology(
        method="bannikov-salnikov",
        hosts=tuple(hosts),
        switches=(),
        edge=np.stack([a, b], axis=1).astype(np.int32),
        latency_seconds=total[a, b] / present[a, b],
        support=np.full(len(a), np.nan),
        probability=present[a, b] / max(len(delays), 1),
        directed=True,
    )


def find_local_topology(values: Floats, epsilon_s: float, epsilon_d: float) -> Arcs:
    """Return the arcs of one message length, bool [n, n].

    Args:
        values: float64 [n, n], inf where not measured and on the diagonal.
        epsilon_s, epsilon_d: as for `infer_bannikov_salnikov`.
    """
    arcs = np.zeros(values.shape, bool)
    _grow_skeleton(values, epsilon_s, arcs)
    _close_cycles(values, arcs)
    # A channel whose directions differ too much is simplex: the longer one is removed.
    with np.errstate(invalid="ignore"):
        arcs &= ~(values > (1 + epsilon_d) * values.T)
    return arcs


def _grow_skeleton(values: Floats, epsilon_s: float, arcs: Arcs) -> None:
    """Stage 2: a shared-memory group, the shortest arc out of it, a chain of ever shorter arcs to the next group."""
    count = len(values)
    done = np.zeros(count, bool)
    if count < 2 or not np.isfinite(values).any():
        return
    start, second = divmod(int(values.argmin()), count)
    group = _collect([start], float(values[start, second]), values, epsilon_s, done, arcs)
    while not done.all():
        out = np.where(done, np.inf, values[group])
        near, far = divmod(int(out.argmin()), count)
        last = float(out[near, far])
        if not np.isfinite(last):
            far, last = int(np.argmin(done)), np.inf  # no path there was measured
        else:
            _connect(arcs, group[near], far)
        done[far] = True
        reached, inside = far, None
        while True:
            onward = np.where(done, np.inf, values[reached])
            to = int(onward.argmin())
            if not onward[to] < last:
                break
            _connect(arcs, reached, to)
            last = inside = float(onward[to])
            before, reached = reached, to
            done[to] = True
        members = [reached] if inside is None else [before, reached]
        group = members if inside is None else _collect(members, inside, values, epsilon_s, done, arcs)


def _collect(
    members: list[int], first: float, values: Floats, epsilon_s: float, done: npt.NDArray[np.bool_], arcs: Arcs
) -> list[int]:
    """Collect a shared-memory group: processes not much farther from a member than the first arc is long."""
    done[members] = True
    todo = list(members)
    group = list(members)
    near = values <= first * (1 + epsilon_s)
    while todo:
        member = todo.pop()
        for other in np.flatnonzero(near[member]).tolist():
            if other in group:
                _connect(arcs, member, other)
            elif not done[other]:
                _connect(arcs, member, other)
                done[other] = True
                group.append(other)
                todo.append(other)
    return group


def _connect(arcs: Arcs, a: int, b: int) -> None:
    arcs[a, b] = arcs[b, a] = True


def _close_cycles(values: Floats, arcs: Arcs) -> None:
    """Stage 3: an arc that is shorter than every path closes a cycle.

    The paper calls Dijkstra's algorithm once for each process and closes cycles as it meets them, so that its result
    depends on their order. Here arcs are added from the shortest on: those that are shorter than each path over other
    arcs, by the measured delays.
    """
    distance = shortest_path(np.where(np.isfinite(values), values, 0.0), directed=True)
    np.fill_diagonal(distance, np.inf)
    shorter = values * (1 + _ROUNDING) < find_detours(distance)
    arcs |= shorter & np.isfinite(values)
