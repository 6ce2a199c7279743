# SPDX-License-Identifier: Apache-2.0
"""`ibprof-sim`: jobs that share a fabric, packet by packet."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ibprof.cli.command import make_parser, run_command
from ibprof.cli.terminal import show_progress
from ibprof_converter.cli.arguments import Subcommands, add_subcommand, add_subcommands, number_in, type_of
from ibprof_converter.cli.printing import print_json, print_warnings
from ibprof_lab.cli.sim_options import (
    QuestionOptions,
    StudyOptions,
    add_job_hosts,
    add_machine,
    add_output,
    add_reads,
    add_replayed,
    add_running,
    build_advice,
    build_replay,
    build_run,
    build_study,
    build_threshold,
)
from ibprof_lab.simulation.questions.advice import AdviceOptions, answer_advice, ask_advice, parse_messages
from ibprof_lab.simulation.questions.congestion_threshold import (
    Simulate,
    ThresholdOptions,
    ask_threshold,
    find_threshold,
)
from ibprof_lab.simulation.questions.replayed_run import ReplayOptions, answer_replay, ask_replay
from ibprof_lab.simulation.reports.answers import (
    describe_advice,
    describe_replay,
    describe_threshold,
    format_advice,
    format_replay,
    format_threshold,
)
from ibprof_lab.simulation.reports.charts import draw_results
from ibprof_lab.simulation.reports.simulated_run import describe_results, run_and_show
from ibprof_lab.simulation.study.cell import Cell, Outcome
from ibprof_lab.simulation.study.presets import PRESETS, describe_presets
from ibprof_lab.simulation.study.result_tables import MEANS
from ibprof_lab.simulation.study.sizes_and_times import parse_size
from ibprof_lab.simulation.study.study_file import EXAMPLE, WORDS
from ibprof_lab.simulation.study.study_results import estimate_study, list_notes
from ibprof_lab.simulation.study.sweep import keep_results, open_pool, run_cells

NAME = "ibprof-sim"

_EXAMPLES = """\
examples:
  ibprof-sim study placement --quick -o placement
  ibprof-sim study interference --fabric ibdiagnet.lst --seeds 5 -o survey
  ibprof-sim run study.yaml -o mine
  mpirun -n 8 ibprof-sim study interference -o survey
  ibprof-sim charts survey placement -o figures
  ibprof-sim threshold --fabric ibdiagnet.lst --size 4MiB
  ibprof-sim advise --fabric ibdiagnet.lst --mpi profile.otf2 --io 4MiB
  ibprof-sim replay profile.otf2 --fabric ibdiagnet.lst --to-hosts 'node[17-48]'
"""

_STUDY_EXAMPLES = """\
examples:
  ibprof-sim study placement --quick -o placement
  ibprof-sim study interference --estimate
"""

_RUN_EXAMPLES = f"""\
examples:
  ibprof-sim run study.yaml -o mine

study.yaml:
{EXAMPLE}
{WORDS}"""

_THRESHOLD_EXAMPLES = """\
examples:
  ibprof-sim threshold --fabric ibdiagnet.lst --servers 8 --size 1MiB --share 0.25 --json
"""

_ADVISE_EXAMPLES = """\
examples:
  ibprof-sim advise --fabric ibdiagnet.lst --mpi 4KiB@500us --io 4MiB --quick
  ibprof-sim advise --fabric ibdiagnet.lst --servers 'io[1-8]' --mpi profile.otf2@100us --io 1MiB@5ms --json
  ibprof-sim advise --fabric ibdiagnet.lst --mpi profile.otf2 --io job.darshan --io-hosts 'node[17-48]'
  ibprof-sim advise --fabric ibdiagnet.lst --mpi one.otf2 --io other.otf2 --mpi-hosts 'node[01-16]'
"""

_REPLAY_EXAMPLES = """\
examples:
  ibprof-sim replay profile.otf2 --fabric ibdiagnet.lst --to-hosts 'node[17-48]'
  ibprof-sim replay profile.otf2 --fabric ibdiagnet.lst --to-routes opensm:ftree --json
  ibprof-sim replay profile.otf2 --fabric ibdiagnet.lst --next-to other.otf2
