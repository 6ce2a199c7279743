# SPDX-License-Identifier: Apache-2.0
"""`ibprof-sim` as it is typed."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from ibprof.archive.otf2_archive import write_archive
from ibprof.errors import InputError
from ibprof_converter.cli.sim import main
from ibprof_converter.cli.sim_options import parse_size
from ibprof_converter.simulation.engine.simulated_network import Hardware
from ibprof_converter.simulation.measure.message_latency import Effort
from ibprof_converter.simulation.study import result_tables
from ibprof_converter.simulation.study.sizes_and_times import format_size
from ibprof_converter.simulation.study.study_file import KEYS, read_study
from ibprof_converter.simulation.study.study_help import EXAMPLE
from ibprof_converter.simulation.study.study_jobs import JOB_KEYS
from ibprof_converter.simulation.study.sweep import STORE
from ibprof_converter.simulation.workload.roles import Role
from ibprof_testing.samples.fabrics import find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

SMALL = yaml.safe_load(EXAMPLE) | {"fabric": "xgft:2:4,8:1,4@100", "servers": 8, "seeds": 1}


def write_study(folder: Path, **changes: object) -> Path:
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **changes}))
    return path


def test_a_study_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path)
    output = tmp_path / "out"
    assert main(["run", str(study), "-o", str(output), "--workers", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["mpi_slowdown"] > 1.5
    summary = json.loads((output / "summary.json").read_text())
    assert [cell["run"] for cell in summary["cells"]] == ["baseline", "interference"]
    assert all(cell["is_settled"] and cell["mean_us"] > 1 for cell in summary["cells"])
    assert "cpu_seconds" not in summary["cells"][0]  # which no two runs have alike
    with (output / "links.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["job"] for row in rows if row["a_bytes"] != "0"} == {"io", "mpi"}
    # Gone on with: all is there, so that nothing is simulated, and the same comes out.
    stored = (output / STORE).read_text()
    (output / STORE).write_text(stored + '{"key": "cut in the mid')
    assert main(["run", str(study), "-o", str(output)]) == 0
    assert (output / STORE).read_text().startswith(stored)
    assert json.loads((output / "summary.json").read_text()) == summary
    # What is still JSON and is no result is simulated anew.
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
    # Two links of 12.5 GB/s and a switch's 90 ns.
    assert json.loads(capsys.readouterr().out) == {"mpi_alone_us": pytest.approx(2 * 4.096 / 12.5 + 0.09, abs=2e-3)}


def test_virtual_lanes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A ring of six needs two; a tree one, of which nothing is said."""
    jobs = [{"name": "mpi", "role": "ring", "bytes": 4096, "share": 1}]
    for fabric, lanes in (("torus:6:1@100", 2), ("xgft:1:4:1@100", 1)):
        study = write_study(tmp_path, fabric=fabric, servers=0, jobs=jobs)
        assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
        assert json.loads((tmp_path / "out" / "summary.json").read_text())["virtual_lanes"] == lanes
        assert ("over 2 virtual lanes" in capsys.readouterr().err) == (lanes == 2)


def test_a_collective_goes_on_until_its_duration_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its messages' mean is soon known; the tens of operations that they make are few."""
    jobs = [
        {"name": "mpi", "role": "barrier", "share": 0.5, "interval": "20 us"},
        {"name": "io", "role": "io", "bytes": "64 KiB", "interval": 0},
    ]
    study = write_study(tmp_path, jobs=jobs, measured="mpi", effort={"messages": 2000, "precision": 0.1})
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    for cell in json.loads((tmp_path / "out" / "summary.json").read_text())["cells"]:
        assert cell["note"] == "the interval is narrow enough"
        assert cell["operation_half_us"] <= 0.1 * cell["operation_us"]
        assert cell["half_interval_us"] <= 0.1 * cell["mean_us"]
    assert cell["operations"] > 20


@pytest.mark.parametrize(
    ("size", "said"),
    [(1, "1 B"), (1023, "1023 B"), (10_000, "10 kB"), (51_200, "50 KiB"), (3 << 19, "1.5 MiB"), (10**12, "1 TB")],
)
def test_sizes_are_said_as_they_may_be_written(size: int, said: str) -> None:
    assert (format_size(size), parse_size(said)) == (said, size)


