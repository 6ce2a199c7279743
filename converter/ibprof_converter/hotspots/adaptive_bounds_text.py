# SPDX-License-Identifier: Apache-2.0
"""Loads with adaptive routing, bounds and estimate, next to the static ones, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ibprof.text.quantities import format_bytes
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.traffic.loaded_links import Loads
from ibprof_converter.traffic.rail_bounds import Bounds

_TOP = 10

_LOADS = {"static": "by the tables", "shared": "shared", "estimate": "estimate", "most": "at most"}


def bounds_as_json(bounds: Bounds, loads: Loads, fabrics: Sequence[Fabric]) -> dict[str, object]:
    """Return the largest loads between switches, static and adaptive, and the ends with the largest estimates."""
    ends = _find_ends(bounds, loads, fabrics)
    return {
        "label": bounds.label,
        "reason": bounds.reason,
        "max_switch_link": {name: max((end[name] for end in ends), default=0) for name in _LOADS},
        "bytes_unrouted": sum(each.unrouted for each in bounds.by_rail),
        "link_ends": sorted(ends, key=_rank)[:_TOP],
    }


def describe_bounds(bounds: Bounds, loads: Loads, fabrics: Sequence[Fabric]) -> Iterator[str]:
    """Yield lines on the loads between switches with adaptive routing, or by routes that are not known."""
    ends = _find_ends(bounds, loads, fabrics)
    yield f"{'Adaptive routing' if bounds.is_adaptive else 'Unknown routes'} ({bounds.reason})"
    yield f"  {bounds.label}"
    yield "  largest load of a link direction between switches:"
    for name, words in _LOADS.items():
        yield f"    {words:<14}{format_bytes(max((int(end[name]) for end in ends), default=0))}"
    for end in sorted(ends, key=_rank)[:_TOP]:
        yield (
            f"  rail {end['rail']}: {end['name']} port {end['port']}: by the tables {format_bytes(end['static'])}, "
            f"shared {format_bytes(end['shared'])}, estimate {format_bytes(end['estimate'])}, "
            f"at most {format_bytes(end['most'])}"
        )


def _find_ends(bounds: Bounds, loads: Loads, fabrics: Sequence[Fabric]) -> list[dict[str, Any]]:
    """List the link directions between switches that may carry anything."""
    ends = []
    for rail, (fabric, bound, loaded) in enumerate(zip(fabrics, bounds.by_rail, loads.by_rail, strict=True)):
        static = loaded.sum(axis=2, dtype=np.uint64)
        between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
        for link, end in np.argwhere(((bound.most > 0) | (static > 0)) & between[:, np.newaxis]).tolist():
            node = fabric.link_node[link, end]
            ends.append(
                {
                    "rail": rail,
                    "guid": f"0x{int(fabric.node_guid[node]):016x}",
                    "name": fabric.node_name[node],
                    "port": int(fabric.link_port[link, end]),
                    "static": int(static[link, end]),
                    "shared": round(float(bound.shared[link, end])),
                    "estimate": round(float(bound.estimate[link, end])),
                    "most": int(bound.most[link, end]),
                }
            )
    return ends


def _rank(end: dict[str, Any]) -> tuple[int, int]:
    return -end["estimate"], -end["most"]
