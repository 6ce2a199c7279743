# SPDX-License-Identifier: Apache-2.0
"""For synthetic pairs of runs, a sentence compares the times of the most loaded links and names the right reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof_converter.cli import diff, layout, report
from ibprof_testing.samples.fabrics import FABRICS
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

LST = str(FABRICS / "testbed44" / "ibdiagnet.lst")
"""host01 to host20 are on sw-a, host21 to host40 on sw-b. At 32 Gb/s, a link carries 4 kB in 1 µs."""
SAME, APART = ("host01", "host02", "host03"), ("host01", "host02", "host21")
TORI = [str(FABRICS / name) for name in ("torus2d-5x4", "torus2d-5x4-t2qos")]

Write = Callable[..., str]
Changed = Callable[..., Any]

SENT = [Count(0, 2, 4000), Count(1, 2, 4000, operation=1)]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_one(name: str, counts: Sequence[Count], hosts: Sequence[str] = SAME) -> str:
        run = make_profile(
            counts,
            [make_rank(rank, rank) for rank in range(len(hosts))],
            [make_host(host) for host in hosts],
            operations=("SEND", "ALLTOALL"),
        )
        write_archive(run, tmp_path / f"{name}.otf2")
        return str(tmp_path / f"{name}.otf2")

    return write_one


@pytest.fixture
def change(capsys: pytest.CaptureFixture[str]) -> Changed:
    def compare(*arguments: str) -> Any:
        capsys.readouterr()
        assert diff.main([*arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)["change"]

    return compare


@pytest.fixture
def write_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Write:
    def write_one(name: str, *arguments: str) -> str:
        capsys.readouterr()
        assert report.main([*arguments, "--json"]) == 0
        (tmp_path / f"{name}.json").write_text(capsys.readouterr().out)
        return str(tmp_path / f"{name}.json")

    return write_one


def test_ranks_on_other_hosts(write: Write, change: Changed) -> None:
    a, b = write("a", SENT), write("b", SENT, ("host21", "host02", "host01"))
    found = change(a, b, "--fabric", LST)
    assert (found["kind"], found["ratio"]) == ("placement", 1)
    assert "2 of 3 ranks are on other hosts" in found["text"]
    assert "B needs as long as A on its most loaded link (2 µs at line rate)" in found["text"]
    assert "although 2 of 3 ranks" in found["text"]
    # Two senders on one host load the host's link twice as much as one sender.
    one = write("one", [Count(0, 2, 4000), Count(1, 3, 4000)], ("host01", "host02", "host03", "host04"))
    two = write("two", [Count(0, 2, 4000), Count(1, 3, 4000)], ("host01", "host02", "host21", "host22"))
    found = change(one, two, "--fabric", LST)
    assert found["kind"] == "placement"
    assert "2 of 4 ranks are on other hosts" in found["text"]


def test_ranks_below_the_loaded_switch_are_counted(write: Write, change: Changed, tmp_path: Path) -> None:
    run = write("run", [Count(0, 2, 4000), Count(1, 3, 4000)], ("host01", "host02", "host03", "host04"))
    for name, hosts in (("near", (1, 2, 21, 22)), ("far", (1, 1, 21, 22))):
        rows = [f"{rank},host{host:02d}" for rank, host in enumerate(hosts)]
        (tmp_path / name).write_text("\n".join(["rank,host", *rows, ""]))
    found = change(
        *(run, run, "--fabric", LST), *("--placement", str(tmp_path / "near"), "--placement", str(tmp_path / "far"))
    )
    assert (found["kind"], found["ratio"], found["link"]) == ("placement", 2, "host01 HCA-1 port 1 to sw-a")
    assert found["text"] == (
        "B needs 2 times as long as A on its most loaded link (2 µs instead of 1 µs at line rate): host01 HCA-1 port 1 "
        "to sw-a carries 8 kB instead of 4 kB (A's most loaded link is sw-a port 21 to host21 HCA-1 with 4 kB), "
        "because 1 of 4 ranks is on another host (ranks at host01 HCA-1: 2 instead of 1); MPI_Send sends most of the "
        "bytes on this link."
    )


def test_another_program(write: Write, change: Changed) -> None:
    more = [SENT[0], Count(1, 2, 12_000, operation=1)]
    found = change(write("a", SENT), write("b", more), "--fabric", LST)
    assert (found["kind"], found["ratio"]) == ("program", 2)
    assert found["text"] == (
        "B needs 2 times as long as A on its most loaded link (4 µs instead of 2 µs at line rate): sw-a port 3 to "
        "host03 HCA-1 carries 16 kB instead of 8 kB, because MPI_Alltoall sends 12 kB instead of 4 kB over it; "
        "MPI_Alltoall sends most of the bytes on this link."
    )
    back = change(write("b", more), write("a", SENT), "--fabric", LST)
    assert back["ratio"] == 0.5
    assert "carries 8 kB instead of 16 kB, because MPI_Alltoall sends 4 kB instead of 12 kB over it" in back["text"]


def test_the_call_named_is_the_one_on_the_link_though_another_changed_more(write: Write, change: Changed) -> None:
    a = [Count(0, 2, 4000), Count(1, 0, 100, operation=1)]
    b = [Count(0, 2, 8000), Count(1, 0, 7900, operation=1)]
    assert (
        "because MPI_Send sends 8 kB instead of 4 kB over it"
        in change(write("a", a), write("b", b), "--fabric", LST)["text"]
    )


def test_the_same_calls_to_other_ranks(write: Write, change: Changed) -> None:
    spread = [Count(0, 2, 4000), Count(1, 0, 4000, operation=1)]
    found = change(write("a", spread), write("b", SENT), "--fabric", LST)
    assert found["kind"] == "program"
    assert "because MPI_Alltoall sends 4 kB instead of 0 B over it" in found["text"]


def test_both_differ(write: Write, change: Changed) -> None:
    more = [SENT[0], Count(1, 2, 12_000, operation=1)]
    found = change(write("a", SENT), write("b", more, APART), "--fabric", LST)
    assert found["kind"] == "several"
    assert "1 of 3 ranks is on another host" in found["text"]
    assert "MPI_Alltoall sends 12 kB instead of 4 kB" in found["text"]
    assert "how much each reason adds to the change is not known" in found["text"]


def test_a_few_bytes_more_are_not_called_another_program(write: Write, change: Changed) -> None:
    noisy = [SENT[0], Count(1, 2, 4010, operation=1)]
    assert change(write("a", SENT), write("b", noisy, APART), "--fabric", LST)["kind"] == "placement"


def test_more_ranks(write: Write, change: Changed) -> None:
    four = write("four", [*SENT, Count(3, 2, 8000)], (*SAME, "host04"))
    found = change(write("a", SENT), four, "--fabric", LST)
    assert (found["kind"], found["ratio"]) == ("ranks", 2)
    assert "because it has 4 ranks instead of 3; a rank sends 4 kB on average instead of 2.67 kB" in found["text"]
    assert "whether the ranks' hosts also add to the change is not known" in found["text"]


def test_nothing_changed(write: Write, change: Changed) -> None:
    a = write("a", SENT)
    found = change(a, a, "--fabric", LST)
    assert (found["kind"], found["ratio"]) == ("nothing", 1)
    assert found["text"].startswith("Nothing changed: the ranks send the same bytes from the same hosts over the same")
    assert change(a, a)["text"] == "Nothing changed: the ranks send the same bytes from the same hosts."


def test_other_forwarding_tables(write: Write, write_report: Write, change: Changed) -> None:
    hosts = tuple(f"n{number:04d}" for number in range(1, 21))
    counts = [Count(rank, (rank + 7) % 20, 4000 + rank) for rank in range(20)]
    run = write("run", counts, hosts)
    one, other = (write_report(f"{number}", folder, run) for number, folder in enumerate(TORI))
    found = change(one, other)
    assert found["kind"] == "routes", found
    assert "the routes differ: the ranks send the same bytes from the same hosts" in found["text"]


def test_another_fabric_is_not_compared(write: Write, write_report: Write, change: Changed) -> None:
    run = write("run", SENT)
    one, other = write_report("one", LST, run), write_report("other", "xgft:2:4,4:1,4", run, "--placement", "packed")
    found = change(one, other)
    assert (found["kind"], found["ratio"]) == ("not-comparable", None)
    assert found["text"] == "A and B cannot be compared by link: they are on different fabrics, of 57 and 32 links."


def test_links_alone_do_not_say_why(write: Write, change: Changed, tmp_path: Path) -> None:
    names = []
    for name, counts in (("a", SENT), ("b", [SENT[0]])):
        names.append(str(tmp_path / f"{name}.csv"))
        assert layout.main([LST, write(name, counts), "-o", names[-1]]) == 0
    found = change(*names)
    assert (found["kind"], found["ratio"]) == ("unknown", 0.5)
    assert found["text"].endswith(
        "; the reason is not known: the hosts of the ranks and the calls of the program are unknown in at least one of "
        "the runs."
    )


def test_reports_that_may_be_of_other_tables_say_so(write: Write, write_report: Write, change: Changed) -> None:
    runs = write("a", SENT), write("b", SENT, APART)
    same = [write_report(f"same{number}", LST, run) for number, run in enumerate(runs)]
    assert "forwarding tables" not in change(*same)["text"]
    document = json.loads(Path(same[1]).read_text())
    document["reproduce"]["inputs"] = []
    Path(same[1]).write_text(json.dumps(document))
    assert "the forwarding tables may differ too" in change(*same)["text"]


def test_a_run_within_a_host(write: Write, change: Changed) -> None:
    found = change(write("a", [Count(0, 2, 4000)], ("host01",) * 3), write("b", [Count(0, 2, 4000)]), "--fabric", LST)
    assert found["kind"] == "placement"
    assert "A loads no link" in found["text"]


def test_it_is_near_the_top_of_text_and_page_and_both_runs_links_are_listed(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [write("a", SENT), write("b", SENT, APART), "--fabric", LST]
    page = tmp_path / "diff.html"
    assert diff.main([*arguments, "--html", str(page)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        text.index("Is the network why it is slow?") < text.index("What changed B needs") < text.index("What is comp")
    )
    listed = text[text.index("Most loaded links") : text.index("Totals")]
    assert listed.count("sw-a port 3 to host03 HCA-1") == 1
    assert listed.count("to host21 HCA-1") == 1
    head = page.read_text().partition('id="answer">')[2].partition("</section>")[0]
    assert "1 of 3 ranks is on another host" in head
    assert page.read_text().count("1 of 3 ranks is on another host") == 1
