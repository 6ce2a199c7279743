# SPDX-License-Identifier: Apache-2.0
"""A host's slots use its adapters in a subnet by turns. Lists of free hosts are matched with the fabric."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError, UsageError
from ibprof_converter.cli import layout, place
from ibprof_converter.placement.lower_bound import find_bounds
from ibprof_converter.placement.placement_problem import PlacementProblem, find_neighbours
from ibprof_converter.placement.slots import RankSlots, assign_slots, hold_together, read_free_hosts
from ibprof_converter.placement.starting_placements import packed_slots, random_slots
from ibprof_converter.placement.swap_search import Energy, Goal, SearchRound, search
from ibprof_converter.placement.switch_paths import find_switch_paths
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.traffic_data import RankTraffic
from ibprof_testing.reference.adapters import Dump, Port, add_up, flows_by_rank, read_dump, sum_sent
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample
from ibprof_testing.samples.many_adapters import make_subnet, write_dumps
from ibprof_testing.samples.placements import make_demand, samplesort

SUBNET = make_subnet()
HOSTS = find_hosts([SUBNET.fabric])
NUMBER = {name: number for number, name in enumerate(HOSTS.name)}
BYTES_A_SECOND = {gbps: gbps * 1e9 / 8 for gbps in np.unique(SUBNET.fabric.link_gbps).tolist()}


def problem_on(demand: RankTraffic, slots: dict[str, int], nic: str | None = None) -> PlacementProblem:
    chosen = assign_slots(HOSTS, {NUMBER[name]: count for name, count in slots.items()}, demand.ranks, nic)
    rails = chosen.rails_among([SUBNET])
    neighbours = find_neighbours(demand, "split", chosen.rails, len(rails))
    return PlacementProblem(neighbours, chosen, find_switch_paths(rails, chosen.lid))


def names_of(slots: RankSlots, slot_of_rank: np.ndarray) -> list[str]:
    return [slots.name[host] for host in slots.host_of_slot[slot_of_rank].tolist()]


def busiest_between_switches(loads: Counter[Port], dump: Dump) -> int:
    adapters = {guid for guid, _ in dump.at.values()}
    return max(
        (load for port, load in loads.items() if port[0] not in adapters and dump.far[port][0] not in adapters),
        default=0,
    )


@pytest.fixture(name="dump")
def make_dump(tmp_path: Path) -> Dump:
    links = write_dumps(tmp_path)
    return read_dump(links, links.with_suffix(".fdbs"))


def test_slots_of_a_host_take_its_adapters_in_turn() -> None:
    slots = problem_on(samplesort(4, 1), {"gpu1": 10, "storage1": 3}).slots
    assert slots.nic == "modelled:rank"
    lids = slots.lid[slots.port_of_slot, 0].tolist()
    gpu, storage = HOSTS.ports[NUMBER["gpu1"], 0].tolist(), HOSTS.ports[NUMBER["storage1"], 0, 0]
    by_host = {"gpu1": [*gpu, gpu[0], gpu[1]], "storage1": [storage] * 3}
    assert lids == [lid for name in slots.name for lid in by_host[name]]
    assert {name: bool(numbered) for name, numbered in zip(slots.name, slots.is_numbered, strict=True)} == {
        "gpu1": True,
        "storage1": False,
    }


@pytest.mark.parametrize("seed", range(4))
def test_loads_are_those_of_a_tracer_of_its_own(seed: int, dump: Dump) -> None:
    demand = samplesort(20, seed)
    problem = problem_on(demand, {"gpu1": 8, "gpu2": 8, "gpu3": 5, "gpu4": 9, "storage1": 2})
    slot_of_rank = random_slots(problem.slots, 20, seed)
    pairs = list(zip(demand.source.tolist(), demand.destination.tolist(), demand.bytes.tolist(), strict=True))
    expected = add_up(dump, flows_by_rank(dump, names_of(problem.slots, slot_of_rank), pairs))
    (rate,) = BYTES_A_SECOND.values()
    found = problem.score(slot_of_rank)
    assert found.max_seconds == pytest.approx(busiest_between_switches(expected, dump) / rate, rel=1e-12)
    assert found.bottleneck_seconds == pytest.approx(max(expected.values()) / rate, rel=1e-12)
    assert found.lost == 0


@pytest.mark.parametrize(("seed", "together"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)])
def test_the_kernel_keeps_the_numbering_of_ranks(seed: int, together: int) -> None:
    """After each step, the energy equals the placement's energy. A host's ranks are on its first slots, in order."""
    sizes = {"gpu1": 8, "gpu2": 3, "gpu3": 9, "storage1": 2} if together == 1 else {"gpu1": 8, "gpu2": 4, "gpu3": 10}
    problem = problem_on(samplesort(14, seed), sizes)
    problem = PlacementProblem(problem.neighbours, hold_together(problem.slots, together), problem.paths)
    assert problem.slots.together == together
    start = random_slots(problem.slots, 14, seed)
    score = problem.score(start)
    how = Energy.towards(Goal.BOTTLENECK, problem, score, 3)
    one = SearchRound(problem, start, score, how, (1.0, 1.0), seed, 1 << 60)
    for _ in range(200):
        one.advance(1)
        now = one.slot_of_rank
        assert now.tolist() == problem.slots.number(now).tolist()
        assert problem.slots.keeps_groups(now)
        assert len(set(now.tolist())) == len(now)
        costs = (problem.load(now) * problem.paths.seconds_per_byte / score.bottleneck_seconds) ** 8
        assert one.energy == pytest.approx(float(costs.sum()), rel=1e-9)
    assert one.accepted > 30


@pytest.mark.parametrize("seed", range(4))
def test_no_placement_is_below_the_bound_and_the_best_of_all_is_found(seed: int) -> None:
    generator = np.random.default_rng(seed)
    source, destination = generator.integers(0, 5, (2, 14))
    demand = make_demand(source, destination, generator.integers(1, 1000, 14), 5)
    problem = problem_on(demand, {"gpu1": 2, "gpu4": 3, "gpu2": 2})
    slots = problem.slots
    every = {tuple(slots.number(np.array(each, np.uint32)).tolist()) for each in permutations(range(slots.count), 5)}
    scores = [problem.score(np.array(each, np.uint32)) for each in every]
    best, bounds = min(scores), find_bounds(problem)
    assert bounds.bottleneck_seconds <= best.bottleneck_seconds * (1 + 1e-12)
    assert bounds.max_seconds <= min(score.max_seconds for score in scores) * (1 + 1e-12)
    for known in {score.bottleneck_seconds for score in scores}:
        assert find_bounds(problem, known).bottleneck_seconds <= best.bottleneck_seconds * (1 + 1e-12)
    # With few hosts, energies differ by powers of ten, so a search without restarts stays in a local minimum.
    found = search(problem, [random_slots(slots, 5, 0)], seed=1, seconds=0.5)
    assert found.score.bottleneck_seconds == pytest.approx(best.bottleneck_seconds)
    assert found.score.max_seconds == pytest.approx(best.max_seconds)


def test_spread_adds_up_what_adapters_put_on_one_link(dump: Dump) -> None:
    demand = make_demand(np.array([0, 1]), np.array([1, 2]), np.array([8000, 800]), 3)
    problem = problem_on(demand, {"gpu1": 1, "gpu2": 1, "storage1": 1}, "spread")
    slots = problem.slots
    slot_of_rank = packed_slots(slots, 3)
    at = [dump.adapters(name) for name in names_of(slots, slot_of_rank)]
    flows = [
        (at[a][part % len(at[a])], at[b][part % len(at[b])], size // 8)
        for a, b, size in ((0, 1, 8000), (1, 2, 800))
        for part in range(8)
    ]
    (rate,) = BYTES_A_SECOND.values()
    expected = busiest_between_switches(add_up(dump, flows), dump)
    assert problem.score(slot_of_rank).max_seconds == pytest.approx(expected / rate, rel=1e-12)


def test_near_is_refused_since_ranks_have_no_cores_yet() -> None:
    with pytest.raises(UsageError, match="--nic near"):
        problem_on(samplesort(3, 1), {"gpu1": 8}, "near")


@pytest.mark.parametrize("nic", ["rank", "first", "spread"])
def test_the_command_finds_what_ibprof_layout_then_computes(
    nic: str, tmp_path: Path, dump: Dump, capsys: pytest.CaptureFixture[str]
) -> None:
    links = str(tmp_path / "ibdiagnet.lst")
    demand = samplesort(24, 7)
    rows = zip(demand.source.tolist(), demand.destination.tolist(), demand.bytes.tolist(), strict=True)
    matrix = tmp_path / "matrix.csv"
    matrix.write_text("src,dst,bytes,messages\n" + "".join(f"{a},{b},{size // 8 * 8},1\n" for a, b, size in rows))
    where = tmp_path / "placement.csv"
    asked = [links, str(matrix), "--nic", nic, "--slots", "8", "--time", "0.2", "-o", str(where), "--json"]
    assert place.main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nic"] == f"modelled:{nic}"
    assert any(f"modelled:{nic}" in note for note in found["notes"])
    assert found["max_link_seconds"]["bound"] <= found["max_link_seconds"]["best"]
    assert layout.main([links, str(matrix), "--nic", nic, "--placement", str(where)]) == 0
    loads = sum_sent(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    (rate,) = BYTES_A_SECOND.values()
    best = found["max_link_seconds"]["best"]
    assert best == pytest.approx(busiest_between_switches(loads, dump) / rate, rel=1e-6, abs=1e-12)
    own = {guid for guid, _ in dump.at.values()}
    at_hosts = max(load for port, load in loads.items() if port[0] in own or dump.far[port][0] in own)
    assert found["host_link_seconds"]["best"] == pytest.approx(at_hosts / rate, rel=1e-6)


LISTABLE_HOSTS = find_hosts([load_sample("testbed44", IBDIAGNET).fabric])


def read(path: Path, content: str | bytes, slots: int = 1) -> dict[str, int]:
    """Return the number of slots of each host, by the host's name."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return {LISTABLE_HOSTS.name[host]: room for host, room in read_free_hosts(path, LISTABLE_HOSTS, slots).items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host03\nhost01\n", {"host03": 3, "host01": 3}),
        ("# mine\n\n  host03 # the third\n", {"host03": 3}),
        ("host03 slots=2 max_slots=4\nhost01\n", {"host03": 2, "host01": 3}),
        ("host03:2\nhost01:5\n", {"host03": 2, "host01": 5}),
        ("HOST03.cluster.example\r\nuser@host01 slots = 4\r\n", {"host03": 3, "host01": 4}),
        ("host03 slots=0\nhost01\n", {"host01": 3}),
        ("host03\nhost03\nhost01\n", {"host03": 2, "host01": 1}),  # a PBS node file ($PBS_NODEFILE)
        ("host03 slots=2\nhost03 slots=2\nhost01\n", {"host03": 4, "host01": 1}),
        ("host[01-03,40]\n", {"host01": 3, "host02": 3, "host03": 3, "host40": 3}),
        ("host[09-10],host12", {"host09": 3, "host10": 3, "host12": 3}),
        ("host[09-10]\nhost12 slots=1\n", {"host09": 3, "host10": 3, "host12": 1}),
        ("rank 0=host03 slot=0\nrank 1=host01 slot=0\nrank 2=host03 slot=1\n", {"host03": 2, "host01": 1}),
        ("\ufeffhost03\n", {"host03": 3}),
    ],
)
def test_forms(tmp_path: Path, text: str, expected: dict[str, int]) -> None:
    assert read(tmp_path / "hosts", text, slots=3) == expected


def test_it_may_be_compressed(tmp_path: Path) -> None:
    assert read(tmp_path / "hosts.gz", gzip.compress(b"host03\n")) == {"host03": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("# nobody\n", "hosts: expected a host a line, found none"),
        ("", "hosts: expected .*empty"),
        ("host01\nhost99\n", "hosts:2: expected a host of the fabric, found 'host99'"),
        ("host01\nhost[01-90]\n", "hosts:2: expected a host of the fabric"),
        ("host01\nhost[2-1]\n", "hosts:2: expected hosts as"),
        ("host01\nhost02 slots=many\n", "hosts:2: expected a host, perhaps with slots"),
        ("host01\nhost02 and more\n", "hosts:2: expected a host, perhaps with slots"),
        ("host01 slots=65536\n", "hosts:1: expected fewer than 65536 slots"),
        ("host[1-9999999]\n", "hosts:1: expected hosts as"),
        ("rank 0=host01\nrank 0=host02\n", "hosts:2: expected each rank once"),
        (b"\xff\xfe\x00\n", "hosts: expected a text file"),
    ],
)
def test_what_is_no_host_list_is_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / "hosts", content)
