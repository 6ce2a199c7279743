# SPDX-License-Identifier: Apache-2.0
"""Commands that run on all ranks of an MPI job: rank 0 alone prints errors, then all ranks exit."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from ibprof.errors import UNEXPECTED, IbprofError
from ibprof_converter.latency.measure.mpi_start import launched_rank
from ibprof_converter.latency.measure.process_agreement import FirstProcessError

_KILLED_BY = 128
"""Exit status of a command that a signal ended: this plus the signal's number."""

_MOMENT_S = 1.0


def run_on_ranks(make_parser: Callable[[], argparse.ArgumentParser], argv: Sequence[str] | None) -> int | None:
    """Parse a command line and run its command; rank 0 alone reports a usage error.

    Args:
        make_parser: returns a parser that sets two defaults: `options`, which turns parsed arguments into the command's
            options, and `run`, which takes these.
        argv: the arguments after the command's name; None for those of this process.
    """
    if not launched_rank():
        arguments = make_parser().parse_args(argv)
        return arguments.run(arguments.options(arguments))  # type: ignore[no-any-return]
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as null, redirect_stdout(null), redirect_stderr(null):
            arguments = make_parser().parse_args(argv)
        return arguments.run(arguments.options(arguments))  # type: ignore[no-any-return]
    except SystemExit:
        _wait_for_rank_0()
        raise
    except IbprofError as error:
        _wait_for_rank_0()
        return error.status


def end_together(module: Any, work: Callable[[], int]) -> int:
    """Run the same work on all ranks and return its exit status; report an error once.

    Args:
        module: `mpi4py.MPI`.
        work: the same on all ranks; returns the number of the signal that ended it, or 0. An error that all ranks find
            is raised on all.
    """
    if module.COMM_WORLD.rank:
        logging.disable()
    try:
        signal = work()
        return _KILLED_BY + signal if signal else 0
    except FirstProcessError as error:
        return error.status
    except IbprofError as error:
        if module.COMM_WORLD.rank:  # all ranks found the same error
            return error.status
        raise
    except Exception:
        # The other ranks wait for this one; only an abort releases them.
        traceback.print_exc()
        sys.stderr.flush()
        module.COMM_WORLD.Abort(UNEXPECTED)
        return UNEXPECTED


def _wait_for_rank_0() -> None:
    """Wait a moment: once one process has failed, a launcher may kill rank 0 before it has printed the reason."""
    time.sleep(_MOMENT_S)
