# SPDX-License-Identifier: Apache-2.0
"""Check that the rails of one machine are alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ibprof_converter.checks.fabric_findings import FabricFinding, FindingKind
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.traffic.hosts import Hosts
from ibprof_converter.traffic.traffic_data import NO_LID


def check_rails_alike(fabrics: Sequence[Fabric], hosts: Hosts) -> Iterator[FabricFinding]:
    """Find hosts that some rails lack, and rails that differ in size."""
    if len(fabrics) < 2:
        return
    for rail in range(len(fabrics)):
        missing = np.flatnonzero(hosts.lid[:, rail] == NO_LID)
        if len(missing):
            what = f"{len(missing)} of {len(hosts.name)} hosts are not on rail {rail}"
            yield FabricFinding(
                FindingKind.MISSING_HOST, rail, what, tuple(hosts.name[host] for host in missing.tolist())
            )
    for what, sizes in (
        ("switches", [int((fabric.node_kind == NodeKind.SWITCH).sum()) for fabric in fabrics]),
        ("links between switches", [_count_switch_links(fabric) for fabric in fabrics]),
        ("hosts", [int((hosts.lid[:, rail] != NO_LID).sum()) for rail in range(len(fabrics))]),
    ):
        if len(set(sizes)) > 1:
            smallest = int(np.argmin(sizes))
            words = f"the rails have {', '.join(map(str, sizes))} {what}"
            yield FabricFinding(FindingKind.RAILS_DIFFER, smallest, words, (f"rail {smallest}",))


def _count_switch_links(fabric: Fabric) -> int:
    return int((fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1).sum())
