# SPDX-License-Identifier: Apache-2.0
"""Shared by commands of the laboratory: a run on all ranks of an MPI job; the argument for the unit of delays."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from ibprof.errors import IbprofError
from ibprof_converter.cli.arguments import parse_subcommand
from ibprof_lab.latency.files.delay_files import UNITS
from ibprof_lab.latency.measure.mpi_job import launched_rank

_MOMENT_S = 1.0


def run_on_ranks(make_parser: Callable[[], argparse.ArgumentParser], argv: Sequence[str] | None) -> int | None:
    """Parse a command line and run its subcommand.

    Args:
        make_parser: returns the parser of a command with subcommands.
        argv: the arguments after the command's name; None for those of this process.
    """
    if not launched_rank():
        return parse_subcommand(make_parser(), argv)()
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as null, redirect_stdout(null), redirect_stderr(null):
            run = parse_subcommand(make_parser(), argv)
        return run()
    except SystemExit:
        _wait_for_rank_0()
        raise
    except IbprofError as error:
        _wait_for_rank_0()
        return error.status


def _wait_for_rank_0() -> None:
    """Wait a moment: once one process has failed, a launcher may kill rank 0 before it has printed the reason."""
    time.sleep(_MOMENT_S)


def add_unit(parser: argparse.ArgumentParser) -> None:
    """Add the unit of delays in files that do not say it."""
    parser.add_argument("--unit", choices=tuple(UNITS), default="us", help="of CSV and numpy matrices (default: `us`)")
