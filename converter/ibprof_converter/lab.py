# SPDX-License-Identifier: Apache-2.0
"""Call functions of the laboratory (`ibprof_lab`).

These functions are entry points: the converter imports no module of the laboratory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

from ibprof.errors import MissingToolError
from ibprof_converter.routing.subnet import Subnet

GROUP = "ibprof.lab"

FREE = "free"
BY_LANES = "lanes"
CYCLE = "cycle"


def classify_deadlock(subnets: Sequence[Subnet], lanes: int | None = None) -> str:
    """Return whether routes between hosts can deadlock, on one virtual lane or on `lanes` virtual lanes.

    Args:
        subnets: the rails, with their tables.
        lanes: number of virtual lanes to which the subnet manager assigns routes; None if unknown.

    Returns:
        `FREE`, `BY_LANES` or `CYCLE`.

    Raises:
        MissingToolError: the laboratory is not installed.
    """
    classify = cast(Callable[[Sequence[Subnet], int | None], str], load_entry_point("classify_deadlock"))
    return classify(subnets, lanes)


@cache
def load_entry_point(name: str) -> Any:
    """Return the object of an entry point of the laboratory.

    Raises:
        MissingToolError: no installed package has this entry point.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415  (a sixth of the time of `import numpy`)

    for point in entry_points(group=GROUP, name=name):
        return point.load()
    raise MissingToolError(f"{name} needs ibprof_lab, which is not installed: install ibprof again")
