# SPDX-License-Identifier: Apache-2.0
"""`ibprof collect`, `doctor`, `env`, `info`, `lib` and `matrix` have the expected output and exit statuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ibprof.cli import collect, doctor, env, info, lib, main, matrix
from ibprof_testing.samples.recordings import Process, counter, make_recording


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    processes = [
        Process(0, 3, counters=[[counter(1, 10), counter(1, 32, operation=1)]]),
        Process(1, 3, fields={"flags": 0, "stop_ns": 0}, counters=[[counter(0, 10, direction=2)]]),
    ]
    make_recording(tmp_path / "profile.ibprof", processes, host="n\x1b[1m0")
    return Path("profile.ibprof")


def test_collect_then_matrix(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert collect.main([str(recording)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "profile.otf2: 2 of 3 ranks" in said.err
    assert "1 of 3 ranks were not recorded: 2" in said.err
    assert matrix.main(["profile.otf2", "--operation", "bcast"]) == 0
    assert capsys.readouterr().out == "src,dst,bytes,messages\n0,1,10,1\n"


def test_a_named_archive_is_made_of_the_recording_next_to_it(recording: Path) -> None:
    assert matrix.main(["profile.otf2", "-o", "m.csv"]) == 0
    assert Path("m.csv").read_text() == "src,dst,bytes,messages\n0,1,42,2\n"
    assert Path("profile.otf2").exists()


def test_info_says_the_same_of_a_recording_and_of_its_archive(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert info.main([str(recording), "--json"]) == 0
    of_recording = json.loads(capsys.readouterr().out)
    assert info.main(["profile.otf2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == of_recording | {"name": "profile.otf2"}
    assert of_recording["name"] == str(recording)
    assert (of_recording["bytes"], of_recording["bytes_received"], of_recording["world_size"]) == (42, 10, 3)
    assert of_recording["operations"] == [
        {"name": "BCAST", "bytes": 10, "messages": 1},
        {"name": "ALLTOALL", "bytes": 32, "messages": 1},
    ]
    assert any("rank 1 did not reach MPI_Finalize" in sentence for sentence in of_recording["not_seen"])


def test_info_prints_names_that_could_steer_a_terminal_as_text(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert info.main([str(recording)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "2 of 3 recorded" in shown


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["nothing.otf2"], 3), (["profile.ibprof", "--region", "y"], 2), (["profile.ibprof", "--run", "y"], 2)],
)
def test_statuses(arguments: list[str], status: int, recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert matrix.main(arguments) == status
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err


def test_lib_and_env_name_files_that_are_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lib.main([]) == 0
    library = Path(capsys.readouterr().out.strip())
    assert library.is_file()
    monkeypatch.setenv("LD_LIBRARY_PATH", "/a b:/c")
    assert env.main([]) == 0
    assert f"export LD_LIBRARY_PATH='{library.parent}:/a b:/c';" in capsys.readouterr().out
    assert env.main(["--shell", "csh"]) == 0
    assert "setenv LD_LIBRARY_PATH '" in capsys.readouterr().out


def test_doctor_finds_another_library_of_the_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libibprof.so").write_bytes(b"\x7fELF IBPROF_MODE")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert doctor.main([]) == 5
    assert "Mellanox' library and comes before ibprof's" in capsys.readouterr().out


def test_the_front_knows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^  run  +run a command and record its MPI traffic", shown, re.MULTILINE)
    assert re.search(r"^  completion  \w", shown, re.MULTILINE)
    assert main.main(["nonsense"]) == 2
    assert "expected one of calls, collect, completion, demo, diff, doctor" in capsys.readouterr().err


def test_an_exact_run_takes_transports_that_are_seen_and_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UCX_TLS", "rc_mlx5,sm")
    show = ["run", "--", "sh", "-c", "echo $UCX_TLS"]
    assert main.main(show) == 0
    assert capfd.readouterr().out == "rc_mlx5,sm\n"
    monkeypatch.setenv("IBPROF_SOURCE", "exact")
    assert main.main(show) == 0
    out, err = capfd.readouterr()
    assert out == "rc_verbs,ud_verbs,self,sm\n"
    assert "UCX_TLS=rc_mlx5,sm becomes rc_verbs,ud_verbs,self,sm" in err
    assert "This changes the job's performance" in err


def test_the_bare_line_takes_the_same_transports(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("UCX_TLS", raising=False)
    assert main.main(["env"]) == 0
    assert "UCX_TLS" not in capsys.readouterr().out
    monkeypatch.setenv("IBPROF_SOURCE", "exact")
    assert main.main(["env"]) == 0
    out, err = capsys.readouterr()
    assert "export UCX_TLS=rc_verbs,ud_verbs,self,sm;" in out
    assert re.search(r"mca_base_env_list\w*=\S*;UCX_TLS", out)
    assert "This changes the job's performance" in err
