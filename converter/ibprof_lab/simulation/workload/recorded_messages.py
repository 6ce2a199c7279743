# SPDX-License-Identifier: Apache-2.0
"""Messages of a recorded run, or of a modelled training step, for a simulation.

Partners and sizes of messages come from the run's counters, start times from the run's time line.
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
from ibprof.native.libraries import sum_exactly
from ibprof.profile.missing_data import StageAccount, choose_sent
from ibprof.profile.profile_data import (
    Counters,
    Direction,
    Host,
    Intervals,
    Kind,
    MessageSizes,
    Profile,
    Rank,
    RegionTimes,
    Source,
)
from ibprof_converter.traffic.traffic_reader import UNKNOWN_PEER_REASON, refuse_many_ranks
from ibprof_converter.traffic.training_jobs import build_training, is_training, ranks_a_host
from ibprof_lab.simulation.engine.packet_engine import NOBODY, STEP

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MESSAGES_MOST = 1 << 22
"""Largest number of simulated messages of a run, over all ranks."""

MESSAGE_BYTES = np.uint64(512 << 10)
"""Largest modelled message. Source: NCCL, src/include/net_device.h and src/init.cc: 4 MiB of buffer in 8 steps."""

_SIZES_AN_OCTAVE = 4
"""Number of size classes between a size and its double. Messages of a class count as equally large."""

_ROUNDS = 60
"""Largest number of iterations in `_share_out`."""

_CLOSE = 1e-3
"""`_share_out` ends when the relative errors of each size's number of messages, and of each interval's mean size, are
below this value."""

_STEP, _STEEPEST = 2.0, 60.0
"""Limits of an interval's slope in `_share_out`: its change per iteration, and its absolute value."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Messages of a run, sorted by sender, then by time. Arrays are [message] unless a shape is stated.

    Attributes:
        host: int64 [rank], index of each rank's host. For a run on one host, each rank has a different index.
        source, destination: int64, sending and receiving rank.
        bytes: uint64, size; all messages of a counter have about the same size, which may be 0.
        begin_ns: float64, start time since the run's start; empty if times were not requested.
        duration_ns: duration of the run; 0 if times were not requested.
        account: numbers of simulated and of left-out messages of the run, with reasons.
        one_of: number of similar messages of the run that each message represents.
        was_on_one_host: True if all ranks were on one host, where no message crosses a network.
    """

    host: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    destination: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.uint64]
    begin_ns: Floats
    duration_ns: float
    one_of: int
    account: StageAccount
    was_on_one_host: bool = False


def load_run(name: str) -> Profile:
    """Read a profile or recording, or model a step of a training job, such as `pattern:nccl-ring:tp=2,dp=4`.

    Raises:
        InputError: the file is not a profile.
        UsageError: the training job is invalid.
    """
    if not is_training(name):
        return load_profile(Path(name))
    traffic, gpus = build_training(name), ranks_a_host(name) or 1
    rows = len(traffic.bytes)
    return Profile(
        name=name,
        mpi="",
        command="",
        job="",
        world_size=traffic.ranks,
        operations_asked="",
        hosts=tuple(Host(f"host {number}", ()) for number in range(-(-traffic.ranks // gpus))),
        ranks=tuple(
            Rank(rank, rank // gpus, 0, 0, 0, True, Source.NCCL, 0, 0, 0, 0, 0, ()) for rank in range(traffic.ranks)
        ),
        regions=traffic.regions,
        operations=traffic.operations,
        counters=Counters(
            rank=traffic.source,
            region=traffic.region,
            operation=traffic.operation,
            direction=np.full(rows, Direction.SENT, np.uint8),
            peer=traffic.destination.astype(np.uint32),
            kind=np.full(rows, Kind.USER, np.uint8),
            source=np.full(rows, Source.NCCL, np.uint8),
            bytes=traffic.bytes,
            messages=-(-traffic.bytes // MESSAGE_BYTES),
            site=np.zeros(rows, np.int32),
        ),
        region_times=RegionTimes.empty(),
        sizes=MessageSizes.empty(),
        marks=(),
    )


@lru_cache(maxsize=4)
def load_messages(path: Path, with_times: bool) -> Recorded:
    """Return the messages of a profile, a recording or a training job.

    Args:
        with_times: True to compute start times from the time line; False for no start times.

    Raises:
        InputError: the file is not a profile.
        InconsistentError: no rank sent a message to another; or times are requested, but the run has no time line, or
            too many messages.
    """
    return lay_out_messages(load_run(str(path)), str(path), with_times)


def lay_out_messages(run: Profile, name: str, with_times: bool) -> Recorded:
    """Return the messages of a run; see `load_messages`."""
    refuse_many_ranks(run)
    counters = run.counters
    chosen = choose_sent(run)
    rows = np.flatnonzero(chosen & (counters.peer < run.world_size))
    rank, peer = counters.rank[rows].astype(np.int64), counters.peer[rows].astype(np.int64)
    counts = np.maximum(counters.messages[rows].astype(np.int64), 1)
    total = int(counts.sum())
    if not total:
        raise InconsistentError(f"{name}: no rank sent anything to another rank")
    if with_times and not len(run.intervals.rank):
        raise InconsistentError(f"{name} has no time line: record with IBPROF_INTERVAL, or state an interval")
    if with_times and total > MESSAGES_MOST:
        raise InconsistentError(f"{name}: {total} messages are too many to use recorded times; state an interval")
    elsewhere = sum_exactly(counters.messages[chosen & (counters.peer >= run.world_size)])
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
    left_out = {"only one of several similar messages is simulated": total - len(flow), UNKNOWN_PEER_REASON: elsewhere}
    reasons = {reason: number for reason, number in left_out.items() if number}
    host = np.full(run.world_size, -1, np.int64)
    for each in run.ranks:
        host[each.rank] = each.host
    # Assume that each rank that was not recorded was on a separate host.
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
        account=StageAccount("simulate", "messages", total + elsewhere, len(flow), reasons),
        was_on_one_host=was_on_one_host,
    )


def _thin_out(counts: Ints, size: npt.NDArray[np.uint64], one_of: int) -> Ints:
    """Return the number of simulated messages of each counter: every `one_of`-th of all messages, sorted by size."""
    order = np.argsort(size, kind="stable")[::-1]
    upto = np.zeros(len(counts) + 1, np.int64)
    upto[1:] = np.cumsum(counts[order])
    kept = np.empty_like(counts)
    # Of each `one_of` successive messages, the middle one is simulated.
    kept[order] = np.diff((upto + one_of // 2) // one_of)
    return kept


def steps_of(recorded: Recorded, rank: int, interval: int, tick_ns: float) -> npt.NDArray[Any]:
    """Return a rank's messages as steps for the packet engine.

    Args:
        recorded: the run's messages.
        interval: ticks from the completion of a message to the next start, if the messages have no times.
        tick_ns: duration of a tick.

    Returns:
        `STEP` [message]; `host` is the receiving rank. If the messages have times, `window` is the number of ticks from
        the run's start to the message's start.
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


