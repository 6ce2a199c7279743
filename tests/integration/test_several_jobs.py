# SPDX-License-Identifier: Apache-2.0
"""If several jobs use one network, one table contains the loads of each job."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path

import pytest

from ibprof_converter.analysis.pipeline_options import split_names
from ibprof_converter.cli import layout, place, report
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample

LST = str(find_sample("testbed44", IBDIAGNET))
FIRST = "pattern:shift:1:100"


@pytest.fixture
def matrices(tmp_path: Path) -> list[str]:
    """Write the traffic of two jobs. In job one, rank 0 sends to ranks 1 and 2; in job two, only to rank 1."""
    (tmp_path / "one.csv").write_text("src,dst,bytes,messages\n0,1,10,1\n0,2,20,1\n")
    (tmp_path / "two.csv").write_text("src,dst,bytes,messages\n0,1,500,1\n")
    return [str(tmp_path / "one.csv"), str(tmp_path / "two.csv")]


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def sums(rows: list[dict[str, str]], job: str | None = None) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if job is None or row["job"] == job:
            for end in "ab":
                counted[row[f"{end}_guid"], row[f"{end}_port"]] += int(row[f"{end}_bytes"])
    return +counted


def test_each_job_loads_what_it_loads_alone(
    matrices: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["slurm:host[01,30,31]", "slurm:host[01,42]"]
    alone = []
    for name, where in zip(matrices, places, strict=True):
        assert layout.main([LST, name, "--placement", where]) == 0
        alone.append(rows_of(capsys.readouterr().out))
        assert "job" not in alone[-1][0]
    both = [LST, *matrices, *(word for where in places for word in ("--placement", where))]
    assert layout.main([*both, "--nodes", str(tmp_path / "n.csv")]) == 0
    printed = capsys.readouterr()
    together = rows_of(printed.out)
    assert sums(together, "one") == sums(alone[0])
    assert sums(together, "two") == sums(alone[1])
    assert sums(together) == sums(alone[0]) + sums(alone[1])
    assert {row["job"] for row in together} == {"one", "two", "*"}
    assert "1 port(s) are used by more than one job" in printed.err
    ranks = {row["name"]: row["ranks"] for row in rows_of((tmp_path / "n.csv").read_text())}
    assert ranks["host01 HCA-1"] == '["0:0", "1:0"]'
    assert ranks["host42 HCA-1"] == '["1:1"]'
    assert report.main([*both, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bytes_total"] == 530
    busiest = document["hotspots"][0]
    assert busiest["bytes"] == 530  # bytes that host01 sends
    assert [(share["name"], share["bytes"]) for share in busiest["contributors"]["jobs"]] == [("two", 500), ("one", 30)]
    pairs = busiest["contributors"]["rank_pairs"]
    assert [(pair["job"], pair["source_rank"], pair["destination_rank"]) for pair in pairs] == [
        ("two", 0, 1),
        ("one", 0, 2),
        ("one", 0, 1),
    ]
    assert report.main([*both, "--full"]) == 0
    assert "by job: two" in capsys.readouterr().out


def test_lid_pairs_of_two_jobs_are_not_one_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for name, amount in (("a/p.csv", 7), ("b/p.csv", 9)):
        (tmp_path / name).write_text(f"src_lid,dst_lid,bytes\n1,6,{amount}\n")
    arguments = [LST, str(tmp_path / "a/p.csv"), str(tmp_path / "b/p.csv")]
    assert report.main([*arguments, "--json"]) == 0
    busiest = json.loads(capsys.readouterr().out)["hotspots"][0]["contributors"]
    assert [(pair["job"], pair["bytes"]) for pair in busiest["rank_pairs"]] == [("p#1", 9), ("p#0", 7)]


def test_regions_and_operations_are_distinguished_within_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main([LST, FIRST, "pattern:shift:2:5", "--by", "region,operation", "--used"]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert {row["job"] for row in rows} == {"shift:1:100", "shift:2:5"}
    assert sum(int(row["a_bytes"]) + int(row["b_bytes"]) for row in rows if row["job"] == "shift:2:5") % 5 == 0


@pytest.mark.parametrize(
    ("run", "extra", "said"),
    [
        (layout.main, ["--placement", "packed"], "one for each of 2 jobs"),
        (place.main, [], "one job is placed at a time"),
        (layout.main, ["--counters", "{0}"], "expected port counters"),
    ],
)
def test_what_cannot_be(
    run: object, extra: list[str], said: str, matrices: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    placements = [] if "--placement" in extra else ["--placement", "packed", "--placement", "spread"]
    arguments = [LST, *matrices, *placements, *(word.format(*matrices) for word in extra)]
    assert run(arguments) == 2  # type: ignore[operator]
    assert said in capsys.readouterr().err


def test_folders_are_of_fabrics_or_of_runs_by_what_is_in_them(tmp_path: Path) -> None:
    for name in ("fabric/ibdiagnet.lst", "run1/profile.otf2", "run2/host.ibprof", "both/ibdiagnet.lst", "both/p.otf2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(Path(LST).read_bytes() if name.endswith(".lst") else b"")
    fabric, run1, run2, both = (str(tmp_path / name) for name in ("fabric", "run1", "run2", "both"))
    assert split_names([fabric, run1, run2]) == (
        (fabric,),
        (
            run1,
            run2,
        ),
    )
    assert split_names([both, run1]) == ((both,), (run1,))
    assert split_names([LST, "m.csv", "pattern:shift:1", "x"]) == (
        (LST,),
        (
            "m.csv",
            "pattern:shift:1",
            "x",
        ),
    )
    assert split_names(["a.lst", "b.lst", "anything"]) == (
        (
            "a.lst",
            "b.lst",
        ),
        ("anything",),
    )


def test_counters_are_no_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.csv").write_text("guid,port,bytes\n0x0002c90200400000,22,700\n")
    assert layout.main([LST, FIRST, str(tmp_path / "c.csv")]) == 2
    assert "port counters cannot be one of several jobs" in capsys.readouterr().err
    assert report.main([FIRST, FIRST]) == 2
