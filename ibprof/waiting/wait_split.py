# SPDX-License-Identifier: Apache-2.0
"""Split time in MPI calls into waiting, transfer and an unsplit rest, by a profile's samples; find late ranks.

A rank that is late because it waited passes on another rank's delay. Waiting is traced back, through sampled calls, to
the rank that was late without waiting itself. The samples also show, for each pair of hosts, the rate of large messages
and the latency of small messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ibprof.profile.efficiency import WaitShares, outside_s
from ibprof.profile.profile_data import Profile
from ibprof.profile.profile_rows import name_sites
from ibprof.profile.row_arrays import RowArrays
from ibprof.waiting.sample_matching import Booleans, Integers, MatchedSamples, find_runs

if TYPE_CHECKING:
    from ibprof.waiting.host_clocks import HostClocks
    from ibprof.waiting.wait_states import SplitCalls

Floats = npt.NDArray[np.float64]

_LOCAL_STARTS = ("START", "STARTALL", "PREADY", "PREADY_RANGE", "PREADY_LIST", "BSEND")
_LOCAL_ACCESS = ("PUT", "GET", "ACCUMULATE", "GET_ACCUMULATE", "FETCH_AND_OP", "COMPARE_AND_SWAP")
_LOCAL = frozenset(
    {
        "MRECV",
        "WIN_POST",
        "COMM_IDUP",
        "COMM_IDUP_WITH_INFO",
        *_LOCAL_STARTS,
        *_LOCAL_ACCESS,
        *(f"R{name}" for name in _LOCAL_ACCESS),
    }
)

_UNTIMED = frozenset(
    {"TEST", "TESTALL", "TESTANY", "TESTSOME", "IPROBE", "IMPROBE", "REQUEST_GET_STATUS", "WIN_TEST", "PARRIVED"}
)
"""Calls that return even if nothing has completed. A program that repeats such calls waits outside of MPI calls."""


SPREADS = 3
"""If samples represent less than a row's time, a difference of up to this many standard errors counts as chance.

A larger difference counts as unsplit time if it is above `LITTLE_OF_A_CALL` of the row's time.
"""

MOST_OF_A_ROW = 0.25
"""An outlier is a sampled call that would represent more than this share of the row's time."""

LONG_OF_A_ROW = 8
"""An outlier takes more than this multiple of the mean time of the row's calls."""

LITTLE_OF_A_CALL = 0.1
"""Uncertain time up to this share of a call counts as an error of waiting, not as unsplit time. See `split_each`."""


def is_local(operation: str) -> bool:
    """Return whether calls of an operation, such as MPI_Isend or MPI_Mrecv, never wait for another rank."""
    starts = operation.startswith("I") and operation not in _UNTIMED and not operation.startswith("INTERCOMM_")
    return starts or operation.endswith("_INIT") or operation in _LOCAL


@dataclass(frozen=True, slots=True)
class WaitTotals:
    """Sums over some calls, in seconds: the time and its parts, and the standard error of waiting."""

    time_s: float
    wait_s: float
    transfer_s: float
    unsplit_s: float
    error_s: float


