# SPDX-License-Identifier: Apache-2.0
"""Describe, in one sentence, how the most loaded links of two runs differ, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ibprof.text.quantities import format_bytes, format_seconds, name_call, printable
from ibprof_converter.analysis.run_facts import LoadedDirection, RunFacts

_SAME = 0.01
"""Two runs count as runs of one program if their bytes differ by at most this fraction.

Control messages, timing and adaptive algorithms cause such differences.
"""

_AS_LONG = 0.005
"""Two times count as equal if they differ by at most this fraction."""

_CABLING = 0.1
"""Two dumps show different fabrics if the number of links differs by more than this fraction.

If the difference is smaller, the dumps show one fabric, in which cables were added or are down.
"""

_LISTED = 5


class ChangeKind(Enum):
    """Kinds of differences between two runs that change link loads."""

    NOTHING = "nothing"
    PLACEMENT = "placement"
    PROGRAM = "program"
    RANKS = "ranks"
    ROUTES = "routes"
    SEVERAL = "several"
    UNKNOWN = "unknown"
    NOT_COMPARABLE = "not-comparable"


@dataclass(frozen=True, slots=True)
class RunChange:
    """The change between two runs, and its reason.

    Attributes:
        kind: the difference that changed the loads; `SEVERAL` if several differences cannot be separated.
        text: the sentence on the change.
        ratio: time at line rate of the most loaded link, second run / first run; if a speed is unknown, ratio of bytes.
            None if a run loads no link.
        link: the most loaded link direction of the slower run; None if links are unknown.
        most_loaded: the most loaded link directions, of the first run and of the second run.
    """

    kind: ChangeKind
    text: str
    ratio: float | None
    link: str | None
    most_loaded: tuple[tuple[LoadedDirection, ...], tuple[LoadedDirection, ...]]

    def as_json(self) -> dict[str, object]:
        """Return the change as plain values."""
        of_runs = [[each.as_json() for each in run] for run in self.most_loaded]
        return {
            "kind": self.kind.value,
            "text": self.text,
            "ratio": self.ratio,
            "link": self.link,
            "most_loaded": dict(zip("ab", of_runs, strict=True)),
        }


@dataclass(frozen=True, slots=True)
class _Reason:
    """A difference between two runs, as the words after `because`."""

    kind: ChangeKind
    text: str


def explain_change(a: RunFacts, b: RunFacts, names: tuple[str, str] = ("A", "B")) -> RunChange:
    """Return the change from one run to another, and its reason.

    Args:
        names: names of the runs in the sentence.
    """
    names = printable(names[0]), printable(names[1])
    most_loaded = ((a.most_loaded or ())[:_LISTED], (b.most_loaded or ())[:_LISTED])
    slower, ratio = _find_slower(a, b)
    kind, why = _find_reasons(a, b, slower, names)
    if kind is ChangeKind.NOT_COMPARABLE:
        return RunChange(kind, f"{names[0]} and {names[1]} cannot be compared by link: {why}.", None, None, most_loaded)
    what = _describe_loads(a, b, slower, ratio, names)
    is_same = ratio is None or abs(ratio - 1) < _AS_LONG
    if kind is ChangeKind.NOTHING:
        text = f"Nothing changed: {why}" + (f"; the most loaded is {_name(slower)}" if slower else "")
    elif kind is ChangeKind.UNKNOWN:
        text = f"{what}; the reason is not known: {why}"
    else:
        text = f"{what}, {'although' if is_same and slower else 'because'} {why}"
    if slower and slower.call:
        text += f"; {printable(slower.call)} sends most of the bytes on this link"
    return RunChange(kind, f"{text}.", ratio, printable(slower.name) if slower else None, most_loaded)


def _find_slower(a: RunFacts, b: RunFacts) -> tuple[LoadedDirection | None, float | None]:
    """Return the slower run's most loaded link direction, and `RunChange.ratio`; None for each that is unknown."""
    if not _have_links(a, b):
        return None, None
    first, second = a.busiest, b.busiest
    if first is None or second is None:
        return first or second, None
    before, after = (first.seconds, second.seconds) if _have_speeds(first, second) else (first.bytes, second.bytes)
    ratio = (after or 0) / (before or 1)
    return (second if ratio >= 1 else first), ratio


def _have_speeds(first: LoadedDirection, second: LoadedDirection) -> bool:
    return bool(first.seconds and second.seconds)


def _describe_bytes(a: RunFacts, b: RunFacts, names: tuple[str, str]) -> str:
    """Return a sentence on the sent bytes of two runs whose links cannot be compared."""
    if _have_links(a, b):
        return "No link carries bytes in either run"
    if a.bytes is None or b.bytes is None:
        return f"The links of {names[0]} and {names[1]} are not known"
    if a.bytes == b.bytes:
        return f"{names[1]} sends {format_bytes(b.bytes)}, as {names[0]} does"
    return f"{names[1]} sends {format_bytes(b.bytes)} instead of {format_bytes(a.bytes)}"


