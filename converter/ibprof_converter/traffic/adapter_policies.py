# SPDX-License-Identifier: Apache-2.0
"""Adapter policies: models of the adapter that a rank uses in each subnet, if it was not measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_converter.choices import NIC_POLICIES
from ibprof_converter.traffic.hosts import count_ports
from ibprof_converter.traffic.rank_placement import RankPlacement
from ibprof_converter.traffic.traffic_data import NO_LID

RANK, NEAR, SPREAD, FIRST = NIC_POLICIES

MEASURED = "measured"
RECORDED = "recorded"
MODELLED = "modelled:"

_MEANINGS = {
    MEASURED: "measured, as posted to queue pairs",
    RECORDED: "as recorded of each rank's own choice",
    MODELLED + RANK: "a rank's number among the ranks of its host, modulo the host's adapters",
    MODELLED + NEAR: "the adapter nearest to the rank's cores",
    MODELLED + SPREAD: "each message over all adapters of the host",
    MODELLED + FIRST: "the first adapter of each host",
}


def describe_nic(nic: str) -> str:
    """Return the source of the bytes' adapters, in words; labels of several jobs are joined by `; `."""
    return "; ".join(f"{label} ({_MEANINGS[label]})" for label in nic.split("; "))


def label_of_policy(policy: str) -> str:
    """Return the label of a modelled choice.

    Raises:
        UsageError: there is no such policy.
    """
    if policy not in NIC_POLICIES:
        raise UsageError(f"--nic {policy}: expected one of {', '.join(NIC_POLICIES)}")
    return MODELLED + policy


def number_on_host(host: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return the number of each rank among the ranks of its host, from 0: int64 [rank].

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
        lid: int32 [rank, rail], the port of each rank; with `SPREAD` the first of its ports.
        spread: int32 [rank, rail, adapter], the ports over which each message is spread; else None.
        nic: source of the ports, as in `Traffic`.
    """

    lid: npt.NDArray[np.int32]
    spread: npt.NDArray[np.int32] | None
    nic: str | None


def choose_adapters(placement: RankPlacement, nic: str | None) -> ChosenPorts:
    """Return the ports that the ranks of a placement use.

    Args:
        placement: the ranks' placement.
        nic: one of `NIC_POLICIES`; None: the recorded choice, else `NEAR` if the recording knows near adapters, else
            `RANK`.

    Raises:
        UsageError: there is no such policy, or the recording lacks the data that it needs.
    """
    ports, recorded = placement.ports, placement.adapters
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
        ports = recorded.selected
    if nic is None:
        nic = RANK if near is None else NEAR
    if nic == NEAR and near is not None:
        lid = _take_turns(near, _group_alike(placement.host, near))
    else:
        lid = _take_turns(ports, placement.host) if nic == RANK else ports[:, :, 0]
    return ChosenPorts(lid, ports if nic == SPREAD else None, label_of_policy(nic))


def _take_turns(ports: npt.NDArray[np.int32], group: npt.NDArray[np.integer]) -> npt.NDArray[np.int32]:
    """Return a port of each rank on each rail: ranks of a group take the ports in turn."""
    turn = number_on_host(group)[:, np.newaxis] % np.maximum(count_ports(ports), 1)
    return np.take_along_axis(ports, turn[:, :, np.newaxis], axis=2)[:, :, 0]


def _group_alike(host: npt.NDArray[np.int32], ports: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return equal numbers for ranks of one host with the same ports: int64 [rank]."""
    rows = np.column_stack([host, ports.reshape(len(host), -1)])
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1), np.int64)


@dataclass(frozen=True, slots=True)
class AdapterShares:
    """Flows split by adapter; arrays of one length, one row per share. Shares of 0 bytes are left out.

    Attributes:
        flow: intp, rows of the flows.
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
    """Cut each flow into equal parts, one per adapter of the host with more adapters.

    Part i leaves by adapter i of the sending host and enters by adapter i of the receiving host, each modulo the host's
    number of adapters. The remaining bytes go to the first parts, one each.

    Args:
        source, destination: int32 [flow, adapter], LIDs on one rail; `NO_LID` fills the end of each row.
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
