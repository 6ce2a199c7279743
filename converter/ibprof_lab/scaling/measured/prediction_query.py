# SPDX-License-Identifier: Apache-2.0
"""Predicted run times as a JSON document, tables and a picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ibprof.errors import InconsistentError, UsageError
from ibprof.load import load_profile
from ibprof.text.quantities import format_bytes, format_seconds, printable
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.route_choice import describe_routes, read_routed_rail
from ibprof_converter.routing.subnet import Subnet
from ibprof_lab.lab_choices import STRONG, UNITS, WEAK
from ibprof_lab.latency.outputs.delay_tables import new_table
from ibprof_lab.scaling.measured.call_costs import LinkSharing, TimedRun, read_calls
from ibprof_lab.scaling.measured.loggp import LogGP, read_loggp
from ibprof_lab.scaling.measured.split_prediction import find_scaling, predict_split, print_split, read_runs
from ibprof_lab.scaling.measured.time_prediction import OutOfRangeError, PredictedTime, TimeModel
from ibprof_lab.scaling.scaling_document import add_interval, show_notes, show_table
from ibprof_lab.scaling.scaling_queries import check_distinct, parse_formula

_RULES = ("packed", "spread")

_BLUE, _ORANGE = "#0b4f8a", "#d97706"


def query_prediction(
    runs: list[tuple[float | None, Path]],
    operations: str | None,
    delays: Path | None,
    unit: str,
    fabric: Path | None,
    placement: str | None,
    slots: int | None,
    scaling: str | None,
    n: float | None,
    processes: list[int] | None,
    figure: Path | None,
) -> dict[str, Any]:
    """Return predicted run times with intervals for each number of processes.

    Args:
        runs: problem size n (or None) and profile of each run.
        operations: formula of n for #op; None without `delays`.
        delays: file of measured delays; None to predict from the profiles alone.
        unit: unit of the delays if the file does not state it, from `UNITS`.
        fabric: fabric whose forwarding tables determine link sharing; None for no sharing.
        placement: rank placement on the fabric's hosts: `packed`, `spread` or `random:SEED`; None for `packed`.
        slots: number of ranks per host; None for the smallest number that gives every rank a slot.
        scaling: `STRONG` or `WEAK`. If None: with `delays`, `STRONG`; without `delays`, the scaling that the runs show.
        n: problem size for strong scaling; None for the problem size of the largest recorded run.
        processes: numbers of processes to predict for; None for powers of two within the valid range.
        figure: picture file of the curve; None for no picture.

    Raises:
        UsageError: a formula or the placement is invalid, a run is given twice, or an option is given without an option
            that it needs.
        InputError: a file cannot be read.
        InconsistentError: the runs do not determine a prediction, or `processes` or `n` is outside the valid range.
    """
    check_distinct([path for _, path in runs])
    if delays is None:
        needing = {"operations": operations, "fabric": fabric, "placement": placement, "slots": slots, "n": n}
        if lacking := next((name for name, given in needing.items() if given is not None), None):
            raise UsageError(f"--{lacking} needs --delays; without it, times are predicted from the profiles alone")
        parts, known = read_runs(runs, scaling)
        document = predict_split(parts, known or find_scaling(parts), known is None, processes)
        measured = [(run.processes, run.seconds) for run in parts]
    else:
        if operations is None or any(size is None for size, _ in runs):
            raise UsageError("--delays needs --operations, and the problem size of each run as N:PROFILE")
        of_size, network = parse_formula("--operations", operations), read_loggp(delays, UNITS[unit])
        sharing, notes = _find_sharing(fabric, placement, slots)
        recorded = [read_calls(load_profile(path), size or 0) for size, path in runs]
        document, measured = _predict_on_network(
            recorded, of_size, network, sharing, scaling or STRONG, n, processes, notes
        )
    if figure:
        _draw_prediction(figure, document, measured)
    return document


def _predict_on_network(
    recorded: list[TimedRun],
    operations: Callable[[float], float],
    network: LogGP,
    sharing: LinkSharing | None,
    scaling: str,
    n: float | None,
    processes: list[int] | None,
    notes: list[str],
) -> tuple[dict[str, Any], list[tuple[int, float]]]:
    """Return the document, and (p, seconds) of recorded runs that have the curve's problem size for their p."""
    runs = [run for run in recorded if run.processes > 1] or recorded
    try:
        model = TimeModel(
            runs,
            operations,
            network,
            sharing.share if sharing else lambda _pattern, _ranks: 1.0,
            sharing.most_ranks if sharing else None,
            network.longest,
        )
    except ValueError as error:
        raise InconsistentError(str(error)) from error
    size = n or max(runs, key=lambda run: (run.processes, run.size)).size
    if processes is None:
        curve, stop = _follow(model, scaling, size)
    else:
        curve, stop = [_predict(model, scaling, size, p) for p in processes], None
    notes = notes + [f"{run.name}: {note}" for run in runs for note in run.notes]
    # Runs with one process do not communicate; the only use of such runs is as base of the speed-up.
    alone = [run for run in recorded if run not in runs]
    bases = [run for run in alone if scaling == STRONG and run.size == size]
    base = (1, statistics.median(run.seconds for run in bases)) if bases else (curve[0].processes, curve[0].seconds)
    for run in alone:
        is_base = (
            "speed-up is relative to this run"
            if run in bases
            else "the run is left out, since the curve is for another problem size"
        )
        notes.append(f"{run.name}: a run of one process communicates nothing: {is_base}")
    document: dict[str, Any] = {
        "scaling": scaling,
        "base": {"processes": base[0], "seconds": base[1]},
        "network": _describe_network(network),
        "range": {"processes": list(model.processes), "n": list(model.sizes)},
        "checks": [asdict(check) for check in model.checks],
        "curve": _describe_curve(curve, scaling, *base),
        "stop": stop,
        "notes": notes,
    }
    sizes = {row["processes"]: row["n"] for row in document["curve"]}
    shown = [run for run in runs if abs(sizes.get(run.processes, run.size) / run.size - 1) < 1e-6]
    return document, [(run.processes, run.seconds) for run in shown]


