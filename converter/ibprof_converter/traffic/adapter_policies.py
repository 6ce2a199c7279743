# SPDX-License-Identifier: Apache-2.0
"""Choose an adapter for each rank, and rails for each message, if these were not measured.

A rail policy distributes bytes over rails; the sum of the bytes stays the same.

Source: section 4.4.2 of "Resource Contention due to Data Movement on HPC Systems" (dissertation): Open MPI 1.6 splits
each message over both rails. Open MPI 1.8 sends messages over the two rails in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_converter.choices import NIC_POLICIES, RAIL_POLICIES
from ibprof_converter.traffic.hosts import count_ports
from ibprof_converter.traffic.rank_placement import RankPlacement
from ibprof_converter.traffic.traffic_data import NO_LID, Rows, choose_rows

RANK, NEAR, SPREAD, FIRST = NIC_POLICIES

MEASURED = "measured"
RECORDED = "recorded"
MODELLED = "modelled:"

_MEANINGS = {
    MEASURED: "measured, as posted to queue pairs",
    RECORDED: "the adapter that each rank chose in the recorded run",
    MODELLED + RANK: "the ranks of a host take its adapters in turn",
    MODELLED + NEAR: "the adapter nearest to the rank's cores",
    MODELLED + SPREAD: "each message over all adapters of the host",
    MODELLED + FIRST: "the first adapter of each host",
}


def describe_nic(nic: str) -> str:
    """Return each label in `nic`, and its meaning in brackets. `; ` separates the labels of different jobs."""
    return "; ".join(f"{label} ({_MEANINGS[label]})" for label in nic.split("; "))


def label_of_policy(policy: str) -> str:
    """Return the label of a modelled adapter policy.

    Raises:
        UsageError: the policy is unknown.
    """
    if policy not in NIC_POLICIES:
        raise UsageError(f"--nic {policy}: expected one of {', '.join(NIC_POLICIES)}")
    return MODELLED + policy


def number_on_host(host: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Number the ranks of each host from 0, in rank order. Return the number of each rank: int64 [rank].

    Args:
        host: int [rank], the host of each rank.
    """
    order = np.argsort(host, kind="stable")
    in_order = host[order]
    number = np.empty(len(host), np.int64)
    number[order] = np.arange(len(host)) - np.searchsorted(in_order, in_order)
    return number


@dataclass(frozen=True, slots=True)
class ChosenPorts:
    """Ports used by ranks.

    Attributes:
        lid: int32 [rank, rail], LID of the port that each rank uses on each rail. With policy `SPREAD`, the rank's
            first port.
        spread: int32 [rank, rail, adapter], LIDs of the ports for `SPREAD`; None for other policies.
        nic: label of the method that chose the ports (`Traffic.nic`).
    """

    lid: npt.NDArray[np.int32]
    spread: npt.NDArray[np.int32] | None
    nic: str | None


def choose_adapters(placement: RankPlacement, nic: str | None) -> ChosenPorts:
    """Return the ports that the ranks of a placement use.

    Args:
        nic: one of `NIC_POLICIES`. If None: the recorded adapters, if the recording shows one adapter per rank and
            rail; else `NEAR`, if the recording shows which adapters are near each rank; else `RANK`.

    Raises:
        UsageError: the policy is unknown, or the recording lacks the data that the policy needs.
    """
    ports, recorded = placement.ports, placement.adapters
    in_turn = ports if placement.in_turn is None else placement.in_turn
    near = recorded.near if recorded else None
    if nic is not None:
        label_of_policy(nic)
    if nic == NEAR and near is None:
        raise UsageError("--nic near: no recording says which adapters are near to the cores of a rank")
    if not has_choice(ports):
        return ChosenPorts(ports[:, :, 0], None, placement.nic)
    if nic is None and recorded and recorded.selected is not None:
        if not has_choice(recorded.selected):
            return ChosenPorts(recorded.selected[:, :, 0], None, RECORDED)
        ports = in_turn = recorded.selected
    if nic is None:
        nic = RANK if near is None else NEAR
    if nic == NEAR and near is not None:
        lid = _take_turns(near, _group_alike(placement.host, near))
    else:
        lid = _take_turns(in_turn, placement.host) if nic == RANK else ports[:, :, 0]
    return ChosenPorts(lid, ports if nic == SPREAD else None, label_of_policy(nic))


def _take_turns(ports: npt.NDArray[np.int32], group: npt.NDArray[np.integer]) -> npt.NDArray[np.int32]:
    """Return the LID of each rank's port: int32 [rank, rail]. Ranks of a group use the group's ports in turn."""
    turn = number_on_host(group)[:, np.newaxis] % np.maximum(count_ports(ports), 1)
    return np.take_along_axis(ports, turn[:, :, np.newaxis], axis=2)[:, :, 0]


