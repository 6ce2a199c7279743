# SPDX-License-Identifier: Apache-2.0
"""Check that README.md agrees with the tables, that presets agree with the thesis, and that all figures are drawn."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ibprof_lab.cli.sim import main
from ibprof_lab.simulation.measure.message_latency import SURVEY
from ibprof_lab.simulation.study.cell import make_cells
from ibprof_lab.simulation.study.presets import PRESETS
from ibprof_lab.simulation.study.result_tables import average_seeds, list_results, read_means
from ibprof_lab.simulation.study.simulated_machine import MachineOptions
from ibprof_lab.simulation.study.study_file import plan_preset
from ibprof_testing import processes
from ibprof_testing.drawing import without_drawing

HERE = Path(__file__).resolve().parent
PAGE = HERE / "README.md"

# 9 leaf switches of 8 hosts: one for the servers, four for each job. A server has as many clients as in the thesis.
MACHINE = ["--fabric", "xgft:2:8,9:1,8@100", "--servers", "8", "--workers", "1", "--quick"]


def load(name: str) -> ModuleType:
    """Import a module of the study, with the study's folder in sys.path."""
    sys.path.insert(0, str(HERE))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(HERE))


def test_tables_are_those_of_the_results() -> None:
    done = processes.run([sys.executable, HERE / "write_page.py", "--check"])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("chapter", ["chapter-5", "chapter-6"])
