# SPDX-License-Identifier: Apache-2.0
"""Tasks of jobs: MPI pairs, I/O, a collective or a recorded run, with sizes and times.

Source: K. A. Brown, "Resource Contention due to Data Movement on HPC Systems", doctoral thesis, Tokyo Institute of
Technology, 2018, chapters 5 and 6. Messages of collectives: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of
collective communication operations in MPICH", International Journal of High Performance Computing Applications 19(1),
2005, sections 3 to 4.5; the dissemination barrier of D. Hensgen, R. Finkel and U. Manber, International Journal of
Parallel Programming 17(1), 1988.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof.profile.missing_data import StageAccount, account_for_run, describe_gaps
from ibprof_converter.traffic.training_jobs import is_training, note_training
from ibprof_lab.simulation.engine.packet_engine import STEP
from ibprof_lab.simulation.workload.goal_trace import load_goal
from ibprof_lab.simulation.workload.program_steps import RankProgram
from ibprof_lab.simulation.workload.recorded_messages import Recorded, load_messages, load_run
from ibprof_lab.simulation.workload.recorded_program import load_program


class Role(str, Enum):
    """The task of a job's clients.

    PAIRS: each client exchanges messages with a random partner. IO: each client writes to (or reads from) all servers
    in turn, starting with a random one. PROFILE: each rank of a recorded run sends its recorded messages. REPLAY: each
    rank of a recorded run also computes and waits. GOAL: each rank of a traced program computes, sends and waits. RING:
    each rank sends to its neighbour. The other roles are collectives, simulated message by message.
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
"""Names of the two jobs of a question on interference."""


@dataclass(frozen=True, slots=True)
class CollectivePart:
    """Messages of one rank in a collective operation.

    Attributes:
        steps: `STEP` [message]; `client` is the receiving rank, host and times are 0.
        arrivals: number of messages received.
    """

    steps: npt.NDArray[Any]
    arrivals: int


def _part(to: Any, size: int, slot: Any, awaits: Any, arrivals: int) -> CollectivePart:
    steps = np.zeros(len(to), STEP)
    steps["client"], steps["bytes"], steps["slot"], steps["awaits"] = to, size, slot, awaits
    return CollectivePart(steps, arrivals)


def send_to_neighbour(rank: int, ranks: int, size: int) -> CollectivePart:
    """Return the part of a rank that sends to the next rank."""
    return _part([(rank + 1) % ranks], size, 0, 0, 1)


def broadcast(rank: int, ranks: int, size: int) -> CollectivePart:
    """Binomial tree from rank 0: each rank forwards to ever nearer ranks, the largest subtree first."""
    reach = rank & -rank if rank else 1 << (ranks - 1).bit_length()
    children = [rank + (1 << bit) for bit in reversed(range(reach.bit_length() - 1)) if rank + (1 << bit) < ranks]
    return _part(children, size, 0, int(rank > 0), int(rank > 0))


def all_gather(rank: int, ranks: int, size: int) -> CollectivePart:
    """Ring: each rank forwards the previous rank's data until all ranks have all data. `size` is one rank's share."""
    turn = np.arange(ranks - 1)
    return _part(np.full(ranks - 1, (rank + 1) % ranks), size, turn, turn, ranks - 1)


def all_to_all(rank: int, ranks: int, size: int) -> CollectivePart:
    """Pairwise: in turn k each rank sends to the rank k after it, and waits for the rank k before it."""
    turn = np.arange(ranks - 1)
    return _part((rank + 1 + turn) % ranks, size, turn, turn, ranks - 1)


def all_reduce(rank: int, ranks: int, size: int) -> CollectivePart:
    """Recursive doubling; the ranks beyond a power of two take part through a neighbour."""
    rounds = ranks.bit_length() - 1
    beyond = ranks - (1 << rounds)
    if rank < 2 * beyond and rank % 2 == 0:
        return _part([rank + 1], size, 0, 0, 1)
    through = int(rank < 2 * beyond)
    number = rank // 2 if through else rank - beyond
    partners = [number ^ 1 << turn for turn in range(rounds)]
    to = [2 * partner + 1 if partner < beyond else partner + beyond for partner in partners]
    # A neighbour's message has slot 0; the partners' slots then follow.
    slot = [turn + int(partner < beyond) for turn, partner in enumerate(partners)]
    awaits = [turn + through for turn in range(rounds)]
    if through:
        to, slot, awaits = [*to, rank - 1], [*slot, 0], [*awaits, rounds + 1]
    return _part(to, size, slot, awaits, rounds + through)


