# SPDX-License-Identifier: Apache-2.0
"""The studies of interference and of what helps against it: which simulations each is made of.

Source: chapters 5 and 6 of the thesis on whose method ibprof stands; what it does not state is said at each study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ibprof_converter.simulation.study.cell import Cell, Setting
from ibprof_converter.simulation.study.job_patterns import (
    DETAIL_BESIDE,
    DETAIL_OWN,
    IO,
    KIB,
    MIB,
    MPI,
    MS,
    TABLE_5_1,
    US,
    WHOLE_BYTES,
    cells_of,
    io,
    mpi,
)
from ibprof_converter.simulation.study.result_tables import Mean
from ibprof_converter.simulation.workload.roles import JobPlacement, ServerPlacement, Workload

Part = tuple[Setting, list[Workload], str]
"""A setting, the jobs, and which of them is measured: a baseline and an interference run."""


@dataclass(frozen=True, slots=True)
class Study:
    """A named set of simulations.

    Attributes:
        summary: what it asks, in a line.
        parts: gives them from a setting, and whether it is to be quick.
        by: columns of the table of means by which the summary tells slow-downs apart.
    """

    summary: str
    parts: Callable[[Setting, bool], Iterable[Part]]
    by: tuple[str, ...]

    def make(self, setting: Setting, seeds: Sequence[int], quick: bool) -> list[Cell]:
        """Give the cells, all of a seed before those of the next; a baseline that several parts share is there once."""
        cells = {
            cell: None
            for seed in seeds
            for changed, workloads, measured in self.parts(setting, quick)
            for cell in cells_of(changed, workloads, measured, [seed])
        }
        return list(cells)

    def conclude(self, means: Sequence[Mean]) -> dict[str, Any]:
        """Give the slow-downs by `by`, those of each job under a key of its name."""
        found: dict[str, Any] = {}
        for mean in means:
            if mean["run"] != "interference":
                continue
            of_job = found.setdefault(f"{mean['measured']}_slowdown", {})
            name = " ".join(_name(mean, column) for column in self.by)
            of_job[name] = mean["slowdown"]
        return found


def _name(mean: Mean, column: str) -> str:
    value = mean[column]
    text = f"{value:g}" if isinstance(value, float) else str(value)
    # What an enumeration says needs no name; numbers do.
    return text if isinstance(value, str) else f"{column}={text}"


def _patterns(quick: bool) -> list[tuple[int, float]]:
    quick_ones = {4 * KIB: (500 * US, 1 * US), 512 * KIB: (500 * US, 100 * US), 4 * MIB: (5 * MS, 100 * US)}
    return [(size, interval) for size, row in (quick_ones if quick else TABLE_5_1).items() for interval in row]


def _interference(setting: Setting, quick: bool) -> Iterator[Part]:
    """Section 5.4: every pattern of each job against every pattern of the other."""
    for io_pattern in _patterns(quick):
        for mpi_pattern in _patterns(quick):
            for measured in (IO, MPI):
                yield setting, [io(*io_pattern), mpi(*mpi_pattern)], measured


def _detail(setting: Setting, quick: bool) -> Iterator[Part]:
    """Figures 5.4 and 5.7: 4 MB against 4 MB, with more intervals."""
    for interval in (5 * MS, 2 * MS, 1 * MS) if quick else DETAIL_OWN:
        for other in (1 * MS,) if quick else DETAIL_BESIDE:
            yield setting, [io(4 * MIB, interval), mpi(4 * MIB, other)], IO
            yield setting, [io(4 * MIB, other), mpi(4 * MIB, interval)], MPI


def _routing(setting: Setting, quick: bool) -> Iterator[Part]:
    """Section 5.4.3: 512 KB against 512 KB, with the tables and with adaptive routing."""
    row = (500 * US, 100 * US) if quick else TABLE_5_1[512 * KIB]
    for adaptive in (False, True):
        for io_interval in row:
            for mpi_interval in row:
                for measured in (IO, MPI):
                    jobs = [io(512 * KIB, io_interval), mpi(512 * KIB, mpi_interval)]
                    yield replace(setting, adaptive=adaptive), jobs, measured


def _scaling(setting: Setting, quick: bool) -> Iterator[Part]:
    """Section 5.4.4. The MPI job beside I/O is not stated: it is that of section 6.4."""
    for share in (0.25, 0.5, 0.75):
        for interval in (2, 128) if quick else (2, 4, 8, 16, 32, 64, 128):
            yield setting, [io(4 * MIB, interval * MS, share), mpi(4 * MIB, 500 * US, 1 - share)], IO
        for size in (4, 1024) if quick else (4, 16, 64, 256, 1024):
            yield setting, [io(share=1 - share), mpi(size * KIB, share=share)], MPI


def _mitigation(setting: Setting) -> Iterator[Part]:
    """The two pairs of jobs of section 6.4."""
    yield setting, [io(), mpi()], MPI
    yield setting, [io(interval=128 * MS), mpi(4 * MIB)], IO


def _vary(settings: Callable[[Setting], Iterable[Setting]]) -> Callable[[Setting, bool], Iterator[Part]]:
    def parts(setting: Setting, quick: bool) -> Iterator[Part]:
        for changed in settings(setting):
            pairs = list(_mitigation(changed))
            yield from pairs[:1] if quick else pairs

    return parts


def _place_jobs(setting: Setting) -> list[Setting]:
    return [replace(setting, job_placement=each) for each in JobPlacement]


def _place_servers(setting: Setting) -> list[Setting]:
    return [replace(setting, server_placement=each) for each in ServerPlacement]


def _throttle(setting: Setting, quick: bool) -> Iterator[Part]:
    """Section 6.5.3: requests kept apart in time; whole checkpoints of them, or a twentieth where it is to be quick.

    MPI is measured beside I/O that does not end, so that it is never beside clients that have.
    """
    limit = -(-WHOLE_BYTES // (4 * MIB)) // (20 if quick else 1)
    for window in (0, 2, 3, 4, 5) if quick else (0, 1, 1.5, 2, 2.5, 3, 4, 5):
        yield setting, [io(window=window * MS), mpi()], MPI
        yield setting, [io(window=window * MS, limit=limit), mpi()], IO


def _parameters(setting: Setting, quick: bool) -> Iterator[Part]:
    """What the thesis does not state, varied one by one: what becomes of its main figures."""
    hardware = setting.hardware
    changes: list[Mapping[str, Any]] = [{}]
    changes += [{"lane_bytes": size * KIB} for size in ((32,) if quick else (16, 32, 128, 256))]
    changes += [{"packet_bytes": size} for size in (() if quick else (512, 1024, 2048, 8192))]
    changes += [{"switch_ns": delay} for delay in ((200.0,) if quick else (0.0, 200.0, 400.0))]
    settings = [replace(setting, hardware=replace(hardware, **change)) for change in changes]
    for changed in (*settings, replace(setting, adaptive=True)):
        yield changed, [io(), mpi()], MPI
        yield changed, [io(4 * KIB, 1 * US), mpi(4 * MIB, 100 * US)], IO
        if not quick:
            yield changed, [io(4 * MIB, 5 * MS), mpi(4 * MIB, 500 * US)], IO
            yield changed, [io(4 * MIB, 1 * MS), mpi(4 * MIB, 500 * US)], IO
            yield replace(changed, job_placement=JobPlacement.RANDOM_SWITCH), [io(), mpi()], MPI


_EACH = ("io_bytes", "io_interval_us", "mpi_bytes", "mpi_interval_us")

STUDIES: dict[str, Study] = {
    "interference": Study("each pattern of MPI against each of I/O (figures 5.3 and 5.5)", _interference, _EACH),
    "detail": Study("4 MB against 4 MB at more intervals (figures 5.4 and 5.7)", _detail, _EACH),
    "routing": Study(
        "forwarding tables or adaptive routing (figures 5.8 and 5.9)",
        _routing,
        ("routing", "io_interval_us", "mpi_interval_us"),
    ),
    "scaling": Study("shares of the machine (figures 5.10 and 5.11)", _scaling, ("io_share", "mpi_share", *_EACH)),
    "placement": Study(
        "hosts drawn one by one, or by whole switches (figure 6.2)", _vary(_place_jobs),
        ("job_placement",),
    ),
    "servers": Study(
        "where the I/O servers are (figure 6.5)", _vary(_place_servers), ("server_placement",)
    ),
    "throttle": Study("I/O requests kept apart in time (figure 6.7)", _throttle, ("io_window_us",)),
    "parameters": Study(
        "what the thesis does not state: buffers, packets, delays, routing",
        _parameters,
        ("lane_bytes", "packet_bytes", "switch_ns", "routing", "job_placement", *_EACH),
    ),
}  # fmt: skip
"""By the name that `ibprof-sim study` takes."""
