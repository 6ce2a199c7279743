# SPDX-License-Identifier: Apache-2.0
"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check.

    Attributes:
        about: subject of the check.
        good: true if this check finds no obstacle to recording.
        text: the result, with advice if it is not good.
    """

    about: str
    good: bool
    text: str
