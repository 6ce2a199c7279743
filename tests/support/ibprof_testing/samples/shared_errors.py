# SPDX-License-Identifier: Apache-2.0
"""Delays with errors that are not independent: cores on a chip, two rails, queues, heavy tails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ibprof_testing.samples.topologies import Made, Matrix, tree

MESSAGE_US, HOP = 1.0, 0.1
"""If `is_costly`, a message takes 1 µs and each link 0.1 µs, as in a real cluster. Otherwise, only links take time:
1 µs each.
"""


@dataclass(frozen=True)
class Sample:
    """Delays with errors, and the hosts beyond each link, seen from host 0."""

    delays: Matrix
    splits: set[frozenset[int]]


def processor(seed: int) -> Sample:
    """Return delays between the hardware threads of synthetic processors with sockets, complexes, cores and threads.

    The delay of a level is the delay of the level above, divided by 1.7 to 4.5. Within a level, delays differ from core
    to core, and by 3 to 30% with the distance of cores on a grid. Clocks round the delays.
    """
    draw = np.random.default_rng(seed)
    sockets, complexes = int(draw.choice([1, 1, 2, 2, 4])), int(draw.choice([1, 1, 2, 4, 8]))
    cores, threads = int(draw.choice([4, 6, 8, 10, 16])), int(draw.choice([1, 2, 2, 2, 4]))
    while sockets * complexes * cores * threads > 96:
        complexes, cores = (complexes // 2, cores) if complexes > 1 else (1, max(cores // 2, 2))
    count = sockets * complexes * cores * threads
    core = np.arange(count) // threads
    part = core // cores
    socket = part // complexes
    delays = np.full((count, count), 100.0)
    splits: set[frozenset[int]] = set()
    height = 100.0
    for unit, several in ((socket, sockets), (part, complexes), (core, threads)):
        if several == 1:
            continue
        height /= draw.uniform(1.7, 4.5)
        delays[unit[:, None] == unit] = height
        for each in np.unique(unit):
            splits |= _away_from_first(frozenset(np.flatnonzero(unit == each).tolist()), count)
    width = int(np.ceil(np.sqrt(core.max() + 1)))
    place = np.stack([core // width, core % width])
    distance = np.abs(place[:, :, None] - place[:, None, :]).sum(axis=0)
    spread = float(draw.choice([0.03, 0.08, 0.15, 0.3]))
    errors = spread * (distance / max(int(distance.max()), 1) - 0.5) * (core[:, None] != core)
    of_core = draw.standard_normal(count) * draw.choice([0, 0.005, 0.02])
    errors += (of_core[:, None] + of_core) / 2
    errors += _mirror(draw.choice([0.002, 0.01, 0.03, 0.06]) * draw.standard_normal((count, count)))
    delays = np.maximum(np.round(delays * np.exp(errors), 2), 0.01)
    np.fill_diagonal(delays, 0.0)
    return Sample(delays * 1e-9, splits)


def cluster(seed: int, is_costly: bool) -> tuple[Made, Matrix]:
    """Return 48 hosts on two or three levels, and delays in µs with independent errors.

    Args:
        seed: random seed; odd for two levels.
        is_costly: If true, a message takes 1 µs, a link takes 0.1 µs, and errors are 0.5%. If false, only links take
            time, 1 µs each, and errors are 2%.
    """
    draw = np.random.default_rng(1000 + seed)
    made = tree(6, 8) if seed % 2 else tree(3, 2, 8)
    delays = made.delays() * 1e6
    if is_costly:
        delays = MESSAGE_US + HOP * delays
    delays *= np.exp(_mirror((0.005 if is_costly else 0.02) * draw.standard_normal(delays.shape)))
    np.fill_diagonal(delays, 0.0)
    return made, delays


RAILS: dict[str, Callable[[Matrix, Matrix, int, np.random.Generator], Matrix]] = {
    "by rank": lambda a, b, _, __: (a + b) % 2,
    "by round": lambda a, b, hosts, _: (a + b) % (hosts - 1) % 2,
    "by message": lambda a, b, hosts, _: (a * (2 * hosts - a - 1) // 2 + b - a - 1) % 2,
    "by chance": lambda a, _, __, draw: draw.integers(0, 2, a.shape).astype(float),
}
"""Name -> function that returns the rail (0 or 1) of each pair of hosts a < b."""


def over_two_rails(seed: int, is_costly: bool, how: str, ratio: float) -> Sample:
    """Return delays on two rails. Delays of the second rail are `ratio` times as long. `how` is a key of `RAILS`."""
    made, delays = cluster(seed, is_costly)
    one, other = np.indices(delays.shape)
    a, b = np.minimum(one, other), np.maximum(one, other)
    rail = np.triu(RAILS[how](a, b, len(delays), np.random.default_rng(seed)), 1)
    return Sample(delays * np.where(rail + rail.T, ratio, 1.0) * 1e-6, made.splits())


def with_errors(kind: str, seed: int, is_costly: bool) -> Sample:
    """Return delays with errors of a kind of `KINDS`.

    `is_costly` divides the errors of most kinds by five.
    """
    made, delays = cluster(seed, is_costly)
    errors = KINDS[kind](delays, np.random.default_rng(seed), 0.2 if is_costly else 1.0)
    errors = np.where(np.eye(len(delays), dtype=bool), 0.0, errors)
    return Sample((delays + (errors + errors.T) / 2) * 1e-6, made.splits())


def _offsets(delays: Matrix, draw: np.random.Generator, scale: float) -> Matrix:
    own = draw.exponential(0.15 * scale, len(delays))
    return own[:, None] + own


def _far_sockets(delays: Matrix, draw: np.random.Generator, scale: float) -> Matrix:
    own = (draw.random(len(delays)) < 0.5) * 0.3 * scale
    return own[:, None] + own


def _slow_hosts(delays: Matrix, draw: np.random.Generator, scale: float) -> Matrix:
    own = np.zeros(len(delays))
    own[draw.choice(len(delays), 5, replace=False)] = scale
    return own[:, None] + own


def _missing(delays: Matrix, draw: np.random.Generator, _: float) -> Matrix:
    return np.where(draw.random(delays.shape) < 0.1, np.nan, 0.0)


def _asymmetry(delays: Matrix, draw: np.random.Generator, _: float) -> Matrix:
    return delays * 0.02 * np.sign(draw.standard_normal(delays.shape))


def _queues(delays: Matrix, draw: np.random.Generator, scale: float) -> Matrix:
    """Add waiting. Pairs between two leaf switches share a queue: 0.5 to 1.5 times the queue's mean time."""
    leaf = np.arange(len(delays)) // 8
    wait = draw.exponential(0.1 * scale, (6, 6))
    of_pair = (wait + wait.T)[np.ix_(leaf, leaf)] * draw.uniform(0.5, 1.5, delays.shape)
    return np.where(leaf[:, None] != leaf, of_pair, 0.0)


