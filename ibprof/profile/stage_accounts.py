# SPDX-License-Identifier: Apache-2.0
"""Accounts of the stages from a recording to a report: each item received was handed on, or left out for a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import sum_exactly
from ibprof.profile.profile_data import Direction, Kind, Profile, Source
from ibprof.profile.unaccounted import find_unaccounted
from ibprof.text.call_names import name_call
from ibprof.text.quantities import count_of, format_bytes

MUCH = 0.01
"""Smallest share of an account that its first lines name."""

COLLECT = "collect"
"""The stage that leaves out bytes which other counters have too: these are no loss."""

LEFT_OUT = "Left out: "
"""Beginning of a sentence on a large loss."""

_IN_TEXT = ("hosts", "ranks", "bytes", "messages", "simulations")
"""Units whose losses texts name."""


@dataclass(frozen=True, slots=True)
class StageAccount:
    """Account of one stage: received, handed on, left out.

    Attributes:
        stage: `record`, `collect`, `read`, `place`, `route`, `report`, `check` or `simulate`.
        noun: the counted unit, such as `ranks`, `bytes`, `hosts` or `links`.
        total: number received.
        kept: number handed on.
        left_out: reason -> number; `total` is the sum of `kept` and these.

    Raises:
        ArithmeticError: the numbers do not add up.
    """

    stage: str
    noun: str
    total: int
    kept: int
    left_out: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.total != self.kept + sum(self.left_out.values()):
            raise ArithmeticError(f"{self.stage}: {self.noun} do not add up: {self}")


def accounts_as_json(accounts: Iterable[StageAccount]) -> dict[str, Any]:
    """Return accounts as the entry `coverage` of a JSON document."""
    return {"accounts": [asdict(each) for each in accounts]}


def account_for_run(run: Profile) -> Iterator[StageAccount]:
    """Yield accounts of a run's missing ranks, of bytes that were not recorded, and of counters of other data."""
    ranks = len({rank.rank for rank in run.ranks if rank.rank < run.world_size})
    missing = run.world_size - ranks
    yield StageAccount("record", "ranks", run.world_size, ranks, {"not recorded": missing} if missing else {})
    counters = run.counters
    counted = sum_exactly(counters.bytes)
    lost = {"the recording was full": sum(rank.lost_bytes for rank in run.ranks)}
    for each in find_unaccounted(run):
        reason = f"{name_call(each.operation)}: fewer bytes seen than its calls must send"
        lost[reason] = lost.get(reason, 0) + each.least_bytes - each.seen_bytes
    lost = {reason: amount for reason, amount in lost.items() if amount}
    yield StageAccount("record", "bytes", counted + sum(lost.values()), counted, lost)
    chosen = choose_sent(run)
    is_control = ~chosen & (counters.kind == Kind.CONTROL)
    is_received = ~chosen & ~is_control & (counters.direction == Direction.RECEIVED)
    others = {
        "MPI's own control messages": is_control,
        "received: the same bytes as sent ones": is_received,
        "seen by a second source": ~chosen & ~is_control & ~is_received,
    }
    left_out = {reason: amount for reason, rows in others.items() if (amount := sum_exactly(counters.bytes[rows]))}
    yield StageAccount(COLLECT, "bytes", counted, sum_exactly(counters.bytes[chosen]), left_out)


def choose_sent(run: Profile) -> npt.NDArray[np.bool_]:
    """Return the counters of bytes that a rank sent, or fetched from another's memory: bool [counter].

    Received bytes are left out, since they were counted at the sender. MPI's own control messages are also left out.
    """
    counters = run.counters
    chosen: npt.NDArray[np.bool_] = (counters.kind == Kind.USER) & (counters.direction != Direction.RECEIVED)
    of_nccl = counters.source == Source.NCCL
    sources = np.flatnonzero(np.bincount(counters.source[chosen & (counters.bytes > 0) & ~of_nccl]))
    # Two sources can see the same bytes at two depths; the source next to the MPI calls knows the operations. NCCL's
    # bytes do not pass through MPI, so both sources count.
    return chosen & ((counters.source == sources[0]) | of_nccl) if len(sources) else chosen


def describe_losses(accounts: Iterable[StageAccount], complete: bool = True) -> Iterator[str]:
    """Yield a sentence for each loss above `MUCH` of ranks, hosts or bytes; or one that nothing, or less, is lost.

    Args:
        accounts: the accounts of all stages.
        complete: false if there are gaps without a number, so that nobody knows that nothing was lost.
    """
    accounts = [each for each in accounts if each.noun in _IN_TEXT]
    losses = []
    for each, following in zip_longest(accounts, accounts[1:]):
        if each.stage != COLLECT:
            # The recorder counts a message at both ends where it can: the next account of a run is of these bytes.
            is_twice = following is not None and following.stage == COLLECT
            total = each.total - (sum(following.left_out.values()) if is_twice else 0)
            of_total = f"of {_say(total, each.noun)}"
            losses += [
                (amount / total, f"{_say(amount, each.noun, named=False)} {of_total}", reason)
                for reason, amount in each.left_out.items()
            ]
    much = sorted((loss for loss in losses if loss[0] > MUCH), reverse=True)
    yield from (f"{LEFT_OUT}{amounts} ({share:.1%}): {reason}." for share, amounts, reason in much)
    last = {each.noun: each.kept for each in accounts if each.kept}
    if losses and not much:
        share, amounts, reason = max(losses)
        yield f"Less than {MUCH:.0%} is left out: {amounts} ({100 * share:.2g}%): {reason}."
    elif complete and last and not losses:
        yield f"Nothing is left out: {', '.join(f'all {_say(last[noun], noun)}' for noun in _IN_TEXT if noun in last)}."


def _say(amount: int, noun: str, named: bool = True) -> str:
    """Return a number, with its noun if `named`."""
    if noun == "bytes":
        return format_bytes(amount)
    return count_of(amount, noun.removesuffix("s")) if named else f"{amount:,}"
