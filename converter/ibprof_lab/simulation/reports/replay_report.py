# SPDX-License-Identifier: Apache-2.0
"""The predicted time of a recorded run as text and as JSON."""

from __future__ import annotations

from typing import Any

from ibprof_lab.simulation.questions.replayed_run import ReplayedTime, ReplayQuestion


def describe_replay(question: ReplayQuestion, found: ReplayedTime) -> dict[str, Any]:
    """Return a prediction as JSON has it."""
    return {
        "seconds": _round(found.seconds),
        "low": _round(found.low),
        "high": _round(found.high),
        "measured_s": _round(found.measured),
        "computing_s": _round(found.computing),
        "replayed_s": found.replayed
        and {"waits_early": _round(found.replayed[0]), "waits_late": _round(found.replayed[1])},
        "predicted_s": {"waits_early": _round(found.predicted[0]), "waits_late": _round(found.predicted[1])},
        "interval_s": _round(question.run.interval),
    }


def format_replay(found: ReplayedTime) -> str:
    """Return a prediction as text."""
    lines = [
        f"predicted {found.seconds:.3g} s ({found.low:.3g} to {found.high:.3g}), {_compare(found)}",
        f"recorded  {found.measured:.3g} s, of which {found.computing:.3g} s outside of MPI",
    ]
    if found.replayed:
        early, late = found.replayed
        lines.append(f"replayed  {early:.3g} s as recorded, {late:.3g} s where ranks wait as late as they can have")
    else:
        lines.append("not calibrated: it was recorded on one host, where nothing crosses a network")
    return "\n".join(lines)


def _compare(found: ReplayedTime) -> str:
    change = round(100 * (found.seconds / found.measured - 1))
    return f"{abs(change)}% {'more' if change > 0 else 'less'} than recorded" if change else "as recorded"


def _round(seconds: float) -> float:
    return round(seconds, 6)
