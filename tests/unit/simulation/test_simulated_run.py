# SPDX-License-Identifier: Apache-2.0
"""The text on a study's results names slow senders, existing files, and mean values that did not settle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ibprof_converter.routing.synthetic.spec import generate
from ibprof_lab.cli import sim
from ibprof_lab.simulation.reports.simulated_run import describe_results
from ibprof_lab.simulation.study.study_results import StudyOutput, StudyResults
from ibprof_testing.samples.damage import ListedFabric, is_trunk
from ibprof_testing.samples.study_files import write_study

ROWS: list[Mapping[str, object]] = [
    {"is_settled": True, "note": "the mean's interval is narrow enough"},
    *[{"is_settled": False, "note": "still changes"}] * 2,
    {"is_settled": False, "note": "no message"},
]


@pytest.mark.parametrize(("stored", "shown"), [(False, ", links.csv, view.html"), (True, "")])
def test_files_and_unsettled_means_are_named(stored: bool, shown: str, tmp_path: Path) -> None:
    for name in ("view.html", "links.csv", "of-the-user.txt"):
        (tmp_path / name).touch()
    results = StudyResults({}, ROWS)  # type: ignore[arg-type]
    assert list(describe_results(results, StudyOutput(tmp_path, stored))) == [
        f"4 simulations in {tmp_path}: results.csv, means.csv, summary.json{shown}",
        "2 of them have no settled mean latency, so their times are empty: still changes",
        "1 of them have no settled mean latency, so their times are empty: no message",
    ]


_RING = "rank {0} {{\nc: calc 20000\ns: send 65536b to {1} tag 1\nr: recv 65536b from {2} tag 1\ns requires c\n}}\n"


def run_with_slow_links(folder: Path, role: str, speeds: Mapping[int, str]) -> list[str]:
    """Simulate a job on 16 hosts. `speeds` contains the speeds of some links; return the hosts of these links."""
    ring = "".join(_RING.format(rank, (rank + 1) % 16, (rank + 15) % 16) for rank in range(16))
    (folder / "ring.goal").write_text(f"num_ranks 16\n{ring}")
    made = generate("xgft:2:4,4:1,4")
    listed = ListedFabric.of(made.fabric, made.tables)
    host_links = [link for link in listed.links if not is_trunk(listed, link)]
    slow = {number: host_links[number] for number in speeds}
    links = {link: replace(link, speed=speeds[number]) for number, link in slow.items()}
    replace(listed, links=tuple(links.get(link, link) for link in listed.links)).write(folder / "fabric")
    study = folder / "study.yaml"
    study.write_text(f"fabric: fabric\njobs: [{{name: mpi, role: {role}}}]\neffort: {{messages: 20, background: 5}}\n")
    assert sim.main(["run", str(study), "-o", str(folder / "out"), "--workers", "1"]) == 0
    ends = [listed.name(node) for link in slow.values() for node in (link.a.node, link.b.node)]
    return [name for name in ends if name.startswith("host")]


@pytest.mark.usefixtures("undrawn")
def test_the_slower_of_two_slow_senders_is_named_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The links of two senders are slow, but the messages' times are not outliers."""
    less, more = run_with_slow_links(tmp_path, "goal, goal: ring.goal", {2: "10", 11: "5"})
    named = [line for line in capsys.readouterr().err.splitlines() if "slow sender" in line]
    assert [f"{host} HCA-1" in line for host, line in zip((more, less), named, strict=True)] == [True, True]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("role", ["pairs, bytes: 64 KiB, interval: 20 us", "goal, goal: ring.goal"])
@pytest.mark.parametrize("speed", ["25", "5"])
def test_a_slow_sender_is_named_with_its_link(
    speed: str, role: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the sender with a slow link is named, and only once. The partner's messages are equally slow."""
    (host,) = run_with_slow_links(tmp_path, role, {5: speed})
    named = [line for line in capsys.readouterr().err.splitlines() if "slow sender" in line]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    if speed == "25":
        assert not named
        assert "slow_senders" not in summary
    else:
        assert len(named) == 1
        assert f"slow sender of job mpi, {host} HCA-1: its link runs at 16 Gb/s, its peers' at 100 Gb/s" in named[0]
        (sender,) = summary["slow_senders"]
        assert (sender["gbps"], sender["usual_gbps"]) == (16, 100)
        assert "goal" in role or sender["mean_us"] > 3 * sender["usual_mean_us"]


def test_a_run_whose_messages_all_take_the_same_is_drawn(tmp_path: Path) -> None:
    """The job's name is not a valid formula of matplotlib, and the font lacks a letter of the name."""
    jobs = [{"name": "_$\\frac{ \u4e2d", "role": "io", "bytes": "4 KiB", "share": 1}]
    study = write_study(tmp_path, fabric="xgft:1:2:1@100", servers=1, jobs=jobs, measured=jobs[0]["name"])
    assert sim.main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    assert (tmp_path / "out" / "run.png").stat().st_size > 10_000
