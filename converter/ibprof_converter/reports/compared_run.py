# SPDX-License-Identifier: Apache-2.0
"""Read one of two compared runs: totals, and parts per operation, region, site, message size, rank pair and link."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ibprof.errors import InputError, UsageError, quote_found
from ibprof.profile.missing_data import COLLECT, StageAccount, describe_losses
from ibprof.profile.profile_rows import ALL_ROWS, RowChoice
from ibprof_converter.analysis.pipeline_options import Progress, TrafficOptions, no_progress
from ibprof_converter.analysis.pipeline_results import RoutedFabric
from ibprof_converter.analysis.pipeline_stages import Demand, load_demands, load_traffic
from ibprof_converter.analysis.run_facts import (
    LoadedDirection,
    RankPairs,
    RunFacts,
    add_up_directions,
    direction_of_hotspot,
    facts_of_loads,
    list_directions,
    sort_by_time,
)
from ibprof_converter.hotspots.link_report import DIAGNOSED_FLOWS
from ibprof_converter.outputs.rows import LINK_COLUMNS
from ibprof_converter.reports.job_report import report_on_demand, report_on_loads
from ibprof_converter.reports.provenance import NOWHERE
from ibprof_converter.traffic.link_loads import STATIC
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic
from ibprof_converter.traffic.traffic_reader import choose_demand, read_traffic

OPERATION = "operation"
REGION = "region"
SITE = "site"
SIZE = "size"
PAIR = "rank pair"
LINK = "link"
DIMENSIONS = (OPERATION, REGION, SITE, SIZE, PAIR, LINK)

_DUMP = re.compile(r"\.(lst|fdbs|lft|far|topo|ibnetdiscover|db_csv)(\.gz|\.xz)?$", re.IGNORECASE)
"""Matches names of dump files, which hold a fabric's links or forwarding tables."""

_BYTE_TOTALS = ("bytes_total", "bytes_routed", "bytes_on_host", "max_link", "max_switch_link", "mean_link")


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """Data of one of two compared runs.

    Attributes:
        name: the name that the user typed.
        ranks: number of the job's ranks; None if unknown.
        totals: metric -> value; the keys are those of `METRICS`.
        parts: dimension (one of `DIMENSIONS`) -> name -> bytes; for SIZE, numbers of messages.
        messages: dimension -> name -> number of messages; without dimensions whose messages are unknown.
        notes: sentences on gaps and modelled data.
        lost: sentences on ranks and bytes that were not recorded.
        nic: how the ranks' adapters were chosen, as in a report; None if no host has several adapters on one rail.
        load_basis: `static` if link loads follow the forwarding tables, `estimate` with adaptive routing.
        verdict: verdict on the network, as in a report; None if unknown.
        facts: data that can explain a difference between the runs.
    """

    name: str
    ranks: int | None
    totals: Mapping[str, float]
    parts: Mapping[str, Mapping[str, int]]
    messages: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    nic: str | None = None
    load_basis: str = STATIC
    verdict: Mapping[str, Any] | None = None
    facts: RunFacts = field(default_factory=RunFacts)


def pair_runs(
    a: str,
    b: str,
    placements: Sequence[str | None] = (),
    rails: str | None = None,
    strict: bool = False,
    nic: str | None = None,
    chosen: RowChoice = ALL_ROWS,
) -> tuple[TrafficOptions, TrafficOptions]:
    """Return the options of two runs: to read each run, and to place it on a fabric.

    Args:
        placements: one rank placement for both runs, or one per run. If None or empty: the recorded placement.
        rails: policy for bytes without a measured rail. If None: the default policy.
        strict: true if bytes without a route are an error.
        nic: policy that chooses a host's adapter in a subnet. If None: the measured or recorded adapter, else the
            default policy.
        chosen: restricts both runs to these calls.

    Raises:
        UsageError: there are more than two placements.
    """
    if len(placements) > 2:
        raise UsageError("--placement: expected one for both runs, or one for each")
    of_a, of_b = placements if len(placements) == 2 else [*placements, None][:1] * 2
    before, after = (
        TrafficOptions(
            names=(name,),
            placements=(rule,) if rule is not None else (),
            rails=rails,
            nic=nic,
            strict=strict,
            flows_limit=DIAGNOSED_FLOWS,
            chosen=chosen,
        )
        for name, rule in ((a, of_a), (b, of_b))
    )
    return before, after


