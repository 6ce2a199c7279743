# SPDX-License-Identifier: Apache-2.0
"""Files of NCCL Inspector as modelled traffic. The lines have the form that its sources write (v4.0)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ibprof.errors import InputError
from ibprof_converter.analysis.pipeline_options import split_names
from ibprof_converter.cli.report import main
from ibprof_converter.traffic.nccl_inspector import MODELLED, read_inspector

FABRIC = Path(__file__).parents[2] / "data" / "fabrics" / "testbed44" / "ibdiagnet.lst"
SIZE = 8_000_000


def line(rank: int, ranks: int, host: str, done: dict[str, Any], number: int = 0, communicator: str = "0x7f") -> str:
    form = {"inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "nccl_profiler_interface"}
    return json.dumps(
        {
            "header": {"id": communicator, "comm_name": "world", "rank": rank, "n_ranks": ranks, "nnodes": 2},
            "metadata": {**form, "dump_timestamp_us": 1 + number, "hostname": host, "pid": 100 + rank},
            **done,
        }
    )


def collective(function: str, number: int, size: int = SIZE) -> dict[str, Any]:
    rates = {"coll_exec_time_us": 10, "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": 1.0, "coll_busbw_gbs": 2.0}
    return {"coll_perf": {"coll": function, "coll_sn": number, "coll_msg_size_bytes": size, **rates}}


def write(folder: Path, function: str, hosts: int = 4, on_host: int = 2, count: int = 3) -> list[Path]:
    paths = []
    for rank in range(hosts * on_host):
        host = f"host{rank // on_host + 1:02}"
        path = folder / f"{host}-pid{100 + rank}.log"
        lines = [line(rank, hosts * on_host, host, collective(function, number), number) for number in range(count)]
        path.write_text("\n".join(lines) + "\n")
        paths.append(path)
    return paths


@pytest.mark.parametrize(
    ("function", "each"),
    [
        ("AllReduce", 2 * SIZE * 7 // 8),
        ("AllGather", SIZE * 7),
        ("ReduceScatter", SIZE * 7),
        ("Broadcast", SIZE * 7 // 8),
    ],
)
def test_each_rank_of_a_ring_sends_what_the_formulas_say(function: str, each: int, tmp_path: Path) -> None:
    traffic = read_inspector(write(tmp_path, function), "inspector")
    assert traffic.ranks == 8
    assert traffic.operations == (f"nccl{function}",)
    sent = [int(traffic.bytes[traffic.source == rank].sum()) for rank in range(8)]
    assert sent == [3 * each] * 8
    assert MODELLED in traffic.origin


def test_each_ring_leaves_a_host_at_another_rank(tmp_path: Path) -> None:
    traffic = read_inspector(write(tmp_path, "AllReduce"), "inspector")
    between = (traffic.source // 2) != (traffic.destination // 2)
    assert sorted(traffic.source[between].tolist()) == list(range(8))
    assert len(set(traffic.bytes[between].tolist())) == 1
    assert int(traffic.bytes[between].sum()) == 4 * 3 * 2 * SIZE * 7 // 8


def test_sends_go_to_their_peer(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    done = {"p2p": "Send", "p2p_sn": 1, "p2p_peer": 1, "p2p_msg_size_bytes": 77}
    lines = [line(0, 2, "host01", {"p2p_perf": done}), line(1, 2, "host02", {"p2p_perf": {**done, "p2p": "Recv"}})]
    path.write_text("\n".join(lines) + "\n")
    traffic = read_inspector([path], "inspector")
    assert (traffic.source.tolist(), traffic.destination.tolist(), traffic.bytes.tolist()) == ([0], [1], [77])


def test_spellings_of_a_host_are_one_host(tmp_path: Path) -> None:
    paths = write(tmp_path, "AllReduce", hosts=2)
    paths[1].write_text(paths[1].read_text().replace('"host01"', '"HOST01.example.org"'))
    traffic = read_inspector(paths, "inspector")
    assert traffic.profile
    assert [host.name for host in traffic.profile.hosts] == ["host01", "host02"]
    assert "HOST01.example.org is host01" in traffic.profile.ranks[0].notes[-1]


def test_a_collective_counts_once_whoever_states_it(tmp_path: Path) -> None:
    """A rank whose ring of completed collectives was overwritten lacks some."""
    paths = write(tmp_path, "AllReduce")
    paths[0].write_text(paths[0].read_text().splitlines()[0] + "\n")
    (tmp_path / "whole").mkdir()
    whole = read_inspector(write(tmp_path / "whole", "AllReduce"), "inspector")
    assert read_inspector(paths, "inspector").bytes.tolist() == whole.bytes.tolist()


def test_a_line_that_a_killed_job_left_unfinished_is_skipped(tmp_path: Path) -> None:
    paths = write(tmp_path, "AllReduce")
    paths[3].write_text(paths[3].read_text() + '{"header": {"id": "0x7')
    assert int(read_inspector(paths, "inspector").bytes.sum()) == 8 * 3 * 2 * SIZE * 7 // 8


@pytest.mark.parametrize(
    "broken",
    [
        "[]",
        "{}",
        '{"header": 3}',
        line(0, 2, "h", {"coll_perf": {"coll": "AllReduce", "coll_sn": 0, "coll_msg_size_bytes": -1}}),
        line(0, 2, "h", {"coll_perf": {"coll": 5, "coll_sn": 0, "coll_msg_size_bytes": 1}}),
        line(0, 2, "h", {"coll_perf": {"coll": "AllReduce", "coll_sn": 1.5, "coll_msg_size_bytes": 1}}),
        line(1 << 40, 2, "h", {}),
    ],
)
def test_other_lines_are_errors_with_their_number(broken: str, tmp_path: Path) -> None:
    path = write(tmp_path, "AllReduce")[0]
    path.write_text(path.read_text() + broken + "\n")
    with pytest.raises(InputError, match=rf"{path.name}:4: "):
        read_inspector([path], "inspector")


def test_files_of_a_folder_are_one_job(tmp_path: Path) -> None:
    paths = write(tmp_path, "AllReduce")
    assert split_names([str(FABRIC), *map(str, paths)]) == ((str(FABRIC),), (str(tmp_path),))


def test_the_report_has_its_links_and_says_that_it_is_modelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write(tmp_path, "AllReduce")
    assert main([str(FABRIC), *map(str, paths), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["bytes_total"] == 8 * 3 * 2 * SIZE * 7 // 8
    assert report["bytes_on_host"] == report["bytes_total"] // 2
    assert report["bytes_routed"] == report["bytes_total"] // 2
    assert MODELLED in json.dumps(report["coverage"])


@pytest.mark.parametrize(
    ("stated", "found"), [('"v9.1"', "'v9.1'"), ('"v4.2"', "'v4.2'"), ('""', "none"), ("7", "'7'"), ('"v4.0"', None)]
)
def test_an_unknown_form_is_read_and_named_in_the_first_lines(
    stated: str, found: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write(tmp_path, "AllReduce", hosts=2)
    paths[1].write_text(paths[1].read_text().replace('"v4.0"', stated))
    for fabric in ([str(FABRIC)], []):
        assert main([*fabric, *map(str, paths)]) == 0
        said = " ".join(capsys.readouterr().out.split())
        expected = f"NCCL Inspector's files state form {found}: only the fields of v4.0 are read."
        assert (expected in said) == (found is not None)
    assert int(read_inspector(paths, "inspector").bytes.sum()) == 4 * 3 * 2 * SIZE * 3 // 4