def test_no_claim_is_left_out_or_decided_without_results(chapter: str) -> None:
    table = re.search(rf"<!-- table: {chapter} -->\n(.*?)<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert table
    rows = [line.split("|") for line in table[1].splitlines()[2:]]
    assert len(rows) >= 10
    for row in rows:
        assert (row[4].strip() == "not simulated yet") <= (row[5].strip() == "")


def test_the_page_has_every_fact_and_only_those() -> None:
    page = PAGE.read_text()
    marks = re.findall(r"<!-- (?:table|fact): ([\w-]+) -->\n?(.*?)<!-- end -->", page, re.DOTALL)
    assert all(text.strip() for _, text in marks)
    assert page.count("<!-- end -->") == len(marks) == page.count("<!-- table: ") + page.count("<!-- fact: ")
    # A comment at the beginning of a line ends the paragraph.
    assert not re.search(r"^\s*<!-- fact: ", page, re.MULTILINE)


def test_the_rule_of_the_page_by_its_own_examples() -> None:
    results = load("thesis_results")
    assert [results.adds_as(simulated, 1.9) for simulated in (1.71, 1.73, 2.07, 2.09)] == [False, True, True, False]
    assert [results.adds_as(simulated, 1.112) for simulated in (1.088, 1.091, 1.133, 1.136)] == [
        False,
        True,
        True,
        False,
    ]
    assert [results.is_none(simulated) for simulated in (0.89, 0.91, 1.09, 1.11)] == [False, True, True, False]
    assert [results.is_some(simulated) for simulated in (0.5, 1.09, 1.11)] == [False, False, True]


def test_a_pass_that_its_interval_does_not_bear_is_borderline() -> None:
    results = load("thesis_results")

    def judge(*figures: tuple[float, float]) -> object:
        rows = [{"slowdown": mean, "slowdown_half": half} for mean, half in figures]
        return results.judge(lambda found, printed=1.9: results.adds_as(found, printed), *rows)

    assert [judge((1.91, 0.05)), judge((1.91, 0.3)), judge((2.2, 0.3))] == [True, "borderline", False]
    assert [judge((1.9, 0.01), (1.9, 0.01)), judge((1.9, 0.01), (1.9, 0.3))] == [True, "borderline"]


def test_an_order_bears_steps_back_within_their_intervals() -> None:
    results = load("thesis_results")

    def grows(*means: float) -> bool:
        return bool(results.grows([{"slowdown": mean, "slowdown_half": 0.1} for mean in means]))

    assert grows(1, 2, 3)
    assert grows(1, 2, 1.9, 3)
    assert not grows(1, 2, 1.7, 3)
    assert not grows(1.1, 1)


def test_the_preset_of_the_survey_is_table_5_1() -> None:
    patterns = load("thesis_patterns")
    table = [(size, interval) for size, row in patterns.TABLE_5_1.items() for interval in row]
    assert len(table) == 18
    plan = plan_preset("interference", MachineOptions(None), [1], False)
    setting = plan.setting
    assert (setting.fabric, setting.servers, setting.effort) == (patterns.THESIS_FABRIC, 72, SURVEY)
    wanted = {
        cell
        for io in table
        for mpi in table
        for measured in ("io", "mpi")
        for cell in make_cells(setting, [patterns.io(*io), patterns.mpi(*mpi)], measured, [1])
    }
    assert set(plan.cells) == wanted
    alone = {cell.key for cell in plan.cells if cell.is_alone}
    together = {cell.key for cell in plan.cells if not cell.is_alone}
    assert (len(alone), len(together)) == (36, 648)


@pytest.mark.parametrize("study", sorted(path.stem for path in (HERE / "tables").glob("*.csv")))
def test_tables_have_the_rows_of_their_presets(study: str) -> None:
    """The tables have the same simulations as the presets, compared by all columns that describe a simulation."""
    cells = [cell for cell in load("simulate").make_cells(study) if cell.seed == 1]
    described = list(list_results(cells[:1], {})[0])
    columns = described[: described.index("seed")]

    def describe(row: dict[str, object]) -> tuple[object, ...]:
        return tuple(row[column] for column in columns)

    rows = average_seeds(list_results(list({cell.key: cell for cell in cells}.values()), {}))
    assert {describe(row) for row in rows} == {describe(row) for row in read_means([HERE / "tables" / f"{study}.csv"])}


def test_seeds_of_a_reading_share_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    page, claim = load("write_page"), "5.10: times of I/O alone with 25, 50, 75% of the hosts are 1 : 1.8 : 3"
    found = [("2", "0", "b"), ("1", "1", "a")]
    rows = [{"inputs": "usual", "claim": claim, "seed": at, "passes": ok, "figures": said} for at, ok, said in found]
    monkeypatch.setattr(page, "read_table", lambda: rows)
    assert page.write_unstated().splitlines()[2:] == [f"| {claim} | usual | a / b | pass in 1 of 2 seeds |"]


def test_a_request_takes_the_servers_time_too() -> None:
    unstated, patterns = load("unstated"), load("thesis_patterns")
    jobs = [patterns.io(4096, 100 * patterns.US), patterns.mpi()]
    usual, served = (
        unstated.Laboratory(unstated.Inputs(server_ns=each), 1).run(jobs, "io", alone=True, counts=(0, 2))
        for each in (0.0, 1.0)
    )
    assert served.mean - usual.mean == pytest.approx(4.096, abs=0.2)
    assert served.cycle_us - usual.cycle_us == pytest.approx(4.096, rel=0.3)


@pytest.fixture(scope="module")
def every_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with results of all studies that have figures, simulated with --quick on a small machine."""
    folder = tmp_path_factory.mktemp("studies")
    for name in PRESETS:
        if name != "parameters":
            with without_drawing():
                assert main(["study", name, *MACHINE, "-o", str(folder / name)]) == 0
    return folder


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    return load("thesis_figures")


def texts_of(figure: Path) -> str:
    return " ".join(re.findall(r"<!-- (.*?) -->", figure.read_text()))


@pytest.mark.full  # simulates all studies, which is slow; the next test draws the same figures from stored tables
def test_all_figures_are_drawn_from_stored_results(every_study: Path, figures: ModuleType, tmp_path: Path) -> None:
    written, missing, _ = figures.draw([every_study], tmp_path)
    assert {path.name for path in written} == {f"figure-{name}.png" for name in figures.FIGURES}
    assert missing == []


def test_all_figures_are_drawn_from_the_tables(figures: ModuleType, tmp_path: Path) -> None:
    written, missing, others = figures.draw([HERE / "tables"], tmp_path)
    assert len(written) == len(figures.FIGURES)
    assert missing == []
    assert len(others) == 11  # machines of the study `parameters`


def test_a_folder_of_another_setting_is_drawn_and_says_so(figures: ModuleType, tmp_path: Path) -> None:
    for study, options, figure, said in (
        ("placement", ["--adaptive"], "6.2", "adaptive routing"),
        ("throttle", ["--server-placement", "spread"], "6.7", "spread servers"),
    ):
        with without_drawing():
            assert main(["study", study, *MACHINE, *options, "-o", str(tmp_path / study)]) == 0
        figures.draw([tmp_path / study], tmp_path / "figures", "svg")
        assert said in texts_of(tmp_path / "figures" / f"figure-{figure}.svg")
    assert "not simulated" in texts_of(tmp_path / "figures" / "figure-6.2.svg")  # panel A: --quick leaves it out


def test_figures_tell_what_is_missing_and_of_fewer_seeds(figures: ModuleType, tmp_path: Path) -> None:
    means = [{**row, "seeds": 5.0, "mean_half_us": 1.0} for row in read_means([HERE / "tables" / "scaling.csv"])]
    figures.draw_figures(figures.choose_machine(means)[0], tmp_path, "svg")
    assert "whisker" in texts_of(tmp_path / "figure-5.10.svg")
    assert "hollow" not in texts_of(tmp_path / "figure-5.10.svg")
    disturbed = [row for row in means if (row["measured"], row["run"]) == ("io", "interference")]
    disturbed[0]["seeds"] = 1.0
    disturbed[1] |= dict.fromkeys(("mean_us", "slowdown")) | {
        "note": "1 of 1 seeds: no steady state: the mean still changes, +17% ± 5"
    }
    disturbed[2] |= dict.fromkeys(("mean_us", "slowdown")) | {"note": "not simulated yet"}
    figures.draw_figures(figures.choose_machine(means)[0], tmp_path, "svg")
    told = texts_of(tmp_path / "figure-5.10.svg")
    assert all(word in told for word in ("hollow: fewer seeds", "x: not simulated", "~: no steady state"))
    empty, _, _ = figures.choose_machine([{**row, "mean_us": None, "slowdown": None} for row in means])
    assert figures.draw_figures(empty, tmp_path) == ([], list(figures.FIGURES))


def test_of_two_machines_the_one_with_most_results_is_drawn(figures: ModuleType) -> None:
    means = read_means([HERE / "tables" / "placement.csv"])
    kept, drawn, others = figures.choose_machine([*means, {**means[0], "lane_bytes": 32768.0}])
    assert len(kept) == len(means)
    fabric = means[0]["fabric"]
    assert (drawn, others) == (f"{fabric} with lane_bytes 65536", [f"{fabric} with lane_bytes 32768"])
    assert len(figures.merge_means([means, means])) == len(means)


def test_other_studies_intervals_are_not_those_of_4_mb_against_4_mb(figures: ModuleType, tmp_path: Path) -> None:
    means = [row for name in ("detail", "scaling") for row in read_means([HERE / "tables" / f"{name}.csv"])]
    assert 2000.0 in {row["io_interval_us"] for row in means} >= {128000.0}
    figures.draw_figures(figures.choose_machine(means)[0], tmp_path, "svg")
    told = texts_of(tmp_path / "figure-5.4.svg")
    assert "2 ms" in told
    assert "128 ms" not in told
