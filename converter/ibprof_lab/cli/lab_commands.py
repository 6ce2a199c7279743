# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the laboratory's commands: calls with arguments, runs on all ranks of a job, the unit of delays."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

from ibprof.errors import IbprofError
from ibprof_converter.cli.arguments import parse_subcommand
from ibprof_lab.lab_choices import UNITS

_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
"""Variables in which a launcher states the rank, before MPI is started."""

_MOMENT_S = 1.0
"""Time for rank 0 to print an error: after the failure of one process, a launcher may kill the others."""


T = TypeVar("T")


def call_with_options(function: Callable[..., T], arguments: argparse.Namespace, **others: Any) -> T:
    """Call a function with the arguments of a command line that have the names of its parameters.

    `others` has the parameters without an argument, or with another form.
    """
    names = signature(function).parameters.keys() - others.keys()
    return function(**{name: getattr(arguments, name) for name in names}, **others)


def run_on_ranks(make_parser: Callable[[], argparse.ArgumentParser], argv: Sequence[str] | None) -> int | None:
    """Parse a command line and run its subcommand.

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
    """Add the argument for the unit of delays in files without a stated unit."""
    parser.add_argument(
        "--unit", choices=tuple(UNITS), default="auto", help="of CSV and numpy matrices without one (default: `us`; "
        "`ns` in the form of core-to-core-latency)",
    )  # fmt: skip
