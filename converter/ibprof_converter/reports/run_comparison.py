# SPDX-License-Identifier: Apache-2.0
"""Compare two runs: list changes, the largest first, and check thresholds such as `max_link>+10%`.

Runs with different numbers of ranks are compared by share: amount / all bytes of the run.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ibprof.errors import UsageError
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import format_seconds, printable, spell_unit
from ibprof_converter.analysis.pipeline_options import FabricOptions, Progress, TrafficOptions, no_progress
from ibprof_converter.analysis.pipeline_results import RoutedFabric
from ibprof_converter.analysis.pipeline_stages import Demand, read_routed_fabric
from ibprof_converter.analysis.run_change import RunChange, explain_change
from ibprof_converter.reports.compared_run import (
    DIMENSIONS,
    LINK,
    OPERATION,
    PAIR,
    REGION,
    SITE,
    ComparedRun,
    has_loads,
    read_side,
)
from ibprof_converter.reports.provenance import Provenance, describe_provenance
from ibprof_converter.reports.report_sections import ValueKind

_NAMED_PARTS = (OPERATION, REGION, SITE)
"""Dimensions whose names a threshold `bytes[NAME]` can use."""

METRICS = {
    "elapsed": ValueKind.SECONDS,
    "bytes": ValueKind.BYTES,
    "messages": ValueKind.COUNT,
    "bytes_on_host": ValueKind.BYTES,
    "bytes_routed": ValueKind.BYTES,
    "bytes_unrouted": ValueKind.BYTES,
    "max_link": ValueKind.BYTES,
    "max_switch_link": ValueKind.BYTES,
    "mean_link": ValueKind.BYTES,
    "links_used": ValueKind.COUNT,
    "max_link_seconds": ValueKind.SECONDS,
}
"""Name of a total that thresholds can use -> format of the value."""

_TIMES = {"run_s": "the run takes", "mpi_s": "MPI", "wait_s": "waiting", "transfer_s": "transfer"}
"""Key of a time in the verdict -> its name in a sentence."""

_TIME_CHANGE = 0.05
"""A change of a time is reported if it is at least this fraction of run A's whole time."""

_NAMED_METRICS = ("bytes", "messages", "share", "link")
"""Metrics that thresholds can use with a name in brackets: `bytes[BCAST]`."""

_FORM = re.compile(
    r"\s*(?P<metric>[a-z_]+)\s*(?:\[(?P<name>.*)\])?\s*(?P<than>>=|<=|>|<)\s*"
    r"(?P<sign>[+-]?)\s*(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(?P<unit>%|[A-Za-z\u00b5\u03bc]*)\s*"
)
_UNITS: dict[ValueKind, dict[str, float]] = {
    ValueKind.BYTES: {"B": 1.0, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    | {f"{letter}iB": 1 << 10 * power for power, letter in enumerate("KMGT", 1)},
    ValueKind.SECONDS: {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0},
    ValueKind.COUNT: {},
}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True)
class FailCondition:
    """A threshold.

    Attributes:
        text: the threshold as typed.
        metric: one of `METRICS`, "share" or "link".
        name: the name in brackets; None without brackets.
        than: comparison, ">", ">=", "<" or "<=".
        limit: the threshold's number, in bytes, seconds or messages; a fraction for %.
        of_change: true to compare B - A with the limit, false to compare B.
        relative: true to compare (B - A) / A with the limit.
    """

    text: str
    metric: str
    name: str | None
    than: str
    limit: float
    of_change: bool
    relative: bool

    def holds(self, value: float) -> bool:
        """Return true if a value crosses the threshold."""
        return _COMPARE[self.than](value, self.limit)


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """Runs to compare.

    Attributes:
        a, b: the runs, each with the options to read the run.
        fabric: fabric for both runs; None without a fabric.
    """

    a: TrafficOptions
    b: TrafficOptions
    fabric: FabricOptions | None = None
    conditions: tuple[FailCondition, ...] = ()

    def files(self) -> Iterator[Path]:
        """Yield all input files of the comparison."""
        for side in (self.a, self.b):
            if self.fabric:
                yield from self.fabric.files()
            yield from side.files()


@dataclass(frozen=True, slots=True)
class AmountChange:
    """Change of one amount.

    Attributes:
        a, b: amounts in the two runs.
        a_share, b_share: amount / sum of the dimension's amounts in the run; for a link, amount / all routed bytes. If
            shares are compared, each total in bytes, except the total `bytes`, is divided by `bytes`. None for other
            totals, for numbers of messages of an operation, region or site, and if the divisor is 0.
        change: b - a; if shares are compared, the difference of the shares.
        relative: change / a, or change / a_share if shares are compared; None if the amount in A is 0.
    """

    name: str
    a: float
    b: float
    a_share: float | None
    b_share: float | None
    change: float
    relative: float | None


