# SPDX-License-Identifier: Apache-2.0
"""Damaged dumps are read, or refused by InputError; no other exception occurs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ibprof.errors import InconsistentError, InputError, UsageError
from ibprof_converter.cli.place import torchrun_script
from ibprof_converter.fabric.guid2lid import read_lid_ranges
from ibprof_converter.fabric.link_formats import read_fabric
from ibprof_converter.fabric.node_names import read_name_map
from ibprof_converter.routing.far import read_far
from ibprof_converter.routing.table_formats import read_tables
from ibprof_converter.traffic.hostlists import read_host_list
from ibprof_converter.traffic.nccl_topology import read_nccl_graphs, read_nccl_log, read_nccl_topology
from ibprof_converter.traffic.port_counters import read_counters
from ibprof_testing.lab.db_csv import write_db_csv
from ibprof_testing.lab.far import FarForm, write_far
from ibprof_testing.lab.net_dump import label_as_cage, write_net_dump
from ibprof_testing.samples.fabrics import OPENSM, load_sample, read_sample_bytes
from ibprof_testing.strategies import scale_examples


def read_any_counters(path: Path) -> object:
    return read_counters(path, [load_sample("counters-small", OPENSM).fabric])


def read_hosts(path: Path) -> object:
    return read_host_list(path, 2)


READERS: list[tuple[str, Callable[[Path], object]]] = [
    ("ibdiagnet.lst", read_fabric),
    ("opensm-subnet.lst", read_fabric),
    ("ibdiagnet.fdbs", read_tables),
    ("opensm.fdbs", read_tables),
    ("guid2lid", read_lid_ranges),
    ("ibnetdiscover.out", read_fabric),
    ("ibnetdiscover-p.out", read_fabric),
    ("opensm-lfts.dump", read_tables),
    ("dump_fts.out", read_tables),
    ("fabric.db_csv", read_fabric),
    ("fabric.net_dump", read_fabric),
    ("fabric.far", read_far),
    ("perfquery.out", read_any_counters),
    ("ibqueryerrors-data.out", read_any_counters),
    ("fabric.pm_info", read_any_counters),
    ("fabric.pm", read_any_counters),
    ("ib-node-name-map", read_name_map),
    ("topology.conf", read_fabric),
    ("topology.yaml", read_fabric),
    ("leaf1.json", read_fabric),
    ("graph.json", read_fabric),
    ("graph.json", read_hosts),
    ("hostfile", read_hosts),
    ("rankfile", read_hosts),
    ("launch.sh", read_hosts),
    ("graph.xml", read_nccl_graphs),
    ("nccl.log", lambda path: read_nccl_log([path])),
    ("topology.xml", read_nccl_topology),
]

LISTS = {
    "ib-node-name-map": b'# ours\n0x0002c90200f00010 "leaf 1"\nS-0002c90200f00028 spine1\n',
    "hostfile": b"# mine\nnode01 slots=2\nnode02:3\nnode[03-05,9],x\n",
    "topology.conf": b"SwitchName=s0 Switches=leaf[1-2] LinkSpeed=1\nSwitchName=leaf1 Nodes=n[1-3],\\\n  x\n"
    b"BlockName=b Nodes=m[1-2]\n",
    "topology.yaml": b"---\n- topology: a\n  cluster_default: true\n  tree:\n    switches:\n      - switch: s0\n"
    b"        children: leaf[1-2]\n      - switch: leaf1\n        nodes: n[1-3]\n",
    "leaf1.json": b'{\n  "lldp": {\n    "interface": [\n      {"swp1": {"chassis": {"h1": {"id": {"type": "mac",'
    b' "value": "02:00"}, "capability": [{"type": "Bridge", "enabled": false}]}}, "port": {"id": {"type": "mac",'
    b' "value": "02:00"}, "descr": "eth0", "auto-negotiation": {"current": "100GigBaseCR4"}}}},\n      {"swp2":'
    b' {"chassis": {"id": {"type": "mac", "value": "02:01"}}, "port": {"id": {"type": "ifname", "value": "e"}}}}\n'
    b"    ]\n  }\n}\n",
    "graph.json": b'{\n "instances": [\n  {"id": "n1", "network_layers": ["leaf1", "s1"]},\n'
    b'  {"id": "n2", "network_layers": ["leaf2", "s1"], "labels": {"a": "b"}}\n ]\n}\n',
    "fabric.pm": b"-----\nPort=1 Lid=0x0002 GUID=0x0002c90200400000 Device=54000 Port Name=leaf1/P1\n-----\n"
    b"link_down_counter=0x00\nport_xmit_data=0x00000007\nport_xmit_data_extended=0x0000000000000009\n"
    b"-----\nPort=2 Lid=2 GUID=0x0002c90200400000 Device=54000 Port Name=leaf1/P2\nport_xmit_data=7\n",
    "launch.sh": torchrun_script(["a", "b"]).encode(),
    "nccl.log": b"a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB\na:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0]"
    b" [send] via NET/IB/0/GDRDMA\na:1:2 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0\n"
    b"a:1:2 [0] NCCL INFO Connected all rings\n",
    "graph.xml": b'<graphs version="1">\n <graph id="0" pattern="4" crossnic="0">\n  <channel>\n   <net dev="0"/>\n'
    b'   <gpu dev="0x1" rank="0"/>\n   <net dev="0"/>\n  </channel>\n </graph>\n</graphs>\n',
    "topology.xml": b'<system version="1">\n <cpu numaid="0">\n  <pci busid="0000:07:00.0">\n'
    b'   <gpu dev="0" rank="0"/>\n   <nic>\n    <net name="mlx5_0" dev="0" guid="0x1"/>\n   </nic>\n  </pci>\n'
    b" </cpu>\n</system>\n",
    "rankfile": b"rank 0=a slot=0\nrank 1=b slot=1:0\n",
}


@cache
def sample_text(name: str) -> bytes:
    if name == "fabric.far":
        return write_far(
            load_sample("quirks-small", OPENSM), FarForm(cut=1, private=1, states=("Free", "HBF"))
        ).encode()
    if name in LISTS:
        return LISTS[name]
    if name in ("perfquery.out", "ibqueryerrors-data.out"):
        return read_sample_bytes("counters-small", name)
    if name == "fabric.net_dump":
        return write_net_dump(load_sample("quirks-small", OPENSM).fabric, label_as_cage).encode()
    if name in ("fabric.db_csv", "fabric.pm_info"):
        return write_db_csv(load_sample("quirks-small", OPENSM).fabric, {(0, 1): 7}).encode()
    return read_sample_bytes("quirks-small", name)


Edit = tuple[str, int, bytes]
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "overwrite", "delete", "cut", "double"]),
        st.integers(0, 1 << 16),
        st.one_of(st.binary(max_size=8), st.sampled_from([b"\n", b" ", b"{", b"}", b"0", b"F", b":", b"0x", b"#"])),
    ),
    min_size=1,
    max_size=4,
)


def damage(data: bytes, edits: list[Edit]) -> bytes:
    for kind, place, piece in edits:
        at = place % (len(data) + 1)
        line = data[at : data.find(b"\n", at) + 1]
        data = {
            "insert": data[:at] + piece + data[at:],
            "overwrite": data[:at] + piece + data[at + len(piece) :],
            "delete": data[:at] + data[at + len(piece) :],
            "cut": data[:at],
            "double": data[:at] + line + data[at:],
        }[kind]
    return data


@pytest.mark.parametrize(("name", "read"), READERS)
@given(edits=EDITS)
@settings(max_examples=scale_examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_dumps_are_read_or_refused(
    tmp_path: Path, name: str, read: Callable[[Path], object], edits: list[Edit]
) -> None:
    path = tmp_path / name
    path.write_bytes(damage(sample_text(name), edits))
    with contextlib.suppress(InputError, InconsistentError, UsageError):
        read(path)
