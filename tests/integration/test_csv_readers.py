# SPDX-License-Identifier: Apache-2.0
"""pandas, polars and DuckDB, with default options, read tables' columns as text, whole numbers or fractions."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest

from ibprof.cli import calls, matrix
from ibprof_converter.cli import layout, place
from ibprof_lab.cli import sim, topology
from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_testing.paths import DATA
from ibprof_testing.samples.delays import make_delays
from ibprof_testing.samples.study_files import write_study
from ibprof_testing.samples.timed_profiles import write_regions_profile

TREE = "xgft:2:4,4:1,2@100"

GUIDS = frozenset({"a_guid", "b_guid", "guid"})
"""Columns that DuckDB reads as numbers, unless their type is given (docs/formats/links.md)."""

TEXTS = GUIDS | {
    *("a_name", "b_name", "name", "kind", "lids", "ranks", "host", "region", "operation", "site", "job", "node"),
    *(
        "sender",
        "receiver",
        "a",
        "b",
        "measured",
        "run",
        "fabric",
        "routing",
        "server_placement",
        "job_placement",
        "note",
    ),
    *("io_role", "mpi_role"),
}

WHOLE = frozenset(
    {
        "rail",
        "a_port",
        "b_port",
        "a_level",
        "b_level",
        "level",
        "a_bytes",
        "b_bytes",
        "rank",
        "bytes",
        "messages",
        "port",
    }
    | {"steps", "seeds", "servers"}
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of tables that several commands wrote."""
    folder = tmp_path_factory.mktemp("tables")
    run = write_regions_profile(folder, 8)
    with tarfile.open(DATA / "recordings" / "0.1.0" / "openmpi.otf2.tar.xz") as archive:
        archive.extractall(folder / "timed", filter="data")
    timed = str(next((folder / "timed").glob("**/*.otf2")))
    write_delays(folder / "delays.nc", make_delays(8, 1))
    jobs = [{"name": "mpi", "role": "ring", "bytes": 4096, "share": 1}]
    study = write_study(folder, fabric="xgft:1:4:1@100", servers=0, jobs=jobs)
    before = Path.cwd()
    os.chdir(folder)
    for command, arguments in (
        (
            layout,
            [TREE, run, "--placement", "packed", "--by", "region,operation", "-o", "links.csv", "--nodes", "nodes.csv"],
        ),
        (layout, [TREE, run, run, "--placement", "packed", "--placement", "spread", "-o", "l.csv", "--nodes", "n.csv"]),
        (place, [TREE, run, "--time", "0.1", "-o", "placement.csv"]),
        (matrix, [run, "-o", "ranks.csv"]),
        (matrix, [run, "--by", "host", "-o", "hosts.csv"]),
        (calls, [timed, "--by", "rank,host,region,operation,site", "--csv", "calls.csv"]),
        (
            topology,
            ["infer", "delays.nc", "--bootstrap", "0", "-o", "positions.csv", "-o", "t.json", "--outliers", "a.csv"],
        ),
        (topology, ["regress", "t.json", "delays.nc", "-o", "regressed.csv"]),
        (sim, ["run", str(study), "-o", "simulated", "--workers", "1"]),
    ):
        assert command.main(arguments) == 0
    os.chdir(before)
    return folder


def query(text: str) -> duckdb.DuckDBPyRelation:
    """Run a DuckDB query that returns rows."""
    relation = duckdb.sql(text)
    assert relation is not None
    return relation


def read_types(path: Path) -> dict[str, dict[str, str]]:
    """Return reader -> column -> type, without columns that have no values."""
    frame = pd.read_csv(path)
    used = [column for column in frame if not frame[column].isna().all()]
    named = {column: "VARCHAR" for column in used if column in GUIDS}
    relation = query(f"FROM read_csv('{path}', types={named})" if named else f"FROM '{path}'")
    found = {
        "pandas": frame.dtypes.to_dict(),
        "polars": pl.read_csv(path).schema,
        "DuckDB": dict(zip(relation.columns, relation.types, strict=True)),
    }
    return {reader: {column: str(types[column]) for column in used} for reader, types in found.items()}


def test_columns_of_text_and_of_whole_numbers_are_read_as_such(tables: Path) -> None:
    paths = sorted(tables.glob("**/*.csv"))
    assert len(paths) >= 16
    wrong, seen = [], set()
    for path in paths:
        for reader, types in read_types(path).items():
            for column, kind in types.items():
                is_text = kind in ("str", "object", "String", "VARCHAR")
                is_whole = kind in ("int64", "Int64", "BIGINT")
                # src and dst have host names in hosts.csv, and numbers in ranks.csv
                wanted = column in TEXTS or (path.name == "hosts.csv" and column in ("src", "dst"))
                if is_text != wanted or (column in WHOLE and not is_whole):
                    wrong.append((path.name, reader, column, kind))
                seen.add(column)
    assert not wrong
    assert {"ranks", "lids", "host", "a_guid", "a_bytes", "rank"} <= seen


def test_lists_and_numbers_of_guids_are_read_back(tables: Path) -> None:
    path = tables / "nodes.csv"
    frame = pd.read_csv(path)
    ranks = frame["ranks"].map(json.loads).tolist()
    assert [rank for some in ranks for rank in some] == list(range(8))
    assert pl.read_csv(path)["ranks"].str.json_decode(pl.List(pl.Int64)).to_list() == ranks
    assert [row[0] for row in query(f"SELECT ranks::INT[] FROM '{path}'").fetchall()] == ranks
    # As docs/formats/links.md states, DuckDB reads a GUID as a number, which equals the hexadecimal text.
    guids = [row[0] for row in query(f"SELECT guid FROM '{path}'").fetchall()]
    assert guids == [int(guid, 16) for guid in frame["guid"]]
    quoted = path.with_name("quoted.txt")
    quoted.write_text("guid\n" + "".join(f'"{guid}"\n' for guid in frame["guid"]))
    assert [row[0] for row in query(f"SELECT guid FROM read_csv('{quoted}')").fetchall()] == guids
