# SPDX-License-Identifier: Apache-2.0
"""Output of lldpcli 1.0.16, of a switch and of hosts, is read as a fabric."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof_converter.cli import layout
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.link_formats import find_link_format, read_fabric
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.subnet import read_rail_fabric
from ibprof_converter.traffic.hosts import find_hosts

HOSTS = ("node01", "node02", "node10")
LEAVES = ("leaf1", "leaf2")

SPEED = "100GigBaseCR4 - 100GBASE-CR4 assembly"


def neighbour(name: str, port: str, is_switch: bool, by_mac: bool = False, current: str = SPEED) -> dict[str, Any]:
    flags = [{"type": "Bridge", "enabled": is_switch}, {"type": "Station", "enabled": not is_switch}]
    mac = {"type": "mac", "value": f"02:00:00:00:{len(name):02x}:{hash(port) % 256:02x}"}
    return {
        "via": "LLDP",
        "rid": "1",
        "age": "0 day, 00:01:05",
        "chassis": {name: {"id": mac, "descr": "test", "mgmt-ip": "fe80::1", "capability": flags}},
        "port": {
            "id": mac if by_mac else {"type": "ifname", "value": port},
            "descr": port,
            "ttl": "120",
            "auto-negotiation": {"supported": True, "enabled": True, "current": current},
        },
    }


def write(path: Path, entries: list[tuple[str, dict[str, Any]]]) -> None:
    """Write the file of one node. For a single neighbour, lldpcli writes an object instead of a list."""
    listed: Any = [{name: entry} for name, entry in entries]
    path.write_text(json.dumps({"lldp": {"interface": listed if len(listed) > 1 else listed[0]}}, indent=2))


def write_all(folder: Path) -> None:
    """Write the files of 3 hosts and 2 leaves. Each host has a cable to each leaf; each leaf has two to a spine."""
    folder.mkdir()
    for place, leaf in enumerate(LEAVES, 1):
        entries = [(f"swp{n}", neighbour(host, f"ens{place}", False, by_mac=True)) for n, host in enumerate(HOSTS, 1)]
        entries += [(f"swp{10 + n}", neighbour("spine", f"swp{2 * place + n}", True)) for n in (0, 1)]
        write(folder / f"{leaf}.json", entries)
    for number, host in enumerate(HOSTS, 1):
        write(
            folder / f"{host}.json",
            [(f"ens{n}", neighbour(leaf, f"swp{number}", True)) for n, leaf in enumerate(LEAVES, 1)],
        )


def cables(fabric: Fabric) -> list[tuple[str, str]]:
    return sorted(
        (min(names), max(names))
        for a, b in fabric.link_node.tolist()
        if (names := (fabric.node_name[a], fabric.node_name[b]))
    )


EXPECTED = sorted(
    [(min(host, leaf), max(host, leaf)) for host in HOSTS for leaf in LEAVES] + [(leaf, "spine") for leaf in LEAVES] * 2
)


def test_a_folder_of_files_is_one_fabric(tmp_path: Path) -> None:
    """Each link is counted once, whether one end lists it or both. A host has an adapter for each of its ports."""
    write_all(tmp_path / "lldp")
    (rail,) = find_rails([tmp_path / "lldp"])
    fabric = read_fabric(rail.links)
    assert cables(fabric) == EXPECTED
    switches = {fabric.node_name[node] for node in np.flatnonzero(fabric.node_kind == NodeKind.SWITCH)}
    assert switches == {*LEAVES, "spine"}
    assert set(fabric.link_gbps.tolist()) == {100.0}
    hosts = find_hosts([fabric])
    assert sorted(hosts.name) == sorted(HOSTS)
    assert (hosts.ports > 0).sum() == 6
    assert any("speeds were negotiated by the ports" in each for each in fabric.warnings)


@pytest.mark.parametrize("left_out", ["hosts", "leaves"])
def test_one_end_of_a_link_is_enough(left_out: str, tmp_path: Path) -> None:
    write_all(tmp_path / "lldp")
    for name in HOSTS if left_out == "hosts" else LEAVES:
        (tmp_path / "lldp" / f"{name}.json").unlink()
    fabric = read_fabric(tmp_path / "lldp")
    expected = EXPECTED if left_out == "hosts" else [each for each in EXPECTED if "spine" not in each]
    assert cables(fabric) == expected


def test_loads_are_on_equal_cost_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The leaf's two cables to the spine have equal shares of the bytes. The upper bound for a cable is all bytes.

    Hosts send from their first ports.
    """
    write_all(tmp_path / "lldp")
    assert layout.main([str(tmp_path / "lldp"), "pattern:all-to-all:1000"]) == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines()[0].startswith("ibprof-layout: routes: modelled:d-mod-k")
    rows = list(csv.DictReader(io.StringIO(shown.out)))
    spine = [row for row in rows if "spine" in (row["a_name"], row["b_name"])]
    assert len(spine) == 4
    # Each leaf has three hosts' ports. Each port sends to three ports on the other leaf: nine flows in each direction.
    for row in spine:
        assert {float(row["a_shared"]), float(row["b_shared"])} == {3 * 3 * 1000 / 2}
        assert {int(row["a_most"]), int(row["b_most"])} == {3 * 3 * 1000}
    assert sum(int(row["a_bytes"]) for row in spine) + sum(int(row["b_bytes"]) for row in spine) == 4 * 9 * 1000


