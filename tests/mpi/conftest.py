# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests with real MPI programs: the MPIs, and the programs, which are compiled once with each MPI."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Hashable
from pathlib import Path

import pytest

from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.conformance import Target
from ibprof_testing.mpi.no_harm import MPICH

_MPIS = {*mpis.NAMES, *mpis.MPICH_LIKE, MPICH}


EACH_MPI = {
    "test_all_are_named",
    "test_both_ends_sample_the_same_messages",
    "test_callers_on_every_mpi",
    "test_every_mpi_measures_every_pair",
    "test_what_it_says_is_what_happens",
}
"""Tests of how ibprof treats each MPI. Each case of these tests runs on each MPI."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run each case outside `EACH_MPI` on one MPI; the MPIs take turns. The long form of the tests runs each case on
    all MPIs."""
    folder = Path(__file__).parent
    tests: defaultdict[Path, defaultdict[Hashable, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        if not isinstance(item, pytest.Function) or item.originalname in EACH_MPI or item.path.parent != folder:
            continue
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        case = tuple((name, repr(value)) for name, value in parameters.items() if not _is_mpi(value))
        if len(case) < len(parameters) and not item.get_closest_marker("full"):
            tests[item.path][item.originalname, case].append(item)
    for cases in tests.values():
        for number, of_case in enumerate(cases.values()):
            for place, item in enumerate(of_case):
                if place != number % len(of_case):
                    item.add_marker(pytest.mark.full)


def _is_mpi(value: object) -> bool:
    return isinstance(value, Target) or (isinstance(value, str) and value in _MPIS)


@pytest.fixture(scope="session", params=mpis.in_every_run(*mpis.NAMES), ids=lambda name: f"openmpi-{name}")
def mpi(request: pytest.FixtureRequest) -> mpis.Mpi:
    """Return an Open MPI; the fixture's parameters are all Open MPIs, or the MPIs that a test names with `indirect`."""
    return mpis.find_mpi(request.param)


@pytest.fixture(scope="session")
def system_mpi() -> mpis.Mpi:
    """Return the system's Open MPI, for tests that do not depend on the version."""
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
