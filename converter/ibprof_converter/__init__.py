# SPDX-License-Identifier: Apache-2.0
"""Turn profiles and fabrics into link loads, pictures and reports.

The module of a public name is imported when the name is first used, so that the import of the package is fast. See
docs/api.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ibprof_converter.analysis.loads_view import NetworkView
    from ibprof_converter.analysis.pipeline_results import FabricLoads, RoutedFabric
    from ibprof_converter.api import check, diff, load_links, place, read_fabric, read_traffic, report, view
    from ibprof_converter.checks.fabric_check import FabricHealth
    from ibprof_converter.placement.candidates import PlacementComparison
    from ibprof_converter.reports.job_report import JobReport
    from ibprof_converter.reports.run_comparison import RunComparison

__all__ = [
    "FabricHealth",
    "FabricLoads",
    "JobReport",
    "NetworkView",
    "PlacementComparison",
    "RoutedFabric",
    "RunComparison",
    "check",
    "diff",
    "load_links",
    "place",
    "read_fabric",
    "read_traffic",
    "report",
    "view",
]

_LAB_NAMES = ("StudyResults", "simulate")
"""Public names of version 0.1.0 that are now in `ibprof_lab`."""


if not TYPE_CHECKING:  # hidden from type checkers, which would accept any name of a package with `__getattr__`

    def __getattr__(name: str) -> object:
        if name in _LAB_NAMES:
            import warnings  # noqa: PLC0415  (importing the package must be quick)

            message = f"ibprof_converter.{name} is ibprof_lab.{name} since 0.2.0; version 0.3.0 drops the former name"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            from ibprof_converter import lab  # noqa: PLC0415  (numpy and the readers are slow to import)

            return lab.load_entry_point(name)
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ibprof_converter import api  # noqa: PLC0415  (numpy and the readers take most of a second to import)

        return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
