# SPDX-License-Identifier: Apache-2.0
"""Choose rows of a profile by operation, region and call site; a profile of the chosen rows alone."""

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
    Transfers,
)
from ibprof.profile.site_choice import find_sites

ByCall = Counters | CallTimes | Demands | MessageSizes
"""Rows that have an operation, a region and a call site."""

_Chosen = TypeVar("_Chosen", Counters, CallTimes, Demands, MessageSizes, Transfers)


@dataclass(frozen=True, slots=True)
class RowChoice:
    """Which rows to choose.

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
        """True where it needs to know the call, not only the region, that bytes belong to."""
        return self.operation is not None or self.site is not None

    def choose(self, run: Profile, rows: ByCall) -> npt.NDArray[np.bool_]:
        """Return which rows are chosen: bool [row].

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
        """Return a profile with the chosen rows alone.

        Bytes over time are not known by call, and are left out. So are work requests, unless a region alone is chosen.

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
    """Return the number of an operation, named as users may: in any case, with or without `MPI_`.

    Raises:
        UsageError: the profile has none of this name.
    """
    name = text.upper().removeprefix("MPI_")
    used = {run.operations[number] for rows in (run.counters, run.times) for number in np.unique(rows.operation)}
    return find_name("operation", name, run.operations, used)


def find_name(what: str, name: str, names: Sequence[str], known: Collection[str]) -> int:
    """Return the number of a name.

    Raises:
        UsageError: it is not among the names; the message lists those in use.
    """
    if name not in names:
        raise UsageError(f"the profile has no {what} {name!r}; it has {', '.join(sorted(known)) or 'none'}")
    return names.index(name)
