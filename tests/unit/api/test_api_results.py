# SPDX-License-Identifier: Apache-2.0
"""Each result of the Python API has a `repr` of one short line. Notebooks show names in results as plain text."""

from __future__ import annotations

from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import ibprof
import ibprof_converter as ib
import ibprof_lab as lab
from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_summary import describe_briefly
from ibprof.text.notebook_html import render_html
from ibprof.verdict.verdict_rules import NOT_THERE
from ibprof_converter.analysis.pipeline_stages import judge_loads
from ibprof_converter.traffic.traffic_data import describe_origin
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

HOSTILE = "<script>\nx"
RUN = make_profile(
    [Count(0, 1, 5000, operation=0), Count(1, 0, 70, operation=1), Count(0, 9, 30)],
    [make_rank(0, 0), make_rank(1, 1)],
    [make_host("host01"), make_host(HOSTILE)],
    operations=(HOSTILE, "SEND"),
    world_size=3,
)
DUAL_RAIL = [find_sample(f"dualrail/{rail}", IBDIAGNET) for rail in ("rail1", "rail2")]

STUDY = """\
fabric: xgft:2:4,4:1,2@100
servers: 4
effort: {messages: 5, background: 2}
seeds: 1
measured: mpi
jobs:
  - {name: mpi, role: pairs, bytes: 4 KiB, interval: 50 us, share: 0.5}
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("results")
    write_archive(RUN, folder / "run.otf2")
    (folder / "lids.csv").write_text("src_lid,dst_lid,bytes\n1,2,3000\n")
    (folder / "counters.csv").write_text("guid,port,bytes\n0x0002c903000a0000,1,70000\n")
    (folder / "study.yaml").write_text(STUDY)
    (folder / "two\nlines").mkdir()
    odd = folder / "two\nlines" / "ibdiagnet.lst"
    odd.write_bytes(find_sample("testbed44", IBDIAGNET).read_bytes())
    odd.with_suffix(".fdbs").write_bytes(find_sample("testbed44", "ibdiagnet.fdbs").read_bytes())
    fabric = ib.read_fabric(odd)
    loads = ib.load_links(fabric, RUN)
    return {
        "profile": ibprof.load_profile(str(folder / "run.otf2")),
        "fabric": fabric,
        "rails": ib.read_fabric(*DUAL_RAIL),
        "health": ib.check(odd),
        "ranks": ib.read_traffic(RUN),
        "pattern": ib.read_traffic("pattern:all-to-all", fabric),
        "lids": ib.read_traffic(folder / "lids.csv"),
        "counters": ib.read_traffic(folder / "counters.csv", fabric),
        "loads": loads,
        "placed": loads.placed,
        "rail loads": ib.load_links(ib.read_fabric(*DUAL_RAIL), "pattern:shift:1", by="operation"),
        "report": ib.report(loads),
        "report without fabric": ib.report(RUN),
        "diff": ib.diff(RUN, RUN, fabric, fail_on="bytes>1"),
        "place": ib.place(fabric, RUN, placement="packed", seconds=0.02),
        "view": ib.view(loads),
        "study": lab.simulate(folder / "study.yaml", str(folder / "study")),
    }


NAMES = (
    "profile", "fabric", "rails", "health", "ranks", "pattern", "lids", "counters", "loads", "placed", "rail loads",
    "report", "report without fabric", "diff", "place", "view", "study",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_one_line_and_shows_itself(name: str, results: dict[str, object]) -> None:
    result = results[name]
    line = repr(result)
    assert line.startswith(f"<{type(result).__name__}")
    assert line.isprintable()
    assert len(line) < 300
    formatter = InteractiveShell.instance().display_formatter
    assert formatter is not None
    data, _ = formatter.format(result)  # type: ignore[no-untyped-call]
    assert "<script>" not in data["text/html"]
    assert type(result) in render_html.registry  # the result has a table, not the default HTML of objects
    assert len(data["text/html"]) > 60


def test_all_results_are_tried(results: dict[str, object]) -> None:
    assert set(NAMES) == set(results)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("profile", ("2 of 3 ranks recorded, on 2 host(s)",)),
        ("ranks", ("2 flows of 5.07 kB between 3 ranks",)),
        ("lids", ("1 flows of 3 kB between LIDs",)),
        ("counters", ("70 kB sent by 1 ports",)),
        ("diff", ("1 of 1 thresholds crossed",)),
    ],
)
def test_a_line_says_how_much_there_is(name: str, parts: tuple[str, ...], results: dict[str, object]) -> None:
    assert all(part in repr(results[name]) for part in parts), repr(results[name])


def test_traffic_shows_operations_and_what_has_no_rank(results: dict[str, object]) -> None:
    page = render_html(results["ranks"])
    assert "<td>&lt;script&gt;\\nx</td><td>5 kB</td>" in page
    assert "<td>MPI_Send</td><td>70 B</td>" in page
    assert "not mapped: 30 B: peer is no rank of MPI_COMM_WORLD" in page


def test_simulate_leaves_the_files_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    lab.simulate(tmp_path / "study.yaml", tmp_path / "out")
    assert {"results.csv", "means.csv", "summary.json", "links.csv", "view.html", "run.png"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }


def test_a_title_leaves_out_where_bytes_were_measured() -> None:
    loads = ib.load_links(ib.read_fabric("xgft:1:4:1"), RUN, placement="packed")
    assert describe_origin(loads.placed) == f"profile {RUN.name}, measured in Open MPI's PML"
    assert loads.title.endswith(f"{RUN.name} on xgft:1:4:1")


def test_a_run_on_the_hosts_of_a_placement_is_missing() -> None:
    loads = ib.load_links(ib.read_fabric("xgft:1:4:1"), RUN, placement="packed")
    assert NOT_THERE in judge_loads(loads).verdict.missing


def test_what_was_recorded_has_calls_as_the_standard_writes_them() -> None:
    assert "MPI_Send (70 B)" in list(describe_briefly(RUN))[-1]
