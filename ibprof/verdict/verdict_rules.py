# SPDX-License-Identifier: Apache-2.0
"""Rules that find the verdict on a job from its profile and, with a fabric, from its most loaded link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ibprof.profile.efficiency import Waiting
from ibprof.profile.profile_data import Profile
from ibprof.profile.profile_rows import name_sites
from ibprof.text.quantities import format_bytes, format_seconds, format_with_error, name_call
from ibprof.verdict.job_times import LATENCY_S, JobTimes, Place, TransferTimes, measure_job, share_by_region
from ibprof.verdict.late_ranks import LateRanks
from ibprof.verdict.shared_cores import SHARED_CORES
from ibprof.verdict.verdict_data import (
    ADVICE,
    NOISE,
    WORTH_HAVING,
    BusiestLink,
    Evidence,
    RegionShare,
    SiteTransfer,
    TransferCause,
    Verdict,
    VerdictKind,
)
from ibprof.waiting.wait_split import explain_unsplit

if TYPE_CHECKING:
    from ibprof.waiting.wait_split import MeasuredWaiting

LITTLE_MPI = 0.1
"""Minimum share of the run that MPI must take to explain a slow job."""

MUCH_WAITING = 0.5
"""Waiting for other ranks decides the verdict if it takes at least this share of MPI time."""

LINK_SHARE = 0.3
"""The most loaded link can decide the verdict if its time at line rate is at least this share of MPI time."""

SMALL_BYTES = 16 << 10
"""Messages are small below this mean size: latency then takes longer than the bytes."""

NAMED_REGIONS = 2
"""Number of regions that the verdict names; each takes at least `LITTLE_MPI` of the time in MPI."""

LITTLE_WAITING = 0.01
"""The verdict states a region's waiting if it is at least this share of the region's MPI time."""

WITHOUT_CORES = 2 / 3
"""Missing cores explain late ranks if ranks have no core for at least this fraction of the run."""

MUCH_OF_FILES = 0.5
"""MPI-IO decides the verdict if it takes at least this share of MPI time."""

NO_SAMPLES = "samples of calls, which measure waiting: this profile has none"
NO_RATE = (
    "why transfer is slow: hosts show no faster transport, no slow adapter, no errors and no other traffic. Measure "
    "the network without the job (ib_write_bw, iperf3), and ask the administrator for rate limits and switch counters"
)
NO_TIMES = "time in MPI: run again with IBPROF_TIME=1"
NO_GPU_TIMES = "the GPUs' waiting for NCCL: trace the GPUs; `ibprof nccl` shows the waiting of proxies"
GPUS_COMPUTE = "GPUs may compute meanwhile."
NO_SITES = "lines of the program: run again without IBPROF_SITES=0"
NO_END = "the end of each rank: the run was killed"
NO_FABRIC = "the fabric: ibprof-report LST... PROFILE puts the bytes on its links"
NO_SPEED = "the speeds of the loaded links are unknown, so times are unknown."
NO_LOAD = "No link carries bytes of this traffic."
NO_RUN = "a recorded run: this traffic has no times"
NOT_THERE = "a run on these hosts: ranks ran on other hosts, so the run's time says nothing about these links"
OTHER_JOBS = "Traffic of other jobs is not seen."
NO_PROBLEM = "The network is not the problem."
NO_PROBLEM_THERE = "Where the ranks ran, the network was not the problem."
HIDDEN_ON_HOST = (
    "All ranks are on one host, and messages within a host are not seen with this MPI: no network link carries them."
)
CANNOT_TELL = "Unknown whether the network is why this job is slow."


def judge_run(run: Profile, links: BusiestLink | None = None) -> Verdict:
    """Return the verdict on a recorded run.

    Args:
        links: the most loaded link of the run's fabric; None if unknown.
    """
    times = measure_job(run, links)
    regions = share_by_region(run, times.collectives, links.by_region if links else None, times.measured)
    names = _Names(run.regions, run.operations, tuple(name_sites(run)))
    return _Judge(times, links, bool(run.sites), regions, names).judge()


def judge_traffic(links: BusiestLink | None) -> Verdict:
    """Return the verdict on traffic without a recording: all times are unknown."""
    return _Judge(None, links, has_sites=True).judge()


_NAMED_CAUSES: Mapping[VerdictKind, tuple[str, ...]] = {
    VerdictKind.WAITING: (),
    VerdictKind.SMALL_MESSAGES: ("wrong-transport", "link-errors"),
    VerdictKind.ON_HOST: ("wrong-transport", "memory-bound"),
    VerdictKind.UNKNOWN: ("wrong-transport", "slow-adapter", "link-errors", "other-traffic"),
}
"""Kind of verdict -> causes of slow transfer that the verdict names; `SLOW_TRANSFER` names all causes."""

_SLOWED = (VerdictKind.SLOW_TRANSFER, *_NAMED_CAUSES)


def _say_causes(causes: Sequence[TransferCause], is_known: bool) -> Iterator[str]:
    for number, cause in enumerate(causes):
        begin = "Also" if number else "Cause" if is_known else "Hosts show a cause of slow transfer"
        yield f"{begin}: {cause.name}. {cause.evidence} {cause.advice}"


def _format_share(share: float) -> str:
    return "less than 1%" if share < WORTH_HAVING else f"{share:.0%}"


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of a profile's regions, operations and sites, indexed by their numbers."""

    regions: tuple[str, ...]
    operations: tuple[str, ...]
    sites: tuple[str, ...]


