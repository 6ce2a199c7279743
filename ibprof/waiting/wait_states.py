# SPDX-License-Identifier: Apache-2.0
"""Waiting inside sampled calls, by Scalasca's definitions, from the records of all ranks that took part.

A call waits until the last event that it needs, and no longer than it lasts:

* late sender: a receive, until the send starts;
* late receiver: a send that blocks, until the receive is posted;
* wait at N x N, wait at barrier: each member, until the last one enters;
* late broadcast: all but the root of a collective from one rank, until the root enters;
* early reduce: the root of a collective to one rank, until the last member enters.

All other time in the call is transfer.
Source: Scalasca's pattern reference, https://www.scalasca.org (Boehme et al., "Identifying the root causes of wait
states in large-scale parallel applications", ICPP 2010).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import CollectiveSamples, MessageSamples
from ibprof.profile.row_arrays import RowArrays, take_rows
from ibprof.waiting.host_clocks import QUICKEST_NS, UNKNOWN_NS, EventOrders, HostClocks, fit_clocks, one_clock

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

SMALL_BYTES = 4096
"""Size up to which a collective or a message may be quick, for the comparison of clocks."""

SAME_CLOCK_NS = 2_000
"""By how much events of one host may contradict each other before its ranks are taken to have clocks of their own."""

BLOCKED_NS = 10_000
"""Time in a call from which on it is taken to have blocked, for the comparison of clocks."""


class WaitState(IntEnum):
    """A reason why a call waits."""

    NONE = 0
    LATE_SENDER = 1
    LATE_RECEIVER = 2
    N_X_N = 3
    BARRIER = 4
    LATE_BROADCAST = 5
    EARLY_REDUCE = 6


class Shape(IntEnum):
    """The members of a collective that wait, and for whom."""

    UNKNOWN = 0
    ALL = 1
    FROM_ROOT = 2
    TO_ROOT = 3
    PREFIX = 4


_SHAPES = {
    **dict.fromkeys(
        ("BARRIER", "ALLREDUCE", "ALLGATHER", "ALLGATHERV", "ALLTOALL", "ALLTOALLV", "ALLTOALLW", "REDUCE_SCATTER"),
        Shape.ALL,
    ),
    **dict.fromkeys(("REDUCE_SCATTER_BLOCK", "WIN_FENCE", "WIN_FREE", "COMM_FREE"), Shape.ALL),
    **dict.fromkeys(("BCAST", "SCATTER", "SCATTERV"), Shape.FROM_ROOT),
    **dict.fromkeys(("REDUCE", "GATHER", "GATHERV"), Shape.TO_ROOT),
    **dict.fromkeys(("SCAN", "EXSCAN"), Shape.PREFIX),
}

_SHAPES_OF_ALL = frozenset(name for name, shape in _SHAPES.items() if shape == Shape.ALL)

_MAKE_HANDLES = ("COMM_", "WIN_", "CART_", "GRAPH_", "DIST_GRAPH_", "INTERCOMM_")
"""Beginnings of the collectives that make communicators and windows: all members wait for the last."""

_SYNCHRONISING = frozenset({"BARRIER", "ALLREDUCE", "ALLGATHER", "ALLTOALL", "REDUCE_SCATTER_BLOCK"})
"""Collectives that nobody can leave before all have entered, if they move anything. Others may have empty parts."""


def find_shape(operation: str) -> Shape:
    """Return who waits for whom in a collective of a profile's operation name."""
    name = operation.removesuffix("_INIT")
    for each in (name, name.removeprefix("I")):
        if each in _SHAPES:
            return _SHAPES[each]
    return Shape.ALL if name.startswith(_MAKE_HANDLES) else Shape.UNKNOWN


