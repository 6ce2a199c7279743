# SPDX-License-Identifier: Apache-2.0
"""`ibprof-sim`: jobs that share a fabric, packet by packet."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ibprof.cli.command import run_command
from ibprof.cli.progress import show_progress
from ibprof_converter.cli.sim_outputs import FILES, write_run
from ibprof_converter.simulation.cell import Cell, Outcome, Setting, run_cells, set_up
from ibprof_converter.simulation.measure import Effort
from ibprof_converter.simulation.network import Hardware
from ibprof_converter.simulation.studies import STUDIES, THESIS_FABRIC, describe_cells, find_slowdown
from ibprof_converter.simulation.study_file import EXAMPLE, read_study

NAME = "ibprof-sim"

_EXAMPLES = """\
examples:
  ibprof-sim study placement --quick -o placement
  ibprof-sim study interference --fabric ibdiagnet.lst --seeds 5 -o survey
  ibprof-sim run study.yaml -o mine
  mpirun -n 8 ibprof-sim study interference -o survey
"""

_QUICK = Effort(warm_up=10, messages=20, background=3, hops=1.5e8)
_FULL = Effort(messages=1000, hops=1e12)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-sim`."""
    return run_command(NAME, _simulate, argv)


def _simulate(argv: Sequence[str] | None) -> None:
    arguments = _parser().parse_args(argv)
    arguments.run(arguments)


def _run_study(arguments: argparse.Namespace) -> None:
    effort = _QUICK if arguments.quick else _FULL if arguments.full else Effort()
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
        effort=effort,
    )
    study = STUDIES[arguments.name]
    cells = study.make(setting, range(1, arguments.seeds + 1), arguments.quick)
    outcomes = _run(cells, arguments)
    _write(arguments.output, arguments.name, setting, cells, outcomes, study.conclude(cells, outcomes))


def _run_own(arguments: argparse.Namespace) -> None:
    cells = read_study(arguments.study)
    outcomes = _run(cells, arguments)
    measured = cells[0].measured
    concluded = {f"{measured}_slowdown": find_slowdown(cells, outcomes, measured)}
    _write(arguments.output, arguments.study.stem, cells[0].setting, cells, outcomes, concluded)


def _run(cells: Sequence[Cell], arguments: argparse.Namespace) -> dict[str, Outcome]:
    arguments.output.mkdir(parents=True, exist_ok=True)
    # What cannot be is to be known before anything was simulated, and from the process that can say so.
    for cell in {cell.setting: cell for cell in cells}.values():
        set_up(cell)
    with show_progress("simulating") as tell:
        return run_cells(cells, arguments.output, arguments.workers, tell)


def _write(
    folder: Path,
    name: str,
    setting: Setting,
    cells: Sequence[Cell],
    outcomes: Mapping[str, Outcome],
    concluded: Mapping[str, Any],
) -> None:
    unique = list({cell.key: cell for cell in cells}.values())
    summary = {
        "study": name,
        "fabric": setting.fabric,
        "hardware": asdict(setting.hardware),
        "servers": setting.servers,
        "routing": "adaptive" if setting.adaptive else "static",
        "effort": asdict(setting.effort),
        **concluded,
        "cells": describe_cells(unique, outcomes),
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="ascii")
    together = next((cell for cell in unique if len(cell.running) > 1), unique[0])
    write_run(folder, together)
    print(json.dumps(concluded, indent=2))
    open_cells = sum(not outcomes[cell.key].latency.is_settled for cell in unique)
    print(f"{NAME}: {len(unique)} simulations in {folder}: summary.json, {', '.join(FILES)}", file=sys.stderr)
    if open_cells:
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
        epilog="example:\n  ibprof-sim study placement --quick -o placement",
        formatter_class=raw,
    )
    study.set_defaults(run=_run_study)
    study.add_argument("name", metavar="NAME", choices=STUDIES)
    effort = study.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="fewer patterns and messages")
    effort.add_argument("--full", action="store_true", help="50 messages of warm-up and 1,000 measured, however long")
    study.add_argument("--fabric", metavar="LST", help=f"default: {THESIS_FABRIC}")
    study.add_argument("--servers", metavar="N", type=_count, default=72, help="I/O servers (default: 72)")
    study.add_argument("--seeds", metavar="N", type=_count, default=1, help="runs of each, drawn anew (default: 1)")
    study.add_argument("--adaptive", action="store_true", help="packets choose among shortest ways")
    study.add_argument("--packet", metavar="B", type=_count, default=4096, help="bytes of a packet (default: 4096)")
    study.add_argument(
        "--lane", metavar="B", type=_count, default=65536, help="room of a virtual lane (default: 65536)"
    )
    study.add_argument("--switch-ns", metavar="NS", type=float, default=90.0, help="delay of a switch (default: 90)")
    study.add_argument("--gbps", metavar="G", type=float, help="speed of all links (default: as the fabric says)")
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
            "-o", "--output", metavar="DIR", type=Path, required=True, help="results; gone on with if begun"
        )
        each.add_argument("--workers", metavar="N", type=_count, default=os.cpu_count() or 1, help="processes at once")
    return parser


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return int(text)
