# SPDX-License-Identifier: Apache-2.0
"""The head of a report's page has advice with commands to copy, or the reason why no change is worthwhile."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ibprof.verdict.verdict_data import ADVICE, SLOW_HOST, Evidence, TransferCause, VerdictKind
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


def test_an_imbalance_gets_the_rank_and_the_line_to_change(shifted: JobReport) -> None:
    evidence = (Evidence(3, "MPI_Allreduce", "solve.c:12", "main"), Evidence(7, "MPI_Barrier", None, "halo"))
    waiting = replace(shifted.verdict, kind=VerdictKind.WAITING, evidence=evidence)
    head = page_of_report(replace(shifted, verdict=waiting), None).head
    todo = head.partition("What to do")[2]
    assert "Balance the work before MPI_Allreduce at solve.c:12, or find out what delays rank 3: other ranks" in todo
    assert "Balance the work before MPI_Barrier in region halo, or find out what delays rank 7: other ranks" in todo
    assert "Balance the work" not in page_of_report(shifted, None).head


def test_a_lack_of_cores_gets_its_own_advice_and_no_balance_of_work(shifted: JobReport) -> None:
    cause = TransferCause("oversubscribed-cores", "The 4 ranks of n0 share core 0.", "Use more hosts.")
    evidence = (Evidence(3, "MPI_Allreduce", "solve.c:12", "main"),)
    crowded = replace(
        shifted.verdict, kind=VerdictKind.WAITING, cause=cause.name, evidence=evidence, transfer_causes=(cause,)
    )
    todo = page_of_report(replace(shifted, verdict=crowded), None).head.partition("What to do")[2]
    whole = re.sub(r"</?span[^>]*>", "", todo)
    assert "<strong>Use more hosts.</strong>" in whole
    assert "Cause: oversubscribed-cores: The 4 ranks of n0 share core 0." in whole
    assert "Balance the work" not in whole


def test_a_slow_host_gets_the_advice_of_the_verdict(shifted: JobReport) -> None:
    evidence = (Evidence(3, "MPI_Allreduce", "solve.c:12", "main"),)
    slow = replace(
        shifted.verdict,
        kind=VerdictKind.WAITING,
        cause=SLOW_HOST,
        evidence=evidence,
        sentences=("Some wait.", f"{ADVICE} find out what makes the ranks of n1 late before MPI_Allreduce."),
    )
    todo = page_of_report(replace(shifted, verdict=slow), None).head.partition("What to do</h2>")[2]
    assert "<strong>Find out what makes the ranks of n1 late before MPI_Allreduce.</strong>" in todo
    assert "Balance the work" not in todo
