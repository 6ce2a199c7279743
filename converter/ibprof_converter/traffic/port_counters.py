# SPDX-License-Identifier: Apache-2.0
"""Read port counters of perfquery, ibqueryerrors and ibdiagnet 2 (db_csv, .pm), and compare them with predicted loads.

A counter is the number of 4-byte words that a port sent since the last reset, with headers and other jobs' traffic.

    # Port extended counters: Lid 2 port 1 (CapMask: 0x1300 CapMask2: 0x0000000)     perfquery -x -l -a 2
    PortXmitData:....................5000015048

    Data Counters for 0x2c90200400008 "leaf2"                                        ibqueryerrors --counters
       GUID 0x2c90200400008 port 1: [PortXmitData == 1656 (6.469KB)] ...

    Port=1 Lid=0x0018 GUID=0x1070fd03001adeb4 Device=54000 Port Name=leaf1/P1        ibdiagnet2.pm
    port_xmit_data_extended=0x00000000000000ff

perfquery and .pm identify a port by LID. `ibqueryerrors --counters` identifies a port by NODE GUID, and `ibqueryerrors
--data` identifies an adapter's port by PORT GUID. Rows with the sum of all ports (port 255, `port ALL`) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import fspath
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof.native.libraries import sum_exactly
from ibprof.text.quantities import format_bytes
from ibprof_converter.fabric.db_csv import looks_like_db_csv, read_section
from ibprof_converter.fabric.dump_files import head_of, peek_dump, read_dump
from ibprof_converter.fabric.fabric_graph import LIDS, NO_NODE, Fabric
from ibprof_converter.traffic.link_loads import Loads, match_counters
from ibprof_converter.traffic.traffic_data import PortCounters

_WORD = 4
_STUCK = (1 << 32) - 1
"""Largest value of a 32-bit counter, at which the counter stops."""

_PERFQUERY = re.compile(rb"^# Port (extended )?counters: Lid ([0-9]{1,5}) port ([0-9]{1,3})\b", re.MULTILINE)
_SENT = re.compile(rb"^PortXmitData:\.+([0-9]{1,20})\s*$", re.MULTILINE)
# Source: two public parsers of .pm files. No .pm file of ibdiagnet was available.
_PM = re.compile(
    rb"^[ \t]{0,9}Port=([0-9]{1,3})[ \t]{1,9}Lid=(0x[0-9A-Fa-f]{1,4}|[0-9]{1,5})[ \t]{1,9}GUID=", re.MULTILINE
)
_PM_SENT = re.compile(rb"^[ \t]{0,9}port_xmit_data(_extended)?=(0x[0-9A-Fa-f]{1,16}|[0-9]{1,20})[ \t]*$", re.MULTILINE)
_QUERY_ERRORS = re.compile(
    rb"^\s+GUID 0x([0-9a-f]{1,16}) port ([0-9]{1,3}):.{0,2000}?\[PortXmitData == ([0-9]{1,20}) ", re.MULTILINE
)
_ANY_PORT = re.compile(rb"^\s+GUID 0x[0-9a-f]{1,16} port (?:[0-9]+|ALL):", re.MULTILINE)

_SECTION = "PM_INFO"

Sent = dict[tuple[int, int], int]
"""(GUID or LID, port) -> number of 4-byte words that the port sent."""


_EVIDENT = 0.05
"""A surplus is listed if it exceeds this fraction of the predicted bytes; headers and acknowledgements explain less."""

_REMARK = (
    "counters include headers, acknowledgements and other traffic: even if the prediction is right, they are some "
    "percent above the user data"
)


def looks_like_counters(path: Path) -> bool:
    """Return true if the beginning of a file is a dump of port counters."""
    head = peek_dump(path)
    if _PM.search(head) and _PM_SENT.search(head):
        return True
    return bool(_PERFQUERY.search(head) or _ANY_PORT.search(head) or looks_like_db_csv(head))


def read_counters(path: Path, fabrics: Sequence[Fabric]) -> PortCounters:
    """Read port counters.

    Args:
        fabrics: the rails. LIDs in the file are those of the first rail.

    Raises:
        InputError: the file cannot be read, or has no counter of sent data.
    """
    data = read_dump(path)
    notes = []
    is_pm = _PERFQUERY.search(data) is None and _PM.search(data) is not None
    if is_pm or _PERFQUERY.search(data):
        by_lid, stuck = _read_pm(data) if is_pm else _read_perfquery(data)
        sent, strange = _find_nodes(by_lid, fabrics)
        if strange:
            notes.append(f"{path}: {strange} LIDs belong to no node of the (first) fabric; their counters are left out")
        if stuck:
            notes.append(f"{path}: {stuck} counters are at their 32-bit limit; perfquery -x reads 64-bit counters")
    elif looks_like_db_csv(head_of(data)):
        sent = _read_section(path, data)
    else:
        sent = {(int(guid, 16), int(port)): int(words) for guid, port, words in _QUERY_ERRORS.findall(data)}
    if not sent:
        raise InputError(path, None, "counters PortXmitData of ports", "none")
    return PortCounters(
        node_guid=np.array([guid for guid, _ in sent], np.uint64),
        port=np.array([port for _, port in sent], np.int32),
        bytes=np.array([_WORD * words for words in sent.values()], np.uint64),
        origin=f"port counters of {fspath(path)}",
        notes=tuple(notes),
    )


def _read_perfquery(data: bytes) -> tuple[Sent, int]:
    """Return (LID, port) -> counter, with 64 bits if available, and the number of 32-bit counters at their limit."""
    heads = list(_PERFQUERY.finditer(data))
    ends = [head.start() for head in heads[1:]] + [len(data)]
    sent: Sent = {}
    long_ones: set[tuple[int, int]] = set()
    stuck: set[tuple[int, int]] = set()
    for head, end in zip(heads, ends, strict=True):
        key = int(head[2]), int(head[3])
        words = _SENT.search(data, head.end(), end)
        if words is None or key[1] in (0, 255) or (key in long_ones and not head[1]):
            continue
        sent[key] = min(int(words[1]), (1 << 61) - 1)
        if head[1]:
            long_ones.add(key)
        elif int(words[1]) == _STUCK:
            stuck.add(key)
    return sent, len(stuck - long_ones)


def _read_number(digits: bytes) -> int:
    """Return a number, decimal or hexadecimal after `0x`. A damaged decimal number can have leading zeros."""
    return int(digits, 16 if digits.startswith(b"0x") else 10)


def _read_pm(data: bytes) -> tuple[Sent, int]:
    """Return (LID, port) -> counter of a `.pm` file, and the number of 32-bit counters at their limit."""
    heads = list(_PM.finditer(data))
    ends = [head.start() for head in heads[1:]] + [len(data)]
    sent: Sent = {}
    stuck = 0
    for head, end in zip(heads, ends, strict=True):
        counted = {bool(match[1]): _read_number(match[2]) for match in _PM_SENT.finditer(data, head.end(), end)}
        if counted and int(head[1]) not in (0, 255):
            sent[_read_number(head[2]), int(head[1])] = min(counted.get(True, counted.get(False, 0)), (1 << 61) - 1)
            stuck += True not in counted and counted[False] == _STUCK
    return sent, stuck


def _find_nodes(by_lid: Sent, fabrics: Sequence[Fabric]) -> tuple[Sent, int]:
    """Return (NODE GUID, port) -> counter, and the number of LIDs without a node."""
    sent: Sent = {}
    strange = set()
    for (lid, port), words in by_lid.items():
        node = int(fabrics[0].lid_node[lid]) if fabrics and lid < LIDS else NO_NODE
        if node == NO_NODE:
            strange.add(lid)
        else:
            sent[int(fabrics[0].node_guid[node]), port] = words
    return sent, len(strange)


def _read_section(path: Path, data: bytes) -> Sent:
    sent: Sent = {}
    for record in read_section(path, data, _SECTION):
        column = next((name for name in ("PortXmitDataExtended", "PortXmitData") if record.has(name)), None)
        if column is not None:
            key = record.number("NodeGUID", 1 << 64), record.number("PortNumber", 256)
            sent[key] = record.number(column, 1 << 61)
    return sent


def subtract_counters(after: PortCounters, before: PortCounters) -> PortCounters:
    """Return the bytes sent between two readings. If a counter decreased, it was reset: use its second value."""
    earlier = dict(
        zip(zip(before.node_guid.tolist(), before.port.tolist(), strict=True), before.bytes.tolist(), strict=True)
    )
    keys = list(zip(after.node_guid.tolist(), after.port.tolist(), strict=True))
    differences = [
        count - earlier.get(key, 0) if count >= earlier.get(key, 0) else count
        for key, count in zip(keys, after.bytes.tolist(), strict=True)
    ]
    resets = sum(count < earlier.get(key, 0) for key, count in zip(keys, after.bytes.tolist(), strict=True))
    unknown = sum(key not in earlier for key in keys)
    notes = [*before.notes, *after.notes]
    if resets:
        notes.append(
            f"{resets} counters decreased between the two readings: they were reset, and their later values are used"
        )
    if unknown:
        notes.append(f"{unknown} ports are only in the later file: their counters are assumed to start at 0")
    return PortCounters(
        node_guid=after.node_guid,
        port=after.port,
        bytes=np.array(differences, np.uint64),
        origin=f"{after.origin} minus {before.origin}",
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """A link direction whose counter differs from the prediction.

    Attributes:
        rail, link, end: the link direction.
        counted, predicted: bytes on this link direction.
    """

    rail: int
    link: int
    end: int
    counted: int
    predicted: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Comparison of counted and predicted bytes, for link directions with a counter.

    Attributes:
        counted: for each rail uint64 [link, end], counted bytes.
        known: for each rail bool [link, end], true if the link direction has a counter.
        ends_counted: number of link directions with a counter.
        ends_uncounted: number of link directions with predicted bytes but without a counter.
        bytes_counted, bytes_predicted: sums of counted and of predicted bytes.
        bytes_explained: sum over link directions of min(counted, predicted).
        bytes_elsewhere: sum of counted - predicted bytes, where positive: other jobs, storage, headers.
        bytes_missing: sum of predicted - counted bytes, where positive: other routes or rails, or reset counters.
        correlation: correlation of counters and prediction over the link directions, -1 to 1; None below two counters,
            and for constant counters or predictions.
        surplus: link directions with the largest counted - predicted bytes, without differences that headers explain.
        deficit: link directions with the largest predicted - counted bytes.
    """

    origin: str
    counted: tuple[npt.NDArray[np.uint64], ...]
    known: tuple[npt.NDArray[np.bool_], ...]
    ends_counted: int
    ends_uncounted: int
    bytes_counted: int
    bytes_predicted: int
    bytes_explained: int
    bytes_elsewhere: int
    bytes_missing: int
    correlation: float | None
    surplus: tuple[Difference, ...]
    deficit: tuple[Difference, ...]
    notes: tuple[str, ...]


