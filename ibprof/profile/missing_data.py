# SPDX-License-Identifier: Apache-2.0
"""Describe data that a profile lacks, in sentences for reports, and account for each stage's losses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.profile.port_sums import describe_hosts, describe_ports, describe_unmeasured
from ibprof.profile.profile_data import OTHER_SITES, UNKNOWN_PEER, Direction, Kind, Profile, Source
from ibprof.profile.unaccounted import (
    describe_no_comparison,
    describe_unaccounted,
    describe_uncompared,
    find_unaccounted,
)
from ibprof.text.host_lists import same_host
from ibprof.text.quantities import count_of, format_bytes, format_seconds, name_call

MUCH = 0.01
"""If a larger share of the ranks, hosts or bytes is lost, every report states the loss."""

COLLECT = "collect"
"""Stage that leaves out bytes counted twice, and bytes of MPI's control messages. These bytes are not lost."""

LEFT_OUT = "Left out: "
"""Beginning of a sentence on a large loss."""

CUT_SHORT = "parts of this host's recording are missing: the copy is incomplete, or the disk was full"
"""Note on a host's file with lost segments or pages."""

_IN_TEXT = ("hosts", "ranks", "bytes", "messages", "simulations")
"""Units (`StageAccount.noun`) whose losses are reported in sentences."""


@dataclass(frozen=True, slots=True)
class StageAccount:
    """Numbers of units (ranks, bytes, ...) that a stage received, passed to the next stage, and left out.

    Attributes:
        stage: `record`, `collect`, `read`, `place`, `route`, `report`, `check` or `simulate`.
        noun: the counted unit, such as `ranks`, `bytes`, `hosts` or `links`.
        total: number received.
        kept: number passed to the next stage.
        left_out: reason -> number. `total` is `kept` plus the numbers of `left_out`.

    Raises:
        ArithmeticError: the numbers do not add up.
    """

    stage: str
    noun: str
    total: int
    kept: int
    left_out: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.total != self.kept + sum(self.left_out.values()):
            raise ArithmeticError(f"{self.stage}: {self.noun} do not add up: {self}")


def accounts_as_json(accounts: Iterable[StageAccount]) -> dict[str, Any]:
    """Return the entry `coverage` of a JSON document: numbers of received, kept and lost units by stage."""
    return {"accounts": [asdict(each) for each in accounts]}


def account_for_run(run: Profile) -> Iterator[StageAccount]:
    """Account for a run's missing ranks, unrecorded bytes, and bytes that matrices leave out."""
    ranks = len({rank.rank for rank in run.ranks if rank.rank < run.world_size})
    missing = run.world_size - ranks
    yield StageAccount("record", "ranks", run.world_size, ranks, {"not recorded": missing} if missing else {})
    counters = run.counters
    counted = sum_exactly(counters.bytes)
    lost = {"the recording could not grow": sum(rank.lost_bytes for rank in run.ranks)}
    for each in find_unaccounted(run):
        reason = f"{name_call(each.operation)}: fewer bytes seen than its calls must send"
        lost[reason] = lost.get(reason, 0) + each.least_bytes - each.seen_bytes
    lost = {reason: amount for reason, amount in lost.items() if amount}
    yield StageAccount("record", "bytes", counted + sum(lost.values()), counted, lost)
    chosen = choose_sent(run)
    is_control = ~chosen & (counters.kind == Kind.CONTROL)
    is_received = ~chosen & ~is_control & (counters.direction == Direction.RECEIVED)
    others = {
        "MPI's own control messages": is_control,
        "received: sent bytes, counted again by receivers": is_received,
        "seen by a second source": ~chosen & ~is_control & ~is_received,
    }
    left_out = {reason: amount for reason, rows in others.items() if (amount := sum_exactly(counters.bytes[rows]))}
    yield StageAccount(COLLECT, "bytes", counted, sum_exactly(counters.bytes[chosen]), left_out)


