# SPDX-License-Identifier: Apache-2.0
"""Networks with cycles: rings, meshes, tori, dragonflies. The nodes are hosts, or switches with hosts.

A delay is an overhead per message plus the latencies of a shortest path. Two methods search for the links; the better
result is used. The first method links two hosts if every path over a third host has a longer delay. This method finds
links of any length, but one wrong delay causes a wrong link. The second method ranks pairs: first, pairs whose delay is
short and whose two hosts have similar delays to all other hosts. The method links the first N pairs, and chooses the N
that explains the delays best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import log, prod

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, shortest_path

from ibprof.native.libraries import load_kernels
from ibprof_lab.topology.infer.binary_trees import CAUTION, RootedTree
from ibprof_lab.topology.infer.candidate import FLOOR, Candidate, Floats, blocks, sample_hosts
from ibprof_lab.topology.model.inferred_topology import weigh_edges

Known = npt.NDArray[np.bool_]

Edges = tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]

_LINKED_BELOW = 0.75
"""Two hosts are linked if their delay is below this fraction of the shortest delay over a third host. The overhead per
message is first subtracted from all delays."""

_SLOW, _FEW_SLOW = 1.2, 0.05
"""A host is slow if its shortest delay exceeds `_SLOW` times the median of the hosts' shortest delays.

