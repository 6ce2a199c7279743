# SPDX-License-Identifier: Apache-2.0
"""The analytic model has the slides' values. Approximations are near exact formulas. The fits find the known laws."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import Direction, Kind
from ibprof_lab.cli.scaling import main
from ibprof_lab.lab_choices import HOSTS, RANKS
from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.scaling.exchange_fit import WHOLE, choose_ends, fit_exchange, sum_exchange
from ibprof_lab.scaling.scaling_model import (
    PRINTED_TOO_SMALL,
    AnalyticKernel,
    Cluster,
    Work,
    balance,
    balance_at_one,
    find_optimum,
    linpack,
    matrix_product,
    performance,
    run_time,
    scalar_product,
    share_work,
    speed_up,
)
from ibprof_lab.scaling.top500 import effective_bandwidth
from ibprof_testing.samples.fabrics import OPENSM, find_sample, read_sample_bytes
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

BWGRID = Cluster(peak=8e9, bandwidth=1.5e9)
"""Source: slide 14."""


# -- values on the slides


def test_slide_21_for_n_10000() -> None:
    kernel = linpack(10000, BWGRID)
    assert kernel.closed.p_half == pytest.approx(78.125)
    assert kernel.closed.p_max == pytest.approx(1299.65, abs=0.01)
    assert kernel.closed.l_max == pytest.approx(562.5e9)
    exact = find_optimum(kernel.exact, BWGRID)
    assert exact.l_max == pytest.approx(630.6e9, rel=1e-4)
    assert exact.p_half == pytest.approx(100.53, abs=0.01)


def test_slide_14_hardware() -> None:
    assert BWGRID.intensity == pytest.approx(16 / 3)


@pytest.mark.parametrize("n", [1e5, 5e5, 1e6, 1e7])
@pytest.mark.parametrize("p", [1, 50, 500])
def test_slide_15(n: float, p: int) -> None:
    kernel = scalar_product(n, BWGRID)
    assert balance_at_one(kernel.approximate, BWGRID, p) == pytest.approx(3 / 64 * n / p)
    assert balance_at_one(kernel.exact, BWGRID, p) == pytest.approx(3 / 64 * n / p, rel=1 / n)


@pytest.mark.parametrize("p", [4, 64, 400])
def test_slide_17_prints_a_sixteenth_of_what_its_parameters_give(p: int) -> None:
    derived = balance_at_one(matrix_product(40000, BWGRID).approximate, BWGRID, p)
    assert derived == pytest.approx(3 / 128 * 40000 / math.sqrt(p))
    assert derived / (3 / 2048 * 40000 / math.sqrt(p)) == pytest.approx(PRINTED_TOO_SMALL)


def test_slide_22_is_slide_21_solved_for_the_bandwidth() -> None:
    l_max = linpack(10000, BWGRID).closed.l_max
    assert effective_bandwidth(l_max, 10000) == pytest.approx(BWGRID.bandwidth)


# -- approximations compared with exact formulas


@pytest.mark.parametrize("kernel", [scalar_product, matrix_product, linpack])
@pytest.mark.parametrize("p", [2, 30, 1000])
def test_forms_of_the_same_quantity(kernel: Callable[[float, Cluster], AnalyticKernel], p: int) -> None:
    work = kernel(20000, BWGRID).exact
    x = balance(work, BWGRID, p)
    computing, communicating = work.operations / (p * BWGRID.peak), work.exchange(p) / BWGRID.bandwidth
    assert x == pytest.approx(computing / communicating)
    assert run_time(work, BWGRID, p) == pytest.approx(computing + communicating)
    assert performance(work, BWGRID, p) == pytest.approx(p * BWGRID.peak * x / (1 + x))
    alone = work.operations / (work.operations / BWGRID.peak + communicating)
    assert speed_up(work, BWGRID, p) == pytest.approx(performance(work, BWGRID, p) / alone)


@pytest.mark.parametrize("kernel", [scalar_product, matrix_product, linpack])
def test_the_optimum_is_one(kernel: Callable[[float, Cluster], AnalyticKernel]) -> None:
    work = kernel(20000, BWGRID).exact
    optimum = find_optimum(work, BWGRID)
    assert balance(work, BWGRID, optimum.p_half) == pytest.approx(1)
    assert performance(work, BWGRID, optimum.p_half) == pytest.approx(optimum.p_half * BWGRID.peak / 2)
    around = performance(work, BWGRID, 0.98 * optimum.p_max), performance(work, BWGRID, 1.02 * optimum.p_max)
    assert max(around) < optimum.l_max
    assert optimum.l_max == performance(work, BWGRID, optimum.p_max)


def test_closed_forms_solve_slide_12() -> None:
    """p_1/2 solves y r(n, p) = p. p_max solves p^2 d'(p) = y c(n)."""
    scalar = scalar_product(1e7, BWGRID)
    solved = find_optimum(scalar.approximate, BWGRID)
    assert scalar.closed.p_half == pytest.approx(solved.p_half)
    assert scalar.closed.p_max == pytest.approx(solved.p_max, rel=1e-6)
    assert scalar.closed.l_max == pytest.approx(solved.l_max)
    matrix = matrix_product(1e5, BWGRID)
    printed = Work(matrix.approximate.operations, matrix.approximate.data,
                   lambda p: PRINTED_TOO_SMALL * matrix.approximate.exchange(p))  # fmt: skip
    solved = find_optimum(printed, BWGRID)
    assert matrix.closed.p_half == pytest.approx(solved.p_half)
    assert matrix.closed.p_max == pytest.approx(solved.p_max, rel=1e-6)
    assert matrix.closed.l_max == pytest.approx(solved.l_max)
    assert linpack(1e5, BWGRID).closed.p_max == pytest.approx(
        find_optimum(linpack(1e5, BWGRID).exact, BWGRID).p_max, rel=1e-6
    )


