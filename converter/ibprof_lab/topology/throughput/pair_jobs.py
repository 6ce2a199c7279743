# SPDX-License-Identifier: Apache-2.0
"""Jobs: pairs of hosts that are measured together, and rounds of jobs that do not disturb one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ibprof_lab.topology.model.inferred_routes import InferredRoutes

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PairJob:
    """Pairs of hosts that send at the same time.

    Attributes:
        pairs: hosts; none is in two pairs.
        links: for each pair, the topology's edges between the two.
        alone: what else no other job of a round may use, such as a switch that is too narrow for two.
    """

    pairs: tuple[Pair, ...]
    links: tuple[frozenset[int], ...]
    alone: frozenset[str] = frozenset()

    @property
    def touched(self) -> frozenset[object]:
        """Everything that other jobs of a round must not use: links, hosts, and `alone`."""
        hosts = (f"host {host}" for pair in self.pairs for host in pair)
        return frozenset().union(*self.links, hosts, self.alone)


def make_job(routes: InferredRoutes, pairs: Iterable[Pair], alone: Iterable[str] = ()) -> PairJob:
    """Return a job of pairs."""
    chosen = tuple(pairs)
    return PairJob(chosen, tuple(routes.links(*pair) for pair in chosen), frozenset(alone))


def put_into_rounds(jobs: Sequence[PairJob]) -> list[list[PairJob]]:
    """Put jobs into rounds so that no two of a round share a link: the largest first, each into the first free round.

    Source: Bufe (see `bufe`), section 2.3.3, the greedy scheme.
    """
    rounds: list[list[PairJob]] = []
    taken: list[set[object]] = []
    for job in sorted(jobs, key=lambda each: -len(each.touched)):
        touched = job.touched
        place = next((row for row, there in enumerate(taken) if touched.isdisjoint(there)), len(rounds))
        if place == len(rounds):
            rounds.append([])
            taken.append(set())
        rounds[place].append(job)
        taken[place] |= touched
    return rounds