@dataclass(frozen=True, slots=True)
class SplitCalls(RowArrays):
    """Sampled calls, each with its waiting; arrays of one length, in the order of rank, enter.

    Attributes:
        rank, region, operation, site: int32, of the call.
        enter_ns: int64, by the common clock; stay_ns: how long it lasted.
        wait_ns: int64, waiting; least_ns, most_ns: int64, what it is at least and at most, by the clocks' errors and by
            messages without a record of the other end.
        state: uint8, `WaitState`, of the last event.
        late: int32, rank that caused that event; -1 for none.
        late_ns: int64, the moment of that event by the common clock.
        weight: float64, number of calls that it stands for.
    """

    rank: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    site: npt.NDArray[np.int32]
    enter_ns: npt.NDArray[np.int64]
    stay_ns: npt.NDArray[np.int64]
    wait_ns: npt.NDArray[np.int64]
    least_ns: npt.NDArray[np.int64]
    most_ns: npt.NDArray[np.int64]
    state: npt.NDArray[np.uint8]
    late: npt.NDArray[np.int32]
    late_ns: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MatchedSamples:
    """Samples whose records agree, and what did not.

    Attributes:
        collectives: rows of whole instances, instance after instance, members in their order.
        instance: int64, number of the instance of each of these rows.
        messages: rows of both ends of each message, the sender's first.
        lonely_collectives, lonely_messages: rows without the others' records.
        contradictory: instances and messages whose records do not agree.
    """

    collectives: CollectiveSamples
    instance: Integers
    messages: MessageSamples
    lonely_collectives: CollectiveSamples
    lonely_messages: MessageSamples
    contradictory: int


def match_samples(collectives: CollectiveSamples, messages: MessageSamples) -> MatchedSamples:
    """Return the instances and messages of which all records are there and agree."""
    ended = take_rows(collectives, collectives.exit_ns > 0)
    order = np.lexsort((ended.member, ended.number, ended.communicator))
    rows = take_rows(ended, order)
    begins, counts = _runs(rows.communicator, rows.number)
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
    pairs, lonely, torn = _match_messages(messages)
    return MatchedSamples(
        collectives=kept,
        instance=np.unique(number, return_inverse=True)[1].astype(np.int64),
        messages=pairs,
        lonely_collectives=take_rows(rows, ~good),
        lonely_messages=lonely,
        contradictory=int((~agree).sum()) + torn,
    )


def _match_messages(messages: MessageSamples) -> tuple[MessageSamples, MessageSamples, int]:
    """Return messages with both ends, ends without the other, and the number of those whose ends do not agree."""
    is_sender = messages.side == 0
    sender = np.where(is_sender, messages.rank, messages.peer).astype(np.int64)
    receiver = np.where(is_sender, messages.peer, messages.rank).astype(np.int64)
    # One key, for one fast sort; equal keys are compared column by column below.
    key = messages.communicator * np.uint64(0x9E3779B97F4A7C15) + messages.number
    for column in (sender, receiver, messages.tag):
        key = (key ^ key >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9) + column.astype(np.uint64)
    order = np.argsort((key << np.uint64(1)) | messages.side.astype(np.uint64), kind="stable")
    one, other = order[:-1], order[1:]
    columns = (messages.communicator, messages.number, messages.tag, sender, receiver)
    same = np.ones(len(one), np.bool_)
    for each in columns:
        same &= each[one] == each[other]
    same &= (messages.side[one] == 0) & (messages.side[other] == 1)
    ended = (messages.exit_ns[one] > 0) & (messages.exit_ns[other] > 0)
    known = (messages.bytes[one] + np.uint64(1) > 0) & (messages.bytes[other] + np.uint64(1) > 0)
    agree = ~known | (messages.bytes[one] == messages.bytes[other])
    good = same & ended & agree
    rows = np.stack([one[good], other[good]], axis=1).ravel()
    alone = np.ones(len(order), np.bool_)
    alone[rows] = False
    return take_rows(messages, rows), take_rows(messages, alone), int((same & ended & ~agree).sum())


def _runs(*columns: npt.NDArray[np.generic]) -> tuple[Integers, Integers]:
    """Return where runs of equal rows begin, and their lengths."""
    rows = len(columns[0])
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    changes = np.zeros(rows, np.bool_)
    changes[0] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    begins = np.flatnonzero(changes)
    return begins, np.diff(begins, append=rows)


def compare_clocks(
    matched: MatchedSamples, operations: Sequence[str], host_of: npt.NDArray[np.integer]
) -> tuple[HostClocks, Integers]:
    """Return the clocks, and the number of each rank's clock.

    Ranks of one host have one clock, unless their events contradict each other: then each has its own.

    Args:
        matched: whose times are compared.
        operations: the profile's names.
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
    """Return the messages whose receiver's call received no other one."""
    rank, enter = messages.rank[1::2], messages.enter_ns[1::2]
    order = np.lexsort((enter, rank))
    _, counts = _runs(rank[order], enter[order])
    alone = np.zeros(len(rank), np.bool_)
    alone[order] = np.repeat(counts == 1, counts)
    return alone


