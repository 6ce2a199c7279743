# SPDX-License-Identifier: Apache-2.0
"""Slow links: links with a longer delay than similar links, or with a throughput below their speed.

One method compares the median delay of the paths over a link with the median delay of all similar paths. This method
fails if at least half of the similar paths use the link, such as an uplink of one of four leaf switches. The other
method fits the latencies of all links to all delays. Errors are relative, and Huber's weights limit the influence of
grossly wrong delays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt
from scipy.ndimage import median
from scipy.sparse import csr_matrix, diags
from scipy.sparse.csgraph import dijkstra

from ibprof_lab.lab_choices import LEAST_DELAY, LEAST_SPEED
from ibprof_lab.topology.infer.candidate import NORMAL
from ibprof_lab.topology.reference.reference_topology import Reference, ReferencePaths

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_MOST_FOUND = 100
_MOST_PATHS = 0.5
_ANYWHERE, _SOMEWHERE = 3.0, 5.0
"""A link is slow if it passes two tests. In each compared kind of paths (see `find_slow_links`), the link's excess is
above `_ANYWHERE` standard errors. In at least one kind of paths, the excess is above `least` times the expected delay,
plus `_SOMEWHERE` standard errors."""
_FAR_SLOWER = 2.5
"""A link without similar links is slow if a hop over it takes more than `_FAR_SLOWER` times as long as any other hop.
A hop that takes twice as long may be two links, with a switch between them that the plan lacks."""

LARGEST = 1024
"""Largest number of links for a fit. With more links, medians are enough, since most paths do not use a given link."""

_ROUNDS = 5
_NOTHING = 1e-6
_BELIEVED = 1.5
_SURE = 4.0


@dataclass(frozen=True, slots=True)
class SlowLink:
    """A link that is slower than expected.

    Attributes:
        link: index of the link in the reference.
        why: sentence with the evidence.
        ratio: delay of messages over the link / expected delay.
        excess_seconds: time by which the link delays a message, seconds; consecutive slow links share it equally. 0 if
            the evidence is the throughput.
        bytes_per_second: largest throughput of a pair over the link; nan if the evidence is the delay.
    """

    link: int
    why: str
    ratio: float
    excess_seconds: float = 0.0
    bytes_per_second: float = float("nan")


def find_slow_links(
    reference: Reference, paths: ReferencePaths, delays: Floats, least: float = LEAST_DELAY
) -> list[SlowLink]:
    """Find links that delay messages more than similar links, or more than the reference's latencies state.

    If paths are unique and the reference has at most `LARGEST` links, a fit to all paths yields the first slow links.
    Then paths of the same kind are compared: paths with equal numbers of host links, and of switch links of each speed.
    For each kind, a link's excess is the median delay of the paths over the link minus the median delay of all paths.
    Kinds in which most paths use the link are left out. The link's smallest excess is used: a slow uplink delays only
    some kinds of a host's paths, so the host's link is not reported. The link with the largest excess is reported, its
    excess is subtracted from the delays, and the search is repeated. If the reference states latencies, they replace
    the fit and the medians as expected delays.

    Args:
        delays: float64 [pair], seconds; nan excludes a pair.
        least: a link is slow only if its excess / the expected delay is larger than this.
    """
    there = np.isfinite(delays) & (delays > 0) & (paths.hops > 0)
    has_latencies = bool(np.isfinite(reference.latency_seconds).all())
    is_unique = reference.routes is not None or len(reference.link) < reference.vertices
    fitted = {} if has_latencies or not is_unique else find_slow_by_fit(reference, paths, delays, there, least)
    excess = np.zeros(len(reference.link))
    excess[list(fitted)] = [seconds for seconds, _ in fitted.values()]
    delays = delays - np.bincount(paths.pair, excess[paths.link], len(delays))
    slow = [
        SlowLink(
            each,
            f"messages over this link take {seconds * 1e6:.3g} µs longer than over links of the same kind, "
            f"{ratio:.2f} times as long",
            ratio,
            seconds,
        )
        for each, (seconds, ratio) in fitted.items()
    ]
    by_kinds = _find_by_kinds(reference, paths, delays, least, has_latencies)
    return slow + [each for each in by_kinds if each.link not in fitted]


def _find_by_kinds(
    reference: Reference, paths: ReferencePaths, delays: Floats, least: float, has_latencies: bool
) -> list[SlowLink]:
    """Find slow links by kinds of paths (see `find_slow_links`) or by the reference's latencies."""
    there = np.isfinite(delays) & (delays > 0) & (paths.hops > 0)
    entry = there[paths.pair]
    link, pair = paths.link[entry], paths.pair[entry]
    if not len(link):
        return []
    kind = _number_kinds(reference, paths)
    if has_latencies:  # the expected delay is the sum of latencies plus an overhead that all paths have
        sums = np.bincount(paths.pair, reference.latency_seconds[paths.link], len(delays))
        usual = np.maximum(sums + max(float(np.median((delays - sums)[there])), 0.0), 1e-12)
    else:
        usual = median(delays, np.where(there, kind, -1), np.arange(kind.max() + 1))[kind]
    rest = np.where(there, delays - usual, 0.0)
    scatter = NORMAL * float(np.median(np.abs(rest[there] / usual[there])))
    kinds = int(kind.max()) + 1
    stratum, of_entry = np.unique(link * kinds + kind[pair], return_inverse=True)
    link_of, kind_of = np.divmod(stratum, kinds)
    count = np.bincount(of_entry)
    delay = np.zeros(len(stratum))
    delay[of_entry] = usual[pair]
    # Standard error of a median of `count` delays.
    error = scatter * delay / np.sqrt(count)
    is_evidence = has_latencies | (count <= _MOST_PATHS * np.bincount(kind[there], minlength=kinds)[kind_of])
    found: dict[int, float] = {}
    share: dict[int, float] = {}
    for _ in range(_MOST_FOUND):
        excess = median(rest[pair], of_entry, np.arange(len(stratum)))
        evidence, least_excess, clearest = (np.full(len(reference.link), start) for start in (inf, inf, -inf))
        np.minimum.at(evidence, link_of[is_evidence], (excess - _ANYWHERE * error)[is_evidence])
        np.minimum.at(least_excess, link_of[is_evidence], excess[is_evidence])
        np.maximum.at(clearest, link_of[is_evidence], (excess - least * delay - _SOMEWHERE * error)[is_evidence])
        blamed = np.isfinite(evidence) & (evidence > 0) & (clearest > 0)
        if not blamed.any():
            break
        worst = int(np.where(blamed, least_excess, 0.0).argmax())
        own = is_evidence & (link_of == worst)
        found[worst] = found.get(worst, 0.0) + float(least_excess[worst])
        share[worst] = max(share.get(worst, 0.0), float((excess[own] / delay[own]).max()))
        rest[np.unique(pair[own[of_entry]])] -= float(least_excess[worst])
    expected = "the reference states" if has_latencies else "over other paths of the same kind"
    slow = [
        SlowLink(
            each,
            f"messages over this link take {seconds * 1e6:.3g} µs longer than {expected}, {1 + share[each]:.2f} times "
            "as long",
            1 + share[each],
            seconds,
        )
        for each, seconds in found.items()
    ]
    return slow if has_latencies else [*slow, *_without_peers(paths, delays, there, set(found))]


