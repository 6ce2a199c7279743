# SPDX-License-Identifier: Apache-2.0
"""Derive profiles from full traces. A hash selects the sampled calls, like in ibprof's recorder."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ibprof.profile.profile_data import (
    UNKNOWN_BYTES,
    CallTimes,
    CollectiveSamples,
    Counters,
    Host,
    MessageSamples,
    MessageSizes,
    Profile,
    Rank,
    RegionTimes,
    Source,
)
from ibprof_testing.waits.traces import RECEIVED, SENT, Trace

Clock = Callable[[int, np.ndarray], np.ndarray]
"""Converts true times to the times that a rank's clock shows, ns."""

_MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """Return a hash of 64 bits (the final mixing steps of splitmix64)."""
    value &= _MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31


def is_kept(level: int, *key: int) -> bool:
    """Return whether the hash chooses a collective or message, on average one in 2^level."""
    value = 0
    for each in key:
        value = mix((value ^ each) + 0x9E3779B97F4A7C15)
    return value < (1 << 64) >> level


def true_clock(rank: int, times: np.ndarray) -> np.ndarray:
    """Return the times unchanged: a perfect clock."""
    del rank
    return times


def score(trace: Trace) -> np.ndarray:
    """Return each collective's score, ns: its duration or, if longer, the time since the previous one's start."""
    rows, calls = trace.instances, trace.calls[trace.instances["call"]]
    late = np.diff(rows["start"], prepend=rows["start"][:1])
    scores: np.ndarray = np.maximum(calls["exit"] - calls["enter"], late)
    return scores


def find_long_ns(traces: Sequence[Trace], level: int, longest: int) -> float:
    """Return the score, ns, above which ranks sample all collectives, whatever the hash chooses.

    The score is infinite if `longest` is 0, or if the hash leaves out at most `longest` collectives of a rank.
    """
    found = 0.0
    for trace in traces:
        chosen = [is_kept(level, int(row["communicator"]), int(row["number"])) for row in trace.instances]
        others = np.sort(score(trace)[~np.array(chosen, bool)])[::-1]
        found = max(found, float(others[longest - 1]) if longest and len(others) > longest else np.inf)
    return found


def derive_profile(
    traces: Sequence[Trace],
    level: int = 0,
    clock: Clock = true_clock,
    hosts: Sequence[int] | None = None,
    longest: int = 0,
) -> Profile:
    """Return a profile of a traced run, with samples of one in 2^level collectives and messages.

    Args:
        clock: converts true times to the times of each rank's clock.
        hosts: host of each rank; None for a single host.
        longest: number of a rank's longest collectives, and of its longest messages, that are sampled without the hash.
    """
    of_rank = list(hosts) if hosts is not None else [0] * len(traces)
    names = sorted({name.decode().upper() for trace in traces for name in np.unique(trace.calls["name"])})
    number_of = {name: number for number, name in enumerate(names)}
    long_ns = find_long_ns(traces, level, longest)
    times: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    collectives: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    for rank, trace in enumerate(traces):
        calls = trace.calls
        operation = np.array([number_of[name.decode().upper()] for name in calls["name"]], np.int64)
        for each in np.unique(operation).tolist():
            rows = operation == each
            times[rank, each] = [int(rows.sum()), int((calls["exit"] - calls["enter"])[rows].sum())]
        enter, leave = clock(rank, calls["enter"]), clock(rank, calls["exit"])

        def around(call: int, begins: Any = (enter, leave, operation)) -> dict[str, Any]:
            enters, leaves, operations = begins
            return {
                "region": 0,
                "site": 0,
                "end_site": 0,
                "level": level,
                "end_operation": int(operations[call]),
                "enter_ns": int(enters[call]),
                "exit_ns": int(leaves[call]),
            }

        long = score(trace) > long_ns
        for number, row in enumerate(trace.instances):
            is_chosen = is_kept(level, int(row["communicator"]), int(row["number"]))
            if not is_chosen and not long[number]:
                continue
            start = int(clock(rank, np.array([row["start"]]))[0])
            collectives.append(
                {
                    "rank": rank,
                    **{name: int(row[name]) for name in ("communicator", "number", "size", "member", "root", "bytes")},
                    "operation": number_of[row["name"].decode().upper()],
                    "start_ns": start,
                    "is_long": bool(long[number]),
                    "is_chosen": is_chosen,
                    **around(int(row["call"])),
                    "level": level if is_chosen else 0,
                }
            )
        messages += _messages(rank, trace, level, clock, around, number_of, longest)
    hosts_used = sorted(set(of_rank))
    rows = sorted(times)
    return Profile(
        name="derived",
        mpi="",
        command="",
        job="",
        world_size=len(traces),
        operations_asked="",
        hosts=tuple(Host(f"n{number:02}", ()) for number in hosts_used),
        ranks=tuple(_rank(rank, hosts_used.index(of_rank[rank]), trace) for rank, trace in enumerate(traces)),
        regions=("main",),
        operations=tuple(names),
        counters=Counters.empty(),
        region_times=RegionTimes.empty(),
        sizes=MessageSizes.empty(),
        marks=(),
        times=CallTimes(
            rank=np.array([rank for rank, _ in rows], np.int32),
            region=np.zeros(len(rows), np.int32),
            operation=np.array([operation for _, operation in rows], np.int32),
            calls=np.array([times[row][0] for row in rows], np.uint64),
            time_ns=np.array([times[row][1] for row in rows], np.uint64),
            error_ns=np.zeros(len(rows), np.uint64),
            site=np.zeros(len(rows), np.int32),
        ),
        collective_samples=_columns(CollectiveSamples, collectives),
        message_samples=_columns(MessageSamples, messages),
    )


