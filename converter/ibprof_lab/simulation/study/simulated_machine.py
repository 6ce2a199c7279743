# SPDX-License-Identifier: Apache-2.0
"""The simulated machine: its options, and the assignment of named and recorded hosts to servers and jobs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import IbprofError, UsageError, quote_found
from ibprof.load import load_profile
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.traffic.adapter_policies import choose_adapters, describe_nic, number_on_host
from ibprof_converter.traffic.hosts import HostIndex, find_hosts
from ibprof_converter.traffic.rank_placement import describe_other_rails, place_ranks_as_recorded
from ibprof_converter.traffic.training_jobs import is_training
from ibprof_lab.lab_choices import HOSTS_PER_SERVER, JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.measure.message_latency import Effort
from ibprof_lab.simulation.study.cell import NetworkSource, Setting, load_network
from ibprof_lab.simulation.workload.recorded_messages import Recorded
from ibprof_lab.simulation.workload.workloads import Workload, load_recorded

Refuse = Callable[[str, str], IbprofError]
"""Function of two texts, the expected and the found value. It returns the error for an invalid value."""


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """Options that describe a machine.

    Attributes:
        fabric: path of a dump, or the name of a synthetic fabric; None for the preset's fabric.
        servers: number of I/O servers, or names of their hosts; None for one server per `HOSTS_PER_SERVER` hosts.
        server_placement: placement of servers without named hosts; None for `ISOLATED`.
        job_placement: placement of jobs without named hosts.
        adaptive: True for adaptive routing: packets choose among shortest routes.
        hardware: properties of the network that dumps do not contain.
        effort: precision and limits of each simulation; None for the preset's effort.
        routes: source of the routes (see `NetworkSource`).
    """

    fabric: str | None
    servers: int | tuple[str, ...] | None = None
    server_placement: ServerPlacement | None = None
    job_placement: JobPlacement = JobPlacement.RANDOM_NODE
    adaptive: bool = False
    hardware: Hardware = field(default_factory=Hardware)
    effort: Effort | None = None
    routes: str | None = None


def make_setting(options: MachineOptions) -> Setting:
    """Return the properties that all simulations of a machine share.

    Raises:
        UsageError: an option is invalid for this fabric.
        InputError: the fabric cannot be read.
    """
    if not options.fabric:
        raise UsageError("--fabric: expected a file or the name of a synthetic fabric, found nothing")
    hardware = options.hardware
    if hardware.lane_bytes < (packet := hardware.packet_bytes):
        raise UsageError(f"--lane: expected at least the {packet} bytes of a packet, found {hardware.lane_bytes}")
    hosts = load_network(NetworkSource(options.fabric, options.routes), hardware).hosts
    named = options.servers if isinstance(options.servers, tuple) else ()
    count = len(named) if isinstance(options.servers, tuple) else options.servers
    servers = count or max(hosts // HOSTS_PER_SERVER, 1)
    if servers >= hosts:
        raise UsageError(f"--servers: expected fewer than the fabric's {hosts} hosts, found {servers}")
    setting = Setting(
        fabric=options.fabric,
        hardware=hardware,
        adaptive=options.adaptive,
        servers=servers,
        server_placement=options.server_placement or ServerPlacement.ISOLATED,
        job_placement=options.job_placement,
        effort=options.effort or Effort(),
        routes=options.routes,
    )
    if not named:
        return setting
    if options.server_placement:
        raise UsageError("--server-placement applies to servers that --servers does not name")
    server_hosts = NamedHosts(setting).number(named, refuse_option("--servers"))
    if len(server_hosts) >= hosts:
        raise UsageError(f"--servers: expected fewer than the fabric's {hosts} adapters, found {len(server_hosts)}")
    return replace(setting, servers=len(server_hosts), server_hosts=server_hosts)


def refuse_option(name: str) -> Refuse:
    """Return a function that makes the error for an invalid value of a command-line option (see `Refuse`)."""
    return lambda expected, found: UsageError(f"{name}: expected {expected}, found {quote_found(found)}")


class NamedHosts:
    """Finds the simulated hosts of machines by the machines' names.

    A simulated host is one adapter. A machine with several adapters in one subnet has several simulated hosts.
    """

    def __init__(self, setting: Setting) -> None:
        network = setting.load()
        self._fabric = network.subnet.fabric
        self._hosts = find_hosts([self._fabric])
        self._index = HostIndex(self._hosts.name, self._hosts.shared)
        self._of_lid = {lid: host for host, lid in enumerate(self._fabric.port_lid[network.host_port].tolist())}
        self._node = self._fabric.port_node[network.host_port]

    def number(self, names: Sequence[str], refuse: Refuse) -> tuple[int, ...]:
        """Return the indices of all simulated hosts on named machines, in the order of the names.

        Raises:
            IbprofError: from `refuse`, if a name is unknown, or a machine is named twice.
        """
        return tuple(host for machine in self._find_machines(names, refuse) for host in self._adapters_of(machine))

    def _find_machines(self, names: Sequence[str], refuse: Refuse) -> list[int]:
        """Return indices of named machines in `Hosts`. Raises: see `number`."""
        found: dict[int, None] = {}
        for name in names:
            machine = self._index.find(name)
            if machine is None or not self._adapters_of(machine):
                found_name = name + self._index.describe_unknown(name)
                raise refuse(f"hosts of the fabric ({show_some(self._hosts.name)})", found_name)
            if machine in found:
                raise refuse("each host once", f"{name} again")
            found[machine] = None
        return list(found)

    def _adapters_of(self, machine: int) -> list[int]:
        """Return the indices of a machine's simulated hosts, in the natural order of the adapters' names."""
        return self._find_adapters(self._hosts.ports[machine, 0])

    def _find_adapters(self, lids: npt.NDArray[np.int32]) -> list[int]:
        return [self._of_lid[lid] for lid in lids.tolist() if lid in self._of_lid]

    def replay_on(self, names: Sequence[str], recorded: Recorded, refuse: Refuse) -> ReplayedPorts:
        """Place a run's ranks on named machines; the first name is for the recorded host with the lowest rank, and so
        on.

        The ranks on a machine use its adapters in turn.

        Raises:
            IbprofError: from `refuse`, as in `number`, or if the number of machines is not the run's number of hosts.
        """
        machines = self._find_machines(names, refuse)
        first = np.unique(recorded.host, return_index=True)[1]
        if len(machines) != len(first):
            raise refuse(f"as many hosts as the run's {len(first)}", str(len(machines)))
        machine = np.array(machines)[np.argsort(np.argsort(first))][recorded.host]
        turn = number_on_host(recorded.host)
        adapters = [self._find_adapters(self._hosts.turns[each, 0]) for each in machine.tolist()]
        return ReplayedPorts.of(
            [some[number % len(some)] for some, number in zip(adapters, turn.tolist(), strict=True)], recorded
        )

    def name(self, host: int) -> str:
        """Return the machine name of the simulated host with this index."""
        return self._hosts.name[self._machine(host)]

    def _machine(self, host: int) -> int:
        return int(self._hosts.of_node[0][self._node[host]])

    def find_recorded(self, profile: str, recorded: Recorded) -> tuple[ReplayedPorts, tuple[str, ...]]:
        """Find the hosts of a recorded run, and the adapters of its ranks, as `ibprof-view` does.

        Returns:
            The ports of the ranks, and notes for the user. There are no ports if the fabric lacks a recorded host, if
            recorded hosts coincide in the fabric, or if not all ranks were recorded.
        """
        run = load_profile(Path(profile))
        placed = place_ranks_as_recorded(run, self._hosts, [self._fabric], run.world_size)
        chosen = choose_adapters(placed, None)
        first = np.unique(recorded.host, return_index=True)[1]
        found = [self._of_lid.get(lid) for lid in placed.lid[first, 0].tolist()]
        machines = {self._machine(host) for host in found if host is not None}
        if len(machines) == len(found):
            adapter = f"adapter of each rank: {describe_nic(chosen.nic)}" if chosen.nic else None
            notes = filter(None, (adapter, describe_other_rails(run, self._fabric)))
            ports = [self._of_lid[lid] for lid in chosen.lid[:, 0].tolist()]
            return ReplayedPorts.of(ports, recorded), tuple(f"{profile}: {note}" for note in (*placed.notes, *notes))
        lacking = [number for number, host in zip(placed.host[first].tolist(), found, strict=True) if host is None]
        if any(number < 0 for number in lacking):
            why = "not all of its ranks were recorded"
        elif lacking:
            why = f"the fabric has no {show_some([quote_found(run.hosts[number].name) for number in lacking])}"
        else:
            why = "several of its hosts are the same host of the fabric"
        sampled = f"{profile}: its hosts are sampled: {why}"
        if self._hosts.has_several:
            sampled += "; each host is simulated with one adapter, although hosts of the fabric have several"
        return ReplayedPorts(), (sampled,)


@dataclass(frozen=True, slots=True)
class ReplayedPorts:
    """Simulated hosts of a recorded run's ranks.

    Attributes:
        hosts, adapters: see `Workload`.
    """

    hosts: tuple[int, ...] = ()
    adapters: tuple[int, ...] = ()

    @classmethod
    def of(cls, ports: Sequence[int], recorded: Recorded) -> ReplayedPorts:
        """Return the `ReplayedPorts` for a list of simulated hosts, one host per rank."""
        of_host = dict(zip(recorded.host.tolist(), ports, strict=True))
        if all(of_host[host] == port for host, port in zip(recorded.host.tolist(), ports, strict=True)):
            return cls(tuple(of_host[host] for host in sorted(of_host)), ())
        hosts = tuple(dict.fromkeys(ports))
        index = {port: number for number, port in enumerate(hosts)}
        return cls(hosts, tuple(index[port] for port in ports))


def allocate_hosts(
    setting: Setting, workload: Workload, hosts: tuple[int, ...], adapters: tuple[int, ...] = ()
) -> Workload:
    """Assign fixed hosts to a job; the job's share becomes the fraction of these hosts among the compute hosts."""
    network = setting.load()
    return replace(workload, hosts=hosts, adapters=adapters, share=len(hosts) / (network.hosts - setting.servers))


