# SPDX-License-Identifier: Apache-2.0
"""A whole measurement of delays on all processes of a job: options in, the file out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ibprof.errors import UsageError
from ibprof_lab.latency.files.pair_files import read_pairs
from ibprof_lab.latency.measure.measurement_plan import MeasurementPlan
from ibprof_lab.latency.measure.schedules import color_pairs
from ibprof_lab.latency.measure.session import Chooser, ChooserFactory, MeasurementSession


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """The plan of a measurement, and where to keep it.

    Attributes:
        output: the file of delays.
        plan: lengths, mode, schedule and so on.
        resume: whether to keep what the file has and measure the rest.
        pairs: file of pairs to measure again, and nothing else; None for all.
        few_pairs: whether to choose pairs by what was measured, in place of all.
        dry_run: whether only to estimate the time.
    """

    output: Path
    plan: MeasurementPlan
    resume: bool
    pairs: Path | None
    few_pairs: bool
    dry_run: bool


def measure_delays(module: Any, options: MeasureOptions, search: ChooserFactory) -> int:
    """Measure, and write the file; called on every process.

    Args:
        module: `mpi4py.MPI`.
        options: the same on all processes.
        search: makes what chooses few pairs.

    Returns:
        The number of the signal that ended it, with the results so far in the file; 0 for none.

    Raises:
        UsageError: the plan does not fit the number of processes.
        IbprofError: a file cannot be read or written, or is of another measurement.
    """
    if options.few_pairs and (options.pairs or options.plan.schedule not in ("rounds", "sequential")):
        raise UsageError("--few-pairs: expected --schedule rounds or sequential, and no --pairs")
    session = MeasurementSession(module, options.plan, options.output)
    options.plan.check(session.size)
    session.estimate()
    if options.dry_run:
        return 0
    choose = _choose(options.pairs, options.plan) if options.pairs else None
    outcome = session.measure(options.resume, choose, search if options.few_pairs else None)
    session.report(outcome)
    return outcome.signal


def _choose(path: Path, plan: MeasurementPlan) -> Chooser:
    """Return what chooses the pairs of a file."""
    return lambda delays: color_pairs(read_pairs(path, delays.labels), plan.schedule == "sequential")
