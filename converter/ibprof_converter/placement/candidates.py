# SPDX-License-Identifier: Apache-2.0
"""Placements side by side: the best one found, and those that anyone would try."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ibprof_converter.placement.placement_problem import Problem, Score, Seats
from ibprof_converter.placement.starting_placements import random_order
from ibprof_converter.placement.swap_search import Found
from ibprof_converter.routing.indexed_tables import NONE
from ibprof_converter.routing.subnet import Subnet

RANDOM_SEEDS = 20

LIMITS = (
    "times are bytes over speed, added up over the whole job along static routes: when they flow, what queues, latency "
    "and the traffic of others are not in them; two placements whose times are close may come out the other way round"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One placement.

    Attributes:
        name: how it came about.
        max_link_seconds: largest time of a link end between switches.
        host_link_seconds: largest time of a host's own link, either way.
        lost_bytes: that no route takes to where they are to go; they are in no time.
    """

    name: str
    max_link_seconds: float
    host_link_seconds: float
    lost_bytes: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a search is told of.

    Attributes:
        rows: the best placement first.
        bound_seconds: no placement has a smaller largest time.
        found: how the search went.
        hosts: host of each rank in the best placement.
        free_hosts, seats: what there was to choose from.
        notes: what else a reader must know, a sentence each.
    """

    rows: tuple[Row, ...]
    bound_seconds: float
    found: Found
    hosts: tuple[str, ...]
    free_hosts: int
    seats: int
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Give it as plain values."""
        best = self.rows[0].max_link_seconds
        found = self.found
        return {
            "max_link_seconds": {row.name: row.max_link_seconds for row in self.rows} | {"bound": self.bound_seconds},
            "host_link_seconds": {row.name: row.host_link_seconds for row in self.rows},
            "lost_bytes": {row.name: row.lost_bytes for row in self.rows},
            "above_bound": best / self.bound_seconds - 1 if self.bound_seconds > 0 else None,
            "ranks": len(self.hosts),
            "free_hosts": self.free_hosts,
            "seats": self.seats,
            "search": {
                "seconds": found.seconds,
                "cut_by_time": found.cut,
                "rounds": found.rounds,
                "proposals": found.proposals,
                "accepted": found.accepted,
            },
            "placement": list(self.hosts),
            "limits": LIMITS,
            "notes": list(self.notes),
        }


class Judge:
    """Times of placements on a fabric, hosts' own links included."""

    def __init__(self, problem: Problem, subnets: Sequence[Subnet]) -> None:
        self._problem = problem
        self._host_seconds_per_byte = _host_links(problem, subnets)

    def row(self, name: str, seats: Seats, score: Score | None = None) -> Row:
        """Judge one placement."""
        score = score or self._problem.score(seats)
        return Row(name, score.max_seconds, self._host_seconds(seats), score.lost)

    def random_rows(self) -> tuple[Row, Row]:
        """Judge `RANDOM_SEEDS` random placements: their median, and the best of them."""
        problem = self._problem
        rows = [self.row("random", random_order(problem.sites, problem.ranks, seed)) for seed in range(RANDOM_SEEDS)]
        median = Row(
            "random",
            statistics.median(row.max_link_seconds for row in rows),
            statistics.median(row.host_link_seconds for row in rows),
            int(statistics.median(row.lost_bytes for row in rows)),
        )
        best = min(rows, key=lambda row: (row.lost_bytes, row.max_link_seconds))
        return median, Row("random_best", best.max_link_seconds, best.host_link_seconds, best.lost_bytes)

    def _host_seconds(self, seats: Seats) -> float:
        problem = self._problem
        neighbours, sites = problem.neighbours, problem.sites
        site = sites.of_seat[seats]
        owner, other = site[neighbours.owner()], site[neighbours.rank]
        row = neighbours.row_of_rails[sites.rails[owner] & sites.rails[other]]
        apart = np.flatnonzero(owner != other)
        greatest = 0.0
        for amount in (neighbours.sent, neighbours.received):
            total = np.zeros((len(sites.host), amount.shape[2]))
            np.add.at(total, owner[apart], amount[apart, row[apart]].astype(np.float64))
            greatest = max(greatest, float((total * self._host_seconds_per_byte).max(initial=0.0)))
        return greatest


def _host_links(problem: Problem, subnets: Sequence[Subnet]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Give the seconds per byte of hosts' own links: float64 [site, rail]; 0 where a speed is not known."""
    lid = problem.sites.lid
    seconds = np.zeros(lid.shape)
    for rail, subnet in enumerate(subnets):
        fabric = subnet.fabric
        link_of_port = {
            (node, number): link
            for link in range(fabric.links)
            for node, number in zip(fabric.link_node[link].tolist(), fabric.link_port[link].tolist(), strict=True)
        }
        for site, value in enumerate(lid[:, rail].tolist()):
            port = int(fabric.lid_port[value])
            link = link_of_port.get((int(fabric.port_node[port]), int(fabric.port_number[port])), NONE)
            if NONE not in {port, link} and fabric.link_gbps[link] > 0:
                seconds[site, rail] = 8 / (fabric.link_gbps[link] * 1e9)
    return seconds
