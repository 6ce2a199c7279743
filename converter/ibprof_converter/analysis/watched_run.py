# SPDX-License-Identifier: Apache-2.0
"""A run as its recording has it now: bytes and time by region and line, and the most loaded links so far."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import time_ns
from typing import Any

from ibprof.load import load_profile
from ibprof.profile.call_sums import CallSum, sum_calls
from ibprof.profile.profile_data import Profile, Rank
from ibprof_converter.analysis.fabric_loads import RoutedFabric
from ibprof_converter.analysis.load_options import TrafficOptions
from ibprof_converter.analysis.load_pipeline import load_traffic
from ibprof_converter.hotspots.hot_links import Hotspot

KEYS = ("region", "operation", "site")


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A recording at one moment.

    Attributes:
        ended: no process of the run is known to be running.
        elapsed_s: from the start of the first process until the last one ended, or until now.
        ranks_recorded, ranks_finalized, world_size: numbers of ranks.
        calls: sums by `KEYS`, those with most time first, then those with most bytes.
        links: the link directions with most time at line rate so far; empty without a fabric.
    """

    command: str
    ended: bool
    elapsed_s: float
    ranks_recorded: int
    ranks_finalized: int
    world_size: int
    calls: tuple[CallSum, ...]
    links: tuple[Hotspot, ...]

    @property
    def bytes(self) -> int:
        """Bytes sent so far."""
        return sum(each.bytes for each in self.calls)

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "command": self.command,
            "ended": self.ended,
            "elapsed_s": self.elapsed_s,
            "ranks_recorded": self.ranks_recorded,
            "ranks_finalized": self.ranks_finalized,
            "world_size": self.world_size,
            "bytes": self.bytes,
            "calls": [
                dict(zip(KEYS, each.key, strict=True))
                | {"calls": each.calls, "time_s": each.time_s, "bytes": each.bytes, "messages": each.messages}
                for each in self.calls
            ],
            "links": list(map(_describe_link, self.links)),
        }


def look_at_run(
    recording: Path, fabric: RoutedFabric | None, placement: tuple[str, ...] = (), count: int = 5
) -> WatchedRun:
    """Return the newest run of a recording as it is now.

    Args:
        recording: its folder, which may grow.
        fabric: what to put its bytes on; None for no links.
        placement: where its ranks are; empty: as recorded.
        count: link directions to name.

    Raises:
        InputError: nothing was recorded yet.
    """
    run = load_profile(recording)
    links: tuple[Hotspot, ...] = ()
    if fabric:
        options = TrafficOptions((str(recording),), placements=placement)
        links = load_traffic(fabric, options).most_loaded(count)
    rows = sorted(sum_calls(run, KEYS), key=lambda row: (-(row.time_s or 0), -row.bytes))
    stops = [rank.stop_ns for rank in run.ranks]
    ended = not any(_runs_on(run, rank) for rank in run.ranks) and run.ranks_recorded >= run.world_size
    end_ns = max((stop for stop in stops if stop), default=time_ns()) if ended else time_ns()
    return WatchedRun(
        command=run.command,
        ended=ended,
        elapsed_s=max(0.0, (end_ns - min(rank.start_ns for rank in run.ranks)) / 1e9) if run.ranks else 0.0,
        ranks_recorded=run.ranks_recorded,
        ranks_finalized=sum(stop is not None for stop in stops),
        world_size=run.world_size,
        calls=tuple(rows),
        links=links,
    )


def _runs_on(run: Profile, rank: Rank) -> bool:
    """Return whether a process may still run: it has not ended, and is not known to be gone from this host."""
    if rank.stop_ns is not None:
        return False
    return run.hosts[rank.host].name != socket.gethostname() or _exists(rank.pid)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def name_direction(spot: Hotspot) -> str:
    """Return a link direction in words."""
    source, destination = (spot.a, spot.b) if spot.end == "a" else (spot.b, spot.a)
    return f"{source.name or source.guid} port {source.port} -> {destination.name or destination.guid}"


def _describe_link(spot: Hotspot) -> dict[str, Any]:
    return {"link": name_direction(spot), "rail": spot.rail, "bytes": spot.bytes, "line_rate_s": spot.line_rate_s}


def watch_until_end(looks: Iterator[WatchedRun]) -> Iterator[WatchedRun]:
    """Yield looks at a run up to the first one that finds it ended."""
    for look in looks:
        yield look
        if look.ended:
            return
