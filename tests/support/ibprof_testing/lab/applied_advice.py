# SPDX-License-Identifier: Apache-2.0
"""Apply a report's advice to a routed network literally: change tables, cables, hosts of ranks, or rails."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ibprof_converter.routing.route_choice import route_by_opensm
from ibprof_converter.routing.table_formats import read_tables
from ibprof_testing.lab.lab_fabrics import LabRail
from ibprof_testing.lab.routed_jobs import call

_ENGINE = re.compile(r"opensm -R (?!file)(\w+)")
_RULE = re.compile(r"tables\.lft by: (ibprof-routes write --rule [\w-]+ (\S+) -o tables\.lft)")
_SWITCH_PORT = re.compile(r"(L\d+-\d+) \(?port (\d+)")


@dataclass(frozen=True, slots=True)
class Setting:
    """The network and placement of a job.

    Attributes:
        rails: the network's rails.
        ranks_on: host of each rank.
        used: rails that MPI uses; empty for all rails.
        engine: OpenSM's routing engine, which computes tables after a repair; empty for the generator's tables.
    """

    rails: tuple[LabRail, ...]
    ranks_on: tuple[str, ...]
    used: tuple[int, ...] = ()
    engine: str = ""


class AdviceError(Exception):
    """A report's advice cannot be applied. The error message contains the advice."""


def apply(cause: dict[str, Any], setting: Setting, healthy: Sequence[LabRail], files: Sequence[Path]) -> Setting:
    """Apply the `change` of a cause in `ibprof-report --json`.

    Args:
        cause: a cause from the report.
        setting: setting of the reported run.
        healthy: the rails without the planted cause. A repair must name all cables that differ from these rails.
        files: the dumps, then the profile.

    Raises:
        AdviceError: the advice names things that do not exist, or cannot be applied literally.
    """
    change, kind = cause["change"], cause["kind"]
    if kind in ("rank-order", "hosts"):
        return replace(setting, ranks_on=_place(change, files))
    if kind == "forwarding-tables":
        return replace(setting, rails=tuple(_route(change, rail, files[0].parent) for rail in setting.rails))
    if kind == "repair":
        return replace(setting, rails=tuple(_repair(change, setting, healthy)))
    if kind == "adapters":
        return replace(setting, used=())
    raise AdviceError(f"{kind}: {change}")


def _place(change: str, files: Sequence[Path]) -> tuple[str, ...]:
    folder = files[-1].parent
    words = shlex.split(change)
    call(words[0], *words[1:], "--time", "4", "--host-a-rank", folder / "host-a-rank", folder=folder)
    return tuple((folder / "host-a-rank").read_text().split())


def _route(change: str, rail: LabRail, folder: Path) -> LabRail:
    if engine := _ENGINE.search(change):
        return LabRail(rail.fabric, route_by_opensm(rail.fabric, engine[1]).subnet.tables)
    if rule := _RULE.search(change):
        words = rule[1].replace(rule[2], "rail0.lst").split()
        call(words[0], *words[1:], folder=folder)
        return LabRail(rail.fabric, read_tables(folder / "tables.lft", is_kept=False))
    raise AdviceError(change)


def _repair(change: str, setting: Setting, healthy: Sequence[LabRail]) -> list[LabRail]:
    """Return the repaired rails; raise AdviceError unless the change names all cables that differ from `healthy`."""
    repaired = []
    for rail, good in zip(setting.rails, healthy, strict=True):
        broken = _cables(good) ^ _cables(rail)
        names = {(name, int(port)) for name, port in _SWITCH_PORT.findall(change)}
        named = {cable for cable in broken if names & set(cable[:2])}
        if broken and named != broken:
            raise AdviceError(f"{change}: {broken - named} are not named")
        if not broken:
            repaired.append(rail)
        elif len(good.fabric.link_node) == len(rail.fabric.link_node):
            repaired.append(LabRail(good.fabric, rail.tables))
        else:
            repaired.append(LabRail(good.fabric, _recompute_tables(change, setting, good)))
    return repaired


def _recompute_tables(change: str, setting: Setting, good: LabRail) -> Any:
    """Recompute tables as the subnet manager does after a cable was plugged in."""
    return route_by_opensm(good.fabric, setting.engine).subnet.tables if setting.engine else good.tables


def _cables(rail: LabRail) -> set[tuple[tuple[str, int], tuple[str, int], float]]:
    """Return the cables: both ends, and the rate in Gb/s."""
    fabric = rail.fabric
    names = [name.split()[0] for name in fabric.node_name]
    return {
        ((names[a], int(a_port)), (names[b], int(b_port)), float(np.round(gbps, 9)))
        for (a, b), (a_port, b_port), gbps in zip(
            fabric.link_node.tolist(), fabric.link_port.tolist(), fabric.link_gbps.tolist(), strict=True
        )
    }
