# SPDX-License-Identifier: Apache-2.0
"""The hosts of a job, as launchers and batch systems write them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ibprof.profile.gaps import describe_gaps
from ibprof.recording.recording_reader import read_recording
from ibprof.text.host_lists import find_job_hosts, read_command, same_host
from ibprof_testing.samples.profiles import make_host, make_profile, make_rank
from ibprof_testing.samples.recordings import Process, make_recording


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node[01-03,7],login1", ["node01", "node02", "node03", "node7", "login1"]),
        ("a,b,a", ["a", "b"]),
        ("a,b[1-", []),
        ("x[3-1]", []),
        ("n[x]", []),
        ("n[1-99999999]", []),
        ("", []),
    ],
)
def test_a_slurm_list_names_each_host_once_and_none_where_it_is_invalid(text: str, hosts: list[str]) -> None:
    assert find_job_hosts({"SLURM_JOB_NODELIST": text}, "app") == hosts


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ("mpirun -n 4 --host a:2,b:2 ./app --host c", ["a", "b"]),
        ("mpirun --map-by node -H a -n 1 ./app : -H b ./app", ["a", "b"]),
        ("mpirun --mca plm app --hostfile {folder}/hosts ./app", ["n1", "n2", "n3"]),
        ("mpirun -hosts a,b -ppn 1 ./app", ["a", "b"]),
        ("mpiexec -f hosts ./app", ["n1", "n2", "n3"]),
        ("srun --nodelist=n[1-2] ./app", ["n1", "n2"]),
        ("mpirun --hostfile missing ./app", []),
        ("mpirun -H", []),
    ],
)
def test_command_lines(line: str, hosts: list[str], tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("# racks\nn1 slots=2\nn2:4\nroot@n3\n\nn1\n")
    words = line.format(folder=tmp_path).split()
    assert read_command(words, lambda word: word in ("./app", "app"), tmp_path) == hosts


def test_the_surest_text_wins() -> None:
    slurm = {"SLURM_JOB_NODELIST": "n[1-4]"}
    assert find_job_hosts(slurm, "app") == ["n1", "n2", "n3", "n4"]
    started = slurm | {"command line": "\x1f".join(["mpirun", "-H", "n1,n2", "/bin/app", "-H", "x", ""])}
    assert find_job_hosts(started, "./app") == ["n1", "n2"]
    assert find_job_hosts(started | {"IBPROF_HOSTS": "n3"}, "./app") == ["n3"]
    assert find_job_hosts({"LSB_MCPU_HOSTS": "a 4 b 2"}, "app") == ["a", "b"]
    assert find_job_hosts({"PBS_NODEFILE": "a\na\nb\n"}, "app") == ["a", "b"]
    assert find_job_hosts({"PE_HOSTFILE": "a 4 all.q UNDEFINED\n"}, "app") == ["a"]
    assert find_job_hosts({}, "app") == []


def test_names_with_and_without_a_domain() -> None:
    assert same_host("n1", "N1.cluster")
    assert not same_host("n1.a", "n1.b")
    assert not same_host("n1", "n10")
    assert not same_host("10.0.0.1", "10")


def test_a_report_names_hosts_only_where_they_are_known() -> None:
    def say(*hosts: str) -> str:
        run = make_profile([], [make_rank(0)], [make_host("n1")], world_size=4)
        return next(iter(describe_gaps(replace(run, job_hosts=hosts))))

    unknown = "their hosts are unknown: others than n1, or these without the library"
    assert say() == f"3 of 4 ranks were not recorded: 1-3; {unknown}"
    assert say("n1.x", "n2", "n3").endswith("1-3; of the job's hosts, n2, n3 left no recording; n1 did")
    assert "all known hosts of the job left a recording" in say("n1")


def test_a_recording_keeps_how_the_job_was_started(tmp_path: Path) -> None:
    text = ("a" * 500 + ",b").encode()
    parts = [{"name": b"IBPROF_HOSTS", "text": text[begin : begin + 448]} for begin in (0, 448)]
    make_recording(tmp_path, [Process(0, 2, launch=[parts])])
    assert read_recording(tmp_path).job_hosts == ("a" * 500, "b")
