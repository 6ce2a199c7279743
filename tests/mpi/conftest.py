# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests with real MPI programs: the MPIs, and programs compiled once with each."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_testing.mpi import mpis


@pytest.fixture(scope="session", params=mpis.NAMES, ids=lambda name: f"openmpi-{name}")
def mpi(request: pytest.FixtureRequest) -> mpis.Mpi:
    """Each MPI in turn."""
    return mpis.find_mpi(request.param)


@pytest.fixture(scope="session")
def system_mpi() -> mpis.Mpi:
    """The system's Open MPI, for what does not depend on the version."""
    return mpis.find_mpi(mpis.SYSTEM)


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> mpis.Build:
    """Compiles a program of programs/ with an MPI, once a session: `build(mpi, "collectives.c")`."""
    folder = tmp_path_factory.mktemp("programs")

    def build_one(mpi: mpis.Mpi, source: str, *options: str) -> Path:
        (folder / mpi.name).mkdir(exist_ok=True)
        return mpis.build(mpi, source, folder / mpi.name, *options)

    return build_one
