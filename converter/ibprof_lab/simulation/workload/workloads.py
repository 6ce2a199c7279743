# SPDX-License-Identifier: Apache-2.0
"""Jobs of a simulation: their roles (pairs, I/O, collectives, recorded runs), message sizes and times.

Source: K. A. Brown, "Resource Contention due to Data Movement on HPC Systems", doctoral thesis, Tokyo Institute of
Technology, 2018, chapters 5 and 6. Algorithms of collectives: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of
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
    rank of a recorded run sends its messages, computes and waits. GOAL: each rank of a traced program computes, sends
    and waits. RING: each rank sends to the next rank. The other roles are collective operations of all clients.
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
"""Names of the two jobs in `ibprof-sim advise`."""


@dataclass(frozen=True, slots=True)
class CollectivePart:
    """The messages of one rank in a collective operation.

    Attributes:
        steps: `STEP` [message], messages that the rank sends; `client` is the receiving rank, host and times are 0.
        arrivals: number of messages that the rank receives.
    """

    steps: npt.NDArray[Any]
    arrivals: int


def _part(to: Any, size: int, slot: Any, awaits: Any, arrivals: int) -> CollectivePart:
    steps = np.zeros(len(to), STEP)
    steps["client"], steps["bytes"], steps["slot"], steps["awaits"] = to, size, slot, awaits
    return CollectivePart(steps, arrivals)


def send_to_neighbour(rank: int, ranks: int, size: int) -> CollectivePart:
    """Ring: each rank sends to the next rank."""
    return _part([(rank + 1) % ranks], size, 0, 0, 1)


def broadcast(rank: int, ranks: int, size: int) -> CollectivePart:
    """Binomial tree from rank 0: each rank forwards the data to its children, the largest subtree first."""
    reach = rank & -rank if rank else 1 << (ranks - 1).bit_length()
    children = [rank + (1 << bit) for bit in reversed(range(reach.bit_length() - 1)) if rank + (1 << bit) < ranks]
    return _part(children, size, 0, int(rank > 0), int(rank > 0))


def all_gather(rank: int, ranks: int, size: int) -> CollectivePart:
    """Ring: each rank forwards the previous rank's data, until all ranks have all data. `size`: bytes of one rank's
    data."""
    turn = np.arange(ranks - 1)
    return _part(np.full(ranks - 1, (rank + 1) % ranks), size, turn, turn, ranks - 1)


def all_to_all(rank: int, ranks: int, size: int) -> CollectivePart:
    """Pairwise exchange: in round k, rank r sends to rank r + k, and waits for the message from rank r - k."""
    turn = np.arange(ranks - 1)
    return _part((rank + 1 + turn) % ranks, size, turn, turn, ranks - 1)


def all_reduce(rank: int, ranks: int, size: int) -> CollectivePart:
    """Recursive doubling; if the number of ranks is not a power of two, surplus ranks send data to a neighbour."""
    rounds = ranks.bit_length() - 1
    beyond = ranks - (1 << rounds)
    if rank < 2 * beyond and rank % 2 == 0:
        return _part([rank + 1], size, 0, 0, 1)
    through = int(rank < 2 * beyond)
    number = rank // 2 if through else rank - beyond
    partners = [number ^ 1 << turn for turn in range(rounds)]
    to = [2 * partner + 1 if partner < beyond else partner + beyond for partner in partners]
    # Slot 0 is for a neighbour's message; slots of the partners follow.
    slot = [turn + int(partner < beyond) for turn, partner in enumerate(partners)]
    awaits = [turn + through for turn in range(rounds)]
    if through:
        to, slot, awaits = [*to, rank - 1], [*slot, 0], [*awaits, rounds + 1]
    return _part(to, size, slot, awaits, rounds + through)


def barrier(rank: int, ranks: int, size: int) -> CollectivePart:
    """Dissemination: in round k, rank r sends to rank r + 2**k."""
    rounds = (ranks - 1).bit_length()
    turn = np.arange(rounds)
    return _part([(rank + (1 << k)) % ranks for k in range(rounds)], size, turn, turn, rounds)


Schedule = Callable[[int, int, int], CollectivePart]
"""(rank, number of ranks, bytes of a message) -> the rank's part of a collective."""

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
    """A job of a simulation: its hosts and its messages. Times are in ns.

    Attributes:
        role: task of the job's clients.
        bytes: size of a message or I/O request; not used for recorded and traced runs.
        interval_ns: time from the completion of a message (or collective) to the next start. For the role PROFILE, 0
            means that messages start at recorded times.
        window_ns: minimum time from the start of a message to the next start, which throttles the job; 0 for no
            minimum.
        jitter: interval and window vary at random, uniformly, by up to this fraction; times of a time line do not vary.
        share: fraction of the compute hosts.
        limit: number of messages of each client; 0 for no limit.
        reads: for reads, bytes of a client's request, which the server answers with `bytes`; 0 for writes.
        profile: path of a profile or recording (roles PROFILE and REPLAY), or of a GOAL file (role GOAL).
        hosts: indices of the job's hosts; empty to choose random hosts. A recorded run has one index per host of the
            run, or with `adapters`, one per used adapter.
        adapters: for each rank of a recorded run, the index of its adapter in `hosts`; empty if all ranks of each host
            use the same adapter.
        byte_ns, waits_late: for the role REPLAY, arguments of `make_program`.
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
        """True for a recorded run."""
        return self.role in {Role.PROFILE, Role.REPLAY}

    @property
    def is_program(self) -> bool:
        """True if the clients also compute and wait, not only send."""
        return self.role in {Role.REPLAY, Role.GOAL}

    @property
    def follows_time_line(self) -> bool:
        """True if messages begin at recorded times."""
        return self.role is Role.PROFILE and not self.interval_ns


def load_recorded(workload: Workload) -> Recorded:
    """Return the messages of a recorded run.

    Raises:
        InputError: the file is not a profile.
        InconsistentError: `profile` is empty, or the profile does not have messages or the needed times.
    """
    if not workload.profile:
        raise InconsistentError(f"job {workload.name}: a profile is needed")
    return load_messages(Path(workload.profile), with_times=workload.follows_time_line)


def load_steps(workload: Workload) -> RankProgram:
    """Return the steps of the ranks of a program.

    Raises:
        InputError: the program's file is invalid.
        InconsistentError: the recording has no times.
    """
    path = Path(workload.profile)
    if workload.role is Role.GOAL:
        return load_goal(path)
    return load_program(path, workload.byte_ns, workload.waits_late).program


def digest_messages(workload: Workload) -> str:
    """Return a digest of the messages in a profile or GOAL file."""
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
    """Return sentences on data that the profile of a recorded run lacks; an empty list for other jobs."""
    path = workload.profile if workload.is_recorded else ""
    return [f"{path}: {gap}" for gap in describe_gaps(load_run(path))] if path else []


def account_for_workload(workload: Workload) -> list[StageAccount]:
    """Count used and left-out data and messages of a recorded run; return an empty list for other jobs."""
    if not workload.is_recorded:
        return []
    return [*account_for_run(load_run(workload.profile)), load_recorded(workload).account]


def list_run_notes(workloads: Iterable[Workload]) -> list[str]:
    """Return sentences on differences between a recorded or traced run and its simulation."""
    notes: list[str] = []
    for each in workloads:
        if each.role is Role.GOAL and load_goal(Path(each.profile)).is_simplified:
            notes.append(
                f"{each.profile}: fields cpu and nic are ignored, since a simulated rank has one core and one adapter"
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
                f"{each.profile} has too many messages: of similar messages, 1 in {recorded.one_of} is simulated"
            )
        notes += [*note_training(each.profile), *list_gaps(each)]
    return list(dict.fromkeys(notes))
