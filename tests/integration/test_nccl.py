# SPDX-License-Identifier: Apache-2.0
"""The profiler plug-in records NCCL's bytes and times.

Test machines have no GPU, so a mock of NCCL loads the plug-in. The mock really sends the bytes of each step between
ranks, by TCP, and prints the sent bytes.
"""

from __future__ import annotations

import csv
import ctypes
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ibprof.cli import calls, nccl
from ibprof.load import load_profile
from ibprof.native.installed_files import find_nccl_profiler
from ibprof.profile.communication_matrix import Selection, build_matrix
from ibprof.profile.profile_data import UNKNOWN_PEER, Direction, Profile, Source
from ibprof.profile.row_arrays import take_rows
from ibprof.verdict.verdict_data import VerdictKind
from ibprof.verdict.verdict_rules import judge_run
from ibprof.waiting.wait_split import explain_unsplit, measure_waiting
from ibprof_converter.traffic.traffic_reader import profile_traffic
from ibprof_testing.nccl_harness import Ports, build_harness, build_next, run_ranks
from ibprof_testing.samples.profiles import Count, make_profile, make_rank

VERSIONS = range(1, 8)


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_harness(tmp_path_factory.mktemp("harness"))


@pytest.fixture(scope="module")
def ports() -> Ports:
    return Ports()


def sums(run: Profile, direction: Direction) -> dict[int, dict[str, int]]:
    """Return rank -> peer -> bytes that the rank sent, or received: `direction` selects."""
    found: dict[int, dict[str, int]] = {rank.rank: {} for rank in run.ranks}
    for row in (run.counters.direction == direction).nonzero()[0]:
        peers = found[int(run.counters.rank[row])]
        peer = str(run.counters.peer[row])
        peers[peer] = peers.get(peer, 0) + int(run.counters.bytes[row])
    return found


def check_bytes(run: Profile, said: list[dict[str, object]]) -> None:
    assert sums(run, Direction.SENT) == {each["rank"]: each["sent"] for each in said}
    assert sums(run, Direction.RECEIVED) == {each["rank"]: each["received"] for each in said}


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_of_each_version_are_those_that_were_sent(
    version: int, harness: Path, ports: Ports, tmp_path: Path
) -> None:
    said = run_ranks(harness, ports, tmp_path, 4, version, "communicators=2")
    assert [each["version"] for each in said] == [version] * 4
    run = load_profile(tmp_path)
    check_bytes(run, said)
    assert run.is_of_nccl
    assert run.operations[run.counters.operation[0]] == "ncclAllReduce"
    assert run.times.calls.tolist() == [6] * 4
    measured = measure_waiting(run)
    assert measured
    assert measured.instances == 2 * 2 * 3, "each collective on each channel of each communicator"
    assert measured.total().unsplit_s == 0 < measured.total().transfer_s
    assert all(rank.finalized and rank.source == Source.NCCL for rank in run.ranks)
    assert len(list(tmp_path.glob("*.ibprof"))) == 1, "the ranks of a launch share a file"


@pytest.mark.parametrize("version", [3, 7])
def test_trees_have_real_peers(version: int, harness: Path, ports: Ports, tmp_path: Path) -> None:
    said = run_ranks(harness, ports, tmp_path, 5, version, "algorithm=TREE")
    check_bytes(load_profile(tmp_path), said)
    assert sums(load_profile(tmp_path), Direction.SENT)[1].keys() == {"0", "3", "4"}


LATE = ("compute_us=20000", "compute_rank=2", "collectives=20")