def choose_sent(run: Profile) -> npt.NDArray[np.bool_]:
    """Return a mask of the counters, bool [counter]: true for bytes that a rank sent, or fetched from another rank.

    Received bytes are left out, because the sender counted them. MPI's own control messages are left out too.
    """
    counters = run.counters
    chosen: npt.NDArray[np.bool_] = (counters.kind == Kind.USER) & (counters.direction != Direction.RECEIVED)
    of_nccl = counters.source == Source.NCCL
    sources = np.flatnonzero(np.bincount(counters.source[chosen & (counters.bytes > 0) & ~of_nccl]))
    # Of sources that count the same bytes, keep the source nearest to the MPI calls, which knows the operations. Keep
    # NCCL's source too: NCCL's bytes do not pass through MPI.
    return chosen & ((counters.source == sources[0]) | of_nccl) if len(sources) else chosen


def describe_losses(accounts: Iterable[StageAccount], complete: bool = True) -> Iterator[str]:
    """Yield a sentence for each loss above `MUCH`; without such a loss, for the largest loss.

    Args:
        complete: false if gaps of unknown size exist, so that no sentence may state that nothing is left out.
    """
    accounts = [each for each in accounts if each.noun in _IN_TEXT]
    losses = []
    for each, following in zip_longest(accounts, accounts[1:]):
        if each.stage != COLLECT:
            # Divide by the total without bytes that `COLLECT`, the next stage, leaves out.
            is_twice = following is not None and following.stage == COLLECT
            total = each.total - (sum(following.left_out.values()) if is_twice else 0)
            of_total = f"of {_say(total, each.noun)}"
            losses += [
                (amount / total, f"{_say(amount, each.noun, named=False)} {of_total}", reason)
                for reason, amount in each.left_out.items()
            ]
    much = sorted((loss for loss in losses if loss[0] > MUCH), reverse=True)
    yield from (f"{LEFT_OUT}{amounts} ({share:.1%}): {reason}." for share, amounts, reason in much)
    last = {each.noun: each.kept for each in accounts if each.kept}
    if losses and not much:
        share, amounts, reason = max(losses)
        yield f"Less than {MUCH:.0%} is left out: {amounts} ({100 * share:.2g}%): {reason}."
    elif complete and last and not losses:
        yield f"Nothing is left out: {', '.join(f'all {_say(last[noun], noun)}' for noun in _IN_TEXT if noun in last)}."


def _say(amount: int, noun: str, named: bool = True) -> str:
    """Return a number, with its noun if `named`."""
    if noun == "bytes":
        return format_bytes(amount)
    return count_of(amount, noun.removesuffix("s")) if named else f"{amount:,}"


_BY_ARGUMENTS = ("PSEND_INIT", "PUT", "GET", "ACCUMULATE", "GET_ACCUMULATE", "FETCH_AND_OP", "COMPARE_AND_SWAP")
"""Operations whose bytes come from the calls' arguments. RPUT and other variants are listed without the `R`."""

_REPEATED_CALLS = 256
"""Maximum number of short calls that a killed process loses at each line in each thread, if times were recorded."""

_THREAD_MULTIPLE = 3
"""`Rank.thread_level` for MPI_THREAD_MULTIPLE."""


