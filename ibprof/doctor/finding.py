# SPDX-License-Identifier: Apache-2.0
"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One thing that was looked at.

    Attributes:
        about: what.
        good: whether a job can be recorded as far as this goes.
        text: what was found, and what to do when it is not good.
    """

    about: str
    good: bool
    text: str
