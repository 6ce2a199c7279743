# SPDX-License-Identifier: Apache-2.0
"""Predict run times from profiles: from the computing time, and from waiting and transfer at each call site.

The time of a run is a sum of means over ranks: time outside MPI, time in calls at each call site, and the difference
from a rank's run time to the longest run time. `ibprof.waiting` splits time in calls into waiting, transfer and unsplit
time. `part_scaling` fits each time separately.

An ideal time is the time in the smallest run, scaled ideally. At p_1/2 processes, a call site's time beyond its ideal
time equals the whole run's ideal time. This call site alone then halves the efficiency: it stops scaling. In the model
of Kredel et al. (`scaling_model`), p_1/2 is where communication takes as long as computing.
"""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.text import Text

from ibprof.errors import InconsistentError, InputError, UsageError, quote_found
from ibprof.load import load_profile
from ibprof.profile.efficiency import elapsed_s, overlaps_s
from ibprof.profile.profile_rows import UNKNOWN_SITE, name_sites
from ibprof.text.quantities import count_of, format_seconds, name_call, name_mpi, printable, shorten_site
from ibprof.waiting.wait_split import measure_waiting
from ibprof_lab.lab_choices import STRONG, WEAK
from ibprof_lab.latency.outputs.delay_tables import new_table
from ibprof_lab.scaling.measured.part_scaling import PartDraws, draw_part
from ibprof_lab.scaling.measured.time_prediction import FARTHEST
from ibprof_lab.scaling.scaling_document import add_interval, show_notes, show_table

Floats = npt.NDArray[np.float64]

COMPUTING, WAITING, TRANSFER, UNSPLIT = "computing", "waiting", "transfer", "unsplit"

_SMALL = 0.01
"""Call sites whose time is below this fraction of the run time in every run are summed as `OTHERS`."""

_NOISE = 0.08
"""Assumed relative standard deviation of run times between equal runs, if no run was repeated."""

_DRAWS = 2000
_GRID = 65
_TAILS = (0.025, 0.5, 0.975)


class CallPlace(NamedTuple):
    """An operation at a call site. An empty operation means computing (time outside MPI)."""

    operation: str
    site: str

    def __str__(self) -> str:
        if not self.operation:
            return "computing, outside MPI"
        return name_call(self.operation) + (f" at {shorten_site(printable(self.site))}" if self.site else "")


COMPUTES = CallPlace("", "")
OTHERS = CallPlace("other calls", "")
ENDS = CallPlace("FINALIZE", "")


@dataclass(frozen=True, slots=True)
class RunParts:
    """Times of one run.

    Attributes:
        processes: number of ranks of MPI_COMM_WORLD, recorded or not.
        seconds: longest run time of a rank, which is the sum of `parts`.
        parts: (call site, kind of time) -> mean seconds of a rank.
        notes: sentences about missing data.
    """

    name: str
    processes: int
    seconds: float
    parts: dict[tuple[CallPlace, str], float]
    program: str
    mpi: str
    hosts: int
    notes: tuple[str, ...]