def time_messages(line: Intervals, rank: Ints, peer: Ints, size: Floats, part: Floats) -> tuple[Floats, float]:
    """Choose messages' start times, so that intervals have the recorded numbers of messages and bytes.

    Args:
        rank: [message], rank whose time line contains the message.
        peer: [message], the other rank.
        size: [message], bytes.
        part: [message], position among the messages that the same counter of the recording counted, from 0 to 1.

    Returns:
        Start of each message since the first interval's begin, ns, float64 [message]; the run's duration, ns.
    """
    first = int(line.begin_ns.min())
    begin = (line.begin_ns - np.uint64(first)).astype(float)
    end = np.maximum((line.end_ns - np.uint64(first)).astype(float), begin)
    group_of_row, group = _group(line, rank, peer)
    kind = np.rint(_SIZES_AN_OCTAVE * np.log2(size + 1)).astype(np.int64)
    result = np.zeros(len(rank))
    rows_of = _split(group_of_row)
    for number, messages in _split(group).items():
        rows = rows_of.get(number)
        if rows is None:  # the message's peers were unknown during the run: use all rows of the rank
            rows = np.flatnonzero(line.rank == rank[messages[0]])
        if not len(rows):
            rows = np.arange(len(line.rank))
        kinds = [messages[each] for each in _split(kind[messages]).values()]
        share = _share_out(
            np.array([len(each) for each in kinds], float),
            np.array([size[each].mean() for each in kinds]),
            line.messages[rows].astype(float),
            line.bytes[rows].astype(float),
        )
        for each, weight in zip(kinds, share, strict=True):
            in_turn = each[np.argsort(part[each], kind="stable")]
            upto = np.concatenate([[0.0], np.cumsum(weight)])
            at = (np.arange(len(in_turn)) + 0.5) / len(in_turn) * upto[-1]
            which = np.clip(np.searchsorted(upto, at) - 1, 0, len(rows) - 1)
            within = (at - upto[which]) / weight[which]
            result[in_turn] = begin[rows[which]] + within * (end[rows[which]] - begin[rows[which]])
    return result, float(end.max())


