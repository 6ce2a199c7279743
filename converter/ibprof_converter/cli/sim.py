# SPDX-License-Identifier: Apache-2.0
"""`ibprof-sim`: jobs that share a fabric, packet by packet."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from ibprof.cli.command import run_command
from ibprof.cli.progress import show_progress
from ibprof.text.quantities import printable
from ibprof_converter.cli.sim_options import (
    add_job_hosts,
    add_machine,
    add_output,
    add_running,
    build_advice,
    build_machine,
    build_output,
    build_threshold,
    parse_pattern,
    parse_size,
    parse_traffic,
    share,
)
from ibprof_converter.outputs.charts import draw_results
from ibprof_converter.reports.advice_report import describe_advice, format_advice
from ibprof_converter.reports.simulated_run import FILES, write_run
from ibprof_converter.reports.threshold_report import describe_threshold, format_threshold
from ibprof_converter.simulation.questions.advice import AdviceOptions, answer_advice, ask_advice
from ibprof_converter.simulation.questions.congestion_threshold import ThresholdOptions, ask_threshold, find_threshold
from ibprof_converter.simulation.study.cell import Cell, Outcome
from ibprof_converter.simulation.study.presets import PRESETS, describe_presets, plan_preset
from ibprof_converter.simulation.study.result_tables import MEANS, RESULTS
from ibprof_converter.simulation.study.study_file import StudyPlan, read_study
from ibprof_converter.simulation.study.study_help import EXAMPLE, WORDS
from ibprof_converter.simulation.study.study_results import (
    SUMMARY,
    StudyOutput,
    choose_shown,
    estimate_study,
    list_notes,
    run_study,
)
from ibprof_converter.simulation.study.sweep import keep_results, open_pool, run_cells

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
"""