@dataclass(frozen=True, slots=True)
class MeasuredWaiting:
    """Waiting and transfer of a run.

    Attributes:
        shares: waiting, transfer and unsplit time by rank, region, operation, site.
        late: ranks that other ranks waited for, sorted by waiting, descending; at most `MOST_LATE`.
        late_s: waiting of all ranks for each rank, over all places, in seconds: float64 [rank].
        clocks: number of compared clocks; 1 if all ranks read one clock.
        clock_error_s: largest known error of a clock, in seconds.
        instances, messages: number of sampled collectives, and of messages, with the records of all their ranks.
        contradictory: number of samples with contradicting records, which are left out.
        unix_offset_ns: offset from the common clock of `calls` to Unix time: the median over ranks.
        pairs: rate of large messages and latency of small messages, by pair of hosts.
    """

    shares: WaitShares
    calls: SplitCalls
    late: tuple[LateRank, ...]
    late_s: Floats
    clocks: int
    clock_error_s: float
    instances: int
    messages: int
    contradictory: int
    unix_offset_ns: int = 0
    pairs: tuple[HostPair, ...] = ()

    def total(self, rows: npt.NDArray[np.bool_] | None = None) -> WaitTotals:
        """Return the sums over some rows of `shares`, or over all rows."""
        shares = self.shares
        chosen = np.ones(len(shares.rank), np.bool_) if rows is None else rows
        parts = shares.sum_parts(chosen)
        return WaitTotals(
            time_s=float(shares.time_s[chosen].sum()),
            wait_s=parts["wait_s"],
            transfer_s=parts["transfer_s"],
            unsplit_s=parts["unsplit_s"],
            error_s=parts["split_error_s"],
        )

    def by_rank(self, ranks: int) -> Floats:
        """Return waiting, transfer, unsplit time and error of the waiting of each rank, in s: float64 [rank, part]."""
        shares = self.shares
        parts = (shares.wait_s, shares.transfer_s, shares.unsplit_s, shares.error_s**2)
        sums = np.zeros((ranks, len(parts)))
        for number, part in enumerate(parts):
            sums[:, number] = np.bincount(shares.rank, weights=part, minlength=ranks)[:ranks]
        sums[:, 3] = np.sqrt(sums[:, 3])
        return sums


def measure_waiting(run: Profile) -> MeasuredWaiting | None:
    """Split a run's time in MPI; return None without samples or times."""
    if not len(run.times.rank) or not (len(run.collective_samples.rank) or len(run.message_samples.rank)):
        return None
    # Most runs have no samples and need none of these imports.
    from ibprof.waiting.host_clocks import compare_clocks  # noqa: PLC0415
    from ibprof.waiting.sample_matching import match_samples  # noqa: PLC0415
    from ibprof.waiting.wait_states import split_calls  # noqa: PLC0415

    ranks = max(max((rank.rank for rank in run.ranks), default=0) + 1, run.world_size)
    host_of = np.full(ranks, -1, np.int64)
    # Containers of a machine have different names, but share a clock and `boot`: give the machine one host index.
    boots: dict[int, int] = {}
    for rank in run.ranks:
        host_of[rank.rank] = boots.setdefault(rank.boot, rank.host) if rank.boot else rank.host
    matched = match_samples(run.collective_samples, run.message_samples)
    clocks, clock_of = compare_clocks(matched, run.operations, host_of)
    is_missing = run.ranks_recorded < run.world_size
    calls = split_calls(matched, run.operations, clocks, clock_of, lonely_is_missing=is_missing)
    shares = share_times(run, calls)
    late, late_s = find_late_ranks(run, calls, shares.wait_s)
    return MeasuredWaiting(
        shares=shares,
        calls=calls,
        late=late,
        late_s=late_s,
        clocks=len(clocks.base_ns),
        clock_error_s=_largest_error(clocks),
        instances=int(matched.instance.max(initial=-1)) + 1,
        messages=len(matched.messages.rank) // 2,
        contradictory=matched.contradictory,
        unix_offset_ns=_find_unix_offset(run, clocks, clock_of),
        pairs=measure_pairs(run, matched, clocks, clock_of),
    )


def _find_unix_offset(run: Profile, clocks: HostClocks, clock_of: npt.NDArray[np.int64]) -> int:
    ahead = (clocks.base_ns - clocks.common_ns)[clock_of]
    offsets = [rank.clock_offset_ns + int(ahead[rank.rank]) for rank in run.ranks]
    return int(np.median(offsets)) if offsets else 0


def _largest_error(clocks: HostClocks) -> float:
    return float(clocks.error_ns.max(initial=0.0)) * 1e-9


def split_each(calls: SplitCalls) -> tuple[Floats, Floats, Floats]:
    """Return the waiting, the unsplit time and the error of the waiting of each sampled call, in ns."""
    least, most = calls.least_ns.astype(np.float64), calls.most_ns.astype(np.float64)
    # Estimate the waiting if the bounds differ by at most the lower bound, or by at most `LITTLE_OF_A_CALL` of the
    # call's time. Otherwise waiting is the lower bound, and the difference is unsplit.
    is_narrow = most - least <= np.maximum(least, LITTLE_OF_A_CALL * calls.stay_ns)
    wait = np.where(is_narrow, calls.wait_ns, least)
    return wait, np.where(is_narrow, 0.0, most - least), np.where(is_narrow, (most - least) / 2, 0.0)


