# SPDX-License-Identifier: Apache-2.0
"""Orders of events in sampled calls, for comparing the clocks of hosts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import CollectiveSamples, MessageSamples
from ibprof.waiting.host_clocks import QUICKEST_NS, EventOrders, HostClocks, fit_clocks, one_clock
from ibprof.waiting.sample_matching import (
    ALL_WITH_ALL,
    Booleans,
    Integers,
    MatchedSamples,
    Shape,
    are_named,
    find_runs,
    find_shape,
)

SMALL_BYTES = 4096
"""Largest size of a collective or a message that counts as quick in the comparison of clocks."""

SAME_CLOCK_NS = 2_000
"""Limit of contradictions between events of one host; above it, each rank gets its own clock."""

BLOCKED_NS = 10_000
"""Time in a call above which the call counts as blocked in the comparison of clocks."""

_SYNCHRONISING = frozenset({"BARRIER", "ALLREDUCE", "ALLGATHER", "ALLTOALL", "REDUCE_SCATTER_BLOCK"})
"""Collectives that no rank can leave before all have entered, unless they move no data. Others may have empty parts."""


def compare_clocks(
    matched: MatchedSamples, operations: Sequence[str], host_of: npt.NDArray[np.integer]
) -> tuple[HostClocks, Integers]:
    """Return the clocks, and the index of each rank's clock.

    Ranks of one host share one clock, unless their events contradict each other: then each rank has its own.

    Args:
        matched: samples with the times to compare.
        operations: the profile's operation names.
        host_of: int [rank], the host of each rank.
    """
    clock_of = np.unique(host_of, return_inverse=True)[1].astype(np.int64)
    deciding = _are_alone(matched.messages)
    orders = _order_events(matched, operations, clock_of, deciding)
    torn = _find_torn(orders, int(clock_of.max(initial=0)) + 1)
    if len(torn):
        alone = np.isin(clock_of, torn)
        clock_of[alone] = clock_of.max() + 1 + np.arange(int(alone.sum()))
        clock_of = np.unique(clock_of, return_inverse=True)[1].astype(np.int64)
        orders = _order_events(matched, operations, clock_of, deciding)
    clocks = int(clock_of.max(initial=0)) + 1
    if clocks == 1:
        return one_clock(), clock_of
    found = fit_clocks(clocks, orders)
    if not deciding.all():
        deciding |= _find_deciding(matched.messages, found, clock_of)
        found = fit_clocks(clocks, _order_events(matched, operations, clock_of, deciding))
    return found, clock_of


def _are_alone(messages: MessageSamples) -> Booleans:
    """Return the messages that were received by a call without other messages."""
    rank, enter = messages.rank[1::2], messages.enter_ns[1::2]
    order = np.lexsort((enter, rank))
    _, counts = find_runs(rank[order], enter[order])
    alone = np.zeros(len(rank), np.bool_)
    alone[order] = np.repeat(counts == 1, counts)
    return alone


def _find_deciding(messages: MessageSamples, clocks: HostClocks, clock_of: Integers) -> Booleans:
    """Return, for each receiving call, the message that was sent last."""
    post, _ = clocks.to_common(clock_of[messages.rank[::2]], messages.post_ns[::2])
    rank, enter = messages.rank[1::2], messages.enter_ns[1::2]
    order = np.lexsort((post, enter, rank))
    begins, counts = find_runs(rank[order], enter[order])
    last = np.zeros(len(post), np.bool_)
    last[order[begins + counts - 1]] = True
    return last


def _find_torn(orders: EventOrders, clocks: int) -> Integers:
    """Return the clocks that cannot be one: a certain order fails, or most uncertain orders fail."""
    own = orders.first == orders.second
    clock, certain = orders.first[own], orders.is_certain[own]
    is_wrong = orders.first_ns[own] > orders.second_ns[own] + SAME_CLOCK_NS
    wrong = np.bincount(clock[is_wrong & certain], minlength=clocks)
    doubtful = np.bincount(clock[is_wrong & ~certain], minlength=clocks)
    of_doubtful = np.bincount(clock[~certain], minlength=clocks)
    return np.flatnonzero((wrong > 0) | (2 * doubtful > of_doubtful))


def _order_events(
    matched: MatchedSamples, operations: Sequence[str], clock_of: Integers, deciding: Booleans
) -> EventOrders:
    """Return the orders of pairs of events in the samples.

    Args:
        matched, operations: the samples.
        clock_of: int64 [rank], clock of each rank.
        deciding: bool [message], true for the message that the receiving call waits for longest.
    """
    return EventOrders.join(
        [
            *_order_collectives(matched, operations, clock_of),
            *_order_rooted(matched, operations, clock_of),
            *_order_messages(matched.messages, operations, clock_of, deciding),
        ]
    )


def _pairs(
    first: Integers, second: Integers, first_ns: Integers, second_ns: Integers, certain: bool = True
) -> EventOrders:
    return EventOrders(first, second, first_ns, second_ns, np.full(len(first), certain))


def _order_collectives(matched: MatchedSamples, operations: Sequence[str], clock_of: Integers) -> Sequence[EventOrders]:
    """Return the orders of collectives of all ranks with all: no rank leaves before the last rank has entered."""
    rows = matched.collectives
    chosen = np.flatnonzero(are_named(operations, ALL_WITH_ALL)[rows.operation])
    if not len(chosen):
        return []
    synchronises = _synchronises(rows, operations)
    clock = clock_of[rows.rank[chosen]]
    order = np.lexsort((clock, matched.instance[chosen]))
    chosen, clock = chosen[order], clock[order]
    instance = matched.instance[chosen]
    begins, _ = find_runs(instance, clock)
    last_enter = np.maximum.reduceat(rows.start_ns[chosen], begins)
    first_exit = np.minimum.reduceat(rows.exit_ns[chosen], begins)
    small = np.maximum.reduceat(rows.bytes[chosen], begins) <= SMALL_BYTES
    holds = np.logical_and.reduceat(synchronises[chosen], begins)
    rounds = np.ceil(np.log2(np.maximum(rows.size[chosen][begins], 2))).astype(np.int64)
    clock, instance = clock[begins], instance[begins]
    starts, counts = find_runs(instance)
    # Compare each clock with one clock of the same instance, the same clock wherever it takes part.
    common = int(np.bincount(clock).argmax())
    is_common = clock == common
    hub = np.repeat(np.where(np.logical_or.reduceat(is_common, starts), -1, starts), counts)
    rows_of_common = np.zeros(int(instance.max()) + 1, np.int64)
    rows_of_common[instance[is_common]] = np.flatnonzero(is_common)
    hub = np.where(hub < 0, rows_of_common[instance], hub)
    other = np.flatnonzero(hub != np.arange(len(hub)))
    hub = hub[other]
    a, b = hub[holds[hub]], other[holds[hub]]
    found = [_pairs(clock[a], clock[b], last_enter[a], first_exit[b])]
    found += [_pairs(clock[b], clock[a], last_enter[b], first_exit[a])]
    both = small[hub] & small[other]
    hub, other = hub[both], other[both]
    slack = QUICKEST_NS * rounds[hub]
    found += [
        _pairs(clock[other], clock[hub], first_exit[other], first_exit[hub] + slack, certain=False),
        _pairs(clock[hub], clock[other], first_exit[hub], first_exit[other] + slack, certain=False),
    ]
    # The orders of ranks on one clock test whether they share a clock.
    own = EventOrders(clock, clock, last_enter, first_exit, holds)
    return [*found, own]


def _synchronises(rows: CollectiveSamples, operations: Sequence[str]) -> Booleans:
    """Return the rows of collectives that no rank leaves before all have entered."""
    barrier = are_named(operations, ("BARRIER",))[rows.operation]
    return are_named(operations, _SYNCHRONISING)[rows.operation] & (barrier | (rows.bytes > 0))


def _order_rooted(matched: MatchedSamples, operations: Sequence[str], clock_of: Integers) -> Sequence[EventOrders]:
    """Return the orders of rooted collectives: the root enters before others leave, or others before it leaves."""
    rows = matched.collectives
    shapes = np.array([find_shape(name) for name in operations], np.int64)
    begins, counts = find_runs(matched.instance)
    root = np.repeat(begins, counts) + rows.root
    found = []
    moves = rows.bytes > 0
    for shape, certain in ((Shape.FROM_ROOT, "BCAST"), (Shape.TO_ROOT, "REDUCE")):
        named = are_named(operations, (certain,))
        chosen = np.flatnonzero((shapes[rows.operation] == shape) & named[rows.operation] & moves & (rows.root >= 0))
        mine, theirs = clock_of[rows.rank[chosen]], clock_of[rows.rank[root[chosen]]]
        if shape == Shape.FROM_ROOT:
            found.append(_pairs(theirs, mine, rows.start_ns[root[chosen]], rows.exit_ns[chosen]))
        else:
            found.append(_pairs(mine, theirs, rows.start_ns[chosen], rows.exit_ns[root[chosen]]))
    return found


def _order_messages(
    messages: MessageSamples, operations: Sequence[str], clock_of: Integers, deciding: Booleans
) -> Sequence[EventOrders]:
    """Return the orders of messages: each arrives after it was sent, and some arrive soon."""
    clock = clock_of[messages.rank]
    sender, receiver = clock[::2], clock[1::2]
    post, arrival = messages.post_ns[::2], messages.exit_ns[1::2]
    stay = arrival - messages.enter_ns[1::2]
    small = messages.bytes[::2] <= SMALL_BYTES  # the receiver does not record the size
    quick = small & (stay >= BLOCKED_NS) & (sender != receiver) & deciding
    # A synchronous send ends after its receive began, and some sends end soon after.
    asks = are_named(operations, ("SSEND", "ISSEND"))[messages.operation[::2]]
    receive, done = messages.post_ns[1::2], messages.exit_ns[::2]
    blocks = asks & small & (done - messages.enter_ns[::2] >= BLOCKED_NS)
    return [
        _pairs(sender, receiver, post, arrival),
        _pairs(receiver[asks], sender[asks], receive[asks], done[asks]),
        _pairs(sender[blocks], receiver[blocks], done[blocks], receive[blocks] + QUICKEST_NS, certain=False),
        _pairs(receiver[quick], sender[quick], arrival[quick], post[quick] + QUICKEST_NS, certain=False),
    ]
