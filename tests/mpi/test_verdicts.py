# SPDX-License-Identifier: Apache-2.0
"""Verdicts on real runs are right: the program spends its time in a known way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.verdict.verdict_data import VerdictKind
from ibprof.verdict.verdict_rules import NO_PROBLEM, judge_run
from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.mpis import Build, Mpi, environment, run_mpi

ON = {"IBPROF_TIME": "1", "IBPROF_SITES": "1"}

PLANTED = {
    "alone": VerdictKind.NOT_MPI,
    "late": VerdictKind.WAITING,
    "rotating": VerdictKind.WAITING,
    "turns": VerdictKind.WAITING,
    "server": VerdictKind.WAITING,
    "root": VerdictKind.WAITING,
    "end": VerdictKind.WAITING,
    "small": VerdictKind.SMALL_MESSAGES,
    "bulk": VerdictKind.ON_HOST,
}


# Within a host, ibprof may miss messages of MPICH, and misses messages of Intel MPI. Waiting ranks of these MPIs occupy
# their cores. Cases with two busy ranks need idle cores, so benchmarks/verdicts.py tests these cases.
RESTS = [plant for plant, kind in PLANTED.items() if kind in (VerdictKind.NOT_MPI, VerdictKind.WAITING)]
CASES = [
    *((mpis.SYSTEM, plant) for plant in PLANTED),
    *((mpis.MPICH_SYSTEM, plant) for plant in RESTS),
    *((mpis.INTEL, plant) for plant in ("rotating", "turns")),
]


@pytest.mark.parametrize(("name", "plant"), CASES)
def test_time_goes_where_it_was_planted(build: Build, tmp_path: Path, name: str, plant: str) -> None:
    yields = name == mpis.SYSTEM
    mpi = mpis.find_mpi(name) if yields else mpis.find_mpich_like(name)
    program = build(mpi, "verdicts.c", "-O1", "-g")
    # Two ranks, because more ranks than cores would wait for a core.
    ranks = 2 if plant in ("small", "bulk") else 4
    run_mpi(mpi, ranks, [program, plant, "0.6"], recording=tmp_path, env=ON)
    verdict = judge_run(load_profile(tmp_path))
    assert verdict.kind is PLANTED[plant], verdict
    if ranks > 2 and yields:
        assert verdict.run_s == pytest.approx(0.6, rel=0.5)
    if plant == "late":
        assert verdict.evidence[0].rank == 1
        assert verdict.evidence[0].operation == "MPI_Allreduce"
        assert (verdict.evidence[0].site or "").startswith("verdicts.c:")
        assert verdict.wait_s == pytest.approx(0.6 * 3 / 4, rel=0.15 if yields else 0.5)
        assert "for rank 1" in verdict.text
        assert ("; it slept, was stopped, or waited for a file, " in verdict.text) or not yields
    if plant in ("server", "root", "end"):
        assert verdict.evidence[-1].rank == 0


def test_a_run_ends_with_the_verdict_on_its_links(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """With `--fabric`, `ibprof run` prints the verdict from the report on the fabric.

    If the fabric cannot be read, the error and the verdict from the profile alone are printed.
    """
    program = build(system_mpi, "verdicts.c", "-O1", "-g")
    for fabric, error in ((["xgft:1:4:1"], ""), (["nofile"], "ibprof-report: nofile: expected a readable file")):
        ran = processes.run(
            [sys.executable, "-m", "ibprof", "run", "--fabric", *fabric, "--", str(program), "alone", "0.2"],
            env=environment() | ON,
            cwd=tmp_path,
            timeout=60,
        )
        assert (ran.returncode, ran.stdout) == (0, "")
        assert "The network is not the problem." in ran.stderr
        assert f"ibprof-report {fabric[0]} profile" in ran.stderr
        assert error in ran.stderr


def test_ranks_on_one_core_are_named_with_the_place_of_most_transfer(
    system_mpi: Mpi, build: Build, tmp_path: Path
) -> None:
    program = build(system_mpi, "waits.c", "-g")
    run_mpi(
        system_mpi, 4, ["taskset", "-c", "0", program, "balanced", "0", "1000000", "20"], recording=tmp_path, env=ON
    )
    run = load_profile(tmp_path)
    verdict = judge_run(run)
    assert verdict.cause == "oversubscribed-cores", verdict
    assert "share core 0" in verdict.text
    assert f"{NO_PROBLEM} " in verdict.text
    # Each rank has at most a quarter of a core.
    assert all(rank.no_core_ns > rank.cpu_ns > 0 for rank in run.ranks)
    if verdict.kind is VerdictKind.SLOW_TRANSFER:
        assert "most transfer is in MPI_Alltoall at waits.c:" in verdict.text
