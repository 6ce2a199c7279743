# SPDX-License-Identifier: Apache-2.0
"""What a profile lacks, in sentences: every report says it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ibprof.native.kernel_library import sum_exactly
from ibprof.profile.host_sums import describe_hosts
from ibprof.profile.port_sums import describe_ports
from ibprof.profile.profile_data import UNKNOWN_PEER, Direction, Kind, Profile
from ibprof.profile.transfer_ports import describe_unmeasured
from ibprof.text.host_lists import same_host
from ibprof.text.quantities import format_bytes, format_seconds


def describe_gaps(run: Profile) -> Iterator[str]:
    """Say what was not seen of a run, a sentence each."""
    recorded = {rank.rank for rank in run.ranks}
    if missing := [rank for rank in range(run.world_size) if rank not in recorded]:
        lacking = f"{len(missing)} of {run.world_size} ranks were not recorded"
        yield f"{lacking}: {format_ranks(missing)}; {_place_missing(run)}"
    if run.operations_asked:
        yield f"only these operations were recorded: {run.operations_asked}"
    end = "MPI_Finalize" if run.mpi else "its own end"
    if killed := [rank.rank for rank in run.ranks if not rank.finalized]:
        yield f"rank {format_ranks(killed)} did not reach {end}: the counters end where the process did"
    if lost := [rank.rank for rank in run.ranks if rank.lost_bytes or rank.lost_messages]:
        amount = format_bytes(sum(rank.lost_bytes for rank in run.ranks))
        yield f"{amount} of rank {format_ranks(lost)} are in no counter by peer and no mark, for want of room"
    if off := [rank.rank for rank in run.ranks if rank.off_ns]:
        longest = format_seconds(max(rank.off_ns for rank in run.ranks) / 1e9)
        yield f"recording was switched off for up to {longest} on rank {format_ranks(off)}"
    if control := sum_exactly(run.counters.bytes[run.counters.kind == Kind.CONTROL]):
        yield f"{format_bytes(control)} of MPI's own control messages are left out of all sums"
    yield from _describe_elsewhere(run)
    yield from _describe_ports(run)
    said: dict[str, list[int]] = {}
    for rank in run.ranks:
        for note in rank.notes:
            said.setdefault(note, []).append(rank.rank)
    for note, ranks in said.items():
        yield f"rank {format_ranks(ranks)}: {note}"


def _describe_ports(run: Profile) -> Iterator[str]:
    """What ports carried that is not known to be this run's, or the other way round."""
    if unseen := [rank.rank for rank in run.ranks if rank.queue_pairs_unseen]:
        count = sum(rank.queue_pairs_unseen for rank in run.ranks)
        yield (
            f"{count} queue pair(s) of rank {format_ranks(unseen)} post past verbs (mlx5 direct), so ports do not have "
            "their bytes; IBPROF_SOURCE=exact with `ibprof run` takes the transports that are seen"
        )
    if len(run.transfers.bytes):
        if run.operations_asked:
            yield "what was posted to queue pairs is of all operations"
        yield from describe_ports(run)
    if describe_unmeasured(run):
        yield from describe_hosts(run)


def _describe_elsewhere(run: Profile) -> Iterator[str]:
    """What has an end that no matrix has a row or column for."""
    counters = run.counters
    sent = (counters.kind == Kind.USER) & (counters.direction != Direction.RECEIVED)
    if elsewhere := sum_exactly(counters.bytes[sent & (counters.peer == UNKNOWN_PEER)]):
        yield (
            f"{format_bytes(elsewhere)} are between ranks and processes that are none of MPI_COMM_WORLD's (another "
            "job's, spawned or connected, or not recorded): no matrix and no link has them"
        )


def _place_missing(run: Profile) -> str:
    there = {host.name for host in run.hosts}
    unknown = [name for name in run.job_hosts if name not in there]
    absent = [name for name in unknown if not any(same_host(name, host) for host in there)]
    recorded = format_names([host.name for host in run.hosts])
    if absent:
        return f"of the job's hosts {format_names(absent)} left no recording, {recorded} did"
    if run.job_hosts:
        return f"all hosts that the job is known to have left a recording ({recorded}): they ran without the library"
    return f"their hosts are not known: others than {recorded}, or these without the library"


def format_names(names: Sequence[str], limit: int = 16) -> str:
    """List names; after `limit` of them as a count."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def format_ranks(ranks: Sequence[int], limit: int = 8) -> str:
    """Write ascending numbers as ranges: `0-3, 7`; after `limit` ranges as a count."""
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