def _find_sharing(
    fabric: Path | None, placement: str | None, slots: int | None
) -> tuple[LinkSharing | None, list[str]]:
    if fabric is None:
        return None, [
            "without --fabric, messages are assumed to share no links: communication may take longer than predicted"
        ]
    rails = find_rails([fabric])
    if len(rails) > 1:
        raise UsageError(f"--fabric {fabric}: expected one rail, found {len(rails)}")
    placement = placement or _RULES[0]
    if placement not in _RULES and not placement.startswith("random:"):
        raise UsageError(f"--placement {placement}: expected packed, spread or random:SEED")
    subnet: Subnet = read_routed_rail(rails[0])
    notes = [note for note in [describe_routes([subnet])] if note]
    return LinkSharing(subnet, placement, slots), notes


def _predict(model: TimeModel, scaling: str, size: float, processes: int) -> PredictedTime:
    try:
        return model.predict(model.weak_size(processes) if scaling == WEAK else size, processes)
    except OutOfRangeError as error:
        raise InconsistentError(f"no prediction: {error}") from error


def _follow(model: TimeModel, scaling: str, size: float) -> tuple[list[PredictedTime], str | None]:
    """Return predictions for powers of two in the valid range, and the reason if the curve ends earlier (else None)."""
    least, most = model.processes
    curve: list[PredictedTime] = []
    for power in range(math.ceil(math.log2(least)), int(math.log2(most)) + 1):
        try:
            curve.append(_predict(model, scaling, size, 1 << power))
        except InconsistentError as error:
            if len(curve) < 2:  # a curve needs two points
                raise
            return curve, f"ends at {curve[-1].processes} processes: {str(error).removeprefix('no prediction: ')}"
    return curve, None


def _describe_network(network: LogGP) -> dict[str, Any]:
    return {
        "segments": [
            {
                "bytes": [segment.first, segment.last],
                **{
                    name: [value.value, value.low, value.high]
                    for name, value in (("start_s", segment.start), ("s_per_byte", segment.per_byte))
                },
            }
            for segment in network.segments
        ],
        "pairs": network.pairs,
        "misfit": network.misfit,
    }


def _describe_curve(
    curve: Sequence[PredictedTime], scaling: str, processes: int, seconds: float
) -> list[dict[str, Any]]:
    """Return a row per prediction. The base of the speed-up is a run of `processes` processes in `seconds`."""
    rows = []
    for each in curve:
        ratio = seconds / each.seconds
        rows.append(
            {
                "processes": each.processes,
                "n": each.size,
                "seconds": each.seconds,
                "low": each.low,
                "high": each.high,
                "computing": each.computing,
                "operations": each.groups,
                "speed_up": ratio if scaling == STRONG else ratio * each.processes / processes,
                "efficiency": ratio * processes / each.processes if scaling == STRONG else ratio,
                "beyond": each.beyond,
            }
        )
    return rows


def print_prediction(console: Console, document: dict[str, Any]) -> None:
    """Print predictions: the summary, the curve, the network, and the check of each run against all other runs."""
    if "parts" in document:
        print_split(console, document)
        return
    curve, (least, most) = document["curve"], document["range"]["processes"]
    best = min(curve, key=lambda row: row["seconds"])
    kind = "Weak scaling" if document["scaling"] == "weak" else f"Strong scaling of n = {curve[0]['n']:g}"
    console.print(
        Text(
            f"{kind}: {_time(curve[-1])} with {curve[-1]['processes']} processes, an efficiency of "
            f"{curve[-1]['efficiency']:.0%} compared with {document['base']['processes']} processes; "
            f"the time is shortest with {best['processes']} processes. "
            f"Predictions hold for {least:g} to {most:g} processes.",
            style="bold",
        )
    )
    table = new_table("p", "n", "wall time (95% interval)", "computing", "MPI", "mostly", "efficiency", "beyond")
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
            add_interval([format_seconds(each) for each in start]),
            add_interval(rates),
        )
    show_table(
        console,
        f"network, fitted to the delays of {document['network']['pairs']} pairs; largest error of the fit: "
        f"{document['network']['misfit']:.0%}",
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


def _draw_prediction(path: Path, document: dict[str, Any], runs: Sequence[tuple[int, float]]) -> None:
    """Draw wall time over processes.

    Args:
        path: png, svg or pdf file.
        document: result of `query_prediction`.
        runs: (p, seconds) of the recorded runs.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    figure = Figure(figsize=(8, 5), dpi=150, layout="constrained")
    axes = figure.subplots()
    curve = document["curve"]
    p = [row["processes"] for row in curve]
    axes.fill_between(
        p, [row["low"] for row in curve], [row["high"] for row in curve], color=_BLUE, alpha=0.2, label="95% interval"
    )
    axes.plot(p, [row["seconds"] for row in curve], color=_BLUE, marker=".", label="predicted wall time")
    axes.plot(p, [row["computing"] for row in curve], color=_BLUE, lw=1, ls=":", label="predicted computing time")
    axes.plot(*zip(*runs, strict=True) if runs else ([], []), "o", color=_ORANGE, label="recorded")
    axes.set(xscale="log", yscale="log", xlabel="processes", ylabel="seconds", title=f"{document['scaling']} scaling")
    axes.set_xticks(p, [str(each) for each in p])
    axes.legend(fontsize=8)
    figure.savefig(path)
