# SPDX-License-Identifier: Apache-2.0
"""The picture in a report's page shows the used part of the fabric. Links are numbered as in the list."""

from __future__ import annotations

import math
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ibprof_converter.analysis.pipeline_options import FabricOptions, TrafficOptions
from ibprof_converter.analysis.pipeline_results import FabricLoads
from ibprof_converter.analysis.pipeline_stages import load_fabric
from ibprof_converter.hotspots.hot_links import LinkGroup
from ibprof_converter.reports.network_picture import draw_network
from ibprof_testing.samples.fabrics import FABRICS
from ibprof_testing.samples.many_adapters import write_dumps

_MOST_BYTES = 100_000

Corners = tuple[float, float, float, float]

CASES = {
    "42 hosts": (("testbed44",), 32),
    "1,296 hosts, few used": (("xgft:3:18,18,4:1,18,18",), 64),
    "1,296 hosts": (("xgft:3:18,18,4:1,18,18",), 1296),
    "two rails": (("xgft:2:8,4:1,4", "xgft:2:8,4:1,4"), 32),
    "two rails of three levels": (("xgft:3:4,4,4:1,2,2", "xgft:3:4,4,4:1,2,2"), 64),
    "eight adapters": ((), 4),
    "torus": (("torus:5x4:2",), 16),
    "torus of three dimensions": (("torus:8x8x8:1",), 512),
    "dragonfly": (("dragonfly:4,2,2",), 64),
    "dragonfly, one group": (("dragonfly:4,2,2",), 6),
    "dragonfly, few groups": (("dragonfly:4,2,2",), 24),
    "large dragonfly": (("dragonfly:8,4,4,13",), 416),
    "a single switch": (("xgft:1:4:1",), 4),
}


def load(names: tuple[str, ...], ranks: int, folder: Path) -> tuple[FabricLoads, tuple[LinkGroup, ...]]:
    """Return loads and most loaded links. Each rank sends to three others, and most bytes go to the first rank."""
    names = tuple(str(FABRICS / name) if (FABRICS / name).exists() else name for name in names)
    rows = [f"{rank},{(rank + step) % ranks},{1000 * step},1" for rank in range(ranks) for step in (1, 5, 11)]
    rows += [f"{rank},0,{9000 + rank % 7},1" for rank in range(1, ranks)]
    (folder / "matrix.csv").write_text("src,dst,bytes,messages\n" + "\n".join(rows) + "\n")
    traffic = TrafficOptions((str(folder / "matrix.csv"),), placements=("packed",))
    loads = load_fabric(FabricOptions(names or (str(write_dumps(folder)),)), traffic)
    return loads, loads.ends().most_loaded(10).groups


