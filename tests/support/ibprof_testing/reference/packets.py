# SPDX-License-Identifier: Apache-2.0
"""A slow and plain implementation of the packet simulation's model (docs/simulation.md), independent of the engine.

The model does not define the order of events within a tick. `Reference` supports any order of these events, so that
tests can check that the order does not matter.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from ibprof_lab.simulation.engine.packet_engine import NOBODY, Client, Job, Step


@dataclass(frozen=True)
class Wiring:
    """A network. The hosts have the first node indices, then the switches.

    Attributes:
        end_to: node to which each link direction leads.
        byte_ticks, delay: ticks per byte, and ticks after the last bit, of each link direction.
        host_end: link direction on which each host sends.
        leaf: number (from 0) of each host's switch.
        way: (switch, host) -> link direction towards the host.
        gap: ticks that a host pauses after each packet.
        lane: (source leaf, destination leaf) -> virtual lane; lane 0 for all other pairs.
    """

    hosts: int
    switches: int
    end_to: list[int]
    byte_ticks: list[Fraction]
    delay: list[int]
    host_end: list[int]
    leaf: list[int]
    way: dict[tuple[int, int], int]
    gap: int
    lane: Mapping[tuple[int, int], int] = field(default_factory=dict)


@dataclass
class _Message:
    to: int
    lane: int
    job: int
    unsent: int
    missing: int
    arrived: Callable[[], None]


@dataclass
class _Packet:
    message: _Message
    bytes: int
    at: int | None = None


@dataclass
class _Process:
    client: Client
    position: int
    came: list[int]
    state: str = "pausing"
    begun: int = 0
    done: int = 0
    rounds: int = 0


class Reference:
    """Simulate jobs to their end, or until no packet can move.

    Args:
        packet: size of the largest packet, bytes.
        room: buffer of each virtual lane at each link direction, bytes.
        jobs, clients: without jitter.
        order: seed of a random order of events within a tick; 0 for the order of scheduling.

    Attributes:
        samples: client, other host, start, ticks and bytes of each step, in the order of completion.
        bytes, busy: (link direction, job) -> bytes, busy ticks.
        hops: total number of hops of packets.
        stuck: True if packets are left that cannot move.
    """

    def __init__(
        self, wiring: Wiring, packet: int, room: int, jobs: Sequence[Job], clients: Sequence[Client], order: int
    ) -> None:
        self.wiring, self.packet, self.room, self.jobs = wiring, packet, room, jobs
        self.samples: list[tuple[int, int, int, int, int]] = []
        self.bytes, self.busy = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
        self.hops = self._now = self._events = self._in_flight = 0
        self._taken = Counter[tuple[int, int]]()
        self._free_at, self._queue = Counter[int](), defaultdict[tuple[int, int], deque[_Packet]](deque)
        self._outbox = defaultdict[int, deque[_Message]](deque)
        self._due: list[tuple[int, float, int, Callable[[], None]]] = []
        self._rank = random.Random(order).random if order else lambda: 0.0
        self._processes = [_Process(each, each.next, [0] * each.arrivals) for each in clients]
        for number, each in enumerate(clients):
            self._at(each.start, partial(self._begin, number))
        while self._due:
            self._now, _, _, event = heapq.heappop(self._due)
            event()
        self.stuck = self._in_flight > 0

    def _at(self, tick: int, event: Callable[[], None]) -> None:
        self._events += 1
        heapq.heappush(self._due, (tick, self._rank(), self._events, event))

    # -- clients

    def _step(self, process: _Process) -> Step:
        return process.client.steps[process.position]

    def _begin(self, number: int) -> None:
        process = self._processes[number]
        step, host, job = self._step(process), process.client.host, process.client.job
        if not self._has_come(process, step.awaits):
            process.state = "awaiting"
            return
        process.state, process.begun = "sending", self._now
        done = lambda: self._complete(number)  # noqa: E731
        if step.host == host:
            self._at(self._now + 1, done)
        elif reads := self.jobs[job].reads:
            self._send(host, step.host, reads, job, lambda: self._send(step.host, host, step.bytes, job, done))
        else:
            self._send(host, step.host, step.bytes, job, done)

    @staticmethod
    def _has_come(process: _Process, slots: int) -> bool:
        return all(count > process.rounds for count in process.came[:slots])

    def _complete(self, number: int) -> None:
        process = self._processes[number]
        step = self._step(process)
        self.samples.append((number, step.host, process.begun, self._now - process.begun, step.bytes))
        process.done += 1
        process.position = (process.position + 1) % len(process.client.steps)
        if process.done % len(process.client.steps):
            self._pause(number)
        else:
            process.state = "ending a round"
            self._end_round(number)
        if step.client != NOBODY:
            self._notify(step.client, step.slot)

    def _end_round(self, number: int) -> None:
        process = self._processes[number]
        if self._has_come(process, process.client.arrivals):
            process.rounds += 1
            self._pause(number)

    def _pause(self, number: int) -> None:
        process = self._processes[number]
        step, job = self._step(process), self.jobs[process.client.job]
        process.state = "pausing"
        if not job.limit or process.done < job.limit:
            pause = job.interval if step.pause is None else step.pause
            window = job.window if step.window is None else step.window
            self._at(max(self._now + max(pause, 1), process.begun + window), lambda: self._begin(number))

    def _notify(self, number: int, slot: int) -> None:
        process = self._processes[number]
        process.came[slot] += 1
        if process.state == "awaiting" and self._has_come(process, self._step(process).awaits):
            process.state = "pausing"
            self._at(self._now + 1, lambda: self._begin(number))
        elif process.state == "ending a round":
            self._end_round(number)

    # -- packets

    def _send(self, source: int, to: int, size: int, job: int, arrived: Callable[[], None]) -> None:
        wiring = self.wiring
        lane = wiring.lane.get((wiring.leaf[source], wiring.leaf[to]), 0)
        self._outbox[wiring.host_end[source]].append(_Message(to, lane, job, size, size, arrived))
        self._inject(wiring.host_end[source])

    def _inject(self, end: int) -> None:
        """Send packets of a host's messages in turn. If the next packet does not fit into the buffer, all wait."""
        outbox = self._outbox[end]
        while outbox:
            message = outbox[0]
            size = min(self.packet, message.unsent)
            if self._taken[end, message.lane] + size > self.room:
                return
            outbox.rotate(-1)
            message.unsent -= size
            if not message.unsent:
                outbox.pop()
            self._in_flight += 1
            self._admit(_Packet(message, size), end)

    def _admit(self, packet: _Packet, end: int) -> None:
        lane, behind = packet.message.lane, packet.at
        self._taken[end, lane] += packet.bytes
        sending = math.ceil(packet.bytes * self.wiring.byte_ticks[end])
        self._free_at[end] = max(self._free_at[end], self._now) + sending
        self.bytes[end, packet.message.job] += packet.bytes
        self.busy[end, packet.message.job] += sending
        packet.at = end
        self._at(self._free_at[end] + self.wiring.delay[end], lambda: self._arrive(packet, end))
        if end in self.wiring.host_end:
            self._free_at[end] += self.wiring.gap
        if behind is not None:
            self._free(behind, lane, packet.bytes)

    def _free(self, end: int, lane: int, size: int) -> None:
        self._taken[end, lane] -= size
        self._let_in(end, lane)
        self._inject(end)

    def _let_in(self, end: int, lane: int) -> None:
        queue = self._queue[end, lane]
        while queue and self._taken[end, lane] + queue[0].bytes <= self.room:
            self._admit(queue.popleft(), end)

    def _arrive(self, packet: _Packet, end: int) -> None:
        wiring, message = self.wiring, packet.message
        self.hops += 1
        node = wiring.end_to[end]
        if node >= wiring.hosts:
            ahead = wiring.way[node - wiring.hosts, message.to]
            self._queue[ahead, message.lane].append(packet)
            self._let_in(ahead, message.lane)
            return
        assert node == message.to
        self._in_flight -= 1
        self._free(end, message.lane, packet.bytes)
        message.missing -= packet.bytes
        if not message.missing:
            message.arrived()