def test_files_are_looked_for_beside_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or else below the working folder; a folder of two rails is no fabric of one."""
    for name in ("ibdiagnet.lst", "ibdiagnet.fdbs"):
        for place in ("one", "two/1", "two/2"):
            (tmp_path / place).mkdir(parents=True, exist_ok=True)
            (tmp_path / place / name).write_bytes(find_sample("testbed44", name).read_bytes())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    common = {"servers": 4, "seeds": 1, "effort": {"messages": 2, "background": 1, "hops": 1e5}}
    for study in (write_study(tmp_path / "one", fabric="ibdiagnet.lst", **common),
                  write_study(tmp_path / "elsewhere", fabric="one/ibdiagnet.lst", **common)):  # fmt: skip
        assert main(["run", str(study), "-o", str(study.parent / "out"), "--workers", "1"]) == 0
    assert main(["run", str(write_study(tmp_path, fabric="two", **common)), "-o", str(tmp_path / "out")]) == 3


def test_a_file_without_an_end_is_no_study(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "/dev/zero"]) == 3
    assert "/dev/zero: expected a study of at most 16 MiB" in capsys.readouterr().err


def test_no_fabric_is_not_the_usual_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["threshold", "--fabric", ""]) == 2
    assert "--fabric: expected a file" in capsys.readouterr().err


def test_what_a_recording_lacks_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a run of four ranks, of which two left nothing."""
    counts = [Count(0, 1, 4096, messages=1), Count(1, 0, 4096, messages=1)]
    hosts = [make_host(name) for name in ("a", "b")]
    run = make_profile(counts, [make_rank(0, 0), make_rank(1, 1)], hosts, world_size=4)
    write_archive(run, tmp_path / "run.otf2")
    jobs = [{"name": "mpi", "role": "profile", "profile": str(tmp_path / "run.otf2"), "interval": "10 us"}]
    study = write_study(tmp_path, jobs=jobs, measured="mpi", effort={"messages": 2, "background": 1})
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    assert "run.otf2: 2 of 4 ranks were not recorded: 2-3" in capsys.readouterr().err


