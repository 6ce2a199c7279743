# SPDX-License-Identifier: Apache-2.0
"""Command lines of `ibprof-place`."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from ibprof_converter.cli import place
from ibprof_converter.placement import swap_search as search
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample

FABRIC = "xgft:2:4,4:1,4"
"""16 hosts, four on each leaf switch."""

PAIRS = "src,dst,bytes,messages\n0,1,1000000,1\n2,3,1000000,1\n1,2,10,1\n"

ROWS = {"best", "packed", "spread", "random", "random_best"}


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    """Run a short search; return the JSON document of `--json`."""
    assert place.main([*map(str, arguments), "--time", "0.02", "--json"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "matrix.csv"
    path.write_text(PAIRS)
    return path


def test_json_has_what_scripts_rely_on(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, FABRIC, "pattern:3dnn:1000000", "--seed", "3")
    times = said["max_link_seconds"]
    assert set(times) == ROWS | {"bound"}
    assert times["bound"] <= times["best"] <= min(times["packed"], times["spread"], times["random"])
    assert times["best"] < times["random"]
    assert set(said["host_link_seconds"]) == ROWS
    assert len(set(said["host_link_seconds"].values())) == 1  # one rank per host: no placement changes these loads
    assert said["ranks"] == said["seats"] == said["free_hosts"] == 16
    assert sorted(said["placement"]) == [f"host{number:02}" for number in range(1, 17)]
    assert {"seconds", "cut_by_time", "rounds", "proposals", "accepted"} == set(said["search"])


def test_it_says_when_the_clock_cut_the_search(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_WORK_PER_SECOND", 10**13)
    said = run(capsys, FABRIC, "pattern:3dnn:1000000")
    assert said["search"]["cut_by_time"] is True
    assert any("ended the search early" in note for note in said["notes"])


def test_the_ranks_are_where_the_csv_says(capsys: pytest.CaptureFixture[str], matrix: Path, tmp_path: Path) -> None:
    output = tmp_path / "placement.csv"
    said = run(capsys, FABRIC, matrix, "-o", output)
    with output.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["rank", "host"]
    assert rows == [[str(rank), host] for rank, host in enumerate(said["placement"])]
    given = run(capsys, FABRIC, matrix, "--placement", output)
    assert given["max_link_seconds"]["given"] == said["max_link_seconds"]["best"]


def test_dash_is_stdout_and_holds_nothing_else(capsys: pytest.CaptureFixture[str], matrix: Path) -> None:
    assert place.main([FABRIC, str(matrix), "--time", "0.02", "-o", "-"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "rank,host"
    assert [line.split(",")[0] for line in lines[1:]] == ["0", "1", "2", "3"]


def test_the_table_names_each_placement(capsys: pytest.CaptureFixture[str], matrix: Path) -> None:
    assert place.main([FABRIC, str(matrix), "--time", "0.02", "--placement", "spread"]) == 0
    said = capsys.readouterr().out
    for name in ("best found", "current", "packed", "spread", "random, median of 20", "lower bound"):
        assert name in said


def test_every_launcher_gets_the_same_placement(
    capsys: pytest.CaptureFixture[str], matrix: Path, tmp_path: Path
) -> None:
    ranks, slots, each, hydra = (tmp_path / name for name in ("ranks", "slots", "each", "hydra"))
    outputs = ("--rankfile", ranks, "--hostfile", slots, "--host-a-rank", each, "--mpich-hosts", hydra)
    hosts = run(capsys, FABRIC, matrix, *outputs)["placement"]
    assert [line.split()[1].partition("=")[2] for line in ranks.read_text().splitlines()] == hosts
    assert slots.read_text().splitlines() == [f"{host} slots=1" for host in hosts]
    assert each.read_text().splitlines() == hydra.read_text().strip().split(",") == hosts


def test_own_hosts_are_kept(capsys: pytest.CaptureFixture[str], matrix: Path) -> None:
    said = run(capsys, FABRIC, matrix, "--placement", "random:4", "--hosts", "own")
    given = run(capsys, FABRIC, matrix, "--placement", "random:4")
    assert said["free_hosts"] == said["seats"] == 4
    assert said["max_link_seconds"]["given"] == given["max_link_seconds"]["given"]


def test_hosts_of_a_file_are_kept_and_take_what_it_says(
    capsys: pytest.CaptureFixture[str], matrix: Path, tmp_path: Path
) -> None:
    free = tmp_path / "free"
    free.write_text("host01 slots=2\nhost16:2\n")
    said = run(capsys, FABRIC, matrix, "--hosts", free)
    assert (said["free_hosts"], said["seats"]) == (2, 4)
    assert said["placement"] in [["host01"] * 2 + ["host16"] * 2, ["host16"] * 2 + ["host01"] * 2]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([FABRIC], "expected at least one LST, then TRAFFIC"),
        ([FABRIC, "pattern:3dnn:1", "--time", "0"], "--time 0"),
        ([FABRIC, "pattern:3dnn:1", "--seed", "-1"], "--seed -1"),
        ([FABRIC, "pattern:3dnn:1", "--slots", "0"], "--slots 0"),
        ([FABRIC, "pattern:3dnn:1", "-o", "-", "--json"], "both write to stdout"),
        (["xgft:2:4,2:1,2", "matrix.csv", "--hosts", "own"], "name hosts with --placement"),
        ([FABRIC, "lids.csv"], "expected traffic between ranks"),
        ([FABRIC, "many.csv"], "17 ranks need a slot each"),
    ],
)
def test_usage_that_makes_no_sense_is_2(
    arguments: list[str],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("matrix.csv").write_text(PAIRS)
    Path("many.csv").write_text(f"{PAIRS}16,0,1,1\n")
    Path("lids.csv").write_text("src_lid,dst_lid,bytes\n1,2,3\n")
    assert place.main(arguments) == 2
    said = capsys.readouterr()
    assert why in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("matrix.csv", "src,dst,bytes,messages\n0,1,5,1\n0,1,many,1\n", "matrix.csv:3: expected"),
        ("matrix.csv", "from,to\n", "matrix.csv:1: expected the header"),
        ("free", "host01\n# a remark\nhost99\n", "free:3: expected a host of the fabric, found 'host99'"),
        ("free", "host01\nhost02 slots=x\n", "free:2: expected"),
        ("free", "# none\n", "free: expected"),
        ("now.csv", "rank,host\n0,host01\n1,host77\n", "now.csv:3: expected a host of the fabric, found 'host77'"),
    ],
)
def test_bad_input_is_3_and_says_where(
    name: str,
    text: str,
    where: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"matrix.csv": PAIRS, "free": "host01\nhost02\nhost03\nhost04\n", "now.csv": None} | {name: text}
    for file, content in files.items():
        if content is not None:
            Path(file).write_text(content)
    options = ["--placement", "now.csv"] if name == "now.csv" else []
    assert place.main([FABRIC, "matrix.csv", "--hosts", "free", *options, "-o", "placement.csv"]) == 3
    said = capsys.readouterr()
    assert where in said.err
    assert said.out == ""
    assert not Path("placement.csv").exists()


def test_a_file_that_is_not_there_is_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert place.main([FABRIC, "pattern:3dnn:1", "--hosts", "no such file"]) == 3
    assert "no such file: expected a readable file" in capsys.readouterr().err


def test_rails_that_are_one_and_the_same_are_5(capsys: pytest.CaptureFixture[str]) -> None:
    rail = str(find_sample("testbed44", IBDIAGNET))
    assert place.main([rail, rail, "pattern:3dnn:1"]) == 5
    assert "a switch belongs to one rail only" in capsys.readouterr().err


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        place.main(["--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert "ibprof-place ibdiagnet.lst profile.otf2 -o placement.csv" in said


@pytest.mark.parametrize("rule", ["packed", "spread", "random:3"])
def test_rules_fill_as_many_slots_of_a_host_as_are_allowed(
    rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "ring.csv"
    pairs.write_text("src,dst,bytes,messages\n" + "".join(f"{rank},{(rank + 1) % 32},1000,1\n" for rank in range(32)))
    said = run(capsys, FABRIC, pairs, "--slots", "2", "--placement", rule)
    assert "given" in said["max_link_seconds"]
    assert place.main([FABRIC, str(pairs), "--slots", "1", "--placement", rule]) == 2
    assert "32 ranks" in capsys.readouterr().err