def allocate_named(
    setting: Setting, workload: Workload, names: Sequence[str], named: NamedHosts, taken: dict[int, str], refuse: Refuse
) -> Workload:
    """Assign named hosts to a job. For a recorded run, the order of the names is the order of the recorded hosts,
    sorted by the lowest rank on each.

    Args:
        setting: setting with the fabric and the number of servers.
        named: the fabric's hosts.
        taken: simulated host -> its use; the function adds the job's hosts.
        refuse: function that makes the error for an invalid name.

    Raises:
        IbprofError: from `refuse`, if a name is unknown or occurs twice, a host has another use, or the number of hosts
            is not the recorded run's.
    """
    replayed = ReplayedPorts()
    if workload.is_recorded:
        replayed = named.replay_on(names, load_recorded(workload), refuse)
    hosts = replayed.hosts or named.number(names, refuse)
    for host in hosts:
        if host in taken:
            raise refuse("hosts without another use", f"{named.name(host)}, the host of {taken[host]}")
    taken |= dict.fromkeys(hosts, f"job {workload.name}")
    return allocate_hosts(setting, workload, hosts, replayed.adapters)


def share_rest(workloads: Sequence[Workload], open_ones: Collection[str]) -> list[Workload]:
    """Limit the share of each job in `open_ones` (without fixed hosts) to an equal part of the remaining share."""
    left = max(1 - sum(each.share for each in workloads if each.hosts), 0.0)
    free = [each for each in workloads if each.name in open_ones and not each.hosts]
    return [replace(each, share=min(each.share, left / len(free))) if each in free else each for each in workloads]


