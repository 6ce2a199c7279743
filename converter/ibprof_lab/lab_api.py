# SPDX-License-Identifier: Apache-2.0
"""The functions behind the package's public names: paths and plain values in, results out."""

from __future__ import annotations

from operator import index
from os import PathLike
from pathlib import Path

from ibprof.errors import UsageError, with_plain_errors
from ibprof_lab.simulation.reports.simulated_run import run_and_show
from ibprof_lab.simulation.study.study_file import read_study
from ibprof_lab.simulation.study.study_results import StudyOutput, StudyResults
from ibprof_lab.simulation.study.sweep import open_pool

StrPath = str | PathLike[str]


@with_plain_errors
def simulate(study: StrPath, folder: StrPath, *, workers: int = 1) -> StudyResults:
    """Simulate the jobs of a study packet by packet: how much they slow each other down.

    Args:
        study: a file as `ibprof-sim run` takes it.
        folder: for the results; a study that was begun in it is continued.
        workers: processes.

    Returns:
        Slow-downs (`conclusions`), a row for each simulation (`rows`, latencies in microseconds) and notes.

    Raises:
        InputError: the study is not what it should be.
        UsageError: there are no workers, or another process simulates in the folder.
        InconsistentError: a simulation is impossible.
    """
    if index(workers) < 1:
        raise UsageError(f"workers: expected a number above 0, found {workers}")
    plan = read_study(Path(study))
    with open_pool(workers) as pool:
        if pool is None:
            raise UsageError("simulate() does not run on the ranks of an MPI job; mpirun ibprof-sim run does")
        return run_and_show(plan, StudyOutput(Path(folder)), pool, lambda _done, _work: None)