def _group_alike(host: npt.NDArray[np.int32], ports: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the group of each rank: int64 [rank]. Ranks with the same host and the same ports form a group."""
    rows = np.column_stack([host, ports.reshape(len(host), -1)])
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1), np.int64)


@dataclass(frozen=True, slots=True)
class AdapterShares:
    """Shares of flows, one for each flow and pair of adapters; arrays of equal length. Shares of 0 bytes are left out.

    Attributes:
        flow: intp, index of the flow to which each share belongs.
        source_lid, destination_lid: int32, LIDs of the adapters.
        bytes: uint64, bytes of each share.
    """

    flow: npt.NDArray[np.intp]
    source_lid: npt.NDArray[np.int32]
    destination_lid: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]


def spread_flows(
    source: npt.NDArray[np.int32], destination: npt.NDArray[np.int32], bytes: npt.NDArray[np.uint64]
) -> AdapterShares:
    """Cut each flow into n equal parts; n is the larger of its two hosts' numbers of adapters.

    On a host with m adapters, part i uses adapter i mod m. If the bytes do not divide evenly, each of the first parts
    gets one more byte.

    Args:
        source, destination: int32 [flow, adapter], LIDs of each end's adapters on one rail; `NO_LID` fills the rest of
            a row.
        bytes: uint64 [flow], bytes of each flow.
    """
    of_source, of_destination = count_ports(source), count_ports(destination)
    parts = np.maximum(of_source, of_destination)
    flow = np.repeat(np.arange(len(bytes)), parts)
    part = np.arange(len(flow)) - np.repeat(np.cumsum(parts) - parts, parts)
    quotient, remainder = np.divmod(bytes, np.maximum(parts, 1).astype(np.uint64))
    amount = quotient[flow] + (part.astype(np.uint64) < remainder[flow])
    kept = np.flatnonzero(amount)
    flow, part = flow[kept], part[kept]
    return AdapterShares(
        flow=flow,
        source_lid=source[flow, part % of_source[flow]],
        destination_lid=destination[flow, part % of_destination[flow]],
        bytes=amount[kept],
    )


def has_choice(ports: npt.NDArray[np.int32]) -> bool:
    """Return true if any rank has several ports on one rail.

    Args:
        ports: int32 [rank, rail, adapter], LIDs of each rank's ports.
    """
    return bool((ports[:, :, 1:] != NO_LID).any())


SPLIT, ROUND_ROBIN, FIRST_RAIL, SECOND_RAIL = RAIL_POLICIES

MEASURED_RAILS = "measured (bytes posted to queue pairs)"
"""Value of `Traffic.rail_source` if rails were measured."""


@dataclass(frozen=True, slots=True)
class RailShares:
    """Shares of flows, one for each flow and rail; arrays of equal length. Shares of 0 bytes are left out.

    Attributes:
        flow: index of the flow to which each share belongs.
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
    """Distribute each flow over the rails on which sender and receiver have ports.

    * `split` cuts every flow into equal parts. If the bytes do not divide evenly, each of the first rails gets one more
    byte. * `round-robin` sends the messages of a rank pair over the rails in turn, starting with the first rail. With
    two rails and m messages, the first rail carries ceil(m / 2) messages. All messages of a flow are assumed to have
    one size. If the bytes do not divide evenly, each of the first messages gets one more byte. The next flow of a pair
    (of another region or operation) continues with the next rail, as in Open MPI. * `first` and `second` send all bytes
    over the first (second) rail.

    If sender or receiver has no port on the selected rail, the flow uses the first rail on which sender and receiver
    have ports.

    Args:
        policy: one of `RAIL_POLICIES`.
        usable: bool [flow, rail], true if both ends have a port on the rail; each flow has at least one such rail.
        source, destination: int32 [flow], the ranks.
        bytes, messages: uint64 [flow], totals of each flow.

    Raises:
        UsageError: the policy is unknown, or selects a rail without a fabric.
    """
    if policy not in RAIL_POLICIES:
        raise UsageError(f"--rails {policy}: expected one of {', '.join(RAIL_POLICIES)}")
    rails = usable.shape[1]
    if policy == SECOND_RAIL and rails < 2:
        raise UsageError("--rails second: only one fabric is given")
    if rails == 1:
        flow = choose_rows(bytes > 0)
        return RailShares(flow, np.zeros(np.count_nonzero(bytes), np.int32), bytes[flow])
    if policy in (FIRST_RAIL, SECOND_RAIL):
        wanted = (FIRST_RAIL, SECOND_RAIL).index(policy)
        chosen = np.where(usable[:, wanted], wanted, np.argmax(usable, axis=1))
        by_rail = [np.where(chosen == rail, bytes, np.uint64(0)) for rail in range(rails)]
    else:
        turn = np.cumsum(usable, axis=1).astype(np.uint64)  # 1 for the flow's first usable rail, 2 for the second, ...
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
    """Cut each total into `parts` parts, of which the first may be larger by 1. Return part `index` of each total."""
    quotient, remainder = np.divmod(total, parts)
    return quotient + (index < remainder)


def _messages_part(
    bytes: npt.NDArray[np.uint64],
    messages: npt.NDArray[np.uint64],
    begun: npt.NDArray[np.uint64],
    rails: npt.NDArray[np.uint64],
    turn: npt.NDArray[np.uint64],
) -> npt.NDArray[np.uint64]:
    """Return each flow's bytes on one usable rail, if successive messages use the rails in turn.

    Args:
        bytes, messages: totals of each flow.
        begun: number of messages that the same rank pair sent in earlier flows.
        rails: number of usable rails of each flow.
        turn: position of the rail in the list of the flow's usable rails, from 1.
    """
    messages = np.maximum(messages, np.uint64(1))  # a flow without a message count has one message.
    # Message i = 0, 1, ... of a flow goes over the usable rail at position 1 + (begun + i) mod rails. So the rail at
    # position `turn` carries messages with i mod rails == offset.
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
