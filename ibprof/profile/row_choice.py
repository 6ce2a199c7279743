# SPDX-License-Identifier: Apache-2.0
"""Choose rows of a profile by operation, region and call site."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.profile.profile_data import CallTimes, Counters, Profile
from ibprof.profile.site_choice import find_sites


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

    def choose(self, run: Profile, rows: Counters | CallTimes) -> npt.NDArray[np.bool_]:
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
