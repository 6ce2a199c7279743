# SPDX-License-Identifier: Apache-2.0
"""`ibprof-layout` and `ibprof-report` have the expected output files, texts and exit statuses."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from ibprof.archive.otf2_archive import write_archive
from ibprof_converter.cli import layout, report
from ibprof_testing.samples.fabrics import IBDIAGNET, OPENSM, find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

TESTBED = str(find_sample("testbed44", IBDIAGNET))
TESTBED_OF_OPENSM = str(find_sample("testbed44", OPENSM))
"""OpenSM's list has no peculiarities, so commands print nothing on stderr."""

BIG = str(find_sample("xgft3-1296", IBDIAGNET))
RAILS = [str(find_sample(f"dualrail/rail{rail}", IBDIAGNET)) for rail in (1, 2)]
PARTIAL = str(find_sample("xgft3-1296-partial", IBDIAGNET))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_all_to_all_on_1296_hosts(tmp_path: Path) -> None:
    links, nodes = tmp_path / "links.csv", tmp_path / "nodes.csv"
    assert layout.main([BIG, "pattern:all-to-all", "-o", str(links), "--nodes", str(nodes)]) == 0
    rows = rows_of(links)
    assert len(rows) == 3888
    from_switches = [int(row["b_bytes"]) for row in rows]
    from_switches += [int(row["a_bytes"]) for row in rows if row["a_level"] != "0"]
    assert sum(from_switches) == 7_510_320
    assert sum(int(row["a_bytes"]) for row in rows if row["a_level"] == "0") == 1296 * 1295
    levels = [row["level"] for row in rows_of(nodes)]
    assert [levels.count(level) for level in "0123"] == [1296, 72, 72, 36]


