# SPDX-License-Identifier: Apache-2.0
"""One of two runs to be compared: its totals, and its bytes by operation, region, size, pair and link."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ibprof.errors import InputError, quote_found
from ibprof_converter.analysis.run_facts import (
    LoadedDirection,
    RankPairs,
    RunFacts,
    direction_of_hotspot,
    list_directions,
    sort_by_time,
)
from ibprof_converter.outputs.rows import LINK_COLUMNS, Row
from ibprof_converter.traffic.rail_bounds import STATIC
from ibprof_converter.traffic.traffic_data import RankTraffic

OPERATION = "operation"
REGION = "region"
SITE = "site"
SIZE = "size"
PAIR = "rank pair"
LINK = "link"
DIMENSIONS = (OPERATION, REGION, SITE, SIZE, PAIR, LINK)

_DUMP = re.compile(r"\.(lst|fdbs|lft|far|topo|ibnetdiscover|db_csv)(\.gz|\.xz)?$", re.IGNORECASE)
"""Names of files that hold links and forwarding tables."""

_BYTE_TOTALS = ("bytes_total", "bytes_routed", "bytes_on_host", "max_link", "max_switch_link", "mean_link")


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run, as far as it can be compared.

    Attributes:
        name: what the user calls it.
        ranks: of the job; None where that is not known.
        totals: by the names that conditions use.
        parts: by dimension and name, bytes; of sizes messages.
        messages: by dimension and name; no entry where they are not known.
        notes: what the run lacks and what is modelled, a sentence each.
        nic: how it is known which adapter each rank used, as in a report; None where no rank had a choice.
        load_basis: loads that its links and times are of, `static` or `estimate`.
        verdict: whether the network is why it is slow, as in a report; None where that is not known.
        facts: by which its change is explained.
    """

    name: str
    ranks: int | None
    totals: Mapping[str, float]
    parts: Mapping[str, Mapping[str, int]]
    messages: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    nic: str | None = None
    load_basis: str = STATIC
    verdict: Mapping[str, Any] | None = None
    facts: RunFacts = field(default_factory=RunFacts)


def side_of_report(name: str, document: Mapping[str, Any]) -> ComparedRun:
    """Make a side of a report's JSON.

    Raises:
        KeyError, TypeError, ValueError: it is none.
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
            continue  # not recorded, which is not the same as no bytes
        parts[dimension] = {row["name"]: row["bytes"] for row in rows}
        messages[dimension] = {row["name"]: row["messages"] for row in rows}
    if any(messages[OPERATION].values()):
        totals["messages"] = sum(messages[OPERATION].values())
    parts[SIZE] = {row["name"]: row["messages"] for row in document.get("message_sizes", ())}
    if (matrix := document.get("matrix_ranks")) is not None:
        parts[PAIR] = _name_pairs(matrix) if matrix["block"] == 1 else {}
    if spots := [*document.get("hotspots", ()), *document.get("switch_hotspots", ())]:
        parts[LINK] = {_name_spot(spot): spot["bytes"] for spot in spots}
    ranks = job.get("ranks") if job else matrix["size"] if matrix else None
    basis = document.get("load_basis", STATIC)
    return ComparedRun(
        name=name,
        ranks=ranks,
        totals=totals,
        parts=parts,
        messages=messages,
        notes=tuple(_list_gaps(document)),
        nic=document.get("nic"),
        load_basis=basis,
        verdict=verdict if isinstance(verdict := document.get("verdict"), Mapping) else None,
        facts=_facts_of_report(document, ranks, basis, parts[OPERATION]),
    )


def _facts_of_report(
    document: Mapping[str, Any], ranks: int | None, basis: str, operations: Mapping[str, int]
) -> RunFacts:
    spots = [*document.get("hotspots", ()), *document.get("switch_hotspots", ())]
    most_loaded = sort_by_time({each.key: each for each in map(direction_of_hotspot, spots)}.values())
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
        knows_all_links="links_used" in document and _count_links(most_loaded) == document["links_used"],
        links=document.get("links"),
        fabric=_fabric_of_report(document),
        load_basis=basis,
    )


def _count_links(directions: Iterable[LoadedDirection]) -> int:
    """Return the number of links that directions are of."""
    return len({frozenset(((each.sender, each.port), (each.receiver, each.far_port))) for each in directions})


def _pairs_of_matrix(matrix: Mapping[str, Any]) -> RankPairs:
    amounts = np.array(matrix["bytes"], np.uint64)
    source, destination = np.nonzero(amounts)
    return RankPairs.of_ranks(source, destination, amounts[source, destination])


def _fabric_of_report(document: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the hashes of the dumps that a report was made from; None where it names none."""
    inputs = (document.get("reproduce") or {}).get("inputs", ())
    return frozenset(each["sha256"] for each in inputs if _DUMP.search(each["path"])) or None


