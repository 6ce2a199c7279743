# SPDX-License-Identifier: Apache-2.0
"""Compare clocks of hosts by the order of sampled events: a message arrives after it was sent.

Two ordered events on different clocks limit the clocks' difference at that time from above or below. Events in both
directions limit the possible lines (offset and drift) to a polygon. Each clock is compared with a reference clock,
directly or over other clocks, on the path with the least error. All bounds come from events, with one assumption: in
each part of the run, the quickest small message or collective takes at most `QUICKEST_NS`.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import CollectiveSamples, MessageSamples
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

QUICKEST_NS = 100_000
"""In each part of a run, the quickest small message takes at most this time, on any network that MPI jobs use."""

MOST_DRIFT = 1e-3
"""Largest considered drift between two clocks. Crystals drift by at most 1e-4."""

UNKNOWN_NS = 1 << 60
"""Error of a clock if events do not limit the error."""

_BINS = 64
"""Number of equal intervals into which a run is divided. Each interval's tightest certain bounds are used."""

_PARTS = 8
"""Maximum number of parts into which a run is divided. Each part is assumed to contain a quick message."""

_ENOUGH = 16
"""Minimum number of messages in each part: a run with few messages has fewer than `_PARTS` parts."""

_GRID = 9
"""Number of moments at which errors are calculated. Interpolation for other moments gives upper bounds."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EventOrders:
    """Pairs of ordered events, the first before the second; arrays of equal length.

    Attributes:
        first, second: int64, indices of the events' clocks.
        first_ns, second_ns: int64, times of the events by their clocks.
        is_certain: bool; false if the order may be wrong. For each pair of clocks and each direction, at least
            one uncertain order in each part of the run is assumed to be right.
    """

    first: Integers
    second: Integers
    first_ns: Integers
    second_ns: Integers
    is_certain: Booleans

    @classmethod
    def join(cls, parts: Sequence[EventOrders]) -> EventOrders:
        """Return one object with the pairs of all `parts`."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


@dataclass(frozen=True, slots=True)
class HostClocks:
    """Clocks as lines over the reference clock's time.

    Attributes:
        base_ns: int64 [clock], a time of the clock.
        common_ns: int64 [clock], the same time by the reference clock.
        rate: float64 [clock], seconds of the reference per second of the clock.
        moments_ns: float64 [moment], times of the reference clock.
        error_ns: float64 [clock, moment], largest error of the clock's time at the moment.
        group: int64 [clock], reference clock with which the clock is compared, directly or over other clocks.
    """

    base_ns: Integers
    common_ns: Integers
    rate: Floats
    moments_ns: Floats
    error_ns: Floats
    group: Integers

    def to_common(self, clock: Integers, time_ns: Integers) -> tuple[Integers, Floats]:
        """Return times by the reference clock, and their largest errors, in ns."""
        if len(self.base_ns) == 1:
            return time_ns, np.zeros(len(time_ns))
        since = (time_ns - self.base_ns[clock]).astype(np.float64) * self.rate[clock]
        common = self.common_ns[clock] + np.rint(since).astype(np.int64)
        error = np.zeros(len(common))
        for number in np.flatnonzero(self.error_ns.any(axis=1)).tolist():
            rows = clock == number
            error[rows] = np.interp(common[rows], self.moments_ns, self.error_ns[number])
        return common, error


def one_clock() -> HostClocks:
    """Return the clocks for ranks that all read one clock."""
    zero = np.zeros(1, np.int64)
    return HostClocks(zero, zero, np.ones(1), np.zeros(1), np.zeros((1, 1)), zero)


@dataclass(frozen=True, slots=True)
class _PairLine:
    """Clock b minus clock a at time x of clock a: the line `offset + slope * (x - origin)`, with its error.

    `error` is the error at each of the times `moments` of clock a.
    """

    a: int
    b: int
    origin: int
    offset: float
    slope: float
    moments: Floats
    error: Floats


