# SPDX-License-Identifier: Apache-2.0
"""Generated fabrics have the sizes of the definitions, and routes with known properties."""

from __future__ import annotations

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest

from ibprof.errors import UsageError
from ibprof_converter.checks.cabling_check import check_cabling
from ibprof_converter.checks.route_check import check_routes, check_tables
from ibprof_converter.cli import layout
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.layout.node_levels import find_levels
from ibprof_converter.routing.spread import Reason, spread, spread_matrix, trace
from ibprof_converter.routing.subnet import Subnet, join_subnet
from ibprof_converter.routing.synthetic.spec import count_subnets, generate
from ibprof_testing.samples.fabrics import IBDIAGNET, host_lids, load_sample

# Numbers of switches, hosts, and links between switches.
SIZES = {
    "xgft:3:18,18,4:1,18,2:1,1,9": (180, 1296, 2592),
    "xgft:3;8,8,8;1,8,8": (192, 512, 1024),
    "xgft:2:4,3:1,2": (3 + 2, 12, 6),
    "xgft:1:5:1": (1, 5, 0),
    "tree:2,4": (4 * 2**3, 2**4, 3 * 2**4),
    "tree:4,3": (48, 64, 128),
    "torus:5x4:2": (20, 40, 40),
    "torus:4x2x3:1": (24, 24, 24 + 12 + 24),
    "codes:72,36": (180, 1296, 2592),
    "codes:4,4": (8 + 2, 8, 16),
    "codes:6,4": (12 + 4, 12, 12 + 12),
    "dragonfly:4,2,2": (36, 72, 9 * 6 + 36),
    "dragonfly:4,2,2,5": (20, 40, 5 * 6 + 2 * 10),
    "dragonfly:2,1,1,2": (4, 4, 2 * 1 + 2 * 1),
    "scalable-unit:4:hosts=127": (32 + 16, 8 * 127, 1024),
    "scalable-unit:6:radix=8:rails=2:hosts=21": (12 + 16 + 8, 2 * 21, 12 * 4 + 16 * 4),
    "scalable-unit:5:radix=8:rails=3:planes=2": (15 + 24 + 16, 3 * 20, 15 * 4 + 24 * 4),
    "scalable-unit:1:rails=1:hosts=3": (1, 3, 0),
    "rail-optimised:130": (5 + 4, 130, 5 * 32),
    "rail-optimised:15:radix=4:planes=2": (8 + 8 + 4, 15, 8 * 2 + 8 * 2),
}

SUPER_POD = {
    "scalable-unit:2": (512, 16, 8, 0),
    "scalable-unit:4": (1024, 32, 16, 0),
    "scalable-unit:8": (2048, 64, 32, 0),
    "scalable-unit:16": (4096, 128, 128, 64),
    "scalable-unit:32": (8192, 256, 256, 128),
    "scalable-unit:1:radix=144": (576, 8, 4, 0),
    "scalable-unit:4:radix=144": (2304, 32, 18, 0),
    "scalable-unit:18:radix=144": (10368, 144, 72, 0),
}
"""Numbers of adapters, leaves, spines, cores in NVIDIA's tables for DGX B200 (64 ports per switch), B300 XDR (144).
"""


def make(name: str) -> Subnet:
    made = generate(name)
    return join_subnet(made.fabric, made.tables)


def load_all_to_all(subnet: Subnet) -> npt.NDArray[np.uint64]:
    lids = host_lids(subnet.fabric)
    ones = np.broadcast_to(np.uint64(1), (len(lids), len(lids)))
    loads = spread_matrix(subnet.routes, lids, lids, ones)
    assert loads.unrouted == {}
    return loads.bytes[:, :, 0]


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_those_of_the_definition_and_every_route_arrives(name: str) -> None:
    subnet = make(name)
    fabric = subnet.fabric
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    kinds = np.bincount(fabric.node_kind, minlength=2)
    assert (kinds[NodeKind.SWITCH], kinds[NodeKind.CA], between.sum()) == SIZES[name]
    ends = fabric.link_node.astype(np.int64) * 256 + fabric.link_port
    assert len(np.unique(ends)) == 2 * fabric.links  # no port has two cables
    assert subnet.warnings == ()
    findings = [*check_tables(0, subnet), *check_routes(0, subnet), *check_cabling(0, fabric)]
    assert findings == []


