# SPDX-License-Identifier: Apache-2.0
"""Tables and port groups are read from all forms of ibdiagnet 2's `.far` file. Damage in the file is reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof_converter.fabric.damage import DamageKind
from ibprof_converter.routing.far import is_far_of, parse_far, read_far
from ibprof_converter.routing.folder_dumps import Content, identify_content
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.subnet import Subnet, read_rail
from ibprof_converter.routing.table_formats import read_tables
from ibprof_converter.routing.tables import NO_GROUP, UNREACHABLE, AdaptiveRouting, LidState, SubGroup
from ibprof_testing.lab.far import FarForm, find_minimal_ports, write_far
from ibprof_testing.samples.equality import check_tables
from ibprof_testing.samples.fabrics import IBDIAGNET, OPENSM, load_sample, read_sample_bytes

SMALL = """# comment
File version: 1

Switch 0x0000000000000010
description of any form, PLFT too
Groups Definition:
  Group  Sub Group  WHBF  Ports
---------------------------------
  1       0       0     3,4,
  1       1       7     9, 7,
  2       0       0
  3       0       0     5,
          6,7,

LFT Definition:
PLFT_NUM: 0, top: 0x9
  LID     Static Port    Lid State    Group
---------------------------------
0x0001          3           Free          1
0x0002          8         Static          0
0x0003        255            HBF          3
0x0004          5           Free          2
0x0005          5           Free          9
0x0006          5       Somehow          1
PLFT_NUM: 1, top: 0x9
  LID     Static Port    Lid State    Group
