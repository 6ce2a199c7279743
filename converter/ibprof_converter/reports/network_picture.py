# SPDX-License-Identifier: Apache-2.0
"""The picture on top of a report's page: the used part of the network, its most loaded links thick and numbered."""

from __future__ import annotations

import numpy as np

from ibprof_converter.analysis.fabric_loads import FabricLoads
from ibprof_converter.hotspots.hot_links import LinkGroup
from ibprof_converter.reports.level_picture import draw_levels
from ibprof_converter.reports.picture_parts import NARROW, WIDE
from ibprof_converter.reports.plane_picture import draw_plane
from ibprof_converter.reports.used_part import UsedPart, find_used_part

_SAID = "The used part of the network; its most loaded links are thick, with the numbers of the list"


def draw_network(loads: FabricLoads, groups: tuple[LinkGroup, ...], has_fault: bool) -> str:
    """Return the picture as HTML, in a wide and a narrow form, of which the style shows one; empty without groups.

    Args:
        loads: of the links.
        groups: the most loaded link directions, in the order of the list.
        has_fault: whether the first one is to be red.
    """
    if not groups:
        return ""
    fabric, bounds = loads.fabric, loads.judging_bounds
    sent = bounds.estimates if bounds else [each.sum(axis=2, dtype=np.uint64) for each in loads.by_rail]
    part = find_used_part(fabric.fabrics, fabric.layouts, fabric.hosts, sent, groups)
    tones = ["fault" if has_fault and number == 0 else "busy" for number in range(len(groups))]
    draw = draw_levels if part.has_levels else draw_plane
    forms = "".join(draw(part, form, tones, _SAID) for form in (WIDE, NARROW))
    return f'<figure class="network">{forms}<figcaption>{_explain(part)}</figcaption></figure>'


def _explain(part: UsedPart) -> str:
    parts = []
    for is_kind, noun in ((part.is_host, "hosts"), (~part.is_host, "switches")):
        used = int((part.is_used & is_kind).sum())
        parts.append(f"{used:,} of {int(is_kind.sum()):,} {noun}")
    return (
        f"The part in use: {' and '.join(parts)}. Numbered arrows: the links of the list, the way their bytes go. "
        "Thinner lines of the same colour: links as busy as one of these. Dashed boxes: idle."
    )
