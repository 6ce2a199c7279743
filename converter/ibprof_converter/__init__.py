# SPDX-License-Identifier: Apache-2.0
"""Turn profiles and fabrics into link loads, pictures and reports.

The public names load their modules on first use, so that importing the package is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ibprof_converter.analysis.fabric_loads import FabricLoads
    from ibprof_converter.analysis.routed_fabric import RoutedFabric
    from ibprof_converter.api import load_links, read_fabric, read_traffic

__all__ = ["FabricLoads", "RoutedFabric", "load_links", "read_fabric", "read_traffic"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ibprof_converter import api  # noqa: PLC0415  (numpy and the readers take most of a second to import)

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
