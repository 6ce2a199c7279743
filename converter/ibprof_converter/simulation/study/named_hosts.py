# SPDX-License-Identifier: Apache-2.0
"""Hosts that servers and jobs are given by name, and those that a recorded run was on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ibprof.errors import IbprofError, quote_found
from ibprof.load import load_profile
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.simulation.study.cell import Setting
from ibprof_converter.simulation.study.loaded_fabric import load_network
from ibprof_converter.simulation.workload.recorded_messages import Recorded
from ibprof_converter.simulation.workload.workloads import Role, Workload, load_recorded
from ibprof_converter.traffic.hosts import HostIndex, find_hosts
from ibprof_converter.traffic.rank_placement import place_ranks_as_recorded

DRAWN = "drawn"
"""In place of names: the hosts of a recorded run are sampled as those of other jobs, whatever the recording says."""

Refuse = Callable[[str, str], IbprofError]
"""Makes the error of what was expected and what was found."""


class NamedHosts:
    """The hosts of a simulated fabric by their names."""

    def __init__(self, setting: Setting) -> None:
        _, network, _ = load_network(setting.fabric, setting.hardware)
        self._fabric = network.subnet.fabric
        self._hosts = find_hosts([self._fabric])
        self._index = HostIndex(self._hosts.name, self._hosts.shared)
        self._of_lid = {lid: host for host, lid in enumerate(self._fabric.port_lid[network.host_port].tolist())}
        self._node = self._fabric.port_node[network.host_port]

    def number(self, names: Sequence[str], refuse: Refuse) -> tuple[int, ...]:
        """Return the numbers of hosts, in their order.

        Raises:
            IbprofError: what `refuse` makes, of a name that is no host's, and of a host that is named twice.
        """
        found: dict[int, None] = {}
        for name in names:
            index = self._index.find(name)
            host = None if index is None else self._of_lid.get(int(self._hosts.lid[index, 0]))
            if host is None:
                why = ", which several adapters are called" if self._index.is_shared(name) else ""
                raise refuse(f"hosts of the fabric ({show_some(self._hosts.name)})", name + why)
            if host in found:
                raise refuse("each host once", f"{name} again")
            found[host] = None
        return tuple(found)

    def name(self, host: int) -> str:
        """Return the name of a host by its number."""
        return self._hosts.name[int(self._hosts.of_node[0][self._node[host]])]

    def find_recorded(self, profile: str, recorded: Recorded) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Find the hosts that a run was on, as `ibprof-view` does.

        Returns:
            A host for each of the run's, none where the fabric lacks one; and what to tell the user.
        """
        run = load_profile(Path(profile))
        placed = place_ranks_as_recorded(run, self._hosts, [self._fabric], run.world_size)
        first = np.unique(recorded.host, return_index=True)[1]
        found = [self._of_lid.get(lid) for lid in placed.lid[first, 0].tolist()]
        hosts = tuple(host for host in found if host is not None)
        if len(set(hosts)) == len(found):
            return hosts, tuple(f"{profile}: {note}" for note in placed.notes)
        lacking = [number for number, host in zip(placed.host[first].tolist(), found, strict=True) if host is None]
        if any(number < 0 for number in lacking):
            why = "not all of its ranks were recorded"
        elif lacking:
            why = f"the fabric has no {show_some([quote_found(run.hosts[number].name) for number in lacking])}"
        else:
            why = "several of its hosts are one of the fabric"
        return (), (f"{profile}: its hosts are sampled: {why}",)


def give_hosts(setting: Setting, workload: Workload, hosts: tuple[int, ...]) -> Workload:
    """Return a job hosts of its own instead of a share of them."""
    _, network, _ = load_network(setting.fabric, setting.hardware)
    return replace(workload, hosts=hosts, share=len(hosts) / (network.hosts - setting.servers))


def give_named(
    setting: Setting, workload: Workload, names: Sequence[str], named: NamedHosts, taken: dict[int, str], refuse: Refuse
) -> Workload:
    """Return a job the hosts that are named for it; those of a recorded run are in the order of their first ranks.

    Args:
        setting: of the fabric and the number of servers.
        workload: the job.
        names: of hosts.
        named: the fabric's hosts.
        taken: hosts that have a use already, and which; the job's are added.
        refuse: makes the errors.

    Raises:
        IbprofError: what `refuse` makes, of names that are no host's, of hosts that have a use already or are named
            twice, and where they are not as many as the recorded run's.
    """
    hosts = named.number(names, refuse)
    for host in hosts:
        if host in taken:
            raise refuse("hosts of nothing else", f"{named.name(host)}, which is of {taken[host]}")
    taken |= dict.fromkeys(hosts, f"job {workload.name}")
    if workload.role is Role.PROFILE:
        first = np.unique(load_recorded(workload).host, return_index=True)[1]
        if len(hosts) != len(first):
            raise refuse(f"as many as the run's {len(first)}", str(len(hosts)))
        hosts = tuple(np.array(hosts)[np.argsort(np.argsort(first))].tolist())
    return give_hosts(setting, workload, hosts)


def share_rest(workloads: Sequence[Workload], open_ones: Collection[str]) -> list[Workload]:
    """Let jobs whose share nobody states have no more than what those leave whose hosts are known."""
    left = max(1 - sum(each.share for each in workloads if each.hosts), 0.0)
    free = [each for each in workloads if each.name in open_ones and not each.hosts]
    return [replace(each, share=min(each.share, left / len(free))) if each in free else each for each in workloads]


def stay_as_recorded(
    setting: Setting, workloads: Sequence[Workload], named: NamedHosts, sampled: Collection[str]
) -> tuple[list[Workload], list[str]]:
    """Put recorded runs that were given no hosts where they ran, if they can be there.

    A run on one host stays nowhere: each of its ranks is given a host of its own.

    Args:
        setting: with the servers' hosts.
        workloads: the jobs, those that were named hosts with them.
        named: the fabric's hosts.
        sampled: names of jobs whose hosts are to be sampled in any case.

    Returns:
        The jobs, and what to tell the user.
    """
    taken = dict.fromkeys(setting.server_hosts, "a server")
    taken |= {host: f"job {each.name}" for each in workloads for host in each.hosts}
    placed: list[Workload] = []
    notes: list[str] = []
    for each in workloads:
        hosts: tuple[int, ...] = ()
        if each.role is Role.PROFILE and not each.hosts and each.name not in sampled:
            recorded = load_recorded(each)
            if not recorded.was_on_one_host:
                hosts, told = named.find_recorded(each.profile, recorded)
                if clashes := [f"{named.name(host)} is of {taken[host]}" for host in hosts if host in taken]:
                    hosts, told = (), (f"{each.profile}: its hosts are sampled: {show_some(clashes)}",)
                notes += told
        taken |= dict.fromkeys(hosts, f"job {each.name}")
        placed.append(give_hosts(setting, each, hosts) if hosts else each)
    return placed, notes
