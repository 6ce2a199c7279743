# SPDX-License-Identifier: Apache-2.0
"""Commands that run on all ranks of an MPI job: what is wrong is told once, and all end."""

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

KILLED_BY = 128
"""A status is this and the number of the signal that ended the command."""

_MOMENT_S = 1.0


def run_on_ranks(make_parser: Callable[[], argparse.ArgumentParser], argv: Sequence[str] | None) -> int | None:
    """Parse a command line and run its command; a mistake is told by the first rank alone."""
    if not launched_rank():
        arguments = make_parser().parse_args(argv)
        return arguments.run(arguments)  # type: ignore[no-any-return]
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as null, redirect_stdout(null), redirect_stderr(null):
            arguments = make_parser().parse_args(argv)
        return arguments.run(arguments)  # type: ignore[no-any-return]
    except SystemExit:
        _let_the_first_speak()
        raise
    except IbprofError as error:
        _let_the_first_speak()
        return error.status


def end_together(module: Any, work: Callable[[], int]) -> int:
    """Do what all ranks do; when it fails, say so once.

    Args:
        module: `mpi4py.MPI`.
        work: the same on all; errors that all find are raised on all.
    """
    if module.COMM_WORLD.rank:
        logging.disable()
    try:
        return work()
    except FirstProcessError as error:
        return error.status
    except IbprofError as error:
        if module.COMM_WORLD.rank:  # all of them found the same
            return error.status
        raise
    except Exception:
        # The others wait for this one; nothing else gets them out.
        traceback.print_exc()
        sys.stderr.flush()
        module.COMM_WORLD.Abort(UNEXPECTED)
        return UNEXPECTED


def _let_the_first_speak() -> None:
    """Wait a moment: at the first process that fails a launcher may end the others, before they have said why."""
    time.sleep(_MOMENT_S)
