# SPDX-License-Identifier: Apache-2.0
"""Operations of which less was seen than their calls asked for, in sentences and in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ibprof.profile.profile_data import Profile
from ibprof.profile.unaccounted import Unaccounted, describe_uncompared, find_unaccounted, sees_within_hosts
from ibprof.text.call_names import name_call
from ibprof.text.quantities import format_bytes

_LOADED = re.compile(r"(lib\w+) is loaded: ")
"""The beginning of a note on such a library, as the recorder writes it (recording/other_transports.c)."""

_NAMED = 6
"""Operations that the one line names."""


@dataclass(frozen=True, slots=True)
class _Sum:
    """An operation in all of its regions."""

    operation: str
    regions: tuple[str, ...]
    calls: int
    least_bytes: int
    seen_bytes: int
    on_host: bool


def describe_unaccounted(run: Profile) -> Iterator[str]:
    """Yield the operations that do not add up, a sentence each."""
    between = "ranks" if sees_within_hosts(run) else "hosts"
    loaded = list_other_transports(run)
    for each in _sum_by_operation(find_unaccounted(run)):
        where = f" (in {', '.join(each.regions)})" if len(run.regions) > 1 else ""
        calls = "call" if each.calls == 1 else "calls"
        yield (
            f"{name_call(each.operation)}: {each.calls:,} {calls} must send at least {format_bytes(each.least_bytes)} "
            f"between {between}, of which {format_bytes(each.seen_bytes)} were seen{where}; {_explain(each, loaded)}"
        )


def describe_no_comparison(run: Profile) -> Iterator[str]:
    """Yield why what calls asked for was not compared with what was seen, if so."""
    if len(run.demands.calls) and (why := describe_uncompared(run)):
        yield f"what calls asked for was not compared with what was seen: {why}"


def summarize_unaccounted(run: Profile) -> Iterator[str]:
    """Yield one line on all operations that do not add up, if there are any."""
    sums = _sum_by_operation(find_unaccounted(run))
    if not sums:
        return
    named = [
        f"{name_call(each.operation)} {format_bytes(each.seen_bytes)} of {format_bytes(each.least_bytes)}"
        for each in sums
    ]
    if len(named) > _NAMED:
        named[_NAMED:] = [f"{len(named) - _NAMED} more"]
    why = f"; {_explain(sums[0], list_other_transports(run))}" if len({each.on_host for each in sums}) == 1 else ""
    yield f"less was seen than calls must send at least: {', '.join(named)}{why}"


def _sum_by_operation(found: list[Unaccounted]) -> list[_Sum]:
    by_operation: dict[str, list[Unaccounted]] = {}
    for each in found:
        by_operation.setdefault(each.operation, []).append(each)
    return [
        _Sum(
            operation,
            tuple(each.region for each in parts),
            sum(each.calls for each in parts),
            sum(each.least_bytes for each in parts),
            sum(each.seen_bytes for each in parts),
            parts[0].on_host,
        )
        for operation, parts in by_operation.items()
    ]


def list_other_transports(run: Profile) -> list[str]:
    """Return the libraries of a run's processes that move data by other means than messages, by name."""
    notes = (note for rank in run.ranks for note in rank.notes)
    return sorted({match[1] for note in notes if (match := _LOADED.match(note))})


def _explain(operation: _Sum, loaded: list[str]) -> str:
    if operation.on_host:
        return "the rest stayed on hosts: MPI moved it through memory (as coll/sm does)"
    by_whom = f", perhaps {' or '.join(loaded)}" if loaded else ""
    return f"MPI sent the rest by a path that ibprof does not see{by_whom}"
