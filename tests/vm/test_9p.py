# SPDX-License-Identifier: Apache-2.0
"""Recording to a 9P mount, as virtual machines and containers have them for folders of their host.

Its client answers statfs with the type of the server's file system, and maps files only with some of its caches. With
`mmap` a reader does not see what was written to a mapping.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_testing.guest import run_in_guest
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.patterns import all_the_same, ring

RANKS = 2
CACHES = ("none", "mmap", "loose")
CASES = Path(__file__).parent / "9p.sh"


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with each cache."""
    folder = tmp_path_factory.mktemp("9p")
    (folder / "share").mkdir()
    mpi = mpis.find_mpi(mpis.SYSTEM)
    program = mpis.build(mpi, "copied.c", folder)
    settings = [f"{name}={value}" for name, value in mpis.LAUNCH_ANYHOW.items()]
    cases = ["bash", str(CASES), str(mpis.library()), str(RANKS), str(mpi.program("mpirun")), str(program), *CACHES]
    done = run_in_guest(["env", *settings, *cases], folder)
    assert done.status == 0, done.stderr
    return folder


@pytest.mark.parametrize("cache", CACHES)
def test_all_of_a_run_is_recorded(cache: str, guest: Path) -> None:
    said = (guest / f"{cache}.err").read_text()
    assert ((guest / f"{cache}.status").read_text(), said) == ("0\n", "")
    profile = load_complete(guest / "share" / f"{cache}.ibprof", RANKS)
    assert recorded(profile, operation="SENDRECV") == all_the_same(ring(RANKS), 750, 2)


@pytest.mark.parametrize("cache", CACHES)
def test_nothing_stays_on_the_node(cache: str, guest: Path) -> None:
    assert (guest / "node" / cache).read_text() == ""
