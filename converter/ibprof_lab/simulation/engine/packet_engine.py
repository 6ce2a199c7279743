# SPDX-License-Identifier: Apache-2.0
"""The packet engine: a simulation of jobs on a network. A job consists of clients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum, auto
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof.native.headers import kernels_headers
from ibprof.native.libraries import load_kernels
from ibprof_lab.simulation.engine.simulated_network import SimulatedNetwork, find_minimal_ports

_HEADERS = kernels_headers()

NOBODY = _HEADERS.constants["IBP_SIM_NOBODY"]
"""Value of `Step.client` if no client receives the message."""

_ARRAYS = ("end_to", "end_byte_ticks", "end_delay", "end_gap", "host_end", "port_end", "egress", "host_leaf")

_FOREVER = (1 << 64) - 1
_SAMPLES_AT_A_TIME = 1 << 18

interrupted = Event()
"""When set, the simulations of all threads of this process end within seconds."""

SAMPLE = _HEADERS.types["ibp_sim_sample"]
"""Record of a completed step (message): client, other host, start and duration in ticks, bytes."""

STEP = _HEADERS.types["ibp_sim_step"]
"""Record with the members of `Step`, for arrays of many steps."""


class Stop(IntEnum):
    """Reason why `Simulation.run` returned."""

    _generate_next_value_ = _HEADERS.numbers_of("ibp_sim_stop", "IBP_SIM_")
    TIME = auto()
    SAMPLES = auto()
    DONE = auto()
    DEADLOCK = auto()
    UNROUTED = auto()
    HOPS = auto()


@dataclass(frozen=True, slots=True)
class Job:
    """Properties that all clients of a job share. Times are in ticks.

    Attributes:
        interval: time from the completion of a step to the next start, for steps whose `pause` is None.
        window: minimum time from the start of a step to the next start, for steps whose `window` is None; 0 for no
            minimum.
        jitter: `interval` and `window` vary at random, uniformly, by up to this fraction.
        collective: True if each round is one operation of all clients; its jitter is then the same for all clients.
        limit: total number of steps of each client; 0 for no limit.
        round: duration of a round if the job follows a time line; 0 for other jobs. Windows of such a job begin at the
            start of the round, so that late steps catch up.
        sampled: True if `Simulation.run` returns a record of each completed step.
        reads: 0 for writes. For reads, bytes of a client's request; the host answers with the step's bytes.
    """

    name: str
    interval: int = 0
    window: int = 0
    jitter: float = 0.0
    collective: bool = False
    limit: int = 0
    round: int = 0
    sampled: bool = True
    reads: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """A message that a client sends after its previous message is complete and all awaited messages have arrived.

    Attributes:
        host: destination host.
        bytes: message size.
        client: index of the receiving client; `NOBODY` if no client receives the message.
        slot: index of the message, from 0, among all messages that the receiving client gets in a round.
        awaits: number n; this step starts after the messages of slots 0 to n - 1 have arrived at the client in this
            round.
        pause: ticks from the previous step's completion to this step's start; None to use the job's interval.
        window: minimum ticks from the previous step's start to this step's start; in a job with `round`, from the start
            of the round. None to use the job's window.
    """

    host: int
    bytes: int
    client: int = NOBODY
    slot: int = 0
    awaits: int = 0
    pause: int | None = None
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """A process that repeats its steps, one message at a time.

    A round ends when the client has completed all steps and has received all messages of the round.

    Attributes:
        host, job: index of the host, and index of the job.
        steps: steps of one round; many steps may be an array of `STEP`. Several clients may share this object.
        next: index of the step that is executed first.
        arrivals: number of messages that the client receives in a round, one per slot.
        start: start time, ticks.
    """

    host: int
    job: int
    steps: Sequence[Step] | npt.NDArray[Any]
    next: int = 0
    arrivals: int = 0
    start: int = 0

    def destinations(self) -> list[int]:
        """Return the indices of the destination hosts, without duplicates."""
        steps = self.steps
        hosts = steps["host"] if isinstance(steps, np.ndarray) else [step.host for step in steps]
        found: list[int] = np.unique(hosts).tolist()
        return found


@dataclass(frozen=True, slots=True)
class State:
    """Progress of a simulation.

    Attributes:
        now: current tick.
        packet_hops, packets, steps: number of packet hops, packets and steps completed so far.
        skipped_hops: number of packet hops that were skipped (`Simulation.skips_hops`).
        bytes_sent, bytes_arrived: bytes sent by hosts, and bytes received at hosts.
        in_flight: number of packets in the network.
        stop: reason why the last run returned.
    """

    now: int
    packet_hops: int
    packets: int
    steps: int
    bytes_sent: int
    bytes_arrived: int
    in_flight: int
    stop: Stop
    skipped_hops: int = 0


@dataclass(frozen=True, slots=True)
class Ends:
    """Loads of link directions since the start of the simulation.

    Attributes:
        bytes: uint64 [link direction, job], bytes of packets that the link direction admitted.
        busy: uint64 [link direction, job], ticks to transmit these bytes.
        queued: uint64 [link direction], bytes that are now in the link direction's queue, or wait for space in its
            buffer.
        most_queued: uint64 [link direction], largest number of queued or waiting bytes so far on one virtual lane.
    """

    bytes: npt.NDArray[np.uint64]
    busy: npt.NDArray[np.uint64]
    queued: npt.NDArray[np.uint64]
    most_queued: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of clients since the start of the simulation; all arrays are [client].

    Attributes:
        steps, bytes: uint64, number of completed steps and their bytes.
        last: uint64, tick of the last completion.
        busy: bool, True for a client that is executing a step, or waits for messages.
    """

    steps: npt.NDArray[np.uint64]
    bytes: npt.NDArray[np.uint64]
    last: npt.NDArray[np.uint64]
    busy: npt.NDArray[np.bool_]