def read_side(
    traffic: TrafficOptions, fabric: RoutedFabric | None, progress: Progress = no_progress, demand: Demand | None = None
) -> ComparedRun:
    """Read a run to compare: a report's JSON, a links.csv, or traffic with a fabric.

    Args:
        traffic: the run, and the options that place it on a fabric.
        fabric: the fabric, or None.
        demand: the run's traffic; None to read the traffic.

    Raises:
        InputError, UsageError: as `compare_runs` does.
    """
    name = traffic.names[0]
    if demand is None and has_loads(name):
        if traffic.chosen:
            raise UsageError(f"{traffic.chosen}: {name}: only recorded runs know the calls that sent bytes")
        return _read_report(Path(name)) if _is_report(Path(name)) else _read_links(Path(name))
    if fabric:
        return _load_side(traffic, fabric, progress, demand)
    if demand is None:
        progress("reading the traffic")
        demand = read_traffic(name, None)
    demand = choose_demand(demand, traffic.chosen, name)
    if isinstance(demand, PortCounters):
        raise UsageError(f"{demand.origin}: port counters are compared on a fabric: give --fabric LST...")
    side = _side_of_report(name, report_on_demand(demand, NOWHERE).as_json())
    return _with_all_pairs(side, demand) if isinstance(demand, RankTraffic) else side


def _load_side(traffic: TrafficOptions, fabric: RoutedFabric, progress: Progress, demand: Demand | None) -> ComparedRun:
    """Route a run's traffic on the fabric; return the run, with all its link directions and pairs of ranks."""
    if demand is None:
        loads = load_traffic(fabric, traffic, progress)
    else:
        loads = load_demands(fabric, [demand], traffic, progress)
    report = report_on_loads(loads, NOWHERE)
    side = _side_of_report(traffic.names[0], report.as_json())
    if report.links:
        side = replace(side, facts=facts_of_loads(loads, report.links))
    links = _name_links(list_directions(loads.rows(only_used=True)))
    side = replace(side, parts={**side.parts, LINK: links})
    return _with_all_pairs(side, loads.demand) if loads.demand else side


def _with_all_pairs(side: ComparedRun, demand: RankTraffic) -> ComparedRun:
    """Add all pairs of ranks to a run: a report on many ranks does not list all pairs."""
    pairs = RankPairs.of_ranks(demand.source, demand.destination, demand.bytes)
    return replace(side, parts={**side.parts, PAIR: pairs.by_name()}, facts=replace(side.facts, pairs=pairs))


def _side_of_report(name: str, document: Mapping[str, Any]) -> ComparedRun:
    """Return the run that the JSON of a report describes.

    Raises:
        KeyError, TypeError, ValueError: the document is not a report.
    """
    job = document.get("job") or {}
    totals: dict[str, float] = {"bytes": document["bytes_total"]}
    totals |= {key: document[key] for key in (*_BYTE_TOTALS[1:], "links_used") if key in document}
    if "bytes_unrouted" in document:
        totals["bytes_unrouted"] = sum(document["bytes_unrouted"].values())
    if (diagnosis := document.get("diagnosis")) is not None:
        totals["max_link_seconds"] = diagnosis["max_time_s"]
    if job.get("elapsed_s") is not None:
        totals["elapsed"] = job["elapsed_s"]
    parts: dict[str, dict[str, int]] = {}
    messages: dict[str, dict[str, int]] = {}
    for dimension, key in ((OPERATION, "operations"), (REGION, "regions"), (SITE, "sites")):
        rows = [row for row in document.get(key, ()) if row["name"] != "*"]
        if dimension == SITE and not rows:
            continue  # unknown, not 0 bytes
        parts[dimension] = {row["name"]: row["bytes"] for row in rows}
        messages[dimension] = {row["name"]: row["messages"] for row in rows}
    if any(messages[OPERATION].values()):
        totals["messages"] = sum(messages[OPERATION].values())
    parts[SIZE] = {row["name"]: row["messages"] for row in document.get("message_sizes", ())}
    if (matrix := document.get("matrix_ranks")) is not None:
        parts[PAIR] = _pairs_of_matrix(matrix).by_name() if matrix["block"] == 1 else {}
    if spots := _list_spots(document):
        parts[LINK] = _name_links(spots)
    ranks = job.get("ranks") if job else matrix["size"] if matrix else None
    basis = document.get("load_basis", STATIC)
    return ComparedRun(
        name=name,
        ranks=ranks,
        totals=totals,
        parts=parts,
        messages=messages,
        notes=tuple(_list_gaps(document)),
        lost=tuple(_list_losses(document)),
        nic=document.get("nic"),
        load_basis=basis,
        verdict=verdict if isinstance(verdict := document.get("verdict"), Mapping) else None,
        facts=_facts_of_report(document, ranks, basis, parts[OPERATION]),
    )


def _facts_of_report(
    document: Mapping[str, Any], ranks: int | None, basis: str, operations: Mapping[str, int]
) -> RunFacts:
    most_loaded = sort_by_time({each.key: each for each in _list_spots(document)}.values())
    links = {frozenset(((each.sender, each.port), (each.receiver, each.far_port))) for each in most_loaded}
    matrix = document.get("matrix_ranks")
    hosts: dict[int, str] = {rank: host["name"] for host in document.get("hosts", ()) for rank in host["ranks"]}
    has_hosts = ranks is not None and len(hosts) == ranks
    return RunFacts(
        ranks=ranks,
        bytes=document["bytes_total"] if ranks is not None else None,
        operations=operations,
        pairs=_pairs_of_matrix(matrix) if matrix and matrix["block"] == 1 else None,
        rank_host=tuple(hosts.get(rank) for rank in range(len(hosts))) if has_hosts else None,
        most_loaded=tuple(most_loaded) if "hotspots" in document else None,
        carried={each.key: each.bytes for each in most_loaded},
        knows_all_links="links_used" in document and len(links) == document["links_used"],
        links=document.get("links"),
        fabric=_fabric_of_report(document),
        load_basis=basis,
    )


