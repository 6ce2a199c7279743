# SPDX-License-Identifier: Apache-2.0
"""Laboratory: measured delays, inferred topologies, packet simulation and the scaling model.

Builds on the public modules of `ibprof_converter`, which never imports this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ibprof_lab.lab_api import simulate
    from ibprof_lab.simulation.study.study_results import StudyResults

__all__ = ["StudyResults", "simulate"]


if not TYPE_CHECKING:  # with a visible `__getattr__`, type checkers would accept any attribute

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ibprof_lab import lab_api  # noqa: PLC0415  (numpy and the readers take most of a second to import)

        return getattr(lab_api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
