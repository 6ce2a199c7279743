# SPDX-License-Identifier: Apache-2.0
"""Links that delays show to be slower than links like them, or than their speed says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from ibprof_converter.topology.reference.link_fit import find_slow_by_fit
from ibprof_converter.topology.reference.reference_paths import ReferencePaths
from ibprof_converter.topology.reference.reference_topology import Reference

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LEAST_DELAY = 0.1
"""By which share longer than others a delay must be that a link is blamed for."""
LEAST_SPEED = 0.5
"""Share of its speed that a link should reach."""

_MOST_FOUND = 100
_MOST_WAYS = 0.5
_ANYWHERE, _SOMEWHERE = 3.0, 5.0
"""Standard errors by which ways over a slow link exceed their kind: in each kind that tells, and in one of them."""
_SCALED = 1.4826
_FAR_SLOWER = 2.5
"""Twice as slow is what a switch with two links looks like that a plan leaves out."""


@dataclass(frozen=True, slots=True)
class SlowLink:
    """A link that is slower than it should be.

    Attributes:
        link: of the reference.
        why: a sentence.
        ratio: how many times slower.
        excess_seconds: what it adds to a delay beyond what links like it add, of several in a row a share of it; 0
            where its throughput tells on it.
        bytes_per_second: throughput that some pair reached over it; nan where its delay tells on it.
    """

    link: int
    why: str
    ratio: float
    excess_seconds: float = 0.0
    bytes_per_second: float = float("nan")


def find_slow_links(
    reference: Reference, ways: ReferencePaths, delays: Floats, least: float = LEAST_DELAY
) -> list[SlowLink]:
    """Find links over which messages take longer than over ways of the same kind.

    Of some hundred links, where ways are certain, each has what it adds from a fit to all ways (`link_fit`). Then, what
    that cannot tell:

    Ways are of one kind when they have as many links of each speed, between hosts and switches or switches. A link's
    excess is the least, over the kinds of its ways, of the median by which these exceed all ways of their kind: where
    the uplink of a switch is slow, ways among its hosts are not, so that no host's link is blamed. Kinds of which most
    ways have the link tell nothing of it. The worst link is taken, its excess subtracted, and so on. A reference that
    has latencies itself, such as an earlier inference, is taken at its word instead.

    Args:
        reference: the links.
        ways: of the pairs.
        delays: float64 [pair], seconds; nan for those that do not count.
        least: share of a delay that counts.
    """
    there = np.isfinite(delays) & (delays > 0) & (ways.hops > 0)
    told = bool(np.isfinite(reference.latency_seconds).all())
    is_unique = reference.routes is not None or len(reference.link) < reference.vertices
    fitted = {} if told or not is_unique else find_slow_by_fit(reference, ways, delays, there, least)
    excess = np.zeros(len(reference.link))
    excess[list(fitted)] = [seconds for seconds, _ in fitted.values()]
    delays = delays - np.bincount(ways.pair, excess[ways.link], len(delays))
    slow = [
        SlowLink(
            each,
            f"messages take {seconds * 1e6:.3g} us longer over it than over links like it, {ratio:.2f} times as long",
            ratio,
            seconds,
        )
        for each, (seconds, ratio) in fitted.items()
    ]
    return slow + [each for each in _find_by_kinds(reference, ways, delays, least, told) if each.link not in fitted]


def _find_by_kinds(
    reference: Reference, ways: ReferencePaths, delays: Floats, least: float, told: bool
) -> list[SlowLink]:
    """Find slow links as the docstring above has it, or by the reference's own latencies."""
    there = np.isfinite(delays) & (delays > 0) & (ways.hops > 0)
    entry = there[ways.pair]
    link, pair = ways.link[entry], ways.pair[entry]
    if not len(link):
        return []
    kind = _tell_kinds(reference, ways)
    usual = _add_up(reference, ways, delays, there) if told else _medians(np.where(there, kind, -1), delays)
    rest = np.where(there, delays - usual, 0.0)
    scatter = _SCALED * float(np.median(np.abs(rest[there] / usual[there])))
    kinds = int(kind.max()) + 1
    stratum, of_entry = np.unique(link * kinds + kind[pair], return_inverse=True)
    link_of, kind_of = np.divmod(stratum, kinds)
    count = np.bincount(of_entry)
    delay = np.zeros(len(stratum))
    delay[of_entry] = usual[pair]
    # A median of few errors may be far off.
    error = scatter * delay / np.sqrt(count)
    tells = told | (count <= _MOST_WAYS * np.bincount(kind[there], minlength=kinds)[kind_of])
    found: dict[int, float] = {}
    share: dict[int, float] = {}
    for _ in range(_MOST_FOUND):
        excess = _group_medians(of_entry, rest[pair], len(stratum))
        evidence, least_excess, clearest = (np.full(len(reference.link), start) for start in (inf, inf, -inf))
        np.minimum.at(evidence, link_of[tells], (excess - _ANYWHERE * error)[tells])
        np.minimum.at(least_excess, link_of[tells], excess[tells])
        np.maximum.at(clearest, link_of[tells], (excess - least * delay - _SOMEWHERE * error)[tells])
        blamed = np.isfinite(evidence) & (evidence > 0) & (clearest > 0)
        if not blamed.any():
            break
        worst = int(np.where(blamed, least_excess, 0.0).argmax())
        own = tells & (link_of == worst)
        found[worst] = found.get(worst, 0.0) + float(least_excess[worst])
        share[worst] = max(share.get(worst, 0.0), float((excess[own] / delay[own]).max()))
        rest[np.unique(pair[own[of_entry]])] -= float(least_excess[worst])
    like = "the reference says" if told else "over ways of its kind"
    slow = [
        SlowLink(
            each,
            f"messages over it take {seconds * 1e6:.3g} us longer than {like}, {1 + share[each]:.2f} times as long",
            1 + share[each],
            seconds,
        )
        for each, seconds in found.items()
    ]
    return slow if told else [*slow, *_without_peers(ways, delays, there, set(found))]