def _find_deciding(messages: MessageSamples, clocks: HostClocks, clock_of: Integers) -> Booleans:
    """Return the messages that were sent last of all that one call received."""
    post, _ = clocks.to_common(clock_of[messages.rank[::2]], messages.post_ns[::2])
    rank, enter = messages.rank[1::2], messages.enter_ns[1::2]
    order = np.lexsort((post, enter, rank))
    begins, counts = _runs(rank[order], enter[order])
    last = np.zeros(len(post), np.bool_)
    last[order[begins + counts - 1]] = True
    return last


def _find_torn(orders: EventOrders, clocks: int) -> Integers:
    """Return the clocks that cannot be one: a certain order does not hold, or most of the others do not."""
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
    """Return which events of the samples precede which others.

    Args:
        matched, operations: the samples.
        clock_of: int64 [rank].
        deciding: bool [message], of the messages that a call receives the one that it waits for longest.
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
    """Return that nobody leaves a collective of all with all before the last has entered."""
    rows = matched.collectives
    chosen = np.flatnonzero(_are_named(operations, _SHAPES_OF_ALL)[rows.operation])
    if not len(chosen):
        return []
    synchronises = _synchronises(rows, operations)
    clock = clock_of[rows.rank[chosen]]
    order = np.lexsort((clock, matched.instance[chosen]))
    chosen, clock = chosen[order], clock[order]
    instance = matched.instance[chosen]
    begins, _ = _runs(instance, clock)
    last_enter = np.maximum.reduceat(rows.start_ns[chosen], begins)
    first_exit = np.minimum.reduceat(rows.exit_ns[chosen], begins)
    small = np.maximum.reduceat(rows.bytes[chosen], begins) <= SMALL_BYTES
    holds = np.logical_and.reduceat(synchronises[chosen], begins)
    rounds = np.ceil(np.log2(np.maximum(rows.size[chosen][begins], 2))).astype(np.int64)
    clock, instance = clock[begins], instance[begins]
    starts, counts = _runs(instance)
    # Each clock is compared with one of the same instance, the same one wherever it takes part.
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
    # The ranks of one clock show whether they have one.
    own = EventOrders(clock, clock, last_enter, first_exit, holds)
    return [*found, own]


def _are_named(operations: Sequence[str], names: Collection[str]) -> Booleans:
    """Return which operations have one of some names, blocking, nonblocking or persistent."""
    bare = (name.removesuffix("_INIT") for name in operations)
    return np.array([name in names or name.removeprefix("I") in names for name in bare], np.bool_)


def _synchronises(rows: CollectiveSamples, operations: Sequence[str]) -> Booleans:
    """Return the rows of collectives that nobody leaves before all have entered."""
    barrier = _are_named(operations, ("BARRIER",))[rows.operation]
    return _are_named(operations, _SYNCHRONISING)[rows.operation] & (barrier | (rows.bytes > 0))


def _order_rooted(matched: MatchedSamples, operations: Sequence[str], clock_of: Integers) -> Sequence[EventOrders]:
    """Return that a root enters before others leave, or others enter before it leaves."""
    rows = matched.collectives
    shapes = np.array([find_shape(name) for name in operations], np.int64)
    begins, counts = _runs(matched.instance)
    root = np.repeat(begins, counts) + rows.root
    found = []
    moves = rows.bytes > 0
    for shape, certain in ((Shape.FROM_ROOT, "BCAST"), (Shape.TO_ROOT, "REDUCE")):
        named = _are_named(operations, (certain,))
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
    """Return that messages arrive after they were sent, and some of them soon."""
    clock = clock_of[messages.rank]
    sender, receiver = clock[::2], clock[1::2]
    post, arrival = messages.post_ns[::2], messages.exit_ns[1::2]
    stay = arrival - messages.enter_ns[1::2]
    quick = (messages.bytes[1::2] <= SMALL_BYTES) & (stay >= BLOCKED_NS) & (sender != receiver) & deciding
    # A synchronous send ends after its receive began, and some soon after it.
    asks = _are_named(operations, ("SSEND", "ISSEND"))[messages.operation[::2]]
    receive, done = messages.post_ns[1::2], messages.exit_ns[::2]
    blocks = asks & (messages.bytes[1::2] <= SMALL_BYTES) & (done - messages.enter_ns[::2] >= BLOCKED_NS)
    return [
        _pairs(sender, receiver, post, arrival),
        _pairs(receiver[asks], sender[asks], receive[asks], done[asks]),
        _pairs(sender[blocks], receiver[blocks], done[blocks], receive[blocks] + QUICKEST_NS, certain=False),
        _pairs(receiver[quick], sender[quick], arrival[quick], post[quick] + QUICKEST_NS, certain=False),
    ]


@dataclass(frozen=True, slots=True)
class _Needs:
    """Events that calls need; arrays of one length.

    Attributes:
        row: int64, of the samples: collectives, then messages.
        least, wait, most: int64 ns, as in `SplitCalls`.
        state, late, late_ns: likewise.
    """

    least: Integers
    wait: Integers
    most: Integers
    state: Integers
    late: Integers
    late_ns: Integers


def split_calls(
    matched: MatchedSamples,
    operations: Sequence[str],
    clocks: HostClocks,
    clock_of: Integers,
    lonely_is_missing: bool = False,
) -> SplitCalls:
    """Return the waiting of each sampled call.

    Args:
        matched: the samples.
        operations: the profile's names.
        clocks, clock_of: of `compare_clocks`.
        lonely_is_missing: ranks were not recorded, so that a record without the others' is no sign of thinning:
            its call is kept, and nothing is known of its waiting.
    """
    rows, messages = matched.collectives, matched.messages
    needs = [
        _need_of_collectives(matched, operations, clocks, clock_of),
        _need_of_messages(messages, clocks, clock_of),
    ]
    # Of these the other records are not there: nothing is known of the wait.
    lonely = (matched.lonely_collectives, matched.lonely_messages)
    for part in lonely:
        nothing = np.zeros(len(part.rank), np.int64)
        needs.append(
            _Needs(nothing, nothing, np.maximum(part.exit_ns - part.enter_ns, 0), nothing, nothing - 1, nothing)
        )
    parts: list[CollectiveSamples | MessageSamples] = [rows, messages, *lonely]

    def column(name: str) -> Integers:
        return np.concatenate([getattr(part, name) for part in parts]).astype(np.int64)

    def need(name: str) -> Integers:
        joined: Integers = np.concatenate([getattr(part, name) for part in needs])
        return joined

    level = [_instance_levels(matched), np.repeat(np.maximum(messages.level[::2], messages.level[1::2]), 2)]
    level += [part.level for part in parts[2:]]
    levels = np.concatenate(level)
    weights = np.exp2(np.minimum(levels, 62).astype(np.float64))
    rank, enter, leave = column("rank"), column("enter_ns"), column("exit_ns")
    is_lonely = np.repeat([False, False, True, True], [len(part.rank) for part in parts])
    order = np.lexsort((enter, rank))
    if not lonely_is_missing and len(order):
        # Instances that another member dropped: calls of which no record is left are no sample.
        begins, counts = _runs(rank[order], enter[order])
        order = order[~np.repeat(np.logical_and.reduceat(is_lonely[order], begins), counts)]
    begins, counts = _runs(rank[order], enter[order])
    if not len(begins):
        return SplitCalls.empty()
    first = order[begins]
    stay = np.maximum.reduceat((leave - enter)[order], begins)
    wait = np.maximum.reduceat(need("wait")[order], begins)
    least = np.maximum.reduceat(need("least")[order], begins)
    most = np.maximum.reduceat(need("most")[order], begins)
    # Of calls like it that were all kept, some completed more messages: any of the others may have come later.
    place = np.unique(
        np.stack([column(name)[first] for name in ("end_operation", "end_site")]), axis=1, return_inverse=True
    )
    usual = np.zeros(len(begins), np.int64)
    np.maximum.at(usual, place[1].ravel(), counts)
    partial = (counts < usual[place[1].ravel()]) & (np.maximum.reduceat(levels[order], begins) > 0)
    most = np.where(partial, stay, most)
    # The event that decides: of those of a call the one with the longest wait.
    decisive = np.lexsort((need("wait")[order], np.repeat(np.arange(len(begins)), counts)))
    last = order[decisive[begins + counts - 1]]
    common, _ = clocks.to_common(clock_of[rank[first]], enter[first])
    is_waiting = wait > 0
    return SplitCalls(
        rank=rank[first].astype(np.int32),
        region=column("region")[first].astype(np.int32),
        operation=column("end_operation")[first].astype(np.int32),
        site=column("end_site")[first].astype(np.int32),
        enter_ns=common,
        stay_ns=stay,
        wait_ns=np.minimum(wait, stay),
        least_ns=np.minimum(least, stay),
        most_ns=np.minimum(most, stay),
        state=np.where(is_waiting, need("state")[last], 0).astype(np.uint8),
        late=np.where(is_waiting, need("late")[last], -1).astype(np.int32),
        late_ns=need("late_ns")[last],
        weight=weights[last],
    )


def _instance_levels(matched: MatchedSamples) -> npt.NDArray[np.uint8]:
    """Return the coarsest level of each row's instance."""
    begins, counts = _runs(matched.instance)
    if not len(begins):
        return np.zeros(0, np.uint8)
    return np.repeat(np.maximum.reduceat(matched.collectives.level, begins), counts)


