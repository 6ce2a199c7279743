# SPDX-License-Identifier: Apache-2.0
"""`ibprof watch`: show bytes and time of a running job by region and line, and its most loaded links."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import sleep, time_ns
from typing import TYPE_CHECKING, Any

from ibprof.cli.command import command, make_parser, print_captured, print_json
from ibprof.errors import InputError
from ibprof.text.quantities import format_bytes, format_seconds, name_call, printable, shorten_site
from ibprof_converter.analysis.pipeline_options import FabricOptions, TrafficOptions
from ibprof_converter.cli.arguments import number_in

if TYPE_CHECKING:
    from rich.console import Group

    from ibprof.profile.call_report import CallSum
    from ibprof.profile.profile_data import Profile, Rank
    from ibprof_converter.analysis.pipeline_results import RoutedFabric
    from ibprof_converter.hotspots.hot_links import Hotspot

NAME = "ibprof watch"

_SHOWN = 10
"""Number of rows in the table of calls."""

_LINKS = 5
"""Number of link directions in the list."""

_EXAMPLE = """\
examples:
  ibprof watch
  ibprof watch profile.ibprof --fabric ibdiagnet.lst
  ibprof watch profile.ibprof --once --json
"""

KEYS = ("region", "operation", "site")


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """State of a recorded run at one moment.

    Attributes:
        ended: true if all processes of the run ended.
        elapsed_s: seconds from the start of the first process to the end of the last process, or to now.
        ranks_recorded: number of recorded ranks.
        ranks_finalized: number of ranks that passed MPI_Finalize.
        calls: sums for each combination of `KEYS`, sorted by time, then bytes, descending.
        links: the link directions with the longest times at line rate; empty without a fabric.
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
            "links": [
                {"link": _name_direction(each), "rail": each.rail, "bytes": each.bytes, "line_rate_s": each.line_rate_s}
                for each in self.links
            ],
        }


