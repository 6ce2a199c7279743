# SPDX-License-Identifier: Apache-2.0
"""`ibprof-sim`: jobs that share a fabric, packet by packet."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ibprof.cli.command import run_command
from ibprof.cli.progress import show_progress
from ibprof_converter.cli.sim_outputs import FILES, write_run
from ibprof_converter.simulation.cell import Cell, Setting, set_up
from ibprof_converter.simulation.cost import estimate_hops
from ibprof_converter.simulation.network import Hardware
from ibprof_converter.simulation.patterns import FULL, QUICK, SURVEY, THESIS_FABRIC
from ibprof_converter.simulation.results import (
    MEANS,
    RESULTS,
    WHOLE,
    Row,
    average_seeds,
    list_results,
    list_whole_times,
    write_table,
)
from ibprof_converter.simulation.runs import open_pool, run_cells
from ibprof_converter.simulation.studies import STUDIES
from ibprof_converter.simulation.study_file import EXAMPLE, read_study

NAME = "ibprof-sim"

_EXAMPLES = """\
examples:
  ibprof-sim study placement --quick -o placement
  ibprof-sim study interference --fabric ibdiagnet.lst --seeds 5 -o survey
  ibprof-sim run study.yaml -o mine
  mpirun -n 8 ibprof-sim study interference -o survey
"""

_RATE = 2e7
"""Packet hops a second and core, about; what an estimate is made with."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-sim`."""
    return run_command(NAME, _simulate, argv)


def _simulate(argv: Sequence[str] | None) -> None:
    arguments = _parser().parse_args(argv)
    arguments.run(arguments)


def _run_study(arguments: argparse.Namespace) -> None:
    setting = Setting(
        fabric=arguments.fabric or THESIS_FABRIC,
        hardware=Hardware(
            packet_bytes=arguments.packet,
            lane_bytes=arguments.lane,
            switch_ns=arguments.switch_ns,
            gbps=arguments.gbps,
        ),
        adaptive=arguments.adaptive,
        servers=arguments.servers,
        effort=QUICK if arguments.quick else FULL if arguments.full else SURVEY,
    )
    study = STUDIES[arguments.name]
    cells = study.make(setting, range(1, arguments.seeds + 1), arguments.quick)
    if arguments.estimate:
        _print_estimate(cells, arguments.workers)
        return
    with open_pool(arguments.workers) as pool:
        if pool is not None:
            results, means = _run(cells, pool, arguments)
            _report(arguments.output, arguments.name, setting, results, study.conclude(means))


def _run_own(arguments: argparse.Namespace) -> None:
    with open_pool(arguments.workers) as pool:
        if pool is None:
            return
        cells = read_study(arguments.study)
        results, means = _run(cells, pool, arguments)
        measured = cells[0].measured
        slowdown = {f"{measured}_slowdown": mean["slowdown"] for mean in means if mean["run"] == "interference"}
        _report(arguments.output, arguments.study.stem, cells[0].setting, results, slowdown)


def _print_estimate(cells: Sequence[Cell], workers: int) -> None:
    unique = {cell.key: cell for cell in cells}.values()
    hops = sum(map(estimate_hops, unique))
    minutes = hops / _RATE / workers / 60
    print(json.dumps({"simulations": len(unique), "packet_hops": round(hops), "minutes": round(minutes, 1)}))


def _run(cells: Sequence[Cell], pool: Executor, arguments: argparse.Namespace) -> tuple[list[Row], list[Row]]:
    folder: Path = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    # What cannot be is to be known before anything was simulated, and from the process that can say so.
    for cell in {cell.setting: cell for cell in cells}.values():
        set_up(cell)
    unique = list({cell.key: cell for cell in cells}.values())
    with show_progress("simulating") as tell:
        outcomes = run_cells(unique, folder, pool, tell)
    results = list_results(unique, outcomes)
    means = average_seeds(results)
    for name, rows in ((RESULTS, results), (MEANS, means), (WHOLE, list_whole_times(unique, outcomes))):
        if rows:
            write_table(folder / name, rows)
            if arguments.parquet:
                write_table((folder / name).with_suffix(".parquet"), rows)
    write_run(folder, next((cell for cell in unique if not cell.is_alone), unique[0]))
    return results, means


def _report(folder: Path, name: str, setting: Setting, results: Sequence[Row], concluded: Mapping[str, Any]) -> None:
    summary = {
        "study": name,
        "fabric": setting.fabric,
        "hardware": asdict(setting.hardware),
        "servers": setting.servers,
        "routing": "adaptive" if setting.adaptive else "static",
        "effort": asdict(setting.effort),
        **concluded,
        "cells": results,
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="ascii")
    print(json.dumps(concluded, indent=2))
    files = ", ".join((RESULTS, MEANS, "summary.json", *FILES))
    print(f"{NAME}: {len(results)} simulations in {folder}: {files}", file=sys.stderr)
    if open_cells := sum(not row["is_settled"] for row in results):
        print(f"{NAME}: {open_cells} of them have no mean that is settled; their cells are empty", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Simulate jobs that share a fabric, packet by packet over its forwarding tables: how much they "
        "disturb each other, and what helps.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    summaries = "\n".join(f"  {name:14}{study.summary}" for name, study in STUDIES.items())
    study = commands.add_parser(
        "study",
        help="a study of MPI jobs beside I/O",
        description=f"Studies of MPI jobs beside I/O:\n{summaries}",
        epilog="examples:\n  ibprof-sim study placement --quick -o placement\n"
        "  ibprof-sim study interference --estimate",
        formatter_class=raw,
    )
    study.set_defaults(run=_run_study)
    study.add_argument("name", metavar="NAME", choices=STUDIES)
    effort = study.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="fewer patterns and messages")
    effort.add_argument("--full", action="store_true", help="50 messages of warm-up and 1,000 measured, however long")
    study.add_argument("--seeds", metavar="N", type=_count, default=1, help="runs of each, drawn anew (default: 1)")
    study.add_argument("--estimate", action="store_true", help="say how much work it would be, and end")
    _add_machine(study)
    own = commands.add_parser(
        "run",
        help="a study of your own",
        description="Simulate the jobs of a file.",
        epilog=f"example:\n  ibprof-sim run study.yaml -o mine\n\nstudy.yaml:\n{EXAMPLE}",
        formatter_class=raw,
    )
    own.set_defaults(run=_run_own)
    own.add_argument("study", metavar="STUDY.yaml", type=Path)
    for each in (study, own):
        each.add_argument(
            "-o", "--output", metavar="DIR", type=Path, default=Path("results"),
            help="results (default: results); gone on with if begun",
        )  # fmt: skip
        each.add_argument("--parquet", action="store_true", help="tables as Parquet too")
        each.add_argument("--workers", metavar="N", type=_count, default=os.cpu_count() or 1, help="processes at once")
    return parser


def _add_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fabric", metavar="LST", help=f"default: {THESIS_FABRIC}")
    parser.add_argument("--servers", metavar="N", type=_count, default=72, help="I/O servers (default: 72)")
    parser.add_argument("--adaptive", action="store_true", help="packets choose among shortest ways")
    parser.add_argument("--packet", metavar="B", type=_count, default=4096, help="bytes of a packet (default: 4096)")
    parser.add_argument(
        "--lane", metavar="B", type=_count, default=65536, help="room of a virtual lane (default: 65536)"
    )
    parser.add_argument("--switch-ns", metavar="NS", type=float, default=90.0, help="delay of a switch (default: 90)")
    parser.add_argument("--gbps", metavar="G", type=float, help="speed of all links (default: as the fabric says)")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return int(text)