def share_times(run: Profile, calls: SplitCalls) -> WaitShares:
    """Return the waiting, transfer and unsplit part of each row of `run.times`, from the row's sampled calls.

    Some calls are always sampled: a rank's longest calls, and large messages in rows whose small messages were thinned.
    Times of such calls are summed. Other samples give the fraction of waiting in the rest of the row's time.
    The variance assumes that calls were chosen independently with probability 1 / weight. For thinned messages, the
    variance assumes that groups of messages were chosen. Unsampled calls add an error of time / (n + 2), where n is the
    effective sample size. An outlier (`LONG_OF_A_ROW`, `MOST_OF_A_ROW`) represents only itself. If samples represent
    much less than the row's time, long calls have no sample: the remaining time is unsplit.
    Source: Cochran, Sampling Techniques, 3rd edition, section 6.4; Kish, Survey Sampling, section 8.2.
    """
    times = run.times
    rows = len(times.rank)
    time_s = times.time_ns.astype(np.float64) * 1e-9
    row_of = _find_rows(times, calls)
    known = row_of >= 0
    at, weight, part, is_long = row_of[known], calls.weight[known], calls.part[known], calls.is_long[known]
    is_thinned = np.bincount(at, weights=weight > part, minlength=rows) > 0
    is_long = is_long | ((weight == part) & is_thinned[at])
    stay = calls.stay_ns[known].astype(np.float64)
    wait, unsplit, clock = (part[known] for part in split_each(calls))

    def add_up(values: Floats) -> Floats:
        return np.bincount(at, weights=values, minlength=rows).astype(np.float64)

    mean = times.time_ns / np.maximum(times.calls, 1)
    is_outlier = (weight > part) & ~is_long & (weight * stay > MOST_OF_A_ROW * times.time_ns[at])
    is_outlier &= stay > LONG_OF_A_ROW * mean[at]
    weight, is_long = np.where(is_outlier, 1, weight), is_long | is_outlier
    whole, long = add_up(weight * ~is_long * stay), add_up(is_long * stay)
    with np.errstate(divide="ignore", invalid="ignore"):
        long_part = np.clip(np.nan_to_num(long * 1e-9 / time_s), 0, 1)
        long_part = np.where(whole > 0, np.where(long > 0, long_part, 0), 1)

        def share(values: Floats) -> Floats:
            rest, of_long = add_up(weight * ~is_long * values) / whole, add_up(is_long * values) / long
            return np.where(long_part < 1, (1 - long_part) * rest, 0) + np.where(long_part > 0, long_part * of_long, 0)

        wait_part, unsplit_part, clock_part = share(wait), share(unsplit), share(clock)
        ratio = add_up(weight * ~is_long * wait) / whole
        variance = add_up(weight * (weight - part) * ~is_long * (wait - ratio[at] * stay) ** 2) / whole**2
        sampled = add_up(np.ones(len(at)))
        alike = np.nan_to_num(whole**2 / add_up((weight * ~is_long * stay) ** 2))
        unseen = np.clip(1 - sampled / np.maximum(times.calls.astype(np.float64), 1), 0, 1) / (alike + 2)
        spread = np.sqrt(add_up(weight * (weight - part) * ~is_long * stay**2))
        missed = np.nan_to_num(1 - (whole + long + SPREADS * spread) * 1e-9 / time_s)
        missed = np.where(missed > LITTLE_OF_A_CALL, missed, 0)
        no_rest = np.bincount(at, weights=is_outlier, minlength=rows) * (whole == 0) > 0
        missed = np.where(no_rest, np.clip(1 - long * 1e-9 / time_s, 0, 1), missed)
        error = np.where(long_part < 1, (1 - long_part) * np.sqrt(variance + unseen**2), 0) + clock_part
    local = np.array([is_local(name) for name in run.operations], np.bool_)[times.operation]
    untimed = np.array([name in _UNTIMED for name in run.operations], np.bool_)[times.operation]
    has_samples = (whole + long > 0) & ~untimed
    wait_part = np.where(local, 0.0, np.where(has_samples, (1 - missed) * wait_part, 0.0))
    unsplit_part = np.where(local, 0.0, np.where(has_samples, missed + (1 - missed) * unsplit_part, 1.0))
    return WaitShares(
        rank=times.rank,
        region=times.region,
        operation=times.operation,
        site=times.site,
        time_s=time_s,
        wait_s=time_s * wait_part,
        transfer_s=time_s * np.clip(1 - wait_part - unsplit_part, 0, 1),
        unsplit_s=time_s * unsplit_part,
        error_s=time_s * np.where(has_samples & ~local, np.minimum(error, 1), 0.0),
    )


