# SPDX-License-Identifier: Apache-2.0
"""The packet engine: jobs of clients on a network, run until a given time."""

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
from ibprof.native.kernel_library import load_kernels
from ibprof_lab.simulation.engine.simulated_network import SimulatedNetwork, find_minimal_ports

_HEADERS = kernels_headers()

NOBODY = _HEADERS.constants["IBP_SIM_NOBODY"]
"""Stands for no client at the host that a step sends to."""

_ARRAYS = ("end_to", "end_byte_ticks", "end_delay", "end_gap", "host_end", "port_end", "egress", "host_leaf")

_FOREVER = (1 << 64) - 1
_SAMPLES_AT_A_TIME = 1 << 18

interrupted = Event()
"""Ends the simulations of all threads of this process within seconds."""

SAMPLE = _HEADERS.types["ibp_sim_sample"]
"""A completed step: who waited, the other end, when it began, how long it took (in ticks), its bytes."""

STEP = _HEADERS.types["ibp_sim_step"]
"""`Step` in an array, where there are many; all of it given."""


class Stop(IntEnum):
    """Why a run returned."""

    _generate_next_value_ = _HEADERS.numbers_of("ibp_sim_stop", "IBP_SIM_")
    TIME = auto()
    SAMPLES = auto()
    DONE = auto()
    DEADLOCK = auto()
    UNROUTED = auto()
    HOPS = auto()


@dataclass(frozen=True, slots=True)
class Job:
    """The properties that all clients of a job share. Times in ticks.

    Attributes:
        name: of the job.
        interval: from the completion of a step to the start of the next, for steps that do not say.
        window: from start to start at least, for steps that do not say; 0 for none.
        jitter: both vary evenly by up to this part of them.
        collective: its clients' rounds are operations together: both vary by the same part for all of them in a round.
        limit: total steps of a client; 0 for no end.
        round: of a time line: rounds begin at multiples of it, and late steps make up for it; 0 for others.
        sampled: whether steps are sampled.
        reads: 0 when bytes go to the other host; else bytes of a request that the host answers with them.
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
    """A message. It starts when the one before is complete, and what it awaits is there.

    Attributes:
        host: it goes to.
        bytes: of it.
        client: the client that receives it; `NOBODY` for none.
        slot: which of the messages that come to that client in a round it is, from 0.
        awaits: number of slots, from 0 on, whose messages must have come to the sender in this round.
        pause: ticks from the completion of the step before; None for the job's interval.
        window: ticks from the start of the step before at least, with rounds from the round's; None for the job's.
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
    """A process that goes through its steps again and again, one message at a time.

    A round ends when it has sent all of its steps and all messages that come to it in a round are there.

    Attributes:
        host, job: where it is, index of its job.
        steps: one round; clients may share them. An array of `STEP` where there are many.
        next: the step to begin with.
        arrivals: messages that come to it in a round, each in a slot.
        start: tick.
    """

    host: int
    job: int
    steps: Sequence[Step] | npt.NDArray[Any]
    next: int = 0
    arrivals: int = 0
    start: int = 0

    def destinations(self) -> list[int]:
        """Return the hosts that it sends to, each once."""
        steps = self.steps
        hosts = steps["host"] if isinstance(steps, np.ndarray) else [step.host for step in steps]
        found: list[int] = np.unique(hosts).tolist()
        return found


