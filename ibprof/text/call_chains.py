# SPDX-License-Identifier: Apache-2.0
"""Names of call sites with their callers: `library.c:10 < solver.c:212`."""

from __future__ import annotations

CALLED_FROM = " < "
"""Between a place and its caller."""

_WIDTH = 80
_LEFT_OUT = "..."


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