If at least two hosts, and more than the fraction `_FEW_SLOW` of all hosts, exceed this limit, no host counts as slow.
"""

_TRIED = 24
"""Each round tries this many values of N: the first round over the whole range, later rounds near the best N."""

_REFINED = 3

_MOST_NEIGHBOURS = 14
"""Largest number of neighbours of a host in a regular network; a torus of seven dimensions has 14."""

_MOST_SORTED = 512
"""If there are more hosts than this, only the delays of a sample of this many hosts are sorted."""

_BLOCK = 512


def find_far_hosts(delays: npt.NDArray[np.floating], known: Known) -> Floats:
    """Return the factor of each host's shortest delay, float64 [host]: above 1 for far hosts, else 1.

    The factor is the host's shortest delay divided by the median of all hosts' shortest delays. In a direct network
    without slow hosts, all hosts have about the same shortest delay.
    """
    nearest = np.concatenate([np.where(known[rows], delays[rows], np.inf).min(axis=1) for rows in blocks(len(delays))])
    nearest = nearest.astype(np.float64)
    factor = nearest / np.median(nearest)
    far = (factor > _SLOW) & np.isfinite(factor)
    if np.count_nonzero(far) > max(_FEW_SLOW * len(delays), 1):
        return np.ones(len(delays))
    return np.where(far, factor, 1.0)


def find_slow_hosts(delays: npt.NDArray[np.floating], known: Known) -> Floats:
    """Return how many times slower than usual each host is, float64 [host]: above 1 for slow hosts, else 1.

    A slow host is a far host whose geometric mean delay is also longer than usual. Other far hosts are alone on a
    switch. A median cannot replace the geometric mean: without errors, many delays of a network are equal.
    """
    factor = find_far_hosts(delays, known)
    if not (factor > 1).any():
        return factor
    rows = sample_hosts(len(delays))
    usual = np.log(delays[rows][known[rows]]).mean()
    for host in np.flatnonzero(factor > 1):
        if np.log(delays[host][known[host]]).mean() - usual < np.log(factor[host]) / 2:
            factor[host] = 1.0
    return factor


def find_direct(delays: Floats, known: npt.NDArray[np.bool_]) -> Candidate | None:
    """Find a network of directly linked hosts.

    Args:
        delays: float64 [n, n], seconds, symmetric, above 0 except on the diagonal; n at least 3.
        known: bool [n, n], True for delays that are fitted.

    Returns:
        The network; None if no connected network with fewer links than pairs explains the delays.
    """
    found = _find_links(delays, delays, known)
    if found is None:
        return None
    edges, length, overhead, distance = found
    explained = distance + overhead
    np.fill_diagonal(explained, 0.0)
    edge = np.stack(edges, axis=1).astype(np.int32)
    return Candidate("direct", 0, edge, length, overhead, explained, len(length) + 1)


def find_regular(delays: Floats, known: npt.NDArray[np.bool_]) -> Candidate | None:
    """Find a network of equal links in which most hosts have the same number of neighbours.

    The largest gap in the sorted delays of a host separates its neighbours from all other hosts. A delay is an overhead
    plus a cost per hop. The search takes O(n^2 log n) steps; `find_direct` takes O(n^3).

    Args:
        delays, known: as for `find_direct`.

    Returns:
        The network; None if `find_regular_links` finds no links, if these links do not connect all hosts, or if the
        delays do not grow with the number of hops.
    """
    edge = find_regular_links(delays, known)
    hops = None if edge is None else _count_hops(edge, len(delays))
    if edge is None or hops is None:
        return None
    chosen = sample_hosts(len(delays))
    counts, among, values = known[chosen], hops[chosen], delays[chosen]
    pairs = np.bincount(among[counts])
    total = np.bincount(among[counts], values[counts])
    slope, overhead = np.polyfit(
        np.flatnonzero(pairs), total[pairs > 0] / pairs[pairs > 0], 1, w=np.sqrt(pairs[pairs > 0])
    )
    overhead = max(float(overhead), 0.0)
    if slope <= 0:
        return None
    explained = hops.astype(delays.dtype)
    explained *= delays.dtype.type(slope)
    explained += delays.dtype.type(overhead)
    np.fill_diagonal(explained, 0.0)
    return Candidate("direct", 0, edge, np.full(len(edge), slope), overhead, explained, 2 + len(edge))


def find_regular_links(delays: Floats, known: Known) -> npt.NDArray[np.int32] | None:
    """Return the links of `find_regular`, int32 [link, 2]. Return None for at most `_MOST_NEIGHBOURS` + 1 hosts, if
    the sorted delays have no gap, or if a regular network cannot have this number of links.
    """
    hosts = len(delays)
    if hosts <= _MOST_NEIGHBOURS + 1:
        return None
    rows = np.linspace(0, hosts - 1, min(hosts, _MOST_SORTED)).astype(int)
    nearest = np.partition(np.where(known[rows], delays[rows], np.inf), _MOST_NEIGHBOURS)[:, : _MOST_NEIGHBOURS + 1]
    usual = np.median(np.sort(nearest), axis=0)
    usual = usual[np.isfinite(usual)]  # a median is infinite if most hosts have too few delays
    gaps = np.diff(np.log(usual[1:]))
    if not gaps.any():
        return None
    degree = int(np.argmax(gaps)) + 1
    limit = np.sqrt(usual[degree] * usual[degree + 1])
    most = hosts * (_MOST_NEIGHBOURS + 1) // 2
    edge = _link_near(delays, known, limit, float(np.log(nearest[nearest < limit]).std()), most)
    return edge if hosts - 1 <= len(edge) < most else None


def _link_near(delays: Floats, known: Known, limit: float, errors: float, most: int) -> npt.NDArray[np.int32]:
    """Return the pairs of hosts that are linked, int32 [link, 2].

    `_are_neighbours` decides pairs whose delay is near the limit or unknown, by the hosts' delays to other hosts.

    Args:
        limit: seconds, longer than delays over one link, and shorter than delays over two links.
        errors: standard error of the logarithm of a delay.
        most: the search stops at this number of links, since a regular network has fewer links.
    """

    def list_pairs(is_asked: Callable[[Known, Floats], Known], block: int) -> Iterator[npt.NDArray[np.integer]]:
        for rows in blocks(len(delays), block):
            block_of = rows, slice(rows.start, None)
            yield np.argwhere(np.triu(is_asked(known[block_of], delays[block_of]), 1)) + rows.start

    likely = np.concatenate(list(list_pairs(lambda counts, values: counts & (values < limit), _BLOCK)))
    if len(likely) >= most:
        return likely.astype(np.int32)
    step = _measure_link(delays, known, likely[:: len(likely) // _BLOCK + 1], errors)
    low, high = limit * np.exp(-_UNSURE * errors), limit * np.exp(_UNSURE * errors)
    links = [likely[delays[tuple(likely.T)] < low]]
    sample = _sample_delays(delays, known)
    # If all hosts have similar delays, as in trees, the first blocks of pairs already yield too many links.
    for pairs in list_pairs(lambda counts, values: ~counts | ((values >= low) & (values < high)), _BLOCK // 8):
        links.append(pairs[_are_neighbours(sample, pairs, _BETWEEN * step, errors)])
        if sum(map(len, links)) >= most:
            break
    return np.concatenate(links).astype(np.int32)


def _measure_link(delays: Floats, known: Known, links: npt.NDArray[np.integer], errors: float) -> float:
    """Estimate the delay of a link, seconds, from differences between two linked hosts' delays to other hosts."""
    one, other = delays[links[:, 0]], delays[links[:, 1]]
    counts = known[links[:, 0]] & known[links[:, 1]]
    square = np.square(one - other) - errors**2 * (np.square(one) + np.square(other))
    means = np.where(counts, square, 0.0).sum(axis=1) / np.maximum(counts.sum(axis=1), 1)
    return float(np.sqrt(max(np.quantile(means, 0.9), 0.0)))


