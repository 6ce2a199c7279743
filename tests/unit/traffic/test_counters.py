# SPDX-License-Identifier: Apache-2.0
"""Port counters in output of real tools equal the simulator's values, and are compared with predictions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof_converter.cli import layout, report
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.traffic import port_counters
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.lid_traffic import map_to_lids
from ibprof_converter.traffic.link_loads import load_counted, load_links
from ibprof_converter.traffic.patterns import build_pattern
from ibprof_converter.traffic.port_counters import (
    compare_counters,
    looks_like_counters,
    read_counters,
    subtract_counters,
)
from ibprof_converter.traffic.traffic_data import PortCounters
from ibprof_testing.lab.db_csv import write_db_csv
from ibprof_testing.samples.fabrics import IBDIAGNET, OPENSM, find_sample, load_sample, read_sample_bytes

SAMPLE = "counters-small"
LEAF1 = 0x0002C90200400000
NODE01, NODE02 = 0x0002C903000A0000, 0x0002C903000A0010
SET = 5_000_000_000
"""Number of 4-byte words that port 1 of leaf1 sends, as set in ibsim. Datagrams of the tools add some kB."""


def fabric() -> Fabric:
    return load_sample(SAMPLE, OPENSM).fabric


def read(tmp_path: Path, name: str) -> dict[tuple[int, int], int]:
    path = tmp_path / "counters.txt"
    path.write_bytes(read_sample_bytes(SAMPLE, name))
    counters = read_counters(path, [fabric()])
    return {
        (int(guid), int(port)): int(count)
        for guid, port, count in zip(counters.node_guid, counters.port, counters.bytes, strict=True)
    }


def test_every_tool_says_what_was_set_in_bytes(tmp_path: Path) -> None:
    """A word is 4 bytes. ibqueryerrors prints 5000008856 words as `18.626GB`."""
    for name in ("perfquery.out", "ibqueryerrors-counters.out", "ibqueryerrors-data.out"):
        counters = read(tmp_path, name)
        assert 0 <= counters[LEAF1, 1] - 4 * SET < 200_000, name
    assert read(tmp_path, "ibqueryerrors-data.out")[NODE02 + 1, 1] == 4 * 1152  # found by the GUID of the host's port
    assert 42420 * 4 <= read(tmp_path, "perfquery.out")[NODE01, 1] < 42420 * 4 + 400_000
    assert len(read(tmp_path, "ibqueryerrors-counters.out")) == 4 + 3 * 24


def test_counters_find_their_links_by_either_guid(tmp_path: Path) -> None:
    path = tmp_path / "q"
    path.write_bytes(read_sample_bytes(SAMPLE, "ibqueryerrors-data.out"))
    loads = load_counted(read_counters(path, [fabric()]), [fabric()])
    assert loads.bytes_unrouted == {}
    assert int((loads.by_rail[0] > 0).sum()) == 2


def test_db_csv_counts_too(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(write_db_csv(fabric(), {(0, 1): 7, (1, 3): 9}))
    counters = read_counters(path, [fabric()])
    assert counters.bytes.tolist() == [28, 36]
    assert counters.node_guid.tolist() == fabric().node_guid[[0, 1]].tolist()


def test_a_pm_file_counts_by_lid_and_port(tmp_path: Path) -> None:
    """The file has a section for each port, and ports of a switch have the switch's LID, as in public parsers."""
    of = fabric()
    node, port = (int(of.link_node[0, 0]), int(of.link_port[0, 0]))
    lid = int(of.port_lid[of.port_node == node][0])
    head = "-" * 50 + "\nPort={port} Lid={lid} GUID=0x{guid:016x} Device=54000 Port Name=x/P1\n" + "-" * 50 + "\n"
    counted = "link_down_counter=0x00\nport_xmit_data=0x{short:08x}\nport_rcv_data=0x00000001\n"
    long = "port_xmit_data_extended=0x{long:016x}\nport_rcv_data_extended=0x0000000000000001\n"
    path = tmp_path / "ibdiagnet2.pm"
    text = (
        head.format(port=port, lid=f"{lid:#06x}", guid=1) + counted.format(short=0xFFFFFFFF) + long.format(long=5 << 32)
    )
    text += head.format(port=2, lid=lid, guid=1) + counted.format(short=7)
    text += head.format(port=3, lid=lid, guid=1) + counted.format(short=0xFFFFFFFF)
    text += head.format(port=255, lid=lid, guid=1) + counted.format(short=9)
    text += head.format(port=1, lid="0x0999", guid=1) + counted.format(short=9)
    path.write_text(text)
    assert looks_like_counters(path)
    counters = read_counters(path, [of])
    found = dict(zip(counters.port.tolist(), counters.bytes.tolist(), strict=True))
    assert found == {port: 4 * (5 << 32), 2: 28, 3: 4 * 0xFFFFFFFF}
    assert set(counters.node_guid.tolist()) == {int(of.node_guid[node])}
    assert "1 LIDs belong to no node" in counters.notes[0]
    assert "1 counters are at their 32-bit limit" in counters.notes[1]
    # ibdiagnet2.cables has the same section heads, but no counters.
    path.write_text(head.format(port=1, lid=lid, guid=1) + "Vendor: Mellanox\n")
    assert not looks_like_counters(path)


