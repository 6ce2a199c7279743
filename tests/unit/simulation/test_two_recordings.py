# SPDX-License-Identifier: Apache-2.0
"""Advice for two recorded jobs that share uplinks is right on the hosts that the advice names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof_lab.cli.sim import main, read_hosts
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

ONE_SPINE = ["--fabric", "xgft:2:4,2:1,1@100", "--workers", "1", "--quick"]
"""Two leaf switches of four hosts, and one uplink each."""


def write_run(path: Path, hosts: tuple[int, ...], size: int) -> str:
    """Write a run: each rank of the first half exchanges messages with a rank of the second half."""
    half = len(hosts) // 2
    counts = [Count(rank, (rank + half) % len(hosts), 1000 * size, 1000) for rank in range(len(hosts))]
    ranks = [make_rank(rank, host=rank) for rank in range(len(hosts))]
    write_archive(make_profile(counts, ranks, [make_host(f"host{host}") for host in hosts]), path)
    return str(path)


def test_the_advice_for_two_jobs_that_share_an_uplink_holds_on_the_hosts_that_it_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """At first, both jobs cross the uplinks. On the advised hosts, the first job is as fast as predicted."""
    one = write_run(tmp_path / "one.otf2", (1, 2, 5, 6), 4096)
    other = write_run(tmp_path / "other.otf2", (3, 7), 1 << 20)
    line = ["advise", *ONE_SPINE, "--mpi", f"{one}@10us", "--io", f"{other}@1us"]
    assert main([*line, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = [each["name"] for each in found["ways"]]
    assert not [name for name in names if "servers" in name or "apart" in name]
    now = found["ways"][0]
    assert now["mpi_slowdown"] > 2
    assert found["advice"] in {"jobs on whole leaf switches", "jobs on hosts sampled one by one"}
    assert found["gain"] > 2 * found["gain_half"] > 0
    assert found["hosts"]["servers"] == ""
    there = ["--mpi-hosts", found["hosts"]["mpi"], "--io-hosts", found["hosts"]["io"]]
    assert main([*line, *there, "--json"]) == 0
    moved = json.loads(capsys.readouterr().out)["ways"][0]
    assert moved["mpi_beside_us"] < now["mpi_beside_us"] * (1 - found["gain"] + found["gain_half"])
    assert main(line) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Advice: {found['advice']}: MPI messages then take ")
    assert "next to the second job" in text
    assert f"  the MPI job: {found['hosts']['mpi']}" in text


def test_a_quick_answer_that_is_not_sure_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """With one sample of hosts, an advised gain exceeds the 95% interval of this sample."""
    line = ["advise", *ONE_SPINE, "--servers", "2", "--mpi", "4KiB@50us", "--io", "64KiB", "--seeds", "2", "--json"]
    assert main(line) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["advice"] is None or found["gain"] > 2 * found["gain_half"]
    for each in found["undecided"]:
        assert each["gain_half"] is None or 2 * each["gain_half"] >= each["gain"]
        assert each["seeds"] is None or each["seeds"] > 2


def test_a_second_job_that_is_no_profile(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello\n")
    assert main(["advise", *ONE_SPINE, "--mpi", "4KiB@50us", "--io", str(tmp_path / "text")]) == 3
    assert "text" in capsys.readouterr().err
    assert main(["advise", *ONE_SPINE, "--mpi", "4KiB@50us", "--io", str(tmp_path / "none")]) == 3


def test_hosts_come_from_files_as_slurm_prints_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    listed = tmp_path / "hosts"
    listed.write_text("host1\nhost2\n\nhost[5-6]\n")
    assert read_hosts(str(listed)) == read_hosts("host[1-2],host[5-6]") == ["host1", "host2", "host5", "host6"]
    for text in (
        "# mine\nhost1\nhost1\nhost2 slots=4\nhost[5-6]\n",
        "STATE NODELIST\nidle host[1-2]\nmix host[2,5-6]\n",
    ):
        listed.write_text(text)
        assert read_hosts(str(listed)) == ["host1", "host2", "host5", "host6"]
    line = ["advise", *ONE_SPINE, "--servers", "1", "--mpi", "4KiB@50us", "--io", "64KiB", "--mpi-hosts", str(listed)]
    for text, said in (
        ("host1\nhost[2\n", f"{listed}:2: expected hosts as"),
        ("\n", f"{listed}: expected text"),
        ("# none\n", f"{listed}:1: expected hosts, a line"),
    ):
        listed.write_text(text)
        assert main(line) == 3
        assert said in capsys.readouterr().err
