# SPDX-License-Identifier: Apache-2.0
"""The verdict on a job as data: kind, sentences, and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import printable

if TYPE_CHECKING:
    from ibprof.waiting.wait_split import HostPair, LateRank

ADVICE = "What to do:"
"""Begin of the sentence that advises how to reduce waiting."""

LATE_RANK = "late-rank"
"""Cause of waiting if one rank is late."""

NOISE = "noise"
"""Cause of waiting if different ranks are late in turn, so that no balance of work helps."""

SLOW_HOST = "slow-host"
"""Cause of waiting if the ranks of one host are late."""

WORTH_HAVING = 0.01
"""Minimum share of the run that a worthwhile remedy saves."""


class VerdictKind(Enum):
    """Main reason for the job's speed; docs/verdict.md describes each kind of verdict."""

    NOT_MPI = "not-mpi"
    WAITING = "waiting"
    SLOW_TRANSFER = "slow-transfer"
    SMALL_MESSAGES = "small-messages"
    HOST_LINKS = "host-links"
    SWITCH_LINKS = "switch-links"
    ON_HOST = "on-host"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TransferCause:
    """A cause of slow transfer.

    Attributes:
        name: name of the cause in docs/causes.md.
        evidence: sentences on the settings and counters that show the cause.
        advice: sentences on what to change.
    """

    name: str
    evidence: str
    advice: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place where the job loses time, as evidence for a verdict. Unknown fields are None.

    Attributes:
        rank: the rank that other ranks wait for.
        operation: the call, as the MPI standard writes it.
        site: line of the program.
        region: region of the program.
        link: description of a link direction.
    """

    rank: int | None = None
    operation: str | None = None
    site: str | None = None
    region: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class SiteTransfer:
    """Transfer in the calls of one operation, line and region.

    Attributes:
        operation: the call, as the MPI standard writes it.
        site: line of the program; None if lines were not recorded.
        region: region of the program.
        transfer_s: time of transfer, mean over ranks, in seconds.
    """

    operation: str | None
    site: str | None
    region: str | None
    transfer_s: float


@dataclass(frozen=True, slots=True)
class BusiestLink:
    """The most loaded link direction of a fabric under a job, with remedies.

    Attributes:
        busiest: description of the link direction with the largest `line_rate_s`; if unknown, with most bytes.
        line_rate_s: time of the link direction at line rate, in seconds; 0 if unknown.
        is_host_link: true if no link between switches needs longer than the most loaded link of a host.
        loaded_by: description of the ranks, call, line and region that load the link most; empty if unknown.
        operation, site, region: names in `loaded_by`.
        cause: name of the first cause to remedy, as in docs/causes.md; None without a cause.
        advice: description of this cause's remedy; empty without a cause.
        first_gain_s: seconds that this remedy saves on the most loaded link; None without a cause.
        gain_s: seconds that all remedies together save on the most loaded link; None without a cause.
        routes: a sentence on the source of routes; empty if all routes come from forwarding tables in files.
        by_region: region -> `line_rate_s` of the region's most loaded link direction; None if unknown.
        on_host_share: share of all bytes that stay within hosts in this placement, 0 to 1.
        moved: true if ranks are placed on other hosts than in the run. The run's time then says nothing about the
            links' loads.
        unrouted: sentences on bytes without a route, and on hosts left out; empty if there are none.
        unrouted_share: share of all bytes without a route, 0 to 1.
    """

    busiest: str
    line_rate_s: float
    is_host_link: bool
    loaded_by: str = ""
    operation: str | None = None
    site: str | None = None
    region: str | None = None
    cause: str | None = None
    advice: str = ""
    first_gain_s: float | None = None
    gain_s: float | None = None
    routes: str = ""
    on_host_share: float = 0.0
    by_region: Mapping[str, float] | None = None
    moved: bool = False
    unrouted: str = ""
    unrouted_share: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(NotebookView):
    """The verdict on a job.

    Attributes:
        kind: reason for the job's speed.
        cause: cause of waiting or slow transfer, else of the most loaded link's load; None without a cause.
        sentences: the verdict in words.
        run_s: time until the last rank ended, in seconds; None if unknown.
        mpi_s: time inside MPI calls, with MPI_Finalize, mean over ranks, in seconds; None if unknown.
        wait_s: waiting part of `mpi_s`, in seconds; an estimate if `transfer_s` is None.
        line_rate_s: time of the most loaded link direction at line rate, in seconds; None if unknown.
        gain_s: seconds that all remedies together save on the most loaded link direction; None if unknown.
        evidence: places where the job loses time, sorted by time, descending; places of a late rank or host first.
        missing: data that would make the verdict surer.
        regions: times of each region, sorted by time in MPI, descending; empty if times were not recorded.
        is_worth_it: true if `gain_s` is at least `WORTH_HAVING` of the run; None if one of the times is unknown.
        unrouted_share: share of all bytes without a route on the fabric, 0 to 1; None without a fabric.
        transfer_s, unsplit_s: transfer and unsplit parts of `mpi_s`, in seconds; None without sampled calls.
        split_error_s: standard error of `wait_s` and `transfer_s`, in seconds; None without sampled calls.
        late: ranks that other ranks waited for, sorted by waiting, descending.
        transfer_causes: causes of slow transfer, the surest first.
        advice: a change for each late rank, or for the slow host; empty if no such change is known to help.
        host_pairs: measured rates and latencies by pair of hosts.
        transfer_sites: transfer by call site, sorted by time, descending; empty without sampled calls.
    """

    kind: VerdictKind
    cause: str | None
    sentences: tuple[str, ...]
    run_s: float | None
    mpi_s: float | None
    wait_s: float | None
    line_rate_s: float | None
    gain_s: float | None
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    regions: tuple[RegionShare, ...] = ()
    is_worth_it: bool | None = None
    unrouted_share: float | None = None
    transfer_s: float | None = None
    unsplit_s: float | None = None
    split_error_s: float | None = None
    late: tuple[LateRank, ...] = ()
    transfer_causes: tuple[TransferCause, ...] = ()
    advice: tuple[str, ...] = ()
    host_pairs: tuple[HostPair, ...] = ()
    transfer_sites: tuple[SiteTransfer, ...] = ()

    def __repr__(self) -> str:
        return f"<Verdict {self.kind.value}: {printable(self.text)}>"

    @property
    def text(self) -> str:
        """The sentences as one paragraph."""
        return " ".join(self.sentences)

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as plain values."""
        return {
            "kind": self.kind.value,
            "cause": self.cause,
            "text": self.text,
            "run_s": self.run_s,
            "mpi_s": self.mpi_s,
            "wait_s": self.wait_s,
            "wait_error_s": self.split_error_s,
            "transfer_s": self.transfer_s,
            "transfer_error_s": self.split_error_s,
            "unsplit_s": self.unsplit_s,
            "unsplit_error_s": None if self.unsplit_s is None else 0.0,
            "late": [asdict(each) for each in self.late],
            "transfer_causes": [asdict(each) for each in self.transfer_causes],
            "host_pairs": [asdict(each) for each in self.host_pairs],
            "transfer_sites": [asdict(each) for each in self.transfer_sites],
            "line_rate_s": self.line_rate_s,
            "gain_s": self.gain_s,
            "unrouted_share": self.unrouted_share,
            "evidence": [asdict(each) for each in self.evidence],
            "missing": list(self.missing),
        }


@dataclass(frozen=True, slots=True)
class RegionShare:
    """Times of one region in a run.

    Attributes:
        mpi_s: time inside MPI calls, mean over all ranks, in seconds.
        wait_s: waiting part of `mpi_s`, in seconds; an estimate without sampled calls.
        line_rate_s: time of the region's most loaded link direction at line rate, in seconds; None if unknown.
    """

    name: str
    mpi_s: float
    wait_s: float
    line_rate_s: float | None = None
