# SPDX-License-Identifier: Apache-2.0
"""A comparison of placements as a table on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ibprof.text.quantities import format_seconds, printable
from ibprof_converter.placement.candidates import PlacementComparison
from ibprof_converter.traffic.rail_bounds import STATIC

_ROW_NAMES = {
    "best": "best found",
    "given": "current",
    "random": "random, median of 20",
    "random_best": "random, best of 20",
}


def print_placements(console: Console, comparison: PlacementComparison) -> None:
    """Print the largest link times of each placement.

    Args:
        console: the output; its markup must be off, since names are untrusted text.
        comparison: the placements.
    """
    best, bounds = comparison.rows[0].bottleneck_seconds, comparison.bounds
    table = Table(box=None, pad_edge=False)
    columns = ("placement", "most loaded link", "best is lower by", "most loaded link between switches")
    for column in (*columns, "busiest access link of a host"):
        table.add_column(column, justify="left" if column == "placement" else "right")
    for row in comparison.rows:
        # A time that leaves out other bytes than the best one's says nothing about it.
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
    said = f"{found.proposals:,} changes tried, {found.accepted:,} made, in {found.seconds:.1f} s"
    if comparison.load_basis == STATIC and bounds.bottleneck_seconds > 0:
        said += f"; no placement is more than {(1 - bounds.bottleneck_seconds / best) * 100 if best else 0:.0f}% better"
    console.print(Text(said))
    for note in (*comparison.notes, comparison.limits):
        console.print(Text(f"note: {printable(note)}"))