def _list_spots(document: Mapping[str, Any]) -> list[LoadedDirection]:
    return [direction_of_hotspot(each) for key in ("hotspots", "switch_hotspots") for each in document.get(key, ())]


def _name_links(directions: Iterable[LoadedDirection]) -> dict[str, int]:
    return {
        f"rail {each.rail}: {each.sender} port {each.port} -> {each.receiver} port {each.far_port}": each.bytes
        for each in directions
    }


def _pairs_of_matrix(matrix: Mapping[str, Any]) -> RankPairs:
    amounts = np.array(matrix["bytes"], np.uint64)
    source, destination = np.nonzero(amounts)
    return RankPairs.of_ranks(source, destination, amounts[source, destination])


def _fabric_of_report(document: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the hashes of the dumps that a report read; None for a report without a fabric."""
    inputs = (document.get("reproduce") or {}).get("inputs", ())
    return frozenset(each["sha256"] for each in inputs if _DUMP.search(each["path"])) or None


def _list_losses(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on ranks and bytes that were not recorded.

    Bytes without a route are left out: the verdict's text names them.
    """
    accounts = [StageAccount(**each) for each in (document.get("coverage") or {}).get("accounts", ())]
    return describe_losses([each for each in accounts if each.stage in ("record", COLLECT)], complete=False)


def _list_gaps(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on unseen, modelled and unrouted data of a report, and the report's notes."""
    coverage = document.get("coverage") or {}
    for key, label in (("not_seen", "not seen: "), ("modelled", "modelled: "), ("notes", "")):
        for sentence in coverage.get(key, ()):
            yield f"{label}{sentence}"
    for reason, amount in document.get("bytes_unrouted", {}).items():
        yield f"{amount} of {document['bytes_total']} bytes are on no link: {reason}"


def _list_limits(document: Mapping[str, Any], links: int) -> Iterator[str]:
    """Yield sentences on data that a report's JSON leaves out."""
    if (document.get("matrix_ranks") or {"block": 1})["block"] > 1:
        yield "the report has sums of several ranks, so pairs of ranks cannot be compared"
    if links:
        yield f"the report names only its {links} most loaded link directions"


def _read_report(path: Path) -> ComparedRun:
    """Read the output of `ibprof-report --json`.

    Raises:
        InputError: the file is no JSON report.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(path, getattr(error, "lineno", None), "JSON of ibprof-report --json", str(error)) from None
    try:
        side = _side_of_report(str(path), document)
        return replace(side, notes=(*side.notes, *_list_limits(document, len(side.parts.get(LINK, ())))))
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        found = f"a document without {error}" if isinstance(error, KeyError) else quote_found(str(error))
        raise InputError(path, None, "a report as ibprof-report --json writes it", found) from None


def _first_line(path: Path) -> str:
    """Return the first line of a file (at most 4096 bytes); empty if the file does not exist."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.readline(4096).decode("utf-8", "replace")


def _is_report(path: Path) -> bool:
    return _first_line(path).lstrip().startswith("{")


def _is_links_csv(path: Path) -> bool:
    return _first_line(path).startswith(",".join(LINK_COLUMNS[:4]))


def has_loads(name: str) -> bool:
    """Return true if a file is a report's JSON or a links.csv, which need no fabric."""
    return _is_report(Path(name)) or _is_links_csv(Path(name))


def _read_links(path: Path) -> ComparedRun:
    """Read a links.csv.

    Raises:
        InputError: a line is invalid.
    """
    most_loaded = tuple(sort_by_time(list_directions(_check_rows(path))))
    facts = RunFacts(most_loaded=most_loaded, carried=add_up_directions(most_loaded), knows_all_links=True)
    loads = [each.bytes for each in most_loaded]
    totals = {"max_link": max(loads, default=0), "mean_link": sum(loads) / len(loads) if loads else 0.0}
    return ComparedRun(str(path), None, totals, {LINK: _name_links(most_loaded)}, facts=facts)


def _check_rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            if missing := set(LINK_COLUMNS) - set(reader.fieldnames or ()):
                raise InputError(path, 1, "the columns of links.csv", f"none named {', '.join(sorted(missing))}")
            for row in reader:
                for column in ("a_bytes", "b_bytes"):
                    amount = row[column] or ""
                    if not (amount.isascii() and amount.isdigit()):
                        raise InputError(path, reader.line_num, f"bytes in {column}", quote_found(amount))
                yield row
        except csv.Error as error:
            raise InputError(path, reader.line_num, "a row of links.csv", str(error)) from None
