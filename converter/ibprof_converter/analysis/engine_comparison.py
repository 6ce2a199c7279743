# SPDX-License-Identifier: Apache-2.0
"""Compare the loads of a traffic under OpenSM's routing engines; write forwarding tables that a rule computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

from ibprof.errors import InconsistentError, InputError
from ibprof.profile.missing_data import StageAccount, accounts_as_json, describe_losses
from ibprof.text.quantities import format_bytes, format_seconds
from ibprof_converter.analysis.output_files import open_output
from ibprof_converter.analysis.pipeline_options import FabricOptions, Progress, TrafficOptions, no_progress
from ibprof_converter.analysis.pipeline_results import FabricLoads, RoutedFabric
from ibprof_converter.analysis.pipeline_stages import apply_interfaces, load_traffic
from ibprof_converter.choices import MIN_HOP
from ibprof_converter.fabric.fabric_graph import InterfaceChoice
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.hotspots.causes.table_rules import TableMaker
from ibprof_converter.hotspots.coverage import describe_lost
from ibprof_converter.lab import BY_LANES, CYCLE, FREE, classify_deadlock
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.routing.lft_dump import write_lft_text
from ibprof_converter.routing.modelled_tables import add_switch_routes, model_tables
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.route_choice import check_joined, route_by_opensm
from ibprof_converter.routing.subnet import (
    MissingTablesError,
    Subnet,
    check_rails,
    join_subnet,
    read_rail,
    read_rail_fabric,
    read_without_tables,
)
from ibprof_converter.traffic.hosts import find_hosts

PRESENT = "present tables"

_ROUTED = ("route", "report")
"""Stages of the pipeline with results that depend on the routes."""


@dataclass(frozen=True, slots=True)
class EngineLoads:
    """Loads of a traffic under one routing engine.

    Attributes:
        engine: OpenSM's name of the engine, or `PRESENT`.
        used: `engine`, or the engine that OpenSM used in place of it, because `engine` refused the fabric; None without
            tables.
        max_bytes: bytes of the most loaded link direction.
        mean_bytes: mean bytes of the link directions that carry bytes.
        max_switch_bytes: bytes of the most loaded link direction between switches.
        time_s: longest time of a link direction at line rate, in seconds.
        bytes_unrouted: bytes without a route.
        deadlock: `FREE` if routes between hosts cannot deadlock on one virtual lane. If they can: `BY_LANES` if OpenSM
            spreads the routes over several lanes, otherwise `CYCLE`. None if nothing was routed.
        lanes: number of virtual lanes that the routes need, by OpenSM's log; None if the log states no number.
        error: the reason why there are no tables; None with tables.
        accounts: for each stage of the pipeline, the numbers of bytes, ranks and hosts that it read and left out.
    """

    engine: str
    used: str | None
    max_bytes: int = 0
    mean_bytes: float = 0.0
    max_switch_bytes: int = 0
    time_s: float = 0.0
    bytes_unrouted: int = 0
    deadlock: str | None = None
    lanes: int | None = None
    error: str | None = None
    accounts: tuple[StageAccount, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the loads as plain values; `accounts` has only the stages from routing on."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "accounts"}
        routed = (each for each in self.accounts if each.stage in _ROUTED)
        return values | {"coverage": accounts_as_json(routed)}

    @property
    def counts(self) -> bool:
        """Return true if this engine, not a replacement, made the tables."""
        return self.error is None and self.used == self.engine


@dataclass(frozen=True, slots=True)
class EngineComparison:
    """A traffic under several routing engines.

    Attributes:
        traffic, fabric: names of the traffic and the fabric.
        rows: loads with the present tables, if any, then loads with each engine's tables.
        interfaces: the choice of adapters; None if all are used.
    """

    traffic: str
    fabric: str
    rows: tuple[EngineLoads, ...]
    interfaces: InterfaceChoice | None = None

    @property
    def best(self) -> EngineLoads | None:
        """The deadlock-free engine with the fewest unrouted bytes and, of several, the shortest time; None without one.

        Engines that need several virtual lanes count only if no engine is deadlock-free on one lane.
        """
        rows = [row for row in self.rows if row.counts and row.engine != PRESENT and row.deadlock != CYCLE]
        rows = [row for row in rows if row.deadlock == FREE] or rows
        return min(rows, key=lambda row: (row.bytes_unrouted, row.time_s, row.max_switch_bytes), default=None)

    @property
    def accounts(self) -> tuple[StageAccount, ...]:
        """Values of `EngineLoads.accounts` for the stages before routing: these are equal for all engines."""
        accounts = next((row.accounts for row in self.rows if row.accounts), ())
        return tuple(each for each in accounts if each.stage not in _ROUTED)

    @property
    def conf_lines(self) -> tuple[str, ...]:
        """The lines of `opensm.conf` that choose the best engine; empty if `best` is None."""
        if self.best is None:
            return ()
        return (f"routing_engine {self.best.engine}", *(("qos TRUE",) if self.best.deadlock == BY_LANES else ()))

    def as_json(self) -> dict[str, object]:
        """Return the comparison as plain values."""
        return {
            "traffic": self.traffic,
            "fabric": self.fabric,
            "routes": "opensm",
            "interfaces": asdict(self.interfaces) if self.interfaces else None,
            "engines": [row.as_json() for row in self.rows],
            "best": self.best.engine if self.best else None,
            "opensm_conf": list(self.conf_lines),
            "coverage": accounts_as_json(self.accounts),
        }


def compare_engines(
    fabric: FabricOptions, traffic: TrafficOptions, engines: Sequence[str], progress: Progress = no_progress
) -> EngineComparison:
    """Route a fabric by each engine, and compute the link loads of a traffic.

    Args:
        fabric: the fabrics. If the fabrics have tables, the first row has the loads with these tables.
        engines: OpenSM's names of the engines.

    Raises:
        MissingToolError: OpenSM or ibsim is not installed.
        InconsistentError: a fabric consists of parts that no cable joins.
        IbprofError: `load_traffic` fails.
    """
    progress("reading the fabric")
    subnets, routed = _read_rails(fabric)
    fabrics = [subnet.fabric for subnet in subnets]
    for each in fabrics:
        check_joined(each)
    present = RoutedFabric(subnets, tuple(lay_out(fabrics, fabric.level_hosts)), find_hosts(fabrics, fabric.host_names))
    rows = [_judge(PRESENT, PRESENT, load_traffic(present, traffic), None)] if routed else []
    for engine in engines:
        progress(f"routing by {engine}")
        try:
            found = [route_by_opensm(subnet.fabric, engine) for subnet in subnets]
        except InconsistentError as error:
            rows.append(EngineLoads(engine, None, error=str(error)))
            continue
        used = next((each.engine for each in found if each.engine != engine), engine)
        loads = load_traffic(replace(present, subnets=tuple(each.subnet for each in found)), traffic)
        lanes = max((each.lanes for each in found if each.lanes), default=None)
        rows.append(_judge(engine, used, loads, lanes))
    return EngineComparison(" + ".join(traffic.names), present.name, tuple(rows), fabrics[0].interfaces)


def _read_rails(options: FabricOptions) -> tuple[tuple[Subnet, ...], bool]:
    files = options.find_rails()
    try:
        subnets, routed = tuple(read_rail(each, rail) for rail, each in enumerate(files)), True
    except MissingTablesError:
        subnets, routed = tuple(read_without_tables(each) for each in files), False
    check_rails(subnets)
    return apply_interfaces(subnets, options), routed


def _judge(engine: str, used: str, loads: FabricLoads, lanes: int | None) -> EngineLoads:
    heat = loads.ends().heat()
    seconds = [
        float((each.sum(axis=2) * (8e-9 / np.nan_to_num(fabric.link_gbps, nan=np.inf)[:, np.newaxis])).max(initial=0.0))
        for fabric, each in zip(loads.fabric.fabrics, loads.by_rail, strict=True)
    ]
    return EngineLoads(
        engine,
        used,
        heat.max_link,
        heat.mean_link,
        heat.max_switch_link,
        max(seconds),
        sum(loads.loads.bytes_unrouted.values()),
        classify_deadlock(loads.fabric.subnets, lanes),
        lanes,
        accounts=loads.coverage.accounts,
    )


def describe_engines(comparison: EngineComparison) -> list[str]:
    """Return the comparison as lines; the first line names the source of the routes."""
    lines = [
        "routes: modelled by OpenSM on ibsim over the links of the fabric (4x QDR each); LIDs are those of the dumps",
        f"{comparison.traffic} on {comparison.fabric}",
        *([f"interfaces: {comparison.interfaces.text}"] if comparison.interfaces else []),
        *describe_losses(comparison.accounts, complete=comparison.interfaces is None),
        "",
        f"{'engine':16}{'maximum':>12}{'between switches':>18}{'mean':>12}{'at line rate':>14}  deadlock",
    ]
    for row in comparison.rows:
        if row.error is not None:
            lines.append(f"{row.engine:16}no tables: {row.error}")
        elif row.used != row.engine:
            lines.append(f"{row.engine:16}refuses this fabric; OpenSM uses {row.used} instead")
        else:
            lines.append(_describe_row(row))
    if comparison.best:
        needed = f", with {comparison.best.lanes} virtual lanes" if comparison.best.deadlock == BY_LANES else ""
        lines += ["", f"best engine free from deadlock: {comparison.best.engine}{needed}; write in opensm.conf:"]
        lines += [f"    {line}" for line in comparison.conf_lines]
    else:
        lines += ["", "no best engine: OpenSM used no engine that is free from deadlock"]
    return lines


def _describe_row(row: EngineLoads) -> str:
    lost = f"; {format_bytes(row.bytes_unrouted)} not routed" if row.bytes_unrouted else ""
    return (
        f"{row.engine:16}{format_bytes(row.max_bytes):>12}{format_bytes(row.max_switch_bytes):>18}"
        f"{format_bytes(row.mean_bytes):>12}{format_seconds(row.time_s):>14}  {_describe_deadlock(row)}{lost}"
    )


def _describe_deadlock(row: EngineLoads) -> str:
    if row.deadlock == BY_LANES:
        return f"{FREE} with {row.lanes} virtual lanes, but not with one"
    if row.deadlock == CYCLE:
        return "can deadlock on one virtual lane"
    return FREE


def write_rule_tables(links: str, rule: str, output: Path) -> tuple[int, list[str]]:
    """Compute forwarding tables of one rail by a rule, and write them in the form that OpenSM loads.

    Args:
        links: the list of links, or a synthetic fabric.
        rule: one of `WRITTEN_RULES`.

    Returns:
        The number of switches; and sentences on hosts, lines and LIDs that were left out of the fabric.

    Raises:
        InputError: the links cannot be read, or belong to several rails.
        InconsistentError: the rule makes no tables for the fabric, or its tables can deadlock.
    """
    rails = find_rails([links])
    if len(rails) != 1:
        raise InputError(
            links, None, "the links of one rail", f"{len(rails)}: {show_some([str(rail.links) for rail in rails])}"
        )
    try:
        subnet = read_rail(rails[0])
    except MissingTablesError:
        fabric = read_rail_fabric(rails[0])
        subnet = join_subnet(fabric, model_tables(fabric, MIN_HOP)[0])
    made = TableMaker().make(rule, subnet)
    if made.subnet is None:
        raise InconsistentError(f"{links}: no tables by the rule {rule}: {made.why_not}")
    if made.deadlock == CYCLE:
        raise InconsistentError(f"{links}: tables by the rule {rule} can deadlock on one virtual lane")
    fabric = made.subnet.fabric
    with open_output(output) as file:
        file.writelines(write_lft_text(fabric, add_switch_routes(fabric, made.subnet.tables)))
    return len(made.subnet.tables.switch_guid), [*describe_lost([made.subnet], find_hosts([fabric]))]
