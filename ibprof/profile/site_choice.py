# SPDX-License-Identifier: Apache-2.0
"""Which call sites a user means by FILE:LINE."""

from __future__ import annotations

from collections.abc import Iterator

from ibprof.errors import UsageError
from ibprof.profile.profile_data import Profile, Site

NO_SITES = "call sites were not recorded: run again without IBPROF_SITES=0"

UNKNOWN_SITE = "(unknown)"
"""Stands for calls whose place in the program is not known."""

_SHOWN = 8


def name_sites(run: Profile) -> tuple[str, ...]:
    """Return the name of each site number of the rows, with its callers; 0 stands for an unknown site."""
    return (UNKNOWN_SITE, *(site.label for site in run.sites))


def find_sites(run: Profile, text: str) -> frozenset[int]:
    """Return the numbers of the sites that a text names: their name, or the end of their path, and the line.

    Several sites can have one line: calls of one line in different objects, or from different callers. A caller's line
    names all sites that it called. A name with callers is that site alone.

    Raises:
        UsageError: sites were not recorded, none has this name, or they are of several files.
    """
    if not run.sites:
        raise UsageError(f"--site {text}: {NO_SITES}")
    if text == UNKNOWN_SITE:
        return frozenset({0})
    if same := frozenset(number for number, site in enumerate(run.sites, 1) if site.label == text and site.callers):
        return same
    named = {number: _named_by(text, site) for number, site in enumerate(run.sites, 1)}
    names = sorted(set().union(*named.values()))
    if not names:
        known = sorted({site.label for site in run.sites})
        more = f" and {len(known) - _SHOWN:,} more" if len(known) > _SHOWN else ""
        raise UsageError(f"the profile has no site {text!r}; it has {', '.join(known[:_SHOWN])}{more}")
    if len(names) > 1 and text not in names:
        raise UsageError(f"--site {text}: several files have this name; choose one of {', '.join(names)}")
    chosen = text if text in names else names[0]
    return frozenset(number for number, found in named.items() if chosen in found)


def _named_by(text: str, site: Site) -> set[str]:
    """Return the names of a site and its callers that a text stands for."""
    return {each.name for each in (site, *site.callers) if text in _names_of(each)}


def _names_of(site: Site) -> Iterator[str]:
    """Yield all texts that name a place: its own name, and each tail of its path with the line."""
    yield site.name
    if site.line:
        parts = site.file.split("/")
        for first in range(len(parts)):
            yield f"{'/'.join(parts[first:])}:{site.line}"
