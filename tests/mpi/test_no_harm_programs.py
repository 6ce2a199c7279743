# SPDX-License-Identifier: Apache-2.0
"""Programs do things that break many preloaded libraries. Output, status and results are as without ibprof."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ibprof.load import load_profile
from ibprof_testing.machine import find_program
from ibprof_testing.mpi.matrices import recorded
from ibprof_testing.mpi.mpis import PROGRAMS, Build, Mpi, library
from ibprof_testing.mpi.no_harm import (
    EVERY_MPI,
    FAMILIES,
    check_complete,
    check_no_harm,
    every_mpi_but_quick,
    families_by_turns,
    find_any,
)

RANKS = 2
MODES = ("handlers", "descriptors", "forks", "shells", "spawns", "threads", "regions", "names", "limits")
ENDS = ("return", "fail", "at-exit", "leave", "finalize-leave", "finalize-close", "close-leave")
SHELL = {"UNRULY_CHILD": "echo a child; exit 3"}
# Each setting takes a different path through the wrappers.
RECORDED = {"sites": {}, "callers": {"IBPROF_TIME": "1", "IBPROF_CALLERS": "2"}}


@pytest.fixture(scope="session")
def unruly(build: Build) -> Build:
    """Return a function that compiles the program `unruly` with an MPI."""

    def build_one(mpi: Mpi, *options: str) -> Path:
        return build(mpi, "unruly.c", "-pthread", *options)

    return build_one


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("recorded", RECORDED)
def test_one_after_the_other(recorded: str, name: str, unruly: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    done = check_no_harm(mpi, RANKS, [unruly(mpi), *MODES], tmp_path, variables=SHELL | RECORDED[recorded])
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines() if line.split()[0] in MODES] == list(MODES)


@pytest.mark.full
@pytest.mark.parametrize("name", EVERY_MPI)
@pytest.mark.parametrize("mode", MODES)
def test_each_by_itself(name: str, mode: str, unruly: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    for variables in (SHELL, SHELL | {"LD_BIND_NOW": "1"}):
        assert check_no_harm(mpi, RANKS + 1, [unruly(mpi), mode], tmp_path, variables=variables).returncode == 0


@pytest.mark.parametrize(("name", "how"), families_by_turns(ENDS))
def test_ends(name: str, how: str, unruly: Build, tmp_path: Path) -> None:
    """Only one rank: a launcher reports the ends of several ranks in random order."""
    mpi = find_any(name)
    check_no_harm(mpi, 1, [unruly(mpi), "names", f"end:{how}"], tmp_path)


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_functions_of_its_own(name: str, unruly: Build, tmp_path: Path) -> None:
    """A program that defines MPI functions acts as a tool. ibprof sees the PMPI calls that these functions make."""
    mpi = find_any(name)
    command: list[str | Path] = [unruly(mpi, "-DOWN_FUNCTIONS"), "handlers", "names"]
    done = check_no_harm(mpi, RANKS, command, tmp_path, variables={"LD_BIND_NOW": "1"})
    assert "calls of its own" in done.stdout


def test_what_they_did_is_recorded(system_mpi: Mpi, unruly: Build, tmp_path: Path) -> None:
    """ibprof must still record the calls: an empty library would do no harm either."""
    check_no_harm(system_mpi, RANKS, [unruly(system_mpi), "handlers", "threads", "regions", "names"], tmp_path)
    profile = load_profile(tmp_path)
    check_complete(profile, RANKS)
    around = [(0, 1), (1, 0)]
    # ISEND: 4 threads send 3,000 bytes in each of 50 rounds. SENDRECV: every 8th of 4,096 regions sends bytes
    # (`in_regions`), two handlers send 300 bytes, and 7 names send 10 bytes each.
    assert recorded(profile, operation="ISEND") == dict.fromkeys(around, (600_000, 200))
    in_regions = sum(region % 100 for region in range(0, 4096, 8))
    assert recorded(profile, operation="SENDRECV") == dict.fromkeys(around, (in_regions + 300 + 70, 512 + 2 + 7))
    assert {f"region {number}" for number in range(4096)} <= set(profile.regions)
    assert "two\nlines" in profile.regions
    assert not np.any(profile.counters.region >= len(profile.regions))


@pytest.mark.parametrize(("name", "links"), families_by_turns([[], ["-static"]]))
def test_children_of_another_c_library(links: list[str], name: str, unruly: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    compiler = find_program("musl-gcc", package="musl-tools")
    program = tmp_path / "child"
    subprocess.run([compiler, *links, "-o", program, PROGRAMS / "child.c"], check=True)
    command: list[str | Path] = [unruly(mpi), "shells"]
    done = check_no_harm(mpi, 1, command, tmp_path / "recording", variables={"UNRULY_CHILD": str(program)})
    assert done.stdout.startswith("a child of another C library\n")


@pytest.mark.parametrize("name", every_mpi_but_quick("5.0.11"))
def test_children_in_python(name: str, unruly: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    child = f"{sys.executable} -c 'import json, threading; print(json.dumps([1]))'"
    command: list[str | Path] = [unruly(mpi), "shells"]
    done = check_no_harm(mpi, 1, command, tmp_path, variables={"UNRULY_CHILD": child})
    assert done.stdout.startswith("[1]\n")


def test_the_library_under_test_is_there() -> None:
    """Without the library, each test here would compare two runs without ibprof."""
    assert library().is_file()