def _number_kinds(reference: Reference, paths: ReferencePaths) -> Integers:
    """Return the kind of each path (see `find_slow_links`), int64 [pair]."""
    ends = reference.is_end[reference.link].sum(axis=1)
    columns = np.stack([ends, np.nan_to_num(reference.gbps)], axis=1)
    _, like = np.unique(columns, axis=0, return_inverse=True)
    weight = np.random.default_rng(1).integers(1, 1 << 40, like.max() + 1)
    total = np.zeros(len(paths.offset) - 1, np.int64)
    np.add.at(total, paths.pair, weight[like.ravel()][paths.link])
    return np.unique(total, return_inverse=True)[1].ravel().astype(np.int64)


def _without_peers(
    paths: ReferencePaths, delays: Floats, there: npt.NDArray[np.bool_], known: set[int]
) -> Iterator[SlowLink]:
    """Find slow links that have no similar link.

    Such a link is on all paths with h hops, for some number h, and on no shorter path. The additional delay of these
    paths, compared with the next shorter paths, is divided by the number of additional hops. The link is slow if this
    time per hop is much longer than for any other h. For the shortest paths, the time per hop includes a message's
    overhead.
    """
    hops = np.unique(paths.hops[there])
    usual = np.array([np.median(delays[there & (paths.hops == each)]) for each in hops])
    by_hop = np.diff(usual, prepend=0.0) / np.diff(hops, prepend=0)
    for tier in range(1, len(hops)):
        others = np.delete(by_hop, tier).max()
        if by_hop[tier] <= _FAR_SLOWER * others:
            continue
        beyond = there & (paths.hops == hops[tier])
        link, count = np.unique(paths.link[beyond[paths.pair]], return_counts=True)
        shorter = np.unique(paths.link[(there & (paths.hops < hops[tier]))[paths.pair]])
        in_a_row = np.setdiff1d(link[count == beyond.sum()], shorter)
        for each in in_a_row.tolist():
            if each not in known:
                excess = float(usual[tier] - usual[tier - 1] - others * (hops[tier] - hops[tier - 1])) / len(in_a_row)
                why = (
                    f"messages over this link take {usual[tier] * 1e6:.3g} µs, and messages over the next shorter "
                    f"paths take {usual[tier - 1] * 1e6:.3g} µs"
                )
                yield SlowLink(each, why, float(by_hop[tier] / others), excess)