def compare_counters(loads: Loads, counters: PortCounters, fabrics: Sequence[Fabric], top: int = 10) -> Agreement:
    """Compare counters with the loads that routes predict.

    Args:
        counters: the counters; counters of ports without a link are left out.
        top: largest number of link directions in `surplus`, and in `deficit`.
    """
    counted, known, _ = match_counters(counters, fabrics)
    predicted = tuple(each.sum(axis=2, dtype=np.uint64) for each in loads.by_rail)
    seen = np.concatenate([each.ravel() for each in known])
    there = np.concatenate([each.ravel() for each in counted])[seen]
    wanted = np.concatenate([each.ravel() for each in predicted])
    expected = wanted[seen]
    more = np.where(there > expected, there - np.minimum(there, expected), np.uint64(0))
    less = np.where(expected > there, expected - np.minimum(there, expected), np.uint64(0))
    varied = len(there) > 1 and np.ptp(there) > 0 and np.ptp(expected) > 0
    evident = np.where(more > _EVIDENT * expected.astype(np.float64), more, np.uint64(0))
    places = _index_ends(known)

    def name(amounts: npt.NDArray[np.uint64]) -> tuple[Difference, ...]:
        order = np.argsort(-amounts.astype(np.float64), kind="stable")[:top]
        chosen = [index for index in order.tolist() if amounts[index]]
        return tuple(
            Difference(rail, link, end, int(there[index]), int(expected[index]))
            for index in chosen
            for rail, link, end in [places[index].tolist()]
        )

    return Agreement(
        origin=counters.origin,
        counted=counted,
        known=known,
        ends_counted=int(seen.sum()),
        ends_uncounted=int((wanted[~seen] > 0).sum()),
        bytes_counted=sum_exactly(there),
        bytes_predicted=sum_exactly(expected),
        bytes_explained=sum_exactly(np.minimum(there, expected)),
        bytes_elsewhere=sum_exactly(more),
        bytes_missing=sum_exactly(less),
        correlation=float(np.corrcoef(there.astype(float), expected.astype(float))[0, 1]) if varied else None,
        surplus=name(evident),
        deficit=name(less),
        notes=counters.notes,
    )


