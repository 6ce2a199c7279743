# SPDX-License-Identifier: Apache-2.0
"""A comparison of two runs shows the changes and the crossed thresholds. Invalid thresholds are refused."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.errors import UsageError
from ibprof_converter.cli import diff, layout, report
from ibprof_converter.reports.comparison_sections import describe_time_change, describe_transfer_changes
from ibprof_converter.reports.run_comparison import parse_condition
from ibprof_testing.paths import DATA
from ibprof_testing.samples.fabrics import FABRICS
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

LST = str(FABRICS / "testbed44" / "ibdiagnet.lst")
HOSTS = ("host01", "host02", "host42")

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_one(name: str, counts: Sequence[Count], ranks: int = 3, seconds: float = 1.0) -> str:
        run = make_profile(
            counts,
            [make_rank(rank, rank % 3, start_ns=10**18, stop_ns=10**18 + int(seconds * 1e9)) for rank in range(ranks)],
            [make_host(host) for host in HOSTS],
            regions=("main", "halo"),
            operations=("SEND", "BCAST"),
        )
        write_archive(replace(run, command=name), tmp_path / f"{name}.otf2")
        return str(tmp_path / f"{name}.otf2")

    return write_one


def judge(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert report.main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["verdict"]


@pytest.fixture
def runs(write: Write) -> tuple[str, str]:
    """Return runs A and B. Bytes of BCAST in region halo grow from 100 to 120, bytes of SEND stay equal."""
    before = [Count(0, 2, 1000, operation=0), Count(1, 2, 100, region=1, operation=1)]
    after = [Count(0, 2, 1000, operation=0), Count(1, 2, 120, region=1, operation=1)]
    return write("a", before), write("b", after, seconds=1.5)


def compare(arguments: Sequence[str], capsys: pytest.CaptureFixture[str], status: int = 0) -> Any:
    capsys.readouterr()
    assert diff.main([*arguments, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def part_of(document: Any, dimension: str) -> list[Any]:
    found = [part["changes"] for part in document["parts"] if part["dimension"] == dimension]
    assert len(found) == 1
    return list(found[0])


def test_the_verdict_on_each_run_comes_first(
    runs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = [judge([LST, run], capsys) for run in runs]
    assert compare([*runs, "--fabric", LST], capsys)["verdict"] == dict(zip("ab", verdicts, strict=True))
    assert diff.main([*runs, "--fabric", LST]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("Is the network why it is slow?")
    assert all(" ".join(verdict["text"].split()) in text for verdict in verdicts)
    links = tmp_path / "links.csv"
    assert layout.main([LST, runs[0], "-o", str(links)]) == 0
    assert compare([str(links), str(links)], capsys)["verdict"] == {"a": None, "b": None}


def test_what_changed_is_shown_by_every_dimension(runs: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    document = compare([*runs, "--fabric", LST], capsys)
    assert not document["by_share"]
    for dimension, name in (("operation", "BCAST"), ("region", "halo"), ("rank pair", "1 -> 2")):
        (change,) = part_of(document, dimension)
        assert (change["name"], change["a"], change["b"], change["change"]) == (name, 100, 120, 20)
        assert change["relative"] == pytest.approx(0.2)
    # The links host02 to sw-a, sw-a to sw-b, and sw-b to host42.
    links = part_of(document, "link")
    assert sorted((change["a"], change["b"]) for change in links) == [(100, 120), (1100, 1120), (1100, 1120)]
    totals = {change["name"]: (change["a"], change["b"]) for change in document["totals"]}
    assert totals["max_link"] == (1100, 1120)
    assert totals["elapsed"] == (1.0, 1.5)
    assert totals["bytes"] == (1100, 1120)


def test_changes_are_sorted_by_weight(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    a = write("a", [Count(0, 1, 10), Count(0, 2, 5000), Count(1, 2, 300)])
    b = write("b", [Count(0, 1, 20), Count(0, 2, 4000), Count(1, 2, 350), Count(2, 0, 1)])
    changes = part_of(compare([a, b], capsys), "rank pair")
    assert [change["name"] for change in changes] == ["0 -> 2", "1 -> 2", "0 -> 1", "2 -> 0"]
    assert changes[-1]["relative"] is None


def test_runs_of_different_size_are_compared_by_share(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    a = write("a", [Count(0, 1, 900), Count(0, 1, 100, operation=1)], ranks=3)
    b = write("b", [Count(0, 1, 1500), Count(0, 1, 500, operation=1)], ranks=6)
    document = compare([a, b, "--fail-on", "bytes[SEND]>+1%"], capsys)  # SEND has 90% of A's bytes, and 75% of B's
    assert document["by_share"]
    assert "by share" in document["notes"][0]
    assert {change["name"]: round(change["change"], 9) for change in part_of(document, "operation")} == {
        "SEND": -0.15,
        "BCAST": 0.15,
    }
    assert not [part for part in document["parts"] if part["dimension"] == "rank pair"]
    compare([a, b, "--fail-on", "bytes[BCAST]>+149%"], capsys, status=1)
    compare([a, b, "--fail-on", "bytes[BCAST]>+151%"], capsys)
    compare([a, b, "--fail-on", "bytes[BCAST]>400"], capsys, status=1)


THRESHOLDS = [
    ("bytes[BCAST]>+19%", True),
    ("bytes[MPI_Bcast]>+19%", True),
    ("bytes[BCAST]>+21%", False),
    ("bytes[bcast] > +19 %", True),
    ("bytes[operation:BCAST]>+19B", True),
    ("bytes[region:halo]>+20B", False),
    ("bytes[region:halo]>=+20B", True),
    ("bytes[SEND]>+0%", False),
    ("bytes>1.1kB", True),
    ("bytes>1.12kB", False),
    ("bytes<1GiB", True),
    ("max_link>+1%", True),
    ("max_link>+2%", False),
    ("max_link<-10%", False),
    ("max_switch_link>=1120", True),
    ("max_link_seconds>0s", True),
    ("elapsed>+49%", True),
    ("elapsed>+600ms", False),
    ("elapsed>1400ms", True),
    ("elapsed>1400000µs", True),
    ("messages>+0", False),
    ("messages[BCAST]>0", True),
    ("share[BCAST]>10%", True),
    ("share[BCAST]>+2%", False),
    ("share[BCAST]>+1%", True),
    ("links_used>+0", False),
    ("bytes_unrouted>0", False),
]
"""(threshold, true if the change from run A to run B crosses the threshold)."""


def test_thresholds(runs: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    options = [option for threshold, _ in THRESHOLDS for option in ("--fail-on", threshold)]
    document = compare([*runs, "--fabric", LST, *options], capsys, status=1)
    assert [(verdict["condition"], verdict["holds"]) for verdict in document["verdicts"]] == THRESHOLDS


def test_one_of_several_thresholds_is_enough(runs: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    document = compare([*runs, "--fail-on", "bytes>+50%", "--fail-on", "elapsed>+10%"], capsys, status=1)
    assert [verdict["holds"] for verdict in document["verdicts"]] == [False, True]


def test_from_nothing_to_something_is_more_than_any_part(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    a = write("a", [Count(0, 1, 10)])
    b = write("b", [Count(0, 1, 10), Count(0, 1, 1, operation=1)])
    compare([a, b, "--fail-on", "bytes[BCAST]>+1000000%"], capsys, status=1)
    compare([b, a, "--fail-on", "bytes[BCAST]<-99%"], capsys, status=1)


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        ("", "expected METRIC>LIMIT"),
        ("max_link", "expected METRIC>LIMIT"),
        ("max_link=10%", "expected METRIC>LIMIT"),
        ("max_lin>+10%", "there is no metric 'max_lin'; known are elapsed"),
        ("max_link>10%", "write >+10%"),
        ("max_link[BCAST]>+10%", "leave out [BCAST]"),
        ("share>40%", "share needs a name"),
        ("share[BCAST]>4", "write the limit of a share in %"),
        ("max_link>+10s", "max_link is in B"),
        ("elapsed>+10MB", "elapsed is in ns"),
        ("links_used>+1GB", "links_used is in no unit"),
        ("max_link>+1e999999999%x", "expected METRIC>LIMIT"),
    ],
)
def test_a_wrong_threshold_is_explained(threshold: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError) as raised:
        parse_condition(threshold)
    assert said in str(raised.value)
    with pytest.raises(SystemExit) as ended:
        diff.main(["a", "b", "--fail-on", threshold])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fail-on", "max_link>+10%"], "give --fabric LST..."),
        (["--fail-on", "bytes[FOO]>+10%"], "they have BCAST, SEND, halo, main"),
        (["--fail-on", "link[x]>1"], "give --fabric LST..."),
        (["--placement", "packed"], "only with --fabric"),
    ],
)
def test_what_cannot_be_compared_is_a_wrong_use(
    runs: tuple[str, str], arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff.main([*runs, *arguments]) == 2
    assert said in capsys.readouterr().err


def test_reports_and_tables_of_links_are_compared_too(
    runs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = compare([*runs, "--fabric", LST], capsys)
    names = []
    for run in runs:
        assert report.main([LST, run, "--json"]) == 0
        document = tmp_path / f"{Path(run).stem}.json"
        document.write_text(capsys.readouterr().out)
        assert layout.main([LST, run, "-o", str(document.with_suffix(".csv"))]) == 0
        names.append(document)
    found = compare(list(map(str, names)), capsys)
    for dimension in ("operation", "region", "rank pair", "link"):
        assert part_of(found, dimension) == part_of(expected, dimension)
    assert [each["name"] for each in found["totals"]] == [each["name"] for each in expected["totals"]]
    tables = compare([str(name.with_suffix(".csv")) for name in names], capsys)
    assert [(each["name"], each["a"], each["b"]) for each in part_of(tables, "link")] == [
        (each["name"], each["a"], each["b"]) for each in part_of(expected, "link")
    ]
    compare([str(name.with_suffix(".csv")) for name in names] + ["--fail-on", "max_link>+1%"], capsys, status=1)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.json", "{", "x.json:1: expected JSON of ibprof-report --json"),
        ("x.json", "{}", "expected a report as ibprof-report --json writes it, found a document without 'bytes_total'"),
        ("x.json", '{"bytes_total": 1, "job": 3}', "expected a report as"),
        ("x.csv", "rail,a_guid,a_name,a_port\n", "x.csv:1: expected the columns of links.csv"),
        ("x.otf2", None, "expected"),
    ],
)
def test_bad_input_is_named(
    runs: tuple[str, str], name: str, content: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    assert diff.main([runs[0], str(tmp_path / name)]) == 3
    assert said in capsys.readouterr().err


def test_text_and_page_say_what_the_json_says(
    runs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "diff.html"
    arguments = [*runs, "--fabric", LST, "--fail-on", "bytes[BCAST]>+5%"]
    assert diff.main([*arguments, "--html", str(page)]) == 1
    text = capsys.readouterr().out
    assert "CROSSED: bytes[BCAST]>+5%: +20.0%" in text
    shown = unescape(re.sub(r"<[^<>]*>", "", page.read_text()))
    assert "1 of 1 thresholds crossed" in shown
    document = compare(arguments, capsys, status=1)
    for part in document["parts"]:
        for change in part["changes"]:
            assert change["name"] in text
            assert change["name"] in shown
    assert diff.main([*runs, "--html", runs[0]]) == 2


def test_the_document_says_how_adapters_are_known_and_which_routes_loads_follow(
    runs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = compare([*runs, "--fabric", LST], capsys)
    assert document["nic"] == {"a": None, "b": None}
    reports = []
    for number, (run, nic, options) in enumerate(
        zip(runs, ("recorded", "modelled:rank"), ([], ["--adaptive"]), strict=True)
    ):
        assert report.main([LST, run, "--json", *options]) == 0
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(json.loads(capsys.readouterr().out) | {"nic": nic}))
        reports.append(str(path))
    document = compare(reports, capsys)
    assert document["nic"] == {"a": "recorded", "b": "modelled:rank"}
    assert (
        "link loads are of kind `static` in A and of kind `estimate` in B: "
        "part of the changes may come from this difference" in document["notes"]
    )


@pytest.mark.parametrize("name", ["no-schema", "schema-1"])
def test_a_report_of_an_older_schema_has_the_loads_of_todays(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both reports are of one run, but the old version sorted equally loaded links differently."""
    old, new = tmp_path / "old.json", DATA / "golden" / "testbed44" / "report.json"
    old.write_bytes(lzma.decompress((DATA / "reports" / "0.1.0" / f"{name}.json.xz").read_bytes()))
    document = compare([str(old), str(new)], capsys)
    totals = {total["name"]: (total["a"], total["b"]) for total in document["totals"]}
    assert all(a == b for a, b in totals.values())
    assert totals["max_link_seconds"][0] > 0
    loads = [[(link["bytes"], link["seconds"]) for link in document["change"]["most_loaded"][run]] for run in "ab"]
    assert loads[0] == loads[1]
    assert all(seconds > 0 for _, seconds in loads[0])


