# SPDX-License-Identifier: Apache-2.0
"""The commands of `ibprof-sim`, with parsed arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ibprof.cli.command import print_json, print_warnings, show_progress
from ibprof.errors import UsageError, need_lab
from ibprof.profile.missing_data import accounts_as_json
from ibprof_converter.cli.arguments import call_with_options
from ibprof_lab.lab_choices import JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.measure.message_latency import FULL, QUICK
from ibprof_lab.simulation.questions.advice import AdviceOptions, answer_advice, ask_advice
from ibprof_lab.simulation.questions.congestion_threshold import Simulate, ask_threshold, find_threshold
from ibprof_lab.simulation.questions.replayed_run import answer_replay, ask_replay
from ibprof_lab.simulation.reports.answers import (
    describe_advice,
    describe_replay,
    describe_threshold,
    format_advice,
    format_replay,
    format_threshold,
)
from ibprof_lab.simulation.study.cell import Cell, Outcome
from ibprof_lab.simulation.study.result_tables import account_for_cells, describe_cells_lost
from ibprof_lab.simulation.study.simulated_machine import MachineOptions
from ibprof_lab.simulation.study.study_file import StudyPlan, plan_preset, read_study
from ibprof_lab.simulation.study.study_results import StudyOutput, estimate_study, list_notes
from ibprof_lab.simulation.study.sweep import keep_results, run_cells

_NAME = "ibprof-sim"

Answering = Callable[[Sequence[str]], AbstractContextManager[Simulate]]
"""Function of notes that returns a context manager, which prints the notes and yields a function that simulates."""

Answer = Callable[[Answering], tuple[dict[str, Any], str]]
"""Function that runs the simulations for a question, and returns the answer as a JSON document and as text."""


def build_command(arguments: argparse.Namespace) -> Callable[[Executor], None]:
    """Return a function that runs the selected command; the function's argument is the pool for simulations.

    Raises:
        IbprofError: options contradict each other.
    """
    if arguments.command == "charts":
        return lambda _pool: _draw(arguments.results, arguments.output, arguments.format)
    if arguments.command in {"study", "run"}:
        output = StudyOutput(arguments.output, arguments.stored, arguments.parquet)
        if arguments.command == "run":
            return lambda pool: _run_study(read_study(arguments.study), output, pool)
        make_plan = partial(
            plan_preset, arguments.name, _build_machine(arguments), range(1, arguments.seeds + 1), arguments.quick
        )
        if arguments.dry_run:
            return lambda pool: _estimate(make_plan(), pool, arguments.workers)
        return lambda pool: _run_study(make_plan(), output, pool)
    answer = {"threshold": _build_threshold, "advise": _build_advice, "replay": _build_replay}[arguments.command](
        arguments
    )

    def run(pool: Executor) -> None:
        simulated: dict[Cell, Outcome] = {}
        described, text = answer(partial(_answering, arguments.output, pool, simulated))
        cells = list(simulated)
        accounts = account_for_cells(cells, {cell.key: outcome for cell, outcome in simulated.items()})
        if arguments.json:
            print_json(described | {"coverage": accounts_as_json(accounts)})
        else:
            head, blank, rest = text.partition("\n\n")
            print("\n".join([head, *describe_cells_lost(cells, accounts)]) + blank + rest)

    return run


def _build_machine(arguments: argparse.Namespace) -> MachineOptions:
    servers, placement = arguments.servers, arguments.server_placement
    effort = QUICK if arguments.quick else FULL if arguments.full else None
    if arguments.every_message:
        if not arguments.full:
            raise UsageError("--every-message: expected with --full, which ends a measurement early at a steady mean")
        effort = replace(FULL, steady=0.0)
    return MachineOptions(
        fabric=arguments.fabric,
        routes=arguments.routes,
        servers=tuple(servers) if isinstance(servers, list) else servers,
        server_placement=ServerPlacement(placement) if placement else None,
        job_placement=JobPlacement(arguments.job_placement),
        adaptive=arguments.adaptive,
        hardware=_build_hardware(arguments),
        effort=effort,
    )


def _build_hardware(arguments: argparse.Namespace) -> Hardware:
    return Hardware(
        packet_bytes=arguments.packet,
        lane_bytes=arguments.lane,
        switch_ns=arguments.switch_ns,
        nic_gap_ns=arguments.nic_gap_ns,
        gbps=arguments.gbps,
    )


def _estimate(plan: StudyPlan, pool: Executor, workers: int) -> None:
    print_warnings(_NAME, plan.notes)
    # Under mpirun, the workers are the other ranks, not `workers` processes.
    print_json(estimate_study(plan, getattr(pool, "num_workers", workers)), indent=None)


def _run_study(plan: StudyPlan, output: StudyOutput, pool: Executor) -> None:
    need_lab("matplotlib", "scipy")
    # Only the commands that draw import the modules for pictures.
    from ibprof_lab.simulation.reports.simulated_run import describe_results, run_and_show  # noqa: PLC0415

    print_warnings(_NAME, list_notes(plan))
    with show_progress("simulating") as tell:
        found = run_and_show(plan, output, pool, tell)
    print_json(found.conclusions)
    print_warnings(_NAME, describe_results(found, output))


def _draw(results: Sequence[Path], output: Path, form: str) -> None:
    from ibprof_lab.simulation.reports.charts import draw_results  # noqa: PLC0415  (slow to import)

    files, notes = draw_results(results, output, form)
    for path in files:
        print(path)
    print_warnings(_NAME, notes)


@contextmanager
def _answering(
    folder: Path | None, pool: Executor, simulated: dict[Cell, Outcome], notes: Sequence[str]
) -> Iterator[Simulate]:
    """Print notes, and yield a function that runs simulations, stores the outcomes in `folder`, and adds them to
    `simulated`.
    """
    need_lab("scipy")
    print_warnings(_NAME, notes)
    with keep_results(folder) as kept, show_progress("simulating") as tell:

        def simulate(cells: Sequence[Cell]) -> dict[str, Outcome]:
            outcomes = run_cells(cells, kept, pool, tell)
            simulated.update({cell: outcomes[cell.key] for cell in cells})
            return outcomes

        yield simulate


def _build_threshold(arguments: argparse.Namespace) -> Answer:
    machine = _build_machine(arguments)

    def answer(answering: Answering) -> tuple[dict[str, Any], str]:
        question = call_with_options(ask_threshold, arguments, machine=machine)
        with answering(question.notes) as simulate:
            found = find_threshold(question.setting, question.job, question.seeds, simulate)
        return describe_threshold(question, found), format_threshold(question, found)

    return answer


def _build_advice(arguments: argparse.Namespace) -> Answer:
    (mpi, mpi_interval), (io, io_interval) = arguments.mpi, arguments.io
    options = call_with_options(
        AdviceOptions,
        arguments,
        machine=_build_machine(arguments),
        mpi=mpi,
        mpi_interval_ns=mpi_interval,
        io=io,
        io_interval_ns=io_interval,
    )

    def answer(answering: Answering) -> tuple[dict[str, Any], str]:
        question = ask_advice(options)
        with answering(question.notes) as simulate:
            advice = answer_advice(question, simulate)
        return describe_advice(advice), format_advice(advice)

    return answer


def _build_replay(arguments: argparse.Namespace) -> Answer:
    machine = MachineOptions(arguments.fabric, routes=arguments.routes, hardware=_build_hardware(arguments))

    def answer(answering: Answering) -> tuple[dict[str, Any], str]:
        question = call_with_options(ask_replay, arguments, machine=machine)
        with answering(question.notes) as simulate:
            found = answer_replay(question, simulate)
        return describe_replay(question, found), format_replay(found)

    return answer
