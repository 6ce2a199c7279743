# SPDX-License-Identifier: Apache-2.0
"""The verdict on a run as the page shows it: its sentences, its first cause, and its most loaded link direction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ibprof.verdict.verdict_data import Verdict, VerdictKind
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis
from ibprof_converter.hotspots.verdict_links import has_fault

_NAME_CAUSE = (VerdictKind.HOST_LINKS, VerdictKind.SWITCH_LINKS, VerdictKind.UNKNOWN)
"""Kinds of verdict whose sentences name a cause. With others the network needs no change."""


def describe_verdict(
    verdict: Verdict, diagnosis: Diagnosis | None, order: Sequence[npt.NDArray[np.intp]]
) -> dict[str, object]:
    """Return the verdict as plain values.

    Args:
        verdict: on the run.
        diagnosis: of its links; None where they are not diagnosed.
        order: of each rail, the link directions in the order of the page.

    Returns:
        The keys of `Verdict.as_json`, and `has_fault`; `end`, the most loaded link direction in the numbering of the
        page, or None; `first_cause` as in a report, or None where the sentences name none.
    """
    causes = diagnosis.causes if diagnosis and verdict.kind in _NAME_CAUSE else ()
    return verdict.as_json() | {
        "has_fault": has_fault(verdict, diagnosis),
        "end": _number_busiest(diagnosis, order) if diagnosis else None,
        "first_cause": causes[0].as_json() if causes else None,
    }


def _number_busiest(diagnosis: Diagnosis, order: Sequence[npt.NDArray[np.intp]]) -> int | None:
    busiest = diagnosis.busiest_at
    if busiest is None:
        return None
    before = sum(len(ends) for ends in order[: busiest.rail])
    return before + int(np.flatnonzero(order[busiest.rail] == 2 * busiest.link + busiest.end)[0])
