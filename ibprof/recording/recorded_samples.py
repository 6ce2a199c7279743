# SPDX-License-Identifier: Apache-2.0
"""Read samples of collectives and messages from a recording, as rows of a Profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import recording_layout
from ibprof.profile.profile_data import CollectiveSamples, MessageSamples, Side
from ibprof.profile.row_arrays import Columns, Rows
from ibprof.recording.host_file import Owners, RecordingFile, locate_records

SAMPLES = ("IBP_SEGMENT_COLLECTIVE_SAMPLES", "IBP_SEGMENT_MESSAGE_SAMPLES")
NCCL_SAMPLES = "IBP_SEGMENT_NCCL_SAMPLES"

MOST_SAMPLES = 1 << 20
"""Approximate limit of collective samples, and of message samples, in a profile."""

_STEP, _FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Constants of splitmix64 (Steele, Lea, Flood, 2014)."""

_Translate = Callable[[Any, Owners], npt.NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class SampleChoice:
    """Rule that selects the samples of a run to read.

    Attributes:
        thinning: kind of segment -> k. 1 of 2^k collectives or messages is read.
        long_ns: score (`score_ns`) above which the recording contains all collectives.
    """

    thinning: Mapping[str, int]
    long_ns: int


def choose_samples(files: Sequence[RecordingFile]) -> SampleChoice:
    """Return the rule that selects up to about `MOST_SAMPLES` samples of each kind.

    Each process recorded all collectives with a score above the process's limit. `long_ns` is the largest limit.
    """
    counts = {kind: sum(file.count(kind) for file in files) for kind in (*SAMPLES, NCCL_SAMPLES)}
    complete = max((int(file.processes["long_ns"].max(initial=0)) for file in files), default=0)
    return SampleChoice(
        {kind: (max(count - 1, 0) // MOST_SAMPLES).bit_length() for kind, count in counts.items()}, complete
    )


def read_samples(
    file: RecordingFile,
    kind: str,
    world_rank: npt.NDArray[np.int32],
    operation: npt.NDArray[np.int32],
    regions: _Translate,
    sites: _Translate,
    choice: SampleChoice,
) -> Columns:
    """Read the samples of a file.

    Args:
        kind: kind of the segments, `IBP_SEGMENT_..._SAMPLES`.
        world_rank: rank of each process.
        operation: the profile's numbers of the file's operations.
        regions: function that returns the profile's numbers of regions, from numbers in a process and indices of
            processes.
        sites: function that returns the profile's numbers of sites, from records with `site`.
        choice: result of `choose_samples`.

    Returns:
        The columns of `CollectiveSamples` or `MessageSamples`, in the order of the records.

    Raises:
        InputError: an origin, region, operation or site is invalid.
    """
    records, owner = file.records(kind)
    origins, origins_owner = file.records("IBP_SEGMENT_ORIGINS")
    # Leave out unused records, which name no communicator, and records without an origin: the recording was full.
    unknown = np.uint32(0xFFFFFFFF)
    known = (records["communicator"] != 0) & (records["origin"] != unknown) & (records["end_origin"] != unknown)
    is_source = _are_sources(records)
    thinning = choice.thinning[kind]
    limits = _find_limits(records, owner) if kind == SAMPLES[1] else np.full(len(records), choice.long_ns)
    is_long, is_chosen = _find_long(records, limits)
    is_chosen &= _is_kept(records, thinning) | is_source
    chosen = np.flatnonzero(known & (is_chosen | is_long))
    records, owner, is_long, is_chosen = records[chosen], owner[chosen], is_long[chosen], is_chosen[chosen]
    records["level"] = np.where(is_chosen, records["level"] + np.uint32(thinning), 0)
    began = origins[locate_records(file, "an origin", records["origin"], owner, origins_owner)]
    ended = origins[locate_records(file, "an origin", records["end_origin"], owner, origins_owner)]
    columns: Columns = {
        "rank": world_rank[owner],
        "region": regions(ended["region"], owner),
        "operation": operation[began["operation"]],
        "site": sites(began, owner),
        "end_operation": operation[ended["operation"]],
        "end_site": sites(ended, owner),
    }
    kept = [name for name in records.dtype.names or () if "origin" not in name and name not in ("root", "score_ns")]
    columns |= {name: records[name] for name in kept}
    if "score_ns" in (records.dtype.names or ()):
        columns |= {"is_long": is_long, "is_chosen": is_chosen}
    if "root" in (records.dtype.names or ()):
        no_root = recording_layout().constants["IBP_NO_ROOT"]
        columns["root"] = np.where(records["root"] == no_root, -1, records["root"].astype(np.int64))
    return columns


def _are_sources(records: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    if "side" not in (records.dtype.names or ()):
        return np.zeros(len(records), np.bool_)
    is_source: npt.NDArray[np.bool_] = records["side"] == Side.SOURCE
    return is_source


def _find_limits(records: npt.NDArray[np.void], owner: Owners) -> npt.NDArray[np.uint64]:
    """Return each record's limit: the record's process recorded all messages with a `score_ns` above this limit."""
    constants = recording_layout().constants
    is_used = records["level"] == constants["IBP_LEVEL_LONG"]
    # Leave out a record without a communicator: the process was killed while replacing this record.
    is_kept = is_used & (records["communicator"] != 0)
    processes = int(owner.max(initial=-1)) + 1
    limits = np.full(processes, np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(limits, owner[is_kept], records["score_ns"][is_kept])
    limits[np.bincount(owner[is_used], minlength=processes) < constants["IBP_LONGEST_MAX"]] = 0
    return limits[owner]


def _find_long(
    records: npt.NDArray[np.void], long_ns: npt.NDArray[np.integer[Any]]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return two masks: samples with a `score_ns` above `long_ns`, and samples that the hash chose."""
    if "score_ns" not in (records.dtype.names or ()):
        return np.zeros(len(records), np.bool_), np.ones(len(records), np.bool_)
    is_chosen = records["level"] != recording_layout().constants["IBP_LEVEL_LONG"]
    # A limit of 0 means that no long sample is missing.
    has_all = (long_ns == 0) & (not is_chosen.all())
    return (records["score_ns"] > long_ns) & ((long_ns > 0) | has_all), is_chosen


def _is_kept(records: npt.NDArray[np.void], thinning: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the samples to read. All ranks of a collective or message make the same choice."""
    if not thinning:
        return np.ones(len(records), np.bool_)
    hashed = np.zeros(len(records), np.uint64)
    for name in ("communicator", "number", "tag"):
        if name in (records.dtype.names or ()):
            parts = records[name].astype(np.int64)
            if name == "tag":
                # Hash the tag only of a sender's first message (number 0), as the recorder does.
                parts = np.where(records["number"] == 0, parts >> 4, -1)
            hashed = (hashed ^ parts.astype(np.uint64)) + _STEP
            hashed = (hashed ^ hashed >> np.uint64(30)) * _FACTOR
            hashed ^= hashed >> np.uint64(31)
    kept: npt.NDArray[np.bool_] = hashed >> np.uint64(64 - thinning) == 0
    return kept


def join_samples(made: type[Rows], parts: Sequence[Columns]) -> Rows:
    """Return the sorted samples of all files; `parts` are emptied."""
    columns = {
        name: np.concatenate([part.pop(name) for part in parts] or [np.zeros(0)], dtype=column, casting="unsafe")
        for name, column in made.column_types().items()
    }
    order = np.lexsort(_keys(made, columns))
    return made(**{name: columns.pop(name)[order] for name in tuple(columns)})


def _keys(made: type[Rows], columns: Columns) -> list[npt.NDArray[Any]]:
    """Return the sort keys, the most significant key last."""
    if issubclass(made, CollectiveSamples):
        return [columns["member"], columns["number"], columns["communicator"]]
    if not issubclass(made, MessageSamples):
        raise TypeError(made)
    is_sender = np.isin(columns["side"], (Side.SENDER, Side.NOTIFIER))
    rank, peer = columns["rank"].astype(np.int64), columns["peer"].astype(np.int64)
    sender, receiver = np.where(is_sender, rank, peer), np.where(is_sender, peer, rank)
    return [columns["side"], columns["number"], columns["tag"], receiver, sender, columns["communicator"]]


def describe_sampling(process: np.void) -> dict[str, Any]:
    """Return the attributes of a `Rank` that describe its samples.

    Args:
        process: `ibp_process`.
    """
    if not process["sample_clock_ns"][0]:
        return {}
    offsets = [
        int(at) - int(clock) for at, clock in zip(process["sample_unix_ns"], process["sample_clock_ns"], strict=True)
    ]
    collectives, messages = process["instances"].tolist()
    unsampled = [tuple(reasons) for reasons in process["unsampled"].tolist()]
    return {
        "clock_offset_ns": offsets[0],
        "clock_drift_ns": offsets[1] - offsets[0],
        "collectives": collectives,
        "messages": messages,
        "unsampled_collectives": unsampled[0],
        "unsampled_messages": unsampled[1],
    }
