# SPDX-License-Identifier: Apache-2.0
"""If nothing can be written, the program still runs.

Runs with the same name do not change each other's files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof_testing import processes
from ibprof_testing.machine import require_root
from ibprof_testing.mpi.matrices import recorded
from ibprof_testing.mpi.mpis import THROUGH_NETWORK, Build, Mpi, run_mpi
from ibprof_testing.mpi.no_harm import (
    FAMILIES,
    check_no_harm,
    every_mpi_but_quick,
    families_by_turns,
    find_any,
    ibprof_lines,
)

RANKS = 3
SENT_BYTES = 11316  # bytes that a rank of programs/regions.c sends, with the argument `nested`


@pytest.fixture
def mounted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Yield the folder of a file system that is read-only or has very little space."""
    require_root("to mount a small file system")
    folder = tmp_path / "mounted"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def check_runs_with_one_line(mpi: Mpi, build: Build, output: Path) -> None:
    program = build(mpi, "regions.c")
    done = run_mpi(mpi, RANKS, [program, "nested"], recording=output)
    assert done.stdout == "done\n"
    said = done.stderr.splitlines()
    assert len(said) == 1, done.stderr
    assert "ibprof" in said[0]


@pytest.mark.parametrize("mounted", ["ro", "size=4k", "nr_inodes=1"], indirect=True)
def test_read_only_and_full(mpi: Mpi, build: Build, mounted: Path) -> None:
    check_runs_with_one_line(mpi, build, mounted / "profile.ibprof")


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
@pytest.mark.parametrize("mounted", ["size=40k"], indirect=True)
def test_space_for_a_part(name: str, build: Build, mounted: Path) -> None:
    """Bytes for which the recording has no space are reported. A rank without any space is missing from the profile."""
    mpi = find_any(name)
    command: list[str | Path] = [build(mpi, "regions.c"), "nested"]
    done = check_no_harm(mpi, RANKS, command, mounted / "profile.ibprof", variables=THROUGH_NETWORK)
    assert done.stdout == "done\n"
    assert len(ibprof_lines(done.stderr)) == 1, done.stderr
    profile = load_profile(mounted / "profile.ibprof")
    counted = sum(size for size, _ in recorded(profile).values())
    lost = sum(rank.lost_bytes for rank in profile.ranks)
    assert lost > 0 or len(profile.ranks) < RANKS
    assert counted + lost == len(profile.ranks) * SENT_BYTES


@pytest.mark.parametrize("mounted", ["size=2m"], indirect=True)
def test_holes_on_a_full_file_system_are_read(system_mpi: Mpi, build: Build, mounted: Path) -> None:
    """On a full file system, reading a mapped hole raises SIGBUS, so another process reads the file."""
    run_mpi(system_mpi, RANKS, [build(system_mpi, "regions.c"), "nested"], recording=mounted / "profile.ibprof")
    expected = recorded(load_profile(mounted / "profile.ibprof"))
    (file,) = (mounted / "profile.ibprof").iterdir()
    os.truncate(file, file.stat().st_size + (1 << 20))
    with suppress(OSError), (mounted / "rest").open("wb", buffering=0) as rest:
        while True:
            rest.write(bytes(4096))
    said = processes.run(
        [sys.executable, "-m", "ibprof", "matrix", mounted / "profile.ibprof"],
        check=True,
    ).stdout
    assert len(said.splitlines()) == 1 + len(expected)


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
@pytest.mark.parametrize("mounted", ["size=1m"], indirect=True)
def test_full_while_running(name: str, build: Build, mounted: Path) -> None:
    """The space suffices at the start, but not for all regions."""
    mpi = find_any(name)
    command: list[str | Path] = [build(mpi, "unruly.c", "-pthread"), "names", "regions"]
    done = check_no_harm(mpi, RANKS, command, mounted / "profile.ibprof")
    assert done.stdout.startswith("names ")
    (line,) = ibprof_lines(done.stderr)
    assert line.startswith("ibprof: the recording has no space for more: ")


AWAY = {"removed": "rm -r", "moved": "mv -t {}"}