def forms_of(figure: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(figure)
    return [each for each in root if each.tag == "svg"]


def corners_of(box: ElementTree.Element) -> Corners:
    rect = box.find("rect")
    assert rect is not None
    x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


@pytest.mark.parametrize("case", list(CASES))
def test_both_forms_are_whole_and_readable(case: str, tmp_path: Path) -> None:
    loads, groups = load(*CASES[case], tmp_path)
    figure = draw_network(loads, groups, has_fault=False)
    assert len(figure) < _MOST_BYTES
    forms = forms_of(figure)
    assert [form.attrib["class"] for form in forms] == ["network wide-form", "network narrow-form"]
    for form in forms:
        badges = [each for each in form.iter("g") if "badge" in each.attrib.get("class", "")]
        numbers = sorted(int(each.findtext("text") or "") for each in badges)
        assert numbers == list(range(1, len(groups) + 1))
        width, height = float(form.attrib["width"]), float(form.attrib["height"])
        assert height < 2 * width
        boxes = [each for each in form.iter("g") if each.find("rect") is not None]
        corners = [corners_of(box) for box in boxes]
        for left, top, right, bottom in corners:
            assert left >= 0
            assert top >= 0
            assert right <= width + 0.1
            assert bottom <= height + 0.1
        for path in form.iter("path"):
            points = [float(number) for number in re.findall(r"-?[0-9.]+", path.attrib["d"])]
            assert max(points[::2]) <= width + 1
            assert max(points[1::2]) <= height + 1
            assert min(points) >= -1
        for one, other in combinations(corners, 2):
            assert are_apart(one, other), case


def are_apart(one: Corners, other: Corners) -> bool:
    (left, top, right, bottom), (left2, top2, right2, bottom2) = one, other
    return right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top


@pytest.mark.parametrize("case", list(CASES))
def test_numbers_and_labels_cover_one_another_nowhere(case: str, tmp_path: Path) -> None:
    loads, groups = load(*CASES[case], tmp_path)
    for form in forms_of(draw_network(loads, groups, has_fault=False)):
        badges = [
            (float(circle.attrib["cx"]), float(circle.attrib["cy"]))
            for each in form.iter("g")
            if "badge" in each.attrib.get("class", "") and (circle := each.find("circle")) is not None
        ]
        if not loads.fabric.layouts[0].has_levels:
            assert all(math.dist(one, other) > 15 for one, other in combinations(badges, 2)), badges
        labels = [bounds_of(text) for text in form.iter("text") if text.attrib.get("class") == "label"]
        boxes = [corners_of(box) for box in form.iter("g") if box.find("rect") is not None]
        numbers = [(x - 8, y - 8, x + 8, y + 8) for x, y in badges]
        for label in labels:
            others = [each for each in labels if each is not label]
            assert all(are_apart(label, other) for other in (*others, *boxes, *numbers)), label


def bounds_of(text: ElementTree.Element) -> Corners:
    """Return the approximate rectangle of a text: letters are 6 pixels wide and 10 pixels high."""
    x, y, half = float(text.attrib["x"]), float(text.attrib["y"]) - 4, 3 * len(text.text or "")
    return x - half, y - 5, x + half, y + 5


@pytest.mark.parametrize("case", ["dragonfly, one group", "dragonfly, few groups", "large dragonfly", "torus"])
def test_a_plane_is_filled(case: str, tmp_path: Path) -> None:
    loads, groups = load(*CASES[case], tmp_path)
    for form in forms_of(draw_network(loads, groups, has_fault=False)):
        places = [tuple(map(float, (dot.attrib["cx"], dot.attrib["cy"]))) for dot in form.iter("circle")]
        places += [
            ((left + right) / 2, (top + bottom) / 2)
            for box in form.iter("g")
            if box.find("rect") is not None
            for left, top, right, bottom in [corners_of(box)]
        ]
        width, height = float(form.attrib["width"]), float(form.attrib["height"])
        for left, top in ((0.0, 0.0), (width / 2, 0.0), (0.0, height / 2), (width / 2, height / 2)):
            quarter = (left - 1, top - 1, left + width / 2 + 1, top + height / 2 + 1)
            assert any(quarter[0] <= x <= quarter[2] and quarter[1] <= y <= quarter[3] for x, y in places), quarter


@pytest.mark.parametrize("case", ["42 hosts", "1,296 hosts, few used", "1,296 hosts", "two rails", "eight adapters"])
def test_every_unit_is_a_box_or_folded_or_idle(case: str, tmp_path: Path) -> None:
    loads, groups = load(*CASES[case], tmp_path)
    wide = forms_of(draw_network(loads, groups, has_fault=False))[0]
    shown = {"named": 0, "plain": 0, "folded": 0, "idle": 0}
    for box in wide.iter("g"):
        kind = box.attrib.get("class", "")
        if kind in shown:
            title = box.findtext("title") or ""
            shown[kind] += 1 if kind in ("named", "plain") else int(title.split()[0].replace(",", ""))
    rows = [row for row in loads.rows() if row["a_bytes"] or row["b_bytes"]]
    sides = {(row[f"{end}_level"], row[f"{end}_name"], row[f"{end}_guid"]) for row in rows for end in "ab"}
    used = {str(name).split()[0] if level == 0 else guid for level, name, guid in sides}
    levels = {level for level, _, _ in sides}
    everyone = {
        str(node["name"]).split()[0] if node["level"] == 0 else node["guid"]
        for node in loads.nodes()
        if node["level"] in levels and "Aggregation Node" not in str(node["name"])
    }
    assert shown["named"] + shown["plain"] + shown["folded"] == len(used)
    assert sum(shown.values()) == len(everyone)


def test_thick_links_lead_from_sender_to_receiver(tmp_path: Path) -> None:
    """Most bytes go to rank 0: the first arrow ends at the left, at the box of rank 0's host."""
    loads, groups = load(*CASES["42 hosts"], tmp_path)
    first = groups[0].busiest
    receiver = first.b if first.end == "a" else first.a
    for form in forms_of(draw_network(loads, groups, has_fault=True)):
        (line,) = (each for each in form.iter("g") if each.attrib.get("class") == "fault")
        head = line.findall("path")[1].attrib["d"]
        x, y = map(float, re.findall(r"[0-9.]+", head)[:2])
        (box,) = (each for each in form.iter("g") if (each.findtext("title") or "") == receiver.name.split()[0])
        left, top, right, bottom = corners_of(box)
        assert left - 1 <= x <= right + 1
        assert top - 1 <= y <= bottom + 1


def test_only_a_fault_is_red(tmp_path: Path) -> None:
    loads, groups = load(*CASES["42 hosts"], tmp_path)
    assert "fault" not in draw_network(loads, groups, has_fault=False)
    assert draw_network(loads, (), has_fault=True) == ""


def test_an_aggregation_node_is_no_host(tmp_path: Path) -> None:
    """Hosts are gpu1 to gpu4, six hosts with one adapter, and storage1. The adapter inside a switch is not a host."""
    loads, groups = load(*CASES["eight adapters"], tmp_path)
    hosts = [name for name in loads.fabric.hosts.name if "Aggregation" not in name]
    assert f"4 of {len(hosts)} hosts and" in draw_network(loads, groups, has_fault=False)
    assert len(hosts) == len(loads.fabric.hosts.name)


def test_names_are_text(tmp_path: Path) -> None:
    assert "<b>" not in draw_named(tmp_path, "<b>host</b>")


def draw_named(folder: Path, name: str) -> str:
    lst = write_dumps(folder)
    lst.write_text(lst.read_text().replace("gpu1 ", f"{name} "))
    loads, groups = load((str(lst),), 4, folder)
    return draw_network(loads, groups, has_fault=False)
