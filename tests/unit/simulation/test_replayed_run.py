# SPDX-License-Identifier: Apache-2.0
"""Predicted times of a recorded run equal calculations by hand: on other hosts, with other tables or next to a job."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import IntervalTimes, Profile
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_lab.cli.sim import main
from ibprof_testing.samples.fabrics import read_subnet
from ibprof_testing.samples.profiles import make_port
from ibprof_testing.samples.timed_runs import make_timed_run

FABRIC = "xgft:2:4,4:1,1@0.1"
"""Links have 100 Mbit/s. The four hosts of a leaf switch share one uplink."""

SENDING = 0.04
"""Time of 500 kB at 100 Mbit/s, in seconds."""

COMPUTING = 0.047
HOSTS = ("host01", "host02", "host05", "host06")
NEAR = make_timed_run(
    [(0, 1, 500_000, 3), (1, 0, 500_000, 3), (2, 3, 500_000, 3), (3, 2, 500_000, 3)],
    [[0, 0, 0, 5, 10, 10, 10, 8, 0]] * 4,
    HOSTS,
)
"""Pairs of ranks within leaf switches: 35 ms of computing, 43 ms in MPI, 12 ms of computing."""


def predict(folder: Path, capsys: pytest.CaptureFixture[str], run: Profile, *options: str) -> dict[str, Any]:
    write_archive(run, folder / "profile.otf2")
    line = ["replay", str(folder / "profile.otf2"), "--fabric", FABRIC, "--workers", "1", "--json", *options]
    assert main(line) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_as_recorded_it_takes_the_measured_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = predict(tmp_path, capsys, NEAR)
    assert found["measured_s"] == pytest.approx(0.09)
    assert found["computing_s"] == pytest.approx(COMPUTING)
    assert found["replayed_s"]["waits_early"] == pytest.approx(COMPUTING + SENDING, rel=0.02)
    assert found["seconds"] == pytest.approx(0.09, rel=0.01)
    assert found["low"] <= 0.09 <= found["high"]


def test_on_other_hosts_pairs_share_an_uplink(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each direction of the uplink carries two messages instead of none. 3 ms in MPI do not depend on the network."""
    found = predict(tmp_path, capsys, NEAR, "--to-hosts", "host01,host05,host02,host06")
    assert found["predicted_s"]["waits_early"] == pytest.approx(COMPUTING + 2 * SENDING, rel=0.02)
    assert found["seconds"] == pytest.approx(COMPUTING + 2 * SENDING + 0.003, rel=0.02)
    assert found["low"] < found["seconds"] < found["high"]


def test_on_another_fabric_there_are_more_uplinks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--to-hosts", "host01,host05,host02,host06", "--to-fabric", "xgft:2:4,4:1,4@0.1")
    assert predict(tmp_path, capsys, NEAR, *options)["seconds"] == pytest.approx(0.09, rel=0.03)


def test_a_neighbour_makes_it_longer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The other job sends all the time, and takes half of the pair's uplink."""
    far = replace(
        make_timed_run([(0, 1, 500_000, 3), (1, 0, 500_000, 3)], [[0, 0, 0, 5, 10, 10, 10, 8, 0]] * 2,
                       ("host01", "host05"))
    )  # fmt: skip
    other = make_timed_run([(0, 1, 5_000_000, 0)], [[10] * 41] * 2, ("host02", "host06"))
    write_archive(other, tmp_path / "other.otf2")
    alone = predict(tmp_path, capsys, far)["seconds"]
    together = predict(tmp_path, capsys, far, "--next-to", str(tmp_path / "other.otf2"))
    assert together["seconds"] == pytest.approx(alone + SENDING, rel=0.15)
    apart = ("--next-to", str(tmp_path / "other.otf2"), "--next-to-hosts", "host03,host04")
    assert predict(tmp_path, capsys, far, *apart)["seconds"] == pytest.approx(alone, rel=0.01)


