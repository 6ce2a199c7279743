# SPDX-License-Identifier: Apache-2.0
"""Find ranks that share cores: a rank without a core neither sends nor receives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ibprof.profile.efficiency import elapsed_s
from ibprof.profile.profile_data import Profile, Rank
from ibprof.text.quantities import count_of
from ibprof.verdict.verdict_data import TransferCause

SHARED_CORES = "oversubscribed-cores"

_MUCH_CROWDED = 0.1
"""More ranks than cores are a cause if these ranks have no core for at least this fraction of the run."""

_MUCH_OTHERS = 0.25
"""Other programs' use of cores is a cause if ranks have no core for at least this fraction of the run."""

_MOST_CORES = 4096

_MOST_NAMED = 4

_OTHERS = ", though ready to run: other processes or their own threads use the cores, or a container limits their time."
_OWN_HOSTS = (
    "Run on hosts without other jobs, with a core for each thread, and without a limit of processor time (cpu.max)."
)


@dataclass(frozen=True, slots=True)
class SharedCores:
    """Ranks that share cores.

    Attributes:
        cause: the cause, with evidence and advice.
        lacked_s: time in which ranks were ready without a core, mean over ranks, in seconds; None if unknown.
        is_crowd: true for more ranks than cores; false if other programs use the ranks' cores.
    """

    cause: TransferCause
    lacked_s: float | None
    is_crowd: bool = True

    def explains(self, transfer_s: float, most_s: float) -> bool:
        """Return whether transfer would take at most `most_s` if each rank always had a core."""
        return self.lacked_s is None or transfer_s - self.lacked_s <= most_s


def find_shared_cores(run: Profile) -> SharedCores | None:
    """Return the lack of cores as a cause, and the time in which ranks lacked a core; None if cores suffice."""
    machines: dict[tuple[bool, int], list[Rank]] = defaultdict(list)
    ranks = [rank for rank in run.ranks if rank.rank < run.world_size]
    for rank in ranks:
        # Group ranks by boot, not by host: containers with different host names share the machine's cores.
        machines[bool(rank.boot), rank.boot or rank.host].append(rank)
    shares = [_share_without_core(each) for each in machines.values()]
    found = []
    for own, share in zip(machines.values(), shares, strict=True):
        crowd, cores = _find_crowd(own)
        if crowd and (of_crowd := _share_without_core(crowd)) is not None and of_crowd < _MUCH_CROWDED:
            continue
        if crowd:
            found.append((True, len(crowd) / len(cores), _say_crowd(run, crowd, cores, of_crowd), _advise(run, own)))
        elif share and share >= _MUCH_OTHERS:
            found.append(
                (False, share, f"{_name(run, own)} had no core for {share:.0%} of the run{_OTHERS}", _OWN_HOSTS)
            )
    if not found:
        return None
    is_crowd, _, evidence, advice = max(found)
    lacked = None if None in shares else _lacked_s(ranks) / len(ranks)
    return SharedCores(TransferCause(SHARED_CORES, evidence, advice), lacked, is_crowd)


def count_cores(ranks: Iterable[Rank]) -> float:
    """Return the number of cores that ranks may run on; infinite if unknown."""
    cores: set[int] = set()
    for rank in ranks:
        own = _find_cores(rank)
        if own is None:
            return float("inf")
        cores |= own
    return len(cores) or float("inf")


def _find_cores(rank: Rank, name: str = "cores") -> frozenset[int] | None:
    """Return the allowed cores of a rank; all cores of its machine if `name` is `online`; None if unknown."""
    text = next((choice.text for choice in rank.choices if choice.name == name), "")
    cores: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not (first.isdigit() and (last or first).isdigit()):
            return None
        cores.update(range(int(first), min(int(last or first), int(first) + _MOST_CORES) + 1))
    return frozenset(cores) or None


def _find_crowd(ranks: Sequence[Rank]) -> tuple[list[Rank], frozenset[int]]:
    """Return the ranks with the fewest cores per rank, and their cores; empty if each rank can have a core.

    The search compares each rank's set of allowed cores, and the union of these sets.
    """
    bound = {rank.rank: cores for rank in ranks if (cores := _find_cores(rank))}
    tried = {*bound.values(), frozenset().union(*bound.values())}
    crowds = [([rank for rank in ranks if bound.get(rank.rank, frozenset((-1,))) <= cores], cores) for cores in tried]
    crowd, cores = max(crowds, key=lambda each: (len(each[0]) / max(len(each[1]), 1), len(each[0])))
    return (crowd, cores) if len(crowd) > len(cores) else ([], cores)


def _share_without_core(ranks: Sequence[Rank]) -> float | None:
    """Return the share of the run in which ranks were ready without a core, mean over ranks; None if unknown."""
    elapsed = sum(elapsed_s(rank) for rank in ranks if rank.stop_ns)
    if not elapsed or not all(rank.stop_ns and rank.cpu_ns and not rank.off_ns for rank in ranks):
        return None
    return min(_lacked_s(ranks) / elapsed, 1.0)


def _lacked_s(ranks: Sequence[Rank]) -> float:
    """Return the time in which ranks were ready to run without a core, in seconds, summed over ranks.

    If the kernel does not count this time, return run time minus CPU time. Ranks that wait in MPI use CPU time too.
    """
    if any(rank.no_core_ns for rank in ranks):
        return sum(rank.no_core_ns for rank in ranks) * 1e-9
    return sum(max(elapsed_s(rank) - rank.cpu_ns * 1e-9, 0.0) for rank in ranks)


def _name(run: Profile, ranks: Sequence[Rank]) -> str:
    return f"The {len(ranks)} ranks of {_name_hosts(run, ranks)}"


def _name_hosts(run: Profile, ranks: Sequence[Rank]) -> str:
    hosts = sorted({run.hosts[rank.host].name for rank in ranks})
    return f"{hosts[0]} and {len(hosts) - 1} more" if len(hosts) > 1 else hosts[0]


def _say_crowd(run: Profile, crowd: Sequence[Rank], cores: frozenset[int], share: float | None) -> str:
    named = [str(core) for core in sorted(cores)[:_MOST_NAMED]]
    numbers = f"{', '.join(named)}{', ...' if len(cores) > len(named) else ''}"
    of_cores = f"core {numbers}" if len(cores) == 1 else f"{len(cores)} cores ({numbers})"
    lacked = "" if share is None else f"; each was ready to run but had no core for {share:.0%} of the run"
    return f"{_name(run, crowd)} share {of_cores}{lacked}."


def _advise(run: Profile, ranks: Sequence[Rank]) -> str:
    usable = max(count_cores(ranks), *(len(_find_cores(rank, "online") or ()) for rank in ranks))
    if usable < len(ranks):
        most = count_of(round(usable), "rank")
        return f"Start at most {most} on {_name_hosts(run, ranks)}, one for each core, or use more hosts."
    return (
        f"The machine has {usable:.0f} cores: bind each rank to a different core, by --bind-to core (Open MPI, MPICH), "
        "I_MPI_PIN=1 (Intel MPI) or --cpu-bind=cores (srun)."
    )