def fit_clocks(clocks: int, orders: EventOrders) -> HostClocks:
    """Return each clock as a line over the time of a reference clock, preferably the clock with most ordered events.

    Args:
        orders: ordered pairs of events, any number for each pair of clocks.
    """
    apart = orders.first != orders.second
    first, second = orders.first[apart], orders.second[apart]
    if clocks == 1 or not len(first):
        return _follow_paths(clocks, np.arange(clocks), [])
    a, b = np.minimum(first, second), np.maximum(first, second)
    is_upper = first == a
    x = np.where(is_upper, orders.first_ns[apart], orders.second_ns[apart])
    y = np.where(is_upper, orders.second_ns[apart], orders.first_ns[apart])
    certain = orders.is_certain[apart]
    pair = a * clocks + b
    order = np.argsort(pair, kind="stable")
    begins = np.flatnonzero(np.diff(pair[order], prepend=-1))
    lines = []
    for rows in np.split(order, begins[1:]):
        line = _fit_pair(int(a[rows[0]]), int(b[rows[0]]), x[rows], y[rows], is_upper[rows], certain[rows])
        if line is not None:
            lines.append(line)
    most = np.argsort(-np.bincount(np.concatenate([first, second]), minlength=clocks), kind="stable")
    return _follow_paths(clocks, most, lines)


