# SPDX-License-Identifier: Apache-2.0
"""Rail policies: models of the bytes' rails, if these were not measured. Every policy keeps every byte.

Source: section 4.4.2 of "Resource Contention due to Data Movement on HPC Systems" (dissertation): Open MPI 1.6 splits
messages over both rails, 1.8 alternates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_converter.choices import RAIL_POLICIES
from ibprof_converter.traffic.traffic_data import Rows, choose_rows

SPLIT, ROUND_ROBIN, FIRST, SECOND = RAIL_POLICIES

MEASURED = "measured (what was posted to queue pairs)"
"""Source of rails that no policy models."""


@dataclass(frozen=True, slots=True)
class RailShares:
    """Flows split by rail; arrays of one length, one row per share of a flow. Shares of 0 bytes are left out.

    Attributes:
        flow: rows of the flows.
        rail: int32, rail of each share.
        bytes: uint64, bytes of each share.
    """

    flow: Rows
    rail: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]


def share_out(
    policy: str,
    usable: npt.NDArray[np.bool_],
    source: npt.NDArray[np.int32],
    destination: npt.NDArray[np.int32],
    bytes: npt.NDArray[np.uint64],
    messages: npt.NDArray[np.uint64],
) -> RailShares:
    """Distribute flows over the rails that both ends have.

    * `split` cuts every flow into equal parts; the remaining bytes go to the first rails, one each.
    * `round-robin` sends the messages of a rank pair over one rail after the other, starting with the first. With two
    rails and m messages, the first rail takes ceil(m / 2). All messages of a flow are assumed to have one size; if the
    bytes do not divide, the first messages get one byte more. A pair keeps its turn across flows (region, operation),
    as in Open MPI.
    * `first` and `second` send everything over that rail.

    If the ends of a flow are not on the selected rail, the flow takes the rails that they share.

    Args:
        policy: one of `RAIL_POLICIES`.
        usable: bool [flow, rail], at least one rail for every flow.
        source, destination: int32 [flow], the ranks.
        bytes, messages: uint64 [flow], totals of each flow.

    Raises:
        UsageError: there is no such policy, or it selects a rail that was not given.
    """
    if policy not in RAIL_POLICIES:
        raise UsageError(f"--rails {policy}: expected one of {', '.join(RAIL_POLICIES)}")
    rails = usable.shape[1]
    if policy == SECOND and rails < 2:
        raise UsageError("--rails second: only one fabric is given")
    if rails == 1:
        flow = choose_rows(bytes > 0)
        return RailShares(flow, np.zeros(np.count_nonzero(bytes), np.int32), bytes[flow])
    if policy in (FIRST, SECOND):
        wanted = (FIRST, SECOND).index(policy)
        chosen = np.where(usable[:, wanted], wanted, np.argmax(usable, axis=1))
        by_rail = [np.where(chosen == rail, bytes, np.uint64(0)) for rail in range(rails)]
    else:
        turn = np.cumsum(usable, axis=1).astype(
            np.uint64
        )  # 1 for the first usable rail of a flow, 2 for the second, ...
        count = turn[:, -1]
        if policy == SPLIT:
            shares = [_part(bytes, count, turn[:, rail] - np.uint64(1)) for rail in range(rails)]
        else:
            begun = _messages_before(source, destination, messages)
            shares = [_messages_part(bytes, messages, begun, count, turn[:, rail]) for rail in range(rails)]
        by_rail = [np.where(usable[:, rail], share, np.uint64(0)) for rail, share in enumerate(shares)]
    return _collect(by_rail)


def _collect(by_rail: list[npt.NDArray[np.uint64]]) -> RailShares:
    flows = [np.flatnonzero(share) for share in by_rail]
    return RailShares(
        flow=np.concatenate(flows),
        rail=np.repeat(np.arange(len(flows), dtype=np.int32), [len(flow) for flow in flows]),
        bytes=np.concatenate([share[flow] for share, flow in zip(by_rail, flows, strict=True)]),
    )


def _part(
    total: npt.NDArray[np.uint64], parts: npt.NDArray[np.uint64], index: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Return part `index` of each total cut into `parts`; remaining bytes go to the first parts, one each."""
    quotient, remainder = np.divmod(total, parts)
    return quotient + (index < remainder)


def _messages_part(
    bytes: npt.NDArray[np.uint64],
    messages: npt.NDArray[np.uint64],
    begun: npt.NDArray[np.uint64],
    rails: npt.NDArray[np.uint64],
    turn: npt.NDArray[np.uint64],
) -> npt.NDArray[np.uint64]:
    """Return each flow's bytes in messages that take rail number `turn` (from 1) of `rails`."""
    messages = np.maximum(messages, np.uint64(1))  # a flow without a message count is one message
    # Message i (from 0) of a flow takes turn 1 + (begun + i) mod rails. Among the first n messages, the rail takes each
    # i = offset mod rails.
    offset = (turn + rails - np.uint64(1) - begun % rails) % rails
    size, longer = np.divmod(bytes, messages)

    def falling_here(first: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        return (first + rails - np.uint64(1) - offset) // rails

    return size * falling_here(messages) + falling_here(longer)


def _messages_before(
    source: npt.NDArray[np.int32], destination: npt.NDArray[np.int32], messages: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Return the number of messages in earlier flows of the same rank pair, for each flow."""
    order = np.lexsort((destination, source))
    counted = np.maximum(messages, np.uint64(1))[order]
    before = np.cumsum(counted) - counted
    new_pair = np.ones(len(order), bool)
    new_pair[1:] = (np.diff(source[order]) != 0) | (np.diff(destination[order]) != 0)
    first_of_pair = np.maximum.accumulate(np.where(new_pair, np.arange(len(order)), 0))
    result = np.empty(len(order), np.uint64)
    result[order] = before - before[first_of_pair] if len(order) else before
    return result
