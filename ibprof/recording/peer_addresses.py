# SPDX-License-Identifier: Apache-2.0
"""Ranks of peers that a recording knows by network address: the rank with this address."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof.native.recording_layout import recording_layout
from ibprof.recording.host_file import RecordingFile

Indices = npt.NDArray[np.intp]


def find_owners(files: Sequence[RecordingFile], ranks: Sequence[npt.NDArray[np.int32]]) -> dict[bytes, int]:
    """Return the rank of each address that a process states as its own.

    Args:
        files: of one run.
        ranks: of each file's processes, int32 [process].
    """
    owners: dict[bytes, int] = {}
    for file, rank in zip(files, ranks, strict=True):
        records, owner = file.records("IBP_SEGMENT_ADDRESSES")
        for index in np.flatnonzero(records["own"]):
            owners[_key(records[index])] = int(rank[owner[index]])
    return owners


def resolve_peers(
    file: RecordingFile, peers: npt.NDArray[np.uint32], owner: Indices, owners: dict[bytes, int]
) -> npt.NDArray[np.uint32]:
    """Replace addresses by ranks.

    Args:
        file: of the counters.
        peers: uint32 [counter], as recorded.
        owner: process of each counter, in the order of the file.
        owners: from `find_owners`.

    Returns:
        uint32 [counter]; IBP_PEER_UNKNOWN for an address of no recorded process.

    Raises:
        InputError: a counter names an address that its process does not have.
    """
    constants = recording_layout().constants
    unknown, first = constants["IBP_PEER_UNKNOWN"], constants["IBP_PEER_ADDRESS"]
    by_address = np.flatnonzero((peers >= first) & (peers != unknown))
    if not len(by_address):
        return peers
    records, record_owner = file.records("IBP_SEGMENT_ADDRESSES")
    rank_of_record = np.array([owners.get(_key(record), unknown) for record in records], np.uint32)
    begin = np.searchsorted(record_owner, np.arange(len(file.processes)))
    count = np.bincount(record_owner, minlength=len(file.processes))
    number = peers[by_address].astype(np.intp) - first
    process = owner[by_address]
    beyond = np.flatnonzero(number >= count[process])
    if len(beyond):
        limit = count[process[beyond[0]]]
        raise InputError(file.path, None, f"an address below {limit}", str(number[beyond[0]]))
    resolved = peers.copy()
    resolved[by_address] = rank_of_record[begin[process] + number]
    return resolved


def _key(record: np.void) -> bytes:
    return int(record["bytes"]).to_bytes(4, "little") + bytes(record["address"])
