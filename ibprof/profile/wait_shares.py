# SPDX-License-Identifier: Apache-2.0
"""Time in calls as waiting, transfer and an unsplit rest. `ibprof.waiting` finds the parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.row_arrays import RowArrays


@dataclass(frozen=True, slots=True)
class WaitShares(RowArrays):
    """Time in calls and its parts, a row for each row of `Profile.times`; `time_s` is the sum of the three parts.

    Attributes:
        rank, region, operation, site: int32.
        time_s: float64, recorded time in calls, in seconds.
        wait_s: float64, time of waiting for other ranks, in seconds.
        transfer_s: float64, time of data transfer, in seconds.
        unsplit_s: float64, time without a sample or a clock that could split it, in seconds.
        error_s: float64, standard error of `wait_s` and `transfer_s`, from sampling and clocks, in seconds.
    """

    rank: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    site: npt.NDArray[np.int32]
    time_s: npt.NDArray[np.float64]
    wait_s: npt.NDArray[np.float64]
    transfer_s: npt.NDArray[np.float64]
    unsplit_s: npt.NDArray[np.float64]
    error_s: npt.NDArray[np.float64]

    def sum_parts(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> dict[str, float]:
        """Return sums of some rows: `wait_s`, `transfer_s`, `unsplit_s` and their standard error `split_error_s`."""
        # Members of one instance are sampled together, so their errors add up over ranks.
        places = np.stack((self.region, self.operation, self.site))[:, rows]
        _, place = np.unique(places, axis=1, return_inverse=True)
        errors = np.bincount(place.ravel(), weights=self.error_s[rows])
        parts = {name: float(getattr(self, name)[rows].sum()) for name in ("wait_s", "transfer_s", "unsplit_s")}
        return {**parts, "split_error_s": float(np.sqrt((errors**2).sum()))}
