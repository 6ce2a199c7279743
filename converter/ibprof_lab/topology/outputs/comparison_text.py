# SPDX-License-Identifier: Apache-2.0
"""A comparison with a reference topology as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from ibprof_converter.outputs.slurm_topology import compress
from ibprof_lab.topology.reference.differences import REGULAR, Names, TopologyDifferences
from ibprof_lab.topology.reference.reference_comparison import ReferenceComparison

_MOST_SHOWN = 20
_MOST_NAMES = 200


def describe_comparison_lines(comparison: ReferenceComparison) -> Iterator[str]:
    """Yield the lines of a comparison: the verdict, each difference, and what is unknown."""
    found, reference = comparison.comparison, comparison.reference
    alike = f"; {100 * found.similarity:.1f}% alike" if found.kind == REGULAR else ""
    yield f"{len(found.hosts)} hosts compared with {reference.origin}, {found.kind}{alike}"
    yield f"{comparison.differences} differences" if comparison.differences else "no difference"
    if found.not_in_reference:
        yield f"not in the reference: {_names(found.not_in_reference)}"
    yield from _describe_cabling(found)
    for what, pairs in (("missing", found.missing), ("not in the reference", found.extra)):
        for a, b in pairs[:_MOST_SHOWN]:
            yield f"link {what}: {a} to {b}"
    for link in comparison.slow[:_MOST_SHOWN]:
        a, b = (reference.names[end] for end in reference.link[link.link].tolist())
        yield f"slow: {a} to {b}: {link.why}"
    lists = (found.misplaced, found.separated, found.missing, found.extra, comparison.slow)
    if any(len(each) > _MOST_SHOWN for each in lists):
        yield "and more: --json has all"
    if found.not_measured:
        yield f"note: not measured: {_names(found.not_measured)}"
    for switches in found.merged[:_MOST_SHOWN]:
        yield f"unknown: {_names(switches)}: by the delays their hosts are on one switch"
    for text in found.unknown:
        yield f"unknown: {text}"


def _describe_cabling(found: TopologyDifferences) -> Iterator[str]:
    for host in found.misplaced[:_MOST_SHOWN]:
        yield (
            f"wrong cable: {host.host} is measured with {_names(host.found_peers)} of {host.found_switch}; the "
            f"reference has it on {host.switch} with {_names(host.peers) or 'no other host'}"
        )
    for part in found.separated[:_MOST_SHOWN]:
        yield (
            f"separated: {_names(part.hosts)}, on {part.switch} by the reference, farther than "
            f"{_names(part.others)} there"
        )
    for switch in found.recabled[:_MOST_SHOWN]:
        yield (
            f"wrong cable: {switch.switch} with {_names(switch.hosts)} is measured nearest to "
            f"{_names(switch.found_near)}; by the reference it is to {_names(switch.near)}"
        )
    for group in found.regrouped[:_MOST_SHOWN]:
        yield (
            f"grouped differently: near to one another by the reference: {_names(group.expected) or 'no such group'}; "
            f"by the delays: {_names(group.found) or 'no such group'}"
        )


def _names(names: Names) -> str:
    return compress(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