def test_slide_21_leaves_out_a_factor() -> None:
    """The slide's formula of p_1/2 replaces r(p) by 1. With r(p), the formula is exact."""
    kernel = linpack(10000, BWGRID)
    p = find_optimum(kernel.exact, BWGRID).p_half
    assert kernel.closed.p_half * 2 / (1 + math.log2(p) / 12) == pytest.approx(p)


def test_limits() -> None:
    silent = Work(1e9, 1e6, lambda _: 0.0)
    assert speed_up(silent, BWGRID, 64) == 64
    assert find_optimum(silent, BWGRID).p_max == math.inf
    talkative = Work(1.0, 1e6, lambda p: 1e12 * p)
    assert find_optimum(talkative, BWGRID).p_half == 1
    assert find_optimum(talkative, BWGRID).p_max == pytest.approx(1)


def test_equal_shares_are_the_homogeneous_case() -> None:
    work = linpack(10000, BWGRID).exact
    p = 48
    shares = share_work(work.operations, work.data, work.exchange(p), BWGRID.bandwidth, [BWGRID.peak] * p)
    assert shares.time == pytest.approx(run_time(work, BWGRID, p))
    assert shares.speed_up == pytest.approx(speed_up(work, BWGRID, p))
    assert [unit.balance for unit in shares.units] == pytest.approx([balance(work, BWGRID, p)] * p)


def test_the_slowest_share_decides() -> None:
    shares = share_work(12e9, 1e9, 1.5e9, 1.5e9, [8e9, 4e9], [0.5, 0.5], [0.25, 0.75])
    assert shares.slowest == 1
    assert shares.time == pytest.approx(6e9 / 4e9 + 1)
    assert [unit.intensity for unit in shares.units] == pytest.approx([24, 8])
    assert [unit.balance for unit in shares.units] == pytest.approx([0.75, 1.5])
    assert shares.speed_up == pytest.approx((12e9 / 4e9 + 1) / 2.5)


# -- fits