def _queues_of_rounds(delays: Matrix, draw: np.random.Generator, scale: float) -> Matrix:
    """Add waiting: pairs that were measured at the same time share uplinks."""
    hosts = len(delays)
    leaf = np.arange(hosts) // 8
    step = np.add.outer(np.arange(hosts), np.arange(hosts)) % (hosts - 1)
    load = draw.exponential(0.2 * scale, (hosts, 6))
    wait = np.maximum(load[step, leaf[:, None]], load[step, leaf[None, :]])
    return np.where(leaf[:, None] != leaf, wait, 0.0)


def _tails(delays: Matrix, draw: np.random.Generator, scale: float) -> Matrix:
    return delays * draw.pareto(1.5, delays.shape) * 0.05 * scale


KINDS: dict[str, Callable[[Matrix, np.random.Generator, float], Matrix]] = {
    "host offsets": _offsets,
    "far sockets": _far_sockets,
    "slow hosts": _slow_hosts,
    "missing pairs": _missing,
    "asymmetry": _asymmetry,
    "queues of routes": _queues,
    "queues of rounds": _queues_of_rounds,
    "heavy tails": _tails,
}


def _away_from_first(group: frozenset[int], count: int) -> set[frozenset[int]]:
    """Return {group}, or {complement} if host 0 is in the group; an empty set if a side has fewer than two hosts."""
    away = frozenset(range(count)) - group if 0 in group else group
    return {away} if 1 < len(away) < count - 1 else set()


def _mirror(square: Matrix) -> Matrix:
    upper = np.triu(square, 1)
    return upper + upper.T
