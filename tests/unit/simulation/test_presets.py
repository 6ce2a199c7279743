# SPDX-License-Identifier: Apache-2.0
"""Quick forms of presets, on a small machine, have the thesis's effects, and a chart for each measured job."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ibprof_lab.cli.sim import main
from ibprof_lab.simulation.reports.charts import draw_means
from ibprof_lab.simulation.study.cell import Outcome, make_cells
from ibprof_lab.simulation.study.result_tables import average_seeds, list_results, read_means, write_table
from ibprof_lab.simulation.workload.workloads import IO, MPI
from ibprof_testing.drawing import without_drawing
from ibprof_testing.samples.simulated_jobs import KIB, MACHINE, MIB, SMALL, io, latency_of, mpi


@pytest.fixture(scope="module")
def every_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the results of the presets' quick forms on a small machine."""
    folder = tmp_path_factory.mktemp("studies")
    with without_drawing():
        for name in ("interference", "placement", "scaling", "throttle"):
            assert main(["study", name, *MACHINE, "-o", str(folder / name)]) == 0
    return folder


def test_the_reduced_survey_shows_every_shape(every_study: Path) -> None:
    """With 4 clients per server, the thesis (section 5.4) has thresholds of 1.0 ms (4 MiB) and 0.13 ms (512 KiB)."""
    means = read_means([every_study / "interference" / "means.csv"])

    def find(column: str, measured: str, io_pattern: tuple[int, float], mpi_pattern: tuple[int, float] | None) -> float:
        wanted = {"measured": measured, "io_bytes": io_pattern[0], "io_interval_us": io_pattern[1]}
        if mpi_pattern:
            wanted |= {"mpi_bytes": mpi_pattern[0], "mpi_interval_us": mpi_pattern[1]}
        run = "interference" if mpi_pattern else "baseline"
        (row,) = (row for row in means if row["run"] == run and all(row[key] == value for key, value in wanted.items()))
        return float(row[column])

    # At intervals below the congestion threshold, I/O requests take longer. Requests of 4 KiB have no threshold.
    alone = {
        size: find("mean_us", IO, pattern, None) for size, pattern in {4: (4 * MIB, 5000), 1: (512 * KIB, 500)}.items()
    }
    assert find("mean_us", IO, (4 * MIB, 100), None) > 2 * alone[4]
    assert find("mean_us", IO, (512 * KIB, 100), None) > 1.3 * alone[1]
    assert find("mean_us", IO, (4 * KIB, 1), None) < 1.5 * find("mean_us", IO, (4 * KIB, 500), None)
    # Congested I/O slows MPI messages, but less at short intervals of these messages.
    # Large messages slow down small I/O requests.
    disturbed = [find("slowdown", MPI, (4 * MIB, 100), (4 * KIB, interval)) for interval in (500, 1)]
    assert disturbed[0] > disturbed[1] > 1.5
    assert find("slowdown", IO, (4 * KIB, 500), (4 * MIB, 100)) > 1.1
    # MPI does not slow congested I/O further.
    assert find("slowdown", IO, (4 * MIB, 100), (4 * MIB, 5000)) == pytest.approx(1, abs=0.15)


