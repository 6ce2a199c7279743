# SPDX-License-Identifier: Apache-2.0
"""Names of MPI calls, of MPI libraries and of call sites, as text for people."""

from __future__ import annotations

import re

from ibprof.text.quantities import printable

_CALL = re.compile(r"[A-Z][A-Z0-9_]*")


_KNOWN = re.compile(
    r"(Open MPI|MVAPICH2?|CRAY MPICH|MPICH|Intel\(R\) MPI Library)(?: Version)?[\s:]+(?:version\s+)?v?(\d[\w.]*)",
    re.IGNORECASE,
)

CALLED_FROM = " < "
"""Separator between a site and its caller."""

_WIDTH = 80

_LEFT_OUT = "..."


def name_call(operation: str) -> str:
    """Return an operation's name as the MPI standard writes it (MPI_Gatherv); other names unchanged."""
    if _CALL.fullmatch(operation) and operation != "UNATTRIBUTED":
        return f"MPI_{operation.capitalize()}"
    return printable(operation)


def name_mpi(text: str) -> str:
    """Return `Open MPI 4.1.4`; the whole text on one line if it contains no known name."""
    if found := _KNOWN.search(text):
        return f"{found[1].replace('(R) MPI Library', ' MPI')} {found[2].rstrip('.')}"
    return " ".join(text.split())


def shorten_site(name: str) -> str:
    """Return a name that fits into a table: the middle ones of many callers are left out.

    The site and the outermost caller always remain.
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
