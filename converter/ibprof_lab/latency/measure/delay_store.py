# SPDX-License-Identifier: Apache-2.0
"""Storage of delays while they are measured: in memory, and saved to the file of delays."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, InputError, quote_found
from ibprof_lab.lab_choices import STATISTICS
from ibprof_lab.latency.files.delay_files import read_delays, write_delays
from ibprof_lab.latency.model.delays import Attribute, Delays, empty_delays

_log = logging.getLogger(__name__)

_SAVING_SHARE = 0.05
"""Saving takes at most this fraction of the measurement's time; the results of 10,000 processes are gigabytes."""

_SAME = ("mode", "schedule", "one_way", "window", "noise_mes_length", "num_noise_mes", "num_noise_proc")
"""A file's measurement can continue only if these attributes of the file equal the plan's."""


class DelayStore:
    """Delays in the first process's memory during a measurement, saved at most every `save_every_s` seconds."""

    def __init__(self, path: Path, delays: Delays, save_every_s: float) -> None:
        self.path, self.save_every_s = path, save_every_s
        self.delays = delays
        self.begin = time.monotonic()
        self.spent_before = float(delays.attributes.get("elapsed_s", 0.0))
        self.saved, self.saving_s = self.begin, 0.0

    def add(self, rows: npt.NDArray[np.float64], keep_lower: bool) -> None:
        """Add results.

        Args:
            rows: float64 [k, 10]: index of the length, sender, receiver, statistics, repetitions.
            keep_lower: True to keep a pair's result with the lower median, since other load only increases a delay.
                False to keep the new result.
        """
        places = tuple(rows[:, column].astype(np.int64) for column in range(3))
        medians = rows[:, 3]
        if keep_lower:
            old = self.delays.median[places]
            better = ~(old <= medians)  # True where not measured
            rows, places = rows[better], (places[0][better], places[1][better], places[2][better])
        for column, name in enumerate(STATISTICS, 3):
            self.delays.present[name][places] = rows[:, column]
        assert self.delays.repetitions is not None
        self.delays.repetitions[places] = rows[:, 9]

    @property
    def is_due(self) -> bool:
        """True when it is time to save."""
        wait = max(self.save_every_s, self.saving_s / _SAVING_SHARE)
        return time.monotonic() - self.saved >= wait

    def save(self, **attributes: Attribute) -> None:
        """Write the file.

        Raises:
            OSError: the file cannot be written.
        """
        begin = time.monotonic()
        known = dict(self.delays.attributes) | {
            "finished": now(),
            "elapsed_s": round(self.spent_before + begin - self.begin, 3),
            "complete": int(np.isfinite(self.delays.median).all()),
        }
        self.delays = replace(self.delays, attributes=known | attributes)
        try:
            write_delays(self.path, self.delays)
        finally:
            self.saved = time.monotonic()
            self.saving_s = self.saved - begin

    def save_if_possible(self) -> None:
        """Write the file; if writing fails, log the error and continue, since a later save may succeed."""
        try:
            self.save()
        except OSError as error:
            _log.warning("%s: saving failed (%s); the measurement continues", self.path, error.strerror or error)


def continue_delays(
    path: Path,
    hosts: tuple[str, ...],
    cores: tuple[str, ...],
    lengths: npt.NDArray[np.int64],
    attributes: Mapping[str, Attribute],
) -> Delays:
    """Read the results of an earlier run, reordered to this run's processes.

    Raises:
        InconsistentError: the earlier run had other hosts, other numbers of processes on them, or other settings.
        InputError: the file holds no delays.
    """
    earlier = read_delays(path)
    here, there = Counter(hosts), Counter(earlier.hosts)
    if others := sorted(host for host in here | there if here[host] != there[host]):
        expected, found = (", ".join(f"{host}: {count[host]}" for host in others) for count in (here, there))
        raise InconsistentError(
            f"{path}: expected processes per host as in this run, {quote_found(expected)}, found {quote_found(found)}"
        )
    if not np.array_equal(earlier.lengths, lengths):
        raise InconsistentError(f"{path}: expected message lengths {_show(lengths)}, found {_show(earlier.lengths)}")
    for name in _SAME:
        if earlier.attributes.get(name, attributes.get(name)) != attributes.get(name):
            raise InconsistentError(
                f"{path}: expected {name} {attributes.get(name)}, found {earlier.attributes.get(name)}"
            )
    delays = empty_delays(hosts, lengths, cores, earlier.attributes)
    labels = {label: place for place, label in enumerate(earlier.labels)}
    order = [labels[label] for label in delays.labels]
    reordered = earlier.select(order)
    for name, cube in reordered.present.items():
        delays.present[name][:] = cube
    if reordered.repetitions is not None and delays.repetitions is not None:
        delays.repetitions[:] = reordered.repetitions
    return delays


def check_writable(path: Path) -> None:
    """Check that the file of a planned measurement can be written.

    Raises:
        OSError: the file cannot be written.
        InputError: the path exists and is not a file.
    """
    if path.exists() and not path.is_file():
        raise InputError(path, None, "a file to write", "something else")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        error.filename = os.fspath(path)
        raise


def _show(lengths: npt.NDArray[np.int64]) -> str:
    shown = ", ".join(str(each) for each in lengths[:8].tolist())
    return shown + (f" and {len(lengths) - 8} more" if len(lengths) > 8 else "")


def now() -> str:
    """Return the current time in the format of delay files: UTC, ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