def explain_unsplit(measured: MeasuredWaiting, operations: Sequence[str]) -> tuple[tuple[int, int], str, float]:
    """Return operation and site with most unsplit time, the reason, and this place's fraction of all unsplit time."""
    shares, calls = measured.shares, measured.calls
    sites = int(shares.site.max()) + 1
    place = shares.operation.astype(np.int64) * sites + shares.site
    unsplit_s = np.bincount(place, weights=shares.unsplit_s)
    most = int(np.argmax(unsplit_s))
    operation, site = divmod(most, sites)
    rows = (shares.operation == operation) & (shares.site == site)
    chosen = (calls.operation == operation) & (calls.site == site)
    stay = float(calls.stay_ns[chosen].sum())
    _, unsplit, _ = split_each(calls)
    if operations[operation] in _UNTIMED:
        reason = "this call returns even if nothing has completed: a program that repeats it waits between calls"
    elif operations[operation].startswith("nccl") and float(unsplit[chosen].sum()) >= 0.99 * stay:
        reason = "NCCL's calls are split only for all-reduce, all-gather and reduce-scatter on complete rings"
    elif not stay:
        reason = "no sample of these calls has the records of all ranks"
    elif float(unsplit[chosen].sum()) / stay < shares.unsplit_s[rows].sum() / shares.time_s[rows].sum() / 2:
        reason = "long calls are rare, and no sample contains one"
    else:
        reason = "the waiting is unknown, because clocks of hosts are uncertain or messages have no sample"
    return (operation, site), reason, float(unsplit_s[most] / unsplit_s.sum())


def _find_rows(times: RowArrays, calls: SplitCalls) -> npt.NDArray[np.int64]:
    """Return the row of `times` for each call; -1 if there is none."""
    names = ("rank", "region", "operation", "site")
    columns = [np.concatenate([getattr(times, name), getattr(calls, name)]).astype(np.int64) for name in names]
    _, group = _group_equal(columns)
    rows = len(getattr(times, "rank"))  # noqa: B009 (only subclasses have `rank`)
    row_of_group = np.full(int(group.max(initial=-1)) + 1, -1, np.int64)
    row_of_group[group[:rows]] = np.arange(rows)
    return row_of_group[group[rows:]]