def _fit_pair(a: int, b: int, x: Integers, y: Integers, is_upper: Booleans, certain: Booleans) -> _PairLine | None:
    """Return the line in the middle of all lines that meet all bounds on the difference of two clocks.

    Return None if no line meets all bounds, or if the difference has no upper or no lower bound.
    """
    origin = int(x[0] // 2 + x[-1] // 2)
    shift = int(np.median(y - x))
    over = ((y - x) - shift).astype(np.float64)
    at = (x - origin).astype(np.float64)
    half = max(float(np.abs(at).max()), 1.0)
    at /= half
    # Subtract the points' common slope: then the lowest upper bound in a part of the run is its tightest upper bound.
    tilt = float(np.polyfit(at, over, 1)[0]) if len(at) > 8 and np.ptp(at) > 0.1 else 0.0
    tilt = float(np.clip(tilt, -MOST_DRIFT * half, MOST_DRIFT * half))
    level = over - tilt * at
    bounds = [(is_upper & certain, 1, True), (~is_upper & certain, -1, True)]
    quick = [(is_upper & ~certain, 1, False), (~is_upper & ~certain, -1, False)]
    polygon = None
    for chosen in ([*bounds, *quick], bounds):
        points = [(side, *_tightest(at[rows], level[rows], side, every)) for rows, side, every in chosen]
        polygon = _possible_lines(points, MOST_DRIFT * half + abs(tilt))
        if polygon is not None:
            break
    if polygon is None:
        return None
    moments = np.linspace(-1, 1, _GRID)
    values = polygon[:, :1] + polygon[:, 1:] * moments
    middle = (polygon.min(axis=0) + polygon.max(axis=0)) / 2
    centre = middle[0] + middle[1] * moments
    error = np.maximum(values.max(axis=0) - centre, centre - values.min(axis=0))
    return _PairLine(
        a, b, origin, float(shift + middle[0]), float(middle[1] + tilt) / half, moments * half + origin, error
    )


def _tightest(at: Floats, level: Floats, side: int, every: bool) -> tuple[Floats, Floats]:
    """Return a bound for each part of the run: the tightest if `every` (all bounds hold), otherwise the loosest."""
    if not len(at):
        return at, level
    if every:
        parts = np.minimum(((at + 1) / 2 * _BINS).astype(np.int64), _BINS - 1)
    else:
        parts = np.empty(len(at), np.int64)
        parts[np.argsort(at, kind="stable")] = np.arange(len(at)) * max(min(_PARTS, len(at) // _ENOUGH), 1) // len(at)
    # Sort the bounds of each part of the run, then take the last bound of each part.
    order = np.lexsort((-side * level if every else side * level, parts))
    last = np.flatnonzero(np.diff(parts[order], append=-1))
    return at[order[last]], level[order[last]]


def _possible_lines(points: Sequence[tuple[int, Floats, Floats]], steepest: float) -> Floats | None:
    """Return the corners (offset, slope) of the set of lines within all bounds; None for an empty or unbounded set."""
    far = 1e14
    polygon = [(-far, -steepest), (far, -steepest), (far, steepest), (-far, steepest)]
    for side, places, levels in points:
        for place, level in zip(places.tolist(), levels.tolist(), strict=True):
            polygon = _cut(polygon, side, place, level)
            if not polygon:
                return None
    corners = np.array(polygon)
    return corners if np.abs(corners[:, 0]).max() < far / 2 else None


def _cut(polygon: list[tuple[float, float]], side: int, place: float, level: float) -> list[tuple[float, float]]:
    """Return the part of a convex polygon with `side * (offset + slope * place) <= side * level`."""
    excess = [side * (offset + slope * place - level) for offset, slope in polygon]
    if max(excess) <= 0:
        return polygon
    kept = []
    for number, (point, over) in enumerate(zip(polygon, excess, strict=True)):
        before, before_over = polygon[number - 1], excess[number - 1]
        if (over > 0) != (before_over > 0):
            part = before_over / (before_over - over)
            kept.append((before[0] + part * (point[0] - before[0]), before[1] + part * (point[1] - before[1])))
        if over <= 0:
            kept.append(point)
    return kept


def _follow_paths(clocks: int, references: Integers, lines: Sequence[_PairLine]) -> HostClocks:
    """Return each clock relative to the first reference with a path to the clock, over the path with the least error.

    The search is Dijkstra's.
    """
    neighbours: list[list[tuple[int, _PairLine]]] = [[] for _ in range(clocks)]
    for line in lines:
        neighbours[line.a].append((line.b, line))
        neighbours[line.b].append((line.a, line))
    base, common = np.zeros(clocks, np.int64), np.zeros(clocks, np.int64)
    rate, group = np.ones(clocks), np.full(clocks, -1, np.int64)
    begin = min((line.moments[0] for line in lines), default=0.0)
    end = max((line.moments[-1] for line in lines), default=1.0)
    error = np.full((clocks, _GRID), np.inf)
    for reference in references.tolist():
        if group[reference] >= 0:
            continue
        error[reference] = 0
        waiting = [(0.0, reference)]
        while waiting:
            _, clock = heapq.heappop(waiting)
            if group[clock] >= 0:
                continue
            group[clock] = reference
            for other, line in neighbours[clock]:
                # Use errors at times of clock a as errors at times of clock b: the difference is small.
                added = error[clock] + line.error
                if group[other] >= 0 or added.mean() >= error[other].mean():
                    continue
                error[other] = added
                # At `origin` of clock a, clock b shows `origin + offset`.
                here, there = line.origin, line.origin + round(line.offset)
                here, there = (here, there) if line.a == clock else (there, here)
                base[other], common[other] = there, common[clock] + round(float(here - base[clock]) * rate[clock])
                slope = 1 + line.slope
                rate[other] = rate[clock] / slope if line.a == clock else rate[clock] * slope
                heapq.heappush(waiting, (float(added.mean()), other))
    return HostClocks(base, common, rate, np.linspace(begin, end, _GRID), error, group)


SMALL_BYTES = 4096
"""Largest size of a collective or a message that counts as quick in the comparison of clocks."""

SAME_CLOCK_NS = 2_000
"""The times of two ordered events of one host may be reversed by up to this many ns. See `_find_torn`."""

BLOCKED_NS = 10_000
"""A call counts as blocked if it takes at least this time."""

_SYNCHRONISING = frozenset(
    {"BARRIER", "ALLREDUCE", "ALLGATHER", "ALLTOALL", "REDUCE_SCATTER_BLOCK"}
    | {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter"}
)
"""Collectives that no rank can leave before all have entered, if the collectives move data.

Vector collectives (MPI_Alltoallv) are left out: some of their blocks may be empty.
"""


def compare_clocks(
    matched: MatchedSamples, operations: Sequence[str], host_of: npt.NDArray[np.integer]
) -> tuple[HostClocks, Integers]:
    """Return the clocks, and the index of each rank's clock.

    Ranks of one host share one clock. If events of these ranks contradict this, each of these ranks has its own clock.

    Args:
        matched: samples with the times to compare.
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
    """Return a mask of messages whose receiving call received no other message."""
    rank, enter = messages.rank[1::2], messages.enter_ns[1::2]
    order = np.lexsort((enter, rank))
    _, counts = find_runs(rank[order], enter[order])
    alone = np.zeros(len(rank), np.bool_)
    alone[order] = np.repeat(counts == 1, counts)
    return alone


def _find_deciding(messages: MessageSamples, clocks: HostClocks, clock_of: Integers) -> Booleans:
    """Return a mask of messages: true for the last sent message of each receiving call."""
    post, _ = clocks.to_common(clock_of[messages.rank[::2]], messages.post_ns[::2])
    rank, enter = messages.rank[1::2], messages.enter_ns[1::2]
    order = np.lexsort((post, enter, rank))
    begins, counts = find_runs(rank[order], enter[order])
    last = np.zeros(len(post), np.bool_)
    last[order[begins + counts - 1]] = True
    return last


def _find_torn(orders: EventOrders, clocks: int) -> Integers:
    """Return clocks that a host's ranks cannot share, because the ranks' events contradict the known orders.

    Events of such a clock contradict an order that is certain, or more than half of the clock's uncertain orders.
    """
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
    """Return the pairs of sampled events with a known order.

    Args:
        clock_of: int64 [rank], clock of each rank.
        deciding: bool [message], true for the last sent message of each receiving call.
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
    """Return known orders of collectives' events: ranks leave after all have entered, and at about the same time."""
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
    # Compare each clock of a collective with one clock: the clock with most collectives, or else the first clock.
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
    # Orders of events on one clock test whether the ranks share this clock.
    own = EventOrders(clock, clock, last_enter, first_exit, holds)
    return [*found, own]


def _synchronises(rows: CollectiveSamples, operations: Sequence[str]) -> Booleans:
    """Return a mask of the rows of collectives that no rank leaves before all ranks have entered."""
    barrier = are_named(operations, ("BARRIER",))[rows.operation]
    return are_named(operations, _SYNCHRONISING)[rows.operation] & (barrier | (rows.bytes > 0))


def _order_rooted(matched: MatchedSamples, operations: Sequence[str], clock_of: Integers) -> Sequence[EventOrders]:
    """Return orders: MPI_Bcast's root enters before members leave; MPI_Reduce's members enter before a root leaves."""
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
    """Return ordered events of messages: a message arrives after its send, sometimes less than `QUICKEST_NS` after."""
    clock = clock_of[messages.rank]
    sender, receiver = clock[::2], clock[1::2]
    post, arrival = messages.post_ns[::2], messages.exit_ns[1::2]
    stay = arrival - messages.enter_ns[1::2]
    small = messages.bytes[::2] <= SMALL_BYTES  # only the sender records the size
    quick = small & (stay >= BLOCKED_NS) & (sender != receiver) & deciding
    # A synchronous send ends after the receive begins, sometimes less than `QUICKEST_NS` later.
    asks = are_named(operations, ("SSEND", "ISSEND"))[messages.operation[::2]]
    receive, done = messages.post_ns[1::2], messages.exit_ns[::2]
    blocks = asks & small & (done - messages.enter_ns[::2] >= BLOCKED_NS) & (sender != receiver)
    return [
        _pairs(sender, receiver, post, arrival),
        _pairs(receiver[asks], sender[asks], receive[asks], done[asks]),
        _pairs(sender[blocks], receiver[blocks], done[blocks], receive[blocks] + QUICKEST_NS, certain=False),
        _pairs(receiver[quick], sender[quick], arrival[quick], post[quick] + QUICKEST_NS, certain=False),
    ]
