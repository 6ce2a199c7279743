# SPDX-License-Identifier: Apache-2.0
"""Compare the best found placement with the current, simple and random placements, as JSON and as a table."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ibprof.profile.missing_data import StageAccount, accounts_as_json
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import format_bytes, format_seconds, printable
from ibprof_converter.fabric.fabric_graph import InterfaceChoice, NodeKind
from ibprof_converter.placement.placement_problem import PlacementProblem, SlotOfRank
from ibprof_converter.placement.starting_placements import random_slots
from ibprof_converter.placement.swap_search import SearchResult, TimeBounds
from ibprof_converter.routing.adaptive_bounds import estimate_adaptive
from ibprof_converter.routing.adaptive_paths import AdaptivePaths
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.link_loads import STATIC

if TYPE_CHECKING:
    from rich.console import Console

RANDOM_SEEDS = 20

_ROOM = 0.005
"""A placement is optimal if its time exceeds the lower bound by less than this fraction."""

STOPPED_BY_CLOCK = (
    "the time limit ended the search early: a larger --time may give a better placement, and a repeated search another "
    "placement"
)
"""Note that the clock ended the search; it is left out if the placement is optimal."""

LIMITS = (
    "times are bytes over data rate, summed over the whole job along static routes. Queueing, latency, other "
    "jobs and the moments of sending are left out. Placements with nearly equal times may rank differently in practice"
)

ADAPTIVE_LIMITS = (
    "switches route adaptively, and times are computed from estimated loads. The search uses static routes. The result "
    "has the best estimate among the placements found, the starting placements and random placements. No lower bound "
    "is known"
)

_ROW_NAMES = {
    "best": "best found",
    "given": "current",
    "random": "random, median of 20",
    "random_best": "random, best of 20",
}


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate placement.

    Attributes:
        name: how the placement was made, such as `best`, `given` or `random`.
        bottleneck_seconds: largest time of a link direction, in seconds.
        max_link_seconds: largest time of a link direction between switches, in seconds.
        host_link_seconds: largest time of a link direction of a host.
        lost_bytes: bytes without a route; the times do not include these bytes.
    """

    name: str
    bottleneck_seconds: float
    max_link_seconds: float
    host_link_seconds: float
    lost_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class PlacementComparison(NotebookView):
    """The placement that a search found, compared with other placements.

    Attributes:
        rows: the compared placements, the best one first.
        hosts: host of each rank in the best placement.
        nic: how each rank's adapter was chosen, such as `modelled:rank`; None if no host has several adapters on one
            rail.
        load_basis: `static` for loads along forwarding tables; `estimate` with adaptive routing, without lower bounds.
        routes: source of routes, one of `tables`, `modelled:MODEL` and `opensm:ENGINE`.
        free_hosts, slots: number of hosts from which the search chose, and number of their slots.
        notes: sentences on gaps, modelled data and further facts.
        accounts: for each processing stage, the bytes, ranks or hosts that the stage kept and left out.
        interfaces: the choice of adapters; None if all adapters are used.
    """

    rows: tuple[CandidateRow, ...]
    bounds: TimeBounds
    found: SearchResult
    hosts: tuple[str, ...]
    free_hosts: int
    slots: int
    notes: tuple[str, ...]
    accounts: tuple[StageAccount, ...] = ()
    nic: str | None = None
    load_basis: str = STATIC
    routes: str | None = None
    interfaces: InterfaceChoice | None = None

    @property
    def limits(self) -> str:
        """Sentences on the computation of the times, and on effects that the times leave out."""
        return LIMITS if self.load_basis == STATIC else ADAPTIVE_LIMITS

    def __repr__(self) -> str:
        times = ", ".join(f"{row.name} {format_seconds(row.bottleneck_seconds)}" for row in self.rows)
        return f"<PlacementComparison of {len(self.hosts)} ranks: most loaded link {times}>"

    def as_json(self) -> dict[str, object]:
        """Return the comparison as a JSON object."""
        best, bounds = self.rows[0].bottleneck_seconds, self.bounds
        found = self.found
        return {
            "bottleneck_seconds": {row.name: row.bottleneck_seconds for row in self.rows}
            | {"bound": bounds.bottleneck_seconds},
            "max_link_seconds": {row.name: row.max_link_seconds for row in self.rows} | {"bound": bounds.max_seconds},
            "host_link_seconds": {row.name: row.host_link_seconds for row in self.rows},
            "lost_bytes": {row.name: row.lost_bytes for row in self.rows},
            "above_bound": best / bounds.bottleneck_seconds - 1 if bounds.bottleneck_seconds > 0 else None,
            "ranks": len(self.hosts),
            "free_hosts": self.free_hosts,
            "seats": self.slots,
            "search": {
                "seconds": found.seconds,
                "cut_by_time": found.stopped_by_clock,
                "rounds": found.rounds,
                "proposals": found.proposals,
                "accepted": found.accepted,
            },
            "placement": list(self.hosts),
            "nic": self.nic,
            "interfaces": asdict(self.interfaces) if self.interfaces else None,
            "load_basis": self.load_basis,
            "routes": self.routes,
            "limits": self.limits,
            "notes": list(self.notes),
            "coverage": accounts_as_json(self.accounts),
        }


