# SPDX-License-Identifier: Apache-2.0
"""Rails of a recorded run other than the one that is looked at."""

from __future__ import annotations

import numpy as np

from ibprof.native.kernel_library import sum_exactly
from ibprof.profile.port_sums import PortIndex, describe_unmeasured
from ibprof.profile.profile_data import Profile
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.traffic.rank_placement import guid_number, lids_by_port_guid

_WHOLE = 0.99
"""Part of the bytes on one rail that is as good as all of them."""


def describe_other_rails(run: Profile, fabric: Fabric) -> str | None:
    """Return what hosts of a run sent, or may have sent, over rails other than a fabric's; None where nothing.

    By the work requests where they are measured; otherwise by active ports that the fabric lacks.
    """
    here = lids_by_port_guid([fabric])
    if describe_unmeasured(run) is None:
        index = PortIndex(run)
        is_here = np.array(
            [any(guid_number(end.port.port_guid) in here for end in index.ends(pair) if end.port) for pair in run.pairs]
        )
        transfers = run.transfers
        part = sum_exactly(transfers.bytes[is_here[transfers.pair]]) / max(sum_exactly(transfers.bytes), 1)
        if not 0 < part < _WHOLE:
            return None
        return f"{part:.0%} of its bytes took this rail, as measured; all are simulated on it, which takes longer"
    used = {rank.host for rank in run.ranks}
    lacking = 0
    for number, host in enumerate(run.hosts):
        active = [port for port in host.ports if port.is_active and port.lid and number in used]
        found = [guid_number(port.port_guid) in here for port in active]
        lacking += any(found) and not all(found)
    if not lacking:
        return None
    hosts = "1 host has an active port" if lacking == 1 else f"{lacking} hosts have active ports"
    return (
        f"{hosts} on other rails; all of its bytes are simulated on this one, which takes longer if others shared them"
    )
