# SPDX-License-Identifier: Apache-2.0
"""Commands that may run on all ranks of an MPI job: rank 0 alone reports a usage error."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from ibprof.errors import IbprofError
from ibprof_converter.cli.subcommands import parse_subcommand
from ibprof_lab.latency.measure.mpi_start import launched_rank

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