class Simulation:
    """A simulation of jobs on a network.

    Args:
        jobs, clients: the jobs, and the clients of all jobs.
        adaptive: True if a packet takes the least occupied of all ports on shortest routes; False if it takes the
            table's port.
        lanes: uint8 [switch, switch], virtual lane of packets from one leaf to another; None if all packets use lane 0.
        skip_hops: True to skip hops at which nothing can delay a packet, if the engine supports skipping for these
            arguments. The times of messages then differ only by the order of events within a tick, and loads of link
            directions are not counted.

    Attributes:
        skips_hops: True if the engine skips hops.

    Raises:
        InconsistentError: the host of a client or step does not exist, or memory is exhausted.
        MemoryError: memory is exhausted while skipped hops are prepared.
    """

    def __init__(
        self,
        network: SimulatedNetwork,
        jobs: Sequence[Job],
        clients: Sequence[Client],
        seed: int = 1,
        adaptive: bool = False,
        lanes: npt.NDArray[np.uint8] | None = None,
        skip_hops: bool = False,
    ) -> None:
        self.network = network
        self.jobs = tuple(jobs)
        self.clients = len(clients)
        self.job_of_client = np.array([client.job for client in clients], np.int64)
        self.host_of_client = np.array([client.host for client in clients], np.int64)
        self.steps_of_client = np.array([len(client.steps) for client in clients], np.int64)
        self.is_collective = np.array([job.collective for job in jobs])
        kernels = load_kernels()
        self._kernels, self._lib = kernels, kernels.lib
        self._kept: list[Any] = []
        arguments = self._network_struct(adaptive, lanes), *self._job_structs(), *self._client_structs(clients)
        made = self._lib.ibp_sim_new(*arguments, seed)
        if made == kernels.ffi.NULL:
            raise InconsistentError("a job has clients or steps on a host that does not exist, or memory is exhausted")
        self._sim = kernels.ffi.gc(made, self._lib.ibp_sim_free)
        skips = self._lib.ibp_sim_skip_hops(self._sim) if skip_hops else 0
        if skips < 0:
            raise MemoryError
        self.skips_hops = bool(skips)
        self._samples = np.zeros(max(_SAMPLES_AT_A_TIME, 2 * self.clients), SAMPLE)

    def run(self, until: int | None = None, hops: float = math.inf) -> npt.NDArray[Any]:
        """Continue until a tick, until the buffer of samples is full, or until no event is left.

        Args:
            until: last tick; None for no limit.
            hops: the run returns within a few seconds after this number of packet hops since the start of the
                simulation.

        Returns:
            `SAMPLE` [step], the steps completed in this run, in order of completion; the next run overwrites them.

        Raises:
            InconsistentError: a forwarding table has no route to a host, or a route leads to a wrong host.
            KeyboardInterrupt: `interrupted` is set.
        """
        buffer = self._kernels.ffi.cast("struct ibp_sim_sample *", self._samples.ctypes.data)
        count = 0
        while True:
            if interrupted.is_set():
                raise KeyboardInterrupt
            room = len(self._samples) - count
            more = self._lib.ibp_sim_run(self._sim, _FOREVER if until is None else until, buffer + count, room)
            if more < 0:
                raise MemoryError
            count += more
            state = self._look()
            if state.stopped != Stop.HOPS or state.packet_hops >= hops:
                break
        if state.stopped == Stop.UNROUTED:
            fabric, ends = self.network.subnet.fabric, self.network.port_end[state.switch_without_route]
            end = int(ends[ends >= 0][0])
            raise InconsistentError(
                f"switch {fabric.node_name[int(fabric.link_node[end // 2, end % 2])]!r} has no path to "
                f"{self.network.host_names[state.host_without_route]!r}"
            )
        return self._samples[:count]

    @property
    def state(self) -> State:
        """Progress of the simulation."""
        seen = self._look()
        counts = {each.name: getattr(seen, each.name) for each in fields(State) if each.name != "stop"}
        return State(stop=Stop(seen.stopped), **counts)

    def look_at_ends(self) -> Ends:
        """Return the loads of link directions.

        Raises:
            ValueError: the engine skips hops.
        """
        if self.skips_hops:
            raise ValueError("loads are counted only if every hop is simulated")
        ends = len(self.network.end_to)
        shapes = (ends, len(self.jobs)), (ends, len(self.jobs)), ends, ends
        found = Ends(*(np.zeros(shape, np.uint64) for shape in shapes))
        arrays = found.bytes, found.busy, found.queued, found.most_queued
        self._lib.ibp_sim_ends(self._sim, *(self._kernels.pointer(each) for each in arrays))
        return found

    def look_at_clients(self) -> Progress:
        """Return the progress of the clients."""
        steps, bytes_, last = np.zeros((3, self.clients), np.uint64)
        found = Progress(steps, bytes_, last, np.zeros(self.clients, np.bool_))
        arrays = found.steps, found.bytes, found.last, found.busy
        self._lib.ibp_sim_clients(self._sim, *(self._kernels.pointer(each) for each in arrays))
        return found

    def find_waits(self, only_stuck: bool = False) -> npt.NDArray[np.uint32]:
        """Return link directions of two buffers for each waiting packet, uint32 [packet, 2]: its buffer, and the
        awaited one.

        Args:
            only_stuck: True to find only packets that will never move again.
        """
        none = self._kernels.ffi.NULL
        count = self._lib.ibp_sim_waits(self._sim, only_stuck, none, none, 0)
        holds, wants = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
        pointers = self._kernels.pointer(holds), self._kernels.pointer(wants)
        self._lib.ibp_sim_waits(self._sim, only_stuck, *pointers, count)
        return np.stack([holds, wants], axis=1)

    def _look(self) -> Any:
        state = self._kernels.ffi.new("struct ibp_sim_state *")
        self._lib.ibp_sim_look(self._sim, state)
        return state

    # -- data for the C engine

    def _keep(self, array: npt.NDArray[Any]) -> Any:
        array = np.ascontiguousarray(array)
        self._kept.append(array)
        return self._kernels.pointer(array)

    def _network_struct(self, adaptive: bool, lanes: npt.NDArray[np.uint8] | None) -> Any:
        network, hardware = self.network, self.network.hardware
        struct = self._kernels.ffi.new("struct ibp_sim_network *")
        struct.hosts, struct.switches = network.hosts, network.switches
        struct.ends, struct.width = len(network.end_to), network.port_end.shape[1]
        for name in _ARRAYS:
            setattr(struct, name, self._keep(getattr(network, name)))
        struct.end_capacity = self._keep(np.full(len(network.end_to), hardware.lane_bytes, np.uint32))
        struct.minimal = self._keep(find_minimal_ports(network)) if adaptive else self._kernels.ffi.NULL
        struct.lane = self._kernels.ffi.NULL if lanes is None else self._keep(lanes)
        struct.lanes, struct.packet_bytes = 1 if lanes is None else int(lanes.max()) + 1, hardware.packet_bytes
        struct.message_step_bytes = hardware.message_step_bytes
        self._kept.append(struct)
        return struct

    def _job_structs(self) -> tuple[Any, int]:
        structs = self._kernels.ffi.new("struct ibp_sim_job[]", len(self.jobs))
        for struct, job in zip(structs, self.jobs, strict=True):
            struct.jitter, struct.alike, struct.limit = round(job.jitter * 65536), job.collective, job.limit
            struct.round, struct.sampled, struct.reads = job.round, job.sampled, job.reads
        return structs, len(self.jobs)

    def _client_structs(self, clients: Sequence[Client]) -> tuple[Any, int, Any, int]:
        structs = self._kernels.ffi.new("struct ibp_sim_client[]", max(len(clients), 1))
        first: dict[tuple[int, int], int] = {}
        rounds: list[npt.NDArray[Any]] = [np.zeros(0, STEP)]
        count = 0
        for struct, client in zip(structs, clients, strict=False):
            # Clients with the same object `steps`, such as I/O clients, share one copy of the steps in the engine.
            shared = id(client.steps), client.job
            if shared not in first:
                first[shared] = count
                rounds.append(_as_array(client.steps, self.jobs[client.job]))
                count += len(client.steps)
            struct.host, struct.job, struct.start = client.host, client.job, client.start
            struct.first_step, struct.steps = first[shared], len(client.steps)
            struct.next, struct.arrivals = client.next, client.arrivals
        steps = np.concatenate(rounds)
        pointer = self._kernels.ffi.cast("struct ibp_sim_step *", steps.ctypes.data)
        self._kept.append(steps)
        return structs, len(clients), pointer, count


def _as_array(steps: Sequence[Step] | npt.NDArray[Any], job: Job) -> npt.NDArray[Any]:
    if isinstance(steps, np.ndarray):
        return steps.astype(STEP, copy=False)
    array = np.zeros(len(steps), STEP)
    for name in ("host", "client", "slot", "awaits", "bytes"):
        array[name] = [getattr(step, name) for step in steps]
    array["pause"] = [job.interval if step.pause is None else step.pause for step in steps]
    array["window"] = [job.window if step.window is None else step.window for step in steps]
    return array