class CandidateTimes:
    """Computes the largest link times of different placements of one problem.

    Args:
        subnets: subnet of each column of `RankSlots.lid`; several columns may have the same subnet.
        is_adaptive: true if switches route adaptively; then the times between switches are estimates.
    """

    def __init__(self, problem: PlacementProblem, subnets: Sequence[Subnet], is_adaptive: bool = False) -> None:
        self._problem = problem
        self._subnets = tuple(subnets)
        distinct = {id(subnet): subnet for subnet in subnets} if is_adaptive else {}
        self._adaptive = [(each, AdaptivePaths(each.routes.network, each.adaptive)) for each in distinct.values()]

    def row(self, name: str, slot_of_rank: SlotOfRank) -> CandidateRow:
        """Return the times of one placement."""
        load = self._problem.load(slot_of_rank)
        score = self._problem.score_load(load)
        seconds = self._estimate_max_seconds(slot_of_rank) if self._adaptive else score.max_seconds
        host = self._problem.host_seconds(load)
        return CandidateRow(name, max(seconds, host), seconds, host, score.lost)

    def random_rows(self) -> tuple[CandidateRow, CandidateRow]:
        """Return two rows for `RANDOM_SEEDS` random placements: the median times, and the best placement's times."""
        problem = self._problem
        rows = [self.row("random", random_slots(problem.slots, problem.ranks, seed)) for seed in range(RANDOM_SEEDS)]
        median = CandidateRow(
            "random",
            statistics.median(row.bottleneck_seconds for row in rows),
            statistics.median(row.max_link_seconds for row in rows),
            statistics.median(row.host_link_seconds for row in rows),
            int(statistics.median(row.lost_bytes for row in rows)),
        )
        return median, replace(min(rows, key=order_of_row), name="random_best")

    def _estimate_max_seconds(self, slot_of_rank: SlotOfRank) -> float:
        neighbours, slots = self._problem.neighbours, self._problem.slots
        port = slots.port_of_slot[slot_of_rank]
        source, destination = port[neighbours.owner()], port[neighbours.rank]
        row = neighbours.row_of_rails[slots.rails[source] & slots.rails[destination]]
        sent = neighbours.sent[np.arange(len(row)), row].astype(np.uint64)
        largest = 0.0
        for subnet, paths in self._adaptive:
            columns = [rail for rail, other in enumerate(self._subnets) if other is subnet]
            flows = [(slots.lid[source, rail], slots.lid[destination, rail], sent[:, rail]) for rail in columns]
            fabric = subnet.fabric
            between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
            seconds_per_byte = 8e-9 / np.nan_to_num(fabric.link_gbps, nan=np.inf)
            seconds = estimate_adaptive(paths, flows) * seconds_per_byte[:, np.newaxis]
            largest = max(largest, float(seconds[between].max(initial=0.0)))
        return largest


def order_of_row(row: CandidateRow) -> tuple[int, float, float]:
    """Return a sort key of a candidate; the best candidate has the smallest key."""
    return row.lost_bytes, row.bottleneck_seconds, row.max_link_seconds


def describe_unrouted_candidates(comparison: PlacementComparison) -> Iterator[str]:
    """Yield a sentence if the current placement leaves bytes without a route."""
    for row in comparison.rows:
        if row.name == "given" and row.lost_bytes:
            yield f"The current placement leaves {format_bytes(row.lost_bytes)} without a route."


def print_placements(console: Console, comparison: PlacementComparison) -> None:
    """Print a table of the placements and their largest link times.

    Args:
        console: the output, with markup off: names are untrusted text.
    """
    from rich.table import Table  # noqa: PLC0415  (slow to import)
    from rich.text import Text  # noqa: PLC0415

    best, bounds = comparison.rows[0].bottleneck_seconds, comparison.bounds
    table = Table(box=None, pad_edge=False)
    columns = ("placement", "most loaded link", "best is lower by", "most loaded link between switches")
    for column in (*columns, "most loaded access link of a host"):
        table.add_column(column, justify="left" if column == "placement" else "right")
    for row in comparison.rows:
        # Show a gain only if both placements leave the same number of bytes without a route.
        comparable = row.bottleneck_seconds and row.lost_bytes == comparison.rows[0].lost_bytes and row.name != "best"
        gain = f"{(1 - best / row.bottleneck_seconds) * 100:.0f}%" if comparable else ""
        table.add_row(
            _ROW_NAMES.get(row.name, row.name),
            format_seconds(row.bottleneck_seconds) + (f" + {row.lost_bytes} B lost" if row.lost_bytes else ""),
            gain,
            format_seconds(row.max_link_seconds),
            format_seconds(row.host_link_seconds),
        )
    if comparison.load_basis == STATIC:
        table.add_row(
            "lower bound", format_seconds(bounds.bottleneck_seconds), "", format_seconds(bounds.max_seconds), ""
        )
    console.print(
        Text(f"{len(comparison.hosts)} ranks, {comparison.slots} slots on {comparison.free_hosts} hosts to choose from")
    )
    console.print(table)
    found = comparison.found
    summary = (
        f"the search tried {found.proposals:,} changes and made {found.accepted:,} of them in {found.seconds:.1f} s"
    )
    notes = comparison.notes
    if comparison.load_basis == STATIC and bounds.bottleneck_seconds > 0:
        room = 1 - bounds.bottleneck_seconds / best if best else 0.0
        if room < _ROOM:
            notes = tuple(each for each in notes if each != STOPPED_BY_CLOCK)
        summary += (
            f"; no placement can be more than {room:.0%} better" if room >= _ROOM else "; this placement is optimal"
        )
    console.print(Text(summary))
    for note in (*notes, comparison.limits):
        console.print(Text(f"note: {printable(note)}"))