def test_files_named_singly_are_one_fabric_too(tmp_path: Path) -> None:
    write_all(tmp_path / "lldp")
    paths = sorted((tmp_path / "lldp").iterdir())
    (rail,) = find_rails(paths)
    assert set(rail.all()) == set(paths)
    fabric = read_rail_fabric(rail)
    assert cables(fabric) == EXPECTED
    assert fabric.name == f"{paths[0]} and 4 more"


def test_a_damaged_file_leaves_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_all(tmp_path / "lldp")
    damaged = tmp_path / "lldp" / "leaf1.json"
    damaged.write_text(damaged.read_text()[:-40])
    fabric = read_fabric(tmp_path / "lldp")
    assert cables(fabric) == [each for each in EXPECTED if each != ("leaf1", "spine")]
    assert any("leaf1.json" in each.what and "JSON as lldpcli writes it" in each.what for each in fabric.damage)
    assert layout.main(["--check", str(tmp_path / "lldp")]) == 5
    printed = capsys.readouterr().out
    assert "damaged-dump" in printed
    assert "modelled-routes: no forwarding tables of 3 switches, as an Ethernet network has none" in printed
    assert "dump_fts" not in printed


def wrap(part: Any) -> Any:
    """Return a part of `-f json` output in the form of `-f json0`."""
    if isinstance(part, dict):
        return [{key: each if key in ("type", "value", "enabled") else wrap(each) for key, each in part.items()}]
    return [wrap(each)[0] for each in part] if isinstance(part, list) else [{"value": part}]


def test_the_long_form_of_lldpcli_is_the_same_fabric(tmp_path: Path) -> None:
    """In output of `lldpcli -f json0` (1.0.16), each part is a list, and names are values of a key."""
    write_all(tmp_path / "lldp")
    for path in (tmp_path / "lldp").iterdir():
        interfaces = json.loads(path.read_text())["lldp"]["interface"]
        listed = interfaces if isinstance(interfaces, list) else [interfaces]
        entries = []
        for name, entry in (pair for each in listed for pair in each.items()):
            ((peer, about),) = entry["chassis"].items()
            parts = {"chassis": wrap({"name": peer, **about}), "port": wrap(entry["port"])}
            entries.append({"name": name, "via": "LLDP", **parts})
        path.write_text(json.dumps({"lldp": [{"interface": entries}]}, indent=2))
    fabric = read_fabric(tmp_path / "lldp")
    assert cables(fabric) == EXPECTED
    assert set(fabric.link_gbps.tolist()) == {100.0}


def test_speeds_that_were_not_negotiated_are_unknown(tmp_path: Path) -> None:
    entries = [
        ("swp1", neighbour("a", "eth0", False, current="1000BaseTFD - full")),
        ("swp2", neighbour("b", "eth0", False, current="")),
    ]
    write(tmp_path / "sw.json", entries)
    fabric = read_fabric(tmp_path / "sw.json")
    speeds = dict(zip(cables(fabric), sorted(fabric.link_gbps.tolist()), strict=True))
    assert speeds["a", "sw"] == 1.0
    assert np.isnan(speeds["b", "sw"])
    assert any("1 speeds are unknown" in each for each in fabric.warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"lldp": {"interface": ', "expected JSON as lldpcli writes it"),
        ('{"lldp": {}}', "expected at least one link, found none"),
        ('{"lldp": {"interface": [3]}}', "expected `interface` with neighbours, found '3'"),
        ('{"lldp": {"interface": {"eth0": 3}}}', "expected a neighbour of 'eth0', found '3'"),
        ('{"lldp": {"interface": {"eth0": {"chassis": {}, "port": {}}}}}', "expected `id` with a mapping"),
        (
            '{"lldp": {"interface": {"eth0": {"chassis": {"x": {"id": {}}}}}}}',
            "expected `port` with a mapping, found 'None'",
        ),
    ],
)
def test_bad_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError) as error:
        read_fabric(tmp_path / "a.json")
    assert message in str(error.value)


def test_the_format_is_recognised_by_its_content() -> None:
    found = find_link_format(b'{\n  "lldp": {\n    "interface": [')
    assert found is not None
    assert found.name == "lldpcli's JSON"
    assert find_link_format(b'{"lldap": {}}') is None