"""

_CHARTS_EXAMPLES = """\
examples:
  ibprof-sim charts survey placement throttle -o figures
"""


@dataclass(frozen=True, slots=True)
class _ChartsOptions:
    """Folders of studies, the folder of the charts, and their format."""

    results: Sequence[Path]
    output: Path
    format: str


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-sim`."""
    return run_command(NAME, _simulate, argv)


def _simulate(argv: Sequence[str] | None) -> None:
    arguments = _make_parser().parse_args(argv)
    options = arguments.options(arguments)
    with open_pool(arguments.workers) as pool:
        if pool is not None:  # None in a rank that has served another rank's pool
            arguments.run(options, pool)


def _run_study(options: StudyOptions, pool: Executor) -> None:
    plan = options.make_plan()
    if options.estimate_workers is not None:
        print_warnings(NAME, plan.notes)
        # Under mpirun the other ranks are the workers.
        print_json(estimate_study(plan, getattr(pool, "num_workers", options.estimate_workers)), indent=None)
        return
    print_warnings(NAME, list_notes(plan))
    with show_progress("simulating") as tell:
        found = run_and_show(plan, options.output, pool, tell)
    print_json(found.conclusions)
    print_warnings(NAME, describe_results(found, options.output))


def _find_threshold(options: QuestionOptions[ThresholdOptions], pool: Executor) -> None:
    question = ask_threshold(options.question)
    with _answering(options, question.notes, pool) as simulate:
        found = find_threshold(question.setting, question.job, question.seeds, simulate)
    _print_answer(options, describe_threshold(question, found), format_threshold(question, found))


def _advise(options: QuestionOptions[AdviceOptions], pool: Executor) -> None:
    question = ask_advice(options.question)
    with _answering(options, question.notes, pool) as simulate:
        advice = answer_advice(question, simulate)
    _print_answer(options, describe_advice(advice), format_advice(advice))


def _replay(options: QuestionOptions[ReplayOptions], pool: Executor) -> None:
    question = ask_replay(options.question)
    with _answering(options, question.notes, pool) as simulate:
        found = answer_replay(question, simulate)
    _print_answer(options, describe_replay(question, found), format_replay(found))


@contextmanager
def _answering(options: QuestionOptions[Any], notes: Sequence[str], pool: Executor) -> Iterator[Simulate]:
    """Print what is to be said of a question, and have its results kept while it is answered."""
    print_warnings(NAME, notes)
    with keep_results(options.folder) as folder:
        yield partial(_run_cells, folder, pool)


def _print_answer(options: QuestionOptions[Any], described: dict[str, Any], text: str) -> None:
    if options.as_json:
        print_json(described)
    else:
        print(text)


def _run_cells(folder: Path, pool: Executor, cells: Sequence[Cell]) -> dict[str, Outcome]:
    with show_progress("simulating") as tell:
        return run_cells(cells, folder, pool, tell)


def _draw(options: _ChartsOptions, _pool: Executor) -> None:
    drawn = draw_results(options.results, options.output, options.format)
    for path in drawn.files:
        print(path)
    print_warnings(NAME, drawn.notes)


def _make_parser() -> argparse.ArgumentParser:
    description = (
        "Simulate jobs that share a fabric, packet by packet over its forwarding tables: how much they slow each other "
        "down, and what helps."
    )
    parser = make_parser(NAME, description, _EXAMPLES)
    commands = add_subcommands(parser)
    _add_study(commands)
    _add_run(commands)
    _add_threshold(commands)
    _add_advise(commands)
    _add_replay(commands)
    _add_charts(commands)
    return parser


def _add_study(commands: Subcommands) -> None:
    summaries = "\n".join(f"  {name:14}{summary}" for name, summary in describe_presets().items())
    summary, description = "a study of MPI jobs next to I/O", f"Studies of MPI jobs next to I/O:\n{summaries}"
    parser = add_subcommand(commands, "study", summary, _STUDY_EXAMPLES, build_study, _run_study, description)
    parser.add_argument("name", metavar="NAME", choices=PRESETS)
    parser.add_argument("--estimate", action="store_true", help="print the work that it would be, and end")
    add_machine(parser, needs_fabric=False)
    add_running(parser, Path("results"))
    add_output(parser)


