# SPDX-License-Identifier: Apache-2.0
"""Time in MPI calls, split into waiting, transfer and an unsplit rest, from a profile's samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import Profile
from ibprof.profile.row_arrays import RowArrays
from ibprof.profile.wait_shares import WaitShares

if TYPE_CHECKING:
    from ibprof.waiting.host_clocks import HostClocks
    from ibprof.waiting.late_ranks import LateRank
    from ibprof.waiting.message_rates import HostPair
    from ibprof.waiting.wait_states import SplitCalls

Floats = npt.NDArray[np.float64]

_LOCAL_STARTS = ("START", "STARTALL", "PREADY", "PREADY_RANGE", "PREADY_LIST", "BSEND")
_LOCAL_ACCESS = ("PUT", "GET", "ACCUMULATE", "GET_ACCUMULATE", "FETCH_AND_OP", "COMPARE_AND_SWAP")
_LOCAL = frozenset({"MRECV", "WIN_POST", *_LOCAL_STARTS, *_LOCAL_ACCESS, *(f"R{name}" for name in _LOCAL_ACCESS)})

_UNTIMED = frozenset(
    {"TEST", "TESTALL", "TESTANY", "TESTSOME", "IPROBE", "IMPROBE", "REQUEST_GET_STATUS", "WIN_TEST", "PARRIVED"}
)
"""Calls that return even if nothing has completed: a program that repeats them waits outside of any call."""


SPREADS = 3
"""Number of standard errors by which samples may stand for less time than there is, before the rest is unsplit."""

LITTLE_OF_A_CALL = 0.1
"""Largest uncertain share of a call's time that counts as an error of waiting, not as unsplit time."""


def is_local(operation: str) -> bool:
    """Return whether a call never waits for a rank: it only starts an operation, or receives a message that arrived."""
    starts = operation.startswith("I") and operation not in _UNTIMED and not operation.startswith("INTERCOMM_")
    return starts or operation.endswith("_INIT") or operation in _LOCAL


@dataclass(frozen=True, slots=True)
class WaitTotals:
    """Parts of the time in some calls, in seconds."""

    time_s: float
    wait_s: float
    transfer_s: float
    unsplit_s: float
    error_s: float


@dataclass(frozen=True, slots=True)
class MeasuredWaiting:
    """Waiting and transfer of a run.

    Attributes:
        shares: parts of the time by rank, region, operation, site.
        late: ranks that other ranks waited for, those with most waiting first.
        clocks: number of compared clocks; 1 if all ranks read one clock.
        clock_error_s: largest known error of a clock, in seconds.
        instances, messages: numbers of sampled collectives and messages with all records.
        contradictory: number of samples with contradicting records, which are left out.
        unix_offset_ns: Unix time minus the common clock of `calls`, by the median of the ranks' Unix clocks.
        pairs: rate of large messages and latency of small messages, by pair of hosts.
    """

    shares: WaitShares
    calls: SplitCalls
    late: tuple[LateRank, ...]
    clocks: int
    clock_error_s: float
    instances: int
    messages: int
    contradictory: int
    unix_offset_ns: int = 0
    pairs: tuple[HostPair, ...] = ()

    def total(self, rows: npt.NDArray[np.bool_] | None = None) -> WaitTotals:
        """Return the sums of some or all rows of `shares` over ranks."""
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