---------------------------------
0x0001          9           Free          1
"""


def parse(text: str) -> AdaptiveRouting:
    return parse_far("x.far", text.encode())


def test_tables_groups_and_states_are_those_of_the_file() -> None:
    found = parse(SMALL)
    assert found.tables.switch_guid.tolist() == [0x10]
    assert found.tables.port.tolist() == [[UNREACHABLE, 3, 8, UNREACHABLE, 5, 5, 5]]
    assert found.group.tolist() == [[NO_GROUP, 1, NO_GROUP, 3, NO_GROUP, NO_GROUP, NO_GROUP]]
    assert [LidState(each) for each in found.state[0, 1:4]] == [LidState.FREE, LidState.STATIC, LidState.HASHED]
    assert found.groups[0x10, 1] == (SubGroup(0, 0, (3, 4)), SubGroup(1, 7, (7, 9)))
    assert found.groups[0x10, 3] == (SubGroup(0, 0, (5, 6, 7)),)
    assert found.tables.damage == ()
    assert found.tables.warnings == ("1 switch with private tables (PLFT); only table 0 is used",)
    assert found.warnings == (
        "1 group with weights for hash-based forwarding (WHBF), which are not used",
        "1 group with ports in several sub-groups; only the first sub-group of each is used",
        "1 entry with the unknown state 'Somehow'; ibprof uses the static ports",
        "groups without ports in 2 entries of 1 switch; ibprof uses the static ports",
    )
    assert found.switches == 1
    assert found.group_of(0x10, 1) == 1
    assert found.group_of(0x11, 1) == found.group_of(0x10, 70) == NO_GROUP


FORMS = [
    FarForm(),
    FarForm(blanks="", line_end="\r\n"),
    FarForm(cut=1, private=2),
    FarForm(states=("Free", "HBF", "Static")),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sample", ["oversub-faulty", "testbed44", "dragonfly-72"])
def test_a_list_and_a_far_are_a_fabric_with_tables_and_groups(tmp_path: Path, sample: str, form: FarForm) -> None:
    expected = load_sample(sample, IBDIAGNET)
    (tmp_path / "ibdiagnet2.lst").write_bytes(read_sample_bytes(sample, IBDIAGNET))
    (tmp_path / "ibdiagnet2.far").write_bytes(write_far(expected, form).encode())
    for names in ([tmp_path], [tmp_path / "ibdiagnet2.lst"], sorted(tmp_path.iterdir(), reverse=True)):
        (files,) = find_rails(names)
        subnet = read_rail(files)
        check_tables(subnet.tables, expected.tables)
        assert subnet.adaptive is not None
        check_groups(subnet, form)


def check_groups(subnet: Subnet, form: FarForm) -> None:
    """Compare each group with a breadth-first search over the fabric."""
    fabric, adaptive = subnet.fabric, subnet.adaptive
    assert adaptive is not None
    minimal = find_minimal_ports(fabric)
    node_of = {int(guid): node for node, guid in enumerate(fabric.node_guid)}
    network = subnet.routes.network
    chosen = 0
    for row, guid in enumerate(adaptive.tables.switch_guid.tolist()):
        for lid in np.flatnonzero(fabric.lid_port[: adaptive.group.shape[1]] >= 0).tolist():
            index = fabric.lid_port[lid]
            end = network.end_at[fabric.port_node[index], fabric.port_number[index]]
            target = int(network.next_node[end]) if end >= 0 else int(fabric.port_node[index])
            ports = minimal.get((node_of[guid], target), [])
            number = int(adaptive.group[row, lid])
            word = form.states[lid % len(form.states)]
            reachable = adaptive.tables.port[row, lid] != UNREACHABLE
            if number == NO_GROUP:
                assert len(ports) < 2 or word == "Static" or not reachable
                continue
            chosen += 1
            assert adaptive.state[row, lid] == (LidState.HASHED if word == "HBF" else LidState.FREE)
            assert [port for part in adaptive.groups[guid, number] for port in part.ports] == ports
    assert chosen


def test_tables_of_a_far_come_after_those_of_other_files(tmp_path: Path) -> None:
    sample = load_sample("testbed44", OPENSM)
    (tmp_path / "opensm-subnet.lst").write_bytes(read_sample_bytes("testbed44", OPENSM))
    (tmp_path / "opensm.fdbs").write_bytes(read_sample_bytes("testbed44", "opensm.fdbs"))
    text = write_far(sample)
    last = text.rindex("Static")
    line = text[text.rindex("\n", 0, last) + 1 : text.index("\n", last)]
    changed = line.replace(line.split()[1], "33", 1)
    (tmp_path / "ibdiagnet2.far").write_text(text.replace(line, changed))
    (files,) = find_rails([tmp_path])
    subnet = read_rail(files)
    assert subnet.tables.name.endswith("opensm.fdbs")
    assert subnet.adaptive is not None
    assert any("ibdiagnet2.far: 1 static ports differ from" in warning for warning in subnet.warnings)


def test_a_far_of_another_fabric_is_named_and_not_used(tmp_path: Path) -> None:
    (tmp_path / "opensm-subnet.lst").write_bytes(read_sample_bytes("testbed44", OPENSM))
    (tmp_path / "opensm.fdbs").write_bytes(read_sample_bytes("testbed44", "opensm.fdbs"))
    text = write_far(load_sample("testbed44", OPENSM))
    (tmp_path / "ibdiagnet2.far").write_text(text.replace("Switch 0x0002", "Switch 0x00f2"))
    (files,) = find_rails([tmp_path])
    assert any("ibdiagnet2.far: not used, since no list has its switches" in note for note in files.notes)
    named = find_rails([tmp_path / "opensm-subnet.lst", tmp_path / "ibdiagnet2.far"])
    subnet = read_rail(named[0])
    assert subnet.adaptive is None
    assert any("none of its switches is in" in warning for warning in subnet.warnings)


def test_each_rail_of_a_folder_gets_its_far(tmp_path: Path) -> None:
    for rail in (1, 2):
        subnet = load_sample(f"dualrail/rail{rail}", OPENSM)
        (tmp_path / f"r{rail}.lst").write_bytes(read_sample_bytes(f"dualrail/rail{rail}", OPENSM))
        (tmp_path / f"far-{3 - rail}.txt").write_text(write_far(subnet))
    rails = find_rails([tmp_path])
    assert [rail.adaptive.name if rail.adaptive else "" for rail in rails] == ["far-2.txt", "far-1.txt"]
    for rail, files in enumerate(rails, 1):
        check_tables(read_rail(files).tables, load_sample(f"dualrail/rail{rail}", OPENSM).tables)


def test_a_far_without_choices_is_static_tables(tmp_path: Path) -> None:
    sample = load_sample("testbed44", OPENSM)
    (tmp_path / "a.lst").write_bytes(read_sample_bytes("testbed44", OPENSM))
    (tmp_path / "a.far").write_text(write_far(sample, FarForm(states=("Static",))))
    assert identify_content(tmp_path / "a.far") is Content.ADAPTIVE
    subnet = read_rail(find_rails([tmp_path])[0])
    assert subnet.adaptive is None
    check_tables(subnet.tables, sample.tables)


DAMAGED = {
    "a prompt before it": ("# comment", "$ cat ibdiagnet2.far\n# comment", DamageKind.STRAY, "1 line left out: it is"),
    "a timeout among entries": (
        "0x0002  ",
        "-E- umad timed out\n0x0002  ",
        DamageKind.NO_ANSWER,
        "1 message of the tool",
    ),
    "a cut entry": (
        "0x0002          8         Static          0",
        "0x0002          8",
        DamageKind.LOST,
        "expected `0x<LID>",
    ),
    "a port too large": ("0x0002          8 ", "0x0002        256 ", DamageKind.LOST, "ports up to 255"),
    "no LID": ("0x0002 ", "0x0000 ", DamageKind.LOST, "LIDs from 0x0001"),
    "a group without columns": ("  2       0       0\n", "  2       0\n", DamageKind.LOST, "expected `<group>"),
    "a group with port 0": ("5,\n          6,7,", "0,", DamageKind.LOST, "expected `<group>"),
    "two ports for one LID": (
        "0x0002          8         Static          0\n",
        "0x0002          8         Static          0\n0x0002          9         Static          0\n",
        DamageKind.LOST,
        "1 LID has different entries, which are not used: 0x0002",
    ),
}


@pytest.mark.parametrize(("old", "new", "kind", "words"), DAMAGED.values(), ids=DAMAGED.keys())
def test_what_is_damaged_is_reported_and_the_rest_is_used(old: str, new: str, kind: DamageKind, words: str) -> None:
    assert old in SMALL
    found = parse(SMALL.replace(old, new, 1))
    (damage,) = found.tables.damage
    assert damage.kind is kind
    assert words in damage.text
    assert found.tables.port[0, 1] == 3
    assert found.group[0, 1] == 1


def test_entries_after_a_damaged_header_are_of_no_switch() -> None:
    second = SMALL[SMALL.index("Switch") :].replace("0x0000000000000010", "0xzz")
    found = parse(SMALL + second)
    assert found.tables.switch_guid.tolist() == [0x10]
    assert found.tables.port[0, 1] == 3
    assert any("7 entries after a damaged header" in damage.text for damage in found.tables.damage)


def test_a_switch_without_entries_is_named() -> None:
    found = parse(SMALL + "Switch 0x20\nGroups Definition:\n")
    assert any("0x0000000000000020: no entries" in damage.text for damage in found.tables.damage)


@pytest.mark.parametrize(
    "text", ["Switch 0x10\nLFT Definition:\n", "Switch 0x10\nLFT Definition:\n0x0001 300 Static 0\n"]
)
def test_a_far_of_which_nothing_is_left_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.far"
    path.write_text(text)
    for read in (read_far, read_tables):
        with pytest.raises(InputError, match=r"x\.far:.*expected"):
            read(path)


def test_the_beginning_of_a_far_is_enough_to_know_its_fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.far"
    path.write_text("Switch 0x0000000000000010\n" + "#\n" * (1 << 20) + "Switch 0x0000000000000020\n")
    assert is_far_of(path, {0x10})
    assert is_far_of(path, {0x20})
    assert not is_far_of(path, {0x30})
    monkeypatch.setattr("ibprof_converter.routing.far.read_dump", lambda _: pytest.fail("it was read as a whole"))
    assert is_far_of(path, {0x10, 0x30})