def _group(line: Intervals, rank: Ints, peer: Ints) -> tuple[Ints, Ints]:
    """Return a group number for each row of the time line, and for each message.

    Rows with the same rank and the same peers form a group, together with their messages. A message that no row counts
    has the number -1 - rank.
    """
    key = line.rank.astype(np.int64) << 32 | line.first_peer.astype(np.int64)
    keys, row, group_of_row = np.unique(key, return_index=True, return_inverse=True)
    group = np.searchsorted(keys, rank << 32 | peer, "right") - 1
    found = row[np.maximum(group, 0)]
    inside = (group >= 0) & (line.rank[found] == rank) & (peer <= line.last_peer[found])
    return group_of_row.astype(np.int64), np.where(inside, group, -1 - rank)


def _split(number: Ints) -> dict[int, npt.NDArray[np.intp]]:
    """Return value -> indices of the elements of `number` with this value."""
    order = np.argsort(number, kind="stable")
    values, first = np.unique(number[order], return_index=True)
    return dict(zip(values.tolist(), np.split(order, first[1:]), strict=True))


def _share_out(count: Floats, size: Floats, messages: Floats, total: Floats) -> Floats:
    """Distribute messages, whose sizes are known, over intervals, whose numbers of messages and bytes are known. The
    method is iterative proportional fitting. In each interval, sizes have weights size ** slope, with the slope for
    which the mean size is right.

    Args:
        count, size: [size], number of messages, and bytes of a message.
        messages, total: [interval], number of messages, and their total bytes.

    Returns:
        Number of messages of each size in each interval, [size, interval]; numbers are fractional and above 0.
    """
    messages = np.maximum(messages, 1e-3)
    if len(count) == 1 or len(messages) == 1:
        alike: Floats = count[:, None] * messages / messages.sum()
        return alike
    messages = messages * count.sum() / messages.sum()
    log_size = np.log(size + 1)
    wanted = np.clip(total * (count @ size) / max(total.sum(), 1) / messages, max(size.min(), 1e-3), size.max())
    level, slope = np.log(count), np.zeros(len(messages))
    share = np.zeros((len(count), len(messages)))
    for _ in range(_ROUNDS):
        share = _tilt(level, log_size, slope)
        mean = size @ share
        growth = (size * log_size) @ share - mean * (log_size @ share)  # d(mean size) / d(slope)
        step = np.clip((wanted - mean) / np.maximum(growth, 1e-9 * mean), -_STEP, _STEP)
        slope = np.clip(slope + step, -_STEEPEST, _STEEPEST)
        share *= messages
        missing = count / share.sum(axis=1)
        level += np.log(missing)
        if max(np.abs(missing - 1).max(), np.abs(mean / wanted - 1).max()) < _CLOSE:
            break
    fitted: Floats = np.maximum(share * (count / share.sum(axis=1))[:, None], 1e-12)
    return fitted


def _tilt(level: Floats, log_size: Floats, slope: Floats) -> Floats:
    """Return the fraction of each size in each interval, [size, interval]; the fractions of an interval add up to 1."""
    exponent = level[:, None] + log_size[:, None] * slope
    part = np.exp(exponent - exponent.max(axis=0))
    shares: Floats = np.maximum(part / part.sum(axis=0), 1e-30)
    return shares
