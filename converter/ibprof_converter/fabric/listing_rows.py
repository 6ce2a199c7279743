# SPDX-License-Identifier: Apache-2.0
"""Links one row at a time, for formats that describe an end in several places. `list_rows` makes a Listing."""

from __future__ import annotations

from collections.abc import Sequence
from os import fspath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.listing import NOT_GIVEN, Listing

PORTS_NOT_GIVEN = 255


class End(NamedTuple):
    """One end of a link; the columns of `Listing`."""

    kind: NodeKind
    ports: int
    system_guid: int
    node_guid: int
    port_guid: int
    name: str
    lid: int
    port: int
    lmc: int = NOT_GIVEN


class LinkRow(NamedTuple):
    """A link as one place of a file describes it."""

    line: int
    a: End
    b: End
    active: bool
    lanes: int
    gbps: float


def list_rows(rows: Sequence[LinkRow], log: DamageLog) -> Listing:
    """Return a listing of the rows of a file, with its damage.

    Raises:
        InputError: there are no rows. The error names the first line that is not used, if any.
    """
    if not rows:
        raise log.first_error or InputError(log.path, None, "at least one link", "none")
    ends = [(row.a, row.b) for row in rows]
    number: dict[str, int] = {}

    def column(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return np.array([(getattr(a, name), getattr(b, name)) for a, b in ends], dtype)

    return Listing(
        path=fspath(log.path),
        line=np.array([row.line for row in rows]),
        kind=column("kind", np.uint8),
        ports=column("ports", np.uint8),
        system_guid=column("system_guid", np.uint64),
        node_guid=column("node_guid", np.uint64),
        port_guid=column("port_guid", np.uint64),
        name=np.array([[number.setdefault(end.name, len(number)) for end in pair] for pair in ends], np.int32),
        lid=column("lid", np.int32),
        port=column("port", np.int32),
        active=np.array([row.active for row in rows]),
        lanes=np.array([row.lanes for row in rows], np.uint8),
        gbps=np.array([row.gbps for row in rows]),
        lmc=column("lmc", np.int32),
        names=tuple(number),
        damage=log.report(),
    )