def barrier(rank: int, ranks: int, size: int) -> CollectivePart:
    """Dissemination: in turn k each rank sends to the rank 2**k after it."""
    rounds = (ranks - 1).bit_length()
    turn = np.arange(rounds)
    return _part([(rank + (1 << k)) % ranks for k in range(rounds)], size, turn, turn, rounds)


Schedule = Callable[[int, int, int], CollectivePart]
"""Function of rank, number of ranks, and bytes of a message."""

SCHEDULES: dict[Role, Schedule] = {
    Role.RING: send_to_neighbour,
    Role.ALL_TO_ALL: all_to_all,
    Role.ALL_GATHER: all_gather,
    Role.ALL_REDUCE: all_reduce,
    Role.BROADCAST: broadcast,
    Role.BARRIER: barrier,
}


@dataclass(frozen=True, slots=True)
class Workload:
    """A job's part of the machine and its traffic. Times in ns.

    Attributes:
        role: task of the clients.
        bytes: size of a message or request; unused for a profile, which has sizes.
        interval_ns: time from completion to the next start; for a collective from its end to the next begin. A profile
            without an interval follows its time line.
        window_ns: minimum time from the start of a message to the start of the next (a throttle); 0 for no minimum.
        jitter: interval and window change by up to this share, uniformly distributed; times of a time line do not
            change.
        share: share of the compute hosts.
        limit: number of messages of a client; 0 for no end.
        reads: bytes of a request that is answered with `bytes`; 0 for writes.
        profile: a profile or recording, for the roles profile and replay; a GOAL file for the role goal.
        hosts: host numbers of the job, for a profile one per host of the run; empty for sampled hosts.
        adapters: index in `hosts` of each rank's adapter, for a profile whose hosts have several adapters in the
            fabric. Empty if `hosts` has one entry for each host of the run.
        byte_ns, waits_late: for a replay, as in `make_program`.
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
        """Return True for a recorded run."""
        return self.role in {Role.PROFILE, Role.REPLAY}

    @property
    def is_program(self) -> bool:
        """Return True if the ranks compute and wait."""
        return self.role in {Role.REPLAY, Role.GOAL}

    @property
    def follows_time_line(self) -> bool:
        """Return True if messages begin at the times of a recorded run."""
        return self.role is Role.PROFILE and not self.interval_ns


def load_recorded(workload: Workload) -> Recorded:
    """Return the messages of a recorded run.

    Raises:
        InputError: the file is no profile.
        InconsistentError: no profile is named, or the profile lacks messages or required times.
    """
    if not workload.profile:
        raise InconsistentError(f"job {workload.name}: a profile is needed")
    return load_messages(Path(workload.profile), with_times=workload.follows_time_line)


def load_steps(workload: Workload) -> RankProgram:
    """Return the ranks' operations of a program.

    Raises:
        InputError: the program's file is invalid.
        InconsistentError: the recording has no times.
    """
    path = Path(workload.profile)
    if workload.role is Role.GOAL:
        return load_goal(path)
    return load_program(path, workload.byte_ns, workload.waits_late).program


def digest_messages(workload: Workload) -> str:
    """Return a digest of a profile's messages, so that a new recording counts as another profile."""
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


def list_gaps(workload: Workload) -> list[str]:
    """Return the gaps of a recorded run's profile; empty for other jobs."""
    path = workload.profile if workload.is_recorded else ""
    return [f"{path}: {gap}" for gap in describe_gaps(load_run(path))] if path else []


def account_for_workload(workload: Workload) -> list[StageAccount]:
    """Return the accounts of a recorded run and of its messages; empty for other jobs."""
    if not workload.is_recorded:
        return []
    return [*account_for_run(load_run(workload.profile)), load_recorded(workload).account]


def list_run_notes(workloads: Iterable[Workload]) -> list[str]:
    """Return notes on recorded runs with more hosts than recorded, fewer messages than sent, or gaps.

    Traces that are simplified get a note too.
    """
    notes: list[str] = []
    for each in workloads:
        if each.role is Role.GOAL and load_goal(Path(each.profile)).is_simplified:
            notes.append(
                f"{each.profile}: cpu and nic are ignored: each rank does one thing at a time, and has one adapter"
            )
        if not each.is_recorded:
            continue
        recorded = load_messages(Path(each.profile), with_times=each.follows_time_line)
        if recorded.was_on_one_host and not is_training(each.profile):
            notes.append(
                f"{each.profile} was recorded on one host, where no message crosses a network: each rank is simulated "
                "on a separate host"
            )
        if recorded.one_of > 1:
            notes.append(
                f"{each.profile} has too many messages: one of {recorded.one_of} messages of similar size is simulated"
            )
        notes += [*note_training(each.profile), *list_gaps(each)]
    return list(dict.fromkeys(notes))
