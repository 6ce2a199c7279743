# SPDX-License-Identifier: Apache-2.0
"""A program behaves as without ibprof, also next to other preloaded libraries, other runs and readers of recordings."""

from __future__ import annotations

import itertools
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.recording.folder_runs import list_runs
from ibprof_testing import processes
from ibprof_testing.machine import MissingError
from ibprof_testing.mpi.matrices import recorded
from ibprof_testing.mpi.mpis import THROUGH_NETWORK, Build, Mpi, environment, library
from ibprof_testing.mpi.no_harm import (
    FAMILIES,
    Words,
    check_complete,
    check_no_harm,
    every_mpi_but_quick,
    families_by_turns,
    find_any,
    launch,
    preload,
)

RANKS = 2
JEMALLOC = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


def find_jemalloc() -> Path:
    for folder in JEMALLOC:
        if (found := Path(folder) / "libjemalloc.so.2").exists():
            return found
    raise MissingError("no libjemalloc.so.2: apt-get install libjemalloc2")


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_other_preloads(name: str, build: Build, tmp_path: Path) -> None:
    """Another allocator and a tool of MPI's profiling interface are preloaded before or after ibprof."""
    mpi = find_any(name)
    program = build(mpi, "unruly.c", "-pthread")
    others = [find_jemalloc(), build(mpi, "other_tool.c", "-shared", "-fPIC")]
    for order in ([library(), *others], [*others, library()]):
        folder = tmp_path / order[0].name
        done = check_no_harm(mpi, RANKS, [program, "names", "threads"], folder, libraries=order, others=others)
        assert "2 broadcasts" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize("name", FAMILIES)
def test_every_order_of_preloads(name: str, build: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    program = build(mpi, "unruly.c", "-pthread")
    others = [find_jemalloc(), build(mpi, "other_tool.c", "-shared", "-fPIC")]
    for number, order in enumerate(itertools.permutations([library(), *others])):
        without = [item for item in order if item != library()]
        command: list[str | Path] = [program, "names", "threads", "forks", "spawns"]
        check_no_harm(mpi, RANKS, command, tmp_path / str(number), libraries=order, others=without)


def start(
    mpi: Mpi, command: Words, output: Path, variables: dict[str, str]
) -> AbstractContextManager[subprocess.Popen[str]]:
    settings = preload(library()) | {"IBPROF_OUTPUT": str(output)} | variables
    line: list[str | Path] = [
        mpi.program("mpirun"),
        "-n",
        str(RANKS),
        "env",
        *(f"{name}={value}" for name, value in settings.items()),
    ]
    return processes.start([*line, *command], env=environment())


@pytest.mark.parametrize(("name", "run"), families_by_turns(["", "one name"]))
def test_a_second_run_of_the_same_name(run: str, name: str, build: Build, tmp_path: Path) -> None:
    """The second run starts and ends while the first run goes on."""
    mpi = find_any(name)
    program = build(mpi, "unruly.c", "-pthread")
    variables = {"IBPROF_RUN": run} if run else {}
    bare = launch(mpi, RANKS, [program, "names", "wait", "regions"], {})
    with start(mpi, [program, "names", "wait", "regions"], tmp_path, variables) as first:
        assert first.stdout is not None
        assert first.stdout.readline().startswith("names")
        second = check_no_harm(mpi, RANKS, [program, "names"], tmp_path, variables=variables)
        rest, said = first.communicate(timeout=60)
    assert (first.returncode, "names 4\n" + rest, said) == (bare.returncode, bare.stdout, bare.stderr)
    assert second.stderr == ""
    runs = list_runs(tmp_path)
    assert len(runs) == 2
    for one in runs:
        check_complete(load_profile(tmp_path, one.name), RANKS)


def collect(recording: Path, run: str, output: Path) -> list[str]:
    command: list[str | Path] = [sys.executable, "-m", "ibprof", "collect", recording, "--run", run, "-o", output]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


@pytest.mark.parametrize("name", every_mpi_but_quick(FAMILIES[0]))
def test_a_crashed_run_is_collected_while_another_one_writes(name: str, build: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    program = build(mpi, "unruly.c", "-pthread")
    folder = tmp_path / "profile.ibprof"
    recorded_to = preload(library()) | {"IBPROF_OUTPUT": str(folder)} | THROUGH_NETWORK
    launch(mpi, RANKS, [build(mpi, "killed.c"), "all"], recorded_to)
    crashed = list_runs(folder)[0].name
    before = load_profile(folder, crashed)
    bare = launch(mpi, RANKS, [program, "wait", "regions", "forks"], {})
    with start(mpi, [program, "wait", "regions", "forks"], folder, {}) as writing:
        while writing.poll() is None:
            collect(folder, crashed, tmp_path / "crashed.otf2")
        rest, said = writing.communicate(timeout=60)
    assert (writing.returncode, rest, said) == (bare.returncode, bare.stdout, bare.stderr)
    collected = load_profile(tmp_path / "crashed.otf2")
    assert recorded(collected) == recorded(before) != {}
    check_complete(load_profile(folder), RANKS)
