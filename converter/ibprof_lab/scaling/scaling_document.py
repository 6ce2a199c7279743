# SPDX-License-Identifier: Apache-2.0
"""Results of scaling models as JSON documents and as tables. In JSON, infinite and unknown values are null."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ibprof.text.quantities import format_bytes, format_seconds, printable
from ibprof_lab.latency.outputs.delay_tables import new_table
from ibprof_lab.scaling.exchange_fit import ExchangeFit
from ibprof_lab.scaling.scaling_model import (
    AnalyticKernel,
    Cluster,
    Optimum,
    WorkShares,
    balance,
    find_optimum,
    performance,
    speed_up,
)
from ibprof_lab.scaling.scaling_study import RegionStudy, ScalingStudy
from ibprof_lab.scaling.top500 import correlate_with_rank, read_systems

Document = dict[str, Any]

NOT_MEANT = (
    "b_eff is not the bandwidth of a link, of a host or of a bisection. If all bytes of a system have this "
    "bandwidth, the model gives R_max; b_eff grows with the number of processes",
    "R_max per core is not a peak: the time of R_max includes communication",
    "a rank correlation is not a cause: both quantities come from R_max, by which the list is sorted",
)
"""Warnings against wrong readings of a TOP500-like list."""

_OPTIMUM = (
    ("p_half", "p_1/2, processes at half of the peak"),
    ("p_max", "p_max, processes at the largest performance"),
    ("l_max", "l_max, the largest performance"),
)


def describe_kernel(kernel: AnalyticKernel, cluster: Cluster, processes: list[int]) -> Document:
    """Return the document of a kernel: formulas, curves, and optima by exact counts and by the slides' formulas."""
    exact, closed = find_optimum(kernel.exact, cluster), kernel.closed
    return _finite(
        {
            "kernel": kernel.name,
            "l_peak": cluster.peak,
            "bandwidth": cluster.bandwidth,
            "hardware_intensity": cluster.intensity,
            "software_intensity": kernel.exact.intensity,
            **{
                name: {"exact": getattr(exact, name), "slide": getattr(closed, name)}
                for name in ("p_half", "p_max", "l_max")
            },
            "formulas": [asdict(formula) for formula in kernel.formulas],
            "curve": [
                {
                    "processes": p,
                    "x": balance(kernel.exact, cluster, p),
                    "speed_up": speed_up(kernel.exact, cluster, p),
                    "performance": performance(kernel.exact, cluster, p),
                    "speed_up_simplified": speed_up(kernel.approximate, cluster, p),
                }
                for p in processes
            ],
            "notes": list(kernel.notes),
        }
    )


def describe_shares(shares: WorkShares) -> Document:
    """Return the document of the model for processing units of different speed."""
    return _finite(asdict(shares))


def describe_list(path: Path, unit: str | None, word: float) -> Document:
    """Return the document of a TOP500-like list; arguments and errors as for `read_systems`."""
    systems = read_systems(path, unit, word)
    return _finite(
        {
            "systems": [{**asdict(each), "per_core": each.per_core} for each in systems],
            "rank_correlation": correlate_with_rank(systems),
            "notes": list(NOT_MEANT),
        }
    )


def describe_study(study: ScalingStudy, between: str) -> Document:
    """Return the document of `ScalingStudy` results."""
    first = study.regions[0] if study.regions else None
    return _finite(
        {
            "n": study.size,
            "l_peak": study.cluster.peak,
            "bandwidth": study.cluster.bandwidth,
            "between": f"{between}s",
            "first_to_stop": first.name if first and math.isfinite(first.optimum.p_max) else None,
            "whole": _describe_region(study.whole),
            "regions": [_describe_region(region) for region in study.regions],
            "notes": list(study.notes),
        }
    )


def _describe_region(region: RegionStudy) -> Document:
    optimum: Optimum = region.optimum
    return {
        "name": region.name,
        "operations": region.operations,
        "exchange": _describe_fit(region.fit) if region.fit else None,
        **asdict(optimum),
        "curve": [asdict(each) for each in region.predictions],
        "got": [asdict(each) for each in region.got],
        "bytes_by_operation": dict(region.by_operation),
    }