@pytest.mark.parametrize(
    ("form", "exchanged"),
    [
        ("(p - 1)", lambda n, p: 8 * (p - 1)),
        ("n^2 (sqrt(p) - 1)", lambda n, p: 16 * n**2 * (math.isqrt(p) - 1)),
        ("n p (p - 1)", lambda n, p: 4 * n * p * (p - 1)),
        ("n^2 sqrt(p)", lambda n, p: round(100 * n**2 * p**0.5)),
        ("n p log2(p)", lambda n, p: round(100 * n * p * math.log2(p))),
    ],
)
def test_forms_are_found_again(form: str, exchanged: Callable[[int, int], int]) -> None:
    runs = [(n, p) for n in (128, 256, 1024) for p in (4, 9, 16, 64)]
    fit = fit_exchange([n for n, _ in runs], [p for _, p in runs], [exchanged(n, p) for n, p in runs])
    assert fit is not None
    assert str(fit.form) == form
    assert fit.alternatives == ()
    assert fit.exchange(2048, 100) == pytest.approx(exchanged(2048, 100), rel=1e-3)
    assert fit.spread() == pytest.approx(1, abs=1e-4)


def test_what_cannot_be_distinguished_is_named() -> None:
    fit = fit_exchange([8, 8], [2, 4], [1000, 3000])
    assert fit is not None
    assert fit.process_exponent is None
    together = {str(fit.form), *map(str, fit.alternatives)}
    assert "(p - 1)" in together
    assert fit_exchange([8, 8], [2, 4], [0, 0]) is None
    with pytest.raises(ValueError, match="at least two"):
        fit_exchange([8, 16], [4, 4], [10, 20])
    with pytest.raises(ValueError, match="at least two"):
        fit_exchange([8, 8], [1, 1], [0, 0])


def test_the_interval_holds_what_it_promises() -> None:
    """For points that scatter around a known function, about 95% of the 95% intervals contain the true coefficient."""
    random = np.random.default_rng(1)
    processes = [4, 8, 16, 32, 64, 128]
    covered = 0
    for _ in range(200):
        exchanged = [round(1e6 * p * (p - 1) * math.exp(random.normal(0, 0.02))) for p in processes]
        fit = fit_exchange([1] * 6, processes, exchanged)
        assert fit is not None
        if str(fit.form) == "p (p - 1)":
            covered += fit.coefficient.low <= 1e6 <= fit.coefficient.high
    assert covered >= 0.85 * 200


# -- recorded runs


def test_what_is_measured() -> None:
    hosts = [make_host("a"), make_host("b")]
    profile = make_profile(
        [
            Count(0, 1, 100),
            Count(0, 2, 30, region=1),
            Count(2, 0, 5, operation=1),
            Count(0, 0, 1000),
            Count(2, 0, 30, direction=Direction.RECEIVED),
            Count(0, 2, 7, kind=Kind.CONTROL),
        ],
        [make_rank(0, 0), make_rank(1, 0), make_rank(2, 1)],
        hosts,
        regions=("main", "exchange"),
        operations=("SEND", "BCAST"),
    )
    assert choose_ends([profile]) == HOSTS
    between_hosts = sum_exchange(profile, 10, HOSTS)
    assert sorted(between_hosts.exchanged.values()) == [5, 30]
    assert between_hosts.bytes_in(profile.regions[1]) == 30
    assert between_hosts.bytes_in(WHOLE) == 35
    assert sum_exchange(profile, 10, RANKS).bytes_in(WHOLE) == 135


def test_missing_ranks_are_reported() -> None:
    profile = make_profile([Count(0, 1, 10)], [make_rank(0)], world_size=2)
    assert "1 of 2 ranks" in " ".join(sum_exchange(profile, 1, RANKS).notes)