def read_parts(path: Path) -> RunParts:
    """Return the times of a profile.

    Raises:
        InputError: times were not recorded, or a rank did not reach its end.
    """
    run = load_profile(path)
    ranks = [rank for rank in run.ranks if rank.rank < run.world_size]
    if run.is_of_nccl or not ranks:
        raise InputError(path, None, "a profile of MPI's ranks", "NCCL's proxies" if run.is_of_nccl else "no rank")
    if untimed := sum(not rank.has_times for rank in ranks):
        raise InputError(path, None, "time inside calls (IBPROF_TIME=1)", f"{untimed} of {len(ranks)} ranks without it")
    if killed := sum(rank.stop_ns is None for rank in ranks):
        raise InputError(path, None, "a run that reached its end", f"{killed} of {len(ranks)} ranks that did not")
    elapsed = np.array([elapsed_s(rank) for rank in ranks])
    if not elapsed.max() > 0:
        raise InputError(path, None, "a run that takes time", f"one of {elapsed.max():g} s")
    measured = measure_waiting(run)
    times, notes = run.times, []
    inside = times.time_ns * 1e-9
    split = {UNSPLIT: inside}
    if measured:
        shares = measured.shares
        split = {WAITING: shares.wait_s, TRANSFER: shares.transfer_s, UNSPLIT: shares.unsplit_s}
    elif inside.any():
        notes.append("no calls were sampled, so that waiting and transfer are one part")
    mine = np.isin(times.rank, [rank.rank for rank in ranks])
    sites = name_sites(run)
    parts: defaultdict[tuple[CallPlace, str], float] = defaultdict(float)
    for row in np.flatnonzero(mine & (inside > 0)).tolist():
        site = sites[times.site[row]]
        place = CallPlace(run.operations[times.operation[row]], "" if site == UNKNOWN_SITE else site)
        for kind, seconds in split.items():
            parts[place, kind] += float(seconds[row]) / len(ranks)
    computing = float(elapsed.mean()) - (float(inside[mine].sum()) - float(overlaps_s(ranks).sum())) / len(ranks)
    parts[COMPUTES, COMPUTING] = max(computing, 0.0)
    parts[ENDS, WAITING] = float(elapsed.max() - elapsed.mean())
    if len(ranks) < run.world_size:
        notes.append(f"times are from {len(ranks)} of {run.world_size} ranks: the others were not recorded")
    if run.operations_asked:
        notes.append(f"only {run.operations_asked} were recorded: the time of other calls counts as computing")
    program = _name_program(run.command)
    return RunParts(
        str(path), run.world_size, float(elapsed.max()), dict(parts), program, run.mpi, len(run.hosts), tuple(notes)
    )