def _bound(moment: Integers, error: Floats, enter: Integers, stay: Integers) -> tuple[Integers, Integers, Integers]:
    """Return least, probable and most waiting of a call that needs an event at a moment."""
    wide = np.minimum(error, 1e17).astype(np.int64)
    zero = np.zeros_like(stay)
    return (
        np.clip(moment - wide - enter, zero, stay),
        np.clip(moment - enter, zero, stay),
        np.clip(moment + wide - enter, zero, stay),
    )


def _need_of_collectives(
    matched: MatchedSamples, operations: Sequence[str], clocks: HostClocks, clock_of: Integers
) -> _Needs:
    rows = matched.collectives
    begins, counts = _runs(matched.instance)
    nobody = np.full(len(rows.rank), -1, np.int64)
    if not len(begins):
        return _Needs(nobody, nobody, nobody, nobody, nobody, nobody)
    clock = clock_of[rows.rank]
    start, error = clocks.to_common(clock, rows.start_ns)
    enter = start + (rows.enter_ns - rows.start_ns)
    stay = np.maximum(rows.exit_ns - rows.enter_ns, 0)
    first = np.repeat(begins, counts)
    shapes = np.array([find_shape(name) for name in operations], np.int64)[rows.operation]
    # Which row each one needs: the last one to start, or the root.
    latest = np.lexsort((start, matched.instance))[begins + counts - 1]
    needed = np.repeat(latest, counts)
    root = np.clip(first + rows.root, 0, len(first) - 1)
    needed = np.where(shapes == Shape.FROM_ROOT, root, needed)
    for begin, count in zip(
        begins[shapes[begins] == Shape.PREFIX], counts[shapes[begins] == Shape.PREFIX], strict=True
    ):
        so_far = np.maximum.accumulate(start[begin : begin + count])
        needed[begin : begin + count] = begin + np.searchsorted(so_far, so_far)
    is_root = rows.root == rows.member
    waits = (shapes == Shape.ALL) | (shapes == Shape.PREFIX)
    waits |= ((shapes == Shape.FROM_ROOT) & ~is_root) | ((shapes == Shape.TO_ROOT) & is_root)
    moment = start[needed]
    between = np.where(clock == clock[needed], 0.0, error + error[needed])
    between = np.where(clocks.group[clock] == clocks.group[clock[needed]], between, UNKNOWN_NS)
    least, wait, most = _bound(moment, between, enter, stay)
    if len(clocks.base_ns) > 1:
        # With uncertain clocks another one may be the last.
        first_ns, last_ns = _bound_latest(start, error, clock, clocks.group[clock], matched.instance)
        for_all = (shapes == Shape.ALL) | (shapes == Shape.TO_ROOT)
        zero = np.zeros_like(stay)
        least = np.where(for_all, np.clip(first_ns - enter, zero, stay), least)
        most = np.where(for_all, np.clip(last_ns - enter, zero, stay), most)
        between = np.where(for_all, last_ns - first_ns, between)
    # The last one to enter stays shortest: without a bound on the clocks, that has to do.
    shortest = np.repeat(np.minimum.reduceat(stay, begins), counts)
    blocks = np.repeat(np.logical_and.reduceat(rows.start_ns == rows.enter_ns, begins), counts)
    better = (shapes == Shape.ALL) & blocks & (between >= UNKNOWN_NS)
    by_stay = stay - shortest
    wait = np.where(better, by_stay, wait)
    least = np.where(better, np.maximum(by_stay - shortest, 0), least)
    most = np.where(better, np.minimum(by_stay + shortest, stay), most)
    quickest = np.repeat(np.lexsort((stay, matched.instance))[begins], counts)
    late = np.where(better, rows.rank[quickest], rows.rank[needed])
    unknown = shapes == Shape.UNKNOWN
    barrier = _are_named(operations, ("BARRIER",))[rows.operation]
    state = np.select(
        [~waits, shapes == Shape.FROM_ROOT, shapes == Shape.TO_ROOT, barrier],
        [WaitState.NONE, WaitState.LATE_BROADCAST, WaitState.EARLY_REDUCE, WaitState.BARRIER],
        WaitState.N_X_N,
    )
    return _Needs(
        least=np.where(waits, least, 0),
        wait=np.where(waits, wait, 0),
        most=np.where(waits, most, np.where(unknown, stay, 0)),
        state=state.astype(np.int64),
        late=np.where(waits & (late != rows.rank), late, -1).astype(np.int64),
        late_ns=np.where(better, enter + by_stay, moment),
    )


