# SPDX-License-Identifier: Apache-2.0
"""Query of predicted run times: options in, JSON document out; a picture on request."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ibprof.errors import InconsistentError, UsageError
from ibprof.load import load_profile
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.route_choice import describe_routes, read_routed_rail
from ibprof_converter.routing.subnet import Subnet
from ibprof_lab.latency.files.delay_files import UNITS
from ibprof_lab.scaling.formula import parse_formula
from ibprof_lab.scaling.measured.link_sharing import LinkSharing
from ibprof_lab.scaling.measured.loggp import LogGP, read_loggp
from ibprof_lab.scaling.measured.recorded_calls import read_calls
from ibprof_lab.scaling.measured.time_prediction import OutOfRangeError, PredictedTime, TimeModel

STRONG = "strong"
WEAK = "weak"

_RULES = ("packed", "spread")


@dataclass(frozen=True, slots=True)
class PredictOptions:
    """Recorded runs and a network to predict on.

    Attributes:
        runs: problem size n and profile of each.
        operations: formula of n for #op.
        delays: file of measured delays.
        unit: of these, of `UNITS`, where the file does not say it.
        fabric: whose tables say how messages share links; None: they share none.
        placement: of ranks on its hosts, `packed`, `spread` or `random:SEED`.
        slots: ranks on a host; None for as few as fit.
        scaling: `STRONG` or `WEAK`.
        n: problem size of strong scaling; None for that of the largest recorded run.
        processes: to predict for; None for powers of two, as far as predictions hold.
        figure: the curve as a picture; None for none.
        json: whether the document is for programs.
    """

    runs: list[tuple[float, Path]]
    operations: str
    delays: Path
    unit: str
    fabric: Path | None
    placement: str
    slots: int | None
    scaling: str
    n: float | None
    processes: list[int] | None
    figure: Path | None
    json: bool


def query_prediction(options: PredictOptions) -> dict[str, Any]:
    """Return run times by number of processes, with intervals.

    Raises:
        UsageError: a formula, or the placement, is invalid.
        InputError: a file cannot be read.
        InconsistentError: the runs do not determine an answer, or it is asked for beyond the range where it holds.
    """
    operations = parse_formula("--operations", options.operations)
    network = read_loggp(options.delays, UNITS[options.unit])
    sharing, notes = _find_sharing(options)
    runs = [read_calls(load_profile(path), size) for size, path in options.runs]
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
    size = options.n or max(runs, key=lambda run: (run.processes, run.size)).size
    if options.processes is None:
        curve, stop = _follow(model, options.scaling, size)
    else:
        curve, stop = [_predict(model, options.scaling, size, p) for p in options.processes], None
    notes += [f"{run.name}: {note}" for run in runs for note in run.notes]
    document = {
        "scaling": options.scaling,
        "network": _describe_network(network),
        "range": {"processes": list(model.processes), "n": list(model.sizes)},
        "checks": [asdict(check) for check in model.checks],
        "curve": _describe_curve(curve, options.scaling),
        "stop": stop,
        "notes": notes,
    }
    if options.figure:
        from ibprof_lab.scaling.measured.prediction_picture import draw_prediction  # noqa: PLC0415  (slow to import)

        draw_prediction(options.figure, document, [(run.size, run.processes, run.seconds) for run in runs])
    return document


def _find_sharing(options: PredictOptions) -> tuple[LinkSharing | None, list[str]]:
    if options.fabric is None:
        return None, ["without --fabric messages are taken to share no links: a lower bound of communication"]
    rails = find_rails([options.fabric])
    if len(rails) > 1:
        raise UsageError(f"--fabric {options.fabric}: expected one rail, found {len(rails)}")
    if options.placement not in _RULES and not options.placement.startswith("random:"):
        raise UsageError(f"--placement {options.placement}: expected packed, spread or random:SEED")
    subnet: Subnet = read_routed_rail(rails[0])
    notes = [note for note in [describe_routes([subnet])] if note]
    return LinkSharing(subnet, options.placement, options.slots), notes


def _predict(model: TimeModel, scaling: str, size: float, processes: int) -> PredictedTime:
    try:
        return model.predict(model.weak_size(processes) if scaling == WEAK else size, processes)
    except OutOfRangeError as error:
        raise InconsistentError(f"no prediction: {error}") from error


def _follow(model: TimeModel, scaling: str, size: float) -> tuple[list[PredictedTime], str | None]:
    """Return predictions for powers of two, and why they end before the range does."""
    least, most = model.processes
    curve: list[PredictedTime] = []
    for power in range(math.ceil(math.log2(least)), int(math.log2(most)) + 1):
        try:
            curve.append(_predict(model, scaling, size, 1 << power))
        except InconsistentError as error:
            if len(curve) < 2:  # one point is no curve
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


def _describe_curve(curve: Sequence[PredictedTime], scaling: str) -> list[dict[str, Any]]:
    first = curve[0]
    rows = []
    for each in curve:
        ratio = first.seconds / each.seconds
        rows.append(
            {
                "processes": each.processes,
                "n": each.size,
                "seconds": each.seconds,
                "low": each.low,
                "high": each.high,
                "computing": each.computing,
                "operations": each.groups,
                "speed_up": ratio if scaling == STRONG else ratio * each.processes / first.processes,
                "efficiency": ratio * first.processes / each.processes if scaling == STRONG else ratio,
                "beyond": each.beyond,
            }
        )
    return rows
