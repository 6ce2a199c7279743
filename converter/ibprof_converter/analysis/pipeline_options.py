# SPDX-License-Identifier: Apache-2.0
"""Options of the pipeline: fabrics and traffic to read, and the placement of the traffic on the fabrics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ibprof.errors import UsageError, quote_found

# Readers are imported only if files are named: --help needs only the options, and must be fast.
if TYPE_CHECKING:
    from ibprof.profile.profile_rows import RowChoice
    from ibprof_converter.routing.rail_files import RailFiles

TOP = 10
"""Default number of link directions that a report lists."""

REGION = "region"

OPERATION = "operation"
SITE = "site"

JOB = "job"
"""`--panels job` draws a panel per job; `--by` has no such value."""

Progress = Callable[[str], None]
"""Function that is called with the name of each stage when the stage starts."""


def no_progress(_stage: str) -> None:
    """Ignore the stages."""


def _choose_all_rows() -> RowChoice:
    from ibprof.profile.profile_rows import RowChoice  # noqa: PLC0415  (slow to import)

    return RowChoice()


@dataclass(frozen=True, slots=True)
class AttributeFiles:
    """The user's data on ranks and nodes.

    Attributes:
        ranks: CSV file with a column `rank`, then further columns.
        nodes: CSV file with a column `host`, `node` or `guid`, then further columns.
    """

    ranks: Path | None = None
    nodes: Path | None = None

    def files(self) -> Iterator[Path]:
        """Yield the files to read."""
        yield from filter(None, (self.ranks, self.nodes))


@dataclass(frozen=True, slots=True)
class FabricOptions:
    """The fabrics to read.

    Attributes:
        names: dumps, folders of dumps, or names of synthetic fabrics; one per rail.
        tables: files with forwarding tables, one per name. If empty: the files next to the dumps.
        host_names: pattern for the host's name in an adapter's description. If None: the first word.
        level_hosts: pattern for names of CAs at level 0. If None: the cabling decides.
        strict: true to raise an error if tables lead to nodes or links that are not in the dumps.
        name_map: file of node names; None: the file next to the dumps, if any.
        routes: source of routes, from `parse_routes`; None: the tables, else a model.
        interfaces: adapters that jobs use, as in `choose_interfaces`; None: the default.
    """

    names: tuple[str, ...]
    tables: tuple[str, ...] = ()
    host_names: re.Pattern[str] | None = None
    level_hosts: re.Pattern[str] | None = None
    strict: bool = False
    name_map: str | None = None
    routes: str | None = None
    interfaces: str | None = None

    def find_rails(self) -> list[RailFiles]:
        """Return the files of each rail."""
        from ibprof_converter.routing.rail_files import find_rails  # noqa: PLC0415  (slow to import)

        return find_rails(self.names, self.tables, self.name_map)

    def files(self) -> Iterator[Path]:
        """Yield the files to read, including files found next to the dumps."""
        for rail in self.find_rails():
            yield from rail.all()


@dataclass(frozen=True, slots=True)
class TrafficOptions:
    """The traffic, and the options that place it on a fabric.

    Attributes:
        names: profiles, recordings, tables or patterns, one per job.
        placements: rank placement of each job, in the order of jobs. If empty: as recorded.
        rails: policy for bytes without a measured rail. If None: the default policy.
        nic: policy that chooses a rank's adapter in one subnet; None: the measured or recorded adapter, else the
            default policy.
        by: columns by which the loads are split: any of `REGION`, `OPERATION` and `SITE`.
        counters: files of port counters to compare with the loads: one file, or a file before and a file after the run.
        adaptive: true to add bounds of adaptive routing even if no dump mentions it.
        strict: true if unroutable bytes are an error.
        flows_limit: largest number of flows of an all-to-all held in memory at once; None: no limit.
        inherited: true if placements, rails and nic come from the first run; traffic without ranks ignores them.
        chosen: the calls whose bytes are loaded onto links; by default all calls.
    """

    names: tuple[str, ...]
    placements: tuple[str, ...] = ()
    rails: str | None = None
    nic: str | None = None
    by: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    adaptive: bool = False
    strict: bool = False
    flows_limit: int | None = None
    inherited: bool = False
    chosen: RowChoice = field(default_factory=_choose_all_rows)

    def files(self) -> Iterator[Path]:
        """Yield the files to read. Patterns and placement rules are also yielded, as paths of missing files."""
        yield from map(Path, (*self.names, *self.counters, *self.placements))

    @property
    def over_hosts(self) -> bool:
        """True if patterns join hosts, not adapters: `placements` or `nic` choose the host or adapter of each rank."""
        return bool(self.placements or self.nic)


def parse_pattern(text: str) -> re.Pattern[str]:
    """Return a regular expression.

    Raises:
        UsageError: the text is not a regular expression.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"expected a regular expression, found {quote_found(text)}: {error}") from None


