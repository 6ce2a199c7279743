# SPDX-License-Identifier: Apache-2.0
"""Start of MPI by mpi4py, which is imported late, so that reading delays needs no MPI."""

from __future__ import annotations

import os
from typing import Any

from ibprof.errors import MissingToolError

_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
_HYDRA = ("HYDI_CONTROL_FD", "MPI_LOCALNRANKS")
"""Variables that the launcher of MPICH and Intel MPI sets."""


def launched_rank() -> int:
    """Return this process's rank by the launcher's environment, before MPI is started; 0 without a launcher."""
    return _read_number(_RANK, 0)


def start_mpi() -> Any:
    """Start MPI and return the module `mpi4py.MPI`.

    Raises:
        MissingToolError: there is no mpi4py, or it is built with another MPI than the launcher's.
    """
    _prefer_the_launchers()
    try:
        from mpi4py import MPI  # noqa: PLC0415  (starts MPI)
    except (ImportError, RuntimeError) as error:
        raise MissingToolError(
            f"mpi4py of the MPI that starts the job is needed ({' '.join(str(error).split())}): "
            "pip install mpi4py, or pip install 'ibprof[mpi]' for an MPI with it"
        ) from error
    launched = _read_number(_SIZE, 1)
    if launched > 1 and MPI.COMM_WORLD.size == 1:
        raise MissingToolError(
            f"{launched} processes were launched, but mpi4py's MPI, {describe_mpi(MPI)}, sees one: "
            "expected mpi4py of the launcher's MPI, see `python -m mpi4py --mpi-lib-version`"
        )
    return MPI


def describe_mpi(module: Any) -> str:
    """Return the name and version of the MPI library, on one line."""
    text = str(module.Get_library_version()).rstrip("\0").strip()
    first = " ".join(text.splitlines()[:1]).split(", package")[0]
    return " ".join(first.split())


def describe_place(module: Any) -> tuple[str, str]:
    """Return the name of this process's host, and the cores that it may run on, as `0-3,8`."""
    cores = sorted(os.sched_getaffinity(0))
    starts = [core for core in cores if core - 1 not in cores]
    ends = [core for core in cores if core + 1 not in cores]
    spans = (str(one) if one == last else f"{one}-{last}" for one, last in zip(starts, ends, strict=True))
    return module.Get_processor_name(), ",".join(spans)


def _prefer_the_launchers() -> None:
    """Select the launcher's MPI where mpi4py is built for several, not the first one that is installed."""
    if "MPI4PY_MPIABI" in os.environ or "MPI4PY_LIBMPI" in os.environ:
        return
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        os.environ["MPI4PY_MPIABI"] = "openmpi"


def _read_number(names: tuple[str, ...], otherwise: int) -> int:
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdecimal()), otherwise)
