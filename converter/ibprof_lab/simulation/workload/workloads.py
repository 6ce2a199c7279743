# SPDX-License-Identifier: Apache-2.0
"""The tasks of jobs: MPI pairs, I/O, a collective or a recorded run, with their sizes and times.

Source: K. A. Brown, "Resource Contention due to Data Movement on HPC Systems", doctoral thesis, Tokyo Institute of
Technology, 2018, chapters 5 and 6.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from ibprof.errors import InconsistentError
from ibprof_lab.simulation.workload import collective_schedules
from ibprof_lab.simulation.workload.goal_trace import load_goal
from ibprof_lab.simulation.workload.program_steps import RankProgram
from ibprof_lab.simulation.workload.recorded_messages import Recorded, load_messages
from ibprof_lab.simulation.workload.recorded_program import load_program


class Role(str, Enum):
    """The task of a job's clients.

    PAIRS: each exchanges messages with a random partner. IO: each writes to (or reads from) all servers in
    turn, beginning with a random one. PROFILE: each rank of a recorded run sends what it sent. REPLAY: each also
    computes and waits. GOAL: each rank of a traced program computes, sends and waits. RING: each sends to its
    neighbour. The others are collectives, message by message.
    """

    PAIRS = "pairs"
    IO = "io"
    PROFILE = "profile"
    REPLAY = "replay"
    GOAL = "goal"
    RING = "ring"
    ALL_TO_ALL = "all-to-all"
    ALL_GATHER = "allgather"
    ALL_REDUCE = "allreduce"
    BROADCAST = "bcast"
    BARRIER = "barrier"


MPI, IO = "mpi", "io"
"""Names of the two jobs whose interference is asked for."""

SCHEDULES: dict[Role, collective_schedules.Schedule] = {
    Role.RING: collective_schedules.send_to_neighbour,
    Role.ALL_TO_ALL: collective_schedules.all_to_all,
    Role.ALL_GATHER: collective_schedules.all_gather,
    Role.ALL_REDUCE: collective_schedules.all_reduce,
    Role.BROADCAST: collective_schedules.broadcast,
    Role.BARRIER: collective_schedules.barrier,
}


@dataclass(frozen=True, slots=True)
class Workload:
    """A job's part of the machine and its traffic. Times in ns.

    Attributes:
        name: of the job.
        role: what its clients do.
        bytes: of a message or request; not of a profile's, which has its own.
        interval_ns: from completion to the next start; of a collective from its end to the next. A profile without one
            goes by its time line.
        window_ns: from start to start at least (a throttle); 0 for none.
        jitter: part by which both vary, evenly; times of a time line do not.
        share: of the compute hosts.
        limit: messages of a client; 0 for no end.
        reads: bytes of a request that is answered with `bytes`; 0 for writes.
        profile: a profile or recording, for the role of that name; a GOAL file for the role goal.
        hosts: numbers of those that it is on, of a profile one for each host of the run; none: they are sampled.
        adapters: for each rank of a profile the index in `hosts` of its adapter, where hosts of the run have several in
            the fabric. Empty: the host of the run.
        byte_ns, waits_late: of a replay, as in `make_program`.
    """

    name: str
    role: Role
    bytes: int
    interval_ns: float = 0.0
    window_ns: float = 0.0
    jitter: float = 0.05
    share: float = 0.5
    limit: int = 0
    reads: int = 0
    profile: str = ""
    hosts: tuple[int, ...] = ()
    adapters: tuple[int, ...] = ()
    byte_ns: float = 0.0
    waits_late: bool = False

    @property
    def is_recorded(self) -> bool:
        """Return whether it is a recorded run."""
        return self.role in {Role.PROFILE, Role.REPLAY}

    @property
    def is_program(self) -> bool:
        """Return whether its ranks compute and wait."""
        return self.role in {Role.REPLAY, Role.GOAL}

    @property
    def follows_time_line(self) -> bool:
        """Return whether messages begin when they began in a recorded run."""
        return self.role is Role.PROFILE and not self.interval_ns


def load_recorded(workload: Workload) -> Recorded:
    """Return the messages of a job that is a recorded run.

    Raises:
        InputError: it is no profile.
        InconsistentError: none is named, or it has no messages, or no times where it goes by them.
    """
    if not workload.profile:
        raise InconsistentError(f"job {workload.name}: a profile is needed")
    return load_messages(Path(workload.profile), with_times=workload.follows_time_line)


def load_steps(workload: Workload) -> RankProgram:
    """Return what the ranks of a job do that is a program.

    Raises:
        InputError: its file is invalid.
        InconsistentError: its recording has no times.
    """
    path = Path(workload.profile)
    if workload.role is Role.GOAL:
        return load_goal(path)
    return load_program(path, workload.byte_ns, workload.waits_late).program


def digest_messages(workload: Workload) -> str:
    """Return a name for what a profile's ranks send, so that a profile that was recorded anew is another."""
    if workload.role is Role.GOAL:
        return hashlib.sha256(Path(workload.profile).read_bytes()).hexdigest()[:16]
    if workload.role is Role.REPLAY:
        digest = hashlib.sha256()
        for steps in load_steps(workload).steps:
            digest.update(steps.tobytes())
        return digest.hexdigest()[:16]
    recorded = load_recorded(workload)
    digest = hashlib.sha256(repr((recorded.duration_ns, recorded.one_of)).encode())
    for array in (recorded.host, recorded.source, recorded.destination, recorded.bytes, recorded.begin_ns):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
