# SPDX-License-Identifier: Apache-2.0
"""The view shows the verdict and the first cause of the report. Without a cause, no fault is marked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import CallTimes
from ibprof_converter.cli import report
from ibprof_testing.samples.fabrics import FABRICS
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank
from ibprof_testing.samples.traffic import write_matrix
from ibprof_testing.views import Open

FAULTY = str(FABRICS / "oversub-faulty")
RANKS = 48
S = 1_000_000_000


def write_run(folder: Path, run_s: float, mpi_s: float) -> list[str]:
    """Write a run: each rank sends to the rank 24 hosts further. Return a command's inputs."""
    names = [f"host{number:06d}" for number in range(RANKS)]
    ranks = [
        replace(make_rank(rank, rank), has_times=True, start_ns=0, stop_ns=round(run_s * S)) for rank in range(RANKS)
    ]
    sent = [Count(rank, (rank + 24) % RANKS, 300_000_000, operation=0) for rank in range(RANKS)]
    run = make_profile(sent, ranks, [make_host(name) for name in names], operations=("SENDRECV",))
    times = CallTimes(
        rank=np.arange(RANKS, dtype=np.int32),
        region=np.zeros(RANKS, np.int32),
        operation=np.zeros(RANKS, np.int32),
        calls=np.full(RANKS, 10, np.uint64),
        time_ns=np.full(RANKS, round(mpi_s * S), np.uint64),
        error_ns=np.zeros(RANKS, np.uint64),
        site=np.zeros(RANKS, np.int32),
    )
    write_archive(replace(run, times=times), folder / "profile.otf2")
    return [FAULTY, str(folder / "profile.otf2"), "--placement", "packed"]


def read_verdict(inputs: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[str, dict[str, object]]:
    """Return the verdict's text and the diagnosis of `ibprof-report --json`."""
    capsys.readouterr()
    assert report.main([*inputs, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    return document["verdict"]["text"], document["diagnosis"]


def test_a_fault_is_marked_with_its_cause_and_leads_to_the_busiest_link(
    open_view: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = write_run(tmp_path, run_s=1, mpi_s=0.5)
    text, diagnosis = read_verdict(inputs, capsys)
    opened = open_view(inputs)
    box = opened.page.locator("#verdict")
    assert box.locator("p").first.inner_text() == text
    assert "Cause: " in text
    assert "fault" in (box.get_attribute("class") or "")
    first = diagnosis["causes"][0]  # type: ignore[index]
    assert box.locator("summary").inner_text() == f"Cause: {first['cause']} at {', '.join(first['at'])}"
    box.locator("summary").click()
    assert first["change"] in box.inner_text()
    whole = box.locator(".whole")
    assert "missing-uplink." in whole.all_inner_texts()
    assert whole.evaluate_all("all => all.every(each => each.getClientRects().length === 1)")
    opened.page.locator("#busiest").click()
    assert f"Traffic on {diagnosis['max_link']}" in opened.page.locator("#selection h3").first.inner_text()
    assert opened.complaints == []


def test_where_mpi_takes_little_no_fault_is_marked(
    open_view: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Links have the same loads as in a run with a cause, but MPI takes only 0.5 of 100 s."""
    inputs = write_run(tmp_path, run_s=100, mpi_s=0.5)
    text, _ = read_verdict(inputs, capsys)
    opened = open_view(inputs)
    box = opened.page.locator("#verdict")
    assert box.locator("p").first.inner_text() == text
    assert "Where the ranks ran, the network was not the problem." in text
    assert "fault" not in (box.get_attribute("class") or "")
    assert box.locator("summary").count() == 0


def test_of_traffic_without_a_run_the_verdict_says_what_is_missing(open_view: Open, tmp_path: Path) -> None:
    opened = open_view([FAULTY, write_matrix(tmp_path / "matrix.csv", 8), "--placement", "packed"])
    box = opened.page.locator("#verdict")
    assert box.locator("p").first.inner_text().startswith("The most loaded link, ")
    assert "Missing: a recorded run" in box.inner_text()
    assert "fault" not in (box.get_attribute("class") or "")