def _bound_latest(
    start: Integers, error: Floats, clock: Integers, group: Integers, instance: Integers
) -> tuple[Integers, Integers]:
    """Return the moment of the last start of each row's instance, at least and at most, by the row's own clock."""
    order = np.lexsort((clock, instance))
    begins, counts = _runs(instance[order], clock[order])
    wide = np.minimum(error, UNKNOWN_NS / 4).astype(np.int64)
    mine = np.maximum.reduceat(start[order], begins)  # of one clock: exact
    of_instance = instance[order][begins]
    starts, members = _runs(of_instance)
    found = []
    for sign in (-1, 1):
        bound = np.maximum.reduceat((start + sign * wide)[order], begins)
        # The largest of the other clocks: the largest of all, or the second where that is the own clock's.
        by_size = np.lexsort((bound, of_instance))
        largest = by_size[starts + members - 1]
        second = by_size[np.maximum(starts + members - 2, starts)]
        other = np.repeat(largest, members)
        other = np.where(other == np.arange(len(bound)), np.repeat(second, members), other)
        is_alone = np.repeat(members == 1, members)
        own_wide = np.maximum.reduceat(wide[order], begins)
        latest = np.where(is_alone, mine, np.maximum(mine, bound[other] + sign * own_wide))
        row = np.empty(len(start), np.int64)
        row[order] = np.repeat(latest, counts)
        found.append(row)
    # Clocks that were never compared say nothing of each other.
    compared = np.minimum.reduceat(group[order], begins), np.maximum.reduceat(group[order], begins)
    torn = np.minimum.reduceat(compared[0], starts) != np.maximum.reduceat(compared[1], starts)
    rows = np.empty(len(start), np.bool_)
    rows[order] = np.repeat(np.repeat(torn, members), counts)
    exact = np.empty(len(start), np.int64)
    exact[order] = np.repeat(mine, counts)
    return np.where(rows, exact, found[0]), np.where(rows, exact + UNKNOWN_NS, found[1])


