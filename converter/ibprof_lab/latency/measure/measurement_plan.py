# SPDX-License-Identifier: Apache-2.0
"""Plan of a measurement: lengths, mode, schedule, noise and limits."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_lab.latency.measure.batch_samples import Sampling
from ibprof_lab.latency.model.delays import Attribute

ONE_TO_ONE, ASYNC, ALL_TO_ALL, BANDWIDTH = "one_to_one", "async", "all_to_all", "bandwidth"
MODES = (ONE_TO_ONE, ASYNC, ALL_TO_ALL, BANDWIDTH)

AGAIN_MORE = 3
"""Ratio of batches of a pair that is measured again."""

SYNCHRONISING_S = 3e-4
"""Approximate cost of the end of a round."""


@dataclass(frozen=True, slots=True)
class BackgroundNoise:
    """Messages of other processes while a pair measures, as network_tests2 has them.

    Attributes:
        processes: number of others that exchange messages, in random pairs for each measurement.
        messages: of one burst.
        length: bytes of each.
    """

    processes: int = 0
    messages: int = 1
    length: int = 0


@dataclass(frozen=True, slots=True)
class MeasurementPlan:
    """The plan of a measurement; the same on every process.

    Attributes:
        lengths: bytes of the messages, int64 [L], ascending.
        mode: one of `MODES`.
        schedule: a name of `SCHEDULES`.
        sampling: number and length of batches of each pair and length.
        one_way: whether answers are empty messages, so that the two directions can differ.
        window: messages in flight, for bandwidth.
        noise: messages of others.
        seed: of random choices.
        save_every_s: seconds after which results are saved.
        limit_s: seconds after which to stop; None for never.
        again: share of the pairs that may be measured again.
        again_s: instead of a share, about how many seconds that may take.
    """

    lengths: npt.NDArray[np.int64]
    mode: str = ONE_TO_ONE
    schedule: str = "rounds"
    sampling: Sampling = field(default_factory=Sampling)
    one_way: bool = False
    window: int = 64
    noise: BackgroundNoise = field(default_factory=BackgroundNoise)
    seed: int = 0
    save_every_s: float = 30.0
    limit_s: float | None = None
    again: float = 0.05
    again_s: float | None = None

    def check(self, processes: int) -> None:
        """Refuse a plan that does not fit the number of processes.

        Raises:
            UsageError: it does not fit.
        """
        at_once = self.mode == ALL_TO_ALL or self.schedule == "shift"
        if self.schedule == "shift" and self.mode != ONE_TO_ONE:
            raise UsageError(f"--schedule shift: expected --mode {ONE_TO_ONE}, found {self.mode}")
        if self.one_way and (at_once or self.mode != ONE_TO_ONE):
            raise UsageError(f"--one-way: expected --mode {ONE_TO_ONE} and a schedule of pairs")
        if self.noise.processes and self.schedule != "sequential":
            raise UsageError(f"--noise-processes: expected --schedule sequential, found {self.schedule}")
        if self.noise.processes and at_once:
            raise UsageError(f"--noise-processes: expected a mode of pairs, found {self.mode}")
        if self.noise.processes % 2 or self.noise.processes > max(processes - 2, 0):
            raise UsageError(
                f"--noise-processes: expected an even number, as they exchange in pairs, of at most "
                f"{max(processes - 2, 0) // 2 * 2}, the others of {processes} processes; found {self.noise.processes}"
            )

    @property
    def is_directed(self) -> bool:
        """Return whether the directions of a pair are different delays; those of round trips and exchanges are not."""
        return self.one_way or self.mode == BANDWIDTH

    @property
    def seconds_of_pair_again(self) -> float:
        """Longest time to measure a pair again, of one length, as if it were alone."""
        return 2 * (AGAIN_MORE * self.sampling.repetitions + 1.5) * self.sampling.batch_s + SYNCHRONISING_S

    def describe(self) -> dict[str, Attribute]:
        """Return the attributes that a file of delays keeps."""
        known: dict[str, Attribute] = {
            "mode": self.mode,
            "schedule": ALL_TO_ALL if self.mode == ALL_TO_ALL else self.schedule,
            "repetitions_planned": self.sampling.repetitions,
            "batch_s": self.sampling.batch_s,
            "one_way": int(self.one_way),
            "noise_mes_length": self.noise.length if self.noise.processes else 0,
            "num_noise_mes": self.noise.messages if self.noise.processes else 0,
            "num_noise_proc": self.noise.processes,
            "seed": self.seed,
        }
        return known | ({"window": self.window} if self.mode == BANDWIDTH else {})