def make_verdict(wait: float, transfer: float, late: dict[int, float]) -> dict[str, object]:
    times = {"mpi_s": wait + transfer + 1, "wait_s": wait, "transfer_s": transfer, "unsplit_s": 1.0}
    return times | {"late": [{"rank": rank, "wait_s": each} for rank, each in late.items()]}


def test_the_change_of_time_names_its_largest_part_and_the_rank_that_is_late() -> None:
    before = make_verdict(1.0, 2.0, {3: 2.0, 5: 1.0})
    after = make_verdict(3.9, 2.2, {3: 2.0, 5: 12.0})
    assert describe_time_change(before, after) == "MPI takes 3.1 s more, 2.9 s of it waiting for rank 5."
    assert describe_time_change(after, before) == "MPI takes 3.1 s less, 2.9 s of it waiting for rank 5."
    # No rank causes half of the additional waiting, so the report names no rank.
    after = make_verdict(3.9, 2.2, {3: 8.0, 5: 4.0, 6: 4.0})
    assert describe_time_change(before, after).endswith("of it waiting.")
    slower = make_verdict(1.0, 7.0, {})
    assert describe_time_change(before, slower) == "MPI takes 5 s more, 5 s of it transfer."


def test_no_change_of_time_is_described_where_it_is_little_or_not_measured() -> None:
    one = make_verdict(1.0, 2.0, {})
    assert describe_time_change(one, make_verdict(1.1, 2.0, {})) == ""
    assert describe_time_change(one, one | {"transfer_s": None}) == ""
    assert describe_time_change({"text": "from an old report"}, one) == ""


