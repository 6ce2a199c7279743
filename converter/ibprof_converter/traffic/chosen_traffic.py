# SPDX-License-Identifier: Apache-2.0
"""The part of a traffic that some calls of the program caused: of one operation, region or line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.profile.row_choice import RowChoice
from ibprof_converter.traffic.recorded_traffic import profile_traffic
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic

LEFT_OUT = (
    "work requests whose port or calls are unknown are left out: with --operation or --site, only what is attributed "
    "to the chosen calls is on links"
)


def choose_demand(
    demand: RankTraffic | Traffic | PortCounters, choice: RowChoice, name: str
) -> RankTraffic | Traffic | PortCounters:
    """Return what the chosen calls sent.

    Args:
        demand: any traffic.
        choice: which calls; all of them change nothing.
        name: of the traffic, for messages.

    Raises:
        UsageError: the traffic is of no recorded run, or the run has no such operation, region or site.
    """
    if not choice:
        return demand
    if not isinstance(demand, RankTraffic) or demand.profile is None:
        raise UsageError(f"{choice}: {name}: only recorded runs know the calls that bytes are of")
    try:
        chosen = profile_traffic(choice.restrict(demand.profile), name)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    return replace(chosen, origin=f"{demand.origin}, only {choice}", part_of=demand)


def choose_flows(measured: Traffic, chosen: RankTraffic) -> Traffic:
    """Return the measured flows that are attributed to chosen calls.

    Measured bytes were attributed to all calls of a run, in proportion. Of the chosen calls alone, they would all be
    attributed to these.

    Args:
        measured: flows of the whole run (`map_measured_to_lids`).
        chosen: what the chosen calls sent, of the same run.
    """
    kept = np.full(len(measured.bytes), len(chosen.bytes) > 0)
    for column in ("region", "operation", "site"):
        kept &= _has_name_of(measured, chosen, column)
    return replace(
        measured.take(np.flatnonzero(kept)),
        origin=chosen.origin,
        on_host_bytes=0,
        unmapped={},
        notes=(*measured.notes, LEFT_OUT),
    )


def _has_name_of(measured: Traffic, chosen: RankTraffic, column: str) -> npt.NDArray[np.bool_]:
    """Return which flows have a region, an operation or a site that a chosen call has: bool [flow]."""
    names: tuple[str, ...] = getattr(measured, f"{column}s")
    if len(names) == 1:
        return np.ones(len(measured.bytes), np.bool_)
    of_chosen: tuple[str, ...] = getattr(chosen, f"{column}s")
    rows = getattr(chosen, column)
    used = {of_chosen[number] for number in np.unique(rows).tolist()} if len(rows) else set(of_chosen)
    is_used = np.array([name in used for name in names], np.bool_)
    found: npt.NDArray[np.bool_] = is_used[getattr(measured, column)]
    return found
