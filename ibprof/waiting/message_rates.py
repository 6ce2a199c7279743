# SPDX-License-Identifier: Apache-2.0
"""Rates of large messages and latencies of small messages, measured from samples, by pair of hosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import Profile
from ibprof.waiting.host_clocks import HostClocks
from ibprof.waiting.sample_matching import Booleans, Integers, MatchedSamples, find_runs

Floats = npt.NDArray[np.float64]

LARGE_BYTES = 64 << 10
"""Size above which a message's bytes take longer than its latency."""

SMALL_BYTES = 4096
"""Largest size of a message whose latency takes longer than its bytes."""

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
        rate_gbps: median rate of the receiving calls, from the time when both ends have started until the call returns;
            None without large messages. Other messages at the same time share the network.
        small_messages: number of sampled messages of at most `SMALL_BYTES` that the receiver waited for.
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
    """Return the pairs of hosts with a rate or a latency, sorted by number of messages, descending; `via` is empty.

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
    # Use messages whose receiving call was entered before the send: the end of the call shows the arrival.
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
    """Return the pair of hosts, and the rate in Gb/s, of each call that receives messages of a pair."""
    rows = np.flatnonzero(chosen)
    order = rows[np.lexsort((leave[rows], rank[rows], key[rows]))]
    begins, _ = find_runs(key[order], rank[order], leave[order])
    if not len(begins):
        return np.zeros(0, np.int64), np.zeros(0)
    amount = np.add.reduceat(size[order].astype(np.float64), begins)
    took = leave[order][begins] - np.minimum.reduceat(begin[order], begins)
    return key[order][begins], amount * 8 / took
