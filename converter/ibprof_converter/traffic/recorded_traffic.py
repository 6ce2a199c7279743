# SPDX-License-Identifier: Apache-2.0
"""Traffic of a recorded run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof.native.kernel_library import sum_exactly
from ibprof.profile.profile_data import Direction, Kind, Profile, Source
from ibprof.profile.row_choice import name_sites
from ibprof_converter.traffic.traffic_data import ALL, RANK_LIMIT, RankTraffic, choose_rows

UNKNOWN_PEER_REASON = "peer is no rank of MPI_COMM_WORLD"


def choose_sent(run: Profile) -> npt.NDArray[np.bool_]:
    """Return which counters hold bytes that a rank sent, or fetched from another's memory: bool [counter].

    Received bytes count the same bytes a second time and are left out, as are MPI's own control messages.

    Raises:
        InputError: the run claims more ranks than `RANK_LIMIT`.
    """
    if run.world_size > RANK_LIMIT:
        raise InputError(run.name, None, f"at most {RANK_LIMIT} ranks", f"{run.world_size}")
    counters = run.counters
    chosen: npt.NDArray[np.bool_] = (counters.kind == Kind.USER) & (counters.direction != Direction.RECEIVED)
    sources = np.flatnonzero(np.bincount(counters.source[chosen & (counters.bytes > 0)]))
    # Two sources see the same bytes at two depths; the one next to the MPI calls knows the operations.
    return chosen & (counters.source == sources[0]) if len(sources) else chosen


def profile_traffic(run: Profile, name: str | None = None) -> RankTraffic:
    """Return the rank matrix of a run, from the counters of `choose_sent`.

    Args:
        run: the recorded run.
        name: its name for the user; None for its own name.

    Raises:
        InputError: the run claims more ranks than `RANK_LIMIT`.
    """
    counters = run.counters
    chosen = choose_sent(run) & (counters.bytes > 0)
    known = chosen & (counters.peer < run.world_size)
    unknown = sum_exactly(counters.bytes[chosen & ~known])
    rows = choose_rows(known)
    source, destination = counters.rank[rows], counters.peer[rows].view(np.int32)
    fetched = counters.direction[rows] == Direction.FETCHED
    if fetched.any():
        source, destination = np.where(fetched, destination, source), np.where(fetched, source, destination)
    names = name_sites(run)
    sites = tuple(dict.fromkeys(names)) if run.sites else (ALL,)
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
        unmapped={UNKNOWN_PEER_REASON: unknown} if unknown else {},
        origin=f"profile {name or run.name}",
        profile=run,
        site=_number_sites(counters.site[rows], names, sites) if len(sites) > 1 else np.zeros(0, np.int32),
        sites=sites,
        layer=Source(int(counters.source[chosen][0])).layer if chosen.any() else "",
    )


def _number_sites(
    site: npt.NDArray[np.int32], names: tuple[str, ...], distinct: tuple[str, ...]
) -> npt.NDArray[np.int32]:
    """Return the index of each row's site among distinct names: calls of one line in two objects are one site."""
    number = {name: index for index, name in enumerate(distinct)}
    return np.array([number[name] for name in names], np.int32)[site]
