# SPDX-License-Identifier: Apache-2.0
"""Partitions are read from files of OpenSM, ibdiagnet and smpquery. The last two tools ran on ibsim."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from ibprof.errors import InputError
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.partitions import apply_partitions, looks_like_partitions
from ibprof_testing.samples.many_adapters import make_subnet

FABRIC = make_subnet().fabric
PORTS = {FABRIC.node_name[node]: port for port, node in enumerate(FABRIC.port_node.tolist())}
A, B = (int(FABRIC.port_guid[PORTS[name]]) for name in ("gpu1 mlx5_10", "gpu2 mlx5_2"))
LIDS = [int(FABRIC.port_lid[PORTS[name]]) for name in ("gpu1 mlx5_10", "gpu2 mlx5_2")]

PKEY = f"""GROUP PKey:0x0002 Hosts:2
   Full gpu1/P1 lid=0x0018 guid={A:#018x} dev=4099
   Part gpu2/P1 lid=0x0030 guid={B:#018x} dev=4099
--------------------------------------------------------------------------------
"""

SMPQUERY = """lid {}
   0: 0xffff 0x8002 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000
   8: 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000
64 pkeys capacity for this port
ibwarn: [9941] sim_connect: attached as client 1 at node "H-0002c90300000000"

lid {}
   0: 0x7fff 0x0002 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000
"""

CONF = f"""# storage of all
Default = 0x7fff, ipoib : ALL, SELF=full, {A}=full ;
storage=0x8002, defmember=full : mgid=ff12:401b::0707,sl=1 # a group
   {A:#x}, {B:#x}=limi;
"""


@pytest.mark.parametrize(
    ("text", "default"),
    [(PKEY, {}), (SMPQUERY.format(*LIDS), {0x7FFF: (True, False)}), (CONF, {0x7FFF: (True, False)})],
)
def test_all_forms_give_full_and_limited_members(
    tmp_path: Path, text: str, default: dict[int, tuple[bool, bool]]
) -> None:
    assert looks_like_partitions(text.encode())
    (tmp_path / "p").write_text(text)
    made = apply_partitions(FABRIC, [tmp_path / "p"]).partitions
    assert made is not None
    for place, name in enumerate(("gpu1 mlx5_10", "gpu2 mlx5_2")):
        keys = {2: not place, **{key: is_full[place] for key, is_full in default.items()}}
        assert made.of_node[FABRIC.node_name.index(name)] == keys


def test_kinds_of_nodes_and_properties_after_a_second_colon(tmp_path: Path) -> None:
    (tmp_path / "p").write_text(f"x = 5 : defmember=full : ALL_CAS=limited, {A:#x};\ny: ALL_SWITCHES=full;\n")
    made = apply_partitions(FABRIC, [tmp_path / "p"]).partitions
    assert made is not None
    switch = int((FABRIC.node_kind == NodeKind.SWITCH).argmax())
    # Without a rule, all ports are limited members of the default partition.
    own = made.of_node[FABRIC.node_name.index("gpu1 mlx5_10")]
    assert own == {5: True, 0x7FFF: False}
    assert made.of_node[FABRIC.node_name.index("gpu2 mlx5_2")] == {5: False, 0x7FFF: False}
    unnumbered = next(key for key, name in made.names.items() if name == "y")
    assert made.of_node[switch] == {unnumbered: True, 0x7FFF: False}


def test_partitions_without_a_number_are_one_by_name_alone(tmp_path: Path) -> None:
    (tmp_path / "p").write_text(f"Default=0x7fff : {A:#x}=full;\n,ipoib : {A:#x};\nx : {B:#x}=full;\n")
    (tmp_path / "q").write_text(f"Default=0x7fff : {A:#x}=full;\ny : {A:#x}=full;\nx : {B:#x}=full;\n")
    assert looks_like_partitions(b"x : 0x12=full;\n")
    made = apply_partitions(FABRIC, [tmp_path / "p", tmp_path / "q"]).partitions
    assert made is not None
    of_a, of_b = (made.of_node[FABRIC.node_name.index(name)] for name in ("gpu1 mlx5_10", "gpu2 mlx5_2"))
    assert len(of_a) == 3  # the default partition, a partition without a name, and y
    assert [made.names[key] for key in of_b] == ["x"]
    assert not of_a.keys() & of_b.keys()
    assert set(made.of_node) == {FABRIC.node_name.index(name) for name in ("gpu1 mlx5_10", "gpu2 mlx5_2")}


def test_many_partitions_are_read_in_linear_time(tmp_path: Path) -> None:
    """ibprof must not copy the remaining text at each definition, which would take hundreds of times as long."""

    def read_s(count: int) -> float:
        members = ", ".join(f"{port:#018x}=full" for port in range(1, 65))
        (tmp_path / "p").write_text("".join(f"t{each}={each} : {members};\n" for each in range(1, count)))
        begin = process_time()
        apply_partitions(FABRIC, [tmp_path / "p"])
        return process_time() - begin

    assert read_s(1600) < 40 * max(min(read_s(100) for _ in range(3)), 1e-3)


def test_a_file_of_another_fabric_is_reported(tmp_path: Path) -> None:
    (tmp_path / "p").write_text(PKEY.replace(f"{A:#018x}", "0x12").replace(f"{B:#018x}", "0x13"))
    fabric = apply_partitions(FABRIC, [tmp_path / "p"])
    assert fabric.partitions is None
    assert fabric.warnings[-1].endswith("it names no port of this fabric")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=0x8001 : 0x12=full;\nb=0x2 : 0x13\n", ":2: expected NAME=0xKEY"),
        (
            "a=0x8001 : 0x12=full, port1;\n",
            ":1: expected a port's GUID, ALL, ALL_CAS, ALL_SWITCHES or SELF, found 'port1'",
        ),
        (PKEY + "   Full gpu3\n", ":5: expected GROUP PKey:0x..., or Full or Part"),
        ("lid 3\n   0: 0xffff\nlid x\n", ":3: expected lid N, guid 0x"),
        ("lid 007\n   0: 0xffff\n", ":1: expected lid N, guid 0x"),
        ("a=1 :\n  0x12=full;\n\nb=010 : 0x12=full;\n", ":4: expected NAME=0xKEY"),
        ("a=99999 : 0x12=full;\n", ":1: expected NAME=0xKEY"),
        ("a=1 : 0012=full;\n", ":1: expected a port's GUID"),
    ],
)
def test_invalid_lines_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p").write_text(text)
    with pytest.raises(InputError, match=message):
        apply_partitions(FABRIC, [tmp_path / "p"])


@pytest.mark.parametrize(
    "text",
    [
        '0x0002c90300fa0091 "a: b"\n',
        "0x0002c90300fa0091 0x001c 0x001c\n",
        "src,dst,bytes\n0,1,5\n",
        "key: value\n",
        "key: 1\nother: 2\n",
        "a:\n",
    ],
)
def test_other_files_are_no_partitions(text: str) -> None:
    assert not looks_like_partitions(text.encode())