def _list_gaps(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a report says of its gaps: not seen, modelled, noted, not routed."""
    coverage = document.get("coverage") or {}
    for key, label in (("not_seen", "not seen: "), ("modelled", "modelled: "), ("notes", "")):
        for sentence in coverage.get(key, ()):
            yield f"{label}{sentence}"
    for reason, amount in document.get("bytes_unrouted", {}).items():
        yield f"{amount} of {document['bytes_total']} bytes are on no link: {reason}"


def _list_limits(document: Mapping[str, Any], links: int) -> Iterator[str]:
    """Yield what a report leaves out that its run had."""
    if (document.get("matrix_ranks") or {"block": 1})["block"] > 1:
        yield "the report adds up ranks, so that their pairs cannot be compared"
    if links:
        yield f"the report names only its {links} most loaded link directions"


def _name_pairs(matrix: Mapping[str, Any]) -> dict[str, int]:
    return {
        name_pair(source, destination): amount
        for source, row in enumerate(matrix["bytes"])
        for destination, amount in enumerate(row)
        if amount
    }


def name_pair(source: int, destination: int) -> str:
    """Name a pair of ranks."""
    return f"{source} -> {destination}"


def _name_spot(spot: Mapping[str, Any]) -> str:
    link = spot["link"]
    sender, receiver = (link["a"], link["b"]) if spot["end"] == "a" else (link["b"], link["a"])
    return _name_end(
        link["rail"],
        *(sender["name"] or sender["guid"], sender["port"]),
        *(receiver["name"] or receiver["guid"], receiver["port"]),
    )


def _name_end(rail: int, sender: str, port: int, receiver: str, far_port: int) -> str:
    return f"rail {rail}: {sender} port {port} -> {receiver} port {far_port}"


def pairs_of_demand(demand: RankTraffic) -> dict[str, int]:
    """Return the bytes of each pair of ranks."""
    sums: dict[tuple[int, int], int] = {}
    for source, destination, amount in zip(
        demand.source.tolist(), demand.destination.tolist(), demand.bytes.tolist(), strict=True
    ):
        sums[source, destination] = sums.get((source, destination), 0) + amount
    return {name_pair(*pair): amount for pair, amount in sums.items()}


def links_of_rows(rows: Iterable[Row | Mapping[str, Any]]) -> dict[str, int]:
    """Return the bytes of each link direction that carries any, of rows of links.csv."""
    links: dict[str, int] = {}
    for row in rows:
        for near, far in (("a", "b"), ("b", "a")):
            if amount := int(row[f"{near}_bytes"]):  # type: ignore[arg-type]
                sender, receiver = (row[f"{end}_name"] or row[f"{end}_guid"] for end in (near, far))
                name = _name_end(row["rail"], sender, row[f"{near}_port"], receiver, row[f"{far}_port"])  # type: ignore[arg-type]
                links[name] = links.get(name, 0) + amount
    return links


def totals_of_links(links: Mapping[str, int]) -> dict[str, float]:
    """Return what conditions can ask of link directions alone."""
    loads = links.values()
    mean = sum(loads) / len(links) if links else 0.0
    return {"max_link": max(loads, default=0), "mean_link": mean}


def read_report(path: Path) -> ComparedRun:
    """Read what `ibprof-report --json` wrote.

    Raises:
        InputError: it is something else.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(path, getattr(error, "lineno", None), "JSON of ibprof-report --json", str(error)) from None
    try:
        side = side_of_report(str(path), document)
        return replace(side, notes=(*side.notes, *_list_limits(document, len(side.parts.get(LINK, ())))))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        found = f"one without {error}" if isinstance(error, KeyError) else quote_found(str(error))
        raise InputError(path, None, "a report as ibprof-report --json writes it", found) from None


def looks_like_report(path: Path) -> bool:
    """Tell a report's JSON from other files."""
    return path.is_file() and _first_line(path).lstrip().startswith("{")


def looks_like_links(path: Path) -> bool:
    """Tell links.csv from other tables."""
    return path.is_file() and _first_line(path).startswith(",".join(LINK_COLUMNS[:4]))


def _first_line(path: Path) -> str:
    with path.open("rb") as file:
        return file.readline(4096).decode("utf-8", "replace")


def read_links(path: Path) -> ComparedRun:
    """Read a links.csv.

    Raises:
        InputError: a line is not what it should be.
    """
    rows = list(_check_rows(path))
    links = links_of_rows(rows)
    most_loaded = sort_by_time(list_directions(rows))
    facts = RunFacts(
        most_loaded=tuple(most_loaded), carried={each.key: each.bytes for each in most_loaded}, knows_all_links=True
    )
    return ComparedRun(str(path), None, totals_of_links(links), {LINK: links}, facts=facts)


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