def _messages(
    rank: int,
    trace: Trace,
    level: int,
    clock: Clock,
    around: Callable[[int], dict[str, Any]],
    number_of: Any,
    longest: int,
) -> list[dict[str, Any]]:
    seen: dict[tuple[int, ...], int] = defaultdict(int)
    found: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    late: dict[int, int] = defaultdict(int)
    last = 0
    for row in sorted(trace.messages, key=lambda row: int(row["order"])):
        side = int(row["side"])
        assert side in (SENT, RECEIVED)
        envelope = side, int(row["peer"]), int(row["communicator"]), int(row["tag"])
        number = seen[envelope]
        seen[envelope] += 1
        call = int(row["call"])
        # A pause before a message also raises the scores of later messages of the same call.
        late[call] = max(late[call], int(row["post"]) - last if last else 0)
        last = int(row["post"])
        score = max(late[call], int(trace.calls["exit"][call] - trace.calls["enter"][call]))
        is_chosen = is_kept(level, envelope[2], number, envelope[3] >> 4)
        if int(row["peer"]) == rank:
            continue
        post = int(clock(rank, np.array([row["post"]]))[0])
        (found if is_chosen else others).append(
            {
                "score": score,
                "rank": rank,
                "peer": envelope[1],
                "communicator": envelope[2],
                "number": number,
                "tag": envelope[3],
                "side": side,
                "completed": int((trace.messages["call"] == row["call"]).sum()),
                "bytes": int(row["bytes"]) if side == SENT else UNKNOWN_BYTES,
                "operation": number_of[row["name"].decode().upper()],
                "post_ns": post,
                **around(call),
                "is_chosen": is_chosen,
                "level": level if is_chosen else 0,
            }
        )
    others.sort(key=lambda row: -row["score"])
    kept = others[:longest]
    # If no message is sampled by score, the limit is infinite: no message is long.
    limit = kept[-1]["score"] - 1 if kept else math.inf
    return [{**row, "is_long": row["score"] > limit} for row in (*found, *kept)]


def _columns(kind: Any, rows: Sequence[dict[str, Any]]) -> Any:
    return kind(**{name: np.array([row[name] for row in rows], column) for name, column in kind.column_types().items()})


def _rank(rank: int, host: int, trace: Trace) -> Rank:
    begin, end = (int(trace.calls["enter"].min()), int(trace.calls["exit"].max())) if len(trace.calls) else (0, 1)
    return Rank(
        rank=rank,
        host=host,
        pid=rank,
        start_ns=begin,
        stop_ns=end,
        finalized=True,
        source=Source.OPENMPI,
        thread_level=0,
        lost_bytes=0,
        lost_messages=0,
        off_ns=0,
        marks_seen=0,
        notes=(),
        has_times=True,
        cpu_ns=end - begin,
    )
