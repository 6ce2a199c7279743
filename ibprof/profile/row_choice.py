# SPDX-License-Identifier: Apache-2.0
"""Choice of a profile's rows by operation, region and call site; a profile of chosen rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.profile.profile_data import (
    CallTimes,
    Counters,
    Demands,
    Intervals,
    IntervalTimes,
    MessageSizes,
    Profile,
    Site,
    Transfers,
)

ByCall = Counters | CallTimes | Demands | MessageSizes
"""Classes of rows with an operation, a region and a call site."""

_Chosen = TypeVar("_Chosen", Counters, CallTimes, Demands, MessageSizes, Transfers)


NO_SITES = "call sites were not recorded: run again without IBPROF_SITES=0"

UNKNOWN_SITE = "(unknown)"
"""Name for calls with an unknown site."""

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class RowChoice:
    """A choice of rows.

    Attributes:
        operation, region: names; None for all.
        site: `FILE:LINE` or another name of a call site; None for all.
    """

    operation: str | None = None
    region: str | None = None
    site: str | None = None

    def __bool__(self) -> bool:
        return any(name is not None for name in (self.operation, self.region, self.site))

    def __str__(self) -> str:
        return " ".join(self._options())

    def _options(self) -> Iterator[str]:
        for option in ("operation", "region", "site"):
            if (name := getattr(self, option)) is not None:
                yield f"--{option} {name}"

    @property
    def divides_calls(self) -> bool:
        """True if the choice depends on the call that moved the bytes, not only on the region."""
        return self.operation is not None or self.site is not None

    def choose(self, run: Profile, rows: ByCall) -> npt.NDArray[np.bool_]:
        """Return a mask of chosen rows: bool [row].

        Raises:
            UsageError: the profile has no such operation, region or site.
        """
        chosen = np.ones(len(rows.rank), np.bool_)
        if self.operation is not None:
            chosen &= rows.operation == find_operation(run, self.operation)
        if self.region is not None:
            chosen &= rows.region == find_name("region", self.region, run.regions, run.regions)
        if self.site is not None:
            chosen &= np.isin(rows.site, list(find_sites(run, self.site)))
        return chosen

    def restrict(self, run: Profile) -> Profile:
        """Return a profile of the chosen rows.

        Bytes over time are left out, since their calls are unknown. Work requests are left out too, unless
        only a region is chosen.

        Raises:
            UsageError: the profile has no such operation, region or site.
        """
        if not self:
            return run
        if self.divides_calls:
            transfers = Transfers.empty()
        else:
            region = find_name("region", self.region or "", run.regions, run.regions)
            transfers = _keep(run.transfers, run.transfers.region == region)
        return replace(
            run,
            counters=_keep(run.counters, self.choose(run, run.counters)),
            times=_keep(run.times, self.choose(run, run.times)),
            demands=_keep(run.demands, self.choose(run, run.demands)),
            sizes=_keep(run.sizes, self.choose(run, run.sizes)),
            transfers=transfers,
            intervals=Intervals.empty(),
            interval_times=IntervalTimes.empty(),
        )


ALL_ROWS = RowChoice()


def _keep(rows: _Chosen, chosen: npt.NDArray[np.bool_]) -> _Chosen:
    return replace(rows, **{name: column[chosen] for name, column in rows.columns().items()})


def find_operation(run: Profile, text: str) -> int:
    """Return the number of an operation; its name may be in any case, with or without `MPI_`.

    Raises:
        UsageError: the profile has no such operation.
    """
    name = text.upper().removeprefix("MPI_")
    # NCCL's names have upper-case and lower-case letters.
    name = next((each for each in run.operations if each.upper() == name), name)
    used = {run.operations[number] for rows in (run.counters, run.times) for number in np.unique(rows.operation)}
    return find_name("operation", name, run.operations, used)


def find_name(what: str, name: str, names: Sequence[str], known: Collection[str]) -> int:
    """Return the number of a name.

    Raises:
        UsageError: the name is unknown; the message lists the names in use.
    """
    if name not in names:
        raise UsageError(f"the profile has no {what} {name!r}; it has {', '.join(sorted(known)) or 'none'}")
    return names.index(name)


def name_sites(run: Profile) -> tuple[str, ...]:
    """Return the name of each site number, with callers; 0 is an unknown site."""
    return (UNKNOWN_SITE, *(site.label for site in run.sites))


def find_sites(run: Profile, text: str) -> frozenset[int]:
    """Return the numbers of the sites with a given name, or with a given line and end of their path.

    Several sites can have one line: calls in different objects, or from different callers. The line of a caller stands
    for all sites that it called. A name with callers stands for one site.

    Raises:
        UsageError: sites were not recorded, no site has this name, or the sites are of several files.
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
    """Return the names of a site and its callers that match a text."""
    return {each.name for each in (site, *site.callers) if text in _names_of(each)}


def _names_of(site: Site) -> Iterator[str]:
    """Yield all texts that identify a site: its name, and each tail of its path with the line."""
    yield site.name
    if site.line:
        parts = site.file.split("/")
        for first in range(len(parts)):
            yield f"{'/'.join(parts[first:])}:{site.line}"