# -- the command


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main([*arguments, "--json"]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_linpack_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = run_json(
        capsys,
        "linpack",
        "--n",
        "10000",
        "--l-peak",
        "8e9",
        "--bandwidth",
        "1.5e9",
        "--figure",
        str(tmp_path / "f.png"),
    )
    assert document["p_half"] == {"exact": pytest.approx(100.53, abs=0.01), "slide": pytest.approx(78.125)}
    assert document["p_max"] == {"exact": pytest.approx(1299.65, abs=0.01), "slide": pytest.approx(1299.65, abs=0.01)}
    assert document["l_max"] == {"exact": pytest.approx(630.6e9, rel=1e-4), "slide": pytest.approx(562.5e9)}
    assert (tmp_path / "f.png").stat().st_size > 10_000
    assert main(["linpack", "--n", "10000", "--l-peak", "8e9", "--bandwidth", "1.5e9"]) == 0
    assert "1299.7" in capsys.readouterr().out


def write_runs(folder: Path) -> list[str]:
    names = []
    for ranks in (2, 4, 8):
        counts = [Count(a, b, 50) for a in range(ranks) for b in range(ranks) if a != b]
        profile = make_profile(counts, [make_rank(rank) for rank in range(ranks)])
        write_archive(profile, folder / f"run{ranks}.otf2")
        names.append(f"100:{folder / f'run{ranks}.otf2'}")
    return names


def test_fit_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    runs = write_runs(tmp_path)
    about = ("--operations", "2*n**3", "--data", "16*n**2", "--l-peak", "1e9")
    document = run_json(capsys, "fit", *runs, *about, "--bandwidth", "1e9", "--figure", str(tmp_path / "f.png"))
    whole = document["whole"]
    assert isinstance(whole, dict)
    assert whole["exchange"]["form"] == "p (p - 1)"
    assert whole["exchange"]["coefficient"]["value"] == pytest.approx(50)
    # For each run and each prediction, r = #b / #x is 16 n^2 / (50 p (p - 1)).
    curve = {point["processes"]: point for point in whole["curve"]}
    assert curve[32]["exchanged"] == pytest.approx(50 * 32 * 31)
    assert curve[32]["ratio"] == pytest.approx(16e4 / (50 * 32 * 31))
    assert curve[32]["ratio_low"] <= curve[32]["ratio"] <= curve[32]["ratio_high"]
    assert [got["ratio"] for got in whole["got"]] == pytest.approx([16e4 / (50 * p * (p - 1)) for p in (2, 4, 8)])
    expected = find_optimum(Work(2e6, 16e4, lambda p: 50 * p * (p - 1)), Cluster(1e9, 1e9))
    assert whole["p_max"] == pytest.approx(expected.p_max, rel=1e-4)
    assert {point["processes"]: point["beyond"] for point in whole["curve"]}[32] == 4
    assert (tmp_path / "f.png").exists()
    fabric = str(find_sample("testbed44", OPENSM))
    with_fabric = run_json(capsys, "fit", *runs, *about, "--fabric", fabric)
    assert isinstance(with_fabric["bandwidth"], float)
    assert with_fabric["bandwidth"] > 1e8
    alone = tmp_path / "alone" / OPENSM  # a folder without forwarding tables
    alone.parent.mkdir()
    alone.write_bytes(read_sample_bytes("testbed44", OPENSM))
    without_tables = run_json(capsys, "fit", *runs, *about, "--fabric", str(alone))
    assert without_tables["bandwidth"] == with_fabric["bandwidth"]
    assert main(["fit", *runs, *about, "--bandwidth", "1e9"]) == 0
    assert "beyond the data" in capsys.readouterr().out


def write_bulk(path: Path, **attributes: str) -> None:
    """Write delays of three hosts with two processes: 5 us, and 2 GB/s, but 1 GB/s from and to the last host."""
    hosts = ("a", "a", "b", "b", "c", "c")
    slow = np.array([0, 0, 0, 0, 1, 1])
    rate = np.where(slow[:, None] | slow, 1e9, 2e9)
    rate[np.equal.outer(hosts, hosts)] = 20e9
    lengths = np.array([0, 1 << 20])
    write_delays(
        path, Delays(hosts, lengths, (5e-6 + lengths[:, None, None] / rate).astype(np.float32), attributes=attributes)
    )


def test_the_bandwidth_can_be_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The slowest process determines the bandwidth. The latency is not subtracted in mode `bandwidth`."""
    write_bulk(tmp_path / "delays.nc")
    about = ("linpack", "--n", "1e4", "--l-peak", "8e9", "--delays")
    assert run_json(capsys, *about, str(tmp_path / "delays.nc"))["bandwidth"] == pytest.approx(1e9, rel=1e-3)
    write_bulk(tmp_path / "stream.nc", mode="bandwidth")
    streamed = (1 << 20) / (5e-6 + (1 << 20) / 1e9)
    assert run_json(capsys, *about, str(tmp_path / "stream.nc"))["bandwidth"] == pytest.approx(streamed, rel=1e-3)
    write_delays(tmp_path / "short.nc", Delays(("a", "b"), np.array([0]), np.ones((1, 2, 2), np.float32)))
    assert main([*about, str(tmp_path / "short.nc")]) == 5
    assert "65,536 bytes" in capsys.readouterr().err
    assert main([*about, str(tmp_path / "none.nc")]) == 3


def test_top500_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "list.csv"
    table.write_text(
        "Rank,Name,Total Cores,Rmax [TFlop/s],Nmax\n"
        '1,One,"705,024",10510,11870208\n2,"Two, evil \x1b[31m",100000,2566,3600000\n3,Three,1000,1759,\n'
        "4,Four,2000,1271,2490000\n"
    )
    document = run_json(capsys, "top500", str(table))
    systems = document["systems"]
    assert isinstance(systems, list)
    assert systems[0]["bandwidth"] == pytest.approx(10510e12 * 3 * 8 * 10 / (9 * 11870208))
    assert systems[2]["bandwidth"] is None
    assert main(["top500", str(table)]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "1 systems without N_max" in text
    assert "note: b_eff is not the bandwidth of a link" in text
    assert "note: a rank correlation is not a cause" in text


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("", ":1: expected a column rmax"),
        ("Rank,Rmax,Nmax\n1,5,6\n", ":1: expected Rmax with its unit"),
        ("Rmax GFlop/s,Nmax\n5,x\n", ":2: expected a number as nmax, found 'x'"),
        ("Rmax GFlop/s,Nmax\n,7\n", ":2: expected a number above 0 as rmax, found nothing"),
        ("Rmax GFlop/s,Nmax\n0,7\n", ":2: expected a number above 0 as rmax, found '0'"),
        ("Rmax GFlop/s,Nmax,Cores\n5,7,0.5\n", ":2: expected a whole number as cores, found '0.5'"),
        ("Rmax GFlop/s,Nmax\n\n", ":3: expected a system, found nothing"),
        ("Rmax GFlop/s,Nmax\nnan,7\n", ":2: expected a number above 0 as rmax, found 'nan'"),
    ],
)
def test_damaged_lists(content: str, where: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "list.csv"
    table.write_text(content)
    assert main(["top500", str(table)]) == 3
    assert where in capsys.readouterr().err


FIT = ["fit", "RUN", "--l-peak", "1", "--data", "n"]
SHARES = ["shares", "--operations", "1", "--data", "1", "--exchanged", "1", "--bandwidth", "1", "--peaks", "1,2"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([*FIT, "--bandwidth", "1", "--operations", "import os"], 2, "a formula"),
        ([*FIT, "--bandwidth", "1", "--operations", "n-5"], 2, "positive"),
        ([*FIT, "--operations", "n"], 2, "one of --bandwidth, --fabric and --delays"),
        ([*FIT, "--bandwidth", "1", "--operations", "n"], 5, "at least two"),
        (["fit", "1:none.otf2", *FIT[2:], "--bandwidth", "1", "--operations", "n"], 3, "none.otf2"),
        ([*SHARES, "--operation-shares", "0.5,0.6"], 2, "add up to 1"),
    ],
)
def test_what_cannot_be(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = write_runs(tmp_path)[0]
    assert main([run if each == "RUN" else each for each in arguments]) == status
    assert said in capsys.readouterr().err