def _group_equal(columns: Sequence[npt.NDArray[np.int64]]) -> tuple[int, npt.NDArray[np.int64]]:
    """Return the number of distinct rows, and the index of each row's group of equal rows."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        shifted = column - column.min(initial=0)
        key = key * (int(shifted.max(initial=0)) + 1) + shifted
    distinct, group = np.unique(key, return_inverse=True)
    return len(distinct), group.astype(np.int64).ravel()


MOST_LATE = 16
"""Maximum number of listed late ranks."""

_MOST_STEPS = 4096
"""Maximum number of steps, from rank to rank, in the trace of a delay."""

_MOST_ROWS = 4_000_000
"""Maximum number of traced waiting intervals, over all steps. This limit ends the trace if ranks wait in a cycle."""


@dataclass(frozen=True, slots=True)
class LateRank:
    """A late rank: other ranks wait for this rank in one operation, at one site, in one region.

    Attributes:
        rank: the late rank.
        host: host name of the late rank.
        operation, site, region: where other ranks wait.
        share: fraction of the waiting calls there in which the late rank caused most of the waiting, 0 to 1.
        late_s: mean waiting for the late rank in calls counted by `share`, in seconds.
        wait_s: total waiting for the late rank, over all ranks, in seconds.
        passed_on_s: part of `wait_s` that reached ranks through other waiting ranks, in seconds.
        outside_s: the late rank's time outside MPI in the whole run, in seconds; None if unknown.
        others_outside_s: mean time outside MPI of all other ranks, in seconds; None if unknown.
    """

    rank: int
    host: str
    operation: str
    site: str
    region: str
    share: float
    late_s: float
    wait_s: float
    passed_on_s: float
    outside_s: float | None = None
    others_outside_s: float | None = None


def find_late_ranks(
    run: Profile, calls: SplitCalls, wait_s: npt.NDArray[np.float64]
) -> tuple[tuple[LateRank, ...], Floats]:
    """Return up to `MOST_LATE` late ranks by operation, site and region, and all waiting for each rank, in seconds.

    Late ranks are sorted by waiting, descending.

    Args:
        calls: the profile's sampled calls, with their waiting.
        wait_s: waiting of each row of the profile's times. The waiting of samples is scaled to these values.
    """
    chosen = np.flatnonzero((calls.wait_ns > 0) & (calls.late >= 0) & (calls.most_ns - calls.least_ns <= calls.wait_ns))
    if not len(chosen):
        return (), np.zeros(0)
    columns = (calls.region, calls.operation, calls.site)
    place_key = np.stack([column[chosen] for column in columns])
    places, place = np.unique(place_key, axis=1, return_inverse=True)
    place = place.ravel()
    weight = calls.weight[chosen]
    guilty, amount, item = trace_back(calls, chosen)
    sampled = np.bincount(place, weights=weight * calls.wait_ns[chosen], minlength=places.shape[1])
    measured = np.zeros(places.shape[1])
    times = np.stack((run.times.region, run.times.operation, run.times.site))
    for number in range(places.shape[1]):
        measured[number] = wait_s[(times == places[:, number : number + 1]).all(axis=0)].sum()
    scale = np.where(sampled > 0, measured / np.maximum(sampled, 1), 0.0)
    ranks = int(max(guilty.max(), calls.rank.max())) + 1
    key = place[item] * ranks + guilty
    pairs, pair = np.unique(key, return_inverse=True)
    pair = pair.ravel()
    seconds = np.bincount(pair, weights=amount * weight[item] * scale[place[item]])
    direct = guilty == calls.late[chosen][item]
    passed = np.bincount(pair, weights=amount * weight[item] * scale[place[item]] * ~direct)
    # Count each call as a late call of the rank that caused most of the call's waiting.
    major = np.lexsort((amount, item))
    major = major[np.flatnonzero(np.diff(item[major], append=-1))]
    count = np.bincount(pair[major], weights=weight[item[major]], minlength=len(pairs))
    own = np.bincount(pair[major], weights=weight[item[major]] * amount[major], minlength=len(pairs))
    of_place = np.bincount(place, weights=weight, minlength=places.shape[1])
    hosts = {rank.rank: run.hosts[rank.host].name for rank in run.ranks}
    sites = name_sites(run)
    work = _find_work(run)
    nothing: tuple[float | None, float | None] = (None, None)
    found = []
    for number in np.argsort(-seconds)[:MOST_LATE].tolist():
        at, rank = divmod(int(pairs[number]), ranks)
        region, operation, site = places[:, at].tolist()
        found.append(
            LateRank(
                rank=rank,
                host=hosts.get(rank, ""),
                operation=run.operations[operation],
                site=sites[site],
                region=run.regions[region],
                share=float(count[number] / of_place[at]),
                late_s=float(own[number] / count[number]) * 1e-9 if count[number] else 0.0,
                wait_s=float(seconds[number]),
                passed_on_s=float(passed[number]),
                outside_s=work.get(rank, nothing)[0],
                others_outside_s=work.get(rank, nothing)[1],
            )
        )
    return tuple(found), np.bincount(pairs % ranks, weights=seconds).astype(np.float64)


def trace_back(
    calls: SplitCalls, chosen: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the ranks that caused the waiting of chosen calls.

    If a late rank itself waits in a sampled call, the trace continues with the rank that the late rank waits for.

    Returns:
        Rank, nanoseconds and index into `chosen` of each cause. The nanoseconds of a call's causes sum to its waiting.
    """
    # Waiting of each rank, in the order of time: calls are ordered by rank, then enter time.
    waits = np.flatnonzero((calls.wait_ns > 0) & (calls.late >= 0))
    begin, end = calls.enter_ns[waits], calls.enter_ns[waits] + calls.wait_ns[waits]
    rank = calls.rank[waits].astype(np.int64)
    ranks = int(max(rank.max(initial=0), calls.late.max(initial=0))) + 1
    first_of = np.searchsorted(rank, np.arange(ranks))
    after_of = np.searchsorted(rank, np.arange(ranks), side="right")
    found: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int64]]] = []
    item = np.arange(len(chosen))
    who = calls.late[chosen].astype(np.int64)
    since, until = calls.enter_ns[chosen], calls.enter_ns[chosen] + calls.wait_ns[chosen]
    span = int(max(end.max(initial=0) - begin.min(initial=0), 1)) + 2
    low = int(begin.min(initial=0))
    keys = rank * span + (begin - low) if len(rank) else rank
    traced = 0
    for _ in range(_MOST_STEPS):
        traced += len(item)
        if not len(item) or traced > _MOST_ROWS:
            break
        # Find the last waiting of rank `who` that begins before `until`.
        last = np.searchsorted(keys, who * span + np.clip(until - low, 0, span - 1)) - 1
        there = (last >= first_of[who]) & (last < after_of[who])
        at = np.where(there, last, 0)
        starts = np.where(there, np.maximum(begin[at], since), until) if len(begin) else until
        ends = np.where(there, np.clip(end[at], starts, until), until) if len(begin) else until
        none = ~there | (ends <= starts)
        # Rank `who` was late from the end of this waiting on; without waiting, from `since` on.
        lateness = np.where(none, until - since, until - ends)
        found.append((who, lateness.astype(np.float64), item))
        passes = ~none
        inner = passes & (ends > starts)
        earlier = passes & (starts > since)
        next_who = np.concatenate([calls.late[waits[at[inner]]].astype(np.int64), who[earlier]])
        next_since = np.concatenate([starts[inner], since[earlier]])
        next_until = np.concatenate([ends[inner], starts[earlier]])
        item = np.concatenate([item[inner], item[earlier]])
        who, since, until = next_who, next_since, next_until
    if len(item):  # these ranks still wait for each other: clock errors make a cycle
        found.append((who, (until - since).astype(np.float64), item))
    guilty, amount, of_item = (np.concatenate([part[each] for part in found]) for each in range(3))
    some = amount > 0
    return guilty[some], amount[some], of_item[some]


