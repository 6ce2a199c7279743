# SPDX-License-Identifier: Apache-2.0
"""Names of MPI calls, of MPIs and of call sites, as text for people."""

from __future__ import annotations

import re

from ibprof.text.quantities import printable

_CALL = re.compile(r"[A-Z][A-Z0-9_]*")


_KNOWN = re.compile(
    r"(Open MPI|MVAPICH2?|CRAY MPICH|MPICH|Intel\(R\) MPI Library)(?: Version)?[\s:]+(?:version\s+)?v?(\d[\w.]*)",
    re.IGNORECASE,
)

CALLED_FROM = " < "
"""Between a place and its caller."""

_WIDTH = 80

_LEFT_OUT = "..."


def name_call(operation: str) -> str:
    """Return the name of an operation's call as the MPI standard writes it (MPI_Gatherv); other names as they are."""
    if _CALL.fullmatch(operation) and operation != "UNATTRIBUTED":
        return f"MPI_{operation.capitalize()}"
    return printable(operation)


def name_mpi(text: str) -> str:
    """Return `Open MPI 4.1.4`; the whole text on one line where no name is known in it."""
    if found := _KNOWN.search(text):
        return f"{found[1].replace('(R) MPI Library', ' MPI')} {found[2].rstrip('.')}"
    return " ".join(text.split())


def shorten_site(name: str) -> str:
    """Return a name that fits into a table: of many callers, those in the middle are left out.

    The site and the outermost caller are always there.
    """
    if len(name) <= _WIDTH:
        return name
    site, *callers = name.split(CALLED_FROM)
    shown = callers[-1:]
    for caller in reversed(callers[:-1]):
        if len(CALLED_FROM.join((site, _LEFT_OUT, caller, *shown))) > _WIDTH:
            break
        shown.insert(0, caller)
    return CALLED_FROM.join((site, *([_LEFT_OUT] if len(shown) < len(callers) else []), *shown))