def measure_waiting(run: Profile) -> MeasuredWaiting | None:
    """Split a run's time in MPI; return None without samples or times."""
    if not len(run.times.rank) or not (len(run.collective_samples.rank) or len(run.message_samples.rank)):
        return None
    # Most runs have no samples and need none of these imports.
    from ibprof.waiting.event_orders import compare_clocks  # noqa: PLC0415
    from ibprof.waiting.late_ranks import find_late_ranks  # noqa: PLC0415
    from ibprof.waiting.message_rates import measure_pairs  # noqa: PLC0415
    from ibprof.waiting.sample_matching import match_samples  # noqa: PLC0415
    from ibprof.waiting.wait_states import split_calls  # noqa: PLC0415

    ranks = max(max((rank.rank for rank in run.ranks), default=0) + 1, run.world_size)
    host_of = np.full(ranks, -1, np.int64)
    # Containers of one machine have several names and share one clock.
    boots: dict[int, int] = {}
    for rank in run.ranks:
        host_of[rank.rank] = boots.setdefault(rank.boot, rank.host) if rank.boot else rank.host
    matched = match_samples(run.collective_samples, run.message_samples)
    clocks, clock_of = compare_clocks(matched, run.operations, host_of)
    is_missing = run.ranks_recorded < run.world_size
    calls = split_calls(matched, run.operations, clocks, clock_of, lonely_is_missing=is_missing)
    shares = share_times(run, calls)
    return MeasuredWaiting(
        shares=shares,
        calls=calls,
        late=find_late_ranks(run, calls, shares.wait_s),
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
    # Bounds further apart than the certain waiting are no information, unless they are little of the call.
    is_narrow = most - least <= np.maximum(least, LITTLE_OF_A_CALL * calls.stay_ns)
    wait = np.where(is_narrow, calls.wait_ns, least)
    return wait, np.where(is_narrow, 0.0, most - least), np.where(is_narrow, (most - least) / 2, 0.0)


def share_times(run: Profile, calls: SplitCalls) -> WaitShares:
    """Return the parts of each row of a profile's times, from the row's sampled calls.

    The longest calls of a rank are all sampled, and are summed. In the rest of the row's time, waiting has the same
    share as in the other samples' time (a ratio estimate). The variance assumes that calls were chosen independently
    with probability 1 / weight. In addition, n samples can miss a share of one part in n + 2. Where samples stand for
    much less time than the row has, they missed its long calls: the rest of its time is unsplit.
    Source: Cochran, Sampling Techniques, 3rd edition, section 6.4.
    """
    times = run.times
    rows = len(times.rank)
    time_s = times.time_ns.astype(np.float64) * 1e-9
    row_of = _find_rows(times, calls)
    known = row_of >= 0
    at, weight, is_long = row_of[known], calls.weight[known], calls.is_long[known]
    stay = calls.stay_ns[known].astype(np.float64)
    wait, unsplit, clock = (part[known] for part in split_each(calls))

    def add_up(values: Floats) -> Floats:
        return np.bincount(at, weights=values, minlength=rows).astype(np.float64)

    whole, long = add_up(weight * ~is_long * stay), add_up(is_long * stay)
    with np.errstate(divide="ignore", invalid="ignore"):
        long_part = np.clip(np.nan_to_num(long * 1e-9 / time_s), 0, 1)
        long_part = np.where(whole > 0, np.where(long > 0, long_part, 0), 1)

        def share(values: Floats) -> Floats:
            rest, of_long = add_up(weight * ~is_long * values) / whole, add_up(is_long * values) / long
            return np.where(long_part < 1, (1 - long_part) * rest, 0) + np.where(long_part > 0, long_part * of_long, 0)

        wait_part, unsplit_part, clock_part = share(wait), share(unsplit), share(clock)
        ratio = add_up(weight * ~is_long * wait) / whole
        variance = add_up(weight * (weight - 1) * (wait - ratio[at] * stay) ** 2) / whole**2
        sampled = add_up(np.ones(len(at)))
        unseen = np.clip(1 - sampled / np.maximum(times.calls.astype(np.float64), 1), 0, 1) / (sampled + 2)
        spread = np.sqrt(add_up(weight * (weight - 1) * ~is_long * stay**2))
        missed = np.nan_to_num(1 - (whole + long + SPREADS * spread) * 1e-9 / time_s)
        missed = np.where(missed > LITTLE_OF_A_CALL, missed, 0)
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


def _find_rows(times: RowArrays, calls: SplitCalls) -> npt.NDArray[np.int64]:
    """Return the row of times for each call; -1 without one."""
    names = ("rank", "region", "operation", "site")
    columns = [np.concatenate([getattr(times, name), getattr(calls, name)]).astype(np.int64) for name in names]
    _, group = _group_equal(columns)
    rows = len(getattr(times, "rank"))  # noqa: B009 (all rows have ranks)
    row_of_group = np.full(int(group.max(initial=-1)) + 1, -1, np.int64)
    row_of_group[group[:rows]] = np.arange(rows)
    return row_of_group[group[rows:]]


def _group_equal(columns: Sequence[npt.NDArray[np.int64]]) -> tuple[int, npt.NDArray[np.int64]]:
    """Return the number of distinct rows, and the number of each row's group."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        shifted = column - column.min(initial=0)
        key = key * (int(shifted.max(initial=0)) + 1) + shifted
    distinct, group = np.unique(key, return_inverse=True)
    return len(distinct), group.astype(np.int64).ravel()
