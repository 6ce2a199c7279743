# SPDX-License-Identifier: Apache-2.0
"""Traffic of a run that was recorded."""

from __future__ import annotations

import numpy as np

from ibprof.errors import InputError
from ibprof.profile import Direction, Kind, Profile, Source
from ibprof_converter.traffic.model import ALL, RANK_LIMIT, RankTraffic, choose_rows, total_bytes

UNKNOWN_PEER_REASON = "peer is no rank of MPI_COMM_WORLD"


def profile_traffic(run: Profile, name: str | None = None) -> RankTraffic:
    """Make the rank matrix of a run: what each rank sent, and what it fetched itself from another's memory.

    Received bytes witness the same bytes a second time and are left out, as are MPI's own control messages.

    Args:
        run: what was recorded.
        name: what the user calls it; None for its own name.

    Raises:
        InputError: the run claims more ranks than any machine has.
    """
    if run.world_size > RANK_LIMIT:
        raise InputError(run.name, None, f"at most {RANK_LIMIT} ranks", f"{run.world_size}")
    counters = run.counters
    chosen = (counters.kind == Kind.USER) & (counters.direction != Direction.RECEIVED) & (counters.bytes > 0)
    sources = np.flatnonzero(np.bincount(counters.source[chosen]))
    origin = f"profile {name or run.name}"
    if len(sources):
        # Two sources see the same bytes at two depths; the one next to the MPI calls knows the operations.
        chosen &= counters.source == sources[0]
        origin += f", bytes seen by {Source(sources[0]).name.lower()}"
    known = chosen & (counters.peer < run.world_size)
    unknown = total_bytes(counters.bytes[chosen & ~known])
    rows = choose_rows(known)
    source, destination = counters.rank[rows], counters.peer[rows].view(np.int32)
    fetched = counters.direction[rows] == Direction.FETCHED
    if fetched.any():
        source, destination = np.where(fetched, destination, source), np.where(fetched, source, destination)
    return RankTraffic(
        source=source,
        destination=destination,
        bytes=counters.bytes[rows],
        messages=counters.messages[rows],
        region=counters.region[rows],
        operation=counters.operation[rows],
        regions=run.regions or (ALL,),
        operations=run.operations or (ALL,),
        ranks=run.world_size,
        unplaced={UNKNOWN_PEER_REASON: unknown} if unknown else {},
        origin=origin,
        profile=run,
    )
