# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests with real MPI programs: the MPIs, and programs compiled once with each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ibprof_testing.mpi import mpis


@pytest.fixture(scope="session", params=mpis.in_every_run(*mpis.NAMES), ids=lambda name: f"openmpi-{name}")
def mpi(request: pytest.FixtureRequest) -> mpis.Mpi:
    """Return each Open MPI in turn; a test may name more of them, `indirect`."""
    return mpis.find_mpi(request.param)


@pytest.fixture(scope="session")
def system_mpi() -> mpis.Mpi:
    """The system's Open MPI, for what does not depend on the version."""
    return mpis.find_mpi(mpis.SYSTEM)


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> mpis.Build:
    """Compile a program of programs/ with an MPI, once for all workers: `build(mpi, "collectives.c")`."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "programs"

    def build_one(mpi: mpis.Mpi, source: str, *options: str) -> Path:
        (folder / mpi.name).mkdir(parents=True, exist_ok=True)
        return mpis.build(mpi, source, folder / mpi.name, *options)

    return build_one
