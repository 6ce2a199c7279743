# SPDX-License-Identifier: Apache-2.0
"""Files in the formats of NCCL Inspector v4.0 to v4.4 are read as modelled traffic."""

from __future__ import annotations

import gzip
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


def write_dumps(paths: list[Path], form: str, **stats: int) -> None:
    """Rewrite files of v4.0 so that a `dump` line states the communicator and process of the following lines."""
    for path in paths:
        lines = [json.loads(text) for text in path.read_text().splitlines()]
        counts = {
            "coll_records": len(lines),
            "coll_dropped_total": 0,
            "p2p_records": 0,
            "p2p_dropped_total": 0,
            **stats,
        }
        head = {"header": lines[0]["header"], "metadata": lines[0]["metadata"], "dump_stats": counts}
        head["metadata"]["inspector_output_format_version"] = form
        rest = [{key: each[key] for key in each.keys() - {"header", "metadata"}} for each in lines]
        path.write_text("".join(f"{json.dumps(each)}\n" for each in (head, *rest)))


@pytest.mark.parametrize("form", ["v4.3", "v4.4"])
def test_lines_belong_to_the_dump_before_them(form: str, tmp_path: Path) -> None:
    """Two communicators share compressed files."""
    paths = write(tmp_path, "AllReduce")
    expected = read_inspector(paths, "inspector")
    write_dumps(paths, form)
    packed = [path.with_suffix(".log.gz") for path in paths]
    for path, to in zip(paths, packed, strict=True):
        second = path.read_text().replace("0x7f", "0x80").replace("AllReduce", "AllGather")
        to.write_bytes(gzip.compress((path.read_text() + second).encode()))
    found = read_inspector(packed, "inspector")
    first = found.operation == found.operations.index("ncclAllReduce")
    assert (found.ranks, found.doubts) == (8, ())
    assert found.bytes[first].tolist() == expected.bytes.tolist()
    assert int(found.bytes[~first].sum()) == 8 * 3 * SIZE * 7


def test_a_line_without_a_dump_before_it_is_an_error(tmp_path: Path) -> None:
    paths = write(tmp_path, "AllReduce")
    write_dumps(paths, "v4.3")
    paths[2].write_text(paths[2].read_text().split("\n", 1)[1])
    with pytest.raises(InputError, match=rf'{paths[2].name}:1: expected "metadata", an object'):
        read_inspector(paths, "inspector")


def test_an_all_reduce_takes_nccls_trees_where_the_file_states_a_tree(tmp_path: Path) -> None:
    """NCCL's two trees of four hosts (0-2, 2-1, 2-3, and mirrored 3-1, 1-2, 1-0) carry half of the bytes each."""
    paths = write(tmp_path, "AllReduce", on_host=1, count=2)
    for path in paths:
        first, second = path.read_text().splitlines()
        tree = first.replace('"coll_sn"', '"coll_algo": "TREE", "coll_proto": "LL128", "coll_sn"')
        path.write_text(f"{tree}\n{second.replace('AllReduce', 'AllGather')}\n".replace("v4.0", "v4.2"))
    traffic = read_inspector(paths, "inspector")
    rows = traffic.operation == traffic.operations.index("ncclAllReduce")
    pairs = zip(*(each[rows].tolist() for each in (traffic.source, traffic.destination, traffic.bytes)), strict=True)
    half = dict.fromkeys([(0, 2), (2, 3), (1, 3), (0, 1)], SIZE // 2) | {(1, 2): SIZE}
    assert {(source, to): amount for source, to, amount in pairs} == {
        pair: amount for (one, other), amount in half.items() for pair in ((one, other), (other, one))
    }
    assert int(traffic.bytes[~rows].sum()) == 4 * 3 * SIZE, "other collectives are rings"
    assert traffic.doubts == ()


def test_what_is_not_on_links_is_in_the_first_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write(tmp_path, "AllReduce", hosts=2)
    sends = {"p2p": "Send", "p2p_sn": 1, "p2p_peer": 3, "p2p_msg_size_bytes": 4096}
    odd = {"coll_perf": {**collective("AllGather", 7)["coll_perf"], "coll_algo": "PAT"}}
    more = [{"p2p_perf": sends}, collective("All2All", 0), odd, collective("AllReduce", 5), {"proxy_trace": {}}]
    paths[0].write_text(paths[0].read_text() + "".join(f"{line(0, 4, 'host01', done)}\n" for done in more))
    write_dumps(paths, "v4.3", coll_dropped_total=5, p2p_dropped_total=2)
    paths[1].write_text("".join(paths[1].read_text().splitlines(keepends=True)[:-1])[:-9])
    paths[3].unlink()
    assert main([str(FABRIC), *map(str, paths[:3]), "--full"]) == 5
    said = " ".join(capsys.readouterr().out.split())
    for sentence in (
        "1 rank of communicators left no file: its sent bytes are missing",
        "2 of 8 numbered collectives are in no file, so their bytes are missing",
        "NCCL Inspector dropped 15 records of collectives, and 6 of sends and receives.",
        "have no route: collectives that ibprof cannot model: 'All2All'",
        "Files of NCCL Inspector are cut off: the bytes of 2 records are missing",
        "Collectives of other algorithms are modelled as rings: 'PAT' (1).",
        "Records of other kinds are not read: 'proxy_trace' (1).",
    ):
        assert sentence in said
    traffic = read_inspector(paths[:3], "inspector")
    assert traffic.unmapped == {
        "sends to ranks that left no file": 4096,
        "collectives that ibprof cannot model: 'All2All'": SIZE,
    }


def test_collectives_of_one_file_alone_are_left_out(tmp_path: Path) -> None:
    traffic = read_inspector(write(tmp_path, "AllReduce")[:1], "inspector")
    assert traffic.unmapped == {"collectives with a file of only one rank": 3 * 2 * SIZE * 7 // 8}


@pytest.mark.parametrize("algorithm", ["RING", "TREE"])
def test_collectives_of_a_communicator_of_one_rank_send_nothing(algorithm: str, tmp_path: Path) -> None:
    paths = write(tmp_path, "AllReduce")
    alone = collective("AllReduce", 0)
    alone["coll_perf"]["coll_algo"] = algorithm
    whole = read_inspector(paths, "inspector")
    paths[0].write_text(f"{paths[0].read_text()}{line(0, 1, 'host01', alone, communicator='0x90')}\n")
    traffic = read_inspector(paths, "inspector")
    assert traffic.unmapped == {}
    assert traffic.bytes.tolist() == whole.bytes.tolist()


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
    """A rank's file lacks collectives if the rank overwrote the list of completed collectives."""
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
    ("stated", "found"), [('"v9.1"', "'v9.1'"), ('"v4.2"', None), ('""', "none"), ("7", "'7'"), ('"v4.0"', None)]
)
def test_an_unknown_form_is_read_and_named_in_the_first_lines(
    stated: str, found: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write(tmp_path, "AllReduce", hosts=2)
    paths[1].write_text(paths[1].read_text().replace('"v4.0"', stated))
    for fabric in ([str(FABRIC)], []):
        assert main([*fabric, *map(str, paths)]) == 0
        said = " ".join(capsys.readouterr().out.split())
        expected = f"NCCL Inspector's files have format {found}; ibprof reads only the fields of formats v4.0 to v4.4."
        assert (expected in said) == (found is not None)
    assert int(read_inspector(paths, "inspector").bytes.sum()) == 4 * 3 * 2 * SIZE * 3 // 4
