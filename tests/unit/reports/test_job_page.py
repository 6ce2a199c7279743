# SPDX-License-Identifier: Apache-2.0
"""The head of a report's page has advice with commands to copy, or the reason why no change is worthwhile."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ibprof.verdict.verdict_data import TransferCause, VerdictKind
from ibprof_converter.analysis.output_files import shorten_command
from ibprof_converter.analysis.pipeline_options import FabricOptions, TrafficOptions
from ibprof_converter.cli import report
from ibprof_converter.reports.job_page import page_of_report
from ibprof_converter.reports.job_report import JobReport, read_and_report


@pytest.fixture(scope="module")
def shifted() -> JobReport:
    return read_and_report(FabricOptions(("xgft:2:4,4:1,2",)), TrafficOptions(("pattern:shift:5:1000000",)), "", ())


def test_the_command_to_type_names_the_files(tmp_path: Path) -> None:
    arguments = ["xgft:2:4,4:1,2", "pattern:shift:5:1000000", "--html", str(tmp_path / "report.html")]
    assert report.main(arguments) == 0
    page = (tmp_path / "report.html").read_text()
    todo = page[page.index('<section id="todo">') : page.index('id="network"')]
    whole = re.sub(r"</?span[^>]*>", "", todo)
    assert '<pre tabindex="0">ibprof-place xgft:2:4,4:1,2 pattern:shift:5:1000000 --hosts own</pre>' in whole
    assert '<span class="whole">--hosts</span>' in todo


@pytest.mark.parametrize("is_worth_it", [False, True, None])
def test_a_gain_too_small_is_called_so(shifted: JobReport, is_worth_it: bool | None) -> None:
    assert shifted.verdict.is_worth_it is None
    verdict = replace(shifted.verdict, is_worth_it=is_worth_it)
    head = page_of_report(replace(shifted, verdict=verdict), None).head
    said = "Changes for the most loaded link are not worth it: together they save less than 1% of the run." in head
    assert said == (is_worth_it is False)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/home/alice/bin/solver -n 3", "solver -n 3"),
        ("./solver --in=/scratch/alice/a.nml,../b.nml", "solver --in=a.nml,b.nml"),
        ("~/bin/solver '/scratch/a b.nml'", "solver 'a b.nml'"),
        ("</script><b>", "</script><b>"),
        ("solver", "solver"),
    ],
)
def test_a_command_without_folders(command: str, shown: str) -> None:
    assert shorten_command(command) == shown


def test_traffic_without_a_run_is_no_slow_job(shifted: JobReport) -> None:
    assert "<h2>Which links does this traffic load?</h2>" in page_of_report(shifted, None).head


def test_advice_of_the_verdict_is_what_to_do_with_and_without_a_fabric(shifted: JobReport) -> None:
    advice = ("give rank 3 less to do before MPI_Allreduce at <a>.c:12", "find out what makes rank 7 late")
    cause = TransferCause("oversubscribed-cores", "The 4 ranks of n0 share core 0.", "Use more hosts.")
    waiting = replace(shifted.verdict, kind=VerdictKind.WAITING, advice=advice, transfer_causes=(cause,))
    for links in (shifted.links, None):
        head = page_of_report(replace(shifted, verdict=waiting, links=links), None).head
        todo = re.sub(r"</?span[^>]*>", "", head.partition("What to do</h2>")[2])
        assert "<strong>Give rank 3 less to do before MPI_Allreduce at &lt;a&gt;.c:12.</strong>" in todo
        assert "<strong>Find out what makes rank 7 late.</strong>" in todo
        assert "<strong>Use more hosts.</strong>" in todo
        assert "Cause: oversubscribed-cores: The 4 ranks of n0 share core 0." in todo
    assert "What to do" not in page_of_report(replace(shifted, links=None), None).head
