# SPDX-License-Identifier: Apache-2.0
"""The packet engine: jobs of clients on a network, run as far as one likes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof.kernels import load_kernels
from ibprof_converter.simulation.network import SimulatedNetwork, find_minimal_ports

NOBODY = 0xFFFFFFFF
"""Stands for no client at the host that a step sends to."""

_FOREVER = (1 << 64) - 1
_SAMPLES_AT_A_TIME = 1 << 18

SAMPLE = np.dtype(
    [("client", "u4"), ("host", "u4"), ("start", "u8"), ("ticks", "u8"), ("bytes", "u8")],
)
"""A completed step: who waited, the other end, when it began, how long it took (in ticks), its bytes."""


class Stop(IntEnum):
    """Why a run came back; numbers as in ibprof_kernels.h."""

    TIME = 0
    SAMPLES = 1
    DONE = 2
    DEADLOCK = 3
    UNROUTED = 4


@dataclass(frozen=True, slots=True)
class Job:
    """What all clients of a job have in common. Times in ticks.

    Attributes:
        name: of the job.
        interval: from the completion of a step to the start of the next.
        window: from start to start at least; 0 for none.
        jitter: both vary evenly by up to this part of them.
        warm_up: steps of a client that are not sampled.
        limit: steps of a client in all; 0 for no end.
        sampled: whether steps are sampled.
        reads: 0 when bytes go to the other host; else bytes of a request that the host answers with them.
    """

    name: str
    interval: int = 0
    window: int = 0
    jitter: float = 0.0
    warm_up: int = 0
    limit: int = 0
    sampled: bool = True
    reads: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """A message.

    Attributes:
        host: it goes to.
        bytes: of it.
        client: that it is for, `NOBODY` for none.
        awaits: messages that must have come to the sender in this round before it starts.
    """

    host: int
    bytes: int
    client: int = NOBODY
    awaits: int = 0


@dataclass(frozen=True, slots=True)
class Client:
    """A process that goes through its steps again and again, one message at a time.

    Attributes:
        host, job: where it is, index of its job.
        steps: one round.
        next: the step to begin with.
        arrivals: messages that come to it in a round.
        start: tick.
    """

    host: int
    job: int
    steps: Sequence[Step]
    next: int = 0
    arrivals: int = 0
    start: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """How far a simulation has come.

    Attributes:
        now: tick.
        packet_hops, packets, steps: done so far.
        bytes_sent, bytes_arrived: by hosts, at hosts.
        in_flight: packets on their way.
        stop: why the last run came back.
    """

    now: int
    packet_hops: int
    packets: int
    steps: int
    bytes_sent: int
    bytes_arrived: int
    in_flight: int
    stop: Stop


@dataclass(frozen=True, slots=True)
class Ends:
    """Link ends since the beginning.

    Attributes:
        bytes: uint64 [link end, job].
        busy: uint64 [link end], ticks.
        queued, most_queued: uint64 [link end], bytes now and at most.
    """

    bytes: npt.NDArray[np.uint64]
    busy: npt.NDArray[np.uint64]
    queued: npt.NDArray[np.uint64]
    most_queued: npt.NDArray[np.uint64]


class Simulation:
    """Jobs on a network.

    Args:
        network: to run on.
        jobs, clients: what runs.
        seed: of all that is drawn at random.
        adaptive: packets take the least occupied of the ports on shortest ways, instead of the tables'.
        lanes: uint8 [switch, switch], virtual lane of packets from leaf to leaf; None for lane 0.

    Raises:
        InconsistentError: a client or step is at no host, or memory is short.
    """

    def __init__(
        self,
        network: SimulatedNetwork,
        jobs: Sequence[Job],
        clients: Sequence[Client],
        seed: int = 1,
        adaptive: bool = False,
        lanes: npt.NDArray[np.uint8] | None = None,
    ) -> None:
        self.network = network
        self.jobs = tuple(jobs)
        self.clients = len(clients)
        self.job_of_client = np.array([client.job for client in clients], np.int64)
        kernels = load_kernels()
        self._kernels, self._lib = kernels, kernels.lib
        self._kept: list[Any] = []
        arguments = self._network_struct(adaptive, lanes), *self._job_structs(), *self._client_structs(clients)
        made = self._lib.ibp_sim_new(*arguments, seed)
        if made == kernels.ffi.NULL:
            raise InconsistentError("a job has clients or steps where no host is, or memory is short")
        self._sim = kernels.ffi.gc(made, self._lib.ibp_sim_free)
        self._samples = np.zeros(max(_SAMPLES_AT_A_TIME, 2 * self.clients), SAMPLE)

    def run(self, until: int | None = None) -> npt.NDArray[Any]:
        """Go on until a tick, or until there are many samples, or nothing is left to do.

        Returns:
            The samples taken meanwhile, `SAMPLE` [sample], in order of completion; overwritten by the next run.

        Raises:
            InconsistentError: a table leads nowhere.
        """
        buffer = self._kernels.ffi.cast("struct ibp_sim_sample *", self._samples.ctypes.data)
        count = self._lib.ibp_sim_run(self._sim, _FOREVER if until is None else until, buffer, len(self._samples))
        if count < 0:
            raise MemoryError
        state = self._look()
        if state.stopped == Stop.UNROUTED:
            raise InconsistentError(
                f"switch {self._name_switch(state.switch_without_route)} has no way to "
                f"{self.network.host_names[state.host_without_route]!r}"
            )
        return self._samples[:count]

    @property
    def state(self) -> State:
        """How far it has come."""
        seen = self._look()
        return State(
            now=seen.now,
            packet_hops=seen.packet_hops,
            packets=seen.packets,
            steps=seen.steps,
            bytes_sent=seen.bytes_sent,
            bytes_arrived=seen.bytes_arrived,
            in_flight=seen.in_flight,
            stop=Stop(seen.stopped),
        )

    def look_at_ends(self) -> Ends:
        """Give the loads of link ends."""
        count = len(self.network.end_to)
        found = Ends(np.zeros((count, len(self.jobs)), np.uint64), *(np.zeros(count, np.uint64) for _ in range(3)))
        arrays = found.bytes, found.busy, found.queued, found.most_queued
        self._lib.ibp_sim_ends(self._sim, *(self._kernels.pointer(each) for each in arrays))
        return found

    def look_at_clients(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """Give each client's completed steps, the tick of the last one, and whether it is busy or waits."""
        steps, last = np.zeros(self.clients, np.uint64), np.zeros(self.clients, np.uint64)
        busy = np.zeros(self.clients, np.uint8)
        self._lib.ibp_sim_clients(self._sim, *(self._kernels.pointer(each) for each in (steps, last, busy)))
        return steps, last, busy.astype(bool)

    def find_waits(self) -> npt.NDArray[np.uint32]:
        """Give which link ends' packets wait for room at which: uint32 [packet, 2], lanes left out."""
        none = self._kernels.ffi.NULL
        count = self._lib.ibp_sim_waits(self._sim, none, none, 0)
        holds, wants = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
        self._lib.ibp_sim_waits(self._sim, self._kernels.pointer(holds), self._kernels.pointer(wants), count)
        waits: npt.NDArray[np.uint32] = np.stack([holds, wants], axis=1) // np.uint32(self._lanes)
        return waits

    def _look(self) -> Any:
        state = self._kernels.ffi.new("struct ibp_sim_state *")
        self._lib.ibp_sim_look(self._sim, state)
        return state

    def _name_switch(self, switch: int) -> str:
        fabric = self.network.subnet.fabric
        ends = self.network.port_end[switch]
        end = int(ends[ends >= 0][0])
        return repr(fabric.node_name[int(fabric.link_node[end // 2, end % 2])])

    # -- what C reads

    def _keep(self, array: npt.NDArray[Any]) -> Any:
        array = np.ascontiguousarray(array)
        self._kept.append(array)
        return self._kernels.pointer(array)

    def _network_struct(self, adaptive: bool, lanes: npt.NDArray[np.uint8] | None) -> Any:
        network, hardware = self.network, self.network.hardware
        self._lanes = 1 if lanes is None else int(lanes.max()) + 1
        struct = self._kernels.ffi.new("struct ibp_sim_network *")
        struct.hosts, struct.switches = network.hosts, network.switches
        struct.ends, struct.width = len(network.end_to), network.port_end.shape[1]
        for name in ("end_to", "end_byte_ticks", "end_delay", "host_end", "port_end", "egress", "host_leaf"):
            setattr(struct, name, self._keep(getattr(network, name)))
        struct.end_capacity = self._keep(np.full(len(network.end_to), hardware.lane_bytes, np.uint32))
        struct.minimal = self._keep(find_minimal_ports(network)) if adaptive else self._kernels.ffi.NULL
        struct.lane = self._kernels.ffi.NULL if lanes is None else self._keep(lanes)
        struct.lanes, struct.packet_bytes = self._lanes, hardware.packet_bytes
        self._kept.append(struct)
        return struct

    def _job_structs(self) -> tuple[Any, int]:
        structs = self._kernels.ffi.new("struct ibp_sim_job[]", len(self.jobs))
        for struct, job in zip(structs, self.jobs, strict=True):
            struct.interval, struct.window, struct.jitter = job.interval, job.window, round(job.jitter * 65536)
            struct.warm_up, struct.limit = job.warm_up, job.limit
            struct.sampled, struct.reads = job.sampled, job.reads
        return structs, len(self.jobs)

    def _client_structs(self, clients: Sequence[Client]) -> tuple[Any, int, Any, int]:
        structs = self._kernels.ffi.new("struct ibp_sim_client[]", max(len(clients), 1))
        rounds: dict[int, int] = {}
        steps: list[Step] = []
        for struct, client in zip(structs, clients, strict=False):
            # Clients that share a list of steps (of I/O servers, say) share its copy.
            if id(client.steps) not in rounds:
                rounds[id(client.steps)] = len(steps)
                steps.extend(client.steps)
            struct.host, struct.job, struct.start = client.host, client.job, client.start
            struct.first_step, struct.steps = rounds[id(client.steps)], len(client.steps)
            struct.next, struct.arrivals = client.next, client.arrivals
        table = self._kernels.ffi.new("struct ibp_sim_step[]", max(len(steps), 1))
        for entry, step in zip(table, steps, strict=False):
            entry.host, entry.client, entry.awaits, entry.bytes = step.host, step.client, step.awaits, step.bytes
        return structs, len(clients), table, len(steps)