Work = Callable[[Executor], None]


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-sim`."""
    return run_command(NAME, _simulate, argv)


def _simulate(argv: Sequence[str] | None) -> None:
    workers, work = _read_command(argv)
    with open_pool(workers) as pool:
        if pool is not None:  # None in a rank that has served another rank's pool
            work(pool)


def _read_command(argv: Sequence[str] | None) -> tuple[int, Work]:
    """Return the number of processes, and the command with its options."""
    arguments = _make_parser().parse_args(argv)
    if arguments.command == "charts":
        return 1, lambda _: _draw(arguments.results, arguments.output, arguments.format)
    if arguments.command == "threshold":
        options = build_threshold(arguments)
        return arguments.workers, partial(_find_threshold, options, arguments.output, arguments.json)
    if arguments.command == "advise":
        return arguments.workers, partial(_advise, build_advice(arguments), arguments.output, arguments.json)
    if arguments.command == "run":
        return arguments.workers, partial(_run, partial(read_study, arguments.study), build_output(arguments))
    seeds, quick = range(1, arguments.seeds + 1), arguments.quick
    plan = partial(plan_preset, arguments.name, build_machine(arguments), seeds, quick)
    if arguments.estimate:
        return arguments.workers, partial(_print_estimate, plan, arguments.workers)
    return arguments.workers, partial(_run, plan, build_output(arguments))


def _print_estimate(make_plan: Callable[[], StudyPlan], workers: int, pool: Executor) -> None:
    plan = make_plan()
    _say(plan.notes)
    # Under mpirun the other ranks are the workers.
    print(json.dumps(estimate_study(plan, getattr(pool, "num_workers", workers))))


def _run(make_plan: Callable[[], StudyPlan], options: StudyOutput, pool: Executor) -> None:
    plan = make_plan()
    _say(list_notes(plan))
    with show_progress("simulating") as tell:
        found = run_study(plan, options, pool, tell)
    written: list[str] = []
    if not options.stored:
        write_run(options.folder, choose_shown(plan))
        written = [each for each in FILES if (options.folder / each).exists()]
    print(json.dumps(found.conclusions, indent=2))
    files = ", ".join((RESULTS, MEANS, SUMMARY, *written))
    notes = [f"{len(found.rows)} simulations in {options.folder}: {files}"]
    notes += [f"{count} of them have no settled mean, and empty cells: {why}" for why, count in found.count_unsettled()]
    _say(notes)


def _find_threshold(options: ThresholdOptions, output: Path | None, as_json: bool, pool: Executor) -> None:
    question = ask_threshold(options)
    _say(question.notes)
    with keep_results(output) as folder:
        found = find_threshold(question.setting, question.job, question.seeds, partial(_run_cells, folder, pool))
    if as_json:
        print(json.dumps(describe_threshold(question, found), indent=2))
    else:
        print(format_threshold(question, found))


def _advise(options: AdviceOptions, output: Path | None, as_json: bool, pool: Executor) -> None:
    question = ask_advice(options)
    _say(question.notes)
    with keep_results(output) as folder:
        advice = answer_advice(question, partial(_run_cells, folder, pool))
    print(json.dumps(describe_advice(advice), indent=2) if as_json else format_advice(advice))


def _run_cells(folder: Path, pool: Executor, cells: Sequence[Cell]) -> dict[str, Outcome]:
    with show_progress("simulating") as tell:
        return run_cells(cells, folder, pool, tell)


def _draw(results: Sequence[Path], folder: Path, suffix: str) -> None:
    drawn = draw_results(results, folder, suffix)
    for path in drawn.files:
        print(path)
    _say(drawn.notes)


def _say(notes: Iterable[str]) -> None:
    for note in notes:
        print(f"{NAME}: {printable(note)}", file=sys.stderr)


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Simulate jobs that share a fabric, packet by packet over its forwarding tables: how much they "
        "slow each other down, and what helps.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_study(commands)
    _add_run(commands)
    _add_threshold(commands)
    _add_advise(commands)
    _add_charts(commands)
    return parser


def _add_study(commands: Any) -> None:
    summaries = "\n".join(f"  {name:14}{summary}" for name, summary in describe_presets().items())
    parser = _add_command(
        commands, "study", "a study of MPI jobs next to I/O", f"Studies of MPI jobs next to I/O:\n{summaries}",
        "  ibprof-sim study placement --quick -o placement\n  ibprof-sim study interference --estimate",
    )  # fmt: skip
    parser.add_argument("name", metavar="NAME", choices=PRESETS)
    parser.add_argument("--estimate", action="store_true", help="print the work that it would be, and end")
    add_machine(parser, needs_fabric=False)
    add_running(parser, Path("results"))
    add_output(parser)


def _add_run(commands: Any) -> None:
    parser = _add_command(
        commands, "run", "a study of your own", "Simulate the jobs of a file.",
        f"  ibprof-sim run study.yaml -o mine\n\nstudy.yaml:\n{EXAMPLE}\n{WORDS}",
    )  # fmt: skip
    parser.add_argument("study", metavar="STUDY.yaml", type=Path)
    add_running(parser, Path("results"))
    add_output(parser)


def _add_threshold(commands: Any) -> None:
    parser = _add_command(
        commands, "threshold", "the interval below which I/O requests delay each other",
        "Find the I/O-congestion threshold: the interval from a request's end to the next one's start below which the\n"
        "requests of the job's own clients delay each other.",
        "  ibprof-sim threshold --fabric ibdiagnet.lst --servers 8 --size 1MiB --share 0.25 --json",
    )  # fmt: skip
    parser.add_argument("--size", metavar="SIZE", type=parse_size, default=1 << 22, help="of a request (default: 4MiB)")
    parser.add_argument(
        "--share", metavar="S", type=share, default=0.5, help="part of the compute hosts that writes (default: 0.5)"
    )
    _add_question(parser)


def _add_advise(commands: Any) -> None:
    parser = _add_command(
        commands, "advise", "interference of two jobs, and what would help",
        "Report how much an MPI job and an I/O job slow each other down on a fabric, and what placement, routing and\n"
        "throttling would change.",
        "  ibprof-sim advise --fabric ibdiagnet.lst --mpi 4KiB@500us --io 4MiB --quick\n"
        "  ibprof-sim advise --fabric ibdiagnet.lst --servers io[1-8] --mpi profile.otf2@100us --io 1MiB@5ms --json",
    )  # fmt: skip
    parser.add_argument(
        "--mpi", metavar="TRAFFIC", type=parse_traffic, required=True,
        help="SIZE@INTERVAL between random pairs, or a profile, by its time line or with @INTERVAL",
    )  # fmt: skip
    parser.add_argument(
        "--io", metavar="SIZE[@INTERVAL]", type=parse_pattern, required=True, help="no interval: a checkpoint"
    )
    parser.add_argument(
        "--share", metavar="S", type=share, default=0.5,
        help="part of the compute hosts for MPI, the rest for I/O; at most what named hosts leave (default: 0.5)",
    )  # fmt: skip
    add_job_hosts(parser)
    _add_question(parser)


def _add_question(parser: argparse.ArgumentParser) -> None:
    add_machine(parser, seeds=3)
    add_running(parser, None)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_charts(commands: Any) -> None:
    parser = _add_command(
        commands, "charts", "charts of stored results", "Draw the means of studies, a chart for each measured job.",
        "  ibprof-sim charts survey placement throttle -o figures",
    )  # fmt: skip
    parser.add_argument(
        "results", metavar="RESULTS", type=Path, nargs="+", help=f"folders of studies, or their {MEANS}"
    )
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, default=Path("figures"), help="default: figures")
    parser.add_argument("--format", choices=("png", "svg", "pdf"), default="png", help="default: png")


def _add_command(commands: Any, name: str, summary: str, description: str, examples: str) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return added
