# SPDX-License-Identifier: Apache-2.0
"""Public functions of the package; arguments are paths and plain values."""

from __future__ import annotations

from operator import index
from os import PathLike
from pathlib import Path

from ibprof.errors import UsageError, need_lab, with_plain_errors
from ibprof_lab.simulation.study.study_file import read_study
from ibprof_lab.simulation.study.study_results import StudyOutput, StudyResults
from ibprof_lab.simulation.study.sweep import open_pool

StrPath = str | PathLike[str]


@with_plain_errors
def simulate(study: StrPath, folder: StrPath, *, workers: int = 1) -> StudyResults:
    """Simulate the jobs of a study packet by packet, and return how much they slow each other down.

    Args:
        study: study file for `ibprof-sim run`.
        folder: folder for the results; an unfinished study in it is continued.
        workers: number of processes.

    Returns:
        The slow-downs (`conclusions`), one row per simulation (`rows`, latencies in microseconds), and notes.

    Raises:
        InputError: the study is invalid.
        UsageError: `workers` is below 1, or another process simulates in the folder.
        InconsistentError: a simulation is impossible.
        MissingToolError: a library of the extra `lab` is not installed.
    """
    if index(workers) < 1:
        raise UsageError(f"workers: expected a number above 0, found {workers}")
    need_lab("matplotlib", "scipy")
    from ibprof_lab.simulation.reports.simulated_run import run_and_show  # noqa: PLC0415  (it imports matplotlib)

    plan = read_study(Path(study))
    with open_pool(workers) as pool:
        if pool is None:
            raise UsageError("simulate() cannot use the ranks of an MPI job; start `mpirun ibprof-sim run`")
        return run_and_show(plan, StudyOutput(Path(folder)), pool, lambda _done, _work: None)
