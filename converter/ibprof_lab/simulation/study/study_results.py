# SPDX-License-Identifier: Apache-2.0
"""Execution of a study: its simulations, tables and summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ibprof.profile.missing_data import StageAccount, accounts_as_json
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import printable
from ibprof_lab.simulation.study.cell import Cell, count_lanes, list_fabric_notes, name_route_source, set_up
from ibprof_lab.simulation.study.cost_estimate import estimate_hops, estimate_seconds
from ibprof_lab.simulation.study.result_tables import (
    MEANS,
    RESULTS,
    WHOLE,
    Mean,
    Row,
    account_for_cells,
    average_seeds,
    describe_cells_lost,
    list_results,
    list_whole_times,
    need_parquet,
    write_table,
)
from ibprof_lab.simulation.study.study_file import StudyPlan
from ibprof_lab.simulation.study.sweep import find_stored, run_cells
from ibprof_lab.simulation.workload.workloads import Role, list_run_notes

SUMMARY = "summary.json"


@dataclass(frozen=True, slots=True)
class StudyOutput:
    """Destination and formats of a study's results.

    Attributes:
        folder: folder of results. If the folder has an unfinished study, only missing simulations are run.
        stored: True to write tables of stored results, and simulate nothing.
        parquet: True to write tables also as Parquet.
    """

    folder: Path
    stored: bool = False
    parquet: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class StudyResults(NotebookView):
    """The results of a study.

    Attributes:
        conclusions: name -> time or slow-down, from means over seeds.
        rows: a row for each simulation.
        notes: sentences on limits of the results, due to properties of profiles or of the fabric.
        accounts: numbers of used and of left-out inputs and simulations, with reasons.
        lost: sentences on left-out data.
        slow_senders: sentences on slow senders (see `simulated_run`).
    """

    conclusions: Mapping[str, Any]
    rows: Sequence[Row]
    notes: tuple[str, ...] = ()
    accounts: Sequence[StageAccount] = ()
    lost: Sequence[str] = ()
    slow_senders: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return printable(f"<StudyResults of {len(self.rows)} simulations: {json.dumps(self.conclusions)}>")

    def count_unsettled(self) -> list[tuple[str, int]]:
        """Return (reason why a mean did not settle, number of simulations), the most frequent reason first."""
        return Counter(str(row["note"]) for row in self.rows if not row["is_settled"]).most_common()


def estimate_study(plan: StudyPlan, workers: int) -> dict[str, float]:
    """Return a study's number of simulations, and estimates of its packet hops and minutes."""
    cells = _list_unique(plan)
    hops, seconds = (sum(map(estimate, cells)) for estimate in (estimate_hops, estimate_seconds))
    return {"simulations": len(cells), "packet_hops": round(hops), "minutes": round(seconds / workers / 60, 1)}


def run_study(plan: StudyPlan, options: StudyOutput, pool: Executor, tell: Callable[[int, int], None]) -> StudyResults:
    """Simulate a study, and write its tables and its summary.

    Args:
        tell: callback that gets the completed work and the total work.

    Raises:
        MissingToolError: Parquet is requested and pyarrow is not installed.
        InconsistentError: a simulation is impossible.
    """
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    if options.parquet:
        need_parquet()
    cells = _list_unique(plan)
    # Refuse impossible settings in this process, where errors are reported, before workers simulate.
    for cell in {cell.setting: cell for cell in cells}.values():
        set_up(cell)
    outcomes = find_stored(cells, folder) if options.stored else run_cells(cells, folder, pool, tell)
    rows = list_results(cells, outcomes)
    means = average_seeds(rows)
    _write_tables(options, {RESULTS: rows, MEANS: means, WHOLE: list_whole_times(cells, outcomes)})
    traced = {each.name for cell in cells for each in cell.workloads if each.role is Role.GOAL}
    conclusions = _conclude_by(means, plan.by) if plan.by else _conclude(means, traced)
    accounts = account_for_cells(cells, outcomes)
    found = StudyResults(conclusions, rows, list_notes(plan), accounts, describe_cells_lost(cells, accounts))
    (folder / SUMMARY).write_text(json.dumps(_summarise(plan, found), indent=2) + "\n", encoding="ascii")
    return found


def list_notes(plan: StudyPlan) -> tuple[str, ...]:
    """Return sentences on a study, its profiles and its fabric."""
    return (*plan.notes, *list_run_notes(plan.cells[0].workloads), *list_fabric_notes(plan.setting.network))


def choose_shown(plan: StudyPlan) -> Cell:
    """Return the simulation that `simulated_run` shows: the first with all jobs, preferably with `plan.setting`."""
    together = [cell for cell in plan.cells if not cell.is_alone]
    return next((cell for cell in together if cell.setting == plan.setting), (together or plan.cells)[0])


def _list_unique(plan: StudyPlan) -> list[Cell]:
    return list({cell.key: cell for cell in plan.cells}.values())


def _write_tables(options: StudyOutput, tables: Mapping[str, Sequence[Row]]) -> None:
    for name, rows in tables.items():
        path = options.folder / name
        for each, is_wanted in ((path, True), (path.with_suffix(".parquet"), options.parquet)):
            each.unlink(missing_ok=True)  # from an older study
            if rows and is_wanted:
                write_table(each, rows)


def _summarise(plan: StudyPlan, found: StudyResults) -> dict[str, Any]:
    setting = plan.setting
    return {
        "study": plan.name,
        "fabric": setting.fabric,
        "hardware": asdict(setting.hardware),
        "servers": setting.servers,
        "routing": "adaptive" if setting.adaptive else "static",
        "routes": name_route_source(setting.network),
        "virtual_lanes": count_lanes(setting.network),
        "effort": asdict(setting.effort),
        **found.conclusions,
        "cells": found.rows,
        "coverage": accounts_as_json(found.accounts),
    }


def _conclude(means: Sequence[Mean], traced: Collection[str]) -> dict[str, Any]:
    """Return for each measured job its time alone, its time if all jobs run, and its slow-down. The time is the mean
    latency of messages. For a traced program, the time is the run time, and the keys of the mean latency contain
    `_message`.

    Args:
        means: the table of means.
        traced: names of jobs with the role GOAL.
    """
    concluded: dict[str, Any] = {}
    for mean in means:
        job, is_alone = mean["measured"], mean["run"] == "baseline"
        where = "alone" if is_alone else "beside"
        kinds = [("", "mean_us", "slowdown")]
        if job in traced:
            kinds = [("", "operation_us", "operation_slowdown"), ("_message", "mean_us", "slowdown")]
        for word, time, slowdown in kinds:
            concluded[f"{job}_{where}{word}_us"] = mean[time]
            if not is_alone:
                concluded[f"{job}{word}_slowdown"] = mean[slowdown]
        if not is_alone and mean["operation_slowdown"] and job not in traced:
            concluded[f"{job}_operation_slowdown"] = mean["operation_slowdown"]
    return concluded


def _conclude_by(means: Sequence[Mean], columns: Sequence[str]) -> dict[str, Any]:
    """Return, for each job, a mapping from values of the columns to the slow-down."""
    concluded: dict[str, Any] = {}
    for mean in means:
        if mean["run"] == "interference":
            of_job = concluded.setdefault(f"{mean['measured']}_slowdown", {})
            of_job[" ".join(_name_value(mean, column) for column in columns)] = mean["slowdown"]
    return concluded


def _name_value(mean: Mean, column: str) -> str:
    value = mean[column]
    # Show a number with the name of its column, but a word without the name.
    return (
        value if isinstance(value, str) else f"{column}={value:g}" if isinstance(value, float) else f"{column}={value}"
    )
