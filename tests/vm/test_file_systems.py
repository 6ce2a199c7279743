# SPDX-License-Identifier: Apache-2.0
"""Programs record to file systems that a container's kernel may lack: 9P mounts, and a file system with a quota.

Virtual machines and containers mount folders of their host by 9P. The client's statfs returns the type of the
server's file system, and files can be mapped only in some cache modes. In the cache mode `mmap`, a reader
does not see the bytes that a process wrote to a mapping.

The quota is a real quota of ext4. Output and status must be the same as without a quota.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof_testing.guest import run_in_guest
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.no_harm import FAMILIES, find_any, ibprof_lines, launch
from ibprof_testing.mpi.patterns import all_the_same, ring

RANKS = 2
CACHES = ("none", "mmap", "loose")
MODES = ("names", "regions")
HERE = Path(__file__).parent
MODULES = ("loop", "ext4", "quota_v2")


@pytest.fixture(scope="module", params=[FAMILIES[:1], pytest.param(FAMILIES[1:], marks=pytest.mark.full)], ids=" ".join)
def names(request: pytest.FixtureRequest) -> Sequence[str]:
    """Return the MPIs of one guest. Emulation is slow, so the short form of the tests has only one MPI."""
    return tuple(request.param)


@pytest.fixture(scope="module")
def guest(names: Sequence[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run all programs. Return the folder with the programs' files, and with outputs of runs without a quota."""
    folder = tmp_path_factory.mktemp("file-systems")
    (folder / "share").mkdir()
    mpi, library = mpis.find_mpi(mpis.SYSTEM), str(mpis.library())
    copied = mpis.build(mpi, "copied.c", folder)
    to_9p = ["bash", str(HERE / "9p.sh"), library, str(RANKS), str(mpi.program("mpirun")), str(copied), *CACHES]
    with_quota = ["bash", str(HERE / "quota.sh"), library, str(RANKS), " ".join(MODES)]
    for name in names:
        mpi = find_any(name)
        (folder / name).mkdir()
        program = mpis.build(mpi, "unruly.c", folder / name, "-pthread")
        bare = launch(mpi, RANKS, [program, *MODES], {})
        assert (bare.returncode, bare.stderr) == (0, "")
        (folder / f"{name}.out").write_text(bare.stdout)
        with_quota += [name, str(mpi.program("mpirun")), str(program)]
    settings = [f"{name}={value}" for name, value in mpis.LAUNCH_ANYHOW.items()]
    both = f"{shlex.join(to_9p)} && {shlex.join(with_quota)}"
    done = run_in_guest(["env", *settings, "bash", "-c", both], folder, modules=MODULES)
    assert done.status == 0, done.stderr
    return folder


@pytest.mark.parametrize("cache", CACHES)
def test_all_of_a_run_is_recorded_to_9p(cache: str, guest: Path) -> None:
    said = (guest / f"{cache}.err").read_text()
    assert ((guest / f"{cache}.status").read_text(), said) == ("0\n", "")
    profile = load_complete(guest / "share" / f"{cache}.ibprof", RANKS)
    assert recorded(profile, operation="SENDRECV") == all_the_same(ring(RANKS), 750, 2)


@pytest.mark.parametrize("cache", CACHES)
def test_nothing_stays_on_the_node(cache: str, guest: Path) -> None:
    assert (guest / "node" / cache).read_text() == ""


@pytest.mark.parametrize("how", ["before", "meanwhile"])
def test_a_quota_changes_nothing_but_what_is_recorded(how: str, names: Sequence[str], guest: Path) -> None:
    left = guest / "left"
    for name in names:
        said = (left / f"{name}-{how}.err").read_text()
        assert (left / f"{name}-{how}.out").read_text() == (guest / f"{name}.out").read_text(), said
        assert (left / f"{name}-{how}.status").read_text() == "0\n"
        (line,) = said.splitlines()
        assert ibprof_lines(said) == [line]
        assert ("Disk quota exceeded" if how == "before" else "no space for more") in line


def test_what_was_recorded_within_the_quota_is_read(names: Sequence[str], guest: Path) -> None:
    for name in names:
        profile = load_profile(guest / "left" / f"{name}-meanwhile.ibprof")
        assert [rank.rank for rank in profile.ranks] == list(range(RANKS))
        assert all(rank.finalized for rank in profile.ranks)
        assert "two\nlines" in profile.regions
        assert "a region could not be added" in " ".join(note for rank in profile.ranks for note in rank.notes)


def test_it_was_the_quota_and_not_the_disk(guest: Path) -> None:
    assert int((guest / "left" / "room").read_text()) > 30_000  # in KiB