def _add_up(reference: Reference, ways: ReferencePaths, delays: Floats, there: npt.NDArray[np.bool_]) -> Floats:
    """Give what the reference's own latencies come to, and what a message costs beside them."""
    sums = np.bincount(ways.pair, reference.latency_seconds[ways.link], len(delays))
    usual: Floats = np.maximum(sums + max(float(np.median((delays - sums)[there])), 0.0), 1e-12)
    return usual


def _tell_kinds(reference: Reference, ways: ReferencePaths) -> Integers:
    """Number the kinds of ways: which links they have, by speed and by what these join."""
    ends = reference.is_end[reference.link].sum(axis=1)
    columns = np.stack([ends, np.nan_to_num(reference.gbps)], axis=1)
    _, like = np.unique(columns, axis=0, return_inverse=True)
    weight = np.random.default_rng(1).integers(1, 1 << 40, like.max() + 1)
    total = np.zeros(len(ways.offset) - 1, np.int64)
    np.add.at(total, ways.pair, weight[like.ravel()][ways.link])
    return np.unique(total, return_inverse=True)[1].ravel().astype(np.int64)


def _medians(group: Integers, values: Floats) -> Floats:
    """Give each value the median of its group."""
    label, of = np.unique(group, return_inverse=True)
    medians: Floats = _group_medians(of, values, len(label))[of]
    return medians


def _group_medians(group: Integers, values: Floats, groups: int) -> Floats:
    order = np.lexsort((values, group))
    count = np.bincount(group, minlength=groups)
    first = np.cumsum(count) - count
    ordered = values[order]
    medians: Floats = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
    return medians


def _without_peers(
    ways: ReferencePaths, delays: Floats, there: npt.NDArray[np.bool_], known: set[int]
) -> Iterator[SlowLink]:
    """Find links that have none like them, since all ways of that many hops have them, and no shorter way has.

    What they add by hop is held against what other hops cost; in those of the shortest ways, what a message costs once
    is counted in.
    """
    hops = np.unique(ways.hops[there])
    usual = np.array([np.median(delays[there & (ways.hops == each)]) for each in hops])
    by_hop = np.diff(usual, prepend=0.0) / np.diff(hops, prepend=0)
    for tier in range(1, len(hops)):
        others = np.delete(by_hop, tier).max()
        if by_hop[tier] <= _FAR_SLOWER * others:
            continue
        beyond = there & (ways.hops == hops[tier])
        link, count = np.unique(ways.link[beyond[ways.pair]], return_counts=True)
        shorter = np.unique(ways.link[(there & (ways.hops < hops[tier]))[ways.pair]])
        in_a_row = np.setdiff1d(link[count == beyond.sum()], shorter)
        for each in in_a_row.tolist():
            if each not in known:
                excess = float(usual[tier] - usual[tier - 1] - others * (hops[tier] - hops[tier - 1])) / len(in_a_row)
                why = (
                    f"messages over it take {usual[tier] * 1e6:.3g} us, and those that do not pass it "
                    f"{usual[tier - 1] * 1e6:.3g} us in whole"
                )
                yield SlowLink(each, why, float(by_hop[tier] / others), excess)


def find_slow_by_speed(
    reference: Reference, ways: ReferencePaths, bytes_per_second: Floats, least: float = LEAST_SPEED
) -> list[SlowLink]:
    """Find links that no pair reaches the speed of.

    A link is as fast as the best pairs over it at least. What one pair reaches where all is well depends on the MPI
    too, so that a link must stay behind what others of the fabric reach of their speed as well.

    Args:
        reference: with speeds.
        ways: of the pairs.
        bytes_per_second: float64 [pair], throughput.
        least: share of its speed that a link should reach.
    """
    best = np.zeros(len(reference.link))
    reached = np.where(np.isfinite(bytes_per_second), bytes_per_second, 0.0)
    np.maximum.at(best, ways.link, reached[ways.pair])
    passed = best > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(passed, best * 8 / (reference.gbps * 1e9), np.nan)
    if not np.isfinite(share).any():
        return []
    usual = float(np.nanmedian(share))
    bound = least * min(usual, 1.0) if usual < least else least
    return [
        SlowLink(
            link,
            f"no pair reaches more than {best[link] * 8e-9:.3g} Gb/s over it, {share[link]:.0%} of its "
            f"{reference.gbps[link]:g} Gb/s",
            1 / float(share[link]),
            bytes_per_second=float(best[link]),
        )
        for link in np.flatnonzero(share < bound).tolist()
    ]