def describe_gaps(run: Profile, *, with_operations: bool = True) -> Iterator[str]:
    """Yield a sentence on each kind of missing data in a run.

    Args:
        with_operations: true to include a sentence on each operation with unrecorded bytes.
    """
    recorded = {rank.rank for rank in run.ranks}
    if missing := [rank for rank in range(run.world_size) if rank not in recorded]:
        lacking = f"{len(missing)} of {run.world_size} ranks were not recorded"
        yield f"{lacking}: {format_ranks(missing)}; {_locate_missing(run)}"
    if run.operations_asked:
        yield f"only these operations were recorded: {run.operations_asked}"
    yield from filter(None, (_describe_cut(run), _describe_killed(run)))
    if lost := [rank.rank for rank in run.ranks if rank.lost_bytes or rank.lost_messages]:
        amount = format_bytes(sum(rank.lost_bytes for rank in run.ranks))
        nowhere = f"{amount} of rank {format_ranks(lost)} are known only in total, without peers and marks"
        yield f"{nowhere}: the recording could not grow"
    yield from filter(None, (_describe_off(run),))
    # Leave out received bytes: the sender already counted these messages.
    sent_control = (run.counters.kind == Kind.CONTROL) & (run.counters.direction != Direction.RECEIVED)
    if control := sum_exactly(run.counters.bytes[sent_control]):
        carried = ", including data of calls that are counted from their arguments," if _counts_arguments(run) else ""
        yield f"{format_bytes(control)} of MPI's own control messages{carried} are left out of all sums"
    yield from _describe_received(run)
    yield from describe_no_comparison(run)
    if with_operations:
        yield from describe_unaccounted(run)
    yield from run.sites_without_lines
    if OTHER_SITES in run.sites:
        number = run.sites.index(OTHER_SITES) + 1
        other = run.counters.site == number
        sent = other & (run.counters.kind == Kind.USER) & (run.counters.direction == Direction.SENT)
        ranks = sorted(set(run.counters.rank[other].tolist()) | set(run.times.rank[run.times.site == number].tolist()))
        yield (
            f"rank {format_ranks(ranks)} called MPI from more call sites than a recording distinguishes: "
            f"{format_bytes(sum_exactly(run.counters.bytes[sent]))} are counted at {OTHER_SITES.name}"
        )
    if cut := [number for number, site in enumerate(run.sites, 1) if site.callers[-1:] == (OTHER_SITES,)]:
        of_cut = np.isin(run.counters.site, cut)
        ranks = sorted({*run.counters.rank[of_cut].tolist(), *run.times.rank[np.isin(run.times.site, cut)].tolist()})
        yield (
            f"rank {format_ranks(ranks)} called MPI through more chains of callers than a recording distinguishes: "
            f"further chains have only the line of the call, with the caller {OTHER_SITES.name}"
        )
    yield from _describe_elsewhere(run)
    yield from _describe_ports(run)
    said: dict[str, list[int]] = {}
    for rank in run.ranks:
        for note in rank.notes:
            said.setdefault(note, []).append(rank.rank)
    said.pop(CUT_SHORT, None)
    yield from (f"rank {format_ranks(ranks)}: {note}" for note, ranks in said.items())


def describe_incomplete(run: Profile) -> str:
    """Return a sentence on incomplete ranks; empty if all ranks are complete.

    A rank is incomplete if it lost data, did not end, or had recording off for more than `MUCH` of the time.
    """
    return "; ".join(filter(None, (_describe_cut(run), _describe_killed(run), _describe_off(run, MUCH))))


def describe_run_losses(run: Profile) -> Iterator[str]:
    """Yield a sentence on incomplete ranks, and a sentence on each large loss of ranks or bytes."""
    yield from filter(None, (describe_incomplete(run),))
    yield from describe_losses(account_for_run(run), complete=False)


def _describe_cut(run: Profile) -> str:
    cut = [rank.rank for rank in run.ranks if CUT_SHORT in rank.notes]
    return f"rank {format_ranks(cut)}: {CUT_SHORT}" if cut else ""


def _describe_off(run: Profile, least: float = 0.0) -> str:
    """Return a sentence on ranks where recording was off for more than `least` of the time; otherwise no text."""
    off = [rank for rank in run.ranks if rank.off_ns > least * max((rank.stop_ns or 0) - rank.start_ns, 0)]
    if not off:
        return ""
    longest = format_seconds(max(rank.off_ns for rank in off) / 1e9)
    return f"recording was switched off for up to {longest} on rank {format_ranks([rank.rank for rank in off])}"


def _describe_killed(run: Profile) -> str:
    killed = [rank for rank in run.ranks if not rank.finalized]
    if not killed:
        return ""
    end = "MPI_Finalize" if run.mpi and not run.is_of_nccl else "its own end"
    said = f"rank {format_ranks([rank.rank for rank in killed])} did not reach {end}: "
    if not run.sites or not any(rank.has_times for rank in killed):
        return f"{said}the counters end where the process ended"
    of_each = "line and thread" if any(rank.thread_level == _THREAD_MULTIPLE for rank in killed) else "line"
    missing = f"up to {_REPEATED_CALLS} short calls of each {of_each} are missing"
    return f"{said}{missing}; their bytes and messages were counted"


def _counts_arguments(run: Profile) -> bool:
    """Return whether one-sided or partitioned data were counted twice: in UCX or libfabric, and from arguments."""
    below = any(rank.source in (Source.UCX, Source.LIBFABRIC) for rank in run.ranks)
    return below and bool((_is_counted_by_arguments(run) & (run.counters.kind == Kind.USER)).any())


