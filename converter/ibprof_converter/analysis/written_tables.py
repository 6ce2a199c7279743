# SPDX-License-Identifier: Apache-2.0
"""Forwarding tables by a rule, written to a file that OpenSM loads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import InconsistentError, InputError
from ibprof_converter.analysis.output_files import open_output
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.hotspots.causes.table_rules import BALANCED, TableMaker
from ibprof_converter.lab import CYCLE
from ibprof_converter.routing.lft_text import write_lft_text
from ibprof_converter.routing.modelled_tables import D_MOD_K, MIN_HOP, model_tables
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.subnet import join_subnet, read_rail, read_rail_fabric
from ibprof_converter.routing.switch_routes import add_switch_routes
from ibprof_converter.routing.table_search import MissingTablesError

WRITTEN_RULES = (BALANCED, D_MOD_K, MIN_HOP)


@dataclass(frozen=True, slots=True)
class WrittenTables:
    """Tables that were written: their number, and the rule."""

    switches: int
    rule: str


def write_rule_tables(links: str, rule: str, output: Path) -> WrittenTables:
    """Make forwarding tables of one rail by a rule, and write them.

    Args:
        links: the list of links, or a synthetic fabric.
        rule: one of `WRITTEN_RULES`.
        output: the file.

    Raises:
        InputError: the links cannot be read, or are of several rails.
        InconsistentError: the rule makes no tables for the fabric, or some that can deadlock.
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
    return WrittenTables(len(made.subnet.tables.switch_guid), rule)
