# SPDX-License-Identifier: Apache-2.0
"""Simulation results as tables: one with a row per simulation, and one with means over seeds."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ibprof.errors import InputError, MissingToolError, quote_found
from ibprof.profile.missing_data import StageAccount, describe_losses
from ibprof_lab.simulation.measure.message_latency import NOTHING, QUANTILES, Latency, half_interval
from ibprof_lab.simulation.study.cell import Cell, Outcome, account_for_network
from ibprof_lab.simulation.workload.workloads import Role, Workload, account_for_workload, list_gaps

Row = dict[str, Any]
Mean = Mapping[str, Any]
"""A row of the table of means over seeds."""

RESULTS, MEANS, WHOLE = "results.csv", "means.csv", "whole.csv"

SETTING_COLUMNS = ("fabric", "routing", "servers", "server_placement", "job_placement", "packet_bytes", "lane_bytes",
                   "switch_ns", "wire_ns", "nic_gap_ns", "gbps", "message_step_bytes")  # fmt: skip
PATTERN_COLUMNS = ("role", "bytes", "interval_us", "window_us", "limit")
_QUANTILES = tuple(f"p{100 * quantile:g}_us" for quantile in QUANTILES)
_VALUES = ("mean_us", "node_mean_us", "deviation_us", "least_us", *_QUANTILES, "most_us", "operation_us")

_SLOWDOWNS = {"slowdown": "mean_us", "node_slowdown": "node_mean_us", "operation_slowdown": "operation_us"}
"""Column of a slow-down -> column of a time; the slow-down is this time divided by the baseline's time."""

_MISSING = Outcome("", replace(NOTHING, note="not simulated yet"), 0, 0.0, {})


