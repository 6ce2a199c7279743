# SPDX-License-Identifier: Apache-2.0
"""Messages within hosts by the ledger of calls: some sources do not see those that ranks exchange in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ibprof.profile.profile_data import Profile
from ibprof.profile.unaccounted import PARTNER_FAILED, PARTNER_GROUP

_FOR_EACH_OTHER = frozenset({"ALLTOALL", "ALLGATHER", "ALLGATHERV", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK"})
"""Collectives whose bytes in the ledger pass between a rank and each other one."""

_ROUND_TRIP = frozenset({"ALLREDUCE", "SCAN", "EXSCAN"})
"""Collectives whose bytes are sent and received."""

_WITHOUT_LEDGER = "NEIGHBOR_"
"""Part of the names of collectives that the ledger leaves out."""


@dataclass(frozen=True, slots=True)
class AskedWithinHosts:
    """Bytes and messages that calls ask to move between ranks of one host, of all ranks.

    Point-to-point calls are exact. For collectives both are estimates of common algorithms.
    """

    bytes: int
    messages: int


def sum_asked_within_hosts(run: Profile) -> AskedWithinHosts | None:
    """Return what calls ask for between ranks of one host; None where the ledger does not have all calls."""
    ranks = [rank for rank in run.ranks if rank.rank < run.world_size]
    if not ranks or not all(rank.has_demands for rank in ranks):
        return None
    used = np.unique(np.concatenate([run.times.operation, run.counters.operation]))
    if any(_WITHOUT_LEDGER in run.operations[operation] for operation in used.tolist()):
        return None
    host_of = np.full(run.world_size, -1, np.int64)
    for rank in ranks:
        host_of[rank.rank] = rank.host
    peers, groups = _sum_to_peers(run, host_of), _sum_in_groups(run, host_of)
    return AskedWithinHosts(peers.bytes + groups.bytes, peers.messages + groups.messages + _barriers(run, host_of))


def _sum_to_peers(run: Profile, host_of: np.ndarray) -> AskedWithinHosts:
    """Sum calls with a peer or a root."""
    demands = run.demands
    rows = np.flatnonzero(demands.partner < np.uint64(run.world_size))
    mine, theirs = demands.rank[rows], demands.partner[rows].astype(np.intp)
    rows = rows[(host_of[mine] == host_of[theirs]) & (mine != theirs)]
    return AskedWithinHosts(int(demands.bytes[rows].sum()), int(demands.calls[rows].sum()))


def _sum_in_groups(run: Profile, host_of: np.ndarray) -> AskedWithinHosts:
    demands = run.demands
    total = messages = 0
    is_group = (demands.partner >= np.uint64(PARTNER_GROUP)) & (demands.partner < np.uint64(PARTNER_FAILED))
    for group in np.unique(demands.partner[is_group]):
        rows = np.flatnonzero(demands.partner == group)
        members = np.unique(demands.rank[rows])
        for row in rows.tolist():
            others = int((host_of[members] == host_of[demands.rank[row]]).sum()) - 1
            if others < 1:
                continue
            name = run.operations[demands.operation[row]].removesuffix("_INIT")
            names = {name, name.removeprefix("I")}
            asked, calls = int(demands.bytes[row]), int(demands.calls[row])
            if names & _FOR_EACH_OTHER:
                asked *= others
            elif names & _ROUND_TRIP:
                asked *= 2
            else:
                # Of vectors the ledger has the sum over all ranks.
                asked = asked * others // (len(members) - 1)
            total += asked
            messages += calls * (others if names & {"ALLTOALL", "ALLTOALLV", "ALLTOALLW"} else _rounds(others + 1))
    return AskedWithinHosts(total, messages)


def _barriers(run: Profile, host_of: np.ndarray) -> int:
    """Return the messages of barriers, which are not in the ledger."""
    times, on_host = run.times, np.bincount(host_of[host_of >= 0])
    chosen = np.array([name in ("BARRIER", "IBARRIER") for name in run.operations], bool)
    if not len(chosen):
        return 0
    rows = np.flatnonzero(chosen[times.operation] & (times.rank < run.world_size))
    return sum(int(times.calls[row]) * _rounds(int(on_host[host_of[times.rank[row]]])) for row in rows)


def _rounds(ranks: int) -> int:
    """Return the rounds of messages in which each of some ranks can reach all."""
    return math.ceil(math.log2(ranks)) if ranks > 1 else 0
