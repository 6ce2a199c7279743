# SPDX-License-Identifier: Apache-2.0
"""The I/O-congestion threshold as text and as JSON."""

from __future__ import annotations

from typing import Any

from ibprof.text.quantities import count_of, printable
from ibprof_lab.simulation.questions.congestion_threshold import NEAR, Threshold, ThresholdQuestion
from ibprof_lab.simulation.study.sizes_and_times import format_size, format_time


def describe_threshold(question: ThresholdQuestion, found: Threshold) -> dict[str, Any]:
    """Return a threshold as JSON has it."""
    return {
        "request_bytes": question.job.bytes,
        "reads": bool(question.job.reads),
        "clients": question.clients,
        "servers": question.setting.servers,
        "alone_us": _us(found.alone_ns),
        "without_pause_us": _us(found.without_pause_ns),
        "threshold_us": None
        if found.below_ns is None
        else {"from": _us(found.below_ns), "to": _us(found.above_ns), "about": _us(found.about_ns)},
        "seeds": found.seeds,
        "crossing_us": _us(found.crossing_ns),
        "bound_us": _us(found.bound_ns),
        "tried": [{"interval_us": _us(interval), "mean_us": _us(mean)} for interval, mean in found.tried],
    }


def format_threshold(question: ThresholdQuestion, found: Threshold) -> str:
    """Return a threshold as text."""
    clients, servers = count_of(question.clients, "client"), count_of(question.setting.servers, "server")
    kind = "Reads" if question.job.reads else "Requests"
    lines = [
        f"{kind} of {format_size(question.job.bytes)} from {clients} to {servers} of "
        f"{printable(question.setting.fabric)}:",
        f"  one takes {_time(found.alone_ns)} alone, {_time(found.without_pause_ns)} without a pause between them",
        *_format_bounds(found),
        "",
        f"  {'interval':>12}  {'request':>12}",
    ]
    lines += [f"  {_time(interval):>12}  {_time(mean):>12}" for interval, mean in found.tried]
    return "\n".join(lines)


def _format_bounds(found: Threshold) -> list[str]:
    if found.below_ns is None or found.above_ns is None or found.about_ns is None:
        return ["  no I/O-congestion threshold: even without a pause requests hardly delay each other"]
    by = "1 sample of hosts: others differ, try --seeds N" if found.seeds == 1 else f"{found.seeds} samples of hosts"
    return [
        f"  I/O-congestion threshold: about {_time(found.about_ns)}, between {_time(found.below_ns)} and "
        f"{_time(found.above_ns)}, from a request's end to the next one's start,",
        f"    up to which the job has {100 * NEAR:.0f}% of the throughput that it has without a pause",
        f"    by {by}",
        f"  as a corner, without a pause less alone: {_time(found.crossing_ns)}",
        f"  by the servers' links alone, N S/(n B) - S/B: {_time(max(found.bound_ns, 0))}",
    ]


def _us(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / 1e3, 3)


def _time(nanoseconds: float | None) -> str:
    return "?" if nanoseconds is None else format_time(nanoseconds)
