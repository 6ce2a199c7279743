# SPDX-License-Identifier: Apache-2.0
"""`ibprof-scaling predict PROFILE...` finds laws of a run's parts. The printed interval contains times of other
runs."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import CallTimes, Profile, Site
from ibprof_lab.cli.scaling import main
from ibprof_lab.scaling.measured.part_scaling import FORMS, Term, draw_part
from ibprof_lab.scaling.measured.split_prediction import predict_split, read_parts
from ibprof_testing.paths import ROOT
from ibprof_testing.samples.profiles import make_host, make_profile, make_rank

OPERATIONS = ("ALLREDUCE", "ALLTOALL")
Law = Callable[[int], tuple[float, ...]]


def strong(p: int) -> tuple[float, ...]:
    """Return seconds of computing, a sum in a tree, and messages to all ranks. The total grows from p = 13 on."""
    return 2 / p, 0.004 * np.log2(p), 0.012 * (p - 1)


def weak(p: int) -> tuple[float, ...]:
    return 1.0, 0.002 * np.log2(p), 0.02 * p**0.5


def superlinear(p: int) -> tuple[float, ...]:
    return 3 / p**1.2, 0.001, 0.001


def growing(p: int) -> tuple[float, ...]:
    return 0.1 * p, 0.001, 0.05 * p


def make_run(p: int, law: Law, noise: float = 1.0, *, sites: bool = True, program: str = "./solver") -> Profile:
    """Return a run of p ranks, without sampled calls."""
    computing, *inside = (noise * seconds for seconds in law(p))
    rank, call = (each.ravel().astype(np.int32) for each in np.meshgrid(range(p), range(2), indexing="ij"))
    times = CallTimes(
        rank=rank,
        region=np.zeros(2 * p, np.int32),
        operation=call,
        calls=np.full(2 * p, 10, np.uint64),
        time_ns=np.round(np.array(inside)[call] * 1e9).astype(np.uint64),
        error_ns=np.zeros(2 * p, np.uint64),
        site=call + 1 if sites else np.zeros(2 * p, np.int32),
    )
    stop = round((computing + sum(inside)) * 1e9)
    ranks = [make_rank(number, stop_ns=stop, has_times=True) for number in range(p)]
    made = make_profile([], ranks, [make_host("node")], operations=OPERATIONS)
    places = tuple(Site("solver.c", line, "main", "solver", name=f"solver.c:{line}") for line in (44, 51))
    return replace(made, times=times, sites=places if sites else (), command=f"{program} 100")


def write_runs(folder: Path, law: Law, counts: Sequence[int] = (2, 4, 8), **changes: Any) -> list[str]:
    paths = [folder / f"run{p}.otf2" for p in counts]
    for p, path in zip(counts, paths, strict=True):
        write_archive(make_run(p, law, **changes), path)
    return ["predict", *map(str, paths)]


def run_command(capsys: pytest.CaptureFixture[str], line: Sequence[str]) -> dict[str, Any]:
    assert main([*line, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.parametrize(
    ("law", "scaling"), [(strong, "strong"), (weak, "weak"), (superlinear, "strong"), (growing, "weak")]
)
def test_laws_are_found(law: Law, scaling: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = run_command(capsys, write_runs(tmp_path, law))
    assert document["scaling"] == scaling
    for row in document["curve"]:
        assert row["low"] < sum(law(row["processes"])) < row["high"]
        if row["processes"] <= 12:
            assert row["seconds"] == pytest.approx(sum(law(row["processes"])), rel=0.3)
    assert document["range"]["processes"] == [2, 32]
    assert document["range"]["fitted"] == [2, 4, 8]


def test_the_call_that_stops_scaling_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = write_runs(tmp_path, strong, (1, 2, 4, 8))
    first = run_command(capsys, line)["first_to_stop"]
    exact = next(p for p in range(1, 33) if strong(p)[2] >= 2.0 / p)
    assert (first["operation"], first["site"], first["kind"]) == ("ALLTOALL", "solver.c:51", "unsplit")
    assert first["p_half"]["low"] <= exact <= (first["p_half"]["high"] or 33)
    assert first["p_half"]["value"] == pytest.approx(exact, rel=0.2)
    assert main([*line, "--figure", str(tmp_path / "curve.png")]) == 0
    text = capsys.readouterr().out.replace("\n", " ")
    assert "MPI_Alltoall at solver.c:51 stops scaling first, at 1" in text
    assert "32 processes are 4 times as many as in the largest run" in text
    assert "predictions do not hold for more than 32 processes" in text
    assert (tmp_path / "curve.png").stat().st_size > 10_000


def test_two_sizes_have_wide_intervals_and_say_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    widths = {}
    for counts in ((2, 4), (2, 4, 6, 8)):
        document = run_command(capsys, [*write_runs(tmp_path, strong, counts), "--processes", "16"])
        row = document["curve"][0]
        assert row["low"] < sum(strong(16)) < row["high"]
        widths[counts] = row["high"] / row["low"]
        assert any("record a third" in note for note in document["notes"]) == (counts == (2, 4))
    assert widths[2, 4] > 2 * widths[2, 4, 6, 8]


def test_held_out_runs_with_noise_lie_inside(tmp_path: Path) -> None:
    """Times scatter by 5%. At least 9 of 10 runs with other numbers of processes lie inside the interval."""
    rng = np.random.default_rng(7)
    inside, widths = [], []
    for law, scaling in ((strong, "strong"), (weak, "weak"), (superlinear, "strong"), (growing, "weak")):
        for number in range(5):
            runs = []
            for p in (2, 4, 4, 8):
                write_archive(make_run(p, law, rng.lognormal(0, 0.05)), tmp_path / f"{law.__name__}{number}.otf2")
                runs.append(read_parts(tmp_path / f"{law.__name__}{number}.otf2"))
            for row in predict_split(runs, scaling, False, [3, 12, 16, 32])["curve"]:
                seconds = sum(law(row["processes"])) * rng.lognormal(0, 0.05)
                inside.append(row["low"] <= seconds <= row["high"])
                widths.append(row["high"] / row["low"])
    assert np.mean(inside) >= 0.9
    assert np.median(widths) < 4


def test_profiles_without_sites(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = run_command(capsys, write_runs(tmp_path, strong, sites=False))
    assert {place["name"] for place in document["places"]} >= {"MPI_Alltoall", "computing, outside MPI"}


def test_problem_sizes_show_the_scaling(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, *paths = write_runs(tmp_path, weak)
    assert run_command(capsys, ["predict", *(f"1e6:{path}" for path in paths)])["scaling"] == "strong"
    grown = ["predict", *(f"{2**number}:{path}" for number, path in enumerate(paths))]
    assert run_command(capsys, grown)["scaling"] == "weak"
    assert main([*grown, "--scaling", "strong"]) == 2
    assert main(["predict", f"1:{paths[0]}", *paths[1:]]) == 2
    assert main(["predict", *paths, "--operations", "n"]) == 2
    assert main(["predict", *paths, "--placement", "spread"]) == 2


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"command": "./other 100"}, "expected a run of 'solver' as"),
        ({"ranks": tuple(make_rank(rank, stop_ns=10**9) for rank in range(4))}, "found 4 of 4 ranks without it"),
        ({"ranks": tuple(make_rank(rank, stop_ns=None, has_times=True) for rank in range(4))}, "reached its end"),
        ({"ranks": ()}, "expected a profile of MPI's ranks, found no rank"),
    ],
)
def test_profiles_that_do_not_belong_together(
    changes: dict[str, Any], found: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = write_runs(tmp_path, strong, (2, 8))
    write_archive(replace(make_run(4, strong), **changes), tmp_path / "odd.otf2")
    assert main([*line, str(tmp_path / "odd.otf2")]) == 3
    error = capsys.readouterr().err
    assert "odd.otf2: expected" in error
    assert found in error


def test_what_it_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = write_runs(tmp_path, strong, (4,))
    write_archive(make_run(4, strong, 1.01), tmp_path / "again.otf2")
    assert main([*line, str(tmp_path / "again.otf2")]) == 3
    assert "expected runs with two or more different numbers of processes, found 2 with 4" in capsys.readouterr().err
    assert main([*write_runs(tmp_path, strong), "--processes", "64"]) == 5
    assert "no prediction: 64 processes are beyond the range of 2 to 32" in capsys.readouterr().err


@pytest.mark.parametrize("form", [*FORMS[1:12], FORMS[-1]])
def test_a_form_is_recovered(form: tuple[Term, ...]) -> None:
    p = np.array([2.0, 4, 8, 16])
    values = [
        sum(0.5 * at**power * np.log2(at) ** logs * (1 - 1 / at) ** others for power, logs, others in form)
        for at in (p, np.array([64.0]))
    ]
    drawn = draw_part(p, values[0], 0 * p, 0.0, np.array([64.0]), np.linspace(0, 1, 400), np.random.default_rng(1))
    low, high = np.quantile(drawn.seconds[:, 0], (0.025, 0.975))
    assert low < values[1][0] < high


def test_ranks_that_were_not_recorded_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = write_runs(tmp_path, strong, (2, 8))
    run = make_run(4, strong)
    write_archive(replace(run, ranks=run.ranks[:3]), tmp_path / "three.otf2")
    document = run_command(capsys, [*line, str(tmp_path / "three.otf2")])
    note = f"{tmp_path / 'three.otf2'}: times are from 3 of 4 ranks: the others were not recorded"
    assert note in document["notes"]
    assert document["range"]["fitted"] == [2, 4, 8]


@pytest.mark.parametrize(("fitted", "held_out"), [((1, 4), 16), ((1, 4, 16), 64), ((4, 16, 64), 256)])
def test_published_times_of_linpack_lie_inside(fitted: tuple[int, ...], held_out: int) -> None:
    """HPL on an AlphaServer SC, with one matrix for all numbers of processes: netlib.org/benchmark/hpl/results.html."""
    seconds: dict[int, float] = {}
    with (ROOT / "benchmarks" / "data" / "hpl_shared.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["system"].startswith("AlphaServer"):
                ranks = int(row["rows"]) * int(row["columns"])
                seconds.setdefault(ranks, 2 / 3 * float(row["n"]) ** 3 / float(row["gflops"]) / 1e9)
    p = np.array(fitted, float)
    values = np.array([seconds[each] for each in fitted])
    rng = np.random.default_rng(1)
    drawn = draw_part(p, values, 0 * p, 0.08, np.array([float(held_out)]), rng.random(2000), rng)
    low, high = np.quantile(drawn.seconds[:, 0], (0.025, 0.975))
    assert low < seconds[held_out] < high
    assert high / low < (40 if len(fitted) == 2 else 2)


def test_amdahls_law_is_found(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One rank computes alone while the other ranks wait. The mean wait is 0.15 (1 - 1/p) s."""

    def amdahl(p: int) -> tuple[float, ...]:
        return 3.15 / p, 0.15 * (1 - 1 / p), 0.0

    document = run_command(capsys, [*write_runs(tmp_path, amdahl), "--processes", "32"])
    assert document["curve"][0]["seconds"] == pytest.approx(sum(amdahl(32)), rel=0.2)
    assert "(1 - 1/p)" in next(part["form"] for part in document["parts"] if part["operation"] == "ALLREDUCE")


