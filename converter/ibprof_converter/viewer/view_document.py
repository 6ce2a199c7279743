# SPDX-License-Identifier: Apache-2.0
"""Encode the document of the view: names as JSON; nodes, links and runs as arrays. See docs/formats/view.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import name_call
from ibprof_converter.layout.positions import FabricLayout, lower_ends, order_of_links
from ibprof_converter.layout.regular_cabling import find_dragonfly_groups
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.hosts import Hosts
from ibprof_converter.traffic.traffic_data import ALL, PortCounters, Traffic
from ibprof_converter.viewer.user_attributes import RankGrid, UserAttribute
from ibprof_converter.viewer.view_file import NONE, VERSION, Arrays, pack_document
from ibprof_converter.viewer.view_runs import (
    RunPairChange,
    SharedNames,
    ViewRun,
    describe_run,
    share_names,
    spread_ranks,
)

_AXES = ("x", "y", "z")

_ROUNDS = 8

_OFFSET = 0.3


@dataclass(frozen=True, slots=True)
class LinkValue:
    """A property of links, other than their bytes.

    Attributes:
        unit: the unit `s` or `Gb/s`, or empty.
        value: float64 [2 * link + end], one rail after the other (`encode_document`), or in the page's order
            (`describe_link_values`). NaN if the value is unknown, or meaningless in this direction.
    """

    name: str
    unit: str
    value: npt.NDArray[np.float64]


def encode_document(
    title: str,
    subnets: Sequence[Subnet],
    layouts: Sequence[FabricLayout],
    hosts: Hosts,
    runs: Sequence[ViewRun],
    attributes: Sequence[UserAttribute] = (),
    grid: RankGrid | None = None,
    link_values: Sequence[LinkValue] = (),
    spell: Callable[[str], str] = str,
    changes: Sequence[RunPairChange] = (),
) -> bytes:
    """Return the data of the page as one block of bytes.

    Args:
        title: the page's title, plain text.
        runs: the runs on the fabrics, at least one. The page compares two runs, initially the first two.
        attributes: the user's attributes of nodes and of the first run's ranks.
        grid: the positions of the first run's ranks on the problem's grid.
        link_values: properties of links other than their bytes.
        spell: function that is applied to all texts, for example to shorten paths.

    Returns:
        The format of `pack_document`.
    """
    names = share_names(runs)
    first_node = np.cumsum([0, *(subnet.fabric.nodes for subnet in subnets)])
    order = [_order_ends(subnet, layout) for subnet, layout in zip(subnets, layouts, strict=True)]
    arrays = _describe_nodes(subnets, layouts) | _describe_links(subnets, order, first_node)
    arrays |= _describe_groups(subnets, layouts)
    arrays |= {"node_host": np.concatenate(hosts.of_node).astype(np.int32)} | _describe_lids(subnets, first_node)
    run_headers = []
    for number, run in enumerate(runs):
        about, own = describe_run(run, names, subnets, order, first_node)
        run_headers.append(about)
        arrays |= {f"{number}.{name}": array for name, array in own.items()}
    attributes, space = split_positions(attributes, subnets)
    arrays |= _describe_attributes(attributes, grid, runs[0].placed, names)
    header: dict[str, object] = {
        "version": VERSION,
        "title": title,
        "rails": [
            {"name": subnet.fabric.name, "has_levels": layout.has_levels}
            for subnet, layout in zip(subnets, layouts, strict=True)
        ],
        "node_names": [name for subnet in subnets for name in subnet.fabric.node_name],
        "host_names": hosts.name,
        "regions": names.regions,
        "operations": [name_call(each) for each in names.operations],
        "jobs": names.jobs,
        **({"sites": names.sites} if names.sites != (ALL,) else {}),
        "rank_names": names.ranks,
        "attributes": [
            {"name": each.name, "of": "rank" if each.of_ranks else "node", "classes": each.classes}
            for each in attributes
        ],
        "grid": grid.title if grid else None,
        "runs": run_headers,
        **(
            {"changes": [{"from": each.before, "to": each.after, "text": each.text} for each in changes]}
            if changes
            else {}
        ),
    }
    first_end = np.cumsum([0, *(2 * subnet.fabric.links for subnet in subnets)])
    ends = np.concatenate([each + first for each, first in zip(order, first_end, strict=False)])
    values = [replace(each, value=each.value[ends]) for each in link_values]
    if space is not None:
        arrays["node_space"] = space.astype(np.float32).ravel()
        if np.isfinite(gbps := arrays["link_gbps"]).any():
            values.append(LinkValue("speed", "Gb/s", np.repeat(gbps, 2)))
    if values or space is not None:
        describe_link_values(header, arrays, values)
    return pack_document({key: _spell(value, spell) for key, value in header.items()}, arrays)


def _spell(value: object, spell: Callable[[str], str]) -> object:
    """Apply `spell` to all texts in a JSON value, but not to keys."""
    if isinstance(value, str):
        return spell(value)
    if isinstance(value, dict):
        return {key: _spell(each, spell) for key, each in value.items()}
    return [_spell(each, spell) for each in value] if isinstance(value, list | tuple) else value


def _order_ends(subnet: Subnet, layout: FabricLayout) -> npt.NDArray[np.intp]:
    """Return the fabric's link directions in the order of links.csv; each link's upward direction comes first: intp."""
    links = order_of_links(subnet.fabric, layout)
    lower = lower_ends(subnet.fabric, layout)[links]
    return np.stack([2 * links + lower, 2 * links + 1 - lower], axis=1).ravel()


def _describe_nodes(subnets: Sequence[Subnet], layouts: Sequence[FabricLayout]) -> Arrays:
    fabrics = [subnet.fabric for subnet in subnets]
    return {
        "node_rail": np.repeat(np.arange(len(fabrics), dtype=np.uint8), [fabric.nodes for fabric in fabrics]),
        "node_kind": np.concatenate([fabric.node_kind for fabric in fabrics]).astype(np.uint8),
        "node_guid": np.concatenate([fabric.node_guid for fabric in fabrics]),
        "node_level": np.concatenate([layout.level for layout in layouts]).astype(np.int32),
        "node_x": np.concatenate([layout.x for layout in layouts]).astype(np.float32),
        "node_y": np.concatenate([layout.y for layout in layouts]).astype(np.float32),
    }


def _describe_groups(subnets: Sequence[Subnet], layouts: Sequence[FabricLayout]) -> Arrays:
    """Return the group of each dragonfly switch; `NONE` for other nodes.

    The result is empty for other fabrics, and for several rails.
    """
    group = [np.full(subnet.fabric.nodes, NONE, np.int32) for subnet in subnets]
    for own, subnet, layout in zip(group, subnets, layouts, strict=True):
        found = {} if layout.has_levels else find_dragonfly_groups(subnet.fabric)
        own[list(found)] = list(found.values())
    is_dragonfly = len(group) == 1 and bool((group[0] != NONE).any())
    return {"node_group": group[0]} if is_dragonfly else {}


def _describe_links(
    subnets: Sequence[Subnet], order: Sequence[npt.NDArray[np.intp]], first_node: npt.NDArray[np.int64]
) -> Arrays:
    parts = list(zip(subnets, order, first_node[:-1].tolist(), strict=True))
    node = [subnet.fabric.link_node.ravel()[ends] + first for subnet, ends, first in parts]
    return {
        "end_node": np.concatenate(node).astype(np.uint32),
        "end_port": np.concatenate([subnet.fabric.link_port.ravel()[ends] for subnet, ends, _ in parts]).astype(
            np.uint8
        ),
        "link_gbps": np.concatenate([subnet.fabric.link_gbps[ends[::2] // 2] for subnet, ends, _ in parts]),
    }


def _describe_lids(subnets: Sequence[Subnet], first_node: npt.NDArray[np.int64]) -> Arrays:
    """Return base LID, number of LIDs, and node of each port."""
    fabrics = [subnet.fabric for subnet in subnets]
    nodes = [fabric.port_node + first for fabric, first in zip(fabrics, first_node[:-1].tolist(), strict=True)]
    return {
        "lid_first": np.concatenate([fabric.port_lid for fabric in fabrics]).astype(np.uint16),
        "lid_count": np.concatenate([1 << fabric.port_lmc for fabric in fabrics]).astype(np.uint16),
        "lid_node": np.concatenate(nodes).astype(np.int32),
    }


def _describe_attributes(
    attributes: Sequence[UserAttribute], grid: RankGrid | None, placed: Traffic | PortCounters, names: SharedNames
) -> Arrays:
    def spread(values: npt.NDArray[Any], nothing: float) -> npt.NDArray[Any]:
        return spread_ranks(values, placed, names, nothing) if isinstance(placed, Traffic) else values

    arrays = {
        f"attribute_{number}": spread(each.value[:, None], np.nan).ravel() if each.of_ranks else each.value
        for number, each in enumerate(attributes)
    }
    return arrays | ({"rank_place": spread(grid.place, NONE).ravel()} if grid else {})


def split_positions(
    attributes: Sequence[UserAttribute], subnets: Sequence[Subnet]
) -> tuple[list[UserAttribute], npt.NDArray[np.float64] | None]:
    """Separate the positions of nodes (columns x, y and z) from all other attributes.

    Nodes without a position are placed next to their neighbours.

    Returns:
        All other attributes; and the positions, float64 [node, 3]. If no node has numeric x, y and z, the positions are
        None.
    """
    axes = {each.name: each for each in attributes if not each.of_ranks and not each.classes and each.name in _AXES}
    if len(axes) < len(_AXES):
        return list(attributes), None
    place: npt.NDArray[np.float64] = np.stack([axes[name].value for name in _AXES], axis=1)
    others = [each for each in attributes if axes.get(each.name) is not each]
    return others, _fill(place, subnets) if _is_known(place).any() else None


def _fill(place: npt.NDArray[np.float64], subnets: Sequence[Subnet]) -> npt.NDArray[np.float64]:
    first = np.cumsum([0, *(subnet.fabric.nodes for subnet in subnets)])[:-1].tolist()
    ends = np.concatenate([subnet.fabric.link_node + node for subnet, node in zip(subnets, first, strict=True)])
    known = _is_known(place)
    filled = np.where(known[:, None], place, 0.0)
    shift = np.random.default_rng(0).normal(0, 1, place.shape)
    shift *= _OFFSET * _usual_length(place, ends) / np.linalg.norm(shift, axis=1, keepdims=True)
    for _ in range(_ROUNDS):
        if known.all():
            break
        total, count = np.zeros_like(filled), np.zeros(len(filled))
        for own, other in ((0, 1), (1, 0)):
            reachable = known[ends[:, other]]
            np.add.at(total, ends[reachable, own], filled[ends[reachable, other]])
            np.add.at(count, ends[reachable, own], 1)
        reached = ~known & (count > 0)
        filled[reached] = total[reached] / count[reached, None] + shift[reached]
        known |= reached
    filled[~known] = filled[known].mean(axis=0) + shift[~known]
    return filled


def _is_known(place: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return np.isfinite(place[:, 0]) & np.isfinite(place[:, 1]) & np.isfinite(place[:, 2])


def _usual_length(place: npt.NDArray[np.float64], ends: npt.NDArray[np.integer]) -> float:
    length = np.linalg.norm(place[ends[:, 0]] - place[ends[:, 1]], axis=1)
    length = length[np.isfinite(length) & (length > 0)]
    if len(length):
        return float(np.median(length))
    spread = float(np.nanmax(place) - np.nanmin(place))
    return spread / 10 if spread > 0 else 1.0


def describe_link_values(header: dict[str, object], arrays: Arrays, values: Sequence[LinkValue]) -> None:
    """Add properties of links to the header and the arrays of a document."""
    header["link_values"] = [{"name": each.name, "unit": each.unit} for each in values]
    arrays |= {f"link_value_{number}": each.value for number, each in enumerate(values)}
