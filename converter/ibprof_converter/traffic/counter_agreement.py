# SPDX-License-Identifier: Apache-2.0
"""Port counters compared with predicted loads: how much of the counted bytes the routes explain; as JSON and text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import sum_exactly
from ibprof.text.quantities import format_bytes
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.traffic.loaded_links import Loads, match_counters
from ibprof_converter.traffic.traffic_data import PortCounters

_EVIDENT = 0.05
"""Excess of counters that headers and acknowledgements explain; a larger one is traffic of others."""

_REMARK = (
    "counters hold headers, acknowledgements and whatever else passed, so they are some percent above user data even "
    "where all is explained"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A link direction where counter and prediction differ.

    Attributes:
        rail, link, end: the link direction.
        counted, predicted: bytes.
    """

    rail: int
    link: int
    end: int
    counted: int
    predicted: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counters compared with prediction, over the link directions that have a counter.

    Attributes:
        origin: source of the counters.
        counted: for each rail uint64 [link, end].
        known: for each rail bool [link, end], true where there is a counter.
        ends_counted: number of link directions with a counter.
        ends_uncounted: number of link directions without a counter where bytes are predicted.
        bytes_counted, bytes_predicted: sums.
        bytes_explained: sum of the smaller of the two.
        bytes_elsewhere: counted beyond the prediction: other jobs, storage, headers.
        bytes_missing: predicted beyond the counters: other routes or rails than assumed, or counters were reset.
        correlation: of the two over the link directions, from -1 to 1; None where one of them is constant.
        surplus: link directions with the most bytes from elsewhere, beyond what headers explain.
        deficit: link directions with the most missing bytes.
        notes: anomalies of the counters.
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
    """Compare counters with the loads that routes predict.

    Args:
        loads: the prediction.
        counters: of ports; those on no link are left out.
        fabrics: the rails.
        top: number of differing link directions to name, for surplus and for deficit.
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
        bytes_counted=sum_exactly(there),
        bytes_predicted=sum_exactly(expected),
        bytes_explained=sum_exactly(np.minimum(there, expected)),
        bytes_elsewhere=sum_exactly(more),
        bytes_missing=sum_exactly(less),
        correlation=float(np.corrcoef(there.astype(float), expected.astype(float))[0, 1]) if varied else None,
        surplus=name(evident),
        deficit=name(less),
        notes=counters.notes,
    )


def _index_ends(known: Sequence[npt.NDArray[np.bool_]]) -> npt.NDArray[np.int64]:
    """Return rail, link and end of each link direction that has a counter: int64 [counter, 3]."""
    return np.concatenate(
        [
            np.insert(np.argwhere(each), 0, rail, axis=1) if each.any() else np.zeros((0, 3), np.int64)
            for rail, each in enumerate(known)
        ]
    )


def agreement_as_json(agreement: Agreement, fabrics: Sequence[Fabric]) -> dict[str, object]:
    """Return an agreement as plain values."""
    return {
        "origin": agreement.origin,
        "ends_counted": agreement.ends_counted,
        "ends_uncounted": agreement.ends_uncounted,
        "bytes_counted": agreement.bytes_counted,
        "bytes_predicted": agreement.bytes_predicted,
        "bytes_explained": agreement.bytes_explained,
        "bytes_elsewhere": agreement.bytes_elsewhere,
        "bytes_missing": agreement.bytes_missing,
        "correlation": agreement.correlation,
        "surplus": [_as_json(each, fabrics) for each in agreement.surplus],
        "deficit": [_as_json(each, fabrics) for each in agreement.deficit],
        "notes": [*agreement.notes, _REMARK],
    }


def describe_agreement(agreement: Agreement, fabrics: Sequence[Fabric]) -> Iterator[str]:
    """Say in lines what agrees and what does not."""
    counted = agreement.bytes_counted
    explained = f" ({100 * agreement.bytes_explained / counted:.1f}%)" if counted else ""
    yield f"Counters compared with prediction ({agreement.origin})"
    yield f"  link directions with a counter: {agreement.ends_counted}; used, but without: {agreement.ends_uncounted}"
    yield f"  counted {format_bytes(counted)}, predicted there {format_bytes(agreement.bytes_predicted)}"
    yield (
        f"  explained {format_bytes(agreement.bytes_explained)}{explained}, from elsewhere "
        f"{format_bytes(agreement.bytes_elsewhere)}, predicted and not counted {format_bytes(agreement.bytes_missing)}"
    )
    if agreement.correlation is not None:
        yield f"  correlation over the link directions {agreement.correlation:.3f}"
    for title, differences in (("most from elsewhere", agreement.surplus), ("most missing", agreement.deficit)):
        if differences:
            yield f"  {title}:"
        for each in differences:
            yield (
                f"    {_name(each, fabrics)}: counted {format_bytes(each.counted)}, "
                f"predicted {format_bytes(each.predicted)}"
            )
    for note in agreement.notes:
        yield f"  {note}"
    yield f"  {_REMARK}"


def _name(each: Difference, fabrics: Sequence[Fabric]) -> str:
    fabric = fabrics[each.rail]
    ends = [
        f"{fabric.node_name[fabric.link_node[each.link, end]]} port {fabric.link_port[each.link, end]}"
        for end in (each.end, 1 - each.end)
    ]
    return f"rail {each.rail}: {ends[0]} -> {ends[1]}"


def _as_json(each: Difference, fabrics: Sequence[Fabric]) -> dict[str, object]:
    fabric = fabrics[each.rail]
    node = fabric.link_node[each.link, each.end]
    return {
        "rail": each.rail,
        "guid": f"0x{int(fabric.node_guid[node]):016x}",
        "name": fabric.node_name[node],
        "port": int(fabric.link_port[each.link, each.end]),
        "bytes_counted": each.counted,
        "bytes_predicted": each.predicted,
    }
