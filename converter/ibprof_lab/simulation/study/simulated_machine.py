# SPDX-License-Identifier: Apache-2.0
"""The machine that a command's options describe: fabric, hardware, servers, placements and effort."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ibprof.errors import UsageError, quote_found
from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.measure.message_latency import Effort
from ibprof_lab.simulation.study.cell import Setting
from ibprof_lab.simulation.study.loaded_fabric import NetworkSource, load_network
from ibprof_lab.simulation.study.named_hosts import NamedHosts, Refuse
from ibprof_lab.simulation.workload.host_assignment import JobPlacement, ServerPlacement

HOSTS_PER_SERVER = 18
"""Hosts of the fabric for each I/O server, where the number of servers is not given."""


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """Options that describe a machine.

    Attributes:
        fabric: path of a dump, or the name of a synthetic fabric; None: the preset's.
        servers: number of I/O servers, or names of their hosts; None: one for every 18 hosts.
        server_placement: of servers that are not named; None: isolated.
        job_placement: of jobs without named hosts.
        adaptive: whether packets choose among shortest routes.
        hardware: what dumps do not state.
        effort: how long each simulation is measured; None: the preset's.
        routes: where routes come from, as `parse_routes` returns it; None: tables, or a model without any.
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
    """Return the setting of simulations on a machine.

    Raises:
        UsageError: an option is invalid on this fabric.
        InputError: the fabric cannot be read.
    """
    if not options.fabric:
        raise UsageError("--fabric: expected a file or the name of a synthetic fabric, found nothing")
    hardware = options.hardware
    if hardware.lane_bytes < (packet := hardware.packet_bytes):
        raise UsageError(f"--lane: expected at least the {packet} bytes of a packet, found {hardware.lane_bytes}")
    hosts = load_network(NetworkSource(options.fabric, options.routes), hardware)[1].hosts
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
    """Return what makes the errors of an option's value."""
    return lambda expected, found: UsageError(f"{name}: expected {expected}, found {quote_found(found)}")