@dataclass(frozen=True, slots=True)
class DimensionChange:
    """Changes in one dimension.

    Attributes:
        dimension: one of `DIMENSIONS`.
        changes: changes by absolute size, the largest first; unchanged amounts are left out.
        compared: number of different names (of operations, regions, ...) in both runs.
    """

    dimension: str
    changes: tuple[AmountChange, ...]
    compared: int


@dataclass(frozen=True, slots=True)
class ThresholdVerdict:
    """A threshold, and the result of its check.

    Attributes:
        condition: the threshold as typed.
        value: the compared value; None if it is a relative change from 0 in A.
        limit: the threshold's number, in the unit of `value`.
        holds: true if the threshold was crossed.
    """

    condition: str
    value: float | None
    limit: float
    holds: bool


@dataclass(frozen=True, slots=True, repr=False)
class RunComparison(NotebookView):
    """Two runs compared.

    Attributes:
        a_ranks, b_ranks: numbers of ranks; None if unknown.
        by_share: true if shares are compared, because the runs have different numbers of ranks.
        verdicts: result of each threshold.
        notes: sentences on gaps, modelled data, and parts that could not be compared.
        nic: how the ranks' adapters were chosen, for A and for B; None if no host has several adapters on one rail.
        change: the change and its reason, in one sentence.
        job_verdicts: verdicts on the network for A and for B, as in their reports; None if unknown.
        lost: sentences on ranks and bytes that were not recorded, for A and for B.
    """

    a: str
    b: str
    a_ranks: int | None
    b_ranks: int | None
    by_share: bool
    totals: tuple[AmountChange, ...]
    parts: tuple[DimensionChange, ...]
    verdicts: tuple[ThresholdVerdict, ...]
    notes: tuple[str, ...]
    provenance: Provenance
    change: RunChange
    nic: tuple[str | None, str | None] = (None, None)
    job_verdicts: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] = (None, None)
    lost: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def __repr__(self) -> str:
        changes = sum(len(part.changes) for part in self.parts)
        crossed = sum(verdict.holds for verdict in self.verdicts)
        thresholds = f"{crossed} of {len(self.verdicts)} thresholds crossed"
        return printable(f"<RunComparison {self.a} to {self.b}: {changes} changes, {thresholds}>")

    @property
    def fails(self) -> bool:
        """Return true if any threshold was crossed."""
        return any(verdict.holds for verdict in self.verdicts)

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        document = asdict(self)
        document["change"] = self.change.as_json()
        document["nic"] = dict(zip("ab", self.nic, strict=True))
        document["lost"] = dict(zip("ab", self.lost, strict=True))
        document["verdict"] = dict(zip("ab", document.pop("job_verdicts"), strict=True))
        document["reproduce"] = document.pop("provenance") | {"versions": dict(self.provenance.versions)}
        return document | {"fails": self.fails}


def parse_condition(text: str) -> FailCondition:
    """Read a threshold.

    Raises:
        UsageError: the text is malformed; the message shows the correct form.
    """
    found = _FORM.fullmatch(text)
    if not found:
        raise UsageError(f"{text!r}: expected METRIC>LIMIT, such as 'max_link>+10%' or 'bytes[BCAST]>+5%'")
    metric, name = found["metric"], found["name"]
    if metric not in METRICS and metric not in _NAMED_METRICS:
        known = ", ".join([*METRICS, "share[NAME]", "link[NAME]"])
        raise UsageError(f"{text!r}: there is no metric {metric!r}; known are {known}")
    if name is not None and metric not in _NAMED_METRICS:
        raise UsageError(f"{text!r}: {metric} is a total of the run: leave out [{name}]")
    if not name and metric not in METRICS:
        raise UsageError(f"{text!r}: {metric} needs a name: {metric}[NAME]")
    percent = found["unit"] == "%"
    if percent and not found["sign"] and metric != "share":
        raise UsageError(f"{text!r}: a limit in % is a change from A: write {found['than']}+{found['number']}%")
    limit = float(found["number"]) * _find_factor(text, metric, spell_unit(found["unit"]))
    return FailCondition(
        text=text,
        metric=metric,
        name=name,
        than=found["than"],
        limit=-limit if found["sign"] == "-" else limit,
        of_change=bool(found["sign"]),
        relative=percent and metric != "share",
    )


