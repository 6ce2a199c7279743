# SPDX-License-Identifier: Apache-2.0
"""`ibprof-sim` writes the expected files of a study, and ends with the expected exit status."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof_lab.cli.sim import main
from ibprof_lab.simulation.study import result_tables
from ibprof_lab.simulation.study.study_file import read_study
from ibprof_lab.simulation.study.sweep import STORE
from ibprof_testing.samples.fabrics import OPENSM, read_sample_bytes
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank
from ibprof_testing.samples.study_files import write_study

pytestmark = pytest.mark.usefixtures("undrawn")


def test_a_study_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path)
    output = tmp_path / "out"
    assert main(["run", str(study), "-o", str(output), "--workers", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["mpi_slowdown"] > 1.5
    summary = json.loads((output / "summary.json").read_text())
    assert [cell["run"] for cell in summary["cells"]] == ["baseline", "interference"]
    assert all(cell["is_settled"] and cell["mean_us"] > 1 for cell in summary["cells"])
    assert "cpu_seconds" not in summary["cells"][0]  # cpu_seconds differs from run to run
    with (output / "links.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["job"] for row in rows if row["a_bytes"] != "0"} == {"io", "mpi"}
    # If all results exist, the continued study simulates nothing and gives the same files.
    stored = (output / STORE).read_text()
    (output / STORE).write_text(stored + '{"key": "cut in the mid')
    assert main(["run", str(study), "-o", str(output)]) == 0
    assert (output / STORE).read_text().startswith(stored)
    assert json.loads((output / "summary.json").read_text()) == summary
    # A simulation is repeated if the stored line is valid JSON but not a valid result.
    for damaged in (
        stored.replace('"mean": ', '"mean": "about ', 1).replace(', "half"', '", "half"', 1),
        stored.replace('"whole_ns": {}', '"whole_ns": [1]', 1),
        stored.replace('"mean": ', '"mean": 9'),
        stored + "[" * 100_000 + "\n",
    ):
        assert damaged != stored
        (output / STORE).write_text(damaged)
        assert main(["run", str(study), "-o", str(output), "--workers", "1"]) == 0
        assert json.loads((output / "summary.json").read_text()) == summary


def test_a_job_by_itself_says_what_its_messages_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [{"name": "mpi", "role": "ring", "bytes": 4096, "share": 1}]
    study = write_study(tmp_path, fabric="xgft:1:4:1@100", servers=0, jobs=jobs)
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    # Expected latency: two links at 12.5 GB/s, and 90 ns for a switch.
    assert json.loads(capsys.readouterr().out) == {"mpi_alone_us": pytest.approx(2 * 4.096 / 12.5 + 0.09, abs=2e-3)}


def test_virtual_lanes_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A ring of six switches needs two lanes, which ibprof-sim reports.

    For a tree, which needs one lane, ibprof-sim reports nothing.
    """
    jobs = [{"name": "mpi", "role": "ring", "bytes": 4096, "share": 1}]
    for fabric, lanes in (("torus:6:1@100", 2), ("xgft:1:4:1@100", 1)):
        study = write_study(tmp_path, fabric=fabric, servers=0, jobs=jobs)
        assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
        assert json.loads((tmp_path / "out" / "summary.json").read_text())["virtual_lanes"] == lanes
        assert ("2 virtual lanes" in capsys.readouterr().err) == (lanes == 2)


def test_routes_are_those_that_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Results depend on the routes. The model's tables differ from the tables of the fabric's routing engine."""
    links = tmp_path / "fabric" / OPENSM
    links.parent.mkdir()
    links.write_bytes(read_sample_bytes("torus2d-5x4", OPENSM))
    links.with_name("opensm.fdbs").write_bytes(read_sample_bytes("torus2d-5x4", "opensm.fdbs"))
    jobs = [{"name": "mpi", "role": "ring", "bytes": 4096, "share": 0.2}]
    found = []
    for number, routes in enumerate(("tables", "modelled")):
        study = write_study(tmp_path, fabric=str(links), servers=0, jobs=jobs, routes=routes)
        output = tmp_path / f"out{number}"
        assert main(["run", str(study), "-o", str(output), "--workers", "1"]) == 0
        source = json.loads((output / "summary.json").read_text())["routes"]
        found.append((source, json.loads((output / STORE).read_text())["key"]))
        assert ("routes: modelled:min-hop" in capsys.readouterr().err) == (number > 0)
    assert [source for source, _ in found] == ["tables", "modelled:min-hop"]
    assert found[0][1] != found[1][1]
    study = write_study(tmp_path, fabric=str(links), servers=0, jobs=jobs, routes="guessed")
    assert main(["run", str(study), "-o", str(tmp_path / "out")]) == 3
    assert "routes" in capsys.readouterr().err
    threshold = ["threshold", "--fabric", "xgft:2:4,4:1,2", "--size", "4KiB", "--quick", "--workers", "1", "--routes"]
    assert main([*threshold, "modelled:min-hop"]) == 0
    assert "routes: modelled:min-hop" in capsys.readouterr().err


def test_a_collective_goes_on_until_its_duration_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The mean latency of messages is precise early, but too few operations have ended, so the job goes on."""
    jobs = [
        {"name": "mpi", "role": "barrier", "share": 0.5, "interval": "20 us"},
        {"name": "io", "role": "io", "bytes": "64 KiB", "interval": 0},
    ]
    study = write_study(tmp_path, jobs=jobs, measured="mpi", effort={"messages": 2000, "precision": 0.1})
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    for cell in json.loads((tmp_path / "out" / "summary.json").read_text())["cells"]:
        assert cell["note"] == "the mean's interval is narrow enough"
        assert cell["operation_half_us"] <= 0.1 * cell["operation_us"]
        assert cell["half_interval_us"] <= 0.1 * cell["mean_us"]
    assert cell["operations"] > 20


