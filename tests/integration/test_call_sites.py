# SPDX-License-Identifier: Apache-2.0
"""Tables, reports and comparisons show the loads of links by program line, if the profile has call sites."""

from __future__ import annotations

import base64
import csv
import json
import re
import struct
import zlib
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import Profile, Site
from ibprof_converter.cli import diff, layout, place, report, view
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

LST = str(find_sample("testbed44", IBDIAGNET))
NAMES = ("ocean/util.c:7", "ice/util.c:7", "solver.c:212", "solver.c:212")
SITES = tuple(
    Site(f"/src/{name.rpartition(':')[0]}", int(name.rpartition(":")[2]), "f", program, name=name)
    for name, program in zip(NAMES, ("app", "app", "app", "other"), strict=True)
)
BYTES = (1, 20, 300, 4000, 50_000)
"""Bytes that a rank sends from the unknown call site, then from each known call site.

A sum of some of these numbers shows which call sites are in the sum.
"""


def make_run(factor: int = 1) -> Profile:
    counts = [
        Count(rank, 1 - rank, amount * factor, operation=site % 2)
        for rank in (0, 1)
        for site, amount in enumerate(BYTES)
    ]
    run = make_profile(
        counts,
        [make_rank(0, 0), make_rank(1, 1)],
        [make_host("host01"), make_host("host42")],
        operations=("SEND", "PUT"),
    )
    sites = np.tile(np.arange(len(BYTES), dtype=np.int32), 2)
    return replace(run, sites=SITES, counters=replace(run.counters, site=sites))


@pytest.fixture
def profile(tmp_path: Path) -> str:
    write_archive(make_run(), tmp_path / "profile.otf2")
    return str(tmp_path / "profile.otf2")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_links_by_site(profile: str, tmp_path: Path) -> None:
    links, plain = tmp_path / "links.csv", tmp_path / "plain.csv"
    assert layout.main([LST, profile, "-o", str(links), "--by", "site", "--used"]) == 0
    assert layout.main([LST, profile, "-o", str(plain), "--used"]) == 0
    rows, whole = rows_of(links), rows_of(plain)
    header = list(whole[0])
    assert "site" not in header
    assert list(rows[0]) == [*header[: header.index("a_bytes")], "site", *header[header.index("a_bytes") :]]
    assert list(rows[0])[list(rows[0]).index("operation") + 1] == "site"
    ends = ("rail", "a_guid", "a_port")
    of_link: defaultdict[tuple[str, ...], dict[str, tuple[int, int]]] = defaultdict(dict)
    for row in rows:
        of_link[tuple(row[name] for name in ends)][row["site"]] = int(row["a_bytes"]), int(row["b_bytes"])
        assert (row["region"], row["operation"]) == ("*", "*")
    for row in whole:
        parts = of_link.pop(tuple(row[name] for name in ends))
        assert [sum(amounts) for amounts in zip(*parts.values(), strict=True)] == [
            int(row["a_bytes"]),
            int(row["b_bytes"]),
        ]
    assert not of_link
    (sent,) = [row for row in rows if row["a_name"].startswith("host01") and row["site"] == "solver.c:212"]
    assert int(sent["a_bytes"]) == BYTES[3] + BYTES[4]  # this line is in two programs


def test_links_by_operation_and_site(profile: str, tmp_path: Path) -> None:
    links = tmp_path / "links.csv"
    assert layout.main([LST, profile, "-o", str(links), "--by", "operation,site", "--used"]) == 0
    sent = {
        (row["operation"], row["site"]): int(row["a_bytes"])
        for row in rows_of(links)
        if row["a_name"].startswith("host01")
    }
    assert sent == {
        ("SEND", "(unknown)"): 1,
        ("PUT", "ocean/util.c:7"): 20,
        ("SEND", "ice/util.c:7"): 300,
        ("PUT", "solver.c:212"): 4000,
        ("SEND", "solver.c:212"): 50_000,
    }