def _find_factor(text: str, metric: str, unit: str) -> float:
    """Return the factor that converts a unit into bytes, seconds, counts or fractions."""
    if unit == "%":
        return 0.01
    if metric == "share":
        raise UsageError(f"{text!r}: write the limit of a share in %")
    units = {"": 1.0, **_UNITS[METRICS.get(metric, ValueKind.BYTES)]}
    if unit not in units:
        known = ", ".join(each for each in units if each) or "no unit"
        raise UsageError(f"{text!r}: {metric} is in {known}, not {unit}")
    return units[unit]


def compare_runs(
    options: DiffOptions,
    command: str = "",
    progress: Progress = no_progress,
    fabric: RoutedFabric | None = None,
    demands: tuple[Demand | None, Demand | None] = (None, None),
) -> RunComparison:
    """Read two runs and compare them.

    Args:
        command: the command line as typed.
        fabric: fabric for both runs; None to read the fabric of `options`.
        demands: the traffic of each run; None to read the traffic.

    Raises:
        InputError: a file is invalid.
        UsageError: these runs do not have the data for the options or thresholds.
    """
    sides = (options.a, options.b)
    if fabric is None and options.fabric and not all(has_loads(side.names[0]) for side in sides):
        fabric = read_routed_fabric(options.fabric, progress)
    a, b = (read_side(side, fabric, progress, demand) for side, demand in zip(sides, demands, strict=True))
    # Hash the inputs after they were read: reading may turn a recording into a profile.
    return compare(a, b, options.conditions, describe_provenance(command, options.files()))


def compare(
    a: ComparedRun, b: ComparedRun, conditions: Sequence[FailCondition], provenance: Provenance
) -> RunComparison:
    """Compare two runs.

    Raises:
        UsageError: a threshold's name is ambiguous or in neither run, or data are missing.
    """
    by_share = a.ranks is not None and b.ranks is not None and a.ranks != b.ranks
    notes = list(_merge_notes(a.notes, b.notes))
    if a.load_basis != b.load_basis:
        notes.insert(
            0,
            f"link loads are of kind `{a.load_basis}` in A and of kind `{b.load_basis}` in B: part of the changes "
            "may come from this difference",
        )
    if by_share:
        notes.insert(0, f"{a.ranks} and {b.ranks} ranks: bytes are compared by share of each run's bytes")
        notes.append("pairs of ranks are not compared: rank numbers of A and B do not correspond")
    parts = [
        _compare_part(dimension, a, b, by_share)
        for dimension in DIMENSIONS
        if dimension in a.parts and dimension in b.parts and not (by_share and dimension == PAIR)
    ]
    return RunComparison(
        a=a.name,
        b=b.name,
        a_ranks=a.ranks,
        b_ranks=b.ranks,
        by_share=by_share,
        totals=tuple(_compare_total(name, a, b, by_share) for name in a.totals if name in b.totals),
        parts=tuple(part for part in parts if part.compared),
        verdicts=tuple(_judge(condition, a, b, by_share) for condition in conditions),
        notes=tuple(notes),
        provenance=provenance,
        change=_add_times(explain_change(a.facts, b.facts), a, b),
        nic=(a.nic, b.nic),
        job_verdicts=(a.verdict, b.verdict),
        lost=(a.lost, b.lost),
    )


def _add_times(change: RunChange, a: ComparedRun, b: ComparedRun) -> RunChange:
    """Return `change` with a text that begins with the times that differ."""
    first, second = a.verdict or {}, b.verdict or {}
    found = []
    for name, what in _TIMES.items():
        before, after = first.get(name), second.get(name)
        if not before or after is None:
            continue
        ratio = after / before - 1
        # Report a change of time if it is a large part of the whole run's time.
        whole = first.get("run_s") or before
        if abs(after - before) >= _TIME_CHANGE * whole:
            more = "less" if ratio < 0 else "more"
            found.append(f"{what} {abs(ratio):.0%} {more} ({format_seconds(after)}, before {format_seconds(before)})")
    if not found:
        return change
    times = f"{found[0][0].upper()}{found[0][1:]}" + "".join(f", {each}" for each in found[1:])
    traffic = change.text.replace("Nothing changed:", "The traffic did not change:", 1)
    return replace(change, text=f"{times}. {traffic}")


def _merge_notes(a: Sequence[str], b: Sequence[str]) -> Iterator[str]:
    for note in dict.fromkeys((*a, *b)):
        yield f"{'A and B' if note in a and note in b else 'A' if note in a else 'B'}: {note}"


def _compare_part(dimension: str, a: ComparedRun, b: ComparedRun, by_share: bool) -> DimensionChange:
    before, after = a.parts[dimension], b.parts[dimension]
    names = dict.fromkeys([*before, *after])
    whole_a, whole_b = _whole(a, dimension), _whole(b, dimension)
    changes = [_change(name, before.get(name, 0), after.get(name, 0), whole_a, whole_b, by_share) for name in names]
    changed = sorted((each for each in changes if each.change), key=lambda each: (-abs(each.change), each.name))
    return DimensionChange(dimension, tuple(changed), len(names))


