# SPDX-License-Identifier: Apache-2.0
"""Names of MPI calls, MPI libraries and call sites fit into a line."""

from __future__ import annotations

import pytest

from ibprof.text.quantities import name_mpi, shorten_site

LONG = "a" * 40


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("solver.c:212", "solver.c:212"),
        ("x" * 100, "x" * 100),
        ("lib.c:3 < halo.c:20 < solver.c:212", "lib.c:3 < halo.c:20 < solver.c:212"),
        (f"l.c:3 < {LONG} < {LONG} < halo.c:20 < main.c:2", f"l.c:3 < ... < {LONG} < halo.c:20 < main.c:2"),
        (f"{LONG} < {LONG}", f"{LONG} < {LONG}"),
        (f"{LONG} < {LONG} < {LONG}", f"{LONG} < ... < {LONG}"),
        (f"lib.c:3 < halo.c:20 < {LONG}{LONG}", f"lib.c:3 < ... < {LONG}{LONG}"),
    ],
)
def test_callers_in_the_middle_are_left_out(name: str, shown: str) -> None:
    assert shorten_site(name) == shown


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022", "Open MPI 4.1.4"),
        ("MPICH Version:      4.3.2\nMPICH Release date: Mon\nMPICH ABI: 17:0:5\n", "MPICH 4.3.2"),
        ("MPICH Version: 5.0.0rc1\n", "MPICH 5.0.0rc1"),
        ("MVAPICH2 Version      :\t2.3.7\n", "MVAPICH2 2.3.7"),
        ("Intel(R) MPI Library 2021.18 for Linux* OS\n", "Intel MPI 2021.18"),
        ("MPI VERSION    : CRAY MPICH version 8.1.27.26 (ANL base 3.4a2)\n", "CRAY MPICH 8.1.27.26"),
        ("An MPI\nof 2030", "An MPI of 2030"),
        ("", ""),
    ],
)
def test_name_and_version(text: str, name: str) -> None:
    assert name_mpi(text) == name