def _describe_fit(fit: ExchangeFit) -> Document:
    return {
        "form": str(fit.form),
        "coefficient": asdict(fit.coefficient),
        "scatter": fit.scatter,
        "points": fit.points,
        "alternatives": [str(form) for form in fit.alternatives],
        "n_exponent": asdict(fit.size_exponent) if fit.size_exponent else None,
        "p_exponent": asdict(fit.process_exponent) if fit.process_exponent else None,
        "measured_n": fit.sizes,
        "measured_p": fit.processes,
    }


def _finite(document: Document) -> Document:
    """Return a document with null in place of infinity and nan, which JSON lacks."""
    return {key: _finite_value(each) for key, each in document.items()}


def _finite_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _finite(value)
    if isinstance(value, (list, tuple)):
        return [_finite_value(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show_table(console: Console, heading: str, table: Table) -> None:
    """Print a table under its heading."""
    console.print(Text(heading, style="bold"))
    console.print(Padding(table, (0, 0, 1, 2)))


def show_notes(console: Console, notes: Sequence[str]) -> None:
    """Print notes, a line each."""
    for note in notes:
        console.print(Text(f"note: {printable(note)}"))


def _number(value: float | None, none: str = "none") -> str:
    if value is None:
        return none
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.5g}"


def _flops(value: float | None) -> str:
    return "none" if value is None else format_bytes(value).replace("B", "Flop/s")


def _rate(value: float | None) -> str:
    return "unknown" if value is None else format_bytes(value) + "/s"


def print_kernel(console: Console, document: Document) -> None:
    """Print a kernel: optimum, formulas, curve."""
    table = new_table("", "exact", "slide")
    for key, label in _OPTIMUM:
        write = _flops if key == "l_max" else _number
        table.add_row(label, write(document[key]["exact"]), write(document[key]["slide"]))
    show_table(console, f"{document['kernel']}: limits of scaling", table)
    table = new_table("quantity", "value", "slide", "formula")
    table.columns[3].justify = "left"
    for each in document["formulas"]:
        table.add_row(each["quantity"], _number(each["value"]), str(each["slide"]), each["text"])
    show_table(console, "the slides' formulas", table)
    table = new_table("p", "x", "speed-up", "performance", "speed-up, simplified")
    for each in document["curve"]:
        table.add_row(
            str(each["processes"]),
            _number(each["x"], "no communication"),
            _number(each["speed_up"]),
            _flops(each["performance"]),
            _number(each["speed_up_simplified"]),
        )
    show_table(console, "predicted by the model", table)
    show_notes(console, document["notes"])


def print_shares(console: Console, document: Document) -> None:
    """Print different processing units."""
    table = new_table("unit", "operations", "data", "l_peak", "a_k, Flop/B", "x_k", "time")
    for number, each in enumerate(document["units"]):
        table.add_row(
            f"{number}{' *' if number == document['slowest'] else ''}",
            f"{each['operations']:.4g}",
            f"{each['data']:.4g}",
            _flops(each["peak"]),
            _number(each["intensity"]),
            _number(each["balance"], "no communication"),
            format_seconds(each["time"]),
        )
    show_table(console, "processing units (* determines the time)", table)
    console.print(
        f"time {format_seconds(document['time'])}, performance {_flops(document['performance'])}, "
        f"speed-up {_number(document['speed_up'])}"
    )


def print_systems(console: Console, document: Document) -> None:
    """Print the effective bandwidths of the systems in a TOP500-like list."""
    table = new_table("rank", "system", "R_max", "N_max", "per core", "b_eff")
    table.columns[1].justify = "left"
    left_out = 0
    for each in document["systems"]:
        if each["bandwidth"] is None:
            left_out += 1
            continue
        table.add_row(
            str(each["rank"]),
            printable(each["name"]),
            _flops(each["r_max"]),
            _number(each["n_max"]),
            _flops(each["per_core"]),
            _rate(each["bandwidth"]),
        )
    show_table(console, "effective bandwidth in Linpack (slide 22)", table)
    for name, value in document["rank_correlation"].items():
        correlation = "unknown" if value is None else f"{value:.3f}"
        console.print(f"rank correlation of {name} with the list's order: {correlation} (-1: predicts the order best)")
    if left_out:
        console.print(f"note: {left_out} systems without N_max are left out")
    show_notes(console, document["notes"])


def print_study(console: Console, document: Document) -> None:
    """Print the regions, curves and bandwidths of a study."""
    regions = [document["whole"], *document["regions"]]
    table = new_table("region", "#x(n, p)", "95%", "p_1/2", "p_max", "l_max")
    table.columns[1].justify = "left"
    for each in regions:
        exchange, interval = each["exchange"], ""
        if exchange:
            of = exchange["coefficient"]
            interval = "one point" if of["low"] is None else f"{of['low']:.4g} to {of['high']:.4g}"
        table.add_row(
            _name(each),
            f"{exchange['coefficient']['value']:.6g} B x {exchange['form']}" if exchange else "nothing",
            interval,
            _number(each["p_half"]),
            _number(each["p_max"]),
            _flops(each["l_max"]),
        )
    between = document["between"]
    title = f"measured bytes between {between}, and the limits of scaling for n = {document['n']:g}"
    show_table(console, title, table)
    for each in regions:
        if each["exchange"] and each["exchange"]["alternatives"]:
            forms = ", ".join(each["exchange"]["alternatives"])
            console.print(f"note: for {_name(each)} these forms of #x fit as well: {forms}")
    if document["first_to_stop"] is not None:
        console.print(Text(f"stops scaling first: {printable(document['first_to_stop'])}", style="bold"))
    console.print()
    table = new_table("p", *(_name(each) for each in regions), "#x", "r = #b / #x", "beyond the data")
    for row, p in enumerate(each["processes"] for each in document["whole"]["curve"]):
        curves = [each["curve"][row] if each["curve"] else None for each in regions]
        beyond = document["whole"]["curve"][row]["beyond"]
        table.add_row(
            str(p),
            *(_curve(point) for point in curves),
            format_bytes(document["whole"]["curve"][row]["exchanged"]),
            _with_interval(document["whole"]["curve"][row], "ratio"),
            "" if beyond <= 1 else f"{beyond:.3g} times",
        )
    show_table(console, "predicted speed-up (95% interval)", table)
    table = new_table("n", "p", "#x", "r = #b / #x", "wall", "computing, at least", "bandwidth achieved")
    for each in document["whole"]["got"]:
        table.add_row(
            f"{each['size']:g}",
            str(each["processes"]),
            format_bytes(each["exchanged"]),
            "infinite" if each["ratio"] is None else f"{each['ratio']:.4g}",
            "unknown" if each["seconds"] is None else format_seconds(each["seconds"]),
            format_seconds(each["computing"]),
            _rate(each["bandwidth"]),
        )
    show_table(console, "bandwidth of the runs", table)
    show_notes(console, document["notes"])


def add_interval(texts: Sequence[str]) -> str:
    """Join three texts: a value, and both ends of its interval. If the ends are equal, return only the value."""
    value, low, high = texts
    return value if low == high else f"{value} ({low} to {high})"


def _name(region: Document) -> str:
    return "all regions" if region["name"] == "*" else printable(region["name"])


def _curve(point: Document | None) -> str:
    if point is None:
        return "no operations"
    return _with_interval({**point, "speed_up_low": point["low"], "speed_up_high": point["high"]}, "speed_up")


def _with_interval(point: Document, name: str) -> str:
    value, low, high = (point[key] for key in (name, f"{name}_low", f"{name}_high"))
    if value is None:
        return "infinite"
    width = "" if low is None or f"{low:.3g}" == f"{high:.3g}" else f" ({low:.3g} to {high:.3g})"
    return f"{value:.4g}{width}"
