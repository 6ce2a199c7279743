# SPDX-License-Identifier: Apache-2.0
"""Describe a profile: as JSON, in a few lines of text, and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.profile.call_report import top_lines
from ibprof.profile.efficiency import time_in_mpi
from ibprof.profile.missing_data import account_for_run, accounts_as_json, describe_gaps
from ibprof.profile.port_sums import HostCheck, PortSum, bytes_posted, check_hosts, describe_unmeasured, sum_ports
from ibprof.profile.profile_data import Counters, Direction, Kind, Mark, MarkKind, Profile, Source
from ibprof.profile.row_arrays import sum_by_group
from ibprof.profile.unaccounted import find_unaccounted
from ibprof.text.notebook_html import escape, render_html, render_table
from ibprof.text.quantities import count_of, format_bytes, format_seconds, name_call

MARKS_SHOWN = (MarkKind.START, MarkKind.CLOSE, MarkKind.OFF, MarkKind.ON, MarkKind.STOP)


_MOST = 8

_NS = 1e-9


def describe_briefly(run: Profile) -> Iterator[str]:
    """Yield a few lines about the recorded data."""
    hosts = count_of(len(run.hosts), "host")
    total, _ = _sum(run.counters, _is_sent(run.counters))
    yield f"{run.ranks_recorded} of {run.world_size} {_processes(run)} on {hosts}, {format_bytes(total)} sent"
    if posted := bytes_posted(run):
        rails = describe_unmeasured(run) or "ports are measured"
        yield f"{format_bytes(posted)} posted to queue pairs: {rails}"
    top = sorted(_operations(run), key=lambda operation: -int(operation["bytes"]))[:3]
    if total:
        most = (f"{name_call(operation['name'])} ({format_bytes(operation['bytes'])})" for operation in top)
        yield f"most by {', '.join(most)}"


def summarize(run: Profile) -> dict[str, Any]:
    """Return a description of a profile for JSON. Bytes are user data, sent or fetched, unless a key says otherwise."""
    counters = run.counters
    sent, received = _is_sent(counters), counters.direction == Direction.RECEIVED
    user, control = counters.kind == Kind.USER, counters.kind == Kind.CONTROL
    total, messages = _sum(counters, sent)
    return {
        "name": run.name,
        "mpi": run.mpi,
        "library": run.library,
        "command": run.command,
        "job": run.job,
        "scheduler": asdict(run.scheduler) if run.scheduler.system else None,
        "world_size": run.world_size,
        "ranks_recorded": run.ranks_recorded,
        "operations_asked": run.operations_asked,
        "sources": sorted(_sources(run)),
        "bytes": total,
        "bytes_posted": bytes_posted(run),
        "ports_measured": describe_unmeasured(run) is None,
        "messages": messages,
        "bytes_received": _sum(counters, received & user)[0],
        "bytes_control": _sum(counters, control & ~received)[0],
        "hosts": _hosts(run),
        "job_hosts": list(run.job_hosts),
        "regions": _regions(run),
        "operations": _operations(run),
        "time_in_mpi": _time_in_mpi(run),
        "marks": [_mark(run, mark) for mark in run.marks if mark.kind in MARKS_SHOWN],
        "not_seen": list(describe_gaps(run)),
        "coverage": accounts_as_json(account_for_run(run)),
        "unaccounted": [asdict(each) for each in find_unaccounted(run)],
    }


def _is_sent(counters: Counters) -> npt.NDArray[np.bool_]:
    sent: npt.NDArray[np.bool_] = (counters.kind == Kind.USER) & (counters.direction != Direction.RECEIVED)
    return sent


def _sum(counters: Counters, chosen: npt.NDArray[np.bool_]) -> tuple[int, int]:
    return sum_exactly(counters.bytes[chosen]), sum_exactly(counters.messages[chosen])


def _processes(run: Profile) -> str:
    return "ranks" if run.mpi else "processes"


def _sources(run: Profile) -> set[str]:
    sources = {rank.source.name.lower() for rank in run.ranks if rank.source != Source.NONE}
    return sources | ({Source.VERBS.name.lower()} if len(run.transfers.bytes) else set())


def _hosts(run: Profile) -> list[dict[str, Any]]:
    sums = {(each.host, each.device, each.port): each for each in sum_ports(run)}
    checks = {check.host: check for check in check_hosts(run)}
    ranks: list[list[int]] = [[] for _ in run.hosts]
    for rank in run.ranks:
        ranks[rank.host].append(rank.rank)
    return [
        {
            "name": host.name,
            "ranks": ranks[number],
            **_check(checks.get(host.name)),
            "ports": [
                {
                    "device": port.device,
                    "port": port.port,
                    "lid": port.lid,
                    "lmc": port.lmc,
                    "gids": list(port.gids),
                    "node_guid": port.node_guid,
                    "port_guid": port.port_guid,
                    "rate_gbps": port.rate_gbps,
                    "link_layer": port.link_layer,
                    "active": port.is_active,
                    **_carried(sums[host.name, port.device, port.port]),
                }
                for port in host.ports
            ],
        }
        for number, host in enumerate(run.hosts)
    ]


def _check(check: HostCheck | None) -> dict[str, int | None]:
    """Return the bytes that a host sent, by its ranks' counters and by its ports' counters; null where unknown."""
    return {
        "bytes_to_others": check.bytes_sent if check else None,
        "hardware_sent": check.hardware_sent if check else None,
        "unexplained_sent": check.unexplained_sent if check else None,
    }


def _carried(port: PortSum) -> dict[str, int | None]:
    return {
        "bytes_sent": port.bytes_sent,
        "bytes_received": port.bytes_received,
        "hardware_sent": port.hardware_sent,
        "hardware_received": port.hardware_received,
        "unexplained_sent": port.unexplained_sent,
    }


def _regions(run: Profile) -> list[dict[str, Any]]:
    """Return the regions with visits or traffic, each with the longest time of a rank."""
    times, counters, sent = run.region_times, run.counters, np.flatnonzero(_is_sent(run.counters))
    count = len(run.regions)
    totals = sum_by_group(counters.region[sent], count, counters.bytes[sent])
    messages = sum_by_group(counters.region[sent], count, counters.messages[sent])
    visits = sum_by_group(times.region, count, times.visits)
    longest = np.zeros(count, np.uint64)
    np.maximum.at(longest, times.region, times.wall_ns)
    return [
        {
            "name": name,
            "visits": visits[number],
            "wall_ns_longest": int(longest[number]),
            "bytes": totals[number],
            "messages": messages[number],
        }
        for number, name in enumerate(run.regions)
        if visits[number] or messages[number]
    ]


def _operations(run: Profile) -> list[dict[str, Any]]:
    counters, sent = run.counters, np.flatnonzero(_is_sent(run.counters))
    operation, count = counters.operation[sent], len(run.operations)
    totals = sum_by_group(operation, count, counters.bytes[sent])
    messages = sum_by_group(operation, count, counters.messages[sent])
    return [
        {"name": run.operations[number], "bytes": totals[number], "messages": messages[number]}
        for number in np.unique(operation).tolist()
    ]


def _time_in_mpi(run: Profile) -> dict[str, Any] | None:
    """Return the time inside calls and the calls with most time; None if times were not recorded."""
    time = time_in_mpi(run)
    return {**asdict(time), "share": time.share, "top": top_lines(run)} if time else None


def _mark(run: Profile, mark: Mark) -> dict[str, Any]:
    return {
        "rank": mark.rank,
        "time_ns": mark.time_ns,
        "kind": mark.kind.name.lower(),
        "region": run.regions[mark.region],
        "sent_bytes": mark.sent_bytes,
        "sent_messages": mark.sent_messages,
        "received_bytes": mark.received_bytes,
        "received_messages": mark.received_messages,
    }


@render_html.register
def render_profile(run: Profile) -> str:
    """Return a profile as HTML for a notebook: the command, ranks, and the operations and regions with most bytes."""
    said = summarize(run)
    head = [
        ("command", said["command"]),
        ("MPI", " ".join(said["mpi"].split())),
        ("ranks", f"{said['ranks_recorded']:,} of {said['world_size']:,} recorded, on {len(said['hosts']):,} host(s)"),
        ("sent", f"{format_bytes(said['bytes'])} in {said['messages']:,} messages"),
    ]
    operations = sorted(said["operations"], key=lambda each: -each["bytes"])[:_MOST]
    regions = sorted(said["regions"], key=lambda each: -each["bytes"])[:_MOST]
    parts = [
        f"<strong>{escape(f'Profile {run.name}')}</strong>",
        render_table((), head),
        render_table(
            ("operation", "bytes", "messages"),
            ((name_call(each["name"]), format_bytes(each["bytes"]), f"{each['messages']:,}") for each in operations),
        ),
        render_table(
            ("region", "bytes", "longest"),
            (
                (each["name"], format_bytes(each["bytes"]), format_seconds(each["wall_ns_longest"] * _NS))
                for each in regions
            ),
        ),
        *(f"<p>not seen: {escape(sentence)}</p>" for sentence in said["not_seen"]),
    ]
    return "<div>" + "".join(parts) + "</div>"
