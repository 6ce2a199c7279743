# SPDX-License-Identifier: Apache-2.0
"""What a recorded run sent, as messages that can be simulated.

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
from ibprof.profile import Intervals, Profile
from ibprof_converter.simulation.engine import STEP
from ibprof_converter.traffic.model import RankTraffic
from ibprof_converter.traffic.recorded import profile_traffic

Floats = npt.NDArray[np.float64]

MESSAGES_MOST = 1 << 22
"""Messages that are laid out one by one, of all ranks together."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Messages of a run, in the order of sender and time; arrays of one length.

    Attributes:
        host: int64 [rank], hosts of the run by number, as ranks shared them; one a rank where all were on one.
        source, destination: int64, ranks.
        bytes: uint64, of each message: its counter's bytes spread evenly over its messages.
        begin_ns: float64, from the run's start; empty where times are not asked for.
        duration_ns: of the run; 0 where times are not asked for.
        one_of: each stands for so many of the run, which differ in nothing.
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
    traffic = profile_traffic(run, name)
    counts = np.maximum(traffic.messages.astype(np.int64), 1)
    total = int(counts.sum())
    if not total:
        raise InconsistentError(f"{name}: no rank sent anything to another")
    if with_times and not len(run.intervals.rank):
        raise InconsistentError(f"{name} has no time line: record with IBPROF_INTERVAL, or state an interval")
    if with_times and total > MESSAGES_MOST:
        raise InconsistentError(f"{name}: {total} messages are too many to time each; state an interval")
    one_of = -(-total // MESSAGES_MOST)
    kept = -(-counts // one_of)
    flow = np.repeat(np.arange(len(kept)), kept)
    turn = np.arange(len(flow)) - np.repeat(np.cumsum(kept) - kept, kept)
    size, extra = np.divmod(traffic.bytes, counts.astype(np.uint64))
    part = (turn + 0.5) / kept[flow]
    begin_ns, duration_ns = _time_messages(run.intervals, traffic, flow, part) if with_times else (part, 0.0)
    order = np.lexsort((begin_ns, traffic.source[flow]))
    flow = flow[order]
    host = np.full(traffic.ranks, -1, np.int64)
    for rank in run.ranks:
        host[rank.rank] = rank.host
    # A rank that was not recorded is at a host of its own.
    unknown = host < 0
    host[unknown] = host.max(initial=-1) + 1 + np.arange(unknown.sum())
    was_on_one_host = len(np.unique(host)) == 1
    return Recorded(
        host=np.arange(len(host)) if was_on_one_host else np.unique(host, return_inverse=True)[1].astype(np.int64),
        source=traffic.source[flow].astype(np.int64),
        destination=traffic.destination[flow].astype(np.int64),
        bytes=size[flow] + (turn[order].astype(np.uint64) < extra[flow]),
        begin_ns=begin_ns[order] if with_times else np.zeros(0),
        duration_ns=duration_ns,
        one_of=one_of,
        was_on_one_host=was_on_one_host,
    )


def _time_messages(
    line: Intervals, traffic: RankTraffic, flow: npt.NDArray[np.int64], part: Floats
) -> tuple[Floats, float]:
    """Give when each message began, evenly within the intervals of its flow, and how long the run was."""
    first = int(line.begin_ns.min())
    begin = (line.begin_ns - np.uint64(first)).astype(float)
    end = np.maximum((line.end_ns - np.uint64(first)).astype(float), begin)
    result = np.zeros(len(flow))
    cuts = np.flatnonzero(np.diff(flow)) + 1
    for rows in np.split(np.arange(len(flow)), cuts):
        number = int(flow[rows[0]])
        source, destination = int(traffic.source[number]), int(traffic.destination[number])
        chosen = np.flatnonzero(_is_of(line, source, destination))
        if not len(chosen):  # what a rank fetched is in the time line of the one who fetched
            chosen = np.flatnonzero(_is_of(line, destination, source))
        if not len(chosen):  # the source knew no ranks while the program ran
            chosen = np.flatnonzero(line.rank == source)
        if not len(chosen):
            chosen = np.arange(len(line.rank))
        weight = np.cumsum(np.maximum(line.messages[chosen].astype(float), 1))
        at = part[rows] * weight[-1]
        which = np.searchsorted(weight, at)
        before = np.concatenate([[0.0], weight])[which]
        within = (at - before) / (weight[which] - before)
        interval = chosen[which]
        result[rows] = begin[interval] + within * (end[interval] - begin[interval])
    return result, float(end.max())


def _is_of(line: Intervals, rank: int, peer: int) -> npt.NDArray[np.bool_]:
    chosen: npt.NDArray[np.bool_] = (line.rank == rank) & (line.first_peer <= peer) & (peer <= line.last_peer)
    return chosen


def steps_of(recorded: Recorded, rank: int, interval: int, tick_ns: float) -> tuple[npt.NDArray[Any], int]:
    """Give a rank's messages as steps of a round, and the tick at which the first begins.

    Args:
        recorded: the run's messages.
        rank: of the run.
        interval: ticks from a message's completion to the next, where there are no times.
        tick_ns: length of a tick.

    Returns:
        `STEP` [message], with the destination's rank as `host`; empty for a rank that sent nothing. With times, each
        begins as long after the one before as it did in the run, or when that one is complete; and the round again
        when the run was over.
    """
    rows = slice(*np.searchsorted(recorded.source, [rank, rank + 1]))
    steps = np.zeros(rows.stop - rows.start, STEP)
    steps["host"], steps["bytes"] = recorded.destination[rows], recorded.bytes[rows]
    steps["client"] = np.uint32(0xFFFFFFFF)
    if not len(recorded.begin_ns) or not len(steps):
        steps["pause"] = interval
        return steps, 0
    begin = np.rint(recorded.begin_ns[rows] / tick_ns).astype(np.int64)
    after_last = max(round(recorded.duration_ns / tick_ns) - int(begin[-1] - begin[0]), 1)
    steps["window"] = np.maximum(np.concatenate([[after_last], np.diff(begin)]), 1)
    return steps, int(begin[0])
