# SPDX-License-Identifier: Apache-2.0
"""`ibprof-sim`: jobs that share a fabric, packet by packet."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ibprof.cli.command import run_command
from ibprof.cli.progress import show_progress
from ibprof.errors import InputError, UsageError
from ibprof.text.quantities import printable
from ibprof_converter.cli.sim_options import (
    HOSTS_A_SERVER,
    add_job_hosts,
    add_machine,
    add_running,
    parse_pattern,
    parse_size,
    parse_traffic,
    refuse_option,
    share,
)
from ibprof_converter.cli.sim_outputs import FILES, write_run
from ibprof_converter.cli.sim_questions import (
    advise,
    find_own_threshold,
    tell_of_fabric,
    tell_of_profiles,
    tell_on_stderr,
)
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.outputs.charts import choose_machine, draw_figures, merge_means
from ibprof_converter.simulation.engine.simulated_network import Hardware
from ibprof_converter.simulation.measure.message_latency import Effort
from ibprof_converter.simulation.study.cell import Cell, Setting, count_lanes, load_network, set_up
from ibprof_converter.simulation.study.cost_estimate import estimate_hops
from ibprof_converter.simulation.study.job_patterns import FULL, QUICK, SURVEY, THESIS_FABRIC
from ibprof_converter.simulation.study.named_hosts import NamedHosts
from ibprof_converter.simulation.study.presets import STUDIES
from ibprof_converter.simulation.study.result_tables import (
    MEANS,
    RESULTS,
    WHOLE,
    Mean,
    Row,
    average_seeds,
    is_means,
    list_results,
    list_whole_times,
    need_parquet,
    read_means,
    write_table,
)
from ibprof_converter.simulation.study.study_file import EXAMPLE, WORDS, read_study
from ibprof_converter.simulation.study.sweep import find_stored, open_pool, run_cells
from ibprof_converter.simulation.workload.roles import JobPlacement, ServerPlacement

NAME = "ibprof-sim"

_EXAMPLES = """\
examples:
  ibprof-sim study placement --quick -o placement
  ibprof-sim study interference --fabric ibdiagnet.lst --seeds 5 -o survey
  ibprof-sim run study.yaml -o mine
  mpirun -n 8 ibprof-sim study interference -o survey
  ibprof-sim charts survey placement -o figures
  ibprof-sim threshold --size 4MiB
  ibprof-sim advise --fabric ibdiagnet.lst --mpi profile.otf2 --io 4MiB
"""

_RATE = 2e7
"""Packet hops a second and core, about; what an estimate is made with."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-sim`."""
    return run_command(NAME, _simulate, argv)


def _simulate(argv: Sequence[str] | None) -> None:
    arguments = _parser().parse_args(argv)
    with open_pool(getattr(arguments, "workers", 1)) as pool:
        if pool is not None:  # a rank that serves another's has nothing to say
            arguments.run(arguments, pool)


