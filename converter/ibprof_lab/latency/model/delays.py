# SPDX-License-Identifier: Apache-2.0
"""Delays of messages of each length between all pairs of processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ibprof_lab.lab_choices import STATISTICS

Cube: TypeAlias = npt.NDArray[np.float32]
Attribute: TypeAlias = str | int | float

FIRMWARE = "firmware"
"""Value of `attributes["source"]` for NUMA distances of the firmware, which have no measurement errors and no unit."""


@dataclass(frozen=True, slots=True, eq=False)
class Delays:
    """The delay cube of L message lengths between n processes.

    A cube `c` has the shape [L, n, n]. `c[l, i, j]` is the time of a message of `lengths[l]` bytes from process i to
    process j: one way, or half of a round trip. NaN means "not measured"; the diagonal is 0. `c[l, i, j]` may differ
    from `c[l, j, i]`.

    Attributes:
        hosts: name of each process's host, length n. Several processes of one host repeat the name.
        lengths: message lengths in bytes, int64 [L], ascending.
        median: median of the samples, seconds, float32 [L, n, n]. If the file has no median, `median` holds another
            statistic, and `attributes["statistic"]` has its name.
        minimum, lower_quartile, upper_quartile, mean, deviation: shape and unit as `median`; None if the file lacks the
            statistic or `read_delays` did not read it. The deviation is the sample standard deviation (divisor: count -
            1).
        repetitions: number of samples (batches) of each value, uint32 [L, n, n]; None where unknown.
        cores: cores that each process was bound to, as `0-3,8`; n elements, or empty if unknown.
        attributes: attributes of the measurement: `mpi`, `mode`, `schedule`, `started`, `finished` and others,
            docs/formats/delays.md.
    """

    hosts: tuple[str, ...]
    lengths: npt.NDArray[np.int64]
    median: Cube
    minimum: Cube | None = None
    lower_quartile: Cube | None = None
    upper_quartile: Cube | None = None
    mean: Cube | None = None
    deviation: Cube | None = None
    repetitions: npt.NDArray[np.uint32] | None = None
    cores: tuple[str, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = (len(self.lengths), len(self.hosts), len(self.hosts))
        for name in (*STATISTICS, "repetitions"):
            cube = getattr(self, name)
            if cube is not None and cube.shape != shape:
                raise ValueError(f"{name} has the shape {cube.shape}, not {shape}")
        if len(self.cores) not in (0, len(self.hosts)):
            raise ValueError(f"{len(self.cores)} cores for {len(self.hosts)} processes")
        if np.any(np.diff(self.lengths) <= 0):
            raise ValueError("lengths do not ascend")

    @property
    def processes(self) -> int:
        """Number of processes, n."""
        return len(self.hosts)

    @property
    def present(self) -> dict[str, Cube]:
        """The statistics that are not None: name -> cube."""
        return {name: cube for name in STATISTICS if (cube := getattr(self, name)) is not None}

    @property
    def labels(self) -> tuple[str, ...]:
        """A unique name for each process, from `name_processes`."""
        return name_processes(self.hosts)

    @property
    def measured(self) -> npt.NDArray[np.bool_]:
        """Mask of the delays with a value, bool [L, n, n]; False on the diagonal."""
        return np.isfinite(self.median) & ~np.eye(self.processes, dtype=bool)

    def matrix(self, length: int | None = None, statistic: str = "median") -> Cube:
        """Return the delays of one message length, seconds, float32 [n, n]; a view, not a copy.

        Args:
            length: message length, bytes; None for the shortest.
            statistic: element of `STATISTICS`; this statistic must not be None.

        Raises:
            KeyError: the length was not measured, or the statistic is None.
        """
        row = 0
        if length is not None:
            row = int(np.searchsorted(self.lengths, length))
            if row == len(self.lengths) or self.lengths[row] != length:
                raise KeyError(length)
        matrix: Cube = self.present[statistic][row]
        return matrix

    def bandwidth(self) -> npt.NDArray[np.float64]:
        """Return the bandwidth, bytes/s, float64 [L, n, n]: length / median delay; NaN where not measured.

        The delay includes the latency (Bufe, equation 1.4), so that short messages have a low bandwidth.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = self.lengths[:, None, None] / self.median.astype(np.float64)
        return np.where(np.isfinite(seen) & self.measured, seen, np.nan)

    def select(self, processes: npt.ArrayLike | None = None, lengths: npt.ArrayLike | None = None) -> Delays:
        """Return the delays of the processes and lengths with the given indices; None selects all."""
        chosen = np.arange(self.processes) if processes is None else np.asarray(processes)
        rows = np.arange(len(self.lengths)) if lengths is None else np.asarray(lengths)

        cut: dict[str, Any] = {
            name: None if (cube := getattr(self, name)) is None else cube[np.ix_(rows, chosen, chosen)]
            for name in (*STATISTICS, "repetitions")
        }
        return replace(
            self,
            hosts=tuple(self.hosts[each] for each in chosen),
            lengths=self.lengths[rows],
            cores=tuple(self.cores[each] for each in chosen) if self.cores else (),
            **cut,
        )


def name_processes(hosts: Sequence[str]) -> tuple[str, ...]:
    """Return a unique name for each process: its host, with `#` and a number if several processes share the host."""
    count = Counter(hosts)
    seen: Counter[str] = Counter()
    labels = []
    for host in hosts:
        labels.append(host if count[host] == 1 else f"{host}#{seen[host]}")
        seen[host] += 1
    return tuple(labels)


def empty_delays(
    hosts: tuple[str, ...],
    lengths: npt.NDArray[np.int64],
    cores: tuple[str, ...] = (),
    attributes: Mapping[str, Attribute] | None = None,
) -> Delays:
    """Return `Delays` without measured values: every statistic is NaN (0 on the diagonal), and repetitions are 0."""
    shape = (len(lengths), len(hosts), len(hosts))
    cubes = {name: np.full(shape, np.nan, np.float32) for name in STATISTICS}
    for cube in cubes.values():
        clear_diagonal(cube)
    return Delays(
        hosts,
        lengths,
        **cubes,
        repetitions=np.zeros(shape, np.uint32),
        cores=cores,
        attributes=dict(attributes or {}),
    )


def clear_diagonal(cube: Cube) -> None:
    """Set the delay of each process to itself to 0, in place."""
    cube[:, np.arange(cube.shape[1]), np.arange(cube.shape[1])] = 0
