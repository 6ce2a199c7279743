# SPDX-License-Identifier: Apache-2.0
"""Work of all ranks of an MPI job: rank 0 alone prints errors, then all ranks exit."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable
from typing import Any

from ibprof.errors import UNEXPECTED, IbprofError
from ibprof_lab.latency.measure.mpi_start import start_mpi
from ibprof_lab.latency.measure.process_agreement import FirstProcessError

_KILLED_BY = 128
"""Exit status of a command that a signal ended: this plus the signal's number."""


def work_together(work: Callable[[Any], int]) -> int:
    """Start MPI, run the same work on all ranks and return its exit status; report an error once.

    Args:
        work: the same on all ranks; takes `mpi4py.MPI` and returns the number of the signal that ended it, or 0. An
            error that all ranks find is raised on all.
    """
    module = start_mpi()
    if module.COMM_WORLD.rank:
        logging.disable()
    try:
        signal = work(module)
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