def test_a_short_call_of_one_run_does_not_hide_the_others() -> None:
    """A call takes 0.5 s in five runs, and 0.01 s in another run on 2 ranks."""
    p, rng = np.array([2.0, 2, 4, 4, 8, 8]), np.random.default_rng(1)
    seconds = np.array([0.01, 0.5, 0.5, 0.5, 0.5, 0.5])
    drawn = draw_part(p, seconds, np.full(6, 0.01), 0.08, np.array([8.0]), rng.random(2000), rng)
    assert np.median(drawn.seconds) == pytest.approx(0.5, rel=0.2)


def test_runs_that_no_formula_fits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """On 4 ranks, a call takes 60 times as long as on 2 ranks: no formula grows so fast."""

    def jump(p: int) -> tuple[float, ...]:
        return 0.5, 0.03 if p < 4 else 1.8, 0.001

    line = [*write_runs(tmp_path, jump, (1, 2, 4)), "--scaling", "weak"]
    for wanted in ([], ["--processes", "8"]):
        assert main([*line, *wanted]) == 5
        error = capsys.readouterr().err
        assert "no prediction: no formula fits all runs. With 4 processes the best formulas give " in error
        assert "and the runs took 2.3 s. Repeat the runs, or record runs with other numbers of processes" in error


def test_the_same_run_twice_is_no_repeated_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = write_runs(tmp_path, strong)
    (tmp_path / "again").symlink_to(line[1])
    fit = ["fit", "--operations", "n", "--data", "n", "--l-peak", "1", "--bandwidth", "1", f"4:{line[1]}"]
    for given, first in ((line, ""), (fit, "4:")):
        assert main([*given, f"{first}{tmp_path / 'again'}"]) == 2
        assert f"again: expected a further run, found the same run as {line[1]}" in capsys.readouterr().err


def test_problem_sizes_that_show_no_scaling(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Problem sizes must grow, or all be equal. If the computing times contradict the sizes, a note says so."""
    _, two, four, eight = write_runs(tmp_path, strong)
    assert main(["predict", f"4:{two}", f"2:{four}", f"1:{eight}"]) == 3
    assert "run4.otf2: expected a problem size above 4, or equal sizes in all runs, found 2" in capsys.readouterr().err
    document = run_command(capsys, ["predict", f"1:{two}", f"2:{four}", f"4:{eight}"])
    note = "the time of computing shows strong scaling, not weak: check --scaling and the problem sizes"
    assert note in document["notes"]
    assert note not in run_command(capsys, ["predict", two, four, eight])["notes"]