@dataclass(frozen=True, slots=True)
class State:
    """Progress of a simulation.

    Attributes:
        now: tick.
        packet_hops, packets, steps: done so far.
        skipped_hops: of the packet hops, those that were no events; counted when they are skipped.
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
    skipped_hops: int = 0


@dataclass(frozen=True, slots=True)
class Ends:
    """Link directions since the beginning.

    Attributes:
        bytes: uint64 [link direction, job].
        busy: uint64 [link direction, job], ticks.
        queued: uint64 [link direction], bytes that lie there or wait for buffer there now.
        most_queued: uint64 [link direction], the most of them that there were of one virtual lane.
    """

    bytes: npt.NDArray[np.uint64]
    busy: npt.NDArray[np.uint64]
    queued: npt.NDArray[np.uint64]
    most_queued: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Progress:
    """Clients since the beginning; arrays of one length.

    Attributes:
        steps, bytes: uint64, completed steps and their bytes.
        last: uint64, the tick at which the last of them was complete.
        busy: bool, whether it has a message under way or waits for others'.
    """

    steps: npt.NDArray[np.uint64]
    bytes: npt.NDArray[np.uint64]
    last: npt.NDArray[np.uint64]
    busy: npt.NDArray[np.bool_]


class Simulation:
    """Jobs on a network.

    Args:
        network: to run on.
        jobs, clients: what runs.
        seed: of all that is random.
        adaptive: packets take the least occupied of the ports on shortest routes, instead of the tables'.
        lanes: uint8 [switch, switch], virtual lane of packets from leaf to leaf; None for lane 0.
        skip_hops: packets skip the hops on which nothing can delay them, where the engine can find these. Messages
            take the same time, up to the order of what happens at one tick; loads of link directions are not counted.

    Attributes:
        skips_hops: whether packets skip hops.

    Raises:
        InconsistentError: a client or step is at no host, or memory is short.
        MemoryError: memory is short for what skipping takes.
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
            raise InconsistentError("a job has clients or steps where no host is, or memory is short")
        self._sim = kernels.ffi.gc(made, self._lib.ibp_sim_free)
        skips = self._lib.ibp_sim_skip_hops(self._sim) if skip_hops else 0
        if skips < 0:
            raise MemoryError
        self.skips_hops = bool(skips)
        self._samples = np.zeros(max(_SAMPLES_AT_A_TIME, 2 * self.clients), SAMPLE)

    def run(self, until: int | None = None, hops: float = math.inf) -> npt.NDArray[Any]:
        """Go on until a tick, or until there are many samples, or nothing is left to do.

        Args:
            until: the tick; None for none.
            hops: packet hops since the beginning after which it comes back too, some seconds later at most.

        Returns:
            The samples taken meanwhile, `SAMPLE` [sample], in order of completion; overwritten by the next run.

        Raises:
            InconsistentError: a table leads nowhere, or to another host.
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
            raise InconsistentError(
                f"switch {self._name_switch(state.switch_without_route)} has no path to "
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
            ValueError: packets skip hops.
        """
        if self.skips_hops:
            raise ValueError("loads are counted where every hop is simulated")
        ends = len(self.network.end_to)
        shapes = (ends, len(self.jobs)), (ends, len(self.jobs)), ends, ends
        found = Ends(*(np.zeros(shape, np.uint64) for shape in shapes))
        arrays = found.bytes, found.busy, found.queued, found.most_queued
        self._lib.ibp_sim_ends(self._sim, *(self._kernels.pointer(each) for each in arrays))
        return found

    def look_at_clients(self) -> Progress:
        """Return how far clients have come."""
        steps, bytes_, last = np.zeros((3, self.clients), np.uint64)
        found = Progress(steps, bytes_, last, np.zeros(self.clients, np.bool_))
        arrays = found.steps, found.bytes, found.last, found.busy
        self._lib.ibp_sim_clients(self._sim, *(self._kernels.pointer(each) for each in arrays))
        return found

    def find_waits(self, only_stuck: bool = False) -> npt.NDArray[np.uint32]:
        """Return the link direction that each waiting packet came by, and that it waits for: uint32 [packet, 2].

        Args:
            only_stuck: leave out those that will get it.
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
        struct = self._kernels.ffi.new("struct ibp_sim_network *")
        struct.hosts, struct.switches = network.hosts, network.switches
        struct.ends, struct.width = len(network.end_to), network.port_end.shape[1]
        for name in _ARRAYS:
            setattr(struct, name, self._keep(getattr(network, name)))
        struct.end_capacity = self._keep(np.full(len(network.end_to), hardware.lane_bytes, np.uint32))
        struct.minimal = self._keep(find_minimal_ports(network)) if adaptive else self._kernels.ffi.NULL
        struct.lane = self._kernels.ffi.NULL if lanes is None else self._keep(lanes)
        struct.lanes, struct.packet_bytes = 1 if lanes is None else int(lanes.max()) + 1, hardware.packet_bytes
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
            # Clients that share their steps (to I/O servers, say) share the copy of them.
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
