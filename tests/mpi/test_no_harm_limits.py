# SPDX-License-Identifier: Apache-2.0
"""With little memory, disk or files, or no writable folder, a program behaves as without ibprof.

Disk quotas need a kernel with quotas, so tests/vm/test_file_systems.py tests them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof_testing import processes
from ibprof_testing.machine import require_root
from ibprof_testing.mpi.mpis import Build, Mpi, environment, library, run_mpi
from ibprof_testing.mpi.no_harm import (
    FAMILIES,
    MPICH,
    Words,
    check_no_harm,
    every_mpi_but_quick,
    families_by_turns,
    find_any,
    ibprof_lines,
    launch,
    preload,
)

RANKS = 2
NOBODY = 65534


@pytest.fixture(scope="session")
def unruly(build: Build) -> Build:
    def build_one(mpi: Mpi) -> Path:
        return build(mpi, "unruly.c", "-pthread")

    return build_one


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that other users can enter, unlike the folders of tmp_path."""
    folder = Path(tempfile.mkdtemp(prefix="ibprof-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def shell(script: str) -> Words:
    """Return a command: a shell that runs the script and then executes the words that follow."""
    return ["sh", "-c", f'{script}; exec "$@"', "sh"]


def over_tcp(mpi: Mpi) -> dict[str, str]:
    """Return settings that avoid shared memory. If files must be empty, MPI cannot create the file of shared memory."""
    if mpi.name == MPICH:
        return {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}
    return {"OMPI_MCA_btl": "tcp,self"}


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_a_folder_that_may_not_be_written_in(name: str, unruly: Build, open_folder: Path) -> None:
    """The program does not run as root, because file modes do not limit root."""
    require_root("to become a user who may not")
    mpi = find_any(name)
    program = shutil.copy(unruly(mpi), open_folder / "unruly")
    copied_library = shutil.copy(library(), open_folder / "libibprof.so")
    (open_folder / "theirs").mkdir(mode=0o555)
    (open_folder / "tmp").mkdir()
    (open_folder / "tmp").chmod(0o777)
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    done = check_no_harm(
        mpi,
        RANKS,
        [program, "names", "regions"],
        open_folder / "theirs" / "profile.ibprof",
        libraries=[Path(copied_library)],
        around=[*user, "env", f"TMPDIR={open_folder / 'tmp'}", "HOME=/"],
        cwd=open_folder / "tmp",
    )
    assert done.returncode == 0
    assert len(ibprof_lines(done.stderr)) == 1


@pytest.mark.parametrize("name", FAMILIES)
def test_where_nothing_can_lie(name: str, unruly: Build, tmp_path: Path) -> None:
    """The file system is read-only, full or without inodes, or the recording's path cannot be a folder."""
    mpi = find_any(name)
    command: list[str | Path] = [unruly(mpi), "names"]
    for options in ("ro", "size=4k", "nr_inodes=1"):
        mount = f'mount -t tmpfs -o {options} none "$0" && exec "$@"'
        mounted: list[str | Path] = ["unshare", "--mount", "sh", "-c", mount, tmp_path]
        done = check_no_harm(mpi, RANKS, command, tmp_path / "profile.ibprof", around=mounted)
        assert (done.returncode, len(ibprof_lines(done.stderr))) == (0, 1)
    for output in ("/proc/profile.ibprof", "/dev/null", "/dev/null/profile.ibprof"):
        done = check_no_harm(mpi, RANKS, command, Path(output))
        assert (done.returncode, len(ibprof_lines(done.stderr))) == (0, 1)
    missing = tmp_path / "not" / "there" / "yet"
    assert not check_no_harm(mpi, RANKS, command, missing).stderr
    assert len(list(missing.iterdir())) == 1


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_no_files_at_all(name: str, unruly: Build, tmp_path: Path) -> None:
    """With `ulimit -f 0`, SIGXFSZ ends a program that writes one byte to a file."""
    mpi = find_any(name)
    variables = over_tcp(mpi)
    command: list[str | Path] = [unruly(mpi), "names", "regions"]
    done = check_no_harm(mpi, RANKS, command, tmp_path, variables=variables, within=shell("ulimit -f 0"))
    assert done.returncode == 0
    assert len(ibprof_lines(done.stderr)) == 1


@pytest.mark.parametrize(("name", "limit"), families_by_turns(["-n 24", "-f 40", "-s 256", "-c 0; umask 0777"]))
def test_little(name: str, limit: str, unruly: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    done = check_no_harm(
        mpi,
        RANKS,
        [unruly(mpi), "names", "regions"],
        tmp_path,
        variables=over_tcp(mpi),
        within=shell(f"ulimit {limit}"),
    )
    assert done.returncode == 0


@pytest.mark.parametrize(("name", "spare"), families_by_turns([1536, 8192, 65536]))
def test_little_memory(name: str, spare: int, unruly: Build, tmp_path: Path) -> None:
    """The limit is hardly more than the program needs without ibprof. libibprof.so takes 1.3 MiB of address space."""
    mpi = find_any(name)
    command: list[str | Path] = [unruly(mpi), "names", "regions"]
    bare = launch(mpi, RANKS, [*command, "size"], {})
    taken = int(bare.stdout.split("size ")[1].split()[0])
    variables = {"IBPROF_SITES": "1", "IBPROF_TIME": "1"}
    limit = shell(f"ulimit -v {taken + spare}")
    done = check_no_harm(mpi, RANKS, command, tmp_path, variables=variables, within=limit)
    assert done.returncode == 0


def test_library_takes_little_address_space() -> None:
    """In a program without MPI, libibprof.so adds its own size: at most 1.4 MiB."""
    taken_kib = []
    for variables in ({}, preload(library())):
        ran = processes.run(["grep", "VmSize", "/proc/self/status"], env=environment(variables), check=True)
        taken_kib.append(int(ran.stdout.split()[1]))
    assert 0 < taken_kib[1] - taken_kib[0] <= 1434


def test_tables_of_sites_are_small(system_mpi: Mpi, unruly: Build, tmp_path: Path) -> None:
    """A program with few call sites has small tables: at most 256 KiB."""
    taken_kib = {}
    for sites in ("0", "1"):
        command: list[str | Path] = [unruly(system_mpi), "names", "regions", "addresses"]
        ran = run_mpi(system_mpi, RANKS, command, recording=tmp_path / sites, env={"IBPROF_SITES": sites})
        taken_kib[sites] = int(ran.stdout.split("addresses ")[1].split()[0])
    assert load_profile(tmp_path / "1").sites
    assert 0 < taken_kib["1"] - taken_kib["0"] <= 256


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_no_sysfs(name: str, unruly: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"', "sh"]
    done = check_no_harm(
        mpi, RANKS, [unruly(mpi), "names"], tmp_path, variables={"UCX_LOG_LEVEL": "fatal"}, around=hidden
    )
    assert done.returncode == 0


@pytest.mark.parametrize(("name", "limit"), families_by_turns(["-f 240", "-f 400"]))
def test_what_found_no_space_is_reported(limit: str, name: str, unruly: Build, tmp_path: Path) -> None:
    """The recording stops at the limit, and reports the number of missing bytes."""
    mpi = find_any(name)
    within = shell(f"ulimit {limit}")
    check_no_harm(mpi, RANKS, [unruly(mpi), "regions"], tmp_path, variables=over_tcp(mpi), within=within)
    profile = load_profile(tmp_path)
    assert [rank.rank for rank in profile.ranks] == list(range(RANKS))
    notes = " ".join(note for rank in profile.ranks for note in rank.notes)
    assert "a region could not be added" in notes
    assert max(file.stat().st_size for file in tmp_path.iterdir()) <= int(limit.split()[1]) * 512
