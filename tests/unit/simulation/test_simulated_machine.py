# SPDX-License-Identifier: Apache-2.0
"""Servers and jobs run on the hosts that the study names. Recorded runs are simulated on their recorded hosts."""

from __future__ import annotations

import csv
import json
import lzma
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from ibprof.archive.otf2_archive import write_archive
from ibprof.errors import InconsistentError, InputError, UsageError
from ibprof_lab.cli.sim import main
from ibprof_lab.lab_choices import JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.questions.mitigation import list_scenarios
from ibprof_lab.simulation.study.cell import Cell, NetworkSource, Setting, load_network, set_up
from ibprof_lab.simulation.study.cost_estimate import find_bottleneck_ns
from ibprof_lab.simulation.study.simulated_machine import NamedHosts, allocate_hosts
from ibprof_lab.simulation.study.study_file import read_study
from ibprof_lab.simulation.study.sweep import STORE
from ibprof_lab.simulation.workload.host_assignment import assign_hosts, order_leaves
from ibprof_lab.simulation.workload.workloads import IO, MPI
from ibprof_testing.samples.fabrics import find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_port, make_profile, make_rank
from ibprof_testing.samples.simulated_jobs import KIB, io, mpi

pytestmark = pytest.mark.usefixtures("undrawn")

# host01 to host32, four on each of eight leaves.
FABRIC = "xgft:2:4,8:1,4@100"
PAIRS = {"name": "mpi", "role": "pairs", "bytes": "4 KiB", "interval": "20 us"}
WRITES = {"name": "io", "role": "io", "bytes": "64 KiB", "interval": "50 us"}
SHORT = {"messages": 4, "warm_up": 1, "least_warm_up": 1, "background": 1, "precision": 0}

RAN_ON = ("host07", "host02", "host30")
"""Hosts of the recorded run: of ranks 0 and 3, of rank 1, of rank 2."""


def write_run(folder: Path, names: Collection[str] = RAN_ON, recorded: int = 4) -> str:
    """Write a run: rank r sends 10 messages of r + 1 kB to the next rank. Ranks 0 and 3 share a host."""
    counts = [Count(rank, (rank + 1) % 4, 10_000 * (rank + 1), messages=10) for rank in range(recorded)]
    ranks = [make_rank(rank, rank % 3) for rank in range(recorded)]
    run = make_profile(counts, ranks, [make_host(name) for name in names], world_size=4)
    write_archive(run, folder / "profile.otf2")
    return "profile.otf2"


def replayed(folder: Path, **changes: Any) -> dict[str, Any]:
    return {"name": "mpi", "role": "profile", "profile": write_run(folder), "interval": "20 us", **changes}


def write_study(folder: Path, *jobs: dict[str, Any], **changes: Any) -> Path:
    study = {"fabric": FABRIC, "servers": 0, "effort": SHORT, "jobs": list(jobs), **changes}
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    return path


def run_study(folder: Path, *jobs: dict[str, Any], **changes: Any) -> Path:
    assert main(["run", str(write_study(folder, *jobs, **changes)), "-o", str(folder / "out"), "--workers", "1"]) == 0
    return folder / "out"


