# SPDX-License-Identifier: Apache-2.0
"""Match samples: the calls of all members of a collective, and both ends of a message."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import CollectiveSamples, MessageSamples, Side
from ibprof.profile.row_arrays import take_rows

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


class Shape(IntEnum):
    """The pattern of waits in a collective: which members wait for which other members."""

    UNKNOWN = 0
    ALL = 1
    FROM_ROOT = 2
    TO_ROOT = 3
    PREFIX = 4
    NEIGHBOURS = 5


_SHAPES = {
    **dict.fromkeys(
        ("BARRIER", "ALLREDUCE", "ALLGATHER", "ALLGATHERV", "ALLTOALL", "ALLTOALLV", "ALLTOALLW", "REDUCE_SCATTER"),
        Shape.ALL,
    ),
    **dict.fromkeys(("REDUCE_SCATTER_BLOCK", "WIN_FENCE", "WIN_FREE", "COMM_FREE"), Shape.ALL),
    **dict.fromkeys(("ncclAllReduce", "ncclAllGather", "ncclReduceScatter"), Shape.ALL),
    **dict.fromkeys(("BCAST", "SCATTER", "SCATTERV"), Shape.FROM_ROOT),
    **dict.fromkeys(("REDUCE", "GATHER", "GATHERV"), Shape.TO_ROOT),
    **dict.fromkeys(("SCAN", "EXSCAN"), Shape.PREFIX),
    **dict.fromkeys(("NEIGHBOR_ALLGATHER", "NEIGHBOR_ALLGATHERV"), Shape.NEIGHBOURS),
    **dict.fromkeys(("NEIGHBOR_ALLTOALL", "NEIGHBOR_ALLTOALLV", "NEIGHBOR_ALLTOALLW"), Shape.NEIGHBOURS),
    # UNKNOWN: these operations also wait for processes that do not run yet, or for another program.
    **dict.fromkeys(("COMM_SPAWN", "COMM_SPAWN_MULTIPLE", "COMM_ACCEPT", "COMM_CONNECT", "COMM_JOIN"), Shape.UNKNOWN),
}

ALL_WITH_ALL = frozenset(name for name, shape in _SHAPES.items() if shape == Shape.ALL)

_MAKE_HANDLES = ("COMM_", "WIN_", "CART_", "GRAPH_", "DIST_GRAPH_", "INTERCOMM_")
"""Prefixes of collectives that make communicators and windows: all members wait for the last member."""


def find_shape(operation: str) -> Shape:
    """Return the pattern of waits in an operation."""
    name = operation.removesuffix("_INIT")
    for each in (name, name.removeprefix("I")):
        if each in _SHAPES:
            return _SHAPES[each]
    return Shape.ALL if name.startswith(_MAKE_HANDLES) else Shape.UNKNOWN


def are_named(operations: Sequence[str], names: Collection[str]) -> Booleans:
    """Return a mask of the operations with one of the names, in blocking, nonblocking or persistent form."""
    bare = (name.removesuffix("_INIT") for name in operations)
    return np.array([name in names or name.removeprefix("I") in names for name in bare], np.bool_)


@dataclass(frozen=True, slots=True)
class MatchedSamples:
    """Samples with consistent records, and samples that lack records of other ranks.

    Attributes:
        collectives: rows of collectives with all members' records, by collective, then by member.
        instance: int64, number of the collective of each row of `collectives`.
        messages: rows of both ends of each message, the sender's first.
        notices: pairs of rows: a sender or notifier, then the call that waits for it.
        sources: a row for each source of a rank in a communicator's graph; only for ranks with all sources recorded.
        lonely_collectives: rows of collectives that lack consistent records of other members.
        lonely_messages: rows of messages that lack the record of the other end.
        contradictory: number of collectives and messages with contradicting records.
    """

    collectives: CollectiveSamples
    instance: Integers
    messages: MessageSamples
    notices: MessageSamples
    sources: MessageSamples
    lonely_collectives: CollectiveSamples
    lonely_messages: MessageSamples
    contradictory: int


def match_samples(collectives: CollectiveSamples, messages: MessageSamples) -> MatchedSamples:
    """Return the collectives and messages with complete and consistent records."""
    ended = take_rows(collectives, collectives.exit_ns > 0)
    order = np.lexsort((ended.member, ended.number, ended.communicator))
    rows = take_rows(ended, order)
    begins, counts = find_runs(rows.communicator, rows.number)
    instance = np.repeat(np.arange(len(begins)), counts)
    is_whole = counts == rows.size[begins]
    agree = np.ones(len(begins), np.bool_)
    if len(begins):
        for name in ("size", "operation", "root"):
            column = getattr(rows, name)
            agree &= np.minimum.reduceat(column, begins) == np.maximum.reduceat(column, begins)
        place = np.arange(len(instance)) - np.repeat(begins, counts)
        agree &= np.logical_and.reduceat(~is_whole[instance] | (rows.member == place), begins)
    good = (is_whole & agree)[instance]
    kept, number = take_rows(rows, good), instance[good]
    is_source = messages.side == Side.SOURCE
    pairs, notices, lonely, torn = _match_messages(take_rows(messages, ~is_source))
    return MatchedSamples(
        collectives=kept,
        instance=np.unique(number, return_inverse=True)[1].astype(np.int64),
        messages=pairs,
        notices=notices,
        sources=_complete_sources(take_rows(messages, is_source)),
        lonely_collectives=take_rows(rows, ~good),
        lonely_messages=lonely,
        contradictory=int((~agree).sum()) + torn,
    )


def _complete_sources(rows: MessageSamples) -> MessageSamples:
    """Return the rows of ranks whose sources are all in `rows`.

    Such a rank has a row with the rank itself as source. In the rank's first row, `number` is the rank's number of
    rows, or 0 (unknown).
    """
    order = np.lexsort((rows.rank, rows.communicator))
    rows = take_rows(rows, order)
    begins, counts = find_runs(rows.communicator, rows.rank)
    if not len(begins):
        return rows
    has_all = np.logical_or.reduceat(rows.peer == rows.rank, begins)
    has_all &= (rows.number[begins] == 0) | (rows.number[begins] == counts)
    return take_rows(rows, np.repeat(has_all, counts))


def _match_messages(messages: MessageSamples) -> tuple[MessageSamples, MessageSamples, MessageSamples, int]:
    """Match the rows of senders and notifiers with the rows of receivers and waiters.

    Returns:
        Rows in pairs of a sender and its receiver. Rows in pairs of a sender or notifier and its waiter. Rows
        without a match, except notifiers' rows. The number of messages whose two rows have different sizes.
    """
    is_sender = (messages.side == Side.SENDER) | (messages.side == Side.NOTIFIER)
    sender = np.where(is_sender, messages.rank, messages.peer).astype(np.int64)
    receiver = np.where(is_sender, messages.peer, messages.rank).astype(np.int64)
    # Sort by a hash of all columns, which is fast. Rows with equal hashes are compared column by column below.
    key = messages.communicator * np.uint64(0x9E3779B97F4A7C15) + messages.number
    for column in (sender, receiver, messages.tag):
        key = (key ^ key >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9) + column.astype(np.uint64)
    order = np.argsort((key << np.uint64(2)) | messages.side.astype(np.uint64), kind="stable")
    one, other = order[:-1], order[1:]
    columns = (messages.communicator, messages.number, messages.tag, sender, receiver)
    is_next = np.ones(len(one), np.bool_)
    for each in columns:
        is_next &= each[one] == each[other]
    same = is_next & (messages.side[one] == Side.SENDER) & (messages.side[other] == Side.RECEIVER)
    ended = (messages.exit_ns[one] > 0) & (messages.exit_ns[other] > 0)
    known = (messages.bytes[one] + np.uint64(1) > 0) & (messages.bytes[other] + np.uint64(1) > 0)
    agree = ~known | (messages.bytes[one] == messages.bytes[other])
    good = same & ended & agree
    rows = np.stack([one[good], other[good]], axis=1).ravel()
    # Pair each waiter with the sender or notifier whose columns are equal.
    group = np.concatenate([[0], np.cumsum(~is_next)])[: len(order)]
    origin_of = np.full(len(order), -1, np.int64)
    origins = order[is_sender[order]]
    origin_of[group[is_sender[order]]] = origins
    waiters = order[messages.side[order] == Side.WAITER]
    their_origins = origin_of[group[messages.side[order] == Side.WAITER]]
    told = their_origins >= 0
    notices = np.stack([their_origins[told], waiters[told]], axis=1).ravel()
    alone = messages.side != Side.NOTIFIER
    alone[rows] = False
    alone[waiters[told]] = False
    found = take_rows(messages, rows), take_rows(messages, notices), take_rows(messages, alone)
    return *found, int((same & ended & ~agree).sum())


def find_runs(*columns: npt.NDArray[np.generic]) -> tuple[Integers, Integers]:
    """Return the begin and the length of each run of equal rows."""
    rows = len(columns[0])
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    changes = np.zeros(rows, np.bool_)
    changes[0] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    begins = np.flatnonzero(changes)
    return begins, np.diff(begins, append=rows)