def find_slow_by_speed(
    reference: Reference, paths: ReferencePaths, bytes_per_second: Floats, least: float = LEAST_SPEED
) -> list[SlowLink]:
    """Find links over which no pair of hosts reaches the link's speed.

    A link's throughput is the largest throughput of all pairs over the link. With a slow MPI library, the median of
    throughput / speed over all links is below `least`. The limit is then `least` times this median.

    Args:
        reference: the reference, with link speeds.
        bytes_per_second: float64 [pair], throughput of each pair.
        least: a link is slow if throughput / speed is below this.
    """
    best = np.zeros(len(reference.link))
    reached = np.where(np.isfinite(bytes_per_second), bytes_per_second, 0.0)
    np.maximum.at(best, paths.link, reached[paths.pair])
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
            f"pairs of hosts reach at most {best[link] * 8e-9:.3g} Gb/s over this link, which is {share[link]:.0%} of "
            f"its speed of {reference.gbps[link]:g} Gb/s",
            1 / float(share[link]),
            bytes_per_second=float(best[link]),
        )
        for link in np.flatnonzero(share < bound).tolist()
    ]


def find_slow_by_fit(
    reference: Reference, paths: ReferencePaths, delays: Floats, there: npt.NDArray[np.bool_], least: float
) -> dict[int, tuple[float, float]]:
    """Fit all latencies; find links with a longer latency than links of equal speed and distance from hosts.

    Args:
        delays: float64 [pair], seconds.
        there: bool [pair], True for delays that are fitted.
        least: a link is slow only if its factor - 1 is larger than this.

    Returns:
        Index of a slow link -> latency above similar links' latency, seconds, and the factor by which this excess
        lengthens the shortest delay over the link.
    """
    links = len(reference.link)
    if links > LARGEST or not there.any():
        return {}
    matrix = csr_matrix((np.ones(len(paths.link)), paths.link, paths.offset), (len(delays), links))[there]
    latency, error = _fit(matrix, delays[there])
    excess = latency - _usual_of_like(reference, latency)
    explained = matrix @ np.nan_to_num(latency)
    shortest = np.full(links, np.inf)
    np.minimum.at(shortest, matrix.indices, np.repeat(explained, np.diff(matrix.indptr)))
    shortest -= np.nan_to_num(excess)
    slow = np.flatnonzero(excess - least * shortest - _SURE * error > 0)
    return {int(link): (float(excess[link]), 1 + float(excess[link] / shortest[link])) for link in slow}


def _fit(matrix: csr_matrix, delays: Floats) -> tuple[Floats, Floats]:
    """Return each link's latency (nan if undetermined) and its standard error, seconds, float64 [link]."""
    weight = np.ones(len(delays))
    for _ in range(_ROUNDS):
        rows = diags(np.sqrt(weight) / delays) @ matrix
        value, vector = np.linalg.eigh((rows.T @ rows).toarray())
        told = value > _NOTHING * value[-1]
        base = vector[:, told]
        latency: Floats = base @ ((base.T @ (rows.T @ np.sqrt(weight))) / value[told])
        left = np.abs(1 - (matrix @ latency) / delays)
        scale = NORMAL * float(np.median(left))
        weight = np.minimum(1.0, _BELIEVED * max(scale, _NOTHING) / np.maximum(left, 1e-300))
    # Enlarge the error: both directions of a pair may come from one measurement, and a fit's residuals are smaller than
    # the errors.
    pairs = len(delays) / 2
    inflated = scale * np.sqrt(2 * pairs / max(pairs - np.count_nonzero(told), 1.0))
    error: Floats = inflated * np.sqrt((np.square(base) / value[told]).sum(axis=1))
    latency[np.square(vector[:, ~told]).sum(axis=1) > _NOTHING] = np.nan
    return latency, error


def _usual_of_like(reference: Reference, latency: Floats) -> Floats:
    """Return each link's usual latency, float64 [link]: the lower median over links of the same speed and distance from
    hosts. Links of unknown latency, and links without such peers, have nan.
    """
    ends = np.flatnonzero(reference.is_end)
    far = dijkstra(reference.adjacency(), directed=False, unweighted=True, indices=ends, min_only=True)
    columns = np.column_stack([np.sort(far[reference.link], axis=1), np.nan_to_num(reference.gbps)])
    _, like = np.unique(columns, axis=0, return_inverse=True)
    usual = np.full(len(latency), np.nan)
    for each in np.unique(like):
        members = np.flatnonzero((like.ravel() == each) & np.isfinite(latency))
        if len(members) > 1:
            usual[members] = np.sort(latency[members])[(len(members) - 1) // 2]
    return usual
