# SPDX-License-Identifier: Apache-2.0
"""The name and version of an MPI, out of the lines that MPI_Get_library_version returns."""

from __future__ import annotations

import re

_KNOWN = re.compile(
    r"(Open MPI|MVAPICH2?|CRAY MPICH|MPICH|Intel\(R\) MPI Library)(?: Version)?[\s:]+(?:version\s+)?v?(\d[\w.]*)",
    re.IGNORECASE,
)


def name_mpi(text: str) -> str:
    """Return `Open MPI 4.1.4`; the whole text on one line where no name is known in it."""
    if found := _KNOWN.search(text):
        return f"{found[1].replace('(R) MPI Library', ' MPI')} {found[2].rstrip('.')}"
    return " ".join(text.split())
