# SPDX-License-Identifier: Apache-2.0
"""The section of a report on its coverage: what was not seen, what is modelled, which operations do not add up."""

from __future__ import annotations

from collections.abc import Sequence

from ibprof.profile.gaps import format_names
from ibprof.profile.unaccounted import Unaccounted
from ibprof.text.call_names import name_call
from ibprof.text.quantities import count_of
from ibprof_converter.hotspots.coverage import Coverage
from ibprof_converter.reports.report_sections import Column, Section, ValueKind, limit_table
from ibprof_converter.traffic.adapter_policies import describe_nic


def describe_coverage(coverage: Coverage) -> Section:
    """Say what the rest of a report rests on."""
    sentences = [("traffic", coverage.origin)]
    if coverage.world_size is not None:
        hosts = f"on {count_of(len(coverage.hosts), 'host')}: {format_names(coverage.hosts, 8)}"
        sentences.append(("ranks recorded", f"{coverage.ranks_recorded} of {coverage.world_size}, {hosts}"))
    if coverage.rails is not None:
        sentences.append(("rails", coverage.rails))
    if coverage.nic is not None:
        sentences.append(("nic", describe_nic(coverage.nic)))
    if coverage.routes is not None:
        sentences.append(("routes", coverage.routes))
    for label, told in (
        ("not seen", coverage.not_seen),
        ("modelled", coverage.modelled),
        ("note", coverage.notes),
    ):
        sentences += [(label, sentence) for sentence in told]
    if coverage.world_size is not None and not coverage.not_seen:
        sentences.append(("not seen", "nothing that ibprof knows of"))
    return Section("seen", "Coverage", sentences=tuple(sentences))


def list_unaccounted(unaccounted: Sequence[Unaccounted]) -> Section:
    """List the operations of which less was seen than their calls must send."""
    columns = (
        Column("operation", "operation"),
        Column("region", "region"),
        Column("calls", "calls", ValueKind.COUNT),
        Column("least_bytes", "must send at least", ValueKind.BYTES),
        Column("seen_bytes", "seen", ValueKind.BYTES),
        Column("", "the rest"),
    )
    rows = [
        (
            *(name_call(each.operation), each.region, each.calls, each.least_bytes, each.seen_bytes),
            _place_rest(each.on_host),
        )
        for each in unaccounted
    ]
    table = limit_table("coverage.unaccounted", columns, rows)
    return Section("unaccounted", "Operations of which bytes are missing", tables=(table,))


def _place_rest(on_host: bool) -> str:
    return "stayed on hosts" if on_host else "by a path that ibprof does not see"
