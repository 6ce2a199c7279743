# SPDX-License-Identifier: Apache-2.0
"""Measure waiting inside sampled calls by Scalasca's definitions, from the records of all ranks of each call.

A call waits until the last event that it needs, or until its end:

* late sender: a receive waits until the send starts;
* late receiver: a send that blocks waits until the receive is posted;
* wait at N x N, wait at barrier: each member waits until the last member enters;
* late broadcast: in a collective from one rank, members wait until the root enters;
* early reduce: in a collective to one rank, the root waits until the last member enters;
* late post: a call of an access epoch waits until the last target has posted;
* early wait: a call that ends an exposure epoch waits until the last origin completes.

In neighbourhood collectives each member waits for the last of its sources. All other time in a call is transfer.
Source: Scalasca's pattern reference, https://www.scalasca.org (Boehme et al., "Identifying the root causes of wait
states in large-scale parallel applications", ICPP 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import CollectiveSamples, MessageSamples
from ibprof.profile.row_arrays import RowArrays, take_rows
from ibprof.waiting.host_clocks import UNKNOWN_NS, HostClocks
from ibprof.waiting.sample_matching import Integers, MatchedSamples, Shape, are_named, find_runs, find_shape

Floats = npt.NDArray[np.float64]

_NOTIFY = ("WIN_POST", "WIN_COMPLETE")


class WaitState(IntEnum):
    """A reason why a call waits."""

    NONE = 0
    LATE_SENDER = 1
    LATE_RECEIVER = 2
    N_X_N = 3
    BARRIER = 4
    LATE_BROADCAST = 5
    EARLY_REDUCE = 6
    LATE_POST = 7
    EARLY_WAIT = 8


@dataclass(frozen=True, slots=True)
class SplitCalls(RowArrays):
    """Waiting of sampled calls; arrays of equal length, sorted by rank, then by entry.

    Attributes:
        rank, region, operation, site: int32, as in `CallTimes`.
        enter_ns, stay_ns: int64, entry of the call by the common clock, and duration.
        wait_ns: int64, waiting.
        least_ns, most_ns: int64, bounds of `wait_ns`, from errors of clocks and missing records of other ranks.
        state: uint8, `WaitState` of the last event that the call needs.
        late: int32, rank that caused the last event; -1 for none.
        late_ns: int64, time of the last event by the common clock.
        weight: float64, number of calls that the sample represents.
        part: float64, fraction of the call's messages that thinning chose; 1 if `is_long`, or without thinning.
        is_long: bool, true for the rank's longest calls: all are sampled, with weight 1.
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
    part: npt.NDArray[np.float64]
    is_long: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Needs:
    """Events that calls need before they can return; one element for each row of the samples.

    Attributes:
        least, wait, most: int64 ns, as in `SplitCalls`.
        state, late, late_ns: as in `SplitCalls`.
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
        clocks, clock_of: result of `compare_clocks`.
        lonely_is_missing: reason why calls lack other ranks' records. True if ranks were not recorded: the waiting in
            such calls is unknown. False if thinning dropped the records: such calls are left out.
    """
    rows, messages = matched.collectives, matched.messages
    needs = [
        _need_of_collectives(matched, operations, clocks, clock_of),
        _need_of_messages(messages, clocks, clock_of),
        _need_of_notices(matched.notices, operations, clocks, clock_of),
    ]
    waiters = take_rows(matched.notices, np.arange(1, len(matched.notices.rank), 2))
    # Without other ranks' records, the waiting is between 0 and the call's time.
    lonely = (matched.lonely_collectives, matched.lonely_messages)
    for part in lonely:
        nothing = np.zeros(len(part.rank), np.int64)
        needs.append(
            _Needs(nothing, nothing, np.maximum(part.exit_ns - part.enter_ns, 0), nothing, nothing - 1, nothing)
        )
    parts: list[CollectiveSamples | MessageSamples] = [rows, messages, waiters, *lonely]

    def column(name: str) -> Integers:
        return np.concatenate([getattr(part, name) for part in parts]).astype(np.int64)

    def need(name: str) -> Integers:
        joined: Integers = np.concatenate([getattr(part, name) for part in needs])
        return joined

    level = [_instance_levels(matched), np.repeat(np.maximum(messages.level[::2], messages.level[1::2]), 2)]
    level += [np.maximum(matched.notices.level[::2], waiters.level), *(part.level for part in lonely)]
    levels = np.concatenate(level)
    weights = np.exp2(np.minimum(levels, 62).astype(np.float64))
    rank, enter, leave = column("rank"), column("enter_ns"), column("exit_ns")
    is_lonely = np.repeat([False, False, False, True, True], [len(part.rank) for part in parts])
    is_long, is_useless = _are_long(matched)
    weights[is_long] = 1
    order = np.lexsort((enter, rank))
    order = order[~is_useless[order]]
    if not lonely_is_missing and len(order):
        # Leave out a call if all its rows lack the records of other ranks.
        begins, counts = find_runs(rank[order], enter[order])
        order = order[~np.repeat(np.logical_and.reduceat(is_lonely[order], begins), counts)]
    begins, counts = find_runs(rank[order], enter[order])
    if not len(begins):
        return SplitCalls.empty()
    first = order[begins]
    stay = np.maximum.reduceat((leave - enter)[order], begins)
    wait = np.maximum.reduceat(need("wait")[order], begins)
    least = np.maximum.reduceat(need("least")[order], begins)
    most = np.maximum.reduceat(need("most")[order], begins)
    place = np.unique(
        np.stack([column(name)[first] for name in ("end_operation", "end_site")]), axis=1, return_inverse=True
    )
    # Large messages are thinned less than small messages. A call with samples of only large messages thus does not
    # represent all calls.
    level_of = np.maximum.reduceat(levels[order], begins).astype(np.int64)
    thinned = np.zeros(len(begins), np.int64)
    np.maximum.at(thinned, place[1].ravel(), level_of)
    completed = _count_completed(parts, order, begins, counts, place[1].ravel())
    is_short = counts < completed
    stands_alone = np.logical_or.reduceat(is_long[order], begins)
    # A message without a record may have arrived last, so the waiting can take up to the whole call.
    is_open = is_short & ((level_of > 0) | stands_alone)
    most = np.where(is_open, stay, most)
    wait = np.where(is_open, (least + most) // 2, wait)
    is_whole = ~is_short | stands_alone | (level_of == thinned[place[1].ravel()])
    # Fraction of the call's messages that thinning chose. Without thinning (level 0) this fraction is 1, even if
    # records are lost.
    chosen = np.where((level_of > 0) & ~stands_alone, np.minimum(counts / completed, 1), 1.0)
    # The event with the longest wait determines the state and the late rank.
    decisive = np.lexsort((need("wait")[order], np.repeat(np.arange(len(begins)), counts)))
    last = order[decisive[begins + counts - 1]]
    common, _ = clocks.to_common(clock_of[rank[first]], enter[first])
    is_waiting = wait > 0
    split = SplitCalls(
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
        weight=np.where(stands_alone, 1, np.maximum.reduceat(weights[order], begins) * chosen),
        part=chosen,
        is_long=stands_alone,
    )
    return take_rows(split, is_whole)


def _count_completed(
    parts: Sequence[CollectiveSamples | MessageSamples],
    order: Integers,
    begins: Integers,
    counts: Integers,
    place: Integers,
) -> Integers:
    """Return how many messages and collectives each call completed.

    If unknown, return the largest number of rows of a call with the same operation and site.
    """
    recorded = np.concatenate([getattr(part, "completed", np.zeros(len(part.rank), np.uint16)) for part in parts])
    known = np.maximum.reduceat(recorded[order].astype(np.int64), begins)
    usual = np.zeros(len(begins), np.int64)
    np.maximum.at(usual, place, counts)
    return np.where(known > 0, known, usual[place])


def _are_long(matched: MatchedSamples) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return two masks of rows: rows that are long for all ranks; rows that are neither long nor chosen by the hash.

    A collective or message is long if its score exceeds the limit of each of its ranks. Then all its ranks sampled it,
    and the sample represents only itself. Other rows represent unsampled collectives and messages only if the hash
    chose them.
    """
    rows, messages, notices = matched.collectives, matched.messages, matched.notices
    begins, counts = find_runs(matched.instance)
    masks = []
    for name in ("is_long", "is_chosen"):
        of_rows, of_ends, of_notices = (getattr(each, name) for each in (rows, messages, notices))
        of_all = np.logical_and.reduceat(of_rows, begins) if len(begins) else of_rows
        masks.append(
            [
                np.repeat(of_all, counts),
                np.repeat(of_ends[::2] & of_ends[1::2], 2),
                of_notices[::2] & of_notices[1::2],
            ]
        )
    lonely = (matched.lonely_collectives, matched.lonely_messages)
    nothing = np.zeros(sum(len(part.rank) for part in lonely), np.bool_)
    is_long = np.concatenate([*masks[0], nothing])
    is_chosen = np.concatenate([*masks[1], *(part.is_chosen for part in lonely)])
    return is_long, ~is_chosen & ~is_long


def _instance_levels(matched: MatchedSamples) -> npt.NDArray[np.uint8]:
    """Return the largest sampling level of each row's collective."""
    begins, counts = find_runs(matched.instance)
    if not len(begins):
        return np.zeros(0, np.uint8)
    return np.repeat(np.maximum.reduceat(matched.collectives.level, begins), counts)


def _bound(moment: Integers, error: Floats, enter: Integers, stay: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the shortest, the probable and the longest waiting of a call that needs an event at a given time."""
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
    begins, counts = find_runs(matched.instance)
    nobody = np.full(len(rows.rank), -1, np.int64)
    if not len(begins):
        return _Needs(nobody, nobody, nobody, nobody, nobody, nobody)
    clock = clock_of[rows.rank]
    start, error = clocks.to_common(clock, rows.start_ns)
    enter = start + (rows.enter_ns - rows.start_ns)
    stay = np.maximum(rows.exit_ns - rows.enter_ns, 0)
    shapes = np.array([find_shape(name) for name in operations], np.int64)[rows.operation]
    needed = _find_needed(matched, shapes, start)
    is_root = rows.root == rows.member
    waits = (shapes == Shape.ALL) | (shapes == Shape.PREFIX)
    waits |= ((shapes == Shape.FROM_ROOT) & ~is_root) | ((shapes == Shape.TO_ROOT) & is_root)
    moment = start[needed]
    between = np.where(clock == clock[needed], 0.0, error + error[needed])
    between = np.where(clocks.group[clock] == clocks.group[clock[needed]], between, UNKNOWN_NS)
    least, wait, most = _bound(moment, between, enter, stay)
    if len(clocks.base_ns) > 1:
        # Widen the bounds: with uncertain clocks, another member may have entered last.
        first_ns, last_ns = _bound_latest(start, error, clock, clocks.group[clock], matched.instance)
        for_all = (shapes == Shape.ALL) | (shapes == Shape.TO_ROOT)
        zero = np.zeros_like(stay)
        least = np.where(for_all, np.clip(first_ns - enter, zero, stay), least)
        most = np.where(for_all, np.clip(last_ns - enter, zero, stay), most)
        between = np.where(for_all, last_ns - first_ns, between)
    member, source = _pair_with_sources(matched, np.flatnonzero(shapes == Shape.NEIGHBOURS))
    has_sources = np.zeros(len(stay), np.bool_)
    if len(member):
        between_two = np.where(clock[member] == clock[source], 0.0, error[member] + error[source])
        between_two[clocks.group[clock[member]] != clocks.group[clock[source]]] = UNKNOWN_NS
        bounds = _bound(start[source], between_two, enter[member], stay[member])
        begin, many = find_runs(member)
        of_row = member[begin]
        has_sources[of_row] = True
        least[of_row], wait[of_row], most[of_row] = (np.maximum.reduceat(bound, begin) for bound in bounds)
        needed[of_row] = source[np.lexsort((start[source], member))[begin + many - 1]]
        moment = start[needed]
        waits |= has_sources
    # If the difference of members' clocks has no bound, assume that the member with the shortest call enters last.
    shortest = np.repeat(np.minimum.reduceat(stay, begins), counts)
    blocks = np.repeat(np.logical_and.reduceat(rows.start_ns == rows.enter_ns, begins), counts)
    better = (shapes == Shape.ALL) & blocks & (between >= UNKNOWN_NS)
    by_stay = stay - shortest
    wait = np.where(better, by_stay, wait)
    least = np.where(better, np.maximum(by_stay - shortest, 0), least)
    most = np.where(better, np.minimum(by_stay + shortest, stay), most)
    quickest = np.repeat(np.lexsort((stay, matched.instance))[begins], counts)
    late = np.where(better, rows.rank[quickest], rows.rank[needed])
    unknown = (shapes == Shape.UNKNOWN) | ((shapes == Shape.NEIGHBOURS) & ~has_sources)
    barrier = are_named(operations, ("BARRIER", "WIN_FENCE", "WIN_FREE"))[rows.operation]
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


def _find_needed(matched: MatchedSamples, shapes: Integers, start: Integers) -> Integers:
    """Return, for each row of a collective, the row that it waits for.

    In FROM_ROOT collectives, each row waits for the root's row; in others, for the row with the last start. In PREFIX
    collectives, a row waits only for members with the same or a smaller number.
    """
    begins, counts = find_runs(matched.instance)
    latest = np.lexsort((start, matched.instance))[begins + counts - 1]
    needed = np.repeat(latest, counts)
    root = np.clip(np.repeat(begins, counts) + matched.collectives.root, 0, len(start) - 1)
    needed = np.where(shapes == Shape.FROM_ROOT, root, needed)
    for begin, count in zip(
        begins[shapes[begins] == Shape.PREFIX], counts[shapes[begins] == Shape.PREFIX], strict=True
    ):
        so_far = np.maximum.accumulate(start[begin : begin + count])
        needed[begin : begin + count] = begin + np.searchsorted(so_far, so_far)
    return needed


def _pair_with_sources(matched: MatchedSamples, chosen: Integers) -> tuple[Integers, Integers]:
    """Return pairs of rows of one collective: a chosen row (the receiver), and the row of a sender."""
    rows, sources = matched.collectives, matched.sources
    nothing = np.zeros(0, np.int64)
    if not len(chosen) or not len(sources.rank):
        return nothing, nothing
    ends = [
        np.concatenate([sources.communicator, rows.communicator[chosen]]),
        np.concatenate([sources.rank, rows.rank[chosen]]).astype(np.uint64),
    ]
    place = np.unique(np.stack(ends), axis=1, return_inverse=True)[1].ravel()
    of_sources, of_rows = place[: len(sources.rank)], place[len(sources.rank) :]
    order = np.argsort(of_sources, kind="stable")
    first = np.searchsorted(of_sources[order], of_rows)
    counts = np.searchsorted(of_sources[order], of_rows, side="right") - first
    member = np.repeat(chosen, counts)
    within = np.arange(len(member)) - np.repeat(np.cumsum(counts) - counts, counts)
    peer = sources.peer[order[np.repeat(first, counts) + within]].astype(np.int64)
    ranks = int(max(rows.rank.max(), peer.max(initial=0))) + 1
    key = matched.instance * ranks + rows.rank
    by_key = np.argsort(key)
    wanted = matched.instance[member] * ranks + peer
    source = by_key[np.minimum(np.searchsorted(key[by_key], wanted), len(by_key) - 1)]
    found = key[source] == wanted
    return member[found], source[found]


def _bound_latest(
    start: Integers, error: Floats, clock: Integers, group: Integers, instance: Integers
) -> tuple[Integers, Integers]:
    """Return the lower and the upper bound, by each row's clock, of the last start in the row's collective."""
    order = np.lexsort((clock, instance))
    begins, counts = find_runs(instance[order], clock[order])
    wide = np.minimum(error, UNKNOWN_NS / 4).astype(np.int64)
    mine = np.maximum.reduceat(start[order], begins)  # on one clock: exact
    of_instance = instance[order][begins]
    starts, members = find_runs(of_instance)
    found = []
    for sign in (-1, 1):
        bound = np.maximum.reduceat((start + sign * wide)[order], begins)
        # Largest start on other clocks. If the largest start of all is on the row's clock, take the second largest.
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
    # Clocks that were never compared give no bound on each other.
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
    # A send that returns before the receive is posted does not wait for the receive.
    is_sender = messages.side == 0
    left = enter + stay
    returned = is_sender & (left <= moment)
    doubtful = is_sender & (np.abs(left - moment) <= between)
    wait = np.where(returned, 0, wait)
    least = np.where(returned | doubtful, 0, least)
    most = np.where(returned & ~doubtful, 0, np.where(doubtful, stay, most))
    state = np.where(is_sender, WaitState.LATE_RECEIVER, WaitState.LATE_SENDER)
    return _Needs(least, wait, most, state.astype(np.int64), messages.rank[other].astype(np.int64), moment)


def _need_of_notices(
    notices: MessageSamples, operations: Sequence[str], clocks: HostClocks, clock_of: Integers
) -> _Needs:
    """Return how long calls wait for another rank's MPI_Win_post or MPI_Win_complete, or for messages (MPI_Probe)."""
    clock = clock_of[notices.rank]
    origin, waiter = slice(0, None, 2), slice(1, None, 2)
    post, error = clocks.to_common(clock, notices.post_ns)
    enter, stay = post[waiter], np.maximum(notices.exit_ns - notices.enter_ns, 0)[waiter]
    between = np.where(clock[origin] == clock[waiter], 0.0, error[origin] + error[waiter])
    between = np.where(clocks.group[clock[origin]] == clocks.group[clock[waiter]], between, UNKNOWN_NS)
    moment = post[origin]
    least, wait, most = _bound(moment, between, enter, stay)
    posts, completions = (are_named(operations, (name,))[notices.operation[origin]] for name in _NOTIFY)
    state = np.select([posts, completions], [WaitState.LATE_POST, WaitState.EARLY_WAIT], WaitState.LATE_SENDER)
    return _Needs(least, wait, most, state.astype(np.int64), notices.rank[origin].astype(np.int64), moment)