def test_help_names_all_that_a_study_may_say(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    told = capsys.readouterr().out
    names = [*(each.value for each in Role), *(each.name for kind in (Hardware, Effort) for each in fields(kind))]
    assert [name for name in (*names, *KEYS, *JOB_KEYS) if name not in told] == []


def test_messages_that_never_arrive_are_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [{"name": "mpi", "role": "pairs", "bytes": "1 TB"}]
    study = write_study(tmp_path, jobs=jobs, seeds=1, measured="mpi", effort={"messages": 4, "hops": 1e5})
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    assert "no settled mean" in capsys.readouterr().err
    (cell,) = json.loads((tmp_path / "out" / "summary.json").read_text())["cells"]
    assert (cell["mean_us"], cell["note"]) == (None, "given up after 100000 packet hops")


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"fabric": "no-such-file.lst"}, 3, "no-such-file.lst"),
        ({"fabric": "xgft:9"}, 3, "xgft:9"),
        ({"servers": 0}, 3, "servers to be a number above 0"),
        ({"servers": 32}, 3, "fewer than the fabric's 32 hosts"),
        ({"servers": 1.5}, 3, "whole number"),
        ({"routing": "psychic"}, 3, "one of static, adaptive"),
        ({"measured": "nobody"}, 3, "one of io, mpi"),
        ({"jobs": []}, 3, "a list of jobs"),
        ({"jobs": [{"name": "a", "role": "cook", "bytes": "1 B"}]}, 3, "one of pairs, io"),
        ({"jobs": [{"name": "a", "role": "pairs", "bytes": "0 B"}]}, 3, "a quantity"),
        ({"jobs": [{"name": "a", "role": "pairs", "bytes": "4 parsecs"}]}, 3, "a quantity"),
        ({"jobs": [{"name": "a", "role": "pairs", "bytes": "4 B", "share": 2}]}, 3, "from 0 to 1"),
        ({"jobs": [{"name": "a", "role": "pairs", "bytes": "4 B", "share": 0.001}]}, 3, "too small"),
        ({"jobs": [{"name": n, "role": "pairs", "bytes": "4 B", "share": 0.6} for n in "ab"]}, 3, "0.6 + 0.6"),
        ({"jobs": [{"name": "packet", "role": "pairs", "bytes": "4 B"}]}, 3, "name to be of its own"),
        ({"jobs": [{"name": "a", "role": "allreduce"}]}, 3, "no bytes"),
        ({"jobs": [{"name": "a", "role": "profile", "bytes": "4 B"}]}, 3, "no profile"),
        (
            {"jobs": [{"name": "a", "role": "profile", "profile": "nothing.otf2"}]},
            3,
            "job 1's profile to be a file next to study.yaml or in the current folder, found 'nothing.otf2'",
        ),
        ({"jobs": [{"name": "a", "role": "pairs", "bytes": "4 B", "profile": "study.yaml"}]}, 3, "is profile, found"),
        (
            {"jobs": [{"name": "a", "role": "profile", "profile": "study.yaml", "bytes": "4 B"}]},
            3,
            "job 1's bytes to be of a job whose role is pairs, io, ring",
        ),
        ({"jobs": ["a"]}, 3, "job 1 to be a mapping, found 'a'"),
        ({"jobs": [{"name": "a", "role": "pairs", "bytes": "1.5 B"}]}, 3, "job 1's bytes to be whole bytes"),
        ({"fabric": ""}, 3, "fabric to be a text, found ''"),
        ({"jobs": [{"name": "a", "role": "allreduce", "bytes": "4 B", "window": "1 ms"}]}, 3, "is pairs, io, found"),
        ({"jobs": [{"name": "a", "role": "bcast", "bytes": "4 B", "limit": 9}]}, 3, "limit to be of a job whose role"),
        ({"jobs": [{"name": "a", "role": "ring", "bytes": "4 B", "reads": "1 B"}]}, 3, "reads to be of a job"),
        ({"jobs": [{"name": "a", "role": "profile", "profile": "study.yaml", "jitter": 0.1}]}, 3, "a time line is as"),
        (
            {"jobs": [{"name": "a", "role": "pairs", "bytes": "4 B", "reads": "4 GiB"}]},
            3,
            "reads to be a quantity such as 4 B (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB), 4294967295 B at most, found",
        ),
        (
            {"jobs": [{"name": "a", "role": "pairs", "bytes": "4 B", "interval": "900 s"}], "hardware": {"gbps": 1e6}},
            3,
            "take 1.4e+16 ticks of 6.4e-05 ns, more than 9.0e+15",
        ),
        ({"effort": {"messages": 0}}, 3, "effort.messages to be a number from 1"),
        ({"hardware": {"lane_bytes": 100}}, 3, "at least packet_bytes"),
        ({"hardware": {"lane_bites": 100}}, 3, "lane_bites"),
        ({"hardware": {"lane_bytes": 1 << 40}}, 3, "hardware.lane_bytes to be a number from 1 to"),
        ({"hardware": {"gbps": 0}}, 3, "hardware.gbps to be a number from 0.001"),
        ({"hardware": {"switch_ns": 1e12}}, 3, "hardware.switch_ns to be a number from 0"),
        ({"hardware": {"gbps": 1e6, "switch_ns": 1e9}}, 5, "more ticks"),
        ({"fabric": "xgft:1:4:1@0"}, 3, "links of more than 0 and at most 1e+06 Gb/s"),
        ({"jobs": [{"name": "\x1b[31m", "role": "pairs", "bytes": "4 B"}]}, 3, "name to be printable"),
        ({"fabric": None}, 3, "fabric to be a text"),
        ({"fabric": ["xgft:1:4:1"]}, 3, "fabric to be a text, found a list"),
        ({"fabric": "xgft:2:4,4"}, 3, ": expected fabric to be one that can be"),
        ({"fabric": "xgft:1:60000:1"}, 3, "60000 hosts; one subnet has"),
        ({"fabric": "zero\0"}, 3, "fabric to be printable"),
        ({"jobs": []}, 3, "jobs to be a list of jobs, found an empty one"),
        (
            {"jobs": [{"name": "a", "role": "pairs", "bytes": "4 B", "share": 0.03}]},
            3,
            "too small for its role: 0 of 2",
        ),
        ({"extra": 1}, 3, "extra"),
        ({"vary": {"routing": "static"}, "by": ["routing"]}, 3, "vary to be a list of axes, found a mapping"),
        (
            {"vary": [{"routing": ["static", "adaptive"]}]},
            3,
            "vary to be with by, the columns of means.csv that vary",
        ),
        ({"vary": [{"colour": "red"}], "by": ["routing"]}, 3, "vary to be made of routing, servers"),
        ({"vary": [{"jobs": {"gpu": {}}}], "by": ["routing"]}, 3, "vary.jobs to be made of io, mpi, found 'gpu'"),
        ({"vary": [{"jobs": {"io": {"size": 1}}}], "by": ["io_bytes"]}, 3, "made of name, role"),
        ({"vary": [[]], "by": ["routing"]}, 3, "vary to be 1 to 10000 changes, found '0'"),
        (
            {"vary": 5 * [{"hardware": {"switch_ns": list(range(10))}}], "by": ["routing"]},
            3,
            "of at most 10000 variants",
        ),
        ({"cases": [{"measured": ["io", "nobody"]}], "by": ["routing"]}, 3, "one of io, mpi"),
        ({"by": ["colour"]}, 3, "by to be one of fabric, routing"),
        ({"effort": "great"}, 3, "effort to be one of quick, survey, full"),
    ],
)
def test_bad_studies(
    changes: dict[str, object], status: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = write_study(tmp_path, **({"measured": "a"} if changes.get("jobs") else {}), **changes)
    assert main(["run", str(study), "-o", str(tmp_path / "out")]) == status
    told = capsys.readouterr().err
    assert said in told
    assert status != 3 or re.match(r"ibprof-sim: [^:]+/study\.yaml:[0-9]+: expected ", told)


def test_a_study_that_varies_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two placements by two intervals, and both jobs measured: 8 pairs, with 3 baselines of each placement."""
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--packet", "20000"], "--packet: expected at most 16384, found 20000: the study parameters also has lanes"),
        (["--lane", "4096"], "--lane: expected at least 8192, found 4096: the study parameters also has packets of"),
    ],
)
def test_packets_that_fit_in_no_lane_of_a_study(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "parameters", "--fabric", "xgft:1:4:1", "--estimate", *options]) == 2
    assert said in capsys.readouterr().err


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


def test_numbers_as_people_write_them(tmp_path: Path) -> None:
    study = write_study(tmp_path, hardware={"gbps": "HERE", "tick_ns": "THERE"})
    study.write_text(study.read_text().replace("THERE", "6.4E-1").replace("HERE", "1e2"))
    (cell, *_) = read_study(study).cells
    assert cell.setting.hardware == Hardware(gbps=100.0, tick_ns=0.64)


@pytest.mark.parametrize("written", ["1:30", "010", "1_000"])
def test_numbers_as_only_old_yaml_has_them(written: str, tmp_path: Path) -> None:
    study = write_study(tmp_path, servers="HERE")
    study.write_text(study.read_text().replace("HERE", written))
    with pytest.raises(InputError, match=f"servers to be a number from 0 to 65536, found '{written}'"):
        read_study(study)


@pytest.mark.parametrize(("written", "size"), [("1.1 kB", 1100), ("0.3 kB", 300), ("1.0005 kB", None)])
def test_whole_bytes(written: str, size: int | None, tmp_path: Path) -> None:
    study = write_study(tmp_path, jobs=[{"name": "a", "role": "ring", "bytes": written}], measured="a")
    if size is None:
        with pytest.raises(InputError, match="whole bytes"):
            read_study(study)
    else:
        assert read_study(study).cells[0].workloads[0].bytes == size


@pytest.mark.parametrize(
    "content",
    [b"jobs: [", b"\xff\xfe\x00", b"", b"- 1\n", b"servers: " + b"9" * 5000, b"seeds: 2001-99-99"],
)
def test_files_that_are_no_study(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.yaml").write_bytes(content)
    assert main(["run", str(tmp_path / "study.yaml"), "-o", str(tmp_path / "out")]) == 3
    assert "study.yaml" in capsys.readouterr().err


def test_a_file_that_grows_when_it_is_written_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten aliases of ten aliases, forty deep: no memory holds what the last of them stands for."""
    lists = ["&a0 [x]", *(f"&a{n} [{', '.join(10 * [f'*a{n - 1}'])}]" for n in range(1, 40))]
    job = f"jobs: [{{role: pairs, bytes: 1 B, name: [{', '.join(lists)}]}}]"
    (tmp_path / "study.yaml").write_text(f"fabric: xgft:1:4:1\n{job}\n")
    assert main(["run", str(tmp_path / "study.yaml"), "-o", str(tmp_path / "out")]) == 3
    assert "job 1's name to be a text, found a list" in capsys.readouterr().err


def test_pairs_on_half_of_an_odd_number_of_hosts(tmp_path: Path) -> None:
    """Of 15 hosts each half would be 8."""
    jobs = [{"name": name, "role": "pairs", "bytes": "1 kB", "interval": "5 us", "share": 0.5} for name in ("a", "b")]
    study = write_study(tmp_path, fabric="xgft:1:16:1@100", servers=1, jobs=jobs, measured="b")
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    with (tmp_path / "out" / "clients.csv").open(newline="") as file:
        clients = [row["job"] for row in csv.DictReader(file)]
    assert (clients.count("a"), clients.count("b")) == (8, 6)


def test_a_run_whose_messages_all_take_the_same_is_drawn(tmp_path: Path) -> None:
    """One client, one server; a name that is no formula, in letters that the font lacks."""
    jobs = [{"name": "_$\\frac{ \u4e2d", "role": "io", "bytes": "4 KiB", "share": 1}]
    study = write_study(tmp_path, fabric="xgft:1:2:1@100", servers=1, jobs=jobs, measured=jobs[0]["name"])
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    assert (tmp_path / "out" / "run.png").stat().st_size > 10_000


def test_a_job_that_ends_before_it_is_measured_says_so(tmp_path: Path) -> None:
    jobs = [
        {"name": "io", "role": "io", "bytes": "1 MiB", "share": 0.5},
        {"name": "mpi", "role": "pairs", "bytes": "1 B", "share": 0.5, "limit": 2},
    ]
    assert main(["run", str(write_study(tmp_path, jobs=jobs)), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    cells = json.loads((tmp_path / "out" / "summary.json").read_text())["cells"]
    assert cells[1]["note"] == "all messages were sent before the other jobs had made 5 requests of each client"


def test_sizes_of_1_byte_and_1_tb(tmp_path: Path) -> None:
    jobs = [
        {"name": "tiny", "role": "pairs", "bytes": "1 B", "interval": "1 us", "share": 0.5},
        {"name": "huge", "role": "io", "bytes": "1 TB", "share": 0.5},
    ]
    study = write_study(tmp_path, jobs=jobs, measured="tiny", effort={"hops": 2_000_000, "background": 1})
    assert main(["run", str(study), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    cells = json.loads((tmp_path / "out" / "summary.json").read_text())["cells"]
    # No request of a terabyte ends within so few packets: the cell is empty, and says why.
    assert [cell["is_settled"] for cell in cells] == [True, False]
    assert cells[1]["mean_us"] is None
    assert "given up" in cells[1]["note"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_two_interrupts_end_it_as_one_does(tmp_path: Path, workers: str) -> None:
    """As `timeout -s INT` sends them: to the process, and to all of its group."""
    study = write_study(tmp_path, jobs=[{"name": "a", "role": "pairs", "bytes": "1 TB"}], measured="a", seeds=4)
    code = "import sys; from ibprof_converter.cli.sim import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "run", str(study), "-o", str(tmp_path / "out"), "--workers", workers]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not (tmp_path / "out" / STORE).exists():  # opened when the pool is there
                assert process.poll() is None
                time.sleep(0.05)
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            # Within seconds: a minute is for machines that do much else.
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
