# SPDX-License-Identifier: Apache-2.0
"""Functions for several commands of the laboratory: run a subcommand on all ranks of an MPI job, and add --unit."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from ibprof.errors import IbprofError
from ibprof_converter.cli.arguments import parse_subcommand
from ibprof_lab.lab_choices import UNITS

_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
"""Environment variables in which launchers store the rank of a process before MPI starts."""

_MOMENT_S = 1.0
"""Seconds that ranks other than 0 wait before they exit with an error. A launcher may kill rank 0 after another rank's
exit, and rank 0 must print the error first."""


def run_on_ranks(make_parser: Callable[[], argparse.ArgumentParser], argv: Sequence[str] | None) -> int | None:
    """Parse a command line and run its subcommand; only rank 0 prints usage errors.

    Args:
        make_parser: function that returns the parser of a command with subcommands.
        argv: arguments after the command's name; None for this process's arguments.
    """
    if not next((int(os.environ[name]) for name in _RANK if os.environ.get(name, "").isdecimal()), 0):
        return parse_subcommand(make_parser(), argv)()
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as null, redirect_stdout(null), redirect_stderr(null):
            run = parse_subcommand(make_parser(), argv)
        return run()
    except SystemExit:
        time.sleep(_MOMENT_S)
        raise
    except IbprofError as error:
        time.sleep(_MOMENT_S)
        return error.status


def add_unit(parser: argparse.ArgumentParser) -> None:
    """Add the option --unit: the unit of delays in files that state no unit."""
    parser.add_argument(
        "--unit", choices=tuple(UNITS), default="auto", help="unit of delays in CSV and numpy files without a unit "
        "(default: `us`; for files of core-to-core-latency, `ns`)",
    )  # fmt: skip
