# SPDX-License-Identifier: Apache-2.0
"""Fabrics with one or two faults, or none, routed by OpenSM. The cases use no code of the diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.hotspots.causes.situation import Situation
from ibprof_converter.routing.route_choice import route_by_opensm
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_testing.samples.planted_causes import Pairs, all_to_all, halo, situation

FULL = "xgft:2:8,8:1,8"
PARALLEL = "xgft:2:8,8:1,4:1,2"
THREE = "tree:4,3"
TAPERED = "xgft:2:8,8:1,4"
NARROW = "xgft:2:8,8:1,2"
POD_TAPERED = "xgft:3:4,4,4:1,4,2"
TORUS = "torus:6x6:2"
SMALL_TORUS = "torus:4x4:2"
DRAGONFLY = "dragonfly:4,2,2"

Wreck = Callable[[Fabric], Fabric]


@dataclass(frozen=True)
class RoutedPlant:
    """A case.

    Attributes:
        name: the case's name.
        causes: planted causes. A diagnosis that names any of these causes first is right. Empty for a case without a
            fault.
        places: the first cause's places must contain at least one of these words. Empty if the places do not matter.
        situation: the case with its faults.
        healed: for each of `causes`, the case without this fault. None for a remedy that needs a search or changes
            the program.
    """

    name: str
    causes: tuple[str, ...]
    places: tuple[str, ...]
    situation: Situation
    healed: tuple[Situation | None, ...]


@cache
def shape(name: str, rail: int = 0) -> Fabric:
    return generate(name, rail).fabric


def routed(fabric: Fabric, engine: str) -> Subnet:
    found = route_by_opensm(fabric, engine)
    return replace(found.subnet, route_source="tables")


def switch_links(fabric: Fabric) -> list[int]:
    return np.flatnonzero((fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)).tolist()


def leaves(fabric: Fabric) -> list[int]:
    is_host = fabric.node_kind[fabric.link_node] == NodeKind.CA
    return sorted({int(node) for node in fabric.link_node[is_host[:, ::-1] & ~is_host]})


def uplinks(fabric: Fabric, leaf: int) -> list[int]:
    """Return the links of a leaf switch to other switches, sorted by the other switch."""
    found = [link for link in switch_links(fabric) if leaf in fabric.link_node[link]]
    return sorted(found, key=lambda link: (int(fabric.link_node[link].sum()) - leaf, link))


def take(fabric: Fabric, kept: npt.NDArray[np.integer]) -> Fabric:
    names = ("link_node", "link_port", "link_gbps", "link_lanes", "link_half", "link_unequal")
    return replace(fabric, **{name: getattr(fabric, name)[kept] for name in names})


def cut(fabric: Fabric, links: Sequence[int]) -> Fabric:
    return take(fabric, np.setdiff1d(np.arange(fabric.links), links))


def free_port(fabric: Fabric, node: int) -> int:
    used = set(fabric.link_port[fabric.link_node == node].tolist())
    return next(port for port in range(1, 250) if port not in used)


def join(fabric: Fabric, one: int, other: int) -> Fabric:
    """Add a cable between free ports of two switches, as fast as the other cables."""
    a, b = sorted((one, other))
    columns = {
        "link_node": np.array([[a, b]], np.int32),
        "link_port": np.array([[free_port(fabric, a), free_port(fabric, b)]], np.int32),
        "link_gbps": fabric.link_gbps[:1],
        "link_lanes": fabric.link_lanes[:1],
        "link_half": fabric.link_half[:1],
        "link_unequal": fabric.link_unequal[:1],
    }
    joined = {name: np.concatenate([getattr(fabric, name), row]) for name, row in columns.items()}
    order = np.lexsort((joined["link_port"][:, 0], joined["link_node"][:, 0]))
    changed: dict[str, Any] = {name: column[order] for name, column in joined.items()}
    return replace(fabric, **changed)


def gone(leaf: int, *which: int) -> Wreck:
    """Remove some cables of a leaf switch."""
    return lambda fabric: cut(fabric, [uplinks(fabric, leaves(fabric)[leaf])[each] for each in which])


def slow(leaf: int, which: int, factor: float) -> Wreck:
    def wreck(fabric: Fabric) -> Fabric:
        gbps = fabric.link_gbps.copy()
        gbps[uplinks(fabric, leaves(fabric)[leaf])[which]] /= factor
        return replace(fabric, link_gbps=gbps)

    return wreck


def slow_host(which: int, factor: float) -> Wreck:
    def wreck(fabric: Fabric) -> Fabric:
        gbps = fabric.link_gbps.copy()
        is_host = (fabric.node_kind[fabric.link_node] == NodeKind.CA).any(axis=1)
        gbps[np.flatnonzero(is_host)[which]] /= factor
        return replace(fabric, link_gbps=gbps)

    return wreck


def wrong_spine(leaf: int, which: int, instead: int) -> Wreck:
    """Move a cable of a leaf switch to the spine of another cable of this leaf switch."""

    def wreck(fabric: Fabric) -> Fabric:
        node = leaves(fabric)[leaf]
        links = uplinks(fabric, node)
        spine = int(fabric.link_node[links[instead]].sum()) - node
        return join(cut(fabric, [links[which]]), node, spine)

    return wreck


def leaf_to_leaf(one: int, other: int, which: int) -> Wreck:
    """Replace the cables of two leaf switches to one spine by a cable between the leaf switches."""

    def wreck(fabric: Fabric) -> Fabric:
        a, b = leaves(fabric)[one], leaves(fabric)[other]
        links = [uplinks(fabric, node)[which] for node in (a, b)]
        return join(cut(fabric, links), a, b)

    return wreck


def make(
    name: str,
    spec: str,
    engine: str,
    pairs: Callable[[int], Pairs],
    wrecks: Sequence[Wreck] = (),
    causes: Sequence[str] = (),
    places: Sequence[str] = (),
    rails: Sequence[int] | None = None,
    healed_engine: str | None = None,
) -> RoutedPlant:
    """Make a case: damage a fabric, let OpenSM route it, and add traffic."""

    def build(chosen: Sequence[Wreck], engine: str, used: Sequence[int] | None) -> Situation:
        subnets = []
        for rail in range(2 if rails else 1):
            fabric = shape(spec, rail)
            for wreck in chosen if rail == 0 else ():
                fabric = wreck(fabric)
            subnets.append(routed(fabric, engine))
        hosts = int((subnets[0].fabric.node_kind == NodeKind.CA).sum())
        return situation(subnets, pairs(hosts), rails=used or (0,))

    healed: list[Situation | None] = []
    for number, cause in enumerate(causes):
        if cause in {"slow-link", "missing-uplink", "wrong-cable"}:
            rest = [each for position, each in enumerate(wrecks) if position != number]
            healed.append(build(rest if len(wrecks) == len(causes) else wrecks[1:], engine, rails))
        elif cause == "routing" and healed_engine:
            healed.append(build(wrecks, healed_engine, rails))
        elif cause == "one-rail":
            healed.append(build(wrecks, engine, (0, 1)))
        else:
            healed.append(None)
    title = f"{name} {spec} {engine}"
    return RoutedPlant(title, tuple(causes), tuple(places), build(wrecks, engine, rails), tuple(healed))


def everyone(hosts: int) -> Pairs:
    return all_to_all(np.arange(hosts))


def shuffled_halo(*sides: int, seed: int = 1) -> Callable[[int], Pairs]:
    order = np.random.default_rng(seed).permutation(int(np.prod(sides)))
    return lambda hosts: halo(sides, order)


def scattered(groups: int) -> Callable[[int], Pairs]:
    """Return pairs within groups. Each group is scattered over all leaf switches, but would fit on one leaf switch."""

    def pairs(hosts: int) -> Pairs:
        found = [all_to_all(np.arange(first, hosts, groups)) for first in range(groups)]
        source, destination = (np.concatenate(column) for column in zip(*found, strict=True))
        return source, destination

    return pairs


def to_few(*few: int) -> Callable[[int], Pairs]:
    def pairs(hosts: int) -> Pairs:
        source = np.setdiff1d(np.arange(hosts), few)
        return source, np.array(few)[np.arange(len(source)) % len(few)]

    return pairs


def from_few(*few: int) -> Callable[[int], Pairs]:
    def pairs(hosts: int) -> Pairs:
        source, destination = to_few(*few)(hosts)
        return destination, source

    return pairs


def shift(distance: int) -> Callable[[int], Pairs]:
    return lambda hosts: (np.arange(hosts), (np.arange(hosts) + distance) % hosts)


def on_first(count: int) -> Callable[[int], Pairs]:
    return lambda hosts: all_to_all(np.arange(count))


def far_apart(hosts: int) -> Pairs:
    """Return all pairs among the hosts that are the first or second of a leaf switch (of 8 hosts).

    The fabric has other hosts that are nearer to each other.
    """
    first = np.concatenate([np.arange(0, hosts, 8), np.arange(1, hosts, 8)])
    return all_to_all(np.sort(first))


ENGINES = ("minhop", "updn", "ftree", "sssp", "dfsssp")

Case = Callable[[], RoutedPlant]


def _cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}

    def add(name: str, spec: str, engine: str, pairs: Callable[[int], Pairs], **rest: object) -> None:
        key = f"{name} {spec} {engine}"
        assert key not in cases, key
        cases[key] = lambda: make(name, spec, engine, pairs, **rest)  # type: ignore[arg-type]

    missing, wrong, slower = ["missing-uplink"], ["wrong-cable"], ["slow-link"]
    for number, engine in enumerate(ENGINES):
        add("one gone", FULL, engine, everyone, wrecks=[gone(number, 3)], causes=missing, places=[f"L1-{number + 1}"])
        add(
            "two gone",
            FULL,
            engine,
            everyone,
            wrecks=[gone(number + 1, 2, 5)],
            causes=missing,
            places=[f"L1-{number + 2}"],
        )
        add(
            "slow",
            FULL,
            engine,
            everyone,
            wrecks=[slow(number, 1, 2.0 + number)],
            causes=slower,
            places=[f"L1-{number + 1}"],
        )
        add("tapered", TAPERED, engine, everyone, causes=["oversubscription"])
        add("scattered", NARROW, engine, scattered(8), causes=["placement"])
        add("innocent", FULL, engine, everyone)
    add("one gone", THREE, "ftree", everyone, wrecks=[gone(5, 1)], causes=missing, places=["L1-06"])
    for engine in ("minhop", "updn", "dfsssp"):
        add("wrong spine", FULL, engine, everyone, wrecks=[wrong_spine(2, 4, 6)], causes=wrong, places=["L1-3 "])
        add(
            "leaf to leaf",
            FULL,
            engine,
            everyone,
            wrecks=[leaf_to_leaf(1, 6, 3)],
            causes=wrong,
            places=["L1-2 port 12 to L1-7"],
        )
        add("one rail", FULL, engine, everyone, causes=["one-rail"], rails=(1,))
        add("to few", FULL, engine, to_few(5, 40), causes=["many-to-few"], places=["host06"])
    for engine in ("minhop", "updn", "ftree"):
        add("shuffled", TAPERED, engine, shuffled_halo(8, 8), causes=["placement"])
        add("slow host", TAPERED, engine, everyone, wrecks=[slow_host(9, 8.0)], causes=slower, places=["host10"])
    for engine in ("minhop", "updn"):
        add(
            "two leaves",
            FULL,
            engine,
            everyone,
            wrecks=[gone(0, 1), gone(5, 6)],
            causes=[*missing, *missing],
            places=["L1-1", "L1-6"],
        )
        add("from few", TAPERED, engine, from_few(11), causes=["few-to-many"], places=["host12"])
        add("shuffled", POD_TAPERED, engine, shuffled_halo(4, 4, 4), causes=["placement"])
        add("slow", THREE, engine, everyone, wrecks=[slow(3, 2, 6.0)], causes=slower, places=["L1-04"])
        add("bad tables", THREE, engine, everyone, causes=["routing"], healed_engine="ftree")
    for engine in ("ftree", "sssp", "dfsssp"):
        add("one gone", PARALLEL, engine, everyone, wrecks=[gone(4, 2)], causes=missing, places=["L1-5"])
    add("bad tables", PARALLEL, "minhop", everyone, causes=["routing"], healed_engine="ftree")
    for engine in ("dor", "lash"):
        add("bad tables", FULL, engine, everyone, causes=["routing"], healed_engine="minhop")
    add("bad tables", TORUS, "minhop", everyone, causes=["routing", "oversubscription"], healed_engine="dfsssp")
    add("bad tables", TORUS, "updn", everyone, causes=["routing", "oversubscription"], healed_engine="dfsssp")
    add("bad tables", DRAGONFLY, "updn", everyone, causes=["routing"], healed_engine="dfsssp")
    two = {
        "gone and slow": ([gone(1, 2), slow(6, 3, 3.0)], [*missing, *slower], everyone, FULL),
        "wrong and gone": ([wrong_spine(3, 1, 6), gone(7, 2)], [*wrong, *missing], everyone, FULL),
        "slow and slow": ([slow(0, 1, 4.0), slow(4, 4, 2.0)], [*slower, *slower], everyone, FULL),
        "slow and tapered": ([slow(2, 1, 4.0)], [*slower, "oversubscription"], everyone, TAPERED),
        "slow and shuffled": ([slow(0, 0, 10.0)], [*slower, "placement"], shuffled_halo(8, 8), TAPERED),
    }
    for name, (wrecks, causes, pairs, spec) in two.items():
        for engine in ("minhop", "sssp"):
            add(name, spec, engine, pairs, wrecks=wrecks, causes=causes)
    add("innocent", SMALL_TORUS, "updn", everyone)
    for engine in ("ftree", "sssp"):
        add("innocent", PARALLEL, engine, everyone)
    add("innocent", THREE, "ftree", everyone)
    add("shift", FULL, "ftree", shift(1))
    add("one leaf", TAPERED, "minhop", on_first(8))
    add("gone unused", FULL, "minhop", on_first(8), wrecks=[gone(5, 1)])
    add("slow unused", TAPERED, "updn", on_first(8), wrecks=[slow(6, 1, 4.0)])
    add("slow host unused", FULL, "updn", on_first(8), wrecks=[slow_host(50, 4.0)])
    add("both rails", FULL, "updn", everyone, rails=(0, 1))
    return cases


CASES = _cases()
QUICK = (
    f"one gone {FULL} minhop",
    f"two gone {FULL} updn",
    f"wrong spine {FULL} minhop",
    f"leaf to leaf {FULL} updn",
    f"two leaves {FULL} minhop",
    f"bad tables {FULL} dor",
    f"bad tables {TORUS} minhop",
    f"scattered {NARROW} ftree",
    f"gone and slow {FULL} minhop",
    f"innocent {FULL} dfsssp",
    f"gone unused {FULL} minhop",
)
"""Cases in the short form of the tests."""