@pytest.mark.parametrize("name", SUPER_POD)
def test_scalable_units_have_the_switches_and_cables_of_the_reference_architecture(name: str) -> None:
    fabric = generate(name).fabric
    levels = find_levels(fabric)
    adapters, _, _, cores = SUPER_POD[name]
    assert tuple(np.bincount(levels, minlength=4).tolist()) == SUPER_POD[name]
    pairs = np.sort(levels[fabric.link_node], axis=1)
    cables = [int((pairs == (low, low + 1)).all(axis=1).sum()) for low in range(3)]
    assert cables == [adapters, adapters, adapters if cores else 0]


@pytest.mark.parametrize("name", ["scalable-unit:6:radix=8:rails=2:hosts=21", "rail-optimised:15:radix=4:planes=2"])
def test_rails_meet_above_the_leaves_only(name: str) -> None:
    """Packets go up, then down, and change rails only at level 3. A host's adapters have successive LIDs."""
    subnet = make(name)
    fabric, levels = subnet.fabric, find_levels(subnet.fabric)
    lids = host_lids(fabric)
    source, destination = np.repeat(lids, len(lids)), np.tile(lids, len(lids))
    paths = subnet.routes.find_paths(source, destination)
    sender = levels[fabric.link_node.ravel()[paths.end]]
    receiver = levels[fabric.link_node[:, ::-1].ravel()[paths.end]]
    is_up = receiver > sender
    pair = np.repeat(np.arange(len(source)), np.diff(paths.offset))
    assert not (is_up[1:] & ~is_up[:-1] & (pair[1:] == pair[:-1])).any()
    rails = 2 if name.startswith("scalable") else 1
    top = np.zeros(len(source), np.int64)
    np.maximum.at(top, pair, receiver)
    rail, unit = (lids - 1) % rails, (lids - 1) // rails // (4 if rails == 2 else 2)
    other_rail = np.not_equal.outer(rail, rail).ravel()
    assert (top[other_rail] == 3).all()
    same = ~other_rail & np.equal.outer(unit, unit).ravel() & (source != destination)
    assert (top[same] == 1).all()


def test_planes_share_adapters_and_rails_share_hosts() -> None:
    name = "rail-optimised:5:rails=2:planes=2@200"
    assert count_subnets(name) == 4
    parts = [generate(name, part, part).fabric for part in range(4)]
    adapters = [[text for text in part.node_name if "mlx5" in text] for part in parts]
    assert [each[:2] for each in adapters] == [["gpu1 mlx5_0", "gpu2 mlx5_0"]] * 2 + [
        ["gpu1 mlx5_1", "gpu2 mlx5_1"]
    ] * 2
    for first, second in ((0, 1), (2, 3)):
        is_adapter = parts[first].node_kind == NodeKind.CA
        assert np.array_equal(parts[first].node_guid[is_adapter], parts[second].node_guid[is_adapter])
        assert parts[first].plane_of == parts[second].plane_of
        assert not np.isin(parts[first].port_guid, parts[second].port_guid).any()
    assert not np.isin(parts[0].node_guid, parts[2].node_guid).any()
    switches = [part.node_guid[part.node_kind == NodeKind.SWITCH] for part in parts]
    assert len(np.unique(np.concatenate(switches))) == sum(map(len, switches))


def switch_links(subnet: Subnet) -> npt.NDArray[np.bool_]:
    return np.asarray((subnet.fabric.node_kind[subnet.fabric.link_node] == NodeKind.SWITCH).all(axis=1))


def test_a_fat_tree_is_loaded_as_opensm_loads_it() -> None:
    """In an all-to-all, each level has the same sorted loads as the captured fabric with OpenSM's ftree tables."""
    name = "xgft:3:18,18,4:1,18,2:1,1,9"
    synthetic, captured = make(name), load_sample("xgft3-1296", IBDIAGNET)
    per_level = []
    for subnet in (synthetic, captured):
        levels = find_levels(subnet.fabric)[subnet.fabric.link_node]
        assert np.bincount(find_levels(subnet.fabric)).tolist() == [1296, 72, 72, 36]
        loads = load_all_to_all(subnet)
        by_level = {pair: loads[(np.sort(levels, axis=1) == pair).all(axis=1)] for pair in ((0, 1), (1, 2), (2, 3))}
        per_level.append({pair: sorted(found.ravel().tolist()) for pair, found in by_level.items()})
        assert loads[subnet.fabric.node_kind[subnet.fabric.link_node] == NodeKind.SWITCH].sum() == 7_510_320
    assert per_level[0] == per_level[1]


