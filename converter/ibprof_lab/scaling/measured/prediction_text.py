# SPDX-License-Identifier: Apache-2.0
"""Predicted run times as tables, made of the document that `--json` prints."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from ibprof.text.quantities import format_bytes, format_seconds, printable
from ibprof_lab.scaling.scaling_text import new_table, show_notes, show_table


def print_prediction(console: Console, document: dict[str, Any]) -> None:
    """Print predictions: the sentence, the curve, the network, and each run predicted from the others."""
    curve, (least, most) = document["curve"], document["range"]["processes"]
    best = min(curve, key=lambda row: row["seconds"])
    kind = "Weak scaling" if document["scaling"] == "weak" else f"Strong scaling of n = {curve[0]['n']:g}"
    console.print(
        Text(
            f"{kind}: {_time(curve[-1])} with {curve[-1]['processes']} processes, an efficiency of "
            f"{curve[-1]['efficiency']:.0%} compared with {curve[0]['processes']}; shortest with {best['processes']}. "
            f"Predictions hold for {least:g} to {most:g} processes.",
            style="bold",
        )
    )
    table = new_table("p", "n", "wall time (95% interval)", "computing", "MPI", "most of it", "efficiency", "beyond")
    for row in curve:
        inside = sum(row["operations"].values())
        most_of = max(row["operations"], key=lambda name: row["operations"][name], default="")
        table.add_row(
            str(row["processes"]),
            f"{row['n']:.6g}",
            _time(row),
            format_seconds(row["computing"]),
            format_seconds(inside),
            printable(most_of) if inside else "",
            f"{row['efficiency']:.0%}",
            "" if row["beyond"] <= 1 else f"{row['beyond']:.3g} times",
        )
    show_table(console, "predicted", table)
    table = new_table("messages", "L + 2o (95% interval)", "1 / G (95% interval)")
    for segment in document["network"]["segments"]:
        first, last = segment["bytes"]
        start, slope = segment["start_s"], segment["s_per_byte"]
        rates = [format_bytes(1 / each) + "/s" if each else "infinite" for each in (slope[0], slope[2], slope[1])]
        table.add_row(
            f"{format_bytes(first)} to {format_bytes(last)}",
            _with_interval([format_seconds(each) for each in start]),
            _with_interval(rates),
        )
    show_table(
        console,
        f"network, from {document['network']['pairs']} pairs; {document['network']['misfit']:.0%} off at most",
        table,
    )
    table = new_table("run", "n", "p", "measured", "predicted from the others", "error")
    for check in document["checks"]:
        table.add_row(
            printable(check["name"]),
            f"{check['size']:g}",
            str(check["processes"]),
            format_seconds(check["measured"]),
            format_seconds(check["predicted"]),
            f"{check['predicted'] / check['measured'] - 1:+.1%}",
        )
    show_table(console, "recorded runs", table)
    show_notes(console, [*filter(None, [document["stop"]]), *document["notes"]])


def _time(row: dict[str, Any]) -> str:
    return f"{format_seconds(row['seconds'])} ({format_seconds(row['low'])} to {format_seconds(row['high'])})"


def _with_interval(texts: list[str]) -> str:
    """Return a value with the ends of its interval; two processes alone show none."""
    value, low, high = texts
    return value if low == high else f"{value} ({low} to {high})"
