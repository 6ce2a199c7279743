# SPDX-License-Identifier: Apache-2.0
"""Commands place, route and report training jobs that a command line names as TRAFFIC."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from ibprof_converter.cli import layout, place, report

FABRIC = "xgft:2:4,4:1,4@100"
"""16 hosts, four on each leaf switch."""

JOB = "nccl-ring+pipeline:tp=4,pp=4,dp=8,hidden=64,layers=8,seq=32,vocab=100"


def test_the_short_spelling_is_the_same_traffic(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = []
    for spelling in (["--pattern", JOB], [f"pattern:{JOB}"]):
        assert place.main([FABRIC, *spelling, "--time", "0.02", "--json", "-o", str(tmp_path / "out.csv")]) == 0
        said.append(json.loads(capsys.readouterr().out))
    # On a busy machine, a search may stop early and report this in the first note.
    one, other = ({name: value for name, value in each.items() if name not in ("search", "notes")} for each in said)
    assert one == other
    assert said[0]["notes"][-1] == said[1]["notes"][-1]
    assert one["ranks"] == one["seats"] == 128  # eight ranks on each host, without --slots
    assert any("tp=4, pp=4, dp=8, ep=1" in note and "order=tp-ep-dp-pp" in note for note in said[0]["notes"])
    assert one["bottleneck_seconds"]["best"] <= one["bottleneck_seconds"]["packed"]
    assert report.main([FABRIC, f"pattern:{JOB}", "--placement", str(tmp_path / "out.csv"), "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict["line_rate_s"] == pytest.approx(one["bottleneck_seconds"]["best"])


def test_a_job_takes_no_more_hosts_than_it_fills(capsys: pytest.CaptureFixture[str]) -> None:
    job = "nccl-ring+pipeline:tp=8,pp=2,dp=3,hidden=64,layers=8,seq=32,vocab=100"
    for slots, hosts in (((), 6), (("--slots", "10"), None)):
        assert place.main([FABRIC, "--pattern", job, *slots, "--time", "0.05", "--json"]) == 0
        placed = json.loads(capsys.readouterr().out)["placement"]
        assert hosts in {None, len(set(placed))}
        assert len(placed) == 48


def test_bytes_on_links_are_those_that_leave_hosts(tmp_path: Path) -> None:
    """A leaf switch has the hosts of one stage. So all bytes between stages use links between switches."""
    links = tmp_path / "links.csv"
    text = "pattern:nccl-ring+pipeline:tp=8,pp=2,hidden=64,layers=8,seq=32,vocab=100,micro=2,batches=6"
    assert layout.main(["xgft:2:1,2:1,1", text, "-o", str(links)]) == 0
    with links.open(newline="") as file:
        amounts = {int(row[f"{end}_bytes"]) for row in csv.DictReader(file) for end in "ab"}
    assert amounts == {2 * 32 * 64 * 2 * 6}


@pytest.mark.parametrize(
    ("command", "arguments", "why"),
    [
        (report, ["pattern:nccl-ring:tp=8,dp=4"], "expected tp*pp*dp = 128, with 8 ranks on each of 16 hosts (gpus=8)"),
        (report, ["pattern:nccl-ring:tp=8,dp=17"], "or --placement; found 136"),
        (report, ["pattern:nccl-ring:tp=8,dp=17", "--placement", "packed"], "136 ranks need 17 hosts"),
        (report, ["pattern:nccl-rings:tp=8"], "pattern:nccl-ring:SIZES"),
        (layout, ["pattern:pipeline:pp=16,gpus=4"], "expected tp*pp*dp = 64"),
        (place, ["--pattern", "nccl-ring:tp=8,dp=17"], "136 ranks need a slot each, and 16 host(s) have 128"),
        (place, ["--pattern", "nccl-ring:tp=8,ep=3"], "expected etp*ep that divides tp*dp = 8, found 24"),
        (place, ["pattern:shift:1", "--pattern", "nccl-ring:tp=8"], "one job is placed at a time"),
    ],
)
def test_sizes_that_do_not_fit_are_2(
    command: object, arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([FABRIC, *arguments]) == 2  # type: ignore[attr-defined]
    assert why in capsys.readouterr().err


def test_a_job_may_take_part_of_a_fabric_and_a_missing_host_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    free = tmp_path / "free"
    free.write_text("host[03-09]\n")
    job = ["--pattern", "nccl-tree:tp=3,dp=7,gpus=3,hidden=64,layers=2,seq=32"]
    assert place.main([FABRIC, *job, "--hosts", str(free), "--time", "0.02", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert sorted(set(said["placement"])) == [f"host{number:02}" for number in range(3, 10)]
    free.write_text("host[03-09],host99\n")
    assert place.main([FABRIC, *job, "--hosts", str(free)]) == 3
    assert "expected a host of the fabric, found 'host99'" in capsys.readouterr().err