def _is_counted_by_arguments(run: Profile) -> npt.NDArray[np.bool_]:
    """Return a mask of the counters with bytes from the arguments of calls: bool [counter]."""
    named = np.array([name.removeprefix("R") in _BY_ARGUMENTS for name in run.operations], bool)
    return named[run.counters.operation]


def _describe_received(run: Profile) -> Iterator[str]:
    """Yield sentences on sent bytes that no receiver counted.

    Yield nothing if counters are incomplete, or if a rank's source does not count all receives.
    """
    if describe_uncompared(run) or any(rank.source != Source.OPENMPI for rank in run.ranks):
        return
    counters = run.counters
    is_here = (counters.kind == Kind.USER) & (counters.peer < run.world_size) & (counters.source == Source.OPENMPI)
    of_arguments = is_here & (counters.direction != Direction.RECEIVED) & _is_counted_by_arguments(run)
    sent = is_here & (counters.direction != Direction.RECEIVED) & ~of_arguments
    if amount := sum_exactly(counters.bytes[of_arguments]):
        yield (
            f"{format_bytes(amount)} of one-sided and partitioned calls were counted only from the calls' arguments: "
            "no receiver's count confirms them"
        )
    received = sum_exactly(counters.bytes[is_here & (counters.direction == Direction.RECEIVED)])
    if (missing := sum_exactly(counters.bytes[sent]) - received) > 0:
        yield f"{format_bytes(missing)} of sent messages were counted by no receiver: no call completed their receive"


def _describe_ports(run: Profile) -> Iterator[str]:
    """Yield sentences on port traffic that the run does not explain, and on bytes that no port counted."""
    if unseen := [rank.rank for rank in run.ranks if rank.queue_pairs_unseen]:
        count = sum(rank.queue_pairs_unseen for rank in run.ranks)
        yield (
            f"{count} queue pair(s) of rank {format_ranks(unseen)} bypass verbs (vendor calls: mlx5dv, "
            "mlx4dv, efadv, hnsdv, manadv): no port includes their bytes. `ibprof run` with "
            "IBPROF_SOURCE=exact selects transports that are recorded"
        )
    if len(run.transfers.bytes):
        if run.operations_asked:
            yield "bytes posted to queue pairs include operations that were not selected"
        yield from describe_ports(run)
    if describe_unmeasured(run):
        yield from describe_hosts(run)


def _describe_elsewhere(run: Profile) -> Iterator[str]:
    """Yield a sentence on traffic with processes outside MPI_COMM_WORLD: no matrix contains this traffic."""
    counters = run.counters
    sent = (counters.kind == Kind.USER) & (counters.direction != Direction.RECEIVED)
    if elsewhere := sum_exactly(counters.bytes[sent & (counters.peer == UNKNOWN_PEER)]):
        yield (
            f"{format_bytes(elsewhere)} are between ranks and processes outside MPI_COMM_WORLD (of "
            "another job, spawned, connected, or not recorded): no matrix and no link includes these bytes"
        )


def _locate_missing(run: Profile) -> str:
    recorded_hosts = {host.name for host in run.hosts}
    unknown = [name for name in run.job_hosts if name not in recorded_hosts]
    absent = [name for name in unknown if not any(same_host(name, host) for host in recorded_hosts)]
    recorded = format_names([host.name for host in run.hosts])
    if absent:
        return f"of the job's hosts, {format_names(absent)} left no recording; {recorded} left a recording"
    if run.job_hosts:
        return f"all known hosts of the job left a recording ({recorded}): these ranks ran without the library"
    return f"their hosts are unknown: the ranks ran on other hosts than {recorded}, or without the library"


def format_names(names: Sequence[str], limit: int = 16) -> str:
    """Return the first `limit` names, separated by commas, and the number of further names."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def format_ranks(ranks: Sequence[int], limit: int = 8) -> str:
    """Return ascending numbers as ranges, `0-3, 7`: the first `limit` ranges, and the number of further ranges."""
    ranges: list[list[int]] = []
    for rank in ranks:
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    written = [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges]
    if len(written) > limit:
        return f"{', '.join(written[:limit])} and {len(written) - limit} more ranges"
    return ", ".join(written)
