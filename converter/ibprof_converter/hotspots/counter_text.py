# SPDX-License-Identifier: Apache-2.0
"""Port counters compared with predicted loads, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ibprof.text.quantities import format_bytes
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.traffic.counter_agreement import Agreement, Difference

_REMARK = (
    "counters hold headers, acknowledgements and whatever else passed, so they are some percent above user data even "
    "where all is explained"
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