def find_busy_hosts(results: Path, job: str, column: str = "a_bytes") -> set[str]:
    """Return the hosts that sent a job's bytes; with column `b_bytes`, the hosts that received the job's bytes."""
    with (results / "links.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["job"] == job and row["a_name"].startswith("host")]
    return {row["a_name"].split()[0] for row in rows if int(row[column])}


def named(first: int, last: int) -> set[str]:
    return {f"host{number:02}" for number in range(first, last + 1)}


def test_servers_and_jobs_are_on_the_hosts_that_are_named(tmp_path: Path) -> None:
    """The links that carry bytes show which hosts the jobs use."""
    jobs: list[dict[str, Any]] = [
        {**WRITES, "hosts": ["host[05-07]", "host20"]},
        {**PAIRS, "hosts": "host[09-12],host01,host32"},
    ]
    results = run_study(tmp_path, *jobs, servers=["host03", "host31"])
    assert find_busy_hosts(results, "io") == {"host05", "host06", "host07", "host20"}
    assert find_busy_hosts(results, "io", "b_bytes") == {"host03", "host31"}
    assert find_busy_hosts(results, "mpi") == {*named(9, 12), "host01", "host32"}
    for row in json.loads((results / "summary.json").read_text())["cells"]:
        assert (row["servers"], row["server_placement"]) == (2, "named")
        assert (row["io_share"], row["mpi_share"]) == (4 / 30, 6 / 30)


@pytest.mark.parametrize("servers", ServerPlacement)
@pytest.mark.parametrize("jobs", JobPlacement)
def test_what_is_drawn_is_drawn_of_the_other_hosts(servers: ServerPlacement, jobs: JobPlacement) -> None:
    setting = Setting(FABRIC, servers=5)
    network = load_network(NetworkSource(FABRIC), Hardware())
    # If the study named no hosts, isolated and spread servers would be on these hosts.
    kept = tuple(int(leaf[-1]) for leaf in order_leaves(network)) + tuple(order_leaves(network)[-1][:3].tolist())
    own = allocate_hosts(setting, mpi(), kept[:10])
    assigned = assign_hosts(network, [io(share=17 / 27), own], 5, servers, jobs, np.random.default_rng(1))
    assert assigned.jobs[1].tolist() == list(kept[:10])
    taken = np.concatenate([assigned.servers, *assigned.jobs])
    assert [len(assigned.servers), *map(len, assigned.jobs)] == [5, 17, 10]
    assert len(np.unique(taken)) == len(taken) == network.hosts
    with pytest.raises(InconsistentError, match="23 servers need more than the 22 hosts without a job"):
        assign_hosts(network, [own], 23, servers, jobs, np.random.default_rng(1))
    with pytest.raises(InconsistentError, match="named more than once"):
        assign_hosts(network, [own], 1, servers, jobs, np.random.default_rng(1), server_hosts=kept[:1])


def test_jobs_without_a_share_have_what_named_ones_leave(tmp_path: Path) -> None:
    """A job without named hosts gets the remaining hosts, up to its share."""
    few, many = (
        read_study(write_study(tmp_path, WRITES, {**PAIRS, "hosts": hosts}, servers=2)).cells[0].workloads
        for hosts in ("host[01-04]", "host[01-20]")
    )
    assert [each.share for each in few] == [0.5, 4 / 30]
    assert [each.share for each in many] == pytest.approx([10 / 30, 20 / 30])


def test_a_recorded_run_stays_on_its_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each host's link carries the bytes that its ranks sent."""
    job = replayed(tmp_path, limit=10)
    (cell, *_) = read_study(
        write_study(tmp_path, job, WRITES, servers=2, measured="mpi", effort={"messages": 10})
    ).cells
    simulation = set_up(cell).simulation
    simulation.run()
    network = simulation.network
    sent = simulation.look_at_ends().bytes[network.host_end, 0]
    by_name = {name.split()[0]: int(count) for name, count in zip(network.host_names, sent, strict=True) if count}
    # Rank 3 sends to rank 0 on its own host.
    assert by_name == {"host07": 10_000, "host02": 20_000, "host30": 30_000}
    results = run_study(tmp_path, job, WRITES, servers=2, measured="mpi", effort=SHORT)
    assert find_busy_hosts(results, "mpi") == set(RAN_ON)
    told = capsys.readouterr().err
    assert "by name" not in told
    assert "drawn" not in told


def test_a_recorded_host_is_known_by_its_port(tmp_path: Path) -> None:
    """The recorded host has another name in the fabric, as `ibprof-view` allows."""
    network = load_network(NetworkSource(FABRIC), Hardware())
    fabric, port = network.subnet.fabric, int(network.host_port[20])
    hosts = [make_host("old-name", make_port(999, int(fabric.port_guid[port]))), make_host("host01")]
    write_archive(
        make_profile([Count(0, 1, 100)], [make_rank(0, 0), make_rank(1, 1)], hosts), tmp_path / "profile.otf2"
    )
    job = {"name": "mpi", "role": "profile", "profile": "profile.otf2", "interval": "20 us"}
    plan = read_study(write_study(tmp_path, job))
    cell = plan.cells[0]
    assert [network.host_names[host].split()[0] for host in cell.workloads[0].hosts] == ["host21", "host01"]
    assert any("1 port(s) have a different LID in the fabric" in each for each in plan.notes)


@pytest.mark.parametrize(
    ("names", "recorded", "servers", "said"),
    [
        (("host01", "n2", "n3"), 4, 2, "the fabric has no 'n2', 'n3'"),
        (RAN_ON, 3, 2, "not all of its ranks were recorded"),
        (("host01", "HOST01", "host02"), 4, 2, "several of its hosts are the same host of the fabric"),
        (RAN_ON, 4, ["host30", "host01"], "host30 is a host of a server"),
    ],
)
def test_a_run_that_cannot_be_where_it_was_is_drawn_and_that_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...], recorded: int, servers: Any, said: str
) -> None:
    job = replayed(tmp_path, share=0.5)
    write_run(tmp_path, names, recorded)
    results = run_study(tmp_path, job, WRITES, servers=servers, measured="mpi", seeds=2)
    assert capsys.readouterr().err.count(f"profile.otf2: its hosts are sampled: {said}") == 1
    busy = find_busy_hosts(results, "mpi")
    assert len(busy) == 3  # two of four ranks share a host, or a rank was not recorded
    assert busy != set(RAN_ON)


