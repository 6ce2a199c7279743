# SPDX-License-Identifier: Apache-2.0
"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check.

    Attributes:
        about: its subject.
        good: whether a job can be recorded as far as this check goes.
        text: the result, and what to do if it is not good.
    """

    about: str
    good: bool
    text: str
