# SPDX-License-Identifier: Apache-2.0
"""One simulation of a study as data: what is simulated, the key of its result, and the result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.measure.message_latency import Effort, Latency
from ibprof_lab.simulation.study.loaded_fabric import NetworkSource, digest_network
from ibprof_lab.simulation.workload.host_assignment import JobPlacement, ServerPlacement
from ibprof_lab.simulation.workload.workloads import Role, Workload, digest_messages

RESULT_SCHEMA = 4
"""Version of keys and results: raised when a description changes, or when the same cell gets other figures."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Properties that the simulations of a study share.

    Attributes:
        fabric: path of a dump, or the name of a synthetic fabric.
        hardware: what dumps do not state.
        adaptive: whether packets choose among shortest routes.
        servers: number of I/O servers.
        server_hosts: hosts of the servers by number; empty: sampled by `server_placement`.
        server_placement, job_placement: placement of servers and jobs whose hosts are not named.
        effort: how long each simulation is measured.
        routes: as in `NetworkSource`.
    """

    fabric: str
    hardware: Hardware = field(default_factory=Hardware)
    adaptive: bool = False
    servers: int = 0
    server_hosts: tuple[int, ...] = ()
    server_placement: ServerPlacement = ServerPlacement.ISOLATED
    job_placement: JobPlacement = JobPlacement.RANDOM_NODE
    effort: Effort = field(default_factory=Effort)
    routes: str | None = None

    @property
    def network(self) -> NetworkSource:
        """The network that is simulated."""
        return NetworkSource(self.fabric, self.routes)


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulation.

    Attributes:
        setting: of the study.
        workloads: all jobs with hosts, running or not: a job that runs alone keeps its hosts.
        running: names of the jobs that run.
        measured: name of the job whose latency is wanted.
        seed: of hosts, partners, starts and jitter.
    """

    setting: Setting
    workloads: tuple[Workload, ...]
    running: tuple[str, ...]
    measured: str
    seed: int

    @property
    def is_alone(self) -> bool:
        """Return whether the measured job runs alone: a baseline."""
        return self.running == (self.measured,)

    @property
    def is_measured_whole(self) -> bool:
        """Return whether all messages of the effort are measured, even where the mean looks settled earlier.

        Adaptive routes fill queues slowly: means hold still for tens of messages and then grow on. Large messages of
        a recorded run are rare: means hold still before the first of them.
        """
        (measured,) = (each for each in self.workloads if each.name == self.measured)
        return self.setting.adaptive or (measured.role is Role.PROFILE and not measured.follows_time_line)

    def describe(self) -> dict[str, Any]:
        """Return all that the result depends on, as plain values.

        Of a job that does not run these are only its name and its hosts, so that studies share baselines.
        """
        setting = asdict(self.setting)
        del setting["fabric"]  # a path, which says nothing of the fabric's links
        del setting["routes"]  # the network's digest has the routes themselves
        if not self.setting.hardware.nic_gap_ns:
            del setting["hardware"]["nic_gap_ns"]  # so that results of earlier versions are found
        if not self.setting.effort.steady:
            del setting["effort"]["steady"]
        whole = {
            "schema": RESULT_SCHEMA,
            "network": digest_network(self.setting.network),
            **setting,
            "jobs": [_describe_workload(each, each.name in self.running) for each in self.workloads],
            "running": self.running,
            "measured": self.measured,
            "seed": self.seed,
        }
        described: dict[str, Any] = _to_plain(whole)
        return described

    @property
    def key(self) -> str:
        """Return a digest of the description: equal for equal simulations."""
        text = json.dumps(self.describe(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def _describe_workload(workload: Workload, runs: bool) -> dict[str, Any]:
    described = asdict(workload)
    if not workload.adapters:
        del described["adapters"]  # so that results of earlier versions are found
    if workload.role is not Role.REPLAY:
        del described["byte_ns"], described["waits_late"]  # so too
    if workload.profile:
        described["profile"] = digest_messages(workload)  # as with the fabric, the content counts
    return described if runs else {name: described[name] for name in ("name", "role", "share", "profile", "hosts")}


def _to_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_plain(each) for each in value]
    return value.value if isinstance(value, Enum) else value


def make_cells(setting: Setting, workloads: Sequence[Workload], measured: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the baseline of a job and its run with all jobs, for each seed."""
    everyone = tuple(each.name for each in workloads)
    return [
        Cell(setting, tuple(workloads), running, measured, seed)
        for seed in seeds
        for running in ((measured,), everyone)
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a simulation.

    Attributes:
        key: of the cell.
        latency: of the measured job.
        packet_hops, cpu_seconds: the work done.
        whole_ns: job -> time that each client took for all of its messages, of running jobs whose clients end.
    """

    key: str
    latency: Latency
    packet_hops: int
    cpu_seconds: float
    whole_ns: dict[str, list[float]]