def stay_as_recorded(
    setting: Setting, workloads: Sequence[Workload], named: NamedHosts, sampled: Collection[str]
) -> tuple[list[Workload], list[str]]:
    """Assign recorded hosts to recorded runs without fixed hosts, if the recorded hosts are free. A run that was
    recorded on one host gets no fixed hosts, since each of its ranks is simulated on a separate host.

    Args:
        setting: setting with the servers' hosts.
        workloads: all jobs, including jobs with fixed hosts.
        named: the fabric's hosts.
        sampled: names of jobs that get random hosts.

    Returns:
        The jobs, and notes for the user.
    """
    taken = dict.fromkeys(setting.server_hosts, "a server")
    taken |= {host: f"job {each.name}" for each in workloads for host in each.hosts}
    placed: list[Workload] = []
    notes: list[str] = []
    for each in workloads:
        replayed = ReplayedPorts()
        # A training job is modelled, and has no recorded hosts.
        if each.is_recorded and not each.hosts and each.name not in sampled and not is_training(each.profile):
            recorded = load_recorded(each)
            if not recorded.was_on_one_host:
                replayed, told = named.find_recorded(each.profile, recorded)
                if clashes := [
                    f"{named.name(host)} is a host of {taken[host]}" for host in replayed.hosts if host in taken
                ]:
                    replayed, told = (
                        ReplayedPorts(),
                        (f"{each.profile}: its hosts are sampled: {show_some(clashes)}",),
                    )
                notes += told
        taken |= dict.fromkeys(replayed.hosts, f"job {each.name}")
        placed.append(allocate_hosts(setting, each, replayed.hosts, replayed.adapters) if replayed.hosts else each)
    return placed, notes
