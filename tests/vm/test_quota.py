# SPDX-License-Identifier: Apache-2.0
"""A user's quota: a real one, of ext4 in the guest, since a container's own kernel need not have any.

The same programs where no quota is are the measure of output and status.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof_testing.guest import run_in_guest
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.no_harm import FAMILIES, find_any, ibprof_lines, launch

RANKS = 2
MODES = ("names", "regions")
CASES = Path(__file__).parent / "quota.sh"
MODULES = ("loop", "ext4", "quota_v2")


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of all programs: what each left, and what it says where there is no quota."""
    folder = tmp_path_factory.mktemp("quota")
    words: list[str] = []
    for name in FAMILIES:
        mpi = find_any(name)
        (folder / name).mkdir()
        program = mpis.build(mpi, "unruly.c", folder / name, "-pthread")
        bare = launch(mpi, RANKS, [program, *MODES], {})
        assert (bare.returncode, bare.stderr) == (0, "")
        (folder / f"{name}.out").write_text(bare.stdout)
        words += [name, str(mpi.program("mpirun")), str(program)]
    settings = [f"{name}={value}" for name, value in mpis.LAUNCH_ANYHOW.items()]
    cases = ["bash", str(CASES), str(mpis.library()), str(RANKS), " ".join(MODES), *words]
    done = run_in_guest(["env", *settings, *cases], folder, modules=MODULES)
    assert done.status == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("how", ["before", "meanwhile"])
def test_a_quota_changes_nothing_but_what_is_recorded(name: str, how: str, guest: Path) -> None:
    left = guest / "left"
    said = (left / f"{name}-{how}.err").read_text()
    assert (left / f"{name}-{how}.out").read_text() == (guest / f"{name}.out").read_text(), said
    assert (left / f"{name}-{how}.status").read_text() == "0\n"
    (line,) = said.splitlines()
    assert ibprof_lines(said) == [line]
    assert ("Disk quota exceeded" if how == "before" else "no space for more") in line


@pytest.mark.parametrize("name", FAMILIES)
def test_what_was_recorded_within_the_quota_is_read(name: str, guest: Path) -> None:
    profile = load_profile(guest / "left" / f"{name}-meanwhile.ibprof")
    assert [rank.rank for rank in profile.ranks] == list(range(RANKS))
    assert all(rank.finalized for rank in profile.ranks)
    assert "two\nlines" in profile.regions
    assert "a region could not be added" in " ".join(note for rank in profile.ranks for note in rank.notes)


def test_it_was_the_quota_and_not_the_disk(guest: Path) -> None:
    assert int((guest / "left" / "room").read_text()) > 30_000  # KiB