def test_a_replay_that_is_far_from_the_run_predicts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On links of 20 Mbit/s, messages take 0.2 s, which is much longer than the recorded run."""
    write_archive(NEAR, tmp_path / "profile.otf2")
    assert main(["replay", str(tmp_path / "profile.otf2"), "--fabric", "xgft:2:4,4:1,1@0.02", "--workers", "1"]) == 5
    assert "no prediction: the run's messages do not explain its time in MPI" in capsys.readouterr().err


def test_a_recording_without_times_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(replace(NEAR, interval_times=IntervalTimes.empty()), tmp_path / "profile.otf2")
    assert main(["replay", str(tmp_path / "profile.otf2"), "--fabric", FABRIC]) == 5
    assert "IBPROF_TIME=1 and IBPROF_INTERVAL" in capsys.readouterr().err


def test_what_is_no_profile_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "profile.otf2").write_text("no archive")
    assert main(["replay", str(tmp_path / "profile.otf2"), "--fabric", FABRIC]) == 3


def test_a_run_of_other_hosts_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_timed_run([(0, 1, 500_000, 3)], [[10] * 8] * 2, ("elsewhere1", "elsewhere2"))
    write_archive(run, tmp_path / "profile.otf2")
    assert main(["replay", str(tmp_path / "profile.otf2"), "--fabric", FABRIC]) == 5
    assert "has no" in capsys.readouterr().err


def on_one_host(ranks: int) -> Profile:
    """Return a run with a ring of ranks on one host. In the simulation, each rank gets a sampled host."""
    sent = [(rank, (rank + 1) % ranks, 500_000, 3) for rank in range(ranks)]
    run = make_timed_run(sent, [[0, 0, 0, 5, 10, 10, 10, 8, 0]] * ranks, ["elsewhere"] * ranks)
    return replace(run, hosts=run.hosts[:1], ranks=tuple(replace(each, host=0) for each in run.ranks))


def test_a_job_may_take_the_whole_fabric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A recorded job gets as many hosts as it needs: all 16."""
    found = predict(tmp_path, capsys, on_one_host(16), "--to-fabric", "xgft:1:16:1@0.1")
    assert found["predicted_s"]["waits_early"] == pytest.approx(COMPUTING + SENDING, rel=0.05)


def test_two_jobs_share_a_fabric_by_their_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(on_one_host(4), tmp_path / "other.otf2")
    other = ("--next-to", str(tmp_path / "other.otf2"), "--to-fabric", "xgft:1:16:1@0.1")
    found = predict(tmp_path, capsys, on_one_host(12), *other)
    assert found["predicted_s"]["waits_early"] == pytest.approx(COMPUTING + SENDING, rel=0.05)
    write_archive(on_one_host(13), tmp_path / "larger.otf2")
    line = ["replay", str(tmp_path / "larger.otf2"), "--fabric", FABRIC, "--workers", "1", *other]
    assert main(line) == 5
    assert "job other needs 4 hosts, but 3 of 16 hosts are free" in capsys.readouterr().err


def test_hosts_of_a_job_that_is_not_given_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(NEAR, tmp_path / "profile.otf2")
    line = ["replay", str(tmp_path / "profile.otf2"), "--fabric", FABRIC, "--next-to-hosts", "host03,host04"]
    assert main(line) == 2
    assert (
        "--next-to-hosts names the hosts of a second job, but --next-to does not name this job"
        in capsys.readouterr().err
    )


def test_rails_that_are_not_simulated_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each recorded host has a second adapter, which the fabric lacks."""
    fabric = read_subnet(FABRIC).fabric
    is_adapter = fabric.node_kind[fabric.port_node] == NodeKind.CA
    guids = dict(zip((fabric.node_name[node].split()[0] for node in fabric.port_node[is_adapter]),
                     fabric.port_guid[is_adapter].tolist(), strict=True))  # fmt: skip
    hosts = tuple(
        replace(host, ports=(make_port(1 + at, guids[host.name]), make_port(100 + at, 0xABC00 + at, device="mlx5_1")))
        for at, host in enumerate(NEAR.hosts)
    )
    write_archive(replace(NEAR, hosts=hosts), tmp_path / "profile.otf2")
    assert main(["replay", str(tmp_path / "profile.otf2"), "--fabric", FABRIC, "--workers", "1"]) == 0
    assert "4 hosts have active ports on other rails; the simulation sends all bytes" in capsys.readouterr().err


def test_the_first_line_says_the_time_and_how_it_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(NEAR, tmp_path / "profile.otf2")
    line = ["replay", str(tmp_path / "profile.otf2"), "--fabric", FABRIC, "--workers", "1"]
    assert main(line) == 0
    assert re.match(r"predicted 0\.09 s \(0\.\d+ to 0\.\d+\), as recorded\n", capsys.readouterr().out)
    assert main([*line, "--to-hosts", "host01,host05,host02,host06"]) == 0
    assert re.match(r"predicted 0\.13\d s \(0\.\d+ to 0\.\d+\), 4\d% more than recorded\n", capsys.readouterr().out)