def _find_work(run: Profile) -> dict[int, tuple[float, float]]:
    """Return each timed rank's time outside MPI, and the mean of the other timed ranks' times; empty for one rank."""
    timed = [rank for rank in run.ranks if rank.has_times and rank.stop_ns and rank.rank < run.world_size]
    if len(timed) < 2:
        return {}
    outside = outside_s(run, timed)
    others = (outside.sum() - outside) / (len(timed) - 1)
    return {
        rank.rank: pair for rank, pair in zip(timed, zip(outside.tolist(), others.tolist(), strict=True), strict=True)
    }


LARGE_BYTES = 64 << 10
"""For messages of at least this size, the bytes take longer than the latency."""

SMALL_BYTES = 4096
"""For messages of at most this size, the latency takes longer than the bytes."""

MOST_PAIRS = 64
"""Maximum number of listed pairs of hosts."""

_MOST_ERROR = 0.25
"""Messages are left out if the error of clocks is more than this share of the message's time."""


@dataclass(frozen=True, slots=True)
class HostPair:
    """Messages from one host to another, or within one host.

    Attributes:
        source, destination: names of the hosts.
        via: carrier of the bytes at the source: an interface or ports, or `memory`; empty if unknown.
        large_messages: number of sampled messages of at least `LARGE_BYTES` that have a rate.
        rate_gbps: median rate of large messages; None without large messages. The time of a message lasts from the
            later start of send and receive to the receiving call's return. Simultaneous messages lower this rate.
        small_messages: number of sampled messages of at most `SMALL_BYTES` whose receiver waited.
        latency_s: median latency of `small_messages`, from the start of the send, in seconds; None without small
            messages.
    """

    source: str
    destination: str
    via: str
    large_messages: int
    rate_gbps: float | None
    small_messages: int
    latency_s: float | None


