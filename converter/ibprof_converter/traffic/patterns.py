# SPDX-License-Identifier: Apache-2.0
"""Build common communication patterns over all hosts from `pattern:NAME[:NUMBER][:BYTES]`.

Source of the patterns: table 2.1 of "Resource Contention due to Data Movement on HPC Systems" (dissertation), after
Yuan et al., 2013, "A new routing scheme for jellyfish and its performance with HPC workloads". Details that the table
leaves open are chosen here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError, quote_found
from ibprof_converter.choices import PATTERN_PREFIX
from ibprof_converter.traffic.traffic_data import RankTraffic
from ibprof_converter.traffic.training_jobs import TRAINING, build_training, is_training

_SEEDS = 1 << 32

_INTEGER = re.compile(r"[-+]?[0-9]{1,100}")

Pairs = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]
"""Sending host of each pair, and receiving host of each pair; hosts are numbered from 0."""


def build_pattern(text: str, hosts: int) -> RankTraffic:
    """Return the traffic of a pattern, with one rank per host, or with the ranks of a training job.

    Args:
        text: the pattern as given by the user (`pattern:...`).

    Raises:
        UsageError: the pattern is unknown, or its NUMBER is missing.
    """
    if is_training(text):
        return build_training(text)
    name, *numbers = text.removeprefix(PATTERN_PREFIX).split(":")
    known = _PATTERNS.get(name.lower())
    if known is None:
        forms = ", ".join(PATTERN_PREFIX + each.form for each in _PATTERNS.values())
        jobs = ", ".join(f"{PATTERN_PREFIX}{each}:SIZES" for each in TRAINING)
        raise UsageError(
            f"{text}: unknown pattern; expected one of {forms}, each with :BYTES if a pair sends more than 1 byte, "
            f"or one of {jobs}"
        )
    wanted = 1 if known.number else 0
    if not wanted <= len(numbers) <= wanted + 1:
        raise UsageError(f"{text}: expected {PATTERN_PREFIX}{known.form}[:BYTES]")
    argument = _read_integer(text, numbers[0], f"a {known.number}") if known.number else 0
    size = _read_integer(text, numbers[wanted], "a number of bytes") if len(numbers) > wanted else 1
    if hosts < 2:
        raise UsageError(f"{text}: a pattern needs two hosts that can send; the fabric has {hosts}")
    source, destination = known.make(hosts, argument)
    if size < 0 or size * max(len(source), 1) >= 1 << 63:
        raise UsageError(f"{text}: expected at least 0 bytes for each pair, and a sum below 2**63")
    return as_rank_traffic(text, source, destination, size, hosts)


def read_all_to_all(text: str, hosts: int) -> int | None:
    """Return the bytes per pair of an all-to-all; None for other text, too few hosts or too many bytes."""
    name, *numbers = text.removeprefix(PATTERN_PREFIX).split(":")
    if not text.startswith(PATTERN_PREFIX) or name.lower() != "all-to-all" or len(numbers) > 1 or hosts < 2:
        return None
    size = _read_integer(text, numbers[0], "a number of bytes") if numbers else 1
    return size if 0 <= size * hosts**2 < 1 << 63 else None


def as_rank_traffic(
    text: str, source: npt.NDArray[np.integer], destination: npt.NDArray[np.integer], size: int, hosts: int
) -> RankTraffic:
    """Return pairs of hosts as traffic between ranks, with one rank on each host.

    Args:
        source, destination: int [pair], host numbers.
        size: bytes per pair.
    """
    amount = np.broadcast_to(np.uint64(size), len(source))
    return RankTraffic.without_regions(source.astype(np.int32), destination.astype(np.int32), amount, hosts, text)


def _read_integer(text: str, number: str, what: str) -> int:
    # int() alone would also accept "1_000", blanks and digits of other scripts, and refuse very long numbers.
    if not _INTEGER.fullmatch(number):
        raise UsageError(f"{quote_found(text)}: expected {what}, found {quote_found(number)}")
    return int(number)


def _generator(seed: int) -> np.random.RandomState:
    # numpy never changes its legacy generator (NEP 19): in each version, a seed leads to the same pattern.
    if not 0 <= seed < _SEEDS:
        raise UsageError(f"expected a seed from 0 to {_SEEDS - 1}, found {seed}")
    return np.random.RandomState(seed)


def shuffle(count: int, seed: int) -> npt.NDArray[np.intp]:
    """Return the numbers below `count` in a random order. With every version of numpy, a seed leads to the same order.

    Raises:
        UsageError: the seed is negative or has more than 32 bits.
    """
    return _generator(seed).permutation(count).astype(np.intp)


def _all_to_all(hosts: int, _: int) -> Pairs:
    source = np.repeat(np.arange(hosts), hosts - 1)
    step = np.tile(np.arange(1, hosts), hosts)
    return source, (source + step) % hosts


def _shift(hosts: int, distance: int) -> Pairs:
    """Return the pairs in which host i sends to host (i + `distance`) mod `hosts`."""
    if distance % hosts == 0:
        raise UsageError(f"pattern:shift:{distance}: with {hosts} hosts, every host would send to itself")
    source = np.arange(hosts)
    return source, (source + distance % hosts) % hosts  # % first: distance may exceed int64


def _permutation(hosts: int, seed: int) -> Pairs:
    """Return the pairs (host, image) of a random permutation. A host that is its own image does not send."""
    destination = shuffle(hosts, seed)
    source = np.flatnonzero(destination != np.arange(hosts))
    return source, destination[source]


def _bisect(hosts: int, seed: int) -> Pairs:
    """Pair each host of a random half with a host of the other half; of an odd number of hosts, one is left out."""
    order = shuffle(hosts, seed)
    half = hosts // 2
    return order[:half], order[half : 2 * half]


def _grid(dimensions: int, diagonals: bool) -> Callable[[int, int], Pairs]:
    def nearest_neighbours(hosts: int, seed: int) -> Pairs:
        return _send_on_grid(_draw_grid(hosts, dimensions, seed), diagonals)

    return nearest_neighbours


def _draw_grid(hosts: int, dimensions: int, seed: int) -> list[int]:
    """Return the side lengths of a random grid. The last side is as long as the number of hosts allows."""
    generator = _generator(seed)
    sides: list[int] = []
    left = hosts
    for remaining in range(dimensions, 1, -1):
        longest = 1
        while (longest + 1) ** remaining <= left:
            longest += 1
        side = int(generator.randint(min(2, longest), longest + 1))
        sides.append(side)
        left //= side
    return [*sides, left]


def _send_on_grid(sides: list[int], diagonals: bool) -> Pairs:
    """Return the pairs of a periodic grid in which each host sends once to each neighbour."""
    nodes = np.arange(int(np.prod(sides)))
    position = np.stack(np.unravel_index(nodes, sides))
    sources, destinations = [], []
    for step in product((-1, 0, 1), repeat=len(sides)):
        if any(step) and (diagonals or sum(map(abs, step)) == 1):
            neighbour = (position + np.array(step)[:, None]) % np.array(sides)[:, None]
            sources.append(nodes)
            destinations.append(np.ravel_multi_index(tuple(neighbour), sides))
    # List each pair once: on a side of two hosts, the left and the right neighbour are the same host.
    pairs = np.unique(np.concatenate(sources) * len(nodes) + np.concatenate(destinations))
    source, destination = np.divmod(pairs, len(nodes))
    other = source != destination
    return source[other], destination[other]


def _random_pairs(hosts: int, seed: int) -> Pairs:
    """Return from 1 to 50 * `hosts` random pairs; the number is random, and a pair may occur more than once."""
    generator = _generator(seed)
    count = int(generator.randint(1, hosts * 50 + 1))
    source = generator.randint(0, hosts, count)
    return source, (source + generator.randint(1, hosts, count)) % hosts


def _random_destinations(hosts: int, seed: int) -> Pairs:
    """Return pairs in which each host sends to k random hosts; k, from 1 to 50, is random, but equal for all hosts."""
    generator = _generator(seed)
    count = min(int(generator.randint(1, 51)), hosts - 1)
    step = np.stack([1 + generator.permutation(hosts - 1)[:count] for _ in range(hosts)])
    source = np.repeat(np.arange(hosts), count)
    return source, (source + step.ravel()) % hosts


class _Pattern:
    """A pattern: its form, the meaning of its NUMBER (empty without NUMBER), and the function that makes its pairs."""

    def __init__(self, name: str, number: str, make: Callable[[int, int], Pairs]) -> None:
        self.number = number
        self.form = f"{name}:{number.upper()}" if number else name
        self.make = make


_PATTERNS = {
    "all-to-all": _Pattern("all-to-all", "", _all_to_all),
    "bisect": _Pattern("bisect", "seed", _bisect),
    "2dnn": _Pattern("2dnn", "seed", _grid(2, False)),
    "2dnndiag": _Pattern("2dnndiag", "seed", _grid(2, True)),
    "3dnn": _Pattern("3dnn", "seed", _grid(3, False)),
    "3dnndiag": _Pattern("3dnndiag", "seed", _grid(3, True)),
    "random50": _Pattern("random50", "seed", _random_pairs),
    "randn50": _Pattern("randn50", "seed", _random_destinations),
    "permutation": _Pattern("permutation", "seed", _permutation),
    "shift": _Pattern("shift", "distance", _shift),
}