@command(NAME)
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof watch`."""
    arguments = _parser().parse_args(argv)
    from ibprof_converter.analysis.pipeline_stages import read_routed_fabric  # noqa: PLC0415  (--help needs none of it)

    fabric = read_routed_fabric(FabricOptions(tuple(arguments.fabric))) if arguments.fabric else None
    placement = tuple(arguments.placement or ())
    if arguments.once:
        _print(look_at_run(arguments.recording, fabric, placement), arguments.json)
        return
    looks = _look_until_end(arguments.recording, fabric, placement, arguments.every)
    if arguments.json:
        for look in looks:
            print_json(look.as_json(), indent=None)
            sys.stdout.flush()
        return
    from rich.live import Live  # noqa: PLC0415  (slow to import)

    last = None
    with Live(auto_refresh=False, transient=True) if sys.stdout.isatty() else nullcontext() as live:
        for last in looks:
            if live:
                live.update(_show(last), refresh=True)
            elif not last.ended:
                print(_describe_state(last), flush=True)
    if last:
        _print(last, as_json=False)


def _look_until_end(
    recording: Path, fabric: RoutedFabric | None, placement: tuple[str, ...], every_s: float
) -> Iterator[WatchedRun]:
    """Yield the state of a run every `every_s` seconds until the run ends. Print a message until a recording exists."""
    said = ""
    while True:
        try:
            look = look_at_run(recording, fabric, placement)
        except InputError as error:
            # wait: the recording has no files yet
            if str(error) != said:
                said = str(error)
                print(printable(f"{NAME}: waiting: {said}"), file=sys.stderr, flush=True)
        else:
            yield look
            if look.ended:
                return
        sleep(every_s)


def look_at_run(recording: Path, fabric: RoutedFabric | None, placement: tuple[str, ...]) -> WatchedRun:
    """Return the current state of the newest run in a recording.

    Args:
        recording: folder of the recording; processes may still write to it.
        fabric: fabric whose link loads are computed. If None: the state has no links.
        placement: rank placement. If empty: the recorded placement.

    Raises:
        InputError: the recording is still empty.
    """
    # --help does not need the analysis, which is slow to import.
    from ibprof.load import load_profile  # noqa: PLC0415
    from ibprof.profile.call_report import sum_calls  # noqa: PLC0415
    from ibprof_converter.analysis.pipeline_stages import load_traffic  # noqa: PLC0415

    run = load_profile(recording)
    if _has_ended(run):
        # A process may record its end and exit between the reading and the check: a second reading has all ends.
        run = load_profile(recording)
    links: tuple[Hotspot, ...] = ()
    if fabric:
        options = TrafficOptions((str(recording),), placements=placement)
        links = load_traffic(fabric, options).most_loaded(_LINKS)
    rows = sorted(sum_calls(run, KEYS), key=lambda row: (-(row.time_s or 0), -row.bytes))
    stops = [rank.stop_ns for rank in run.ranks]
    ended = _has_ended(run)
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


def _has_ended(run: Profile) -> bool:
    """Return true if all ranks of the run were recorded, and all their processes have ended."""
    return not any(_runs_on(run, rank) for rank in run.ranks) and run.ranks_recorded >= run.world_size


def _runs_on(run: Profile, rank: Rank) -> bool:
    """Return true if a rank's process may still run; on another host, true until its end is recorded."""
    if rank.stop_ns is not None:
        return False
    if run.hosts[rank.host].name != socket.gethostname():
        return True
    try:
        os.kill(rank.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # the process exists, but belongs to another user
        return True
    return True


def _print(look: WatchedRun, as_json: bool) -> None:
    if as_json:
        print_json(look.as_json())
    else:
        print_captured(lambda console: console.print(_show(look)))


def _describe_state(look: WatchedRun) -> str:
    killed = look.ranks_recorded - look.ranks_finalized
    state = (f"ended, {killed} killed" if killed else "ended") if look.ended else "running"
    return printable(
        f"{look.command}: {state}, {format_seconds(look.elapsed_s)}, {look.ranks_recorded} of {look.world_size} ranks "
        f"recorded, {look.ranks_finalized} past MPI_Finalize, {format_bytes(look.bytes)} sent"
    )


def _show(look: WatchedRun) -> Group:
    from rich.console import Group  # noqa: PLC0415  (slow to import)
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    calls = Table("region", "operation", "line", "time, all ranks", "bytes", box=None, pad_edge=False)
    for each in look.calls[:_SHOWN]:
        region, operation, site = map(printable, each.key)
        call = Text(name_call(operation))
        time = "" if each.time_s is None else format_seconds(each.time_s)
        calls.add_row(Text(region), call, Text(shorten_site(site)), time, format_bytes(each.bytes))
    links = Table("most loaded links so far", "time at line rate", "bytes", box=None, pad_edge=False)
    for spot in look.links:
        least = "" if spot.line_rate_s is None else format_seconds(spot.line_rate_s)
        links.add_row(Text(printable(_name_direction(spot))), least, format_bytes(spot.bytes))
    return Group(Text(_describe_state(look)), "", calls, *(("", links) if look.links else ()))


def _name_direction(spot: Hotspot) -> str:
    return f"{spot.sender} -> {spot.receiver.node}"


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        NAME,
        "Show the recording of a running job until the job ends: bytes and time by region and line. With a fabric, "
        "also show the most loaded links so far.",
        _EXAMPLE,
    )
    parser.add_argument(
        "recording",
        metavar="RECORDING",
        nargs="?",
        type=Path,
        default=Path("profile.ibprof"),
        help="the folder of the recording (default: %(default)s)",
    )
    parser.add_argument(
        "--fabric", metavar="LST", nargs="+", default=[], help="the fabric, to show the most loaded links"
    )
    parser.add_argument(
        "--placement", metavar="HOW", action="append", help="hosts of the ranks, if they differ from the recorded hosts"
    )
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=number_in(0.1, 3600),
        default=2.0,
        help="seconds between two updates (default: 2)",
    )
    parser.add_argument("--once", action="store_true", help="print the state once, and end")
    parser.add_argument(
        "--json", action="store_true", help="print each state as a JSON object; without --once, one object on each line"
    )
    return parser