@pytest.mark.parametrize(
    "name",
    [
        "xgft:3:6,6,4:1,6,2:1,1,3",
        "codes:8,4",
        "codes:12,12",
        "tree:4,3",
        "xgft:2:6,12:1,6",
        "xgft:3:4,4,8:1,4,4",
        "rail-optimised:16:radix=4",
        "rail-optimised:48:radix=8",
        "rail-optimised:24:radix=8",
    ],
)
def test_shifts_block_nowhere_in_a_full_fat_tree(name: str) -> None:
    """With d-mod-k routes, no shift permutation has contention (Zahavi 2010)."""
    subnet = make(name)
    lids = host_lids(subnet.fabric)
    for distance in range(1, len(lids)):
        ones = np.ones(len(lids), np.uint64)
        loads = spread(subnet.routes, lids, np.roll(lids, -distance), ones, ones * 0, 1)
        assert loads.unrouted == {}
        assert loads.bytes.max() == 1


def shortest_hops(subnet: Subnet) -> int:
    """Return the sum of the shortest distances between the switches of all pairs of hosts, without tables."""
    fabric = subnet.fabric
    neighbours: dict[int, set[int]] = {}
    for a, b in fabric.link_node.tolist():
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    hosts = np.flatnonzero(fabric.node_kind == NodeKind.CA).tolist()
    total = 0
    for host in hosts:
        seen, front, distance = {host}, {host}, 0
        while front:
            total += max(distance - 2, 0) * sum(fabric.node_kind[node] == NodeKind.CA for node in front)
            front = set().union(*(neighbours[node] for node in front)) - seen
            seen |= front
            distance += 1
    return total


@pytest.mark.parametrize(
    "name",
    ["torus:5x4:2", "torus:4x2x3:1", "torus:6x6:1", "tree:3,3", "xgft:2:4,3:1,2", "codes:6,4", "dragonfly:3,1,1"],
)
def test_routes_are_as_short_as_can_be(name: str) -> None:
    subnet = make(name)
    assert int(load_all_to_all(subnet)[switch_links(subnet)].sum()) == shortest_hops(subnet)


def test_opensm_routes_a_torus_of_that_shape_as_far() -> None:
    synthetic, captured = make("torus:5x4:2"), load_sample("torus2d-5x4", IBDIAGNET)  # captured tables: engine dor
    totals = [int(load_all_to_all(subnet)[switch_links(subnet)].sum()) for subnet in (synthetic, captured)]
    assert totals[0] == totals[1]