def test_short_counters_at_their_limit_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("# Port counters: Lid 2 port 1 (CapMask: 0x1300)\nPortXmitData:....................4294967295\n")
    assert "1 counters are at their 32-bit limit" in read_counters(path, [fabric()]).notes[0]
    path.write_text("# Port counters: Lid 999 port 1 (CapMask: 0x1300)\nPortXmitData:....................1\n")
    with pytest.raises(InputError, match="expected counters PortXmitData of ports, found none"):
        read_counters(path, [fabric()])


def test_one_reading_less_another() -> None:
    def counters(*counts: int) -> PortCounters:
        ports = np.arange(1, len(counts) + 1, dtype=np.int32)
        return PortCounters(np.full(len(counts), LEAF1, np.uint64), ports, np.array(counts, np.uint64), "x")

    between = subtract_counters(counters(110, 20, 5), counters(100, 30))
    assert between.bytes.tolist() == [10, 20, 5]
    assert "1 counters decreased" in between.notes[0]
    assert "1 ports are only in the later file" in between.notes[1]


def write_counters(path: Path, counted: np.ndarray, of: Fabric, left_out: int | None = None) -> None:
    rows = [
        f"{int(of.node_guid[of.link_node[link, end]])},{of.link_port[link, end]},{int(counted[link, end])}\n"
        for link in range(of.links)
        for end in (0, 1)
        if link != left_out
    ]
    path.write_text("guid,port,bytes\n" + "".join(rows))


def test_what_counters_show_beyond_the_prediction_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counters contain the predicted bytes, 2% for headers and, on one link, a gigabyte of another job."""
    lst = str(find_sample("testbed44", IBDIAGNET))
    subnet = load_sample("testbed44", IBDIAGNET)
    of = subnet.fabric
    hosts = find_hosts([of])
    demand = build_pattern("pattern:all-to-all:100000", len(hosts.name))
    predicted = load_links(map_to_lids(demand, hosts, [of], None, None), [subnet]).by_rail[0][:, :, 0]
    counted = predicted + predicted // np.uint64(50)
    counted[3, 1] += np.uint64(10**9)
    counted[5, 0] = 0
    write_counters(tmp_path / "c.csv", counted, of, left_out=7)
    assert report.main([lst, "pattern:all-to-all:100000", "--json", "--counters", str(tmp_path / "c.csv")]) == 0
    found = json.loads(capsys.readouterr().out)["counters"]
    known = np.delete(np.arange(of.links), 7)
    assert found["bytes_counted"] == int(counted[known].sum())
    assert found["bytes_predicted"] == int(predicted[known].sum())
    assert found["bytes_explained"] + found["bytes_elsewhere"] == found["bytes_counted"]
    assert found["bytes_explained"] + found["bytes_missing"] == found["bytes_predicted"]
    assert found["bytes_missing"] == int(predicted[5, 0])
    assert found["ends_uncounted"] == 2
    assert [spot["port"] for spot in found["surplus"]] == [int(of.link_port[3, 1])]
    assert [spot["port"] for spot in found["deficit"]] == [int(of.link_port[5, 0])]
    assert report.main([lst, "pattern:all-to-all:100000", "--counters", str(tmp_path / "c.csv"), "--full"]) == 0
    assert "most from other traffic:" in capsys.readouterr().out


def test_counters_are_columns_of_links_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lst = str(find_sample(SAMPLE, OPENSM))
    path = tmp_path / "pq"
    path.write_bytes(read_sample_bytes(SAMPLE, "perfquery.out"))
    assert layout.main([lst, "pattern:all-to-all", "--counters", str(path)]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.endswith(",a_bytes,b_bytes,a_counted,b_counted")
    counted = {line.split(",")[2]: line.split(",")[-2:] for line in lines}
    assert int(counted["node01 HCA-1"][1]) > 4 * SET
    assert counted["node04 HCA-1"] == ["", ""]
    assert layout.main([lst, str(path)]) == 0  # a file of counters is also valid traffic
    assert layout.main([lst, str(path), "--counters", str(path)]) == 2
    assert layout.main([lst, "pattern:all-to-all", "--counters", lst]) != 0


def test_agreement_over_nothing_is_no_agreement() -> None:
    of = fabric()
    nothing = PortCounters(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.uint64), "none")
    agreement = compare_counters(load_counted(nothing, [of]), nothing, [of])
    assert agreement.correlation is None
    assert (agreement.ends_counted, agreement.bytes_counted, agreement.surplus) == (0, 0, ())


def test_numbers_of_a_pm_that_lost_their_prefix_are_decimal() -> None:
    """Without their `0x`, numbers have leading zeros, which Python's int(text, 0) refuses."""
    assert port_counters._read_number(b"0000000000000009") == 9
    assert port_counters._read_number(b"0x000000000000001F") == 31