def test_stdout_is_the_csv_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main([TESTBED_OF_OPENSM, "pattern:shift:1", "--used"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("rail,a_guid,")
    assert said.out.count("\n") == len(said.out.splitlines())
    assert all(line.endswith(",1") or ",*,*," in line for line in said.out.splitlines()[1:])
    assert said.err == ""


def test_two_rails_share_the_bytes(tmp_path: Path) -> None:
    links = tmp_path / "links.csv"
    assert layout.main([*RAILS, "pattern:shift:1:1001", "-o", str(links)]) == 0
    sent = [
        sum(int(row["a_bytes"]) for row in rows_of(links) if row["rail"] == rail and row["a_level"] == "0")
        for rail in "01"
    ]
    assert sent[0] > sent[1] > 0
    assert {float(row["b_y"]) > 0 for row in rows_of(links) if row["rail"] == "0"} == {True}
    assert {float(row["b_y"]) < 0 for row in rows_of(links) if row["rail"] == "1"} == {True}


def test_fdbs_can_lie_elsewhere(tmp_path: Path) -> None:
    alone = tmp_path / "alone.lst"
    alone.write_bytes(Path(TESTBED).read_bytes())
    tables = TESTBED.replace(".lst", ".fdbs")
    links, expected = tmp_path / "links.csv", tmp_path / "expected.csv"
    assert layout.main(["-o", str(links), "--fdbs", tables, "--", str(alone), "pattern:shift:1"]) == 0
    assert layout.main([str(alone), "pattern:shift:1", "-o", str(links), "--fdbs", tables]) == 0
    assert layout.main([TESTBED, "pattern:shift:1", "-o", str(expected)]) == 0
    assert links.read_text() == expected.read_text()


def test_a_profile_goes_to_the_links_that_its_hosts_are_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_profile(
        [Count(0, 1, 1000, region=0), Count(1, 0, 70, region=1, operation=1)],
        [make_rank(0, 0), make_rank(1, 1)],
        [make_host("host01"), make_host("host42")],
        regions=("main", "halo"),
        operations=("BCAST", "SEND"),
    )
    profile, links = tmp_path / "profile.otf2", tmp_path / "links.csv"
    write_archive(run, profile)
    assert layout.main([TESTBED, str(profile), "-o", str(links), "--by", "region,operation", "--used"]) == 0
    carried = [
        (row["a_name"], row["b_name"], row["region"], row["operation"], row["a_bytes"], row["b_bytes"])
        for row in rows_of(links)
    ]
    assert carried[:4] == [
        ("host01 HCA-1", "sw-a", "main", "BCAST", "1000", "0"),
        ("host01 HCA-1", "sw-a", "halo", "SEND", "0", "70"),
        ("host42 HCA-1", "sw-b", "main", "BCAST", "0", "1000"),
        ("host42 HCA-1", "sw-b", "halo", "SEND", "70", "0"),
    ]
    assert layout.main([TESTBED, str(profile), "-o", str(links), "--by", "operation", "--used"]) == 0
    assert {(row["region"], row["operation"]) for row in rows_of(links)} == {("*", "BCAST"), ("*", "SEND")}
    capsys.readouterr()
    assert report.main([str(profile), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bytes_total"] == 1070
    assert [host["name"] for host in document["hosts"]] == ["host01", "host42"]


def test_options_may_stand_between_the_inputs(tmp_path: Path) -> None:
    links, expected = tmp_path / "links.csv", tmp_path / "expected.csv"
    assert layout.main([TESTBED, "--placement", "spread", "pattern:shift:1", "-o", str(links)]) == 0
    assert layout.main([TESTBED, "pattern:shift:1", "--placement", "spread", "-o", str(expected)]) == 0
    assert links.read_text() == expected.read_text()


def test_strict_makes_bytes_that_cannot_be_routed_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    links = tmp_path / "links.csv"
    arguments = [PARTIAL, "pattern:shift:600", "-o", str(links)]
    assert layout.main([*arguments, "--strict"]) == 5
    assert "missing table" in capsys.readouterr().err
    assert not links.exists()
    assert layout.main(arguments) == 5
    assert "missing table" in capsys.readouterr().err
    assert links.exists()
    assert layout.main([*arguments, "--max-unrouted", "100"]) == 0


def test_what_is_odd_about_fabric_and_placement_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [TESTBED, "pattern:shift:1", "--placement", "spread", "-o", str(tmp_path / "links.csv")]
    assert layout.main(arguments) == 0
    assert capsys.readouterr().err.splitlines() == [
        "ibprof-layout: ranks are placed by --placement spread",
        f"ibprof-layout: {TESTBED}: speeds are those of opensm-subnet.lst, since ibdiagnet 1.x shows none above 10 "
        "Gb/s per lane",
    ]


@pytest.mark.parametrize(
    ("keep", "gap"),
    [
        (lambda line: "{sw-b}" not in line, "tables belong to switches"),
        (lambda line: "{host07 " not in line, "reachable LIDs belong to no port"),
        (lambda line: "{sw-a}" not in line or "{sw-b}" not in line, "routes use"),
    ],
)
def test_strict_refuses_a_listing_that_lacks_what_the_tables_lead_to(
    keep: Callable[[str], bool], gap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut, pairs = tmp_path / "cut.lst", tmp_path / "pairs.csv"
    cut.write_text("".join(filter(keep, Path(TESTBED).read_text().splitlines(keepends=True))))
    pairs.write_text("src_lid,dst_lid,bytes\n1,6,1\n")
    arguments = [str(cut), str(pairs), "--fdbs", TESTBED.replace(".lst", ".fdbs"), "-o", str(tmp_path / "links.csv")]
    assert layout.main(arguments) == 0
    assert gap in capsys.readouterr().err
    assert layout.main([*arguments, "--strict"]) == 5
    assert gap in capsys.readouterr().err


def test_one_subnet_given_twice_is_not_two_rails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main([TESTBED, TESTBED_OF_OPENSM, "pattern:shift:1", "-o", str(tmp_path / "links.csv")]) == 5
    said = capsys.readouterr().err
    assert f"{TESTBED} and {TESTBED_OF_OPENSM} both have switch 0x0002c90200" in said
    assert said.count("\n") == 1


def test_report_accounts_for_every_byte(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([PARTIAL, "pattern:shift:7:10", "--json", "--top", "1"]) == 5  # 1% of bytes have no route
    document = json.loads(capsys.readouterr().out)
    assert document["bytes_total"] == 12960
    unrouted = sum(document["bytes_unrouted"].values())
    assert document["bytes_total"] == document["bytes_routed"] + document["bytes_on_host"] + unrouted
    assert unrouted > 0
    assert len(document["hotspots"]) == 1


def test_port_counters_are_loads_without_routing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counters = tmp_path / "counters.csv"
    counters.write_text("guid,port,bytes\n0x0002c90200400000,22,700\n0x0002c90200400000,99,5\n")
    links = tmp_path / "links.csv"
    assert layout.main([TESTBED, str(counters), "-o", str(links), "--used"]) == 0
    assert [(row["a_name"], row["a_port"], row["a_bytes"], row["b_bytes"]) for row in rows_of(links)] == [
        ("sw-a", "22", "700", "0")
    ]
    capsys.readouterr()
    assert report.main([TESTBED, str(counters), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bytes_unrouted"] == {"port is not in the fabric": 5}
    assert document["hotspots"][0]["contributors"] is None


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([TESTBED], 2, "then TRAFFIC"),
        ([TESTBED, "matrix.csv"], 2, "--placement"),
        ([TESTBED, "matrix.csv", "--placement", "packed", "--rails", "second"], 2, "only one fabric"),
        ([TESTBED, "pairs.csv", "--placement", "packed"], 2, "do not apply"),
        ([TESTBED, "counters.csv", "--by", "region"], 2, "port counters cannot be divided by region"),
        ([TESTBED, "nowhere.csv"], 3, "nowhere.csv"),
        (["nowhere.lst", "pattern:shift:1"], 3, "nowhere.lst"),
        (["void", "pattern:shift:1"], 3, "void: expected a folder with dumps of a fabric"),
        ([TESTBED, "/dev/null"], 3, "/dev/null:1: expected the header"),
        ([TESTBED, "pairs.csv", "-o", "pairs.csv"], 2, "also an input"),
        ([TESTBED, "matrix.csv", "--placement", "p.csv", "--nodes", "p.csv"], 2, "also an input"),
        (["copy.lst", "pairs.csv", "--png", "copy.fdbs"], 2, "also an input"),
        ([TESTBED, "pairs.csv", "-o", "new.csv", "--nodes", "./new.csv"], 2, "also --output"),
        ([TESTBED, "pairs.csv", "--nodes", "-"], 2, "also --output"),
        ([TESTBED_OF_OPENSM, "pairs.csv", "-o", "/dev/full"], 3, "/dev/full: No space left"),
        ([TESTBED_OF_OPENSM, "pairs.csv", "-o", "/dev/null", "--png", "/dev/full"], 3, "/dev/full: No space left"),
        ([TESTBED, "pattern:nonsense"], 2, "unknown pattern"),
        ([TESTBED, TESTBED, "pattern:shift:1", "--fdbs", TESTBED], 2, "one file for each of 2 LST"),
        ([TESTBED, "empty.csv"], 3, "empty.csv:1: expected the header"),
        ([TESTBED_OF_OPENSM, "pattern:shift:1", "-o", "no/such/folder.csv"], 3, "no/such/folder.csv"),
    ],
)
def test_what_cannot_be_ends_with_one_line_and_its_status(
    arguments: list[str],
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ibprof.cli.command._forget_stdout", lambda: None)  # pytest still needs its own stdout
    (tmp_path / "matrix.csv").write_text("src,dst,bytes,messages\n0,1,1,1\n")
    (tmp_path / "pairs.csv").write_text("src_lid,dst_lid,bytes\n1,6,1\n")
    (tmp_path / "counters.csv").write_text("guid,port,bytes\n0x0002c90200400000,22,700\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "void").mkdir()
    (tmp_path / "p.csv").write_text("rank,host\n0,host01\n1,host02\n")
    for suffix in (".lst", ".fdbs"):
        (tmp_path / f"copy{suffix}").write_bytes(Path(TESTBED).with_suffix(suffix).read_bytes())
    assert layout.main(arguments) == status
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pattern:all-to-all"], "covers all hosts of a fabric"),
        (["counters.csv"], "without a fabric"),
        (["pairs.csv", "--placement", "packed"], "only with a fabric"),
        (["matrix.csv", "--strict"], "only with a fabric"),
        (["matrix.csv", "mistyped.lst"], "mistyped.lst: no such file"),
        (["matrix.csv", "--top", "3"], "only with a fabric"),
    ],
)
def test_a_report_without_a_fabric_needs_ranks(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.csv").write_text("src_lid,dst_lid,bytes\n1,6,1\n")
    (tmp_path / "counters.csv").write_text("guid,port,bytes\n0x1,1,1\n")
    (tmp_path / "matrix.csv").write_text("src,dst,bytes,messages\n0,1,1,1\n")
    assert report.main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_matrix_alone_can_be_reported_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = tmp_path / "matrix.csv"
    matrix.write_text("src,dst,bytes,messages\n0,1,10,1\n1,0,30,1\n")
    assert report.main([str(matrix), "--full"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"ranks +sent +2 +30 B +20 B +10 B +1\.50 +rank 1\n", text)
    assert re.search(r"ranks +received +2 +30 B +20 B +10 B +1\.50 +rank 0\n", text)
    assert "ibdiagnet -o" in text
    assert "ibprof-report ibdiagnet.lst TRAFFIC --placement HOW" in text
    assert "Operations" not in text


def test_tables_come_through_pipes(tmp_path: Path) -> None:
    expected, links = tmp_path / "expected.csv", tmp_path / "links.csv"
    texts = {"m": "src,dst,bytes,messages\n0,1,10,1\n", "p": "rank,host\n0,host01\n1,host42\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
        os.mkfifo(tmp_path / name)
        threading.Thread(target=(tmp_path / name).write_text, args=(text,), daemon=True).start()
    files, pipes = ([str(tmp_path / f"m{end}"), "--placement", str(tmp_path / f"p{end}")] for end in (".csv", ""))
    assert layout.main([TESTBED, *files, "-o", str(expected)]) == 0
    assert layout.main([TESTBED, *pipes, "-o", str(links)]) == 0
    assert links.read_text() == expected.read_text()


def test_hosts_of_the_recording_are_not_spoken_of_when_ranks_are_put_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_profile([Count(0, 1, 1000)], [make_rank(0, 0), make_rank(1, 0)], [make_host("host01")])
    write_archive(run, tmp_path / "profile.otf2")
    documents = []
    for options in ([], ["--placement", "spread"]):
        # Commands accept the folder of a profile instead of the profile's file.
        assert report.main([TESTBED, str(tmp_path), "--json", *options]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    recorded, placed = documents
    assert (recorded["bytes_on_host"], recorded["hosts"][0]["bytes_on_host"]) == (1000, 1000)
    assert (placed["bytes_on_host"], placed["hosts"], placed["balance_hosts"]) == (0, [], None)
    assert recorded["coverage"]["origin"].startswith(f"profile {tmp_path}")


def test_port_counters_have_no_rails_in_any_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counters, links = tmp_path / "counters.csv", tmp_path / "links.yaml"
    counters.write_text("guid,port,bytes\n0x0002c90200400000,22,700\n")
    assert layout.main([TESTBED, str(counters), "-o", str(tmp_path / "links.csv"), "--yaml", str(links)]) == 0
    assert report.main([TESTBED, str(counters), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["coverage"]["rails"] is None
    assert yaml.safe_load(links.read_text())["about"]["rails"] is None


def test_a_pipe_gets_no_escape_codes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert report.main([TESTBED, "pattern:shift:1", "--full"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_picture_of_names_that_the_font_lacks_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "\N{HIRAGANA LETTER A}.csv").write_text("src_lid,dst_lid,bytes\n1,6,1\n")
    script = "import sys; from ibprof_converter.cli.layout import main; sys.exit(main())"
    names = [TESTBED_OF_OPENSM, "\N{HIRAGANA LETTER A}.csv", "-o", "links.csv", "--png", "links.png"]
    done = subprocess.run(
        [sys.executable, "-c", script, *names],
        cwd=tmp_path,
        env={"HOME": "/proc/none", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("command", [layout, report])
def test_help_has_an_example(command: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["--help"])
    assert end.value.code == 0
    assert "example" in capsys.readouterr().out


def test_level_hosts_name_the_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = tmp_path / "nodes.csv"
    # Only host01 on sw-a counts as a host for levels. So sw-b is a level above sw-a.
    arguments = [TESTBED, "pattern:shift:1", "-o", "/dev/null", "--nodes", str(nodes), "--level-hosts"]
    assert layout.main([*arguments, "^host01 "]) == 0
    with nodes.open() as file:
        level = {row["name"]: int(row["level"]) for row in csv.DictReader(file)}
    assert (level["sw-a"], level["sw-b"], level["host01 HCA-1"]) == (1, 2, 0)
    with pytest.raises(SystemExit, match="2"):
        layout.main([*arguments, "("])
    assert "regular expression" in capsys.readouterr().err