class _Judge:
    """Finds the kind of a verdict, and writes the verdict's sentences."""

    def __init__(
        self,
        times: JobTimes | None,
        links: BusiestLink | None,
        has_sites: bool,
        regions: tuple[RegionShare, ...] = (),
        names: _Names | None = None,
    ) -> None:
        self._names = names or _Names((), (), ())
        self._times = times
        self._regions = regions
        self._links = links
        self._has_sites = has_sites
        self._run_s = times.run_s if times else None
        self._mpi_s = times.mpi_s if times else None
        self._is_of_nccl = times is not None and times.is_of_nccl
        # Do not call the proxies' time "MPI time", because GPUs may compute while proxies work.
        self._time = "the proxies' time" if self._is_of_nccl else "MPI time"
        self._outside = "at its own work" if self._is_of_nccl else "outside of MPI"
        self._late = LateRanks(times, times.parts.late, has_sites, self._outside) if times and times.parts else None

    def judge(self) -> Verdict:
        """Return the verdict."""
        kind = self._find_kind()
        links, parts = self._links, self._times.parts if self._times else None
        cause = links.cause if links else None
        slow = self._find_transfer_causes(kind)
        if kind is VerdictKind.WAITING and parts and not slow:
            cause = self._late.find_cause() if self._late else None
        elif slow and kind is not VerdictKind.UNKNOWN:
            cause = slow[0].name
        if self._times and parts and kind in (VerdictKind.WAITING, VerdictKind.SLOW_TRANSFER):
            said = [self._say_links(), *self._say_measured(kind, self._times, parts)]
        else:
            said = self._say_kind(kind)
        evidence = self._list_evidence(kind)
        balances = kind is VerdictKind.WAITING and not slow and cause != NOISE
        advice = tuple(self._advise_balance(evidence)) if balances else ()
        return Verdict(
            kind=kind,
            cause=cause,
            sentences=tuple(
                filter(
                    None,
                    (
                        links.unrouted if links else "",
                        self._say_incomplete(),
                        self._say_routes(),
                        self._say_time(),
                        *said,
                        *_say_causes(slow, kind is not VerdictKind.UNKNOWN),
                        f"{ADVICE} {advice[0]}." if advice else "",
                        *self._say_regions(kind),
                    ),
                )
            ),
            run_s=self._run_s,
            mpi_s=self._mpi_s,
            wait_s=self._times.wait_s if self._times and self._times.mpi and (parts or not self._is_of_nccl) else None,
            line_rate_s=links.line_rate_s if links else None,
            gain_s=links.gain_s if links else None,
            evidence=tuple(evidence),
            missing=tuple(self._list_missing(kind)),
            regions=self._regions,
            is_worth_it=self._is_worth_it(),
            unrouted_share=links.unrouted_share if links else None,
            transfer_s=parts.transfer_s if parts else None,
            unsplit_s=parts.unsplit_s if parts else None,
            split_error_s=parts.error_s if parts else None,
            late=parts.late if parts else (),
            transfer_causes=slow,
            advice=advice,
            host_pairs=self._times.host_pairs if self._times else (),
            transfer_sites=tuple(self._list_transfer()),
        )

    def _list_transfer(self) -> Iterator[SiteTransfer]:
        """Yield the transfer of each call site, mean over ranks."""
        measured = self._times.measured if self._times else None
        if measured:
            ranks = max(len(np.unique(measured.shares.rank)), 1)
            for seconds, place in self._find_transfer(measured):
                yield SiteTransfer(place.operation, place.site, place.region, seconds / ranks)

    def _find_transfer_causes(self, kind: VerdictKind) -> tuple[TransferCause, ...]:
        """Return the possible causes of slow transfer for a kind of verdict; none if the kind is not in `_SLOWED`."""
        if self._times is None or kind not in _SLOWED:
            return ()
        named = _NAMED_CAUSES.get(kind)
        causes = [each for each in self._times.transfer_causes if named is None or each.name in named]
        shared = self._times.shared_cores
        waits_for_cores = kind is VerdictKind.WAITING and self._late is not None and self._late.may_lack_cores()
        # Ranks that wait take cores from other ranks: only a large lack of cores explains late ranks.
        lacked_s = shared.lacked_s or 0.0 if shared else 0.0
        waits_for_cores &= lacked_s >= WITHOUT_CORES * (self._run_s or 0.0) > 0
        # Ranks that poll a slow network take cores too. So name missing cores only if nearly all bytes stay within
        # hosts, or if there are more ranks than cores.
        decides = shared and (shared.is_crowd or self._on_host_share() >= 1 - WORTH_HAVING)
        if shared and (waits_for_cores or (decides and kind is not VerdictKind.WAITING)):
            # Missing cores also make copies slow: name missing cores before `memory-bound`.
            place = next((number for number, each in enumerate(causes) if each.name == "memory-bound"), len(causes))
            causes.insert(place, shared.cause)
        return tuple(causes)

    def _is_worth_it(self) -> bool | None:
        links = self._links
        if links is None or links.moved or not links.gain_s or not self._run_s:
            return None
        return links.gain_s >= WORTH_HAVING * self._run_s

    def _find_kind(self) -> VerdictKind:
        times = self._times
        if times is None:
            return VerdictKind.UNKNOWN
        # Without a known time in MPI, a link decides only if it is busy for much of the run.
        whole = self._run_s if self._mpi_s is None else self._mpi_s
        line = self._links.line_rate_s if self._links else 0.0
        # A busy link can cause waiting, but not different times of ranks outside MPI.
        decides = bool(whole) and line >= max(LINK_SHARE * (whole or 0.0), times.imbalance_s)
        on_host = times.hidden_on_host or (times.bytes_sent > 0 and self._on_host_share() >= 1 - WORTH_HAVING)
        if self._mpi_s is None:
            otherwise = VerdictKind.ON_HOST if on_host else VerdictKind.UNKNOWN
            return self._kind_of_links() if decides else otherwise
        if self._is_of_nccl and self._run_s and self._mpi_s >= LITTLE_MPI * self._run_s:
            waits = times.parts is not None and times.wait_s >= MUCH_WAITING * self._known_s() > 0
            otherwise = VerdictKind.ON_HOST if on_host else VerdictKind.UNKNOWN
            return self._kind_of_links() if decides else VerdictKind.WAITING if waits else otherwise
        rules = (
            (bool(self._run_s) and self._mpi_s < LITTLE_MPI * (self._run_s or 0.0), VerdictKind.NOT_MPI),
            (decides, self._kind_of_links()),
            (times.wait_s >= MUCH_WAITING * self._known_s() > 0, VerdictKind.WAITING),
            (times.files_s >= MUCH_OF_FILES * self._mpi_s > 0, VerdictKind.UNKNOWN),
            (not on_host and self._is_unsplit(), VerdictKind.UNKNOWN),
            (self._are_messages_small() and not self._may_wait(), VerdictKind.SMALL_MESSAGES),
            (on_host and self._is_unsplit(), VerdictKind.ON_HOST),
            (times.parts is not None and times.parts.is_slow, VerdictKind.SLOW_TRANSFER),
            (on_host, VerdictKind.ON_HOST),
        )
        return next((kind for holds, kind in rules if holds), VerdictKind.UNKNOWN)

    def _is_unsplit(self) -> bool:
        """Return whether the samples leave more than half of the time in MPI unsplit."""
        parts = self._times.parts if self._times else None
        return parts is not None and parts.unsplit_s > MUCH_WAITING * (self._mpi_s or 0.0)

    def _may_wait(self) -> bool:
        """Return whether waiting, unsplit time and error together may be most of the time in MPI.

        The time in which ranks lacked a core is subtracted from unsplit time, because such calls wait for a core.
        """
        parts, whole = self._times.parts if self._times else None, self._mpi_s or 0.0
        shared = self._times.shared_cores if self._times else None
        lacked_s = shared.lacked_s or 0.0 if shared else 0.0
        unknown = max(parts.unsplit_s - lacked_s, 0.0) + parts.error_s if parts else 0.0
        return parts is not None and unknown >= max(LITTLE_MPI * whole, MUCH_WAITING * whole - parts.wait_s)

    def _known_s(self) -> float:
        """Return the time in MPI that is split; if most is unsplit, the whole time in MPI."""
        whole, parts = self._mpi_s or 0.0, self._times.parts if self._times else None
        if parts is None or self._is_unsplit():
            return whole
        return max(whole - parts.unsplit_s, 0.0)

    def _are_messages_small(self) -> bool:
        times = self._times
        if times is None or times.message_s is None:
            return False
        # Messages that take longer than `most` wait for ranks. The bytes of small messages take at most LATENCY_S.
        most = LATENCY_S + min(times.message_transfer_s, LATENCY_S)
        return times.message_bytes < SMALL_BYTES and times.message_s <= most * (1 + 1e-9)

    def _on_host_share(self) -> float:
        if self._times:
            return 1 - self._times.between_hosts
        return self._links.on_host_share if self._links else 0.0

    def _kind_of_links(self) -> VerdictKind:
        is_host = self._links is not None and self._links.is_host_link
        return VerdictKind.HOST_LINKS if is_host else VerdictKind.SWITCH_LINKS

    def _say_routes(self) -> str:
        """Return a sentence on the source of routes; no text if all routes come from forwarding tables in files."""
        routes = self._links.routes if self._links else ""
        return f"{routes[:1].upper()}{routes[1:].rstrip('.')}." if routes else ""

    def _say_incomplete(self) -> str:
        said = self._times.incomplete if self._times else ""
        return f"{said[:1].upper()}{said[1:]}." if said else ""

    def _say_time(self) -> str:
        if self._times is None or self._mpi_s is None:
            return ""
        end = self._times.end_s
        at_end = f", {format_seconds(end)} of it in MPI_Finalize" if end >= LITTLE_MPI * self._mpi_s > 0 else ""
        if self._is_of_nccl:
            whole = f" of the {format_seconds(self._run_s)} of the run" if self._run_s else ""
            return (
                f"NCCL's proxies had data of their GPU to move for {format_seconds(self._mpi_s)}{whole}, "
                f"mean over ranks. {GPUS_COMPUTE}"
            )
        if not self._run_s:
            return f"MPI takes {format_seconds(self._mpi_s)}, mean over ranks."
        share = self._mpi_s / self._run_s
        return (
            f"MPI takes {share:.0%} of the run: {format_seconds(self._mpi_s)} of {format_seconds(self._run_s)}, "
            f"mean over ranks{at_end}."
        )

    def _say_kind(self, kind: VerdictKind) -> list[str]:
        times = self._times
        if kind is VerdictKind.NOT_MPI:
            return [self._say_links(), f"{self._no_problem} The rest is the program's own."]
        if kind is VerdictKind.WAITING and times and self._mpi_s:
            share = times.wait_s / self._mpi_s
            return [
                self._say_links(),
                f"Waiting for other ranks is {share:.0%} of MPI time (estimate){self._say_who_waits()}.",
                self._no_problem,
            ]
        if kind is VerdictKind.SMALL_MESSAGES and times and times.message_s:
            unsplit = self._say_unsplit()
            return [
                self._say_links(),
                f"Each rank sends {times.messages:,.0f} messages of {format_bytes(round(times.message_bytes))} on "
                f"average and spends {format_seconds(times.message_s)} on each{' in split time' if unsplit else ''}: "
                "latency decides, not the links' rate. Fewer, larger messages would help.",
                "" if self._on_host_share() < 1 - WORTH_HAVING else "All of them stay within hosts.",
                unsplit,
            ]
        if kind is VerdictKind.ON_HOST and times:
            seen = f"All {format_bytes(times.bytes_sent)} stay within hosts: no link of a network carries them."
            is_hidden = times.hidden_on_host and not self._is_of_nccl
            return [self._no_problem, HIDDEN_ON_HOST if is_hidden else seen, self._say_parts(), self._say_unsplit()]
        if kind is VerdictKind.UNKNOWN:
            links = self._links
            remedy = self._say_remedy() if links and links.line_rate_s else ""
            if links and not links.line_rate_s and not times:
                remedy = f"{links.busiest} carries most bytes; {NO_SPEED}" if links.busiest else NO_LOAD
            # Traffic without a run is no job, so it cannot be slow.
            begin = "" if times is None and self._links else CANNOT_TELL
            parts = [self._say_parts(), self._say_unsplit(), self._say_files()]
            return [begin, *parts, self._say_links(), remedy]
        return [self._say_links(), self._say_remedy(), OTHER_JOBS]

    @property
    def _no_problem(self) -> str:
        return NO_PROBLEM_THERE if self._links and self._links.moved else NO_PROBLEM

    def _say_measured(self, kind: VerdictKind, times: JobTimes, parts: TransferTimes) -> Iterator[str]:
        """Yield sentences on measured waiting and transfer, beginning with the part that decides the verdict."""
        share = times.wait_s / (self._mpi_s or 1)
        if kind is VerdictKind.SLOW_TRANSFER:
            causes = self._find_transfer_causes(kind)
            if causes and causes[0].name == SHARED_CORES and self._on_host_share() >= 1 - WORTH_HAVING:
                yield self._no_problem
            yield self._say_transfer(parts)
            yield f"Waiting for other ranks is {share:.0%} of {self._time}."
            yield self._say_unsplit()
            return
        wait = format_with_error(times.wait_s, parts.error_s)
        late = self._late.describe() if self._late else ""
        yield f"Waiting for other ranks is {share:.0%} of {self._time} ({wait}){late}."
        yield self._say_unsplit()
        # Report slow transfer too: the network may be slow even if ranks wait.
        much = parts.is_slow and parts.transfer_s >= LITTLE_MPI * (self._mpi_s or 0.0)
        yield self._say_transfer(parts) if much else self._no_problem

    def _say_transfer(self, parts: TransferTimes) -> str:
        expected = parts.expected_s or 0.0
        times = f"{parts.transfer_s / expected:.0f} times " if expected else ""
        took = format_with_error(parts.transfer_s, parts.error_s)
        return (
            f"Transfer is {parts.transfer_s / (self._mpi_s or 1):.0%} of {self._time} ({took}), {times}the "
            f"{format_seconds(expected)} that the job's own bytes and messages explain"
            f"{'' if self._find_transfer_causes(VerdictKind.SLOW_TRANSFER) else ': something else slows it'}"
            f"{self._say_place_of_transfer()}."
        )

    def _say_parts(self) -> str:
        parts = self._times.parts if self._times else None
        if parts is None or not self._mpi_s:
            return ""
        shares = [(parts.wait_s, "waiting"), (parts.transfer_s, "transfer")]
        if not self._say_unsplit():
            shares.append((parts.unsplit_s, "not split"))
        error = parts.error_s / self._mpi_s
        said = ", ".join(
            f"{part / self._mpi_s:.0%}{f' +- {error:.0%}' if error >= LITTLE_MPI else ''} is {name}"
            for part, name in shares
        )
        return f"Of {self._time} {said}{self._say_place_of_transfer()}."

    def _say_unsplit(self) -> str:
        """Return a sentence on unsplit time.

        Return no text if little MPI time is unsplit (`LITTLE_MPI`), or if MPI-IO takes at least half of unsplit time.
        """
        times, measured = self._times, self._times.measured if self._times else None
        if times is None or times.parts is None or measured is None or not self._mpi_s:
            return ""
        share = times.parts.unsplit_s / self._mpi_s
        if share < LITTLE_MPI or times.files_s >= times.parts.unsplit_s / 2:
            return ""
        place, reason, part = explain_unsplit(measured, self._names.operations)
        operation, site = self._names.operations[place[0]], self._names.sites[place[1]]
        at = f" at {site}" if self._has_sites and site else ""
        much = "most of it" if part > 1 / 2 else f"{part:.0%} of it"
        return f"{share:.0%} of {self._time} is not split, {much} in {name_call(operation)}{at}: {reason}."

    def _say_place_of_transfer(self) -> str:
        """Return text on the call site with most transfer; empty if it has less than `LITTLE_MPI` of all transfer."""
        measured = self._times.measured if self._times else None
        places = self._find_transfer(measured) if measured else []
        if not measured or not places or places[0][0] < LITTLE_MPI * measured.total().transfer_s:
            return ""
        seconds, place = places[0]
        at = f" at {place.site}" if place.site else ""
        ranks = max(len(np.unique(measured.shares.rank)), 1)
        return f"; most transfer is in {place.operation}{at} ({format_seconds(seconds / ranks)})"

    def _say_files(self) -> str:
        if self._times is None or not self._mpi_s or self._times.files_s < LITTLE_MPI * self._mpi_s:
            return ""
        share = self._times.files_s / self._mpi_s
        return f"Calls of MPI-IO are {share:.0%} of MPI time: storage takes this time; its traffic is not seen."

    def _say_links(self) -> str:
        links = self._links
        if links is None or not links.line_rate_s:
            return ""
        least = format_seconds(links.line_rate_s)
        of_what = ""
        for whole_s, name in ((self._mpi_s, self._time), (self._run_s, "the run")):
            if whole_s and links.line_rate_s <= whole_s and not links.moved:
                of_what = f" ({_format_share(links.line_rate_s / whole_s)} of {name})"
                break
        by = f" Loaded by {links.loaded_by}." if links.loaded_by else ""
        return f"The most loaded link, {links.busiest}, needs at least {least} at line rate{of_what}.{by}"

    def _say_remedy(self) -> str:
        links = self._links
        if links is None or links.cause is None or not links.gain_s:
            return "No remedy that was tried makes it faster."
        if self._is_worth_it() is False:
            gain = format_seconds(links.gain_s)
            return f"All remedies tried (first: {links.cause}) take {gain} off, less than 1% of the run: not worth it."
        first = links.gain_s if links.first_gain_s is None else links.first_gain_s
        remedy = f"{links.advice[:1].upper()}{links.advice[1:]}"
        more = f"; all remedies together {format_seconds(links.gain_s)}" if links.gain_s > first else ""
        gain, before = format_seconds(first), format_seconds(links.line_rate_s)
        return f"Cause: {links.cause}. {remedy}: takes {gain} of {before} off the most loaded link{more}."

    def _say_who_waits(self) -> str:
        times = self._times
        if times is None:
            return ""
        if times.collectives and times.collective_wait_s >= max(times.imbalance_s, times.unexplained_s) / 2:
            most = times.collectives[0]
            return f", most of it for rank {most.quickest}{self._say_place(most)}"
        if times.latest is not None and times.imbalance_s >= times.wait_s / 2:
            place = self._say_place(times.latest_at) if times.latest_at else ""
            rank = f"rank {times.latest}"
            return f", most of it for {rank}{place}. {rank.capitalize()} spends most time outside of MPI"
        explained = format_seconds(max((self._mpi_s or 0.0) - times.files_s - times.wait_s, 0.0))
        return f": bytes and the latency of messages explain {explained}"

    def _say_place(self, place: Waiting | Place) -> str:
        at = f" at {place.site}" if self._has_sites and place.site else ""
        return f" in {name_call(place.operation)}{at}"

    def _say_regions(self, kind: VerdictKind) -> Iterator[str]:
        """Yield sentences on the `NAMED_REGIONS` regions with most time in MPI; none for a single region."""
        if kind is VerdictKind.NOT_MPI or len(self._regions) < 2 or not self._mpi_s:
            return
        for region in self._regions[:NAMED_REGIONS]:
            share, waiting = region.mpi_s / self._mpi_s, region.wait_s / region.mpi_s
            if share < LITTLE_MPI:
                return
            how = "" if self._times and self._times.parts else " (estimate)"
            wait = f", {waiting:.0%} of it waiting{how}" if waiting >= LITTLE_WAITING else ""
            line_rate = format_seconds(region.line_rate_s) if region.line_rate_s else ""
            least = f"; its most loaded link needs at least {line_rate}" if line_rate else ""
            yield f"Region {region.name}: {share:.0%} of {self._time}{wait}{least}."

    def _list_evidence(self, kind: VerdictKind) -> list[Evidence]:
        times, links = self._times, self._links
        if kind in (VerdictKind.HOST_LINKS, VerdictKind.SWITCH_LINKS) and links:
            return [Evidence(None, links.operation, links.site, links.region, links.busiest)]
        if kind in (VerdictKind.SMALL_MESSAGES, VerdictKind.ON_HOST) and len(self._regions) > 1:
            return [Evidence(region=self._regions[0].name)]
        if kind is VerdictKind.SLOW_TRANSFER and times and times.measured:
            return [place for _, place in self._find_transfer(times.measured)[:3]]
        if kind is not VerdictKind.WAITING or times is None:
            return []
        if self._late:
            return self._late.list_evidence()
        found = [self._locate(each.quickest, each) for each in times.collectives[:3] if each.waiting_s]
        if times.latest is not None and times.imbalance_s >= times.wait_s / 2:
            found.append(self._locate(times.latest, times.latest_at))
        return found

    def _advise_balance(self, evidence: Sequence[Evidence]) -> Iterator[str]:
        """Yield advice on each late rank, or on the slow host, with the place of the waiting."""
        for late in evidence:
            if late.rank is None:
                continue
            at = f" at {late.site}" if late.site else f" in region {late.region}" if late.region else ""
            place = f"before {late.operation}{at}" if late.operation else self._outside
            if self._late and (host := self._late.name_slow_host()):
                yield f"find out what makes the ranks of {host} late {place}"
                return
            if self._late and not self._late.works_longer(late.rank):
                yield f"find out what makes rank {late.rank} late {place}"
            else:
                yield f"give rank {late.rank} less to do {place}, or the other ranks more"

    def _find_transfer(self, measured: MeasuredWaiting) -> list[tuple[float, Evidence]]:
        """Return each place with transfer, and its seconds of transfer over all ranks, sorted by time, descending."""
        shares, names = measured.shares, self._names
        places = np.stack((shares.region, shares.operation, shares.site))
        found, place = np.unique(places, axis=1, return_inverse=True)
        seconds = np.bincount(place.ravel(), weights=shares.transfer_s)
        return [
            (
                float(seconds[number]),
                Evidence(
                    None, name_call(names.operations[operation]), names.sites[site] if self._has_sites else None, region
                ),
            )
            for number in np.argsort(-seconds).tolist()
            if seconds[number] > 0
            for region, operation, site in [(names.regions[found[0, number]], found[1, number], found[2, number])]
        ]

    def _locate(self, rank: int, place: Waiting | Place | None) -> Evidence:
        if place is None:
            return Evidence(rank)
        return Evidence(rank, name_call(place.operation), place.site if self._has_sites else None, place.region)

    def _list_missing(self, kind: VerdictKind) -> list[str]:
        missing = []
        if self._times is None:
            missing.append(NO_RUN)
        else:
            missing += [] if self._mpi_s is not None else [NO_TIMES]
            missing += [] if self._run_s else [NO_END]
            missing += [] if self._has_sites or self._is_of_nccl else [NO_SITES]
            missing += [NO_GPU_TIMES] if self._is_of_nccl else []
            missing += [NO_SAMPLES] if kind is VerdictKind.WAITING and not self._times.parts else []
            slow = kind is VerdictKind.SLOW_TRANSFER and not self._find_transfer_causes(kind)
            missing += [NO_RATE] if slow else []
            missing += [self._times.shared_cores.cause.evidence] if slow and self._times.shared_cores else []
            missing += [NOT_THERE] if self._links and self._links.moved else []
        if self._links is None and kind not in (VerdictKind.NOT_MPI, VerdictKind.ON_HOST):
            missing.append(NO_FABRIC)
        return missing