def _count_hops(edge: npt.NDArray[np.integer], hosts: int) -> npt.NDArray[np.uint8] | None:
    """Return the number of hops of each pair of hosts, uint8 [n, n]; None if a pair has no path of at most 255 hops."""
    neighbour = _list_neighbours(edge, hosts)
    hops = np.empty((hosts, hosts), np.uint8)
    for columns in blocks(hosts, _TOGETHER):
        part = _count_hops_to(columns, neighbour)
        if part is None:
            return None
        hops[:, columns] = part
    return hops


_TOGETHER = 1024
"""Hops to this many hosts are counted together, so that the bits of 10,000 hosts fit into a processor's cache."""


def _count_hops_to(columns: slice, neighbour: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8] | None:
    """Return columns of the matrix of hops; None if a pair has no path of at most 255 hops.

    `within` has a bit for each pair of hosts: 1 if the pair has a path of at most the current number of hops. A word
    has the bits of 64 hosts. `digits` has an array like `within` for each binary digit of the numbers of hops.
    """
    hosts, count = len(neighbour), columns.stop - columns.start
    within = np.zeros((hosts, -(-count // 64)), np.uint64)
    own = np.arange(count)
    within[columns.start + own, own // 64] = np.uint64(1) << (own % 64).astype(np.uint64)
    every = np.bitwise_or.reduce(within, axis=0)
    digits: list[npt.NDArray[np.uint64]] = []
    for _ in range(255):
        carry = ~within & every
        if not carry.any():
            break
        for place, digit in enumerate(digits):
            digits[place], carry = digit ^ carry, digit & carry
        if carry.any():
            digits.append(carry)
        farther = within.copy()
        for column in neighbour.T:
            farther |= within[column]
        if np.array_equal(farther, within):
            return None
        within = farther
    else:
        return None
    hops = np.zeros((hosts, count), np.uint8)
    for place, digit in enumerate(digits):
        hops |= np.unpackbits(digit.view(np.uint8), axis=1, count=count, bitorder="little") << np.uint8(place)
    return hops


def _list_neighbours(edge: npt.NDArray[np.integer], hosts: int) -> npt.NDArray[np.int64]:
    """Return the neighbours of each host: int64 [host, largest degree], padded with the host itself."""
    ends = np.concatenate([edge, edge[:, ::-1]]).astype(np.int64)
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    degree = np.bincount(ends[:, 0], minlength=hosts)
    neighbour = np.repeat(np.arange(hosts)[:, None], degree.max(), axis=1)
    neighbour[ends[:, 0], np.arange(len(ends)) - np.repeat(np.cumsum(degree) - degree, degree)] = ends[:, 1]
    return neighbour


_PRESENT = 0.8
"""A network is recognised as a grid if it has at least this fraction of the grid's hosts and of the grid's links."""


def describe_grid(edge: npt.NDArray[np.integer], hosts: int) -> str | None:
    """Return a text such as "a torus of 4 x 4 hosts, without 2 of its links"; None if the network is not a grid.

    In each square of four linked hosts, opposite links belong to one dimension of the grid, and adjacent links to two
    different dimensions. If the links of one dimension are removed, the grid falls into layers. A host's coordinate in
    this dimension is the index of its layer.
    """
    if edge.max() >= hosts:
        return None
    place: list[npt.NDArray[np.integer]] = []
    rings: list[bool] = []
    sizes: list[int] = []
    for links in _find_dimensions(edge, hosts):
        rest = np.delete(edge, links, axis=0)
        count, layer = connected_components(csr_matrix((np.ones(len(rest)), rest.T), (hosts, hosts)), directed=False)
        steps = np.unique(np.sort(layer[edge[links]], axis=1), axis=0)
        degree = np.bincount(steps.ravel(), minlength=count)
        is_ring = count > 2 and len(steps) == count
        if degree.max() > 2 or (not is_ring and len(steps) != count - 1):
            return None
        place.append(layer)
        sizes.append(int(count))
        rings.append(is_ring)
    whole = prod(sizes)
    if not sizes or hosts < _PRESENT * whole or len(np.unique(np.stack(place), axis=1).T) < hosts:
        return None
    lacks = whole - hosts
    every = sum(whole if ring else whole // size * (size - 1) for size, ring in zip(sizes, rings, strict=True))
    missing = every - len(edge)
    if missing > (1 - _PRESENT) * every:
        return None
    lacking = f", without {lacks} of its hosts" if lacks else f", without {missing} of its links" if missing else ""
    twos = sizes.count(2)  # two dimensions of size 2 form a ring of four hosts
    if twos == len(sizes) > 2:
        return f"a hypercube of {twos} dimensions{lacking}"
    around = sorted([size for size, ring in zip(sizes, rings, strict=True) if ring] + [4] * (twos // 2))
    lines = sorted([size for size, ring in zip(sizes, rings, strict=True) if not ring and size > 2] + [2] * (twos % 2))
    kind = "torus" if around else "mesh"
    flat = f", lines of {' x '.join(map(str, lines))}" if around and any(size > 2 for size in lines) else ""
    named = around if flat else around + lines
    return f"a {kind} of {' x '.join(map(str, sorted(named)))} hosts{flat}{lacking}"


def _find_dimensions(edge: npt.NDArray[np.integer], hosts: int) -> list[npt.NDArray[np.integer]]:
    """Return for each dimension of a grid the indices of its links; an empty list if the network is not a grid."""
    ends = np.sort(edge, axis=1).astype(np.int64)
    order = np.argsort(ends[:, 0] * hosts + ends[:, 1])
    keys = (ends[:, 0] * hosts + ends[:, 1])[order]
    neighbour = _list_neighbours(edge, hosts)
    # A grid of d dimensions has at least 2^d hosts, and each host has at most 2 d neighbours. Refuse others.
    if neighbour.shape[1] > 2 * log(hosts / _PRESENT, 2):
        return []

    def number(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        key = np.minimum(one, other) * hosts + np.maximum(one, other)
        found = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        return np.where(keys[found] == key, order[found], -1)

    opposite: list[npt.NDArray[np.integer]] = []
    meeting: list[npt.NDArray[np.integer]] = []
    for a, b in product(range(neighbour.shape[1]), repeat=2):  # neighbours of a link's two hosts may complete a square
        third, fourth = neighbour[ends[:, 0], a], neighbour[ends[:, 1], b]
        across, along = number(third, fourth), number(ends[:, 0], third)
        square = (across >= 0) & (along >= 0) & (third != ends[:, 1]) & (fourth != ends[:, 0]) & (third != fourth)
        square &= fourth != ends[:, 1]
        opposite.append(np.stack([np.flatnonzero(square), across[square]]))
        meeting.append(np.stack([np.flatnonzero(square), along[square]]))
    pairs = np.concatenate(opposite, axis=1)
    ones = np.ones(pairs.shape[1])
    count, kind = connected_components(csr_matrix((ones, tuple(pairs)), (len(edge),) * 2), directed=False)
    if count > _MOST_CLASSES:
        return []
    meets = np.zeros((count, count), bool)
    met = kind[np.concatenate(meeting, axis=1)]
    meets[met[0], met[1]] = meets[met[1], met[0]] = True
    dimensions, of_kind = connected_components(csr_matrix(~meets), directed=False)
    return [np.flatnonzero(of_kind[kind] == each) for each in range(dimensions)]


_MOST_CLASSES = 4096
"""A network with more classes of parallel links than this is not a grid."""


def find_switched(
    delays: Floats, known: npt.NDArray[np.bool_], tree: RootedTree, errors: float = 0.0
) -> Candidate | None:
    """Find a network of linked switches with hosts.

    Args:
        delays, known: as for `find_direct`.
        tree: nested switches; hosts on the same lowest switch share a switch of the network. Each host outside the
            lowest switches has a separate switch, and a link of usual latency to this switch.
        errors: known standard deviation of the logarithm of a delay; 0 if unknown.

    Returns:
        The network. None if no network explains the delays. None for fewer than four lowest switches, or fewer lowest
        switches than hosts outside them. None if any lowest switch, or any two switches, have no measured pair of
        hosts.
    """
    leaf = np.setdiff1d(np.unique(tree.node_of_leaf), tree.parent[1:])
    alone = np.flatnonzero(~np.isin(tree.node_of_leaf, leaf))
    if len(leaf) < max(4, len(alone)):
        return None
    switch = np.searchsorted(leaf, tree.node_of_leaf)
    switch[alone] = len(leaf) + np.arange(len(alone))
    member = np.eye(len(leaf) + len(alone))[switch]
    counted = np.where(known, 1.0, 0.0)
    np.fill_diagonal(counted, 0.0)
    pairs = member.T @ counted @ member
    single = np.arange(len(leaf), len(pairs))
    pairs[single, single] = 1.0
    if not pairs.all():
        return None
    between = member.T @ (counted * delays) @ member / pairs
    between[single, single] = np.median(between.diagonal()[: len(leaf)])
    half = between.diagonal() / 2
    gaps = between - half[:, None] - half
    np.fill_diagonal(gaps, 0.0)
    if (gaps[~np.eye(len(gaps), dtype=bool)] <= 0).any():
        return None
    scatter = np.where(known, delays / between[np.ix_(switch, switch)] - 1, 0.0)
    variance = max(float(np.square(scatter).sum() / counted.sum()), FLOOR**2)
    found = _find_links(gaps, between, np.ones(gaps.shape, bool), _Means(pairs, variance))
    if found is None:
        return None
    edges, length, _, distance = found
    explained = half[switch][:, None] + half[switch] + distance[np.ix_(switch, switch)]
    np.fill_diagonal(explained, 0.0)
    hosts = len(delays)
    host_edge = np.stack([np.arange(hosts), hosts + switch], axis=1)
    edge = np.concatenate([host_edge, hosts + np.stack(edges, axis=1)]).astype(np.int32)
    latency = np.concatenate([half[switch], length])
    return Candidate("direct", len(pairs), edge, latency, 0.0, explained, len(leaf) + len(length), errors)


def find_detours(delays: Floats) -> Floats:
    """Return the delay of the shortest path over a third host for each pair, float64 [n, n]: min over k of d_ik + d_kj.

    The diagonal is undefined.
    """
    kernels = load_kernels()
    distance = np.ascontiguousarray(delays, np.float32)
    detour = np.empty_like(distance)
    kernels.lib.ibp_find_detours(kernels.pointer(distance), len(distance), kernels.pointer(detour))
    return detour.astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Means:
    """Accuracy of mean delays between switches: the number of host pairs in each mean, and the relative variance of one
    pair's delay.
    """

    pairs: Floats
    variance: float


def _find_links(
    delays: Floats, noisy: Floats, known: npt.NDArray[np.bool_], means: _Means | None = None
) -> tuple[Edges, Floats, float, Floats] | None:
    """Find links among n vertices.

    Args:
        delays: [n, n], delays between vertices.
        noisy: [n, n], measured delays, from which `delays` was computed. Errors of `delays` are proportional to
            `noisy`.
        known: bool [n, n], True for delays that are fitted.
        means: set if `delays` are means over pairs of hosts; else None.

    Returns:
        The links, their latencies, the overhead, and the distances between all vertices; None if no set of links fits.
    """
    above = np.triu_indices(len(delays), 1)
    slack = find_detours(delays) - delays
    tried = np.zeros(1) if means else np.array([np.median(slack[above]), 0.0])
    judge = _Judge(delays, noisy, known, means)
    for overhead in tried.tolist():
        # First method: link each measured pair whose delay is clearly shorter than every detour.
        start = max(overhead, 0.0)
        without = np.maximum(delays - start, 0.0)
        linked = known & (without < _LINKED_BELOW * find_detours(without))
        judge.evaluate(np.nonzero(np.triu(linked, 1)), start)  # type: ignore[arg-type]
    measured = known[above]
    above = above[0][measured], above[1][measured]
    order = np.argsort(_rank(delays)[above], kind="stable")
    ends = above[0][order], above[1][order]
    least, most = len(delays) - 1, len(order) - 1
    for _ in range(_REFINED):
        if least > most:
            break
        for count in np.unique(np.geomspace(least, most, _TRIED).astype(int)):
            judge.evaluate((ends[0][:count], ends[1][:count]), max(float(tried[0]), 0.0), int(count))
        if not judge.best_count:
            break
        width = (most / least) ** (1 / _TRIED) * 1.05
        least = max(int(judge.best_count / width), len(delays) - 1)
        most = min(int(judge.best_count * width) + 1, len(order) - 1)
    if judge.best is not None:
        edges, latency, overhead, distance = judge.best
        apart = _BETWEEN * float(np.median(latency))
        more = np.argwhere(np.triu(~known & (distance > apart), 1))
        more = more[_are_neighbours(_sample_delays(delays, known), more, apart)]
        if len(more):
            judge.evaluate((np.append(edges[0], more[:, 0]), np.append(edges[1], more[:, 1])), overhead, free=len(more))
    return judge.best


def _sample_delays(delays: Floats, known: Known) -> tuple[Floats, Known]:
    """Return the delays from all hosts to a sample of hosts, [n, sample], and the same columns of `known`."""
    hosts = sample_hosts(len(delays))
    return delays[:, hosts], known[:, hosts]


def _are_neighbours(
    sample: tuple[Floats, Known], pairs: npt.NDArray[np.integer], apart: float, errors: float = 0.0
) -> npt.NDArray[np.bool_]:
    """Return True for each pair of hosts that may be linked, bool [pair].

    The distances from two linked hosts to a third host differ by at most one link. If two hosts are not linked, their
    distances to many third hosts differ by more than one link.

    Args:
        sample: delays to a sample of hosts, from `_sample_delays`.
        pairs: int [pair, 2], two hosts each.
        apart: largest difference of two delays that one link can cause, seconds.
        errors: standard error of the logarithm of a delay.
    """
    among, counts = sample

    def count_far(pairs: npt.NDArray[np.integer], step: int) -> tuple[npt.NDArray[np.integer], ...]:
        one, other = among[pairs.T, ::step]
        compared = counts[pairs[:, 0], ::step] & counts[pairs[:, 1], ::step]
        differ = np.abs(one - other) > apart + errors * (one + other)
        return np.count_nonzero(differ & compared, axis=1), np.count_nonzero(compared, axis=1)

    found = np.zeros(len(pairs), bool)
    for rows in blocks(len(pairs), _BLOCK * 8):
        # Every eighth host of the sample is enough to exclude most pairs.
        maybe = np.flatnonzero(count_far(pairs[rows], 8)[0] <= _DIFFERING * among.shape[1])
        far, compared = count_far(pairs[rows][maybe], 1)
        found[rows.start + maybe] = far < _DIFFERING * compared
    return found


_BETWEEN = 1.5
"""Without errors, two linked hosts' delays to a third host differ by less than this multiple of a link's delay."""

_UNSURE = 4
"""A delay nearer to the limit of `_link_near` than this number of standard errors does not show whether two hosts are
linked."""

_DIFFERING = 0.04
"""Two hosts may be linked if, for less than this fraction of third hosts, their delays differ by more than `_BETWEEN`
links."""


def _rank(delays: Floats) -> Floats:
    """Return a score for each pair, [n, n]; a pair with a lower score is more likely to be linked. The score is the
    pair's delay, plus the sum of squared differences between the hosts' delays to all third hosts. Both terms are
    standardised over all pairs.
    """
    square = np.square(delays).sum(axis=1)
    unlike = square[:, None] + square - 2 * delays @ delays - 2 * np.square(delays)
    above = np.triu_indices(len(delays), 1)

    def standard(values: Floats) -> Floats:
        spread = values[above].std()
        scaled: Floats = (values - values[above].mean()) / (spread or 1.0)
        return scaled

    return standard(delays) + standard(unlike)


class _Judge:
    """Evaluation of sets of links; `best` is the best set so far."""

    def __init__(self, delays: Floats, noisy: Floats, known: npt.NDArray[np.bool_], means: _Means | None) -> None:
        self._delays, self._noisy, self._means, self._free = delays, noisy, means, means is None
        self._above = np.nonzero(np.triu(known, 1))
        self._seen: set[int] = set()
        self._least = np.inf
        self.best: tuple[Edges, Floats, float, Floats] | None = None
        self.best_count = 0

    def evaluate(self, edges: Edges, overhead: float, count: int = 0, free: int = 0) -> None:
        """Fit latencies and overhead to a set of links; keep the set if no earlier set explains the delays better.

        Args:
            edges: [link, 2], vertices of each link.
            overhead: initial value of the overhead.
            count: number of links if `edges` are the first pairs of the ranked list; else 0.
            free: number of links that delays to other hosts support; these links cost nothing in the criterion.
        """
        if count in self._seen or not len(self._delays) - 1 <= len(edges[0]) < len(self._above[0]):
            return
        if count:
            self._seen.add(count)
        length = self._group_lengths(edges)
        for _ in range(2):
            distance = self._distances(edges, np.maximum(length - overhead, 1e-3 * length))
            if not np.isfinite(distance).all():
                return
            overhead, scale = self._fit_line(distance)
            if scale <= 0:
                return
        latency = np.maximum(length - overhead, 1e-3 * length)
        distance = self._distances(edges, latency)
        overhead, scale = self._fit_line(distance)
        explained = np.maximum(overhead + scale * distance, 1e-300)
        deviation = np.abs(self._delays - explained)[self._above] / self._noisy[self._above]
        criterion = self._judge(deviation, len(length) - free)
        if criterion <= self._least:
            self._least = criterion
            self.best = edges, latency * scale, overhead, distance * scale
            self.best_count = count

    def _judge(self, deviation: Floats, links: int) -> float:
        """Return Schwarz's criterion; the variance of the errors is known if delays are means, otherwise estimated."""
        if self._means is None:
            return 2 * len(deviation) * log(max(float(deviation.mean()), FLOOR)) + links * log(len(deviation))
        pairs = self._means.pairs[self._above]
        misfit = float((pairs * np.square(deviation)).sum()) / self._means.variance
        return misfit + links * (log(float(pairs.sum())) + 2 * CAUTION)

    def _group_lengths(self, edges: Edges) -> Floats:
        """Return as the length of each link the mean delay of similar links: errors of single links would add up along
        paths.
        """
        values = self._delays[edges]
        spread = np.maximum(self._noisy[edges] / np.maximum(values, 1e-300), 1.0)
        order = np.argsort(values, kind="stable")
        logs = np.log(np.maximum(values[order], 1e-300))
        steps = np.diff(logs)
        lengths = np.empty(len(values))
        begin = 0
        for end in [*(np.flatnonzero(steps > 0.15 * spread[order][1:]) + 1).tolist(), len(values)]:
            lengths[order[begin:end]] = values[order[begin:end]].mean()
            begin = end
        return lengths

    def _distances(self, edges: Edges, latency: Floats) -> Floats:
        vertices = len(self._delays)
        graph = weigh_edges(np.stack(edges, axis=1), latency, vertices)
        distance: Floats = shortest_path(graph, directed=False)
        return distance

    def _fit_line(self, distance: Floats) -> tuple[float, float]:
        """Fit delay = overhead + scale * distance with relative errors; return overhead and scale."""
        x, y = distance[self._above], self._delays[self._above]
        weight = 1 / np.square(self._noisy[self._above])
        if not self._free:
            return 0.0, float((weight * x * y).sum() / (weight * x * x).sum())
        total, mean_x, mean_y = weight.sum(), np.average(x, weights=weight), np.average(y, weights=weight)
        spread = float((weight * np.square(x - mean_x)).sum())
        if spread <= 1e-12 * float(total) * float(mean_x) ** 2:
            return 0.0, float(mean_y / mean_x)
        scale = float((weight * (x - mean_x) * (y - mean_y)).sum()) / spread
        overhead = float(mean_y - scale * mean_x)
        return (overhead, scale) if overhead > 0 else (0.0, float((weight * x * y).sum() / (weight * x * x).sum()))