def _make_setting(arguments: argparse.Namespace, usual: Effort) -> Setting:
    if arguments.fabric == "":
        raise UsageError("--fabric: expected a file or the name of a made-up fabric, found nothing")
    fabric = arguments.fabric or THESIS_FABRIC
    hardware = Hardware(
        packet_bytes=arguments.packet, lane_bytes=arguments.lane, switch_ns=arguments.switch_ns, gbps=arguments.gbps
    )
    if arguments.lane < arguments.packet:
        raise UsageError(f"--lane: expected at least the {arguments.packet} bytes of a packet, found {arguments.lane}")
    hosts = load_network(fabric, hardware)[1].hosts
    named = arguments.servers if isinstance(arguments.servers, list) else []
    servers = len(named) or arguments.servers or max(hosts // HOSTS_A_SERVER, 1)
    if servers >= hosts:
        raise UsageError(f"--servers: expected fewer than the fabric's {hosts} hosts, found {servers}")
    setting = Setting(
        fabric=fabric,
        hardware=hardware,
        adaptive=arguments.adaptive,
        servers=servers,
        server_placement=ServerPlacement(arguments.server_placement or ServerPlacement.ISOLATED),
        job_placement=JobPlacement(arguments.job_placement),
        effort=QUICK if arguments.quick else FULL if arguments.full else usual,
    )
    if not named:
        return setting
    if arguments.server_placement:
        raise UsageError("--server-placement is of servers that are not named by --servers")
    return replace(setting, server_hosts=NamedHosts(setting).number(named, refuse_option("--servers")))


def _run_study(arguments: argparse.Namespace, pool: Executor) -> None:
    setting = _make_setting(arguments, SURVEY)
    study = STUDIES[arguments.name]
    if setting.server_hosts and "server_placement" in study.by:
        raise UsageError(f"--servers: expected a number, as the study {arguments.name} varies where they are")
    cells = study.make(setting, range(1, arguments.seeds + 1), arguments.quick)
    _refuse_small_lanes(arguments, cells)
    if arguments.estimate:
        _print_estimate(cells, getattr(pool, "num_workers", arguments.workers))  # the other ranks under mpirun
        return
    results, means = _run(cells, setting, pool, arguments)
    _report(arguments, arguments.name, setting, results, study.conclude(means))


def _refuse_small_lanes(arguments: argparse.Namespace, cells: Sequence[Cell]) -> None:
    """A study that varies packets and lanes needs room for its own too."""
    used = {cell.setting.hardware for cell in cells}
    least, most = min(each.lane_bytes for each in used), max(each.packet_bytes for each in used)
    told = f"the study {arguments.name} also has"
    if arguments.packet > least:
        raise UsageError(f"--packet: expected at most {least}, found {arguments.packet}: {told} lanes of {least} bytes")
    if arguments.lane < most:
        raise UsageError(f"--lane: expected at least {most}, found {arguments.lane}: {told} packets of {most} bytes")


def _draw(arguments: argparse.Namespace, _pool: Executor) -> None:
    tables = [path for each in arguments.results for path in _find_tables(each)]
    arguments.output.mkdir(parents=True, exist_ok=True)
    means, drawn, others = choose_machine(merge_means([read_means([path]) for path in tables]))
    written, missing = draw_figures(means, arguments.output, arguments.format)
    for path in written:
        print(path)
    if others:
        told = f"drawn are results of {drawn}, not of {show_some(others)}"
        print(f"{NAME}: {printable(told)}", file=sys.stderr)
    if missing:
        print(f"{NAME}: no results for the figures {', '.join(missing)}", file=sys.stderr)


def _find_tables(path: Path) -> list[Path]:
    """Give a table, or those in a folder whose first line is that of means."""
    if not path.is_dir():
        return [path]
    found = [each for each in sorted(path.rglob("*.csv")) if is_means(each)]
    if not found:
        raise InputError(path, None, f"{MEANS} of a study in it", "none")
    return found


def _run_own(arguments: argparse.Namespace, pool: Executor) -> None:
    cells = read_study(arguments.study, tell_on_stderr)
    tell_of_profiles(cells[0].workloads)
    results, means = _run(cells, cells[0].setting, pool, arguments)
    _report(arguments, arguments.study.stem, cells[0].setting, results, _conclude(means))


def _find_threshold(arguments: argparse.Namespace, pool: Executor) -> None:
    find_own_threshold(arguments, _make_setting(arguments, Effort()), pool)


def _advise(arguments: argparse.Namespace, pool: Executor) -> None:
    advise(arguments, _make_setting(arguments, Effort()), pool)


def _conclude(means: Sequence[Mean]) -> dict[str, Any]:
    """Give what the measured job's messages took alone and beside the others, and the slow-down."""
    concluded: dict[str, Any] = {}
    for mean in means:
        job, is_alone = mean["measured"], mean["run"] == "baseline"
        concluded[f"{job}_{'alone' if is_alone else 'beside'}_us"] = mean["mean_us"]
        if not is_alone:
            concluded[f"{job}_slowdown"] = mean["slowdown"]
            if mean["operation_slowdown"]:
                concluded[f"{job}_operation_slowdown"] = mean["operation_slowdown"]
    return concluded


def _print_estimate(cells: Sequence[Cell], workers: int) -> None:
    unique = {cell.key: cell for cell in cells}.values()
    hops = sum(map(estimate_hops, unique))
    minutes = hops / _RATE / workers / 60
    print(json.dumps({"simulations": len(unique), "packet_hops": round(hops), "minutes": round(minutes, 1)}))


def _run(
    cells: Sequence[Cell], setting: Setting, pool: Executor, arguments: argparse.Namespace
) -> tuple[list[Row], list[Row]]:
    folder: Path = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.parquet:
        need_parquet()
    tell_of_fabric(cells[0].setting.fabric)
    # What cannot be is to be known before anything was simulated, and from the process that can say so.
    for cell in {cell.setting: cell for cell in cells}.values():
        set_up(cell)
    unique = list({cell.key: cell for cell in cells}.values())
    with show_progress("simulating") as tell:
        outcomes = find_stored(unique, folder) if arguments.stored else run_cells(unique, folder, pool, tell)
    results = list_results(unique, outcomes)
    means = average_seeds(results)
    for name, rows in ((RESULTS, results), (MEANS, means), (WHOLE, list_whole_times(unique, outcomes))):
        for path, is_wanted in ((folder / name, True), ((folder / name).with_suffix(".parquet"), arguments.parquet)):
            path.unlink(missing_ok=True)  # one of an older study
            if rows and is_wanted:
                write_table(path, rows)
    if not arguments.stored:
        write_run(folder, _choose_run(unique, setting))
    return results, means


def _choose_run(cells: Sequence[Cell], setting: Setting) -> Cell:
    """Give the simulation of all jobs that is shown: of what a study varies, as the command has it where it does."""
    together = [cell for cell in cells if not cell.is_alone]
    return next((cell for cell in together if cell.setting == setting), (together or cells)[0])


def _report(
    arguments: argparse.Namespace, name: str, setting: Setting, results: Sequence[Row], concluded: Mapping[str, Any]
) -> None:
    folder = arguments.output
    summary = {
        "study": name,
        "fabric": setting.fabric,
        "hardware": asdict(setting.hardware),
        "servers": setting.servers,
        "routing": "adaptive" if setting.adaptive else "static",
        "virtual_lanes": count_lanes(setting.fabric),
        "effort": asdict(setting.effort),
        **concluded,
        "cells": results,
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="ascii")
    print(json.dumps(concluded, indent=2))
    of_run = [] if arguments.stored else [each for each in FILES if (folder / each).exists()]
    files = ", ".join((RESULTS, MEANS, "summary.json", *of_run))
    print(f"{NAME}: {len(results)} simulations in {folder}: {files}", file=sys.stderr)
    for note, rows in Counter(row["note"] for row in results if not row["is_settled"]).most_common():
        print(f"{NAME}: {rows} of them have no mean that is settled, and empty cells: {note}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Simulate jobs that share a fabric, packet by packet over its forwarding tables: how much they "
        "disturb each other, and what helps.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    summaries = "\n".join(f"  {name:14}{study.summary}" for name, study in STUDIES.items())
    study = _add_command(
        commands, "study", "a study of MPI jobs beside I/O", f"Studies of MPI jobs beside I/O:\n{summaries}",
        "  ibprof-sim study placement --quick -o placement\n  ibprof-sim study interference --estimate",
    )  # fmt: skip
    study.set_defaults(run=_run_study)
    study.add_argument("name", metavar="NAME", choices=STUDIES)
    study.add_argument("--estimate", action="store_true", help="say how much work it would be, and end")
    add_machine(study)
    own = _add_command(
        commands, "run", "a study of your own", "Simulate the jobs of a file.",
        f"  ibprof-sim run study.yaml -o mine\n\nstudy.yaml:\n{EXAMPLE}\n{WORDS}",
    )  # fmt: skip
    own.set_defaults(run=_run_own)
    own.add_argument("study", metavar="STUDY.yaml", type=Path)
    for each in (study, own):
        add_running(each, Path("results"))
        each.add_argument("--stored", action="store_true", help="tables of what is stored; nothing is simulated")
        each.add_argument("--parquet", action="store_true", help="tables as Parquet too")
    threshold = _add_command(
        commands, "threshold", "from which interval on I/O requests congest themselves",
        "Find the I/O-congestion threshold: the interval from a request's end to the next one's start below which the "
        "requests of the\njob's own clients hold each other up.",
        "  ibprof-sim threshold --size 4MiB\n  ibprof-sim threshold --fabric ibdiagnet.lst --servers 8 --size 1MiB "
        "--share 0.25 --json",
    )  # fmt: skip
    threshold.set_defaults(run=_find_threshold)
    threshold.add_argument(
        "--size", metavar="SIZE", type=parse_size, default=1 << 22, help="of a request (default: 4MiB)"
    )
    threshold.add_argument(
        "--share", metavar="S", type=share, default=0.5, help="of the compute hosts that write (default: 0.5)"
    )
    advice = _add_command(
        commands, "advise", "what two jobs do to each other, and what would help",
        "Say what an MPI job and an I/O job do to each other on this fabric, and what placement, routing and "
        "throttling would change.",
        "  ibprof-sim advise --mpi 4KiB@500us --io 4MiB --quick\n"
        "  ibprof-sim advise --fabric ibdiagnet.lst --servers io[1-8] --mpi profile.otf2@100us --io 1MiB@5ms --json",
    )  # fmt: skip
    advice.set_defaults(run=_advise)
    advice.add_argument(
        "--mpi", metavar="TRAFFIC", type=parse_traffic, required=True,
        help="SIZE@INTERVAL between random pairs, or a profile, by its time line or with @INTERVAL",
    )  # fmt: skip
    advice.add_argument(
        "--io", metavar="SIZE[@INTERVAL]", type=parse_pattern, required=True, help="no interval: a checkpoint"
    )
    advice.add_argument(
        "--share",
        metavar="S",
        type=share,
        default=0.5,
        help="of the compute hosts for MPI, the others for I/O; at most what named ones leave (default: 0.5)",
    )
    add_job_hosts(advice)
    for each in (threshold, advice):
        add_machine(each, seeds=3)
        add_running(each, None)
        each.add_argument("--json", action="store_true", help="for programs")
    charts = _add_command(
        commands, "charts", "figures from stored results", "Draw the thesis's figures from the means of studies.",
        "  ibprof-sim charts survey placement throttle -o figures",
    )  # fmt: skip
    charts.set_defaults(run=_draw)
    charts.add_argument(
        "results", metavar="RESULTS", type=Path, nargs="+", help=f"folders of studies, or {MEANS} of them"
    )
    charts.add_argument("-o", "--output", metavar="DIR", type=Path, default=Path("figures"), help="default: figures")
    charts.add_argument("--format", choices=("png", "svg", "pdf"), default="png", help="default: png")
    return parser


def _add_command(commands: Any, name: str, summary: str, description: str, examples: str) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return added
