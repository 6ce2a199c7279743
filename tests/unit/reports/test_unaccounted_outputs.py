# SPDX-License-Identifier: Apache-2.0
"""If an operation sent fewer bytes than the calls requested, each output states the sent and the requested bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.missing_data import describe_gaps
from ibprof.profile.unaccounted import summarize_unaccounted
from ibprof.text.notebook_html import escape, render_html
from ibprof_converter import load_links, read_fabric, report
from ibprof_converter.cli.report import main
from ibprof_testing.samples.demands import group_of, with_demands
from ibprof_testing.samples.fabrics import FABRICS
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

LST = str(FABRICS / "testbed44" / "ibdiagnet.lst")
RUN = with_demands(
    make_profile(
        [Count(0, 1, 99), Count(0, 1, 7, operation=1)],
        [make_rank(rank, rank, sees_host=True) for rank in range(2)],
        [make_host("host01"), make_host("host42")],
        operations=("ALLREDUCE", "SEND"),
    ),
    [(rank, group_of(2), 5000) for rank in range(2)],
)
SENTENCE = (
    "MPI_Allreduce: 2 calls must send at least 10 kB between ranks; 99 B were seen; "
    "MPI sent the rest by a path that ibprof does not see"
)
FOUND = {
    "operation": "ALLREDUCE",
    "region": "main",
    "calls": 2,
    "least_bytes": 10_000,
    "seen_bytes": 99,
    "on_host": False,
}


@pytest.fixture
def archive(tmp_path: Path) -> str:
    write_archive(RUN, tmp_path / "profile.otf2")
    return str(tmp_path / "profile.otf2")


@pytest.mark.parametrize("fabric", [[], [LST]])
def test_a_report_has_both_figures_in_text_json_and_page(
    fabric: list[str], archive: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert main([*fabric, archive, "--json", "--html", str(page)]) == 0
    coverage = json.loads(capsys.readouterr().out)["coverage"]
    assert coverage["unaccounted"] == [FOUND]
    assert SENTENCE in coverage["not_seen"]
    assert main([*fabric, archive]) == 0
    assert "Bytes of MPI_Allreduce are missing" in capsys.readouterr().out
    assert main([*fabric, archive, "--full"]) == 0
    text = capsys.readouterr().out
    assert SENTENCE in " ".join(text.split())
    row = next(line for line in text.splitlines() if line.lstrip().startswith("MPI_Allreduce  "))
    assert " ".join(row.split()) == "MPI_Allreduce main 2 10 kB 99 B by a path that ibprof does not see"
    shown = page.read_text()
    assert escape(SENTENCE) in shown
    assert "<strong>Bytes of ALLREDUCE are missing</strong>, so the loads of links are" in shown
    assert '<section class="answer good"' not in shown
    for key, value in (("least_bytes", 10_000), ("seen_bytes", 99)):
        assert f'<data value="{value}" data-path="coverage.unaccounted.0.{key}"' in shown


def test_the_view_and_the_notebook_have_both_figures(archive: str) -> None:
    loads = load_links(read_fabric(LST), archive)
    for result in (RUN, loads, report(loads)):
        assert f"<p>not seen: {escape(SENTENCE)}</p>" in render_html(result)
    assert SENTENCE in loads.coverage.not_seen


def test_one_line_names_all_operations() -> None:
    (line,) = summarize_unaccounted(RUN)
    assert line == (
        "fewer bytes were seen than calls must send: MPI_Allreduce 99 B of 10 kB; "
        "MPI sent the rest by a path that ibprof does not see"
    )
    whole = with_demands(RUN, [(rank, group_of(2), 49) for rank in range(2)])
    assert not list(summarize_unaccounted(whole))


def test_a_library_that_may_have_sent_the_rest_is_named() -> None:
    notes = ("libucc is loaded: collectives may bypass the messages that ibprof sees", "a lone rank")
    run = replace(RUN, ranks=(RUN.ranks[0], replace(RUN.ranks[1], notes=notes)))
    said = SENTENCE + ", perhaps libucc"
    assert said in describe_gaps(run)
    assert next(summarize_unaccounted(run)).endswith("does not see, perhaps libucc")
    on_host = replace(run, ranks=tuple(replace(rank, host=0) for rank in run.ranks))
    assert not any("perhaps" in sentence for sentence in describe_gaps(on_host))
