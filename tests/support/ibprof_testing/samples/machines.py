# SPDX-License-Identifier: Apache-2.0
"""Synthetic delays between the hardware threads of several kinds of machines, and effects that disturb the delays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ibprof_testing.samples.shared_errors import Sample
from ibprof_testing.samples.topologies import Matrix

Integers = npt.NDArray[np.int64]
Source = np.random.Generator
Range = tuple[float, float]


@dataclass
class Machine:
    """Delays in ns, the core of each thread, and groups of threads with shorter delays within the group."""

    delays: Matrix
    core: Integers
    groups: list[frozenset[int]]
    noise: float = 0.01
    step: float = 0.0
    missing: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))

    @property
    def count(self) -> int:
        """Return the number of threads."""
        return len(self.core)

    @property
    def alone(self) -> npt.NDArray[np.bool_]:
        """Return which pairs of threads form a group of two. Such a group has a single delay."""
        pairs = np.zeros(self.delays.shape, bool)
        for one, other in (sorted(group) for group in self.groups if len(group) == 2):
            pairs[one, other] = pairs[other, one] = True
        return pairs


def nested(*levels: tuple[int | tuple[int, ...], Range], hops: Range = (0.0, 0.0)) -> Callable[[Source], Machine]:
    """Return a function that draws a machine of nested levels, such as sockets, clusters, and threads of a core.

    Args:
        levels: levels from the outermost to the threads of a core. For each level: the number (or numbers to draw
            from) of parts in a part of the level above, and the range of delays between these parts, ns.
        hops: range of the additional delay of a hop on a grid of cores, ns. Each outermost part has a separate grid.
    """

    def make(draw: Source) -> Machine:
        counts = [int(draw.choice(np.atleast_1d(count))) for count, _ in levels]
        threads = np.arange(int(np.prod(counts)))
        machine = Machine(np.zeros((len(threads),) * 2), threads // counts[-1], [])
        unit = np.zeros(len(threads), np.int64)
        for depth, (count, (_, delay)) in enumerate(zip(counts, levels, strict=True)):
            inside = unit[:, None] == unit
            machine.delays[inside] = draw.uniform(*delay)
            if depth and count > 1:
                machine.groups += [frozenset(np.flatnonzero(unit == each).tolist()) for each in np.unique(unit)]
            unit = threads // int(np.prod(counts[depth + 1 :]))
        per_socket = max(int(machine.core.max() + 1) // (counts[0] if len(levels) > 2 else 1), 1)
        place = machine.core % per_socket
        width = int(np.ceil(np.sqrt(per_socket)))
        grid = place // width, place % width
        far = sum(abs(np.subtract.outer(along, along)) for along in grid)
        apart = np.not_equal.outer(machine.core, machine.core)
        machine.delays += draw.uniform(*hops) * np.where(apart, far - np.mean(far), 0.0)
        return machine

    return make


def _hybrid(draw: Source) -> Machine:
    """Return a machine with fast cores of two threads, and slower cores in clusters of four."""
    fast, clusters = 2 * int(draw.choice([4, 6, 8])), int(draw.choice([1, 2, 4]))
    threads = np.arange(fast + 4 * clusters)
    is_slow = threads >= fast
    slower = np.where(is_slow, draw.uniform(1.05, 1.4), 1.0)
    delays = draw.uniform(30, 40) * np.outer(slower, slower)
    core = np.where(is_slow, threads - fast // 2, threads // 2)
    unit = np.where(is_slow, 1000 + (threads - fast) // 4, core)
    delays[np.equal.outer(unit, unit)] *= draw.uniform(0.35, 0.65)
    delays[np.equal.outer(core, core) & ~is_slow] = draw.uniform(4, 7)
    return Machine(delays, core, [frozenset(np.flatnonzero(unit == each).tolist()) for each in np.unique(unit)])


def _clusters(draw: Source) -> Machine:
    """Return a machine with clusters of unequal size. The cores of the last cluster are slower."""
    sizes = [(4, 4), (4, 4, 2), (4, 4, 4, 4, 2, 2), (5, 5, 2), (6, 4)][int(draw.integers(5))]
    unit = np.repeat(np.arange(len(sizes)), sizes)
    delays = np.full((len(unit),) * 2, draw.uniform(130, 170))
    for each in range(len(sizes)):
        inside = np.equal.outer(unit, unit) & (unit == each)
        delays[inside] = draw.uniform(35, 45) if each < len(sizes) - 1 else draw.uniform(45, 65)
    return Machine(
        delays, np.arange(len(unit)), [frozenset(np.flatnonzero(unit == each).tolist()) for each in np.unique(unit)]
    )


KINDS: dict[str, Callable[[Source], Machine]] = {
    "Zen": nested((2, (100, 140)), (4, (36, 46)), ((1, 2), (12, 26))),
    "Zen, four dies": nested((4, (140, 170)), (2, (100, 120)), ((2, 3, 4), (36, 46))),
    "Zen 2": nested((4, (75, 95)), ((3, 4), (26, 32)), ((1, 2), (9, 14))),
    "Zen 2, two sockets": nested((2, (190, 240)), (8, (85, 110)), ((2, 4), (24, 30))),
    "Zen 3": nested((2, (78, 90)), ((6, 8), (16, 20)), (2, (6, 8))),
    "Zen 5": nested((2, (75, 190)), (8, (16, 20)), (2, (5, 8)), hops=(0.0, 0.8)),
    "ring": nested(((4, 6, 8, 10), (20, 32)), (2, (5, 9)), hops=(0.3, 1.5)),
    "two rings": nested((2, (95, 150)), ((4, 6, 8, 10), (34, 50)), ((1, 2), (8, 14)), hops=(0.2, 2.0)),
    "mesh": nested(((16, 24, 28, 32), (45, 60)), ((1, 2), (8, 14)), hops=(0.3, 2.0)),
    "two meshes": nested((2, (115, 160)), ((12, 16, 20, 28), (45, 60)), (1, (8, 14)), hops=(0.3, 2.0)),
    "sub-NUMA clusters": nested((2, (170, 210)), (2, (75, 90)), ((8, 12), (48, 60)), hops=(0.2, 0.8)),
    "Altra, two sockets": nested((2, (300, 380)), ((16, 24, 32), (38, 50)), (1, (8, 14)), hops=(1.0, 3.0)),
    "Graviton 1": nested((4, (75, 110)), (4, (34, 42)), (1, (8, 14))),
    "Power7, two sockets": nested((2, (180, 300)), ((4, 6, 8), (90, 120)), (4, (20, 40)), hops=(0.0, 3.0)),
    "Power9": nested(((4, 6, 8), (75, 110)), (2, (26, 40)), ((1, 4), (8, 14))),
    "Xeon Phi": nested(((8, 12, 16), (130, 180)), (2, (60, 80)), ((1, 2), (25, 40)), hops=(0.5, 3.0)),
    "Loongson, four dies": nested((4, (130, 200)), (4, (50, 70)), (1, (8, 14))),
    "SPARC T4, two sockets": nested((2, (260, 330)), (4, (95, 110)), (8, (60, 75))),
    "fast and slow cores": _hybrid,
    "Apple M": _clusters,
}


def _slow(machine: Machine, which: Integers, factor: float) -> None:
    own = np.where(np.isin(np.arange(machine.count), which), factor, 1.0)
    machine.delays *= np.outer(own, own)


def _slow_core(machine: Machine, draw: Source) -> None:
    _slow(machine, np.flatnonzero(machine.core == draw.integers(machine.core.max() + 1)), draw.uniform(1.1, 1.6))


def _slow_to_others(machine: Machine, draw: Source) -> None:
    own = machine.core == draw.integers(machine.core.max() + 1)
    machine.delays *= np.where(np.not_equal.outer(own, own), draw.uniform(1.2, 2.0), 1.0)


def _slow_thread(machine: Machine, draw: Source) -> None:
    _slow(machine, draw.integers(machine.count, size=1), draw.uniform(1.1, 1.5))


def _some_slow(machine: Machine, draw: Source) -> None:
    some = draw.choice(machine.count, max(2, machine.count // 10), replace=False)
    _slow(machine, some, draw.uniform(1.05, 1.3))


def _clock(machine: Machine, draw: Source) -> None:
    """Shorten all delays of the threads above a random number, as if the clock rate rose during the measurement."""
    row = np.maximum.outer(np.arange(machine.count), np.arange(machine.count))
    first = draw.integers(machine.count // 4, 3 * machine.count // 4)
    machine.delays *= np.where(row >= first, draw.uniform(0.8, 0.97), 1.0)


def _clocks(machine: Machine, draw: Source) -> None:
    own = np.exp(draw.uniform(0.01, 0.05) * draw.standard_normal(machine.core.max() + 1))[machine.core]
    machine.delays *= np.sqrt(np.outer(own, own))


def _whole_ns(machine: Machine, draw: Source) -> None:
    machine.step = float(draw.choice([1.0, 1.0, 2.0]))


def _coarse(machine: Machine, draw: Source) -> None:
    machine.step = float(draw.choice([3.0, 5.0, 10.0]))


def _two_steps(machine: Machine, draw: Source) -> None:
    machine.step = float(np.median(machine.delays) * draw.uniform(0.03, 0.12))


def _outliers(machine: Machine, draw: Source) -> None:
    chosen = np.triu(draw.random(machine.delays.shape) < 0.02, 1)
    machine.delays *= np.where((chosen | chosen.T) & ~machine.alone, draw.uniform(1.3, 4.0), 1.0)


def _missing(machine: Machine, draw: Source) -> None:
    chosen = np.triu(draw.random(machine.delays.shape) < 0.05, 1)
    machine.missing = (chosen | chosen.T) & ~machine.alone


def _noisy(machine: Machine, draw: Source) -> None:
    machine.noise = draw.uniform(0.04, 0.08)


EFFECTS: dict[str, Callable[[Machine, Source], None]] = {
    "nothing else": lambda _machine, _draw: None,
    "a slow core": _slow_core,
    "a core slow to others": _slow_to_others,
    "a slow thread": _slow_thread,
    "some slow threads": _some_slow,
    "a change of clock": _clock,
    "clocks of cores": _clocks,
    "whole ns": _whole_ns,
    "steps of 3 to 10 ns": _coarse,
    "two multiples of a step": _two_steps,
    "2% outliers": _outliers,
    "5% missing": _missing,
    "4% to 8% noise": _noisy,
}


def measure(kind: str, effect: str, seed: int) -> Sample:
    """Return measured delays of a kind of machine under an effect, with threads in random order."""
    draw = np.random.default_rng([seed, list(KINDS).index(kind), list(EFFECTS).index(effect)])
    machine = KINDS[kind](draw)
    machine.noise = float(draw.choice([0.003, 0.01, 0.02, 0.03]))
    EFFECTS[effect](machine, draw)
    errors = np.triu(draw.standard_normal(machine.delays.shape), 1)
    delays = machine.delays * np.exp(machine.noise * (errors + errors.T))
    if machine.step:
        phase = np.triu(draw.random(delays.shape), 1)
        delays = np.maximum(machine.step * np.floor(delays / machine.step + phase + phase.T), machine.step / 2)
    if len(machine.missing):
        delays[machine.missing] = np.nan
    np.fill_diagonal(delays, 0.0)
    order = draw.permutation(machine.count)
    place = np.argsort(order)
    every = frozenset(range(machine.count))
    groups = [frozenset(place[sorted(group)].tolist()) for group in machine.groups]
    away = {every - group if 0 in group else group for group in groups}
    return Sample(delays[np.ix_(order, order)] * 1e-9, {split for split in away if 1 < len(split) < machine.count - 1})
