# SPDX-License-Identifier: Apache-2.0
"""Messages of a recorded run, laid out for simulation.

Partners and sizes come from its counters, times from its time line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof.load import load_profile
from ibprof.profile.profile_data import Direction, Profile
from ibprof_converter.traffic.recorded_traffic import choose_sent
from ibprof_lab.simulation.engine.packet_engine import NOBODY, STEP
from ibprof_lab.simulation.workload.message_times import time_messages

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MESSAGES_MOST = 1 << 22
"""Messages that are laid out one by one, of all ranks together."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Messages of a run, in the order of sender and time; arrays of one length.

    Attributes:
        host: int64 [rank], hosts of the run by number, as ranks shared them; one a rank where all were on one.
        source, destination: int64, ranks.
        bytes: uint64, of each message: its counter's bytes spread evenly over its messages. Some have none.
        begin_ns: float64, from the run's start; empty where times are not asked for.
        duration_ns: of the run; 0 where times are not asked for.
        one_of: number of messages of the run, of like size, that each stands for.
        was_on_one_host: all ranks were, as in a trial on one machine, where nothing went over a network.
    """

    host: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    destination: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.uint64]
    begin_ns: Floats
    duration_ns: float
    one_of: int
    was_on_one_host: bool = False


@lru_cache(maxsize=4)
def load_messages(path: Path, with_times: bool) -> Recorded:
    """Read a profile or recording, and lay out its messages.

    Args:
        path: of it.
        with_times: whether messages begin when they began in the run; else they are in a fair order.

    Raises:
        InputError: it is no profile.
        InconsistentError: it has no messages between ranks, or no time line and times are wanted, or too many messages.
    """
    return lay_out_messages(load_profile(path), str(path), with_times)


def lay_out_messages(run: Profile, name: str, with_times: bool) -> Recorded:
    """Lay out the messages of a run; see `load_messages`."""
    counters = run.counters
    rows = np.flatnonzero(choose_sent(run) & (counters.peer < run.world_size))
    rank, peer = counters.rank[rows].astype(np.int64), counters.peer[rows].astype(np.int64)
    counts = np.maximum(counters.messages[rows].astype(np.int64), 1)
    total = int(counts.sum())
    if not total:
        raise InconsistentError(f"{name}: no rank sent anything to another")
    if with_times and not len(run.intervals.rank):
        raise InconsistentError(f"{name} has no time line: record with IBPROF_INTERVAL, or state an interval")
    if with_times and total > MESSAGES_MOST:
        raise InconsistentError(f"{name}: {total} messages are too many to time each; state an interval")
    size, extra = np.divmod(counters.bytes[rows], counts.astype(np.uint64))
    one_of = -(-total // MESSAGES_MOST)
    kept = _thin_out(counts, size, one_of)
    flow = np.repeat(np.arange(len(kept)), kept)
    turn = np.arange(len(flow)) - np.repeat(np.cumsum(kept) - kept, kept)
    part = (turn + 0.5) / kept[flow]
    begin_ns, duration_ns = part, 0.0
    if with_times:
        begin_ns, duration_ns = time_messages(run.intervals, rank[flow], peer[flow], size[flow].astype(float), part)
    fetched = counters.direction[rows] == Direction.FETCHED
    source, destination = np.where(fetched, peer, rank)[flow], np.where(fetched, rank, peer)[flow]
    order = np.lexsort((begin_ns, source))
    host = np.full(run.world_size, -1, np.int64)
    for each in run.ranks:
        host[each.rank] = each.host
    # A rank that was not recorded is at a host of its own.
    unknown = host < 0
    host[unknown] = host.max(initial=-1) + 1 + np.arange(unknown.sum())
    was_on_one_host = len(np.unique(host)) == 1
    return Recorded(
        host=np.arange(len(host)) if was_on_one_host else np.unique(host, return_inverse=True)[1].astype(np.int64),
        source=source[order],
        destination=destination[order],
        bytes=(size[flow] + (turn.astype(np.uint64) < extra[flow]))[order],
        begin_ns=begin_ns[order] if with_times else np.zeros(0),
        duration_ns=duration_ns,
        one_of=one_of,
        was_on_one_host=was_on_one_host,
    )


def _thin_out(counts: Ints, size: npt.NDArray[np.uint64], one_of: int) -> Ints:
    """Return the messages of each counter that are left when one of `one_of` is kept, the largest ones first."""
    order = np.argsort(size, kind="stable")[::-1]
    upto = np.zeros(len(counts) + 1, np.int64)
    upto[1:] = np.cumsum(counts[order])
    kept = np.empty_like(counts)
    # The middle one of each group stands for it.
    kept[order] = np.diff((upto + one_of // 2) // one_of)
    return kept


def steps_of(recorded: Recorded, rank: int, interval: int, tick_ns: float) -> npt.NDArray[Any]:
    """Return a rank's messages as steps of a round.

    Args:
        recorded: the run's messages.
        rank: of the run.
        interval: ticks from a message's completion to the next, where there are no times.
        tick_ns: length of a tick.

    Returns:
        `STEP` [message], with the destination's rank as `host`; empty for a rank that sent nothing. With times,
        `window` is when each began, from the run's start.
    """
    rows = slice(*np.searchsorted(recorded.source, [rank, rank + 1]))
    steps = np.zeros(rows.stop - rows.start, STEP)
    steps["host"], steps["bytes"] = recorded.destination[rows], recorded.bytes[rows]
    steps["client"] = NOBODY
    if len(recorded.begin_ns):
        steps["window"] = np.rint(recorded.begin_ns[rows] / tick_ns).astype(np.int64)
    else:
        steps["pause"] = interval
    return steps