def _index_ends(known: Sequence[npt.NDArray[np.bool_]]) -> npt.NDArray[np.int64]:
    """Return rail, link and end of each link direction with a counter: int64 [counter, 3]."""
    return np.concatenate(
        [
            np.insert(np.argwhere(each), 0, rail, axis=1) if each.any() else np.zeros((0, 3), np.int64)
            for rail, each in enumerate(known)
        ]
    )


def agreement_as_json(agreement: Agreement, fabrics: Sequence[Fabric]) -> dict[str, object]:
    """Return the comparison as a JSON object."""
    return {
        "origin": agreement.origin,
        "ends_counted": agreement.ends_counted,
        "ends_uncounted": agreement.ends_uncounted,
        "bytes_counted": agreement.bytes_counted,
        "bytes_predicted": agreement.bytes_predicted,
        "bytes_explained": agreement.bytes_explained,
        "bytes_elsewhere": agreement.bytes_elsewhere,
        "bytes_missing": agreement.bytes_missing,
        "correlation": agreement.correlation,
        "surplus": [_as_json(each, fabrics) for each in agreement.surplus],
        "deficit": [_as_json(each, fabrics) for each in agreement.deficit],
        "notes": [*agreement.notes, _REMARK],
    }


def describe_agreement(agreement: Agreement, fabrics: Sequence[Fabric]) -> Iterator[str]:
    """Yield lines of text on the agreement of counters and prediction, and on the differences."""
    counted = agreement.bytes_counted
    explained = f" ({100 * agreement.bytes_explained / counted:.1f}%)" if counted else ""
    yield f"Counters compared with prediction ({agreement.origin})"
    yield (
        f"  link directions with a counter: {agreement.ends_counted}; "
        f"with predicted bytes but no counter: {agreement.ends_uncounted}"
    )
    yield (
        f"  bytes on link directions with a counter: {format_bytes(counted)} counted, "
        f"{format_bytes(agreement.bytes_predicted)} predicted"
    )
    yield (
        f"  counted bytes: {format_bytes(agreement.bytes_explained)}{explained} were predicted, "
        f"{format_bytes(agreement.bytes_elsewhere)} are from other traffic; "
        f"{format_bytes(agreement.bytes_missing)} were predicted but not counted"
    )
    if agreement.correlation is not None:
        yield f"  correlation of counted and predicted bytes over link directions: {agreement.correlation:.3f}"
    for title, differences in (("most from other traffic", agreement.surplus), ("most missing", agreement.deficit)):
        if differences:
            yield f"  {title}:"
        for each in differences:
            yield (
                f"    {_name(each, fabrics)}: counted {format_bytes(each.counted)}, "
                f"predicted {format_bytes(each.predicted)}"
            )
    for note in agreement.notes:
        yield f"  {note}"
    yield f"  {_REMARK}"


def _name(each: Difference, fabrics: Sequence[Fabric]) -> str:
    fabric = fabrics[each.rail]
    ends = [
        f"{fabric.node_name[fabric.link_node[each.link, end]]} port {fabric.link_port[each.link, end]}"
        for end in (each.end, 1 - each.end)
    ]
    return f"rail {each.rail}: {ends[0]} -> {ends[1]}"


def _as_json(each: Difference, fabrics: Sequence[Fabric]) -> dict[str, object]:
    fabric = fabrics[each.rail]
    node = fabric.link_node[each.link, each.end]
    return {
        "rail": each.rail,
        "guid": f"0x{int(fabric.node_guid[node]):016x}",
        "name": fabric.node_name[node],
        "port": int(fabric.link_port[each.link, each.end]),
        "bytes_counted": each.counted,
        "bytes_predicted": each.predicted,
    }
