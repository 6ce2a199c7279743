# SPDX-License-Identifier: Apache-2.0
"""The data rate that is usual between two levels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric


def find_usual_speeds(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Return the commonest speed among the peers of each link: those between the same two levels.

    Returns:
        float64 [link], Gb/s; a link's own speed where no speed is that of most of its peers.
    """
    pair = np.sort(level[fabric.link_node], axis=1)
    levels = pair[:, 0].astype(np.int64) * (int(level.max(initial=0)) + 1) + pair[:, 1]
    usual = fabric.link_gbps.copy()
    for kind in np.unique(levels):
        members = np.flatnonzero((levels == kind) & ~np.isnan(fabric.link_gbps))
        speeds, counts = np.unique(fabric.link_gbps[members], return_counts=True)
        # Half of the links of one speed are no fault of the other half.
        if len(speeds) and 2 * counts.max() > len(members):
            usual[members] = speeds[counts.argmax()]
    return usual