def _describe_loads(
    a: RunFacts, b: RunFacts, slower: LoadedDirection | None, ratio: float | None, names: tuple[str, str]
) -> str:
    """Return text that compares the runs' most loaded links, and the bytes on the slower run's link."""
    if slower is None:
        return _describe_bytes(a, b, names)
    first, second = a.busiest, b.busiest
    if first is None or second is None or ratio is None:
        run, idle = names if first else reversed(names)
        time = None if slower.seconds is None else f"{format_seconds(slower.seconds)} at line rate"
        needs = time or format_bytes(slower.bytes)
        return f"{run} needs {needs} on its most loaded link, {_name(slower)}; {idle} loads no link"
    said = f"{names[1]} {_describe_ratio(first, second, ratio, names[0])}"
    before, after = (each.carried_on(slower) for each in (a, b))
    if before is None or after is None:
        loads = f"{_name(slower)} carries {format_bytes(slower.bytes)} in {names[slower is second]}"
    elif before == after:
        loads = f"{_name(slower)} carries {format_bytes(after)} in both"
    else:
        loads = f"{_name(slower)} carries {format_bytes(after)} instead of {format_bytes(before)}"
    other, run = (first, names[0]) if slower is second else (second, names[1])
    if other.key != slower.key:
        loads += f" ({run}'s most loaded link is {_name(other)} with {format_bytes(other.bytes)})"
    return f"{said}: {loads}"


def _describe_ratio(first: LoadedDirection, second: LoadedDirection, ratio: float, name: str) -> str:
    has_speeds = _have_speeds(first, second)
    at_rate = " at line rate" if has_speeds else ""
    amounts = [
        format_seconds(each.seconds or 0) if has_speeds else format_bytes(each.bytes) for each in (first, second)
    ]
    if abs(ratio - 1) < _AS_LONG:
        much, amount = ("as long as" if has_speeds else "as many bytes as"), amounts[1]
    else:
        times = f"{ratio:.2g}" if ratio < 100 else f"{ratio:,.0f}"
        much = f"{times} times {'as long as' if has_speeds else 'the bytes of'}"
        amount = f"{amounts[1]} instead of {amounts[0]}"
    return f"{'needs' if has_speeds else 'has'} {much} {name} on its most loaded link ({amount}{at_rate})"


def _name(link: LoadedDirection) -> str:
    return printable(link.name)


def _find_reasons(
    a: RunFacts, b: RunFacts, slower: LoadedDirection | None, names: tuple[str, str]
) -> tuple[ChangeKind, str]:
    """Return the kind of change, and its reason as the words after `because` or a colon."""
    if obstacle := _find_obstacle(a, b, names):
        return obstacle
    placement = _compare_placement(a, b, slower)
    # With ranks on other hosts, the calls on one link show nothing about the program.
    program = _compare_program(a, b, None if placement else slower)
    known = [each for each in (_compare_fabrics(a, b), placement, program) if isinstance(each, _Reason)]
    if placement is None or program is None:
        parts = {"hosts of the ranks": placement, "calls of the program": program}
        lacking = " and ".join(f"the {what}" for what, found in parts.items() if found is None)
        found = f"{' and '.join(each.text for each in known)}, but " if known else ""
        return ChangeKind.UNKNOWN, f"{found}{lacking} are unknown in at least one of the runs"
    if len(known) > 1 and a.pairs and b.pairs and a.pairs.differ(b.pairs) <= _SAME * max(a.bytes or 0, b.bytes or 0):
        # If another reason is known, and the ranks' bytes hardly changed, name no change of the program.
        known = [each for each in known if each is not program]
    return _join_reasons(a, b, known)


def _join_reasons(a: RunFacts, b: RunFacts, known: Sequence[_Reason]) -> tuple[ChangeKind, str]:
    if not known:
        same = "the ranks send the same bytes from the same hosts"
        if _have_links(a, b) and _differ_on_links(a, b):
            return ChangeKind.ROUTES, f"the routes differ: {same}"
        return ChangeKind.NOTHING, same + (" over the same links" if a.most_loaded and b.most_loaded else "")
    hedge = "" if _same_fabric(a, b) or not _have_links(a, b) else "; the forwarding tables may differ too"
    if len(known) == 1:
        return known[0].kind, known[0].text + hedge
    text = " and ".join(each.text for each in known)
    return ChangeKind.SEVERAL, f"{text}; how much each reason adds to the change is not known{hedge}"


def _find_obstacle(a: RunFacts, b: RunFacts, names: tuple[str, str]) -> tuple[ChangeKind, str] | None:
    """Return a difference that rules out all other reasons, such as another fabric; None without such a difference."""
    if a.links and b.links and abs(a.links - b.links) > _CABLING * max(a.links, b.links):
        return ChangeKind.NOT_COMPARABLE, f"they are on different fabrics, of {a.links:,} and {b.links:,} links"
    knows_all = a.knows_all_links and b.knows_all_links and bool(a.carried) and bool(b.carried)
    if knows_all and a.rank_host is None and not {*a.carried} & {*b.carried} and not _same_fabric(a, b):
        return ChangeKind.NOT_COMPARABLE, "no link carries bytes in both runs: the runs seem to be on different fabrics"
    if a.load_basis != b.load_basis:
        return ChangeKind.UNKNOWN, (
            f"link loads are of kind `{a.load_basis}` in {names[0]} and of kind `{b.load_basis}` in {names[1]}"
        )
    if a.ranks is not None and b.ranks is not None and a.ranks != b.ranks:
        return ChangeKind.RANKS, _describe_ranks(a, b, (a.ranks, b.ranks))
    return None


