# SPDX-License-Identifier: Apache-2.0
"""Programs with cancelled threads, jails, system call filters or seized descriptors behave as without ibprof."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof_testing.mpi.mpis import Build, library
from ibprof_testing.mpi.no_harm import (
    FAMILIES,
    MPICH,
    check_complete,
    check_no_harm,
    every_mpi_but_quick,
    families_by_turns,
    find_any,
)

RANKS = 2
ENTERED = 600
# Cases that come last, because afterwards a process can open no files, or no files of the recording.
LAST = ("seized", "jailed", "filtered")
TOGETHER = ("cancelled", "small", "timed", "bare", "locked", "forked", "vforked", "elsewhere")
RESULTS = {
    "cancelled": 1,
    "small": 1,
    "timed": 1,
    "elsewhere": 0,
    "bare": 1,
    "locked": 0,
    "forked": sum(range(20)),
    "vforked": 300,
    "unlevelled": 1,
    "seized": 0,
    "jailed": 1,
    "filtered": 1,
}


def told(*corners: str) -> str:
    return "".join(f"{corner} {RESULTS[corner]}\n" for corner in corners)


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_corners(name: str, build: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    done = check_no_harm(mpi, RANKS, [build(mpi, "corners.c", "-pthread"), *TOGETHER], tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == (told(*TOGETHER), "", 0)
    profile = load_profile(tmp_path)
    check_complete(profile, RANKS)
    for corner in ("cancelled", "small", "timed", "elsewhere", "bare", "locked"):
        assert {f"{corner} {number}" for number in range(ENTERED)} <= set(profile.regions)
    assert "a child's" not in profile.regions


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
@pytest.mark.parametrize("corner", LAST)
def test_corners_without_a_way_back(name: str, corner: str, build: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    done = check_no_harm(mpi, RANKS, [build(mpi, "corners.c", "-pthread"), corner], tmp_path)
    assert (done.stdout, done.returncode) == (told(corner), 0)
    assert [rank.rank for rank in load_profile(tmp_path).ranks] == list(range(RANKS))


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_regions_of_threads_that_may_not_call_mpi(name: str, build: Build, tmp_path: Path) -> None:
    """If only the main thread may call MPI, ibprof uses no locks, and ignores regions of other threads."""
    mpi = find_any(name)
    done = check_no_harm(mpi, RANKS, [build(mpi, "corners.c", "-pthread"), "unlevelled"], tmp_path)
    assert (done.stdout, done.returncode) == (told("unlevelled"), 0)
    profile = load_profile(tmp_path)
    check_complete(profile, RANKS)
    assert {region for region in profile.regions if not region.startswith("with right ")} == {"main"}


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_a_kernel_that_wipes_no_pages(name: str, build: Build, tmp_path: Path) -> None:
    """Kernels before 4.14, such as CentOS 7's, cannot clear pages at a fork.

    ibprof must still recognise that a forked child is not a rank.
    """
    mpi = find_any(name)
    source = tmp_path / "old_kernel.c"
    source.write_text(
        "#include <errno.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
        "int madvise(void *where, unsigned long bytes, int how)\n"
        "{\n    if (how == 18) return errno = EINVAL, -1;\n"
        "    return (int)syscall(SYS_madvise, where, bytes, how);\n}\n"
    )
    old_kernel = tmp_path / "old_kernel.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", old_kernel, source], check=True)
    recording = tmp_path / "profile.ibprof"
    program = build(mpi, "corners.c", "-pthread")
    preloads = [old_kernel, library()]
    check_no_harm(mpi, RANKS, [program, "forked"], recording, libraries=preloads, others=[old_kernel])
    profile = load_profile(recording)
    check_complete(profile, RANKS)
    assert profile.regions == ("main",)


@pytest.mark.parametrize(("name", "host"), families_by_turns(["a/../b c", "..", "%h\n"]))
def test_odd_names_of_hosts(host: str, name: str, build: Build, tmp_path: Path) -> None:
    """A host's name becomes part of a file name, but never moves the file to another folder.

    Only the ranks see the odd name; the launcher sees the real name of the host.
    """
    mpi = find_any(name)
    named = ["unshare", "--uts", "sh", "-c", 'printf "%s" "$0" >/proc/sys/kernel/hostname; exec "$@"', host]
    program = build(mpi, "corners.c", "-pthread")
    done = check_no_harm(mpi, 1, [program, "forked"], tmp_path / "recording %h", within=named)
    assert done.stderr == ""
    (folder,) = tmp_path.glob("recording *")
    assert len(list(folder.glob("*.ibprof"))) == 1


def test_a_lone_rank_of_mpich_says_that_nothing_was_proved(build: Build, tmp_path: Path) -> None:
    """ibprof checks its counting by a message from another rank. A lone rank receives no message from another rank."""
    mpi = find_any(MPICH)
    check_no_harm(mpi, 1, [build(mpi, "corners.c", "-pthread"), "forked"], tmp_path)
    (rank,) = load_profile(tmp_path).ranks
    assert [note for note in rank.notes if note.startswith("a lone rank: messages to itself do not reach the network")]


@pytest.mark.parametrize("name", FAMILIES)
def test_no_home_and_a_folder_with_blanks(name: str, build: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    folder = tmp_path / "temporary files"
    folder.mkdir()
    # Open MPI 5 needs the variable HOME.
    home = ["-u", "HOME"] if name != "5.0.11" else [f"HOME={folder}"]
    bare = ["env", "-u", "USER", *home, f"TMPDIR={folder}", f"LARGE={'x' * 100_000}"]
    program = build(mpi, "corners.c", "-pthread")
    done = check_no_harm(mpi, RANKS, [program, "forked"], tmp_path / "out", within=bare)
    assert done.stderr == ""
    check_complete(load_profile(tmp_path / "out"), RANKS)
