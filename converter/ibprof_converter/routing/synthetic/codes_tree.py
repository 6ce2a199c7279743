# SPDX-License-Identifier: Apache-2.0
"""The fat-tree of three levels that the simulator CODES builds, with d-mod-k routes.

Leaf switches and as many switches of the second level form pods, in which all are linked. A second-level switch has one
link to each of half its radix different tops, in place of several parallel links to a few.

Source: CODES (github.com/codes-org/codes), model-net's fat-tree since 2016: pods, link repetitions.
"""

from __future__ import annotations

import numpy as np

from ibprof.errors import UsageError
from ibprof_converter.routing.synthetic.build import SyntheticPlan, SyntheticSubnet, build


def generate_codes_tree(name: str, leaves: int, radix: int, gbps: float = 100.0, rail: int = 0) -> SyntheticSubnet:
    """Return CODES' fat-tree.

    A leaf has hosts on its ports from 1 on, then the second level of its pod. A second-level switch has leaves first,
    then tops. A top has the second level of the first pod first, and so on.

    Args:
        name: as the user wrote it.
        leaves: number of leaf switches, a multiple of half the radix.
        radix: ports of a switch.
        gbps: of each link, one direction.
        rail: number of the rail.

    Raises:
        UsageError: the numbers describe no such tree.
    """
    half = radix // 2
    if radix < 2 or radix % 2 or leaves < half or leaves % half or leaves // half > radix:
        raise UsageError(f"{name}: expected an even radix, and up to that number of pods of radix / 2 leaves each")
    pods = leaves // half
    repetitions = radix // pods
    while half % repetitions:
        repetitions -= 1
    groups = half // repetitions
    second, top = leaves, 2 * leaves
    index = np.arange(leaves)
    pod, within = index // half, index % half
    each = np.arange(half)
    below = np.stack(np.broadcast_arrays(
        index[:, None], half + 1 + each, second + pod[:, None] * half + each, within[:, None] + 1
    ), axis=-1)  # fmt: skip
    above = np.stack(np.broadcast_arrays(
        second + index[:, None], half + 1 + each,
        top + within[:, None] // repetitions * half + each,
        pod[:, None] * repetitions + within[:, None] % repetitions + 1,
    ), axis=-1)  # fmt: skip
    host = np.arange(leaves * half)
    home, rank = host // half, host % half
    up, spread = half + 1 + rank, half + 1 + home % half
    egress = np.empty((top + groups * half, len(host)), np.int64)
    egress[:second] = np.where(index[:, None] == home, rank + 1, up)
    egress[second:top] = np.where(pod[:, None] == home // half, home % half + 1, spread)
    egress[top:] = home // half * repetitions + rank % repetitions + 1
    names = [f"leaf{each + 1}" for each in range(leaves)]
    names += [f"pod{each // half + 1}-{each % half + 1}" for each in range(leaves)]
    names += [f"top{each + 1}" for each in range(groups * half)]
    cables = np.concatenate([below.reshape(-1, 4), above.reshape(-1, 4)])
    return build(SyntheticPlan(name, names, home, rank + 1, cables, egress.astype(np.uint8)), gbps, rail)