def test_two_jobs_keep_their_sites(profile: str, tmp_path: Path) -> None:
    plain = replace(make_run(), sites=(), counters=replace(make_run().counters, site=np.zeros(10, np.int32)))
    write_archive(plain, tmp_path / "plain.otf2")
    links = tmp_path / "links.csv"
    inputs = [LST, profile, str(tmp_path / "plain.otf2")]
    assert layout.main([*inputs, "-o", str(links), "--by", "site", "--used"]) == 0
    found = {(row["job"], row["site"]) for row in rows_of(links)}
    assert found == {("plain", "*"), *(("profile", name) for name in ("(unknown)", *NAMES))}


def test_without_sites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = replace(make_run(), sites=(), counters=replace(make_run().counters, site=np.zeros(10, np.int32)))
    write_archive(plain, tmp_path / "plain.otf2")
    assert layout.main([LST, str(tmp_path / "plain.otf2"), "--by", "site"]) == 2
    assert "IBPROF_SITES=0" in capsys.readouterr().err


def test_other_outputs(profile: str, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("links.parquet", "links.yaml", "links.dot", "boxfish", "sites.svg")}
    options = ["--yaml", str(files["links.yaml"]), "--dot", str(files["links.dot"]), "--boxfish", str(files["boxfish"])]
    picture = ["--figure", str(files["sites.svg"]), "--panels", "site"]
    command = [LST, profile, "-o", str(tmp_path / "links.csv"), "--by", "site", "--used", *options, *picture]
    assert layout.main(command) == 0
    for name in ("links.yaml", "links.dot", "boxfish/meta.yaml"):
        assert "solver.c:212" in (tmp_path / name).read_text(), name
    assert files["sites.svg"].stat().st_size > 10_000