def test_ranks_wait_for_the_rank_whose_gpu_is_late(
    harness: Path, ports: Ports, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rank 2 computes for 20 ms before each of 20 collectives, so each other rank waits for 400 ms."""
    run_ranks(harness, ports, tmp_path, 4, 7, *LATE)
    run = load_profile(tmp_path)
    said = judge_run(run)
    assert (said.kind, said.cause) == (VerdictKind.WAITING, "late-rank")
    assert said.late[0].rank == 2
    assert 3 * 0.4 * 0.95 < said.late[0].wait_s < 3 * 0.4 * 1.5
    assert (said.late[0].outside_s or 0.0) > 0.4 * 0.95
    assert calls.main([str(tmp_path), "--by", "rank", "--json"]) == 0
    rows = {row["rank"]: row for row in json.loads(capsys.readouterr().out)["calls"]}
    waits = [rows[str(rank)]["wait_s"] for rank in range(4)]
    assert waits[2] < 0.1 < 0.38 < min(waits[0], waits[1], waits[3])
    # If two ranks are on a host with another clock, the late rank and the waiting times do not change.
    samples = run.collective_samples
    shift = np.where(samples.rank >= 2, 7_000_000_000, 0)
    moved = replace(
        samples,
        **{name: getattr(samples, name) + shift for name in ("start_ns", "enter_ns", "exit_ns")},
    )
    apart = replace(
        run,
        hosts=(run.hosts[0], replace(run.hosts[0], name="second")),
        ranks=tuple(replace(rank, host=rank.rank // 2, boot=rank.rank // 2 + 1) for rank in run.ranks),
        collective_samples=moved,
    )
    measured = measure_waiting(apart)
    assert measured
    assert measured.clocks == 2
    assert measured.late[0].rank == 2
    assert measured.total().wait_s == pytest.approx(sum(waits), rel=0.1)


def test_balanced_gpus_make_no_rank_late(harness: Path, ports: Ports, tmp_path: Path) -> None:
    """Before each of 20 collectives, all ranks compute for 20 ms. Each transfer takes 20 ms."""
    run_ranks(harness, ports, tmp_path, 4, 7, "compute_us=20000", "wire_us=20000", "collectives=20")
    run = load_profile(tmp_path)
    said = judge_run(run)
    assert said.kind is not VerdictKind.WAITING
    assert said.transfer_s == pytest.approx(0.4, rel=0.5)
    assert all(each.wait_s < 0.25 * 3 * 0.4 for each in said.late)


def test_broadcasts_do_not_shift_the_numbers_of_later_collectives(harness: Path, ports: Ports, tmp_path: Path) -> None:
    """In the ring of a broadcast, the root receives nothing, and the last rank sends nothing."""
    run_ranks(harness, ports, tmp_path, 4, 7, "broadcasts=2", "collectives=22")
    run = load_profile(tmp_path)
    samples = run.collective_samples
    reduced = take_rows(samples, samples.operation == run.operations.index("ncclAllReduce"))
    numbers = {rank: set(reduced.number[reduced.rank == rank].tolist()) for rank in range(4)}
    assert numbers == {rank: set(range(1, 21)) for rank in range(4)}


def test_time_of_trees_is_not_split(harness: Path, ports: Ports, tmp_path: Path) -> None:
    """Ranks of a tree pass on data. So ibprof cannot know when other ranks' GPUs were ready."""
    run_ranks(harness, ports, tmp_path, 4, 7, *LATE, "algorithm=TREE")
    run = load_profile(tmp_path)
    measured = measure_waiting(run)
    assert measured
    assert measured.total().unsplit_s == pytest.approx(measured.total().time_s)
    assert not measured.late
    assert explain_unsplit(measured, run.operations)[1].startswith("NCCL's calls are split only for all-reduce")


@pytest.mark.parametrize("ending", ["finalize", "exit", "_exit", "kill"])
def test_nothing_is_lost_at_any_end(ending: str, harness: Path, ports: Ports, tmp_path: Path) -> None:
    said = run_ranks(harness, ports, tmp_path, 2, 7, f"ending={ending}", "communicators=3", may_fail=ending == "kill")
    run = load_profile(tmp_path)
    check_bytes(run, said)
    assert all(rank.finalized == (ending in ("finalize", "exit")) for rank in run.ranks)


@pytest.mark.parametrize("order", ["parent-first", "twice"])
@pytest.mark.parametrize("version", [2, 7])
def test_events_may_stop_in_any_order(version: int, order: str, harness: Path, ports: Ports, tmp_path: Path) -> None:
    said = run_ranks(harness, ports, tmp_path, 2, version, f"order={order}")
    check_bytes(load_profile(tmp_path), said)


@pytest.mark.parametrize("version", [1, 7])
def test_a_child_adds_nothing(version: int, harness: Path, ports: Ports, tmp_path: Path) -> None:
    said = run_ranks(harness, ports, tmp_path, 2, version, "order=fork")
    check_bytes(load_profile(tmp_path), said)


@pytest.mark.parametrize("version", VERSIONS)
def test_names_may_be_missing(version: int, harness: Path, ports: Ports, tmp_path: Path) -> None:
    said = run_ranks(harness, ports, tmp_path, 2, version, "null=1")
    run = load_profile(tmp_path)
    check_bytes(run, said)
    assert run.operations[run.counters.operation[0]] == "nccl(unknown)"


def test_a_newer_library_finds_the_newest_version(harness: Path, ports: Ports, tmp_path: Path) -> None:
    assert run_ranks(harness, ports, tmp_path, 1, 99)[0]["version"] == VERSIONS[-1]


def test_a_communicator_of_one_rank_sends_nothing(harness: Path, ports: Ports, tmp_path: Path) -> None:
    run_ranks(harness, ports, tmp_path, 1, 7)
    run = load_profile(tmp_path)
    assert run.times.calls.tolist() == [3]
    assert len(run.counters.bytes) == 0


def test_ranks_are_known_by_the_communicator_where_no_launcher_states_them(
    harness: Path, ports: Ports, tmp_path: Path
) -> None:
    said = run_ranks(harness, ports, tmp_path, 3, 5, env={"HARNESS_FORGET_RANK": "1"})
    check_bytes(load_profile(tmp_path), said)


def test_many_events_take_no_more_space(harness: Path, ports: Ports, tmp_path: Path) -> None:
    """The size of a recording does not grow with the number of steps, even above 100,000."""
    sizes = []
    for number, collectives in enumerate((600, 3000)):
        folder = tmp_path / str(number)
        said = run_ranks(harness, ports, folder, 2, 7, f"collectives={collectives}", "steps=10", "chunk=16")
        check_bytes(load_profile(folder), said)
        sizes.append(sum(path.stat().st_size for path in folder.glob("*.ibprof")))
    assert sizes[0] == sizes[1]
    measured = measure_waiting(load_profile(folder))
    assert measured
    assert set(measured.calls.weight.tolist()) == {8.0}, "1,024 samples of 6,000"
    assert measured.total().unsplit_s == 0


@pytest.mark.parametrize("before", [1100, 4200])
def test_bytes_of_communicators_beyond_the_capacity_are_kept(
    before: int, harness: Path, ports: Ports, tmp_path: Path
) -> None:
    said = run_ranks(harness, ports, tmp_path, 2, 7, f"before={before}")
    assert all(each["mask"] for each in said), "without a mask NCCL sends no events"
    run = load_profile(tmp_path)
    sent = {rank: sum(peers.values()) for rank, peers in sums(run, Direction.SENT).items()}
    assert sent == {each["rank"]: sum(each["sent"].values()) for each in said}


def test_an_unwritable_folder_leaves_the_job_alone(harness: Path, ports: Ports, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    said = run_ranks(harness, ports, blocked, 2, 7)
    assert [each["mask"] for each in said] == [0, 0]
    assert blocked.read_text() == ""


@pytest.mark.parametrize(("asked", "offered", "used"), [(7, 7, 7), (7, 4, 4), (4, 4, 4), (2, 2, 2)])
def test_a_plug_in_behind_it_sees_the_same_events(
    asked: int, offered: int, used: int, harness: Path, ports: Ports, tmp_path: Path
) -> None:
    following = build_next(tmp_path, offered)
    log = tmp_path / "log"
    env = {"IBPROF_NCCL_NEXT": str(following), "NEXT_LOG": str(log)}
    said = run_ranks(harness, ports, tmp_path / "recording", 2, asked, env=env)
    check_bytes(load_profile(tmp_path / "recording"), said)
    each = [json.loads(line) for line in log.read_text().splitlines()]
    assert {(one["version"], one["collectives"], one["operations"], one["open"]) for one in each} == {(used, 3, 12, 0)}
    sent = [sum(peers.values()) for peers in (one["sent"] for one in said)]
    assert sorted(one["bytes"] for one in each) == (sorted(sent) if asked >= 4 else [one["bytes"] for one in each])
    assert all(one["orphans"] == 0 for one in each), "operations name the next plug-in's own handles as parents"


@pytest.mark.parametrize("content", [None, "no library"])
def test_a_plug_in_that_cannot_be_loaded_is_reported_with_the_reason_and_does_no_harm(
    content: str | None, harness: Path, ports: Ports, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.so"
    if content:
        other.write_text(content)
    said = run_ranks(harness, ports, tmp_path / "recording", 2, 7, env={"IBPROF_NCCL_NEXT": str(other)})
    check_bytes(load_profile(tmp_path / "recording"), said)
    with pytest.raises(OSError, match=r"other\.so") as loaded:
        ctypes.CDLL(str(other))
    assert f"ibprof: {other}: the next plug-in cannot be loaded: {loaded.value}\n" in capfd.readouterr().err


def test_ibprof_run_sets_the_plug_in_and_reports(
    harness: Path, ports: Ports, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mock of torchrun sets torchrun's variables. NCCL_PROFILER_PLUGIN names the plug-in."""
    launcher = tmp_path / "launch.py"
    launcher.write_text(
        "import os, subprocess, sys\n"
        "own = dict(WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT=sys.argv[2], TORCHELASTIC_RUN_ID='none')\n"
        "command = [sys.argv[1], os.environ['NCCL_PROFILER_PLUGIN'], '7', 'late_rank=1', 'late_us=20000']\n"
        "all = [subprocess.Popen(command, env={**os.environ, **own, 'RANK': str(r)}) for r in range(2)]\n"
        "sys.exit(max(one.wait() for one in all))\n"
    )
    command = [
        sys.executable,
        "-m",
        "ibprof",
        "run",
        "--",
        sys.executable,
        str(launcher),
        str(harness),
        str(ports.take(2)),
    ]
    # If an earlier test initialised MPI in this process, the command must not inherit MPI's variables.
    done = subprocess.run(
        command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=60, check=True
    )
    assert "ncclAllReduce" in done.stderr
    run = load_profile(tmp_path / "profile.otf2")
    check_bytes(run, [json.loads(line) for line in done.stdout.splitlines()])
    capsys.readouterr()
    assert nccl.main([str(tmp_path / "profile.ibprof"), "--csv", "-"]) == 0
    flows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {flow["algorithm"] for flow in flows} == {"RING"}
    assert {flow["devices"] for flow in flows if flow["direction"] == "sent"} == {"0", "1"}
    waited = {flow["rank"]: float(flow["gpu_wait_s"]) for flow in flows if flow["direction"] == "sent"}
    assert waited["1"] > 0.02 > 10 * waited["0"], "rank 1 waits for its GPU"


def test_unknown_peers_are_reported(harness: Path, ports: Ports, tmp_path: Path) -> None:
    """If only one of two ranks was recorded, this rank's messages have an unknown peer."""
    run_ranks(harness, ports, tmp_path, 2, 7, only_recorded=0)
    run = load_profile(tmp_path)
    assert [rank.rank for rank in run.ranks] == [0]
    assert set(run.counters.peer.tolist()) == {UNKNOWN_PEER}


def test_the_library_exports_versions_alone() -> None:
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", find_nccl_profiler()], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1] for line in shown.stdout.splitlines()}
    assert names == {f"ncclProfiler_v{version}" for version in VERSIONS}
    assert os.environ.get("NCCL_PROFILER_PLUGIN") is None


def test_bytes_of_mpi_and_of_nccl_add_up() -> None:
    """A job uses MPI and NCCL. ibprof counts NCCL's and MPI's bytes separately."""
    counts = [Count(0, 1, 100, source=Source.OPENMPI), Count(0, 1, 7, source=Source.NCCL)]
    both = make_profile(counts, [make_rank(0), make_rank(1)])
    assert build_matrix(both, "rank", Selection()).bytes.tolist() == [107]
    assert int(profile_traffic(both).bytes.sum()) == 107
