# SPDX-License-Identifier: Apache-2.0
"""Names of MPIs are one word and a version."""

from __future__ import annotations

import pytest

from ibprof.text.mpi_names import name_mpi


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