def parse_columns(text: str) -> tuple[str, ...]:
    """Convert names that are separated by commas to columns of loads (`REGION`, `OPERATION`, `SITE`).

    Raises:
        UsageError: a name is unknown.
    """
    columns = tuple(column.strip() for column in text.split(","))
    if unknown := set(columns) - {REGION, OPERATION, SITE}:
        raise UsageError(
            f"expected some of {REGION}, {OPERATION} and {SITE}, found {quote_found(', '.join(sorted(unknown)))}"
        )
    return columns


def split_names(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split names into fabrics and traffic. Traffic is the last name, and the names before it that look like traffic.

    Raises:
        UsageError: traffic comes before a fabric.
    """
    from ibprof_converter.routing.rail_files import has_links  # noqa: PLC0415  (slow to import)
    from ibprof_converter.routing.synthetic.spec import is_synthetic  # noqa: PLC0415
    from ibprof_converter.traffic.traffic_reader import is_traffic  # noqa: PLC0415

    first, last = len(names) - 1, names[-1]
    ends_with_fabric = first > 0 and (is_synthetic(last) or (not is_traffic(last) and has_links(Path(last))))
    if ends_with_fabric and is_traffic(names[0]):
        raise UsageError(
            f"fabrics come before traffic: expected ... {names[-1]} {names[0]}, found ... {names[0]} {names[-1]}"
        )
    while first > 0 and is_traffic(names[first - 1]) and not has_links(Path(names[first - 1])):
        first -= 1
    return tuple(names[:first]), _join_inspector_files(names[first:])


def _join_inspector_files(names: Sequence[str]) -> tuple[str, ...]:
    """Replace files of NCCL Inspector by their folders: the files of a folder are the traffic of one job."""
    from ibprof_converter.traffic.nccl_inspector import is_inspector_file  # noqa: PLC0415  (slow to import)

    if len(names) < 2:
        return tuple(names)
    joined: list[str] = []
    for name in names:
        is_part = is_inspector_file(Path(name))
        folder = str(Path(name).parent) if is_part else name
        if not (is_part and folder in joined):
            joined.append(folder)
    return tuple(joined)


def list_compared(own: TrafficOptions, names: Sequence[str], placements: Sequence[str]) -> list[TrafficOptions]:
    """Return the runs with which `own` is compared: the same jobs with other placements, or other traffics.

    Args:
        own: the run to compare with others.
        names: other traffics, one per run.
        placements: one placement per name; without names, one placement per job for each run.

    Raises:
        UsageError: there are too few or too many placements.
    """
    other = replace(own, counters=(), inherited=not placements)
    if not names:
        jobs = len(own.names)
        if len(placements) % jobs:
            raise UsageError(
                f"--compare-placement: expected {jobs} placements (one for each job) for each compared run, found "
                f"{len(placements)}"
            )
        firsts = range(0, len(placements), jobs)
        return [replace(other, placements=tuple(placements[first : first + jobs])) for first in firsts]
    if not placements:
        # The placement rule of `own` also applies to the other runs.
        shared = own.placements if len(own.placements) == 1 else ()
        return [replace(other, names=(name,), placements=shared) for name in names]
    if len(placements) != len(names):
        raise UsageError(
            f"--compare-placement: expected one for each of {len(names)} --compare, found {len(placements)}"
        )
    return [
        replace(other, names=(name,), placements=(placement,))
        for name, placement in zip(names, placements, strict=True)
    ]
