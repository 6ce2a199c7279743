# SPDX-License-Identifier: Apache-2.0
"""`ibprof-place` writes the files that were asked for, and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ibprof.errors import UsageError
from ibprof_converter.analysis.rank_placing import WHOLE_GROUPS
from ibprof_converter.cli import place
from ibprof_converter.cli.place import PlacementFiles, write_placement

HOSTS = ("n2", "n1", "n1")


def test_each_file_has_the_form_of_its_launcher(tmp_path: Path) -> None:
    csv, ranks, hosts, mpich, slurm, hydra = (
        tmp_path / name for name in ("csv", "rankfile", "hostfile", "mpich", "slurm", "hydra")
    )
    files = PlacementFiles(csv, ranks, hosts, mpich, slurm, hydra)
    write_placement(files, HOSTS)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "csv": "rank,host\n0,n2\n1,n1\n2,n1\n",
        "rankfile": "rank 0=n2 slot=0\nrank 1=n1 slot=0\nrank 2=n1 slot=1\n",
        "hostfile": "n2 slots=1\nn1 slots=2\n",
        "mpich": "n2,n1:2\n",
        "slurm": "n2\nn1\nn1\n",
        "hydra": "n2\nn1:2\n",
    }


def test_options_of_sbatch(tmp_path: Path) -> None:
    write_placement(PlacementFiles(for_sbatch=tmp_path / "next"), ("n10", *HOSTS), leaves=2)
    assert (tmp_path / "next.hosts").read_text() == "n10\nn2\nn1\nn1\n"
    assert (tmp_path / "next").read_text().split() == [
        *("--nodes=3", "--ntasks=4", "--nodelist=n[1-2],n10", "--switches=2", "--distribution=arbitrary"),
        f"--export=ALL,SLURM_HOSTFILE={tmp_path}/next.hosts",
    ]


@pytest.mark.parametrize("name", ["-", "a b", "a,b"])
def test_paths_that_no_option_of_sbatch_holds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.main(["xgft:1:4:1", "pattern:3dnn:1", "--for-sbatch", name]) == 2
    assert f"--for-sbatch {name}: expected a file in a path without blanks and commas" in capsys.readouterr().err


def test_a_host_that_is_no_node_of_slurm(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be a node of Slurm"):
        write_placement(PlacementFiles(for_sbatch=tmp_path / "next"), ("n1", "n 2"))


def test_ranks_with_threads_take_several_cores(tmp_path: Path) -> None:
    write_placement(PlacementFiles(rankfile=tmp_path / "ranks", cores_per_rank=4), HOSTS)
    expected = "rank 0=n2 slot=0-3\nrank 1=n1 slot=0-3\nrank 2=n1 slot=4-7\n"
    assert (tmp_path / "ranks").read_text() == expected


@pytest.mark.parametrize("cores", ["0", "-1", "65537"])
def test_invalid_numbers_of_cores_are_refused(cores: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.main(["xgft:1:4:1", "pattern:3dnn:1", "--cores-per-rank", cores]) == 2
    assert f"--cores-per-rank {cores}: expected a number from 1 to 65536" in capsys.readouterr().err


def test_a_dash_is_stdout_and_nothing_else_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_placement(PlacementFiles(output=Path("-"), host_a_rank=tmp_path / "hosts"), HOSTS)
    assert capsys.readouterr().out == "rank,host\n0,n2\n1,n1\n2,n1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["hosts"]


def test_an_error_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file or directory") as refused:
        write_placement(PlacementFiles(rankfile=tmp_path / "none" / "ranks"), HOSTS)
    assert refused.value.filename == tmp_path / "none" / "ranks" or str(tmp_path) in str(refused.value.filename)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "matrix.csv"], "--output matrix.csv: this is also an input"),
        (["--hosts", "free.txt", "--rankfile", "free.txt"], "--rankfile free.txt: this is also an input"),
        (["--placement", "now.csv", "-o", "now.csv"], "--output now.csv: this is also an input"),
        (["-o", "x", "--mpich-hosts", "x"], "--mpich-hosts x: this is also --output"),
    ],
)
def test_no_file_is_written_over_an_input_or_another_output(
    options: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    contents = {"matrix.csv": "src,dst,bytes,messages\n0,1,5,1\n", "free.txt": "host01\n", "now.csv": "rank,host\n"}
    for name, content in contents.items():
        Path(name).write_text(content)
    assert place.main(["xgft:1:4:1", "matrix.csv", *options]) == 2
    assert capsys.readouterr().err == f"ibprof-place: {said}\n"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == contents


def test_tensor_groups_stay_on_hosts_unless_they_may_be_divided(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["xgft:2:4,4:1,1", "--pattern", "nccl-tree:tp=2,dp=8,gpus=4", "--time", "0.2", "--json"]
    found = []
    for options in ([], ["--divide-groups"]):
        assert place.main([*command, *options]) == 0
        found.append(json.loads(capsys.readouterr().out))
    whole, divided = found
    hosts = whole["placement"]
    assert hosts[::2] == hosts[1::2]
    assert WHOLE_GROUPS in whole["notes"]
    assert divided["placement"][::2] != divided["placement"][1::2]
    assert any(note.startswith("8 of 8 tensor groups are on several hosts") for note in divided["notes"])
    times = [each["bottleneck_seconds"]["best"] for each in found]
    assert times[1] < 0.9 * times[0]