def _add_run(commands: Subcommands) -> None:
    summary, description = "a study of your own", "Simulate the jobs of a file."
    parser = add_subcommand(commands, "run", summary, _RUN_EXAMPLES, build_run, _run_study, description)
    parser.add_argument("study", metavar="STUDY.yaml", type=Path)
    add_running(parser, Path("results"))
    add_output(parser)


def _add_threshold(commands: Subcommands) -> None:
    summary = "the interval below which I/O requests delay each other"
    description = (
        "Find the I/O-congestion threshold: the interval from a request's end to the next one's start below which the\n"
        "requests of the job's own clients delay each other."
    )
    examples = _THRESHOLD_EXAMPLES
    parser = add_subcommand(commands, "threshold", summary, examples, build_threshold, _find_threshold, description)
    add = parser.add_argument
    add("--size", metavar="SIZE", type=type_of(parse_size), default=1 << 22, help="of a request (default: 4MiB)")
    add("--share", metavar="S", type=number_in(0, 1), default=0.5, help="part of the compute hosts that run the "
        "job (default: 0.5)")  # fmt: skip
    _add_question(parser)


def _add_advise(commands: Subcommands) -> None:
    description = (
        "Report how much two jobs slow each other down on a fabric: an MPI job, and an I/O job or a second recorded\n"
        "one. Report where servers and jobs should be, which throttle or routing helps, the gain, and how sure it is."
    )
    summary = "interference of two jobs, and what would help"
    parser = add_subcommand(commands, "advise", summary, _ADVISE_EXAMPLES, build_advice, _advise, description)
    add = parser.add_argument
    add("--mpi", metavar="TRAFFIC", type=type_of(parse_messages), required=True, help="SIZE@INTERVAL between random "
        "pairs, or a profile, by its time line or with @INTERVAL")  # fmt: skip
    add("--io", metavar="LOAD", type=type_of(parse_messages), required=True, help="SIZE[@INTERVAL] of I/O requests (no "
        "interval: a checkpoint), a log of Darshan (*.darshan), or the profile of a second job")  # fmt: skip
    add("--share", metavar="S", type=number_in(0, 1), default=0.5, help="part of the compute hosts for MPI, the rest "
        "for I/O; at most what named hosts leave (default: 0.5)")  # fmt: skip
    add_job_hosts(parser)
    _add_question(parser)


def _add_replay(commands: Subcommands) -> None:
    summary = "the time of a recorded run elsewhere"
    description = (
        "Predict the time of a recorded run on other hosts, with other forwarding tables, or next to another job. Its\n"
        "ranks compute as long as they did, and wait for the messages that they can have waited for. Record it to its\n"
        "end with IBPROF_TIME=1 and IBPROF_INTERVAL=10."
    )
    parser = add_subcommand(commands, "replay", summary, _REPLAY_EXAMPLES, build_replay, _replay, description)
    parser.add_argument(
        "profile", metavar="PROFILE", type=Path, help="profile or recording, with times and a time line"
    )
    add_replayed(parser)
    add_running(parser, None)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_question(parser: argparse.ArgumentParser) -> None:
    add_reads(parser)
    add_machine(parser, seeds=3)
    add_running(parser, None)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_charts(commands: Subcommands) -> None:
    summary, description = "charts of stored results", "Draw the means of studies, a chart for each measured job."
    parser = add_subcommand(commands, "charts", summary, _CHARTS_EXAMPLES, _ChartsOptions, _draw, description)
    parser.set_defaults(workers=1)
    parser.add_argument(
        "results", metavar="RESULTS", type=Path, nargs="+", help=f"folders of studies, or their {MEANS}"
    )
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, default=Path("figures"), help="default: figures")
    parser.add_argument("--format", choices=("png", "svg", "pdf"), default="png", help="default: png")
