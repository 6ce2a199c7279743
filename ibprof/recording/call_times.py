# SPDX-License-Identifier: Apache-2.0
"""Time inside calls: ticks of each process's clock, and calls timed at random."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof.profile.row_arrays import Columns
from ibprof.recording.host_file import Owners, RecordingFile, Records


def find_times(file: RecordingFile, times: Records, owner: Owners) -> Columns:
    """Estimate the time inside the calls of each record, as csrc/preload/counting/times.h describes.

    One call in W is timed at random, so each one stands for W (the estimator of Horvitz and Thompson, Journal of the
    American Statistical Association 47, 1952).

    Args:
        file: of the recording.
        times: `ibp_time`.
        owner: the index of each one's process.

    Returns:
        The columns `calls`, `time_ns` and `error_ns` of `CallTimes`.

    Raises:
        InputError: a process has times, and no clock.
    """
    tick_ns = find_tick_ns(file, owner)
    weight = file.processes[owner]["times_weight"].astype(np.float64)
    variance = weight * (weight - 1) * np.maximum(times["sampled_squares"], 0)
    return {
        "calls": times["calls"].astype(np.uint64),
        "time_ns": _whole(_inside_ticks(file, times, owner) * tick_ns),
        "error_ns": _whole(np.sqrt(variance) * tick_ns),
    }


def find_overlaps(file: RecordingFile, times: Records, owner: Owners) -> list[int]:
    """Return by how much the times of each process exceed the time during which any thread was inside a call, in ns.

    A killed process may have threads inside calls whose time it never recorded: then it is a lower limit.

    Args:
        file: of the recording.
        times: `ibp_time`.
        owner: the index of each one's process.
    """
    found = [0] * len(file.processes)
    inside = _inside_ticks(file, times, owner)
    for index in np.intersect1d(owner, np.flatnonzero(file.processes["busy_ticks"])).tolist():
        ticks = inside[owner == index].sum() - float(file.processes["busy_ticks"][index])
        found[index] = max(round(ticks * float(find_tick_ns(file, np.array([index]))[0])), 0)
    return found


def _inside_ticks(file: RecordingFile, times: Records, owner: Owners) -> npt.NDArray[np.float64]:
    """Return the ticks of each record: those that were timed, and what the sampled ones stand for."""
    weight = file.processes[owner]["times_weight"].astype(np.float64)
    inside: npt.NDArray[np.float64] = times["ticks"] + weight * times["sampled_ticks"]
    return inside


def find_tick_ns(file: RecordingFile, owner: Owners) -> npt.NDArray[np.float64]:
    """Return the length of a tick of processes' clocks, in ns: [process of `owner`].

    Raises:
        InputError: a process has no clock.
    """
    process = file.processes[owner]
    ticks = process["clock_ticks"][:, 1].astype(np.int64) - process["clock_ticks"][:, 0].astype(np.int64)
    elapsed_ns = process["clock_ns"][:, 1].astype(np.int64) - process["clock_ns"][:, 0].astype(np.int64)
    if (np.minimum(ticks, elapsed_ns) <= 0).any() or (process["times_weight"] < 1).any():
        raise InputError(file.path, None, "a clock that was read at two moments", "times without one")
    length: npt.NDArray[np.float64] = elapsed_ns / ticks
    return length


def _whole(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Return the nearest whole numbers; damaged ones that are too large become the largest."""
    return np.nan_to_num(np.minimum(np.rint(numbers), 2.0**62)).astype(np.uint64)