@pytest.mark.parametrize(("name", "how"), families_by_turns(AWAY))
def test_removed_or_moved_while_running(name: str, how: str, build: Build, tmp_path: Path) -> None:
    """There is enough space, but the recording's folder is gone."""
    mpi = find_any(name)
    output, moved = tmp_path / "profile.ibprof", tmp_path / "moved"
    moved.mkdir()
    until = f"for i in $(seq 100); do ls {output}/* && break; sleep 0.05; done"
    away = f"{until}; sleep 0.3; {AWAY[how].format(moved)} {output}"
    script = f'case "$PMI_RANK$OMPI_COMM_WORLD_RANK" in 0) ({away}) >/dev/null 2>&1 & esac; exec "$@"'
    program = build(mpi, "unruly.c", "-pthread")
    command: list[str | Path] = ["sh", "-c", script, "sh", program, "wait", "wait", "names", "regions"]
    done = check_no_harm(mpi, RANKS, command, output)
    (line,) = ibprof_lines(done.stderr)
    assert line.startswith(f"ibprof: the recording was removed or moved, or the program changed its root ({output}/")
    if how == "moved":
        profile = load_profile(moved / "profile.ibprof")
        assert all(any("removed or moved" in note for note in rank.notes) for rank in profile.ranks)


def test_another_user_while_running(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """There is enough space, but the program changed to another user."""
    require_root("to become another user")
    tmp_path.chmod(0o755)
    command: list[str | Path] = [build(system_mpi, "unruly.c", "-pthread"), "user", "names", "regions"]
    # As another user, Open MPI could not remove its shared memory, and would report this error at a random time.
    without_files = {"OMPI_MCA_btl": "tcp,self"}
    done = check_no_harm(system_mpi, RANKS, command, tmp_path / "profile.ibprof", variables=without_files)
    (line,) = ibprof_lines(done.stderr)
    assert line.startswith("ibprof: the program changed to a user who may not write to the recording (")
    profile = load_profile(tmp_path / "profile.ibprof")
    assert all(any("the program changed to a user" in note for note in rank.notes) for rank in profile.ranks)
    assert not any("removed or moved" in note for rank in profile.ranks for note in rank.notes)


@pytest.mark.parametrize("output", ["/proc/profile.ibprof", "/dev/null", "/dev/null/profile.ibprof", "file"])
def test_no_folder_can_be_there(mpi: Mpi, build: Build, output: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    check_runs_with_one_line(mpi, build, tmp_path / output)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_limit_on_the_size_of_files(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """ibprof writes nothing, because SIGXFSZ would end the program. Open MPI uses TCP, which needs no file."""
    limited: list[str | Path] = ["sh", "-c", 'ulimit -f 0; exec "$0" nested', build(mpi, "regions.c")]
    output = tmp_path / "profile.ibprof"
    done = run_mpi(mpi, RANKS, limited, recording=output, mca={"btl": "tcp,self"})
    assert done.stdout == "done\n"
    assert len([text for text in done.stderr.splitlines() if "ibprof" in text]) == 1, done.stderr


def test_folders_on_the_way_are_made(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    output = tmp_path / "a" / "b" / "profile.ibprof"
    done = run_mpi(system_mpi, RANKS, [build(system_mpi, "regions.c"), "nested"], recording=output)
    assert len(done.stderr.splitlines()) == (0 if output.is_dir() else 1)


def test_two_runs_one_after_the_other(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    collectives = build(mpi, "collectives.c")
    run_mpi(mpi, 2, [collectives, "blocking", "Bcast", "1000"], recording=tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    run_mpi(mpi, RANKS, [collectives, "blocking", "Bcast", "5000"], recording=tmp_path)
    assert {file: file.read_bytes() for file in before} == before
    newest = load_profile(tmp_path)
    assert newest.world_size == len(newest.ranks) == RANKS


def test_two_runs_at_once(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    regions = build(mpi, "regions.c")
    with ThreadPoolExecutor() as pool:
        runs = [
            pool.submit(run_mpi, mpi, ranks, [regions, "nested"], recording=tmp_path, env={"IBPROF_RUN": f"run{ranks}"})
            for ranks in (2, RANKS)
        ]
        assert [run.result().stdout for run in runs] == ["done\n"] * 2
    for ranks in (2, RANKS):
        profile = load_profile(tmp_path, f"run{ranks}")
        assert profile.world_size == len(profile.ranks) == ranks
        assert all(rank.finalized for rank in profile.ranks)
        assert sum(size for size, _ in recorded(profile, operation="SENDRECV").values()) == ranks * SENT_BYTES