def test_a_run_that_became_shorter_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second run has the same traffic in less time: the report lists the changes of times first."""
    second = 10**9
    for name, ns in (("before", 8 * second), ("after", 3 * second)):
        ranks = [make_rank(rank, rank, start_ns=second, stop_ns=second + ns) for rank in range(2)]
        hosts = [make_host("host01"), make_host("host02")]
        write_archive(make_profile([Count(0, 1, 1000)], ranks, hosts), tmp_path / f"{name}.otf2")
    change = compare([str(tmp_path / "before.otf2"), str(tmp_path / "after.otf2")], capsys)["change"]
    assert change["text"] == (
        "The run takes 62% less (3 s, before 8 s). "
        "The traffic did not change: the ranks send the same bytes from the same hosts."
    )
    same = compare([str(tmp_path / "after.otf2"), str(tmp_path / "after.otf2")], capsys)["change"]
    assert same["text"] == "Nothing changed: the ranks send the same bytes from the same hosts."


def test_transfer_is_compared_by_call_site() -> None:
    def verdict(**seconds: float) -> dict[str, Any]:
        places = [{"operation": f"MPI_{name}", "site": "a.c:1", "region": None} for name in seconds]
        sites = [place | {"transfer_s": each} for place, each in zip(places, seconds.values(), strict=True)]
        return {"mpi_s": 10.0, "transfer_sites": sites}

    before, after = verdict(Bcast=3.0, Send=1.0, Wait=1.0), verdict(Bcast=1.0, Send=1.1, Recv=2.5)
    assert describe_transfer_changes(before, after) == [
        "MPI_Recv at a.c:1: 2.5 s, before 0 ns",
        "MPI_Bcast at a.c:1: 1 s, before 3 s",
        "MPI_Wait at a.c:1: 0 ns, before 1 s",
    ]
    # An older report has no sites. Equal runs have no changes.
    assert describe_transfer_changes({"mpi_s": 10.0}, after) == []
    assert describe_transfer_changes(after, after) == []
