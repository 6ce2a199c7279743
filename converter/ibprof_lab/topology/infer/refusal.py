# SPDX-License-Identifier: Apache-2.0
"""Refusal of an inferred topology: why an answer is not to be relied on."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import format_seconds
from ibprof_lab.topology.infer.candidate import FLOOR, Candidate, find_attached_switches
from ibprof_lab.topology.infer.clock_steps import ClockSteps
from ibprof_lab.topology.infer.model_choice import ModelChoice
from ibprof_lab.topology.infer.nested_levels import NearGroup
from ibprof_lab.topology.model.inferred_topology import InferredTopology

Splits = AbstractSet[frozenset[int]]
"""Hosts on one side of each link."""

WEAK = 0.7
"""Support of an edge below which an answer is refused.

Source: D. M. Hillis and J. J. Bull, "An empirical test of bootstrapping as a method for assessing confidence in
phylogenetic analysis", Systematic Biology 42, 1993: groups of 70% and more are mostly real ones.
"""

_NEARLY_A_SWITCH = 3.5
"""Times the errors' deviation. Hosts that are nearer to one another by more may have a switch."""

_FEWEST_TOGETHER, _FEW_TOGETHER = 2, 3
"""Hosts of a switch to which another may belong that one wrong delay sets apart."""


def refuse(topology: InferredTopology, choice: ModelChoice, measured: npt.NDArray[np.bool_]) -> str | None:
    """Return why an answer is not to be relied on."""
    weak = np.flatnonzero(topology.support < WEAK)
    if len(weak):
        worst = int(weak[np.argmin(topology.support[weak])])
        a, b = (topology.names[end] for end in topology.edge[worst])
        return (
            f"{len(weak)} of {len(topology.edge)} links were found again in less than {WEAK:.0%} of the resampled "
            f"matrices, the weakest from {a} to {b} in {topology.support[worst]:.0%}"
        )
    near = choice.near
    if near is not None and near.step > _NEARLY_A_SWITCH * near.deviation and near.deviation > FLOOR:
        return describe_near(near, topology.hosts) + ": that may be a switch"
    return _refuse_single_hosts(topology, choice.outliers, measured) if choice.candidate.model != "direct" else None


def _refuse_single_hosts(
    topology: InferredTopology, outliers: npt.NDArray[np.bool_], measured: npt.NDArray[np.bool_]
) -> str | None:
    """Return which host may as well be on a switch next to its own, since delays between them are missing or wrong."""
    hosts = len(topology.hosts)
    switch = find_attached_switches(topology.edge, hosts)
    edge = np.sort(topology.edge, axis=1)
    links = edge[edge[:, 0] >= hosts]
    degree = np.bincount(links.ravel(), minlength=hosts + len(topology.switches))
    for own, other in (*links.tolist(), *links[:, ::-1].tolist()):
        single, group = np.flatnonzero(switch == own), np.flatnonzero(switch == other)
        if len(group) < _FEWEST_TOGETHER:
            continue
        there = f"hosts of {topology.names[other]} ({name_some(topology.hosts, group.tolist())})"
        unknown = single[~measured[np.ix_(single, group)].any(axis=1)]
        if len(unknown):
            host = topology.hosts[unknown[0]]
            return f"no delay between {host} and {there} was measured: it may be on that switch"
        is_end = degree[other] == 1 and len(group) <= _FEW_TOGETHER
        if is_end and len(single) == 1 and outliers[np.ix_(single, group)].any():
            host = topology.hosts[single[0]]
            return f"delays between {host} and {there} deviate too far to show whether it is on it"
    return None


def find_hidden_switch(
    of_shares: Splits, of_alike: Splits, hosts: int, shorter: npt.NDArray[np.bool_]
) -> tuple[int, ...]:
    """Return a few hosts that have a switch if errors are shares of delays, but none if the clock's are alike for all.

    Args:
        of_shares, of_alike: splits of the hosts by the links of the answers under these two assumptions.
        hosts: their number.
        shorter: bool [n, n], whether a delay is shorter than the second answer explains, by more than the clock errs.

    Returns:
        Ascending; empty where there is no such switch.
    """
    every = frozenset(range(hosts))
    sides = (side for split in of_shares - of_alike for side in (split, every - split))
    few = sorted(tuple(sorted(side)) for side in sides if _FEWEST_TOGETHER <= len(side) <= _FEW_TOGETHER)
    return next((group for group in few if shorter[np.ix_(group, group)].any()), ())


def refuse_steps(
    steps: ClockSteps | None, candidate: Candidate, hosts: tuple[str, ...], hidden: Sequence[int]
) -> str | None:
    """Return why delays that a coarse clock measured do not show the links that were found."""
    if steps is None or not (hidden or steps.hides_links_of(candidate, len(hosts))):
        return None
    which = "links that add less than two of these steps"
    if hidden:
        which = f"whether {name_some(hosts, hidden)} have a switch of their own"
    return (
        f"delays are multiples of {format_seconds(steps.seconds)}, and {steps.share:.0%} of them are another multiple "
        f"than is explained: the clock's errors hide {which}"
    )


def describe_near(near: NearGroup, hosts: tuple[str, ...]) -> str:
    """Return which hosts are nearer to one another than errors explain, and by how much."""
    return (
        f"{len(near.hosts)} hosts ({name_some(hosts, near.hosts.tolist())}) are nearer to one another by "
        f"{np.expm1(near.step):.1%}, while errors deviate by {near.deviation:.1%}"
    )


def name_some(hosts: Sequence[str], which: Sequence[int]) -> str:
    """Return the names of the first few hosts of many."""
    names = [hosts[host] for host in which[:5]]
    return ", ".join(names) + (", ..." if len(which) > 5 else "")