def list_results(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> list[Row]:
    """Return a row per simulation. If a mean did not settle or is missing, its row has None as times, and a `note`."""
    jobs = list(dict.fromkeys(each.name for cell in cells for each in cell.workloads))
    return [_describe_cell(cell, jobs) | _describe_outcome(outcomes.get(cell.key, _MISSING), jobs) for cell in cells]


def account_for_cells(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> list[StageAccount]:
    """Count used and left-out inputs: simulations, data of recorded runs, and links and hosts of fabrics."""
    unsettled = Counter(
        latency.note or "no settled mean latency"
        for cell in cells
        if not (latency := outcomes.get(cell.key, _MISSING).latency).is_settled
    )
    inputs = [account_for_workload(each) for each in _list_workloads(cells)]
    inputs += [account_for_network(each) for each in dict.fromkeys(cell.setting.network for cell in cells)]
    kept = len(cells) - sum(unsettled.values())
    return [*chain(*inputs), StageAccount("simulate", "simulations", len(cells), kept, dict(unsettled))]


def describe_cells_lost(cells: Sequence[Cell], accounts: Iterable[StageAccount]) -> list[str]:
    """Return sentences on large amounts of left-out data; if nothing was left out, a sentence that says so."""
    return list(describe_losses(accounts, complete=not any(map(list_gaps, _list_workloads(cells)))))


def _list_workloads(cells: Sequence[Cell]) -> list[Workload]:
    return list({each.profile: each for cell in cells for each in cell.workloads if each.is_recorded}.values())


def _describe_cell(cell: Cell, jobs: Sequence[str]) -> Row:
    setting, hardware = cell.setting, cell.setting.hardware
    row: Row = {
        "measured": cell.measured,
        "run": "baseline" if cell.is_alone else "interference",
        "fabric": setting.fabric,
        "routing": "adaptive" if setting.adaptive else "static",
        "servers": setting.servers,
        "server_placement": "named" if setting.server_hosts else setting.server_placement.value,
        "job_placement": setting.job_placement.value,
        "packet_bytes": hardware.packet_bytes,
        "lane_bytes": hardware.lane_bytes,
        "switch_ns": hardware.switch_ns,
        "wire_ns": hardware.wire_ns,
        "nic_gap_ns": hardware.nic_gap_ns,
        "gbps": hardware.gbps,
        "message_step_bytes": hardware.message_step_bytes,
    }
    by_name = {each.name: each for each in cell.workloads}
    for job in jobs:
        workload = by_name.get(job)
        row[f"{job}_share"] = workload.share if workload else None
        runs = job in cell.running
        pattern = (
            (
                workload.role.value,
                None if workload.role in {Role.PROFILE, Role.GOAL} else workload.bytes,
                workload.interval_ns / 1e3,
                workload.window_ns / 1e3,
                workload.limit,
            )
            if workload and runs
            else (None,) * len(PATTERN_COLUMNS)
        )
        row |= {f"{job}_{name}": value for name, value in zip(PATTERN_COLUMNS, pattern, strict=True)}
    return row | {"seed": cell.seed}


def _describe_outcome(outcome: Outcome, jobs: Sequence[str]) -> Row:
    row = describe_latency(outcome.latency)
    for job in jobs:
        whole = outcome.whole_ns.get(job)
        row[f"{job}_whole_ms"] = round(fmean(whole) / 1e6, 4) if whole else None
        row[f"{job}_whole_most_ms"] = round(max(whole) / 1e6, 4) if whole else None
    # The elapsed time is left out: tables of the same study must be equal.
    return row | {"packet_hops": outcome.packet_hops}


def describe_latency(latency: Latency) -> Row:
    """Return the columns of a latency, in microseconds; latencies are None if the mean did not settle."""

    def us(value: float) -> float | None:
        return round(value / 1000, 4) if latency.is_settled and not math.isnan(value) else None

    by_clients = _half_interval([mean for _, _, mean in latency.by_client])
    return {
        "mean_us": us(latency.mean),
        "half_interval_us": us(latency.half),
        "node_mean_us": us(latency.node_mean),
        "node_half_us": us(math.nan if by_clients is None else by_clients),
        "deviation_us": us(latency.deviation),
        "least_us": us(latency.least),
        **{name: us(value) for name, value in zip(_QUANTILES, latency.quantiles, strict=True)},
        "most_us": us(latency.most),
        "operation_us": us(latency.operation_mean),
        "operation_half_us": us(latency.operation_half),
        "messages": latency.messages,
        "operations": latency.operations,
        "left_out_us": round(latency.left_out_ns / 1000, 3),
        "span_us": round(latency.measured_ns / 1000, 3),
        "is_settled": latency.is_settled,
        "note": latency.note,
    }


def average_seeds(results: Sequence[Row]) -> list[Row]:
    """Return the table of means: a row for each group of simulations that differ only in the seed. A slow-down is the
    mean over seeds of latency / the baseline's latency. With the same seed, a simulation and its baseline have the same
    hosts, partners and starts. `slowdown_seeds` is the number of seeds for which both latencies settled. Columns
    `_half` contain half widths of 95% intervals over seeds (Student's t); None for fewer than two seeds.
    """
    groups: dict[tuple[Any, ...], dict[int, Row]] = {}
    for row in results:
        groups.setdefault(_identify(row), {})[row["seed"]] = row
    return [
        _average(rows, groups.get(_identify(_baseline_of(next(iter(rows.values())))), {})) for rows in groups.values()
    ]


def _columns_of_cell(row: Mapping[str, Any]) -> list[str]:
    return list(row)[: list(row).index("seed")]


def _identify(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[column] for column in _columns_of_cell(row))


def _baseline_of(row: Row) -> Row:
    others = {
        column
        for column in row
        for name in PATTERN_COLUMNS
        if column.endswith(f"_{name}")
        and column != f"{row['measured']}_{name}"
        and f"{column[: -len(name)]}share" in row
    }
    return {**row, **dict.fromkeys(others), "run": "baseline"}


def _average(rows: Mapping[int, Row], baseline: Mapping[int, Row]) -> Row:
    first = next(iter(rows.values()))
    settled = {seed: row for seed, row in rows.items() if row["mean_us"] is not None}
    mean: Row = {column: first[column] for column in _columns_of_cell(first)}
    mean |= {"seeds": len(settled), "mean_us": None, "mean_half_us": None}
    for column in _VALUES:
        values = [row[column] for row in settled.values() if row[column] is not None]
        mean[column] = round(fmean(values), 4) if values else None
    mean["mean_half_us"] = _half_interval([row["mean_us"] for row in settled.values()])
    for name, column in _SLOWDOWNS.items():
        ratios = _compare(settled, baseline, column) if first["run"] != "baseline" else []
        mean[name] = round(fmean(ratios), 4) if ratios else None
        mean[f"{name}_half"] = _half_interval(ratios)
        if name == "slowdown":
            mean["slowdown_seeds"] = len(ratios)
    for column in first:
        if column.endswith(("_whole_ms", "_whole_most_ms")):
            whole = [row[column] for row in rows.values() if row[column] is not None]
            mean[column] = round(fmean(whole), 4) if whole else None
    open_ones = sorted({row["note"] for row in rows.values() if row["mean_us"] is None})
    of_seeds = "" if len(rows) == 1 else f"{len(rows) - len(settled)} of {len(rows)} seeds: "
    mean["note"] = of_seeds + "; ".join(open_ones) if open_ones else ""
    return mean


def _compare(rows: Mapping[int, Row], baseline: Mapping[int, Row], column: str) -> list[float]:
    """Return a column's value divided by the baseline's value, for each seed with both values."""
    return [
        row[column] / baseline[seed][column]
        for seed, row in rows.items()
        if row[column] and seed in baseline and baseline[seed][column]
    ]


def _half_interval(values: Sequence[float]) -> float | None:
    return round(half_interval(np.array(values)), 4) if len(values) > 1 else None


def list_whole_times(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> list[Row]:
    """Return a row for each client that sent all messages of its limit, with the time that it took."""
    return [
        {
            "job": workload.name,
            "bytes": None if workload.role is Role.PROFILE else workload.bytes * workload.limit,
            "window_us": workload.window_ns / 1e3,
            "run": "baseline" if cell.is_alone else "interference",
            "seed": cell.seed,
            "client": client,
            "whole_ms": round(whole / 1e6, 4),
        }
        for cell in cells
        for workload in cell.workloads
        for client, whole in enumerate(outcomes.get(cell.key, _MISSING).whole_ns.get(workload.name, ()))
    ]


def need_parquet() -> None:
    """Check that Parquet files can be written.

    Raises:
        MissingToolError: pyarrow is not installed.
    """
    if not find_spec("pyarrow"):
        raise MissingToolError("Parquet needs pyarrow: pip install 'ibprof[parquet]'")


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as Parquet if the file name ends with .parquet, else as CSV, with an empty cell for None.

    Raises:
        MissingToolError: pyarrow is not installed.
    """
    if path.suffix == ".parquet":
        need_parquet()
        import pyarrow as pa  # noqa: PLC0415  (an extra)
        import pyarrow.parquet as pq  # noqa: PLC0415

        table = pa.Table.from_pylist([dict(row) for row in rows])
        for number, field in enumerate(table.schema):
            if pa.types.is_null(field.type):  # all values are missing
                kind = pa.string() if _is_text(field.name) else pa.float64()
                table = table.set_column(number, field.name, table.column(number).cast(kind))
        pq.write_table(table, str(path))
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


_TEXTS = frozenset({"measured", "run", "fabric", "routing", "server_placement", "job_placement", "note"})


_LATER = {"nic_gap_ns": 0.0, "message_step_bytes": 0.0}
"""Column that does not exist in older tables -> its value for their rows."""

_OF_MEANS = frozenset({"measured", "run", *SETTING_COLUMNS, "seeds", *_VALUES, "slowdown"} - set(_LATER))


def is_means(path: Path) -> bool:
    """Return True if a CSV file has the header of a table of means."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return set(file.readline().strip().split(",")) >= _OF_MEANS


def read_means(paths: Iterable[Path]) -> list[Row]:
    """Read tables of means from CSV or Parquet files.

    Raises:
        InputError: a file is not a table of means.
        MissingToolError: pyarrow is not installed.
    """
    means: list[Row] = []
    for path in paths:
        if path.suffix == ".parquet":
            means += _read_parquet(path)
            continue
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            reader = csv.DictReader(file)
            _need_columns(path, reader.fieldnames or ())
            means += [_LATER | _parse(path, reader.line_num, row) for row in reader]
    return means


def _read_parquet(path: Path) -> list[Row]:
    need_parquet()
    import pyarrow as pa  # noqa: PLC0415  (an extra)
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        rows: list[Row] = pq.read_table(str(path)).to_pylist()
    except pa.ArrowException as error:
        raise InputError(path, None, "a Parquet file", str(error)) from None
    _need_columns(path, list(rows[0]) if rows else ())
    return [_LATER | row for row in rows]


def _need_columns(path: Path, found: Sequence[str]) -> None:
    if not set(found) >= _OF_MEANS:
        told = quote_found(", ".join(found or ("nothing",)))
        raise InputError(path, 1, f"columns {', '.join(sorted(_OF_MEANS))}", told)


def _is_text(column: str) -> bool:
    return column in _TEXTS or column.endswith("_role")


def _parse(path: Path, line: int, row: Mapping[str, str | None]) -> Row:
    parsed: Row = {}
    for column, value in row.items():
        if not value:
            parsed[column] = "" if column in _TEXTS else None
        elif _is_text(column):
            parsed[column] = value
        else:
            try:
                parsed[column] = float(value)
            except ValueError:
                parsed[column] = math.nan
            if not math.isfinite(parsed[column]):
                raise InputError(path, line, f"a number in {column}", quote_found(value))
    return parsed