def test_a_torus_is_routed_one_dimension_after_the_other() -> None:
    subnet = make("torus:5x5:1")
    for source in (1, 7, 25):
        for destination in range(1, 26):
            path = trace(subnet.routes.network, source, destination)
            if path.reason is Reason.SAME_PORT:
                continue
            dimensions = [(hop.egress_port - 2) // 2 for hop in path.hops[1:-1]]
            assert dimensions == sorted(dimensions)


def test_the_fat_tree_of_codes_has_one_link_to_each_of_many_tops() -> None:
    """For 72 leaves of radix 36, CODES prints 4 pods and 9 repetitions. `xgft` would have 9 parallel cables."""
    fabric = generate("codes:72,36").fabric
    kind = np.array([name[:3] for name in fabric.node_name])
    a, b = fabric.link_node.T
    second, top = np.where(kind[a] == "pod", a, b), np.where(kind[a] == "pod", b, a)
    upper = (kind[second] == "pod") & (kind[top] == "top")
    pairs, parallel = np.unique(np.stack([second[upper], top[upper]], axis=1), axis=0, return_counts=True)
    assert (parallel == 1).all()
    assert (np.unique(pairs[:, 0], return_counts=True)[1] == 18).all()
    pod = np.array([int(fabric.node_name[node][3:].partition("-")[0]) for node in pairs[:, 0]])
    for each in np.unique(pairs[:, 1]):
        assert np.bincount(pod[pairs[:, 1] == each]).tolist() == [0, 9, 9, 9, 9]


def test_small_trees_of_codes_and_xgft_are_one_graph() -> None:
    """If the number of pods equals the radix, CODES' tree is the k-ary tree of 3 levels."""
    codes, tree = generate("codes:8,4").fabric, generate("xgft:3:2,2,4:1,2,2").fabric
    graphs = [nx.Graph(fabric.link_node.tolist()) for fabric in (codes, tree)]
    assert nx.is_isomorphic(*graphs)


def test_a_dragonfly_takes_at_most_one_global_cable() -> None:
    subnet = make("dragonfly:4,2,2,5")
    loads = load_all_to_all(subnet)[switch_links(subnet)]
    names = [
        {subnet.fabric.node_name[node].split("-")[0] for node in pair}
        for pair in subnet.fabric.link_node[switch_links(subnet)]
    ]
    is_global = np.array([len(pair) == 2 for pair in names])
    # There are 5 groups of 8 hosts. A host sends to the 32 hosts of other groups.
    assert int(loads[is_global].sum()) == 5 * 8 * 32


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("xgft:2:4,4:2,2", "with W1 = 1 and P1 = 1"),
        ("xgft:3:4,4:1,2", "3 numbers for 3 levels"),
        ("xgft:2:4,0:1,2", "each at least 1"),
        ("xgft:1:300:1", "a switch needs 300 ports"),
        ("xgft:3:99,99,99:1,1,1", "larger than any subnet"),
        ("xgft:4", "expected one of"),
        ("tree:4", "expected one of"),
        ("tree:x,3", "expected numbers, found"),
        ("xgft:2:99999999999,4:1,2", "larger than any subnet"),
        ("torus:5x1:1", "at least 2 switches in each dimension"),
        ("torus:5x4", "expected one of"),
        ("dragonfly:4,2,2,10", "and 2 to 9 groups"),
        ("dragonfly:4,2,2@fast", "expected one of"),
        ("scalable-unit:4,8", "expected one of"),
        ("scalable-unit:4:hosts=96", "4 units have 97 to 128 hosts, found 96"),
        ("scalable-unit:4:hosts=129", "4 units have 97 to 128 hosts, found 129"),
        ("scalable-unit:200", "adapters, one for each LID, found 51200"),
        ("scalable-unit:2:radix=7", "an even radix"),
        ("scalable-unit:0", "expected numbers of at least 1"),
        ("scalable-unit:2:planes=9", "from 1 to 8 planes"),
        ("rail-optimised:2:planes=0", "from 1 to 8 planes"),
        ("rail-optimised:2:rails=0", "from 1 to 16 rails"),
        ("rail-optimised:2:rails=2:rails=3", "expected each setting once"),
        ("scalable-unit:2:leaves=9", "found 'leaves'"),
        ("rail-optimised:99:radix=4", "more than three levels"),
        ("rail-optimised:64:hosts=9", "found 'hosts'"),
        ("rail-optimised:0", "expected numbers of at least 1"),
    ],
)
def test_what_cannot_be_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        generate(name)


def test_rails_without_a_subnet_are_refused_by_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main(["rail-optimised:2:rails=0", "pattern:all-to-all:2"]) == UsageError.status
    assert "from 1 to 16 rails" in capsys.readouterr().err


def test_commands_take_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main(["tree:2,3@50", "tree:2,3", "pattern:all-to-all:2", "--used"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 2 * 24
    assert {line.split(",")[13] for line in lines[1:]} == {"50", "100"}
    assert layout.main(["--check", "torus:4x4:1"]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    assert layout.main(["tree:2", "pattern:all-to-all"]) == 2


def test_rails_of_one_shape_share_hosts_but_no_guid() -> None:
    one, other = (generate("tree:2,3", rail).fabric for rail in (0, 1))
    assert not np.isin(one.node_guid, other.node_guid).any()
    hosts = [{name.split()[0] for name in fabric.node_name if "HCA" in name} for fabric in (one, other)]
    assert hosts[0] == hosts[1]
    assert len(hosts[0]) == 8