def measure_pairs(
    run: Profile, matched: MatchedSamples, clocks: HostClocks, clock_of: Integers
) -> tuple[HostPair, ...]:
    """Return the `MOST_PAIRS` pairs of hosts with most messages, among pairs with a rate or a latency; `via` is empty.

    Args:
        clocks, clock_of: result of `compare_clocks`.
    """
    rows = matched.messages
    if not len(rows.rank):
        return ()
    clock = clock_of[rows.rank]
    post, error = clocks.to_common(clock, rows.post_ns)
    enter, leave = post + (rows.enter_ns - rows.post_ns), post + (rows.exit_ns - rows.post_ns)
    sender, receiver = slice(0, None, 2), slice(1, None, 2)
    uncertain = np.where(clock[sender] == clock[receiver], 0.0, error[sender] + error[receiver])
    uncertain[clocks.group[clock[sender]] != clocks.group[clock[receiver]]] = np.inf
    both_there = np.maximum(post[sender], post[receiver])
    size, transfer, latency = rows.bytes[sender], leave[receiver] - both_there, leave[receiver] - post[sender]
    large = (size >= LARGE_BYTES) & (transfer > 0) & (uncertain <= _MOST_ERROR * transfer)
    # Use messages whose receiving call was entered before the send: the end of such a call shows the arrival.
    small = (size <= SMALL_BYTES) & (latency > 0) & (enter[receiver] <= post[sender])
    small &= uncertain <= _MOST_ERROR * latency
    host_of = np.zeros(int(max(rank.rank for rank in run.ranks)) + 1, np.int64)
    for rank in run.ranks:
        host_of[rank.rank] = rank.host
    key = host_of[rows.rank[sender]] * len(run.hosts) + host_of[rows.rank[receiver]]
    rates = _sum_by_call(large, key, rows.rank[receiver], leave[receiver], size, both_there)
    found = []
    for pair in np.unique(key[large | small]).tolist():
        source, destination = divmod(pair, len(run.hosts))
        is_large, is_small = large & (key == pair), small & (key == pair)
        of_calls = rates[1][rates[0] == pair]
        found.append(
            HostPair(
                source=run.hosts[source].name,
                destination=run.hosts[destination].name,
                via="",
                large_messages=int(is_large.sum()),
                rate_gbps=float(np.median(of_calls)) if len(of_calls) else None,
                small_messages=int(is_small.sum()),
                latency_s=float(np.median(latency[is_small])) * 1e-9 if is_small.any() else None,
            )
        )
    return tuple(sorted(found, key=lambda pair: -(pair.large_messages + pair.small_messages))[:MOST_PAIRS])


def _sum_by_call(
    chosen: Booleans,
    key: Integers,
    rank: npt.NDArray[np.int32],
    leave: Integers,
    size: npt.NDArray[np.uint64],
    begin: Integers,
) -> tuple[Integers, Floats]:
    """Return, for each call that receives some of the `chosen` messages, the pair of hosts and the rate in Gb/s."""
    rows = np.flatnonzero(chosen)
    order = rows[np.lexsort((leave[rows], rank[rows], key[rows]))]
    begins, _ = find_runs(key[order], rank[order], leave[order])
    if not len(begins):
        return np.zeros(0, np.int64), np.zeros(0)
    amount = np.add.reduceat(size[order].astype(np.float64), begins)
    took = leave[order][begins] - np.minimum.reduceat(begin[order], begins)
    return key[order][begins], amount * 8 / took
