# SPDX-License-Identifier: Apache-2.0
"""Positions of nodes in space, which users supply as the attributes x, y and z."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.viewer.user_attributes import UserAttribute

_AXES = ("x", "y", "z")
_ROUNDS = 8
_OFFSET = 0.3


def split_positions(
    attributes: Sequence[UserAttribute], subnets: Sequence[Subnet]
) -> tuple[list[UserAttribute], npt.NDArray[np.float64] | None]:
    """Separate positions in space from other attributes.

    A node without a position, as hosts often are, is placed next to its neighbours.

    Returns:
        The other attributes, and the positions: float64 [node, 3]; None without numeric x, y and z of nodes.
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