def test_a_report_names_the_lines(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([LST, profile, "--full"]) == 0
    text = capsys.readouterr().out
    assert "Call sites" in text
    assert "by site: solver.c:212 99.4%" in text
    assert report.main([LST, profile, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    sums = {row["name"]: row["bytes"] for row in document["sites"]}
    assert sums == {"solver.c:212": 108_000, "ice/util.c:7": 600, "ocean/util.c:7": 40, "(unknown)": 2}
    assert document["hotspots"][0]["contributors"]["sites"][0]["name"] == "solver.c:212"


def test_a_comparison_by_line(profile: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(make_run(2), tmp_path / "after.otf2")
    runs = [profile, str(tmp_path / "after.otf2")]
    assert diff.main([*runs, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (part,) = [each for each in document["parts"] if each["dimension"] == "site"]
    assert part["changes"][0]["name"] == "solver.c:212"
    assert diff.main([*runs, "--fail-on", "bytes[site:solver.c:212]>+50%"]) == 1
    assert diff.main([*runs, "--fail-on", "bytes[solver.c:212]>+150%"]) == 0


def read_page(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the header and the arrays of a page, read as docs/formats/view.md describes."""
    found = re.search(r'<script[^>]* id="data"[^>]*>([^<]*)</script>', path.read_text())
    assert found
    data = zlib.decompress(base64.b64decode(found[1]))
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    start = -(-(4 + length) // 8) * 8
    arrays = {
        each["name"]: np.frombuffer(data, "<" + each["type"], each["length"], start + each["offset"])
        for each in header["arrays"]
    }
    return header, arrays


def test_the_view_has_the_lines(profile: str, tmp_path: Path) -> None:
    plain = replace(make_run(), sites=(), counters=replace(make_run().counters, site=np.zeros(10, np.int32)))
    write_archive(plain, tmp_path / "plain.otf2")
    page = tmp_path / "view.html"
    command = [LST, str(tmp_path / "plain.otf2"), "-o", str(page)]
    assert view.main([*command, "--compare", profile]) == 0
    header, arrays = read_page(page)
    names = header["sites"]
    assert names == ["*", "(unknown)", "ocean/util.c:7", "ice/util.c:7", "solver.c:212"]
    sums: defaultdict[str, int] = defaultdict(int)
    for site, low in zip(arrays["1.flow_site"].tolist(), arrays["1.flow_bytes_low"].tolist(), strict=True):
        sums[names[site]] += low
    assert sums == {"(unknown)": 2, "ocean/util.c:7": 40, "ice/util.c:7": 600, "solver.c:212": 108_000}
    assert not arrays["0.flow_site"].any()
    assert view.main(command) == 0
    assert "sites" not in read_page(page)[0]


def amounts_by_end(path: Path, site: str | None = None) -> dict[tuple[str, ...], int]:
    """Return the bytes of each used link direction in links.csv, from all sites or from `site`."""
    return {
        (row["rail"], row["a_guid"], row["a_port"], end): int(row[f"{end}_bytes"])
        for row in rows_of(path)
        for end in "ab"
        if int(row[f"{end}_bytes"]) and (site is None or row["site"] == site)
    }


@pytest.mark.parametrize("line", ["solver.c:212", "ice/util.c:7", "(unknown)"])
def test_links_of_one_line(profile: str, tmp_path: Path, line: str) -> None:
    """`--site LINE` prints the rows of `--by site` for this line."""
    every, chosen = tmp_path / "every.csv", tmp_path / "chosen.csv"
    assert layout.main([LST, profile, "-o", str(every), "--by", "site"]) == 0
    assert layout.main([LST, profile, "-o", str(chosen), "--site", line]) == 0
    assert amounts_by_end(chosen) == amounts_by_end(every, line) != {}


def test_a_report_on_one_line(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--site", "solver.c:212", "--operation", "MPI_Put"]
    for fabric in ([LST], []):
        assert report.main([*fabric, profile, *chosen, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert {row["name"]: row["bytes"] for row in document["sites"] if row["bytes"]} == {"solver.c:212": 8000}
        assert {row["name"]: row["bytes"] for row in document["operations"] if row["bytes"]} == {"PUT": 8000}
        assert document["bytes_total"] == 8000
        assert document["matrix_ranks"]["bytes"] == [[0, 4000], [4000, 0]]
        assert "only --operation MPI_Put --site solver.c:212" in document["coverage"]["origin"]
    assert report.main([LST, profile, *chosen, "--full"]) == 0
    assert "only --operation MPI_Put --site solver.c:212" in " ".join(capsys.readouterr().out.split())


def test_a_comparison_of_one_line(profile: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(make_run(3), tmp_path / "after.otf2")
    runs = [profile, str(tmp_path / "after.otf2")]
    for fabric in ([], ["--fabric", LST]):
        assert diff.main([*runs, *fabric, "--site", "ocean/util.c:7", "--json"]) == 0
        totals = {row["name"]: row for row in json.loads(capsys.readouterr().out)["totals"]}
        assert (totals["bytes"]["a"], totals["bytes"]["b"]) == (40, 120)


def test_a_comparison_with_a_table_knows_no_lines(
    profile: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = tmp_path / "links.csv"
    assert layout.main([LST, profile, "-o", str(links)]) == 0
    assert diff.main([str(links), profile, "--site", "solver.c:212"]) == 2
    assert "links.csv: only recorded runs know the calls" in capsys.readouterr().err


def test_a_view_of_one_line(profile: str, tmp_path: Path) -> None:
    page = tmp_path / "view.html"
    assert view.main([LST, profile, "-o", str(page), "--compare-placement", "spread", "--site", "solver.c:212"]) == 0
    _, arrays = read_page(page)
    for run in "01":
        assert arrays[f"{run}.flow_bytes_low"].sum() == 2 * (BYTES[3] + BYTES[4])


def test_a_placement_for_one_line(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    times = []
    for chosen in ([], ["--site", "ice/util.c:7"]):
        assert place.main([LST, profile, "--hosts", "own", "--time", "0.1", "--json", *chosen]) == 0
        times.append(json.loads(capsys.readouterr().out)["host_link_seconds"]["best"])
    assert times[1] / times[0] == pytest.approx(BYTES[2] / sum(BYTES))


def test_other_traffic_has_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main([LST, "pattern:all-to-all", "--site", "solver.c:212"]) == 2
    assert "--site solver.c:212: pattern:all-to-all: only recorded runs know the calls" in capsys.readouterr().err


def test_an_unknown_line(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main([LST, profile, "--site", "solver.c:213"]) == 2
    assert "the profile has no site 'solver.c:213'; it has" in capsys.readouterr().err
