# SPDX-License-Identifier: Apache-2.0
"""The verdict on a job as data: its kind, its sentences, and the figures that it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import printable
from ibprof.verdict.region_shares import RegionShare

if TYPE_CHECKING:
    from ibprof.waiting.late_ranks import LateRank
    from ibprof.waiting.message_rates import HostPair

WORTH_HAVING = 0.01
"""Part of the run that a remedy must save to be worth it."""


class VerdictKind(Enum):
    """Why a job is as slow as it is; docs/verdict.md describes each."""

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
    """Why transfer is slow.

    Attributes:
        name: of docs/causes.md.
        evidence, advice: a sentence each.
    """

    name: str
    evidence: str
    advice: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a verdict's time goes; fields that are not known are None.

    Attributes:
        rank: that the others wait for.
        operation: as the MPI standard writes it.
        site: line of the program.
        region: of the program.
        link: a link direction, in words.
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
        operation: as the MPI standard writes it.
        site: line of the program; None where lines were not recorded.
        region: of the program.
        transfer_s: seconds, mean over ranks.
    """

    operation: str | None
    site: str | None
    region: str | None
    transfer_s: float


@dataclass(frozen=True, slots=True)
class BusiestLink:
    """The most loaded link direction of a fabric under a job, and what would relieve it.

    Attributes:
        busiest: link direction of the largest time, in words.
        line_rate_s: its bytes at its speed, seconds.
        is_host_link: no link between switches needs longer.
        loaded_by: ranks, call, line and region that load it most, in words; empty where not known.
        operation, site, region: of `loaded_by`.
        cause: name of its first cause, of docs/causes.md; None where none was found.
        advice: what would help, in words; empty without a cause.
        first_gain_s: seconds that the first cause's remedy takes off the most loaded link; None without a cause.
        gain_s: seconds that all remedies together take off it; None without a cause.
        routes: a sentence on routes that are not the subnet's own; empty where they are.
        by_region: seconds of each region's own most loaded link direction; None where not known.
        on_host_share: part of all bytes that stay within hosts, 0 to 1, placed as they are on this fabric.
        moved: ranks are placed on other hosts than they ran on, so that the run's time is not these links'.
        unrouted: sentences on bytes without a route and on hosts left out; empty where nothing is lost.
        unrouted_share: their part of all bytes, 0 to 1.
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
        kind: why the job is as slow as it is.
        cause: of the most loaded link; None where there is none.
        sentences: the verdict in words.
        run_s: time until the last rank ended; as all that follow, seconds, and None where not known.
        mpi_s: time inside MPI calls, MPI_Finalize included, mean over ranks.
        wait_s: of that, waiting for other ranks; an estimate where `transfer_s` is None.
        line_rate_s: what the most loaded link direction needs at line rate.
        gain_s: what the best remedy tried takes off the most loaded link direction.
        evidence: where the time goes, most first.
        missing: what would make the verdict surer.
        regions: parts of the run, those with most time in MPI first; empty where times were not recorded.
        is_worth_it: the remedy saves at least `WORTH_HAVING` of the run; None where no run shows that.
        unrouted_share: part of all bytes that have no route on the fabric, 0 to 1; None where no fabric is known.
        transfer_s, unsplit_s: the other parts of `mpi_s`; None where no calls were sampled.
        split_error_s: the standard error of `wait_s` and of `transfer_s`; None likewise.
        late: ranks that others waited for, those with most waiting first.
        transfer_causes: why transfer is slow, the surest first.
        host_pairs: rate of large messages and latency of small ones, as measured, by pair of hosts.
        transfer_sites: transfer by call site, the longest first; empty where no calls were sampled.
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
    host_pairs: tuple[HostPair, ...] = ()
    transfer_sites: tuple[SiteTransfer, ...] = ()

    def __repr__(self) -> str:
        return f"<Verdict {self.kind.value}: {printable(self.text)}>"

    @property
    def text(self) -> str:
        """The sentences as one paragraph."""
        return " ".join(self.sentences)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
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
