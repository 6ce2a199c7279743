# SPDX-License-Identifier: Apache-2.0
"""When the messages of a recorded run began: its counters know their sizes, its time line when how much was sent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import Intervals

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SIZES_AN_OCTAVE = 4
"""Messages whose sizes differ by less than an octave's part are placed in time together."""

_ROUNDS = 60
"""Of the fit, of sizes and intervals in turn."""

_CLOSE = 1e-3
"""Part by which messages of a size, and mean sizes of intervals, may differ from what they are to be."""

_STEP, _STEEPEST = 2.0, 60.0
"""A slope, of a round and at most: large sizes are likelier than small ones by this power of their ratio."""


def time_messages(line: Intervals, rank: Ints, peer: Ints, size: Floats, part: Floats) -> tuple[Floats, float]:
    """Return when each message began, evenly within intervals that keep their messages and bytes.

    Args:
        line: of the run.
        rank: [message], whose time line it is in.
        peer: [message], the rank at the other end.
        size: [message], bytes.
        part: [message], its place among those of the same counter, from 0 to 1: they are spread over the run evenly but
            for what the time line says.

    Returns:
        Begin in ns from the first interval's, float64 [message]; and how long the run was.
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
        if rows is None:  # the source knew no ranks while the program ran
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
    """Number the time line's groups of peers: of each of its rows, and of each message; -1 - rank where it has none."""
    key = line.rank.astype(np.int64) << 32 | line.first_peer.astype(np.int64)
    keys, row, group_of_row = np.unique(key, return_index=True, return_inverse=True)
    group = np.searchsorted(keys, rank << 32 | peer, "right") - 1
    found = row[np.maximum(group, 0)]
    inside = (group >= 0) & (line.rank[found] == rank) & (peer <= line.last_peer[found])
    return group_of_row.astype(np.int64), np.where(inside, group, -1 - rank)


def _split(number: Ints) -> dict[int, npt.NDArray[np.intp]]:
    """Return where each number stands."""
    order = np.argsort(number, kind="stable")
    values, first = np.unique(number[order], return_index=True)
    return dict(zip(values.tolist(), np.split(order, first[1:]), strict=True))


def _share_out(count: Floats, size: Floats, messages: Floats, total: Floats) -> Floats:
    """Share the messages of each size out to intervals of which their messages and bytes are known.

    Sizes and intervals are fitted in turn (iterative proportional fitting). Within an interval the large ones are more
    or less likely by a power of their size, so that its mean size is what it was.

    Args:
        count, size: [size], messages of each and their bytes.
        messages, total: [interval], messages and bytes in it.

    Returns:
        Messages, [size, interval], not whole ones, each more than 0.
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
        growth = (size * log_size) @ share - mean * (log_size @ share)  # of the mean with the slope
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
    """Return the part of each size in each interval: [size, interval], which add up to 1 in each."""
    exponent = level[:, None] + log_size[:, None] * slope
    part = np.exp(exponent - exponent.max(axis=0))
    shares: Floats = np.maximum(part / part.sum(axis=0), 1e-30)
    return shares
