# SPDX-License-Identifier: Apache-2.0
"""Direct links that were looked for, as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ibprof.text.quantities import count_of
from ibprof_lab.topology.model.host_attachment import attach_hosts
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.throughput.direct_links import BlockedRates, DirectLinkResults, Finding

_WORDS = {
    Finding.DIRECT: "a direct link",
    Finding.NONE: "no direct link",
    Finding.UNKNOWN: "cannot tell, the link may carry both",
}


def describe_direct_links(topology: InferredTopology, found: DirectLinkResults) -> Iterator[str]:
    """Yield a line for each pair, direct links first, then how many pairs were left out."""
    order, names = list(Finding), _name_switches(topology)
    for each in sorted(found.rates, key=lambda each: order.index(each.finding)):
        row = _row(topology, names, each)
        others = f"{count_of(row['pairs'], 'pair')} between {' and '.join(row['blocked'])}"
        yield (
            f"{' to '.join(row['hosts'])}: {_WORDS[each.finding]}; {row['gbps']:.3g} Gb/s alone, "
            f"{row['gbps_blocked']:.3g} while {others} send ({row['others_gbps']:.3g} Gb/s alone, "
            f"{row['others_gbps_blocked']:.3g} then)"
        )
    if found.left_out:
        yield f"not tried: {found.left_out} pairs without a sure path of several links that other hosts can fill"


def list_direct_links(topology: InferredTopology, found: DirectLinkResults) -> dict[str, Any]:
    """Return what was found as JSON: `direct_links[]`, and `not_tried`, the number of pairs."""
    names = _name_switches(topology)
    return {"direct_links": [_row(topology, names, each) for each in found.rates], "not_tried": found.left_out}


def _name_switches(topology: InferredTopology) -> list[str]:
    """Return the names of all switches; of a host's own switch, the host's."""
    return [topology.names[vertex] for vertex in attach_hosts(topology).vertices()]


def _row(topology: InferredTopology, names: Sequence[str], each: BlockedRates) -> dict[str, Any]:
    own = float(each.together.gbps[0])
    return {
        "hosts": [topology.hosts[host] for host in each.path.hosts],
        "finding": each.finding.value,
        "path": [names[switch] for switch in each.path.switches],
        "blocked": [names[switch] for switch in each.path.link],
        "pairs": len(each.others.gbps),
        "gbps": each.alone.total,
        "gbps_blocked": own,
        "others_gbps": each.others.total,
        "others_gbps_blocked": each.together.total - own,
    }
