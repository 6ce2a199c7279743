# SPDX-License-Identifier: Apache-2.0
"""`ibprof-sim run` reads valid study files. Errors for invalid study files name the line."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from ibprof.errors import InputError
from ibprof_lab.cli.sim import main
from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.measure.message_latency import Effort
from ibprof_lab.simulation.study.study_file import JOB_KEYS, KEYS, read_study
from ibprof_lab.simulation.workload.workloads import Role
from ibprof_testing.samples.fabrics import find_sample
from ibprof_testing.samples.study_files import write_study

pytestmark = pytest.mark.usefixtures("undrawn")


def test_files_are_searched_next_to_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that a study names are searched in the study's folder, then in the working folder.

    A folder with two rails is an error, because a study has one rail.
    """
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


def test_help_names_all_that_a_study_may_say(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    told = capsys.readouterr().out
    roles = set(Role) - {Role.REPLAY}  # only `ibprof-sim replay` runs this role
    names = [*(each.value for each in roles), *(each.name for kind in (Hardware, Effort) for each in fields(kind))]
    assert [name for name in (*names, *KEYS, *JOB_KEYS) if name not in told] == []


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
        (
            {"jobs": [{"name": "packet", "role": "pairs", "bytes": "4 B"}]},
            3,
            "name to be different from the names of other jobs and of columns",
        ),
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
        (
            {"jobs": [{"name": "a", "role": "profile", "profile": "study.yaml", "jitter": 0.1}]},
            3,
            "absent, since recorded times",
        ),
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
        ({"hardware": {"gbps": 1e6, "switch_ns": 1e9}}, 5, "too many ticks"),
        ({"fabric": "xgft:1:4:1@0"}, 3, "links of more than 0 and at most 1e+06 Gb/s"),
        ({"jobs": [{"name": "\x1b[31m", "role": "pairs", "bytes": "4 B"}]}, 3, "name to be printable"),
        ({"fabric": None}, 3, "fabric to be a text"),
        ({"fabric": ["xgft:1:4:1"]}, 3, "fabric to be a text, found a list"),
        ({"fabric": "xgft:2:4,4"}, 3, ": expected fabric to be possible ("),
        ({"fabric": "xgft:1:60000:1"}, 3, "hosts, one for each LID, found 60000"),
        ({"fabric": "zero\0"}, 3, "fabric to be printable"),
        ({"jobs": []}, 3, "jobs to be a list of jobs, found an empty one"),
        (
            {"jobs": [{"name": "a", "role": "pairs", "bytes": "4 B", "share": 0.03}]},
            3,
            "too small for its role: expected at least 2 hosts, found 0",
        ),
        ({"extra": 1}, 3, "extra"),
        ({"vary": {"routing": "static"}, "by": ["routing"]}, 3, "vary to be a list of axes, found a mapping"),
        (
            {"vary": [{"routing": ["static", "adaptive"]}]},
            3,
            "vary to be next to a key by, the list of varied columns of means.csv",
        ),
        ({"vary": [{"colour": "red"}], "by": ["routing"]}, 3, "vary to be made of routing, servers"),
        ({"vary": [{"jobs": {"gpu": {}}}], "by": ["routing"]}, 3, "vary.jobs to be made of io, mpi, found 'gpu'"),
        ({"vary": [{"jobs": {"io": {"size": 1}}}], "by": ["io_bytes"]}, 3, "made of name, role"),
        ({"vary": [[]], "by": ["routing"]}, 3, "vary to be 1 to 10000 changes, found '0'"),
        (
            {"vary": 5 * [{"hardware": {"switch_ns": list(range(10))}}], "by": ["routing"]},
            3,
            "at most 10000 variants",
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--packet", "20000"], "--packet: expected at most 16384, found 20000: the study parameters has lanes"),
        (["--lane", "4096"], "--lane: expected at least 8192, found 4096: the study parameters has packets of"),
    ],
)
def test_packets_that_fit_in_no_lane_of_a_study(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "parameters", "--fabric", "xgft:1:4:1", "--dry-run", *options]) == 2
    assert said in capsys.readouterr().err


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
    """YAML aliases stand for lists of ten aliases, forty levels deep. No memory can hold the expanded value."""
    lists = ["&a0 [x]", *(f"&a{n} [{', '.join(10 * [f'*a{n - 1}'])}]" for n in range(1, 40))]
    job = f"jobs: [{{role: pairs, bytes: 1 B, name: [{', '.join(lists)}]}}]"
    (tmp_path / "study.yaml").write_text(f"fabric: xgft:1:4:1\n{job}\n")
    assert main(["run", str(tmp_path / "study.yaml"), "-o", str(tmp_path / "out")]) == 3
    assert "job 1's name to be a text, found a list" in capsys.readouterr().err


def test_errors_of_a_study_name_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study.yaml"
    job = {"name": "a", "role": "pairs", "bytes": "4 B"}
    for bad, wanted in (({"servers": 99}, "servers"), ({"jobs": [job, {**job, "name": "b", "bytes": 0}]}, "bytes: 0")):
        study.write_text(yaml.safe_dump({"fabric": "xgft:2:8,4:1,8@100", "jobs": [job], **bad}, sort_keys=False))
        assert main(["run", str(study), "-o", str(tmp_path / "out")]) == 3
        number = int(capsys.readouterr().err.split("study.yaml:")[1].split(":")[0])
        assert study.read_text().splitlines()[number - 1].strip().startswith(wanted)
    for text in ("servers: 1\nservers: 2\n", "jobs: " + 3000 * "["):
        study.write_text(text)
        assert main(["run", str(study), "-o", str(tmp_path / "out")]) == 3