def test_every_study_says_what_it_found(every_study: Path) -> None:
    found = json.loads((every_study / "placement" / "summary.json").read_text())["mpi_slowdown"]
    assert found["random-node"] > found["random-switch"] == pytest.approx(1, abs=0.05)
    throttled = json.loads((every_study / "throttle" / "summary.json").read_text())
    slow = [throttled["mpi_slowdown"][f"io_window_us={window}"] for window in (0, 2000, 5000)]
    assert slow[0] > slow[1] > slow[2] == pytest.approx(1, abs=0.2)
    with (every_study / "throttle" / "whole.csv").open(newline="") as file:
        whole = [row for row in csv.DictReader(file) if (row["window_us"], row["run"]) == ("3000.0", "interference")]
    requests = -(-4_300_000_000 // (4 * MIB)) // 20
    assert len(whole) == 32
    # A request starts every 3 ms. The tolerance of 2% is for jitter and for the last request's time.
    assert all(float(row["whole_ms"]) == pytest.approx((requests - 1) * 3, rel=0.02) for row in whole)


def texts_of(figure: Path) -> str:
    return " ".join(re.findall(r"<!-- (.*?) -->", figure.read_text()))


def test_every_measured_job_of_every_study_has_a_chart(every_study: Path, tmp_path: Path) -> None:
    assert main(["charts", str(every_study), "-o", str(tmp_path), "--format", "svg"]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    both = {f"{study}-{job}.svg" for study in ("interference", "scaling", "throttle") for job in ("io", "mpi")}
    assert names == {*both, "placement-mpi.svg"}
    survey = texts_of(tmp_path / "interference-mpi.svg")
    for words in ("mpi 4 KiB, io 4 MiB", "mpi 4 MiB, io 4 KiB", "mpi interval 500 µs", "io interval 100 µs"):
        assert words in survey
    assert {"random-node", "random-switch"} <= set(texts_of(tmp_path / "placement-mpi.svg").split())


def test_charts_show_what_is_missing_and_of_fewer_seeds(every_study: Path, tmp_path: Path) -> None:
    means = [{**row, "seeds": 5.0, "mean_half_us": 1.0} for row in read_means([every_study / "scaling" / "means.csv"])]
    (chart, _) = draw_means(means, tmp_path, "scaling", "svg")
    assert "whisker" in texts_of(chart)
    assert "hollow" not in texts_of(chart)
    disturbed = [row for row in means if (row["measured"], row["run"]) == (IO, "interference")]
    disturbed[0]["seeds"] = 1.0
    disturbed[1] |= dict.fromkeys(("mean_us", "slowdown")) | {"note": "1 of 1 seeds: no steady state: it still grows"}
    disturbed[2] |= dict.fromkeys(("mean_us", "slowdown")) | {"note": "not simulated yet"}
    (chart, _) = draw_means(means, tmp_path, "scaling", "svg")
    assert chart.name == "scaling-io.svg"
    assert all(words in texts_of(chart) for words in ("hollow: fewer seeds", "x: not simulated", "~: no steady state"))
    assert draw_means([{**row, "mean_us": None} for row in means], tmp_path, "none") == []


def test_what_has_no_chart_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["charts", str(tmp_path), "-o", str(tmp_path)]) == 3
    assert "means.csv" in capsys.readouterr().err
    for text in ("measured,run\n", "measured,run,seeds,mean_us,slowdown\nio,baseline,1,1,2\n"):
        (tmp_path / "few.csv").write_text(text)
        assert main(["charts", str(tmp_path / "few.csv"), "-o", str(tmp_path / "figures")]) == 3
        assert "few.csv:1: expected columns" in capsys.readouterr().err
    write_table(tmp_path / "means.csv", average_seeds(list_results(make_cells(SMALL, [io(), mpi()], MPI, [1]), {})))
    assert main(["charts", str(tmp_path / "means.csv"), "-o", str(tmp_path / "figures")]) == 0
    assert "nothing is drawn, since no mean settled" in capsys.readouterr().err


def test_jobs_of_any_name_have_charts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The names are invalid as file names and formulas, and the tables of two jobs would have the same file name."""
    name = "../_$\\frac{ \u4e2d"
    cells = make_cells(SMALL, [io(), replace(mpi(), name=name)], name, [1])
    outcomes = {cell.key: Outcome(cell.key, latency_of(5e3), 1, 0.1, {}) for cell in cells}
    for folder in ("one/study", "two/study"):
        (tmp_path / folder).mkdir(parents=True)
        write_table(tmp_path / folder / "means.csv", average_seeds(list_results(cells, outcomes)))
    assert main(["charts", str(tmp_path / "one"), str(tmp_path / "two"), "-o", str(tmp_path / "figures")]) == 0
    files = capsys.readouterr().out.splitlines()
    assert [Path(each).name for each in files] == ["study-..-_-frac-.png", "study-2-..-_-frac-.png"]
    assert all(Path(each).stat().st_size > 5_000 for each in files)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("placement", "shared"), [("random-node", range(2, 9)), ("random-switch", range(2))])
def test_the_run_that_is_shown_is_as_the_command_says(tmp_path: Path, placement: str, shared: range) -> None:
    """The files of the shown run have the placement of the command line, not the two placements of the study.

    `shared`: numbers of leaves that both jobs may share.
    """
    assert main(["study", "placement", *MACHINE, "--job-placement", placement, "-o", str(tmp_path)]) == 0
    leaves: dict[str, set[int]] = {"io": set(), "mpi": set()}
    with (tmp_path / "clients.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            leaves[row["job"]].add((int(re.sub(r"\D*(\d+).*", r"\1", row["name"])) - 1) // 8)
    assert len(leaves["io"] & leaves["mpi"]) in shared