def _name_program(command: str) -> str:
    """Return the file name of the program; if the program is an interpreter, the name of the script or module."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    names = [Path(word).name for word in words]
    if names and names[0].startswith(("python", "pypy", "julia", "Rscript")):
        names = [name for word, name in zip(words[1:], names[1:], strict=True) if not word.startswith("-")] or names
    return names[0] if names else ""


def read_runs(given: Sequence[tuple[float | None, Path]], scaling: str | None) -> tuple[list[RunParts], str | None]:
    """Return the runs and the kind of scaling: by the problem sizes, or `scaling` if there are no problem sizes.

    Raises:
        InputError: the profiles have different programs or the same number of processes, or the problem sizes neither
            stay equal nor grow with the number of processes.
        UsageError: only some runs have a problem size, or `scaling` contradicts the problem sizes.
    """
    runs = [read_parts(path) for _, path in given]
    for run in runs[1:]:
        if run.program != runs[0].program:
            raise InputError(
                run.name, None, f"a run of {quote_found(runs[0].program)} as {runs[0].name}", quote_found(run.program)
            )
    counts = sorted({run.processes for run in runs})
    if len(counts) < 2:
        raise InputError(
            runs[-1].name, None, "runs with two or more different numbers of processes", f"{len(runs)} with {counts[0]}"
        )
    sizes = {size for size, _ in given}
    if None in sizes:
        if len(sizes) > 1:
            raise UsageError("give the problem size of all runs or of none")
        return runs, scaling
    shown = STRONG if len(sizes) == 1 else WEAK
    sized = [(size or 0.0, run) for (size, _), run in zip(given, runs, strict=True)]
    for (before, fewer), (size, run) in pairwise(sorted(sized, key=lambda each: each[1].processes)):
        if run.processes == fewer.processes and size != before:
            raise InputError(
                run.name,
                None,
                f"{before:g}, the problem size of another run with {run.processes} processes",
                f"{size:g}",
            )
        if run.processes > fewer.processes and shown == WEAK and size <= before:
            raise InputError(
                run.name, None, f"a problem size above {before:g}, or equal sizes in all runs", f"{size:g}"
            )
    if scaling not in (None, shown):
        raise UsageError(f"--scaling {scaling}: the runs have problem sizes of {shown} scaling")
    return runs, shown


def find_scaling(runs: Sequence[RunParts]) -> str:
    """Return `STRONG` if the computing time per rank falls faster than p^-0.5, else `WEAK`."""
    p = np.log([run.processes for run in runs])
    seconds = np.log([max(run.parts[COMPUTES, COMPUTING], 1e-9) for run in runs])
    return STRONG if float(np.polyfit(p, seconds, 1)[0]) < -0.5 else WEAK


def predict_split(
    runs: Sequence[RunParts], scaling: str, is_found: bool, wanted: Sequence[int] | None, seed: int = 1
) -> dict[str, Any]:
    """Return a document: predicted times, the p_1/2 of call sites, and the valid range.

    Raises:
        InconsistentError: a requested number of processes is outside of the valid range, or no formula fits the runs.
    """
    counts = sorted({run.processes for run in runs})
    least, most = counts[0], int(FARTHEST * counts[-1])
    for p in wanted or ():
        if not least <= p <= most:
            raise InconsistentError(
                f"no prediction: {p} processes are beyond the range of {least} to {most}. The runs have {counts[0]} "
                f"to {counts[-1]} processes; predictions hold up to {FARTHEST:g} times the largest recorded number"
            )
    powers = [1 << power for power in range(most.bit_length()) if least <= 1 << power <= most]
    shown = {*(wanted or {*powers, *counts})}
    curve = sorted({*shown, *counts})
    grid = np.geomspace(least, most, _GRID)
    at = np.concatenate([grid, curve])
    parts = _merge_small(runs)
    keys = sorted({key for run in parts for key in run})
    drawn = _draw_parts(runs, parts, keys, at, seed)
    total = np.sum([each.seconds for each in drawn.values()], axis=0)
    is_strong = scaling == STRONG
    rng = np.random.default_rng(seed + 1)
    runs_at = total[:, _GRID:] + sum(
        each.seconds[:, _GRID:] * np.maximum(each.noise[:, None] * rng.standard_normal((_DRAWS, 1)), -1)
        for each in drawn.values()
    )
    base = float(np.median([run.seconds for run in runs if run.processes == least]))
    rows = []
    for column, p in enumerate(curve):
        low, seconds, high = (float(each) for each in np.quantile(runs_at[:, column], _TAILS))
        took = float(np.mean([run.seconds for run in runs if run.processes == p] or [seconds]))
        if seconds <= 0 or not low * (1 - 2 * _NOISE) <= took <= high * (1 + 2 * _NOISE):
            raise InconsistentError(
                f"no prediction: no formula fits all runs. With {p} processes the best formulas give "
                f"{format_seconds(max(low, 0.0))} to {format_seconds(high)}, and the runs took {format_seconds(took)}. "
                "Repeat the runs, or record runs with other numbers of processes"
            )
        if p not in shown:
            continue
        by_kind: defaultdict[str, float] = defaultdict(float)
        by_place: defaultdict[str, float] = defaultdict(float)
        for (place, kind), each in drawn.items():
            middle = float(np.median(each.seconds[:, _GRID + column]))
            by_kind[kind] += middle
            by_place[str(place)] += middle if place.operation else 0
        ratio = base / seconds
        rows.append(
            {
                "processes": p,
                "seconds": seconds,
                "low": max(low, 0.0),
                "high": high,
                **{kind: by_kind[kind] for kind in (COMPUTING, WAITING, TRANSFER, UNSPLIT)},
                "operations": {name: value for name, value in by_place.items() if value},
                "speed_up": ratio if is_strong else ratio * p / least,
                "efficiency": ratio * least / p if is_strong else ratio,
                "beyond": p / counts[-1],
            }
        )
    ideal = base * (least / grid if is_strong else np.ones(_GRID))
    places = _find_stops(drawn, ideal / base, ideal, grid)
    best = grid[total[:, :_GRID].argmin(axis=1)]
    return {
        "scaling": scaling,
        "scaling_found": is_found,
        "base": {"processes": least, "seconds": base},
        "range": {
            "processes": [least, most],
            "fitted": counts,
            "runs": len(runs),
            "outside": _list_outside(runs, most),
        },
        "curve": rows,
        "first_to_stop": places[0],
        "fastest": _describe_limit(np.where(best < most, best, np.inf)) if is_strong else None,
        "places": places,
        "parts": [
            {
                "operation": place.operation or None,
                "site": place.site or None,
                "kind": kind,
                "form": drawn[place, kind].form,
                "measured": [
                    [run.processes, part.get((place, kind), 0.0)] for run, part in zip(runs, parts, strict=True)
                ],
            }
            for place, kind in keys
        ],
        "notes": _list_notes(runs, counts, None if is_found else scaling),
    }


def _merge_small(runs: Sequence[RunParts]) -> list[dict[tuple[CallPlace, str], float]]:
    """Return `parts` of each run; all small call sites are summed as `OTHERS`."""
    most: defaultdict[CallPlace, float] = defaultdict(float)
    for run in runs:
        of_run: defaultdict[CallPlace, float] = defaultdict(float)
        for (place, _), seconds in run.parts.items():
            of_run[place] += seconds / run.seconds
        most.update({place: max(most[place], share) for place, share in of_run.items()})
    merged = []
    for run in runs:
        parts: defaultdict[tuple[CallPlace, str], float] = defaultdict(float)
        for (place, kind), seconds in run.parts.items():
            parts[OTHERS if place.operation and most[place] < _SMALL else place, kind] += seconds
        merged.append(dict(parts))
    return merged


def _draw_parts(
    runs: Sequence[RunParts],
    parts: Sequence[dict[tuple[CallPlace, str], float]],
    keys: Sequence[tuple[CallPlace, str]],
    at: Floats,
    seed: int,
) -> dict[tuple[CallPlace, str], PartDraws]:
    processes = np.array([run.processes for run in runs], float)
    walls = np.array([run.seconds for run in runs])
    noise = _measure_noise(processes, walls)
    rng = np.random.default_rng(seed)
    ranks = rng.random(_DRAWS)
    drawn = {}
    for place, kind in keys:
        seconds = np.array([part.get((place, kind), 0.0) for part in parts])
        # Runs of one process do not communicate: do not fit communication to these runs.
        used = (processes > 1) | (place == COMPUTES)
        made = draw_part(processes[used], seconds[used], _SMALL * walls[used], noise, at, ranks, rng)
        if place != COMPUTES:
            made.seconds[:, at == 1] = 0
        drawn[place, kind] = made
    return drawn


def _measure_noise(processes: Floats, walls: Floats) -> float:
    """Return the relative standard deviation of run times between equal runs; `_NOISE` if no run was repeated."""
    logs = np.log(walls)
    errors = np.concatenate([logs[processes == p] - logs[processes == p].mean() for p in np.unique(processes)])
    freedom = len(walls) - len(np.unique(processes))
    return math.sqrt(float((errors**2).sum()) / freedom) if freedom else _NOISE


def _find_stops(
    drawn: dict[tuple[CallPlace, str], PartDraws], falls: Floats, ideal: Floats, grid: Floats
) -> list[dict[str, Any]]:
    """Return a row for each call site, the smallest p_1/2 first (see the module)."""
    by_place: dict[CallPlace, Floats] = {}
    kinds: defaultdict[CallPlace, dict[str, float]] = defaultdict(dict)
    for (place, kind), each in drawn.items():
        seconds = each.seconds[:, :_GRID]
        excess = seconds - seconds[:, :1] * falls
        by_place[place] = by_place.get(place, 0) + excess
        kinds[place][kind] = float(np.median(excess[:, -1]))
    stops = {
        place: np.where((excess >= ideal).any(axis=1), grid[(excess >= ideal).argmax(axis=1)], np.inf)
        for place, excess in by_place.items()
    }
    earliest = np.min(list(stops.values()), axis=0)
    found = [
        {
            "operation": place.operation or None,
            "site": place.site or None,
            "name": str(place),
            "kind": max(kinds[place], key=lambda kind: kinds[place][kind]),
            "p_half": _describe_limit(stop),
            "first": float((np.isfinite(stop) & (stop == earliest)).mean()),
            "lost": float(np.median(by_place[place][:, -1] / ideal[-1])),
        }
        for place, stop in stops.items()
    ]
    return sorted(found, key=lambda each: (each["p_half"]["value"] or math.inf, -each["lost"]))


def _describe_limit(values: Floats) -> dict[str, float | None]:
    """Return the median and the 95% interval of the draws of p_1/2; None in place of infinity."""
    low, value, high = np.quantile(values, _TAILS, method="nearest").tolist()
    return {
        name: each if math.isfinite(each) else None for name, each in (("value", value), ("low", low), ("high", high))
    }


def _list_outside(runs: Sequence[RunParts], most: int) -> list[str]:
    places = sorted({(run.hosts, run.processes) for run in runs})
    text = ", ".join(f"{count_of(p, 'rank')} on {count_of(hosts, 'host')}" for hosts, p in places)
    return [
        f"more than {most} processes",
        f"numbers of ranks per host that were not recorded (recorded: {text})",
        "other problems, hosts and MPI libraries",
        "message sizes and numbers of processes at which the MPI library uses other algorithms than in the runs",
    ]


def _list_notes(runs: Sequence[RunParts], counts: Sequence[int], stated: str | None) -> list[str]:
    notes = [f"{run.name}: {note}" for run in runs for note in run.notes]
    if len([p for p in counts if p > 1]) < 3:
        notes.append(
            "calls were recorded with fewer than 3 numbers of processes above 1. Many forms fit so few points, so the "
            "intervals are wide; record a third number of processes"
        )
    if len(runs) == len(counts):
        notes.append(
            f"no run was repeated, so the times of equal runs are assumed to differ by {_NOISE:.0%}; "
            "record each run twice"
        )
    if counts[0] == 1:
        notes.append("the run of one process is the base of the speed-up; it communicates nothing")
    if stated not in (None, shown := find_scaling(runs)):
        notes.append(
            f"the time of computing shows {shown} scaling, not {stated}: check --scaling and the problem sizes"
        )
    if len(libraries := sorted({run.mpi for run in runs})) > 1:
        notes.append(
            f"the runs are of {len(libraries)} MPI libraries ({', '.join(map(name_mpi, libraries))}): times may differ"
        )
    return notes


def print_split(console: Console, document: dict[str, Any]) -> None:
    """Print the summary, the curve, the call sites and the range of validity."""
    curve, (least, most) = document["curve"], document["range"]["processes"]
    first, last = document["first_to_stop"], document["curve"][-1]
    found = " (found from the time of computing)" if document["scaling_found"] else ""
    console.print(Text(f"{document['scaling'].capitalize()} scaling{found}. {_summarise(first, most)}", style="bold"))
    if fastest := document["fastest"]:
        console.print(f"fastest with {_limit(fastest, most)} processes")
    fitted = document["range"]["fitted"]
    console.print(
        f"fitted to {document['range']['runs']} runs with {', '.join(map(str, fitted))} processes; predictions hold "
        f"for {least} to {most} processes; {last['processes']} processes are {last['beyond']:.3g} times as "
        "many as in the largest run"
    )
    console.print()
    table = new_table(
        "p", "run time (95% interval)", COMPUTING, WAITING, TRANSFER, UNSPLIT, "speed-up", "efficiency", "beyond"
    )
    for row in curve:
        table.add_row(
            str(row["processes"]),
            f"{format_seconds(row['seconds'])} ({format_seconds(row['low'])} to {format_seconds(row['high'])})",
            *(format_seconds(row[kind]) for kind in (COMPUTING, WAITING, TRANSFER, UNSPLIT)),
            f"{row['speed_up']:.3g}",
            f"{row['efficiency']:.0%}",
            "" if row["beyond"] <= 1 else f"{row['beyond']:.3g} times",
        )
    show_table(console, "predicted", table)
    table = new_table("where", "mostly", "halves the efficiency at p (95% interval)", "probability to be the first")
    table.columns[0].justify = table.columns[1].justify = "left"
    for place in document["places"]:
        table.add_row(place["name"], place["kind"], _limit(place["p_half"], most), f"{place['first']:.0%}")
    show_table(console, "what stops scaling", table)
    table = new_table("where", "part", "seconds as a function of p")
    table.columns[0].justify = table.columns[1].justify = table.columns[2].justify = "left"
    for part in document["parts"]:
        if part["form"] == "0":
            continue
        table.add_row(str(CallPlace(part["operation"] or "", part["site"] or "")), part["kind"], part["form"])
    show_table(console, "likeliest forms", table)
    show_notes(console, [*document["notes"], f"predictions do not hold for {'; '.join(document['range']['outside'])}"])


def _summarise(first: dict[str, Any], most: int) -> str:
    if first["p_half"]["value"] is None:
        worst = f"; {first['name']} costs most ({first['kind']})" if first["lost"] > 0 else ""
        return f"Up to {most} processes, no part alone halves the efficiency{worst}."
    return f"{first['name']} stops scaling first, at {_limit(first['p_half'], most)} processes: {first['kind']}."


def _limit(limit: dict[str, float | None], most: int) -> str:
    return add_interval(
        [f"more than {most}" if limit[name] is None else f"{limit[name]:.0f}" for name in ("value", "low", "high")]
    )