def _need_of_messages(messages: MessageSamples, clocks: HostClocks, clock_of: Integers) -> _Needs:
    clock = clock_of[messages.rank]
    post, error = clocks.to_common(clock, messages.post_ns)
    enter = post + (messages.enter_ns - messages.post_ns)
    stay = np.maximum(messages.exit_ns - messages.enter_ns, 0)
    other = np.arange(len(clock)) ^ 1
    moment, between = post[other], np.where(clock == clock[other], 0.0, error + error[other])
    between = np.where(clocks.group[clock] == clocks.group[clock[other]], between, UNKNOWN_NS)
    least, wait, most = _bound(moment, between, enter, stay)
    # A send that returns before the receive is posted does not wait for it.
    is_sender = messages.side == 0
    left = enter + stay
    returned = is_sender & (left <= moment)
    doubtful = is_sender & (np.abs(left - moment) <= between)
    wait = np.where(returned, 0, wait)
    least = np.where(returned | doubtful, 0, least)
    most = np.where(returned & ~doubtful, 0, np.where(doubtful, stay, most))
    state = np.where(is_sender, WaitState.LATE_RECEIVER, WaitState.LATE_SENDER)
    return _Needs(least, wait, most, state.astype(np.int64), messages.rank[other].astype(np.int64), moment)