def _whole(side: ComparedRun, dimension: str) -> float:
    """Return the sum of a run's amounts in a dimension; for links, all routed bytes, not counted once per link."""
    if dimension == LINK:
        return side.totals.get("bytes_routed", 0)
    return sum(side.parts[dimension].values())


def _compare_total(name: str, a: ComparedRun, b: ComparedRun, by_share: bool) -> AmountChange:
    shared = by_share and METRICS[name] is ValueKind.BYTES and name != "bytes"
    whole_a, whole_b = (a.totals.get("bytes", 0), b.totals.get("bytes", 0)) if shared else (0, 0)
    return _change(name, a.totals[name], b.totals[name], whole_a, whole_b, shared)


def _change(name: str, a: float, b: float, whole_a: float, whole_b: float, by_share: bool) -> AmountChange:
    a_share = a / whole_a if whole_a else None
    b_share = b / whole_b if whole_b else None
    before, after = (a_share or 0.0, b_share or 0.0) if by_share else (a, b)
    relative = (after - before) / before if before else None
    return AmountChange(name, a, b, a_share, b_share, after - before, relative)


def _judge(condition: FailCondition, a: ComparedRun, b: ComparedRun, by_share: bool) -> ThresholdVerdict:
    change = _find(condition, a, b, by_share)
    if condition.metric == "share":
        shares = change.a_share or 0.0, change.b_share or 0.0
        value: float | None = shares[1] - shares[0] if condition.of_change else shares[1]
    elif condition.relative:
        value = change.relative if change.a or not change.b else None
        value = 0.0 if change.a == change.b == 0 else value
    else:
        value = change.b - change.a if condition.of_change else change.b
    # If A is 0, the relative change is infinite.
    holds = condition.holds(float("inf") if value is None else value)
    return ThresholdVerdict(condition.text, value, condition.limit, holds)


def _find(condition: FailCondition, a: ComparedRun, b: ComparedRun, by_share: bool) -> AmountChange:
    if condition.name is None:
        return _find_total(condition, a, b, by_share)
    if condition.metric == "link":
        dimension, name = LINK, condition.name
    else:
        dimension, name = _find_part(condition, a, b)
    if dimension not in a.parts or dimension not in b.parts:
        raise UsageError(f"--fail-on {condition.text!r}: both runs need link loads: give --fabric LST...")
    if condition.metric == "messages":
        before, after = a.messages.get(dimension, {}), b.messages.get(dimension, {})
        return _change(name, before.get(name, 0), after.get(name, 0), 0, 0, by_share=False)
    before, after = a.parts[dimension], b.parts[dimension]
    if name not in before and name not in after:
        raise UsageError(f"--fail-on {condition.text!r}: neither run has a {dimension} {name!r}")
    whole_a, whole_b = _whole(a, dimension), _whole(b, dimension)
    return _change(name, before.get(name, 0), after.get(name, 0), whole_a, whole_b, by_share)


def _find_total(condition: FailCondition, a: ComparedRun, b: ComparedRun, by_share: bool) -> AmountChange:
    metric = condition.metric
    for side in (a, b):
        if metric not in side.totals:
            hint = ": give --fabric LST..." if "link" in metric or metric == "bytes_routed" else ""
            raise UsageError(f"--fail-on {condition.text!r}: {side.name} has no {metric}{hint}")
    return _compare_total(metric, a, b, by_share)


def _find_part(condition: FailCondition, a: ComparedRun, b: ComparedRun) -> tuple[str, str]:
    """Return the dimension (operation, region or call site) and the name of a threshold."""
    text = condition.name or ""
    head, colon, rest = text.partition(":")
    if colon and head in _NAMED_PARTS:
        return head, rest
    known = {dimension: {**a.parts.get(dimension, {}), **b.parts.get(dimension, {})} for dimension in _NAMED_PARTS}
    spellings = (text, text.upper().removeprefix("MPI_"))
    found = [(dimension, name) for dimension, names in known.items() for name in spellings if name in names]
    # If a name is an operation or region, ignore call sites with this name.
    found = [part for part in found if part[0] != SITE] or found
    if len({dimension for dimension, _ in found}) > 1:
        raise UsageError(
            f"--fail-on {condition.text!r}: an operation and a region have this name: write operation:{text} or "
            f"region:{text}"
        )
    if not found:
        names = ", ".join(sorted({*known[OPERATION], *known[REGION], *known[SITE]})) or "none"
        raise UsageError(
            f"--fail-on {condition.text!r}: neither run has an operation, region or site {text!r}; they have {names}"
        )
    return found[0]