def _compare_fabrics(a: RunFacts, b: RunFacts) -> _Reason | None:
    if a.links is None or b.links is None or a.links == b.links:
        return None
    return _Reason(ChangeKind.ROUTES, f"the fabric has {b.links:,} links instead of {a.links:,}")


def _differ_on_links(a: RunFacts, b: RunFacts) -> bool:
    """Return true if the runs have different bytes on a link direction, or on their most loaded link directions."""
    keys = {*a.carried, *b.carried}
    if not (a.knows_all_links and b.knows_all_links):
        keys = {*a.carried} & {*b.carried}
    bytes_of_most = [each.busiest.bytes if each.busiest else 0 for each in (a, b)]
    return any(a.carried.get(key, 0) != b.carried.get(key, 0) for key in keys) or bytes_of_most[0] != bytes_of_most[1]


def _have_links(a: RunFacts, b: RunFacts) -> bool:
    return a.most_loaded is not None and b.most_loaded is not None


def _same_fabric(a: RunFacts, b: RunFacts) -> bool:
    return a.fabric is not None and a.fabric == b.fabric


def _describe_ranks(a: RunFacts, b: RunFacts, ranks: tuple[int, int]) -> str:
    text = f"it has {ranks[1]:,} ranks instead of {ranks[0]:,}"
    if a.bytes is not None and b.bytes is not None:
        before, after = format_bytes(a.bytes / ranks[0]), format_bytes(b.bytes / ranks[1])
        text += f"; a rank sends {after} on average" + (f" instead of {before}" if before != after else " in both")
    return f"{text}; whether the ranks' hosts also add to the change is not known"


def _compare_placement(a: RunFacts, b: RunFacts, slower: LoadedDirection | None) -> _Reason | bool | None:
    """Return the difference of the ranks' hosts; False without a difference, None if unknown."""
    if a.rank_host is None or b.rank_host is None or None in a.rank_host or None in b.rank_host:
        return None
    moved = sum(one != other for one, other in zip(a.rank_host, b.rank_host, strict=True))
    if not moved:
        return False
    every = f"all {moved:,}" if moved == len(a.rank_host) else f"{moved:,} of {len(a.rank_host):,}"
    text = f"{every} ranks {'is on another host' if moved == 1 else 'are on other hosts'}"
    return _Reason(ChangeKind.PLACEMENT, text + _describe_ranks_at(a, b, slower))


def _describe_ranks_at(a: RunFacts, b: RunFacts, slower: LoadedDirection | None) -> str:
    """Return text on an end of the slower run's link at which the number of ranks changed; empty without a change."""
    for node in (slower.sender, slower.receiver) if slower else ():
        before, after = (each.ranks_at.get(node, 0) for each in (a, b))
        if before != after:
            return f" (ranks at {printable(node)}: {after:,} instead of {before:,})"
    return ""


def _compare_program(a: RunFacts, b: RunFacts, slower: LoadedDirection | None) -> _Reason | bool | None:
    """Return the difference of the ranks' sent bytes; False without a difference, None if unknown."""
    if a.bytes is None or b.bytes is None or a.pairs is None or b.pairs is None:
        return None
    differing = a.pairs.differ(b.pairs)
    if a.operations == b.operations and not differing and a.bytes == b.bytes:
        return False
    on_link = [each.operations_on(slower) for each in (a, b)] if slower else [None, None]
    text = (
        _describe_operation(on_link[0], on_link[1], " over it")
        or _describe_operation(a.operations, b.operations)
        or (f"the ranks send {format_bytes(b.bytes)} instead of {format_bytes(a.bytes)}" if a.bytes != b.bytes else "")
        or f"{format_bytes(differing / 2)} of {format_bytes(b.bytes)} are sent between other pairs of ranks"
    )
    return _Reason(ChangeKind.PROGRAM, text)


def _describe_operation(a: Mapping[str, int] | None, b: Mapping[str, int] | None, where: str = "") -> str:
    """Return text on the operation whose bytes changed most; empty if operations are unknown or no bytes changed."""
    if a is None or b is None:
        return ""
    changes = {name: b.get(name, 0) - a.get(name, 0) for name in (*a, *b)}
    most = max(changes, key=lambda name: abs(changes[name]), default="")
    if not most or not changes[most]:
        return ""
    before, after = (format_bytes(each.get(most, 0)) for each in (a, b))
    if before == after:
        more = "more" if changes[most] > 0 else "less"
        return f"{name_call(most)} sends {format_bytes(abs(changes[most]))} {more}{where}"
    return f"{name_call(most)} sends {after} instead of {before}{where}"
