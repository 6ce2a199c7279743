# SPDX-License-Identifier: Apache-2.0
"""A change applied to the model."""

from __future__ import annotations

from dataclasses import dataclass

from ibprof_converter.hotspots.causes.load_cause import GAIN, KINDS
from ibprof_converter.hotspots.causes.situation import Situation


@dataclass(frozen=True, slots=True)
class Change:
    """A change in the model.

    Attributes:
        cause: name of what it is the remedy of.
        kind: of `KINDS`.
        what: the change, in words.
        after: the situation with it; None where it was not tried or is impossible.
        most: share of the largest time that it must leave at most.
        why_not: why it was not tried, or cannot be a remedy.
        at, evidence, advice, change: as in `LoadCause`.
    """

    cause: str
    kind: str
    what: str
    after: Situation | None
    most: float = GAIN
    why_not: str = ""
    at: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    advice: str = ""
    change: str = ""

    @property
    def rank(self) -> int:
        """Its place among the kinds, the cheapest first."""
        return KINDS.index(self.kind)
