# SPDX-License-Identifier: Apache-2.0
"""Counters beside prediction: how much of what ports counted the routes explain, and what came from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.traffic.loaded_links import Loads, match_counters
from ibprof_converter.traffic.traffic_data import PortCounters, total_bytes

_EVIDENT = 0.05
"""Part by which counters exceed what was sent through headers and acknowledgements alone; more is somebody else's."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A link end where counter and prediction differ.

    Attributes:
        rail, link, end: which.
        counted, predicted: bytes.
    """

    rail: int
    link: int
    end: int
    counted: int
    predicted: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counters against prediction, over the link ends that have a counter.

    Attributes:
        origin: where the counters come from.
        counted: for each rail uint64 [link, end].
        known: for each rail bool [link, end], whether there is a counter.
        ends_counted: how many link ends have one.
        ends_uncounted: how many have none, though bytes are predicted there.
        bytes_counted, bytes_predicted: sums.
        bytes_explained: of the counted ones: the smaller of the two, added up.
        bytes_elsewhere: counted beyond what is predicted: other jobs, storage, headers.
        bytes_missing: predicted beyond what was counted: other routes or rails than thought, or counters were reset.
        correlation: of the two over the ends, from -1 to 1; None where one of them is the same everywhere.
        surplus: ends with most bytes from elsewhere, beyond what headers explain.
        deficit: ends with most missing bytes.
        notes: what is odd about the counters.
    """

    origin: str
    counted: tuple[npt.NDArray[np.uint64], ...]
    known: tuple[npt.NDArray[np.bool_], ...]
    ends_counted: int
    ends_uncounted: int
    bytes_counted: int
    bytes_predicted: int
    bytes_explained: int
    bytes_elsewhere: int
    bytes_missing: int
    correlation: float | None
    surplus: tuple[Difference, ...]
    deficit: tuple[Difference, ...]
    notes: tuple[str, ...]


def compare_counters(loads: Loads, counters: PortCounters, fabrics: Sequence[Fabric], top: int = 10) -> Agreement:
    """Hold counters against the loads that routes predict.

    Args:
        loads: predicted.
        counters: of ports; those that are on no link are left out.
        fabrics: the rails.
        top: how many differing ends to name, each way.
    """
    counted, known, _ = match_counters(counters, fabrics)
    predicted = tuple(each.sum(axis=2, dtype=np.uint64) for each in loads.by_rail)
    seen = np.concatenate([each.ravel() for each in known])
    there = np.concatenate([each.ravel() for each in counted])[seen]
    wanted = np.concatenate([each.ravel() for each in predicted])
    expected = wanted[seen]
    more = np.where(there > expected, there - np.minimum(there, expected), np.uint64(0))
    less = np.where(expected > there, expected - np.minimum(there, expected), np.uint64(0))
    varied = len(there) > 1 and np.ptp(there) > 0 and np.ptp(expected) > 0
    evident = np.where(more > _EVIDENT * expected.astype(np.float64), more, np.uint64(0))
    places = _index_ends(known)

    def name(amounts: npt.NDArray[np.uint64]) -> tuple[Difference, ...]:
        order = np.argsort(-amounts.astype(np.float64), kind="stable")[:top]
        chosen = [index for index in order.tolist() if amounts[index]]
        return tuple(
            Difference(rail, link, end, int(there[index]), int(expected[index]))
            for index in chosen
            for rail, link, end in [places[index].tolist()]
        )

    return Agreement(
        origin=counters.origin,
        counted=counted,
        known=known,
        ends_counted=int(seen.sum()),
        ends_uncounted=int((wanted[~seen] > 0).sum()),
        bytes_counted=total_bytes(there),
        bytes_predicted=total_bytes(expected),
        bytes_explained=total_bytes(np.minimum(there, expected)),
        bytes_elsewhere=total_bytes(more),
        bytes_missing=total_bytes(less),
        correlation=float(np.corrcoef(there.astype(float), expected.astype(float))[0, 1]) if varied else None,
        surplus=name(evident),
        deficit=name(less),
        notes=counters.notes,
    )


def _index_ends(known: Sequence[npt.NDArray[np.bool_]]) -> npt.NDArray[np.int64]:
    """Give rail, link and end of each link end that has a counter: int64 [counter, 3]."""
    return np.concatenate(
        [
            np.insert(np.argwhere(each), 0, rail, axis=1) if each.any() else np.zeros((0, 3), np.int64)
            for rail, each in enumerate(known)
        ]
    )