def test_of_two_runs_on_the_same_hosts_one_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = run_study(tmp_path, replayed(tmp_path), replayed(tmp_path, name="again"))
    assert "its hosts are sampled: " + ", ".join(f"host{n} is a host of job mpi" for n in ("07", "02", "30")) in (
        capsys.readouterr().err
    )
    assert find_busy_hosts(results, "mpi") == set(RAN_ON)
    assert find_busy_hosts(results, "again").isdisjoint(RAN_ON)


def test_a_study_says_where_a_recorded_run_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The n-th name in `hosts` replaces the n-th recorded host, in the order of recorded hosts' first ranks. With
    `hosts: drawn`, hosts are sampled, without a message."""
    chosen = ["host10", "host20", "host31"]
    (cell,) = read_study(write_study(tmp_path, replayed(tmp_path, hosts=chosen))).cells[:1]
    steps = {client.host: client.steps for client in set_up(cell).clients}
    network = load_network(NetworkSource(FABRIC), Hardware())
    assert [network.host_names[host].split()[0] for host in cell.workloads[0].hosts] == chosen
    assert [network.host_names[host].split()[0] for host in steps] == ["host10", "host20", "host31"]
    (cell,) = read_study(write_study(tmp_path, replayed(tmp_path, hosts="drawn"))).cells[:1]
    assert cell.workloads[0].hosts == ()
    assert cell.workloads[0].share == 1
    assert capsys.readouterr().err == ""


def test_hosts_are_in_the_order_of_first_ranks(tmp_path: Path) -> None:
    """The recording does not list hosts in the order of ranks. Without named hosts, a rank is on its recorded host."""
    ranks = [make_rank(rank, host) for rank, host in enumerate((2, 0, 1))]
    counts = [Count(rank, (rank + 1) % 3, 10) for rank in range(3)]
    write_archive(make_profile(counts, ranks, [make_host(f"host{n}") for n in (21, 22, 23)]), tmp_path / "profile.otf2")
    job = {"name": "mpi", "role": "profile", "profile": "profile.otf2", "interval": "20 us"}
    network = load_network(NetworkSource(FABRIC), Hardware())
    for changes, hosts in (
        ({"hosts": "host[11-13]"}, ["host11", "host12", "host13"]),
        ({}, ["host23", "host21", "host22"]),
    ):
        clients = set_up(read_study(write_study(tmp_path, {**job, **changes})).cells[0]).clients
        assert [network.host_names[each.host].split()[0] for each in clients] == hosts


@pytest.mark.parametrize(
    ("changes", "job", "line", "said"),
    [
        (
            {"servers": ["host01", "n7"]},
            {},
            "servers",
            "servers to be hosts of the fabric (host01, host02, host03, ...), found 'n7'",
        ),
        ({"servers": "host[01-02],host01"}, {}, "servers", "servers to be each host once, found 'host01 again'"),
        ({"servers": "host[01"}, {}, "servers", "servers to be hosts such as node[01-04,7],login1, found 'host[01'"),
        ({"servers": []}, {}, "servers", "servers to be hosts such as"),
        ({"servers": [["host01"]]}, {}, "servers", "servers to be a text, found a list"),
        ({"servers": "host[01-32]"}, {}, "servers", "servers to be fewer than the fabric's 32 hosts, found '32'"),
        (
            {"servers": ["host01"], "server_placement": "spread"},
            {},
            "server_p",
            "to be absent, since servers are named, found 'spread'",
        ),
        ({}, {"hosts": ["host01", "n7"]}, "- host01", "job 1's hosts to be hosts of the fabric (host01, "),
        ({}, {"hosts": []}, "hosts", "job 1's hosts to be hosts such as"),
        ({}, {"hosts": "drawn"}, "hosts", "job 1's hosts to be names, since only hosts of a profile may be drawn"),
        (
            {},
            {"hosts": "host[01-02]", "share": 0.5},
            "share",
            "job 1's share to be absent, since the job has named hosts, found '0.5'",
        ),
        (
            {"job_placement": "random-node"},
            {"hosts": "host[01-02]"},
            "job_p",
            "to be absent, since all jobs have named hosts",
        ),
        (
            {"servers": ["host02"]},
            {"hosts": "host[01-02]"},
            "hosts",
            "to be hosts without another use, found 'host02, the host of a server'",
        ),
        ({}, {"hosts": "host[01-03]"}, "jobs", "job mpi: expected pairs of hosts, found 3 hosts"),
        ({}, {"hosts": "host01", "role": "ring"}, "jobs", "job mpi: expected at least 2 hosts, found 1"),
    ],
)
def test_hosts_that_cannot_be(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    job: dict[str, Any],
    line: str,
    said: str,
) -> None:
    study = write_study(tmp_path, {**PAIRS, **job}, **changes)
    assert main(["run", str(study), "-o", str(tmp_path / "out")]) == 3
    told = capsys.readouterr().err
    assert said in told
    number = int(told.split("study.yaml:")[1].split(":")[0])
    near = " ".join(study.read_text().splitlines()[number - 1 : number + 1])
    assert line in near


def test_hosts_of_two_jobs(tmp_path: Path) -> None:
    study = write_study(tmp_path, {**PAIRS, "hosts": "host[01-04]"}, {**WRITES, "hosts": "host[04-05]"}, servers=1)
    with pytest.raises(
        InputError, match="job 2's hosts to be hosts without another use, found 'host04, the host of job mpi'"
    ):
        read_study(study)


def test_a_run_needs_as_many_hosts_as_it_had(tmp_path: Path) -> None:
    study = write_study(tmp_path, replayed(tmp_path, hosts="host[01-04]"))
    with pytest.raises(InputError, match="job 1's hosts to be as many hosts as the run's 3, found '4'"):
        read_study(study)


def test_shares_with_hosts_that_leave_less(tmp_path: Path) -> None:
    study = write_study(tmp_path, {**WRITES, "share": 0.5}, {**PAIRS, "hosts": "host[01-20]"}, servers=2)
    expected = r"shares, also the shares of named hosts, add up to at most 1, found '0.5 \+ 0.66"
    with pytest.raises(InputError, match=expected):
        read_study(study)


def test_a_key_is_of_the_hosts(tmp_path: Path) -> None:
    """A key depends on the named hosts of all jobs, since jobs without named hosts get the remaining hosts."""
    study = write_study(tmp_path, WRITES, PAIRS, servers=8)
    plain = read_study(study).cells[0]
    keys = {plain.key}
    for change in ({"servers": "host[01-08]"}, {"servers": "host[02-09]"}):
        keys.add(read_study(write_study(tmp_path, WRITES, PAIRS, **change)).cells[0].key)
    for hosts in ("host[09-12]", "host[09-11],host13", "host[09-11],host01"):
        keys.add(read_study(write_study(tmp_path, WRITES, {**PAIRS, "hosts": hosts}, servers=8)).cells[0].key)
        keys.add(read_study(write_study(tmp_path, {**WRITES, "hosts": hosts}, PAIRS, servers=8)).cells[0].key)
    assert len(keys) == 9


def test_stored_results_are_of_the_same_hosts(tmp_path: Path) -> None:
    results = run_study(tmp_path, {**PAIRS, "hosts": "host[01-02]"})  # both hosts are on one leaf
    near = json.loads((results / "summary.json").read_text())["mpi_alone_us"]
    results = run_study(tmp_path, {**PAIRS, "hosts": "host01,host32"})
    assert json.loads((results / "summary.json").read_text())["mpi_alone_us"] > near
    assert len((results / STORE).read_text().splitlines()) == 2
    results = run_study(tmp_path, {**PAIRS, "hosts": "host[01-02]"})
    assert json.loads((results / "summary.json").read_text())["mpi_alone_us"] == near
    assert len((results / STORE).read_text().splitlines()) == 2


def test_named_servers_set_the_pace(tmp_path: Path) -> None:
    """In a hypercube at 32 Gb/s, the isolated server is by default on hc-n046. The link of hc-n047 has 8 Gb/s."""
    for name in ("ibdiagnet.lst", "ibdiagnet.fdbs"):
        (tmp_path / name).write_bytes(lzma.decompress(find_sample("hypercube-4", name).read_bytes()))
    lst = tmp_path / "ibdiagnet.lst"
    lines = lst.read_text().splitlines(keepends=True)
    lst.write_text("".join(re.sub("SPD=10", "SPD=2.5", each) if "{hc-n047 HCA-1}" in each else each for each in lines))
    setting = Setting(str(lst), servers=1)
    first, slow = (NamedHosts(setting).number([name], UsageError) for name in ("hc-n046", "hc-n047"))

    def find_pace(server_hosts: tuple[int, ...], *others: int) -> float:
        """Return the time of a byte, in ns."""
        writes = allocate_hosts(setting, io(64 * KIB), (0, 1, *others))
        changed = replace(setting, server_hosts=server_hosts)
        return find_bottleneck_ns(Cell(changed, (writes, mpi()), (IO,), IO, 1), writes) / len(writes.hosts) / 64 / KIB

    assert find_pace(()) == find_pace(first) == pytest.approx(0.25)
    assert find_pace(slow) == pytest.approx(1)
    assert find_pace((), *first) == pytest.approx(1)  # the job has hc-n046, so the server is on hc-n047


def test_advice_compares_named_hosts_with_drawn_ones() -> None:
    setting = Setting(FABRIC, servers=2, server_hosts=(0, 1))
    jobs = (io(64 * KIB), allocate_hosts(setting, mpi(), (4, 9, 30, 31)))
    scenarios = {name: (changed, jobs) for name, changed, jobs in list_scenarios(setting, *jobs)}
    assert scenarios["as it is"] == (setting, jobs)
    for name, placement in (("jobs on hosts sampled one by one", JobPlacement.RANDOM_NODE),
                            ("jobs on whole leaf switches", JobPlacement.RANDOM_SWITCH)):  # fmt: skip
        changed, (writes, pairs) = scenarios[name]
        assert (changed.server_hosts, changed.job_placement) == ((0, 1), placement)
        assert writes.hosts == pairs.hosts == ()
        assigned = set_up(Cell(changed, (writes, pairs), (MPI,), MPI, 1)).clients
        assert len(assigned) == 4
    for name in ("servers spread, one per leaf", "servers on separate leaves"):
        changed, (_, pairs) = scenarios[name]
        assert (changed.servers, changed.server_hosts, pairs.hosts) == (2, (), (4, 9, 30, 31))


ADVISE = ["advise", "--fabric", FABRIC, "--io", "64KiB", "--quick", "--workers", "1"]


def test_advice_for_a_recorded_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path)
    question = [*ADVISE, "--mpi", f"{tmp_path / 'profile.otf2'}@50us", "--servers", "host[31-32]", "--share", "0.2"]
    assert main([*question, "--io-hosts", "host[08-15]", "--json"]) == 0
    told = capsys.readouterr()
    scenarios = {way["name"]: way for way in json.loads(told.out)["ways"]}
    now, drawn = scenarios["as it is"], scenarios["jobs on whole leaf switches"]
    assert (now["mpi_hosts"], now["io_hosts"], now["server_placement"]) == ("named", "named", "named")
    assert (drawn["mpi_hosts"], drawn["io_hosts"], drawn["server_placement"]) == ("drawn", "drawn", "named")
    assert now["mpi_alone_us"] != drawn["mpi_alone_us"]
    assert "drawn" not in told.err
    assert main([*question, "--mpi-hosts", "drawn", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["ways"][0]["mpi_hosts"] == "drawn"
    assert "hosts are sampled, since these options are missing: --mpi-hosts, --io-hosts" in told.err


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--servers", "n1"], 2, "--servers: expected hosts of the fabric (host01, host02, host03, ...), found 'n1'"),
        (["--servers", "host[1"], 2, "expected hosts as node[01-04,7],login1"),
        (["--servers", "1:2"], 2, "expected a whole number from 1 to 999999999, found '1:2'"),
        (["--servers", "host01", "--server-placement", "spread"], 2, "applies to servers that --servers does not name"),
        (
            ["--servers", "host01", "--mpi-hosts", "host[01-02]"],
            2,
            "--mpi-hosts: expected hosts without another use, found 'host01, the host of a server'",
        ),
        (["--io-hosts", "host01", "--mpi-hosts", "host[01-02]"], 2, "--mpi-hosts: expected hosts without another use"),
        (["--mpi-hosts", "host01,host01"], 2, "--mpi-hosts: expected each host once, found 'host01 again'"),
        (["--mpi-hosts", "drawn"], 2, "found 'drawn'"),
        (["--mpi-hosts", "host[01-03]"], 5, "expected pairs of hosts, found 3 hosts"),
    ],
)
def test_bad_hosts_of_questions(options: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        ended = main([*ADVISE, "--mpi", "4KiB@50us", *options])
    except SystemExit as error:  # argparse
        ended = int(str(error.code))
    assert ended == status
    assert said in capsys.readouterr().err


def test_studies_with_named_servers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = ["--fabric", FABRIC, "--servers", "host[29-32]", "--quick", "--workers", "1", "-o", str(tmp_path)]
    assert main(["study", "servers", *machine]) == 2
    assert (
        "--servers: expected a number, since the study servers varies the placement of servers"
        in capsys.readouterr().err
    )
    assert main(["study", "placement", *machine]) == 0
    assert find_busy_hosts(tmp_path, "io", "b_bytes") == named(29, 32)
    with (tmp_path / "means.csv").open(newline="") as file:
        assert {row["server_placement"] for row in csv.DictReader(file)} == {"named"}