def test_what_a_recording_lacks_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only two of the run's four ranks were recorded."""
    counts = [Count(0, 1, 4096, messages=1), Count(1, 0, 4096, messages=1)]
    hosts = [make_host(name) for name in ("a", "b")]
    run = make_profile(counts, [make_rank(0, 0), make_rank(1, 1)], hosts, world_size=4)
    write_archive(run, tmp_path / "run.otf2")
    jobs = [{"name": "mpi", "role": "profile", "profile": str(tmp_path / "run.otf2"), "interval": "10 us"}]
    study = write_study(tmp_path, jobs=jobs, measured="mpi", effort={"messages": 2, "background": 1})
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    assert "run.otf2: 2 of 4 ranks were not recorded: 2-3" in capsys.readouterr().err


def test_messages_that_never_arrive_are_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [{"name": "mpi", "role": "pairs", "bytes": "1 TB"}]
    study = write_study(tmp_path, jobs=jobs, seeds=1, measured="mpi", effort={"messages": 4, "hops": 1e5})
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    assert "no settled mean" in capsys.readouterr().err
    (cell,) = json.loads((tmp_path / "out" / "summary.json").read_text())["cells"]
    assert (cell["mean_us"], cell["note"]) == (None, "not settled after 100000 packet hops")


def test_a_study_that_varies_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2 placements, 2 intervals and 2 measured jobs lead to 8 simulations of both jobs, and 6 of a single job."""
    study = write_study(
        tmp_path,
        vary=[
            {"job_placement": ["random-node", "random-switch"]},
            {"jobs": {"mpi": {"interval": ["50 us", "500 us"]}}},
        ],
        cases=[{"measured": ["io", "mpi"]}],
        by=["job_placement", "mpi_interval_us"],
        effort="quick",
    )
    cells = read_study(study).cells
    assert len({cell.key for cell in cells if not cell.is_alone}) == 8
    assert len({cell.key for cell in cells if cell.is_alone}) == 6
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = {f"{placement} mpi_interval_us={us}" for placement in ("random-node", "random-switch") for us in (50, 500)}
    assert found.keys() == {"io_slowdown", "mpi_slowdown"}
    assert found["mpi_slowdown"].keys() == found["io_slowdown"].keys() == names


def test_requests_of_as_many_bytes_as_are_counted(tmp_path: Path) -> None:
    job = {"name": "a", "role": "pairs", "bytes": "4 B", "reads": "4294967295 B"}
    study = write_study(tmp_path, jobs=[job], measured="a", effort={"hops": 1e5})
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0


def test_a_warm_up_of_nothing(tmp_path: Path) -> None:
    effort = {"warm_up": 0, "least_warm_up": 0, "background": 0, "messages": 2, "precision": 0}
    study = write_study(tmp_path, effort=effort)
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    for cell in json.loads((tmp_path / "out" / "summary.json").read_text())["cells"]:
        assert cell["is_settled"]
        assert (cell["messages"] >= 24, cell["left_out_us"]) == (True, 0)


@pytest.mark.parametrize(("hops", "ends"), [(1e10, True), (2e5, False)])
def test_the_run_that_is_written_goes_on_to_the_end_of_jobs_that_end(hops: float, ends: bool, tmp_path: Path) -> None:
    jobs = [
        {"name": "io", "role": "io", "bytes": "1 MiB", "share": 0.5, "limit": 40},
        {"name": "mpi", "role": "pairs", "bytes": "4 KiB", "interval": "20 us", "share": 0.5},
    ]
    study = write_study(tmp_path, jobs=jobs, effort={"messages": 10, "background": 1, "hops": hops})
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    with (tmp_path / "out" / "clients.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["steps"] == "40" for row in rows if row["job"] == "io"} == {ends}
    assert {row["last_us"] != "" for row in rows if row["job"] == "io"} == {ends}
    assert {row["last_us"] for row in rows if row["job"] == "mpi"} == {""}
    if ends:
        with (tmp_path / "out" / "latencies.csv").open(newline="") as file:
            messages = sum(int(row["messages"]) for row in csv.DictReader(file) if row["job"] == "io")
        assert messages == 40 * 12


def test_files_of_another_study_are_not_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, effort = tmp_path / "out", {"messages": 2, "background": 1, "hops": 1e5}
    ring = write_study(tmp_path, jobs=[{"name": "a", "role": "ring", "bytes": "4 B"}], measured="a", effort=effort)
    assert main(["run", str(ring), "-o", str(output), "--workers", "1"]) == 0
    assert "operations.csv" in capsys.readouterr().err
    study = write_study(tmp_path, effort=effort)
    assert main(["run", str(study), "-o", str(output), "--workers", "1", "--stored"]) == 0
    assert "links.csv" not in capsys.readouterr().err
    assert main(["run", str(study), "-o", str(output), "--workers", "1"]) == 0
    told = capsys.readouterr().err
    assert "links.csv" in told
    assert "operations.csv" not in told
    assert not (output / "operations.csv").exists()


def test_tables_of_another_study_go(tmp_path: Path) -> None:
    output, effort = tmp_path / "out", {"messages": 2, "background": 1, "hops": 1e5}
    job = {"name": "a", "role": "ring", "bytes": "4 B", "limit": 3}
    study = write_study(tmp_path, jobs=[job], measured="a", effort=effort)
    assert main(["run", str(study), "-o", str(output), "--workers", "1", "--parquet"]) == 0
    assert {"whole.csv", "whole.parquet", "means.parquet"} <= {each.name for each in output.iterdir()}
    study = write_study(tmp_path, effort=effort)
    assert main(["run", str(study), "-o", str(output), "--workers", "1"]) == 0
    assert not {"whole.csv", "whole.parquet", "means.parquet"} & {each.name for each in output.iterdir()}


def test_pairs_on_half_of_an_odd_number_of_hosts(tmp_path: Path) -> None:
    """Of 15 hosts, job a gets 8, and job b gets 6, because pairs need an even number of hosts."""
    jobs = [{"name": name, "role": "pairs", "bytes": "1 kB", "interval": "5 us", "share": 0.5} for name in ("a", "b")]
    study = write_study(tmp_path, fabric="xgft:1:16:1@100", servers=1, jobs=jobs, measured="b")
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    with (tmp_path / "out" / "clients.csv").open(newline="") as file:
        clients = [row["job"] for row in csv.DictReader(file)]
    assert (clients.count("a"), clients.count("b")) == (8, 6)


def test_a_job_that_ends_before_it_is_measured_says_so(tmp_path: Path) -> None:
    jobs = [
        {"name": "io", "role": "io", "bytes": "1 MiB", "share": 0.5},
        {"name": "mpi", "role": "pairs", "bytes": "1 B", "share": 0.5, "limit": 2},
    ]
    assert main(["run", str(write_study(tmp_path, jobs=jobs)), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    cells = json.loads((tmp_path / "out" / "summary.json").read_text())["cells"]
    assert cells[1]["note"] == "all messages were sent while clients of the other jobs had made fewer than 5 requests"


def test_sizes_of_1_byte_and_1_tb(tmp_path: Path) -> None:
    jobs = [
        {"name": "tiny", "role": "pairs", "bytes": "1 B", "interval": "1 us", "share": 0.5},
        {"name": "huge", "role": "io", "bytes": "1 TB", "share": 0.5},
    ]
    study = write_study(tmp_path, jobs=jobs, measured="tiny", effort={"hops": 2_000_000, "background": 1})
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    cells = json.loads((tmp_path / "out" / "summary.json").read_text())["cells"]
    # The limit of packet-hops ends the simulation before the request of a terabyte ends, so the cell has no mean.
    assert [cell["is_settled"] for cell in cells] == [True, False]
    assert cells[1]["mean_us"] is None
    assert "not settled after" in cells[1]["note"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_two_interrupts_end_it_as_one_does(tmp_path: Path, workers: str) -> None:
    """`timeout -s INT` sends a signal to the process, and a signal to the process group."""
    study = write_study(tmp_path, jobs=[{"name": "a", "role": "pairs", "bytes": "1 TB"}], measured="a", seeds=4)
    code = "import sys; from ibprof_lab.cli.sim import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "run", str(study), "-o", str(tmp_path / "out"), "--workers", workers]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not (tmp_path / "out" / STORE).exists():  # opened when the workers have started
                assert process.poll() is None
                time.sleep(0.05)
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            # The command ends within seconds, but a busy machine may need a minute.
            assert process.communicate(timeout=60)[1] == "ibprof-sim: interrupted\n"
        finally:
            process.kill()
    assert process.returncode == 130


def test_what_parquet_needs_is_missed_before_anything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(result_tables, "find_spec", lambda _name: None)
    assert main(["run", str(write_study(tmp_path)), "-o", str(tmp_path / "out"), "--parquet"]) == 4
    assert "Parquet needs pyarrow" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []
