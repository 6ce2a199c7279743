# SPDX-License-Identifier: Apache-2.0
"""`ibprof-latency`: delays between processes, measured and looked at."""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from ibprof.cli.command import run_command
from ibprof.errors import IbprofError
from ibprof_converter.cli import latency_look, latency_measure
from ibprof_converter.latency.mpi import launched_rank

NAME = "ibprof-latency"

_MOMENT_S = 1.0

_EXAMPLES = """\
examples:
  mpirun -n 64 ibprof-latency measure --lengths 0,64,1K:1M:x2 -o delays.nc
  ibprof-latency show delays.nc
  ibprof-latency features delays.nc -o features
  ibprof-latency diff monday.nc delays.nc
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-latency`."""
    return run_command(NAME, _run, argv)


def _run(argv: Sequence[str] | None) -> int | None:
    logging.basicConfig(format=f"{NAME}: %(message)s", level=logging.WARNING)
    if not launched_rank():
        arguments = _parser().parse_args(argv)
        return arguments.run(arguments)  # type: ignore[no-any-return]
    # A mistake on the command line is told once, not by every process of the job.
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as null, redirect_stdout(null), redirect_stderr(null):
            arguments = _parser().parse_args(argv)
        return arguments.run(arguments)  # type: ignore[no-any-return]
    except SystemExit:
        _let_the_first_speak()
        raise
    except IbprofError as error:
        _let_the_first_speak()
        return error.status


def _let_the_first_speak() -> None:
    """Wait a moment: at the first process that fails a launcher may end the others, before they have said why."""
    time.sleep(_MOMENT_S)


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Delays of messages between all processes of a job: measured with any MPI, kept, looked at.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, add, summary, examples in (
        ("measure", latency_measure.add_measure, "measure, on all processes of an MPI job", latency_measure.EXAMPLES),
        ("show", latency_look.add_show, "what was measured, and one matrix", latency_look.SHOW_EXAMPLES),
        (
            "features",
            latency_look.add_features,
            "peaks, steps, clusters, odd processes",
            latency_look.FEATURES_EXAMPLES,
        ),
        ("diff", latency_look.add_diff, "which pairs changed", latency_look.DIFF_EXAMPLES),
        ("convert", latency_look.add_convert, "from one format of delays to another", latency_look.CONVERT_EXAMPLES),
    ):
        description = summary[0].upper() + summary[1:] + "."
        add(commands.add_parser(name, help=summary, description=description, epilog=examples, formatter_class=raw))
    return parser
