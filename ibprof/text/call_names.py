# SPDX-License-Identifier: Apache-2.0
"""Names of operations as names of MPI calls."""

from __future__ import annotations

import re

from ibprof.text.quantities import printable

_CALL = re.compile(r"[A-Z][A-Z0-9_]*")


def name_call(operation: str) -> str:
    """Return the name of an operation's call as the MPI standard writes it (MPI_Gatherv); other names as they are."""
    if _CALL.fullmatch(operation) and operation != "UNATTRIBUTED":
        return f"MPI_{operation.capitalize()}"
    return printable(operation)
