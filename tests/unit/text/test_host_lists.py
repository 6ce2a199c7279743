# SPDX-License-Identifier: Apache-2.0
"""The hosts of a job are read in the formats of launchers and batch systems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibprof.errors import UsageError
from ibprof.profile.missing_data import describe_gaps
from ibprof.recording.recording_reader import read_recording
from ibprof.text import host_lists
from ibprof.text.host_lists import HostSpellings, expand_hosts, find_job_hosts, join_hosts, read_command, same_host
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
    assert same_host("n1.a", "N1.A")
    assert not same_host("n1.a", "n1.b")
    assert not same_host("n1", "n10")
    assert not same_host("10.0.0.1", "10")


def test_a_report_names_hosts_only_where_they_are_known() -> None:
    def say(*hosts: str) -> str:
        run = make_profile([], [make_rank(0)], [make_host("n1")], world_size=4)
        return next(iter(describe_gaps(replace(run, job_hosts=hosts))))

    unknown = "their hosts are unknown: the ranks ran on other hosts than n1, or without the library"
    assert say() == f"3 of 4 ranks were not recorded: 1-3; {unknown}"
    assert say("n1.x", "n2", "n3").endswith("1-3; of the job's hosts, n2, n3 left no recording; n1 left a recording")
    assert "all known hosts of the job left a recording" in say("n1")


def test_a_recording_keeps_how_the_job_was_started(tmp_path: Path) -> None:
    text = ("a" * 500 + ",b").encode()
    parts = [{"name": b"IBPROF_HOSTS", "text": text[begin : begin + 448]} for begin in (0, 448)]
    make_recording(tmp_path, [Process(0, 2, launch=[parts])])
    assert read_recording(tmp_path).job_hosts == ("a" * 500, "b")


@pytest.mark.parametrize(
    ("expression", "hosts"),
    [
        ("node[01-04,7]", ["node01", "node02", "node03", "node04", "node7"]),
        ("a,b[1-2],c", ["a", "b1", "b2", "c"]),
        ("r[1-2]n[09-10]-ib", ["r1n09-ib", "r1n10-ib", "r2n09-ib", "r2n10-ib"]),
        ("login1", ["login1"]),
        (" n[8-11] ", ["n8", "n9", "n10", "n11"]),
        ("node[01-03,7],login1", ["node01", "node02", "node03", "node7", "login1"]),
        ("rack[1-2]n[08-10]", ["rack1n08", "rack1n09", "rack1n10", "rack2n08", "rack2n09", "rack2n10"]),
        # In Slurm's order, the last bracket varies fastest, and the bracket before it slowest.
        ("a[1-2]b[1-2]c[1-2]", ["a1b1c1", "a1b1c2", "a2b1c1", "a2b1c2", "a1b2c1", "a1b2c2", "a2b2c1", "a2b2c2"]),
        ("a[1-2]b[3]c[4-5]d[6]e", ["a1b3c4d6e", "a2b3c4d6e", "a1b3c5d6e", "a2b3c5d6e"]),
        ("a,b,a", ["a", "b", "a"]),
        ("a,, b,", ["a", "b"]),
    ],
)
def test_slurm_expressions(expression: str, hosts: list[str]) -> None:
    assert expand_hosts(expression) == hosts


@pytest.mark.parametrize(
    "expression", ["", "n[1-", "n[4-1]", "n[x]", "n]", "n[]", ",", "n[0-9999999]", "n[1-99999][1-99999]"]
)
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(UsageError):
        expand_hosts(expression)


@given(st.text(alphabet="n[]-,019 x", max_size=20))
def test_any_expression_is_expanded_or_refused(expression: str) -> None:
    try:
        hosts = expand_hosts(expression)
    except UsageError:
        return
    assert hosts
    assert all(host and not set(host) & set("[]") for host in hosts)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["node01", "node02", "node03", "login"], "node[01-03],login"),
        (["node9", "node10"], "node9,node10"),
        (["n2", "n1"], "n2,n1"),
        (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
        (["n1", "n1"], "n1,n1"),
        ([], ""),
    ],
)
def test_hosts_are_joined_in_their_order(names: list[str], text: str) -> None:
    assert join_hosts(names) == text
    assert not names or expand_hosts(text) == names


@given(st.lists(st.from_regex(r"[a-z]{1,2}[0-9]{0,3}", fullmatch=True), min_size=1, max_size=30))
def test_joined_hosts_expand_to_what_they_were(names: list[str]) -> None:
    assert expand_hosts(join_hosts(names)) == names


def test_spellings_of_known_hosts_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """ibprof must not compare 1,000 similar addresses of hosts for each line of a log, which would take hours."""
    compared: list[tuple[str, str]] = []

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return same_host(one, other)

    monkeypatch.setattr(host_lists, "same_host", compare)
    spellings = HostSpellings()
    addresses = [f"10.0.0.{number}" for number in range(1, 101)]
    for _ in range(10):
        assert [spellings.find(name) for name in (*addresses, "gpu1", "GPU1.a")] == [*addresses, "gpu1", "gpu1"]
    assert len(compared) <= 100 * 99 / 2 + 1
    assert [*spellings.describe()] == ["hosts with several spellings: GPU1.a is gpu1"]
