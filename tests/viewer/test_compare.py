# SPDX-License-Identifier: Apache-2.0
"""In a view of two runs, loads equal links.csv, differences are exact, and selections apply to both runs."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from ibprof.archive.otf2_archive import write_archive
from ibprof_converter.cli import diff, layout, view
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank
from ibprof_testing.samples.timed_profiles import write_timed_profile
from ibprof_testing.samples.traffic import keep_pairs, loads_in_csv, write_matrix
from ibprof_testing.views import Open, Opened, wait_for_address

TESTBED = str(find_sample("testbed44", IBDIAGNET))
TREE = "xgft:2:4,4:1,4"  # 16 hosts
RANKS = 16
AXE = Path(__file__).resolve().parents[2] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"

Loads = list[list[str]]


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    return write_matrix(tmp_path / "matrix.csv", RANKS)


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str]:
    """Write two placements on half of the hosts. Some links are used in only one run."""
    names = []
    for name, step in (("near", 1), ("far", 3)):
        rows = [f"{rank},host{1 + (step * rank) % 9:02d}" for rank in range(RANKS)]
        (tmp_path / name).write_text("\n".join(["rank,host", *rows, ""]))
        names.append(str(tmp_path / name))
    return names[0], names[1]


@pytest.fixture
def opened(open_view: Open, matrix: str, places: tuple[str, str]) -> Opened:
    near, far = places
    return open_view([TESTBED, matrix, "--placement", near], options=["--compare-placement", far])


def second_loads(opened: Opened) -> Loads:
    loads: Loads = opened.page.evaluate("ibprof.loadsAfter()")
    return loads


def drawn(opened: Opened) -> Loads:
    loads: Loads = opened.page.evaluate("ibprof.drawn()")
    return loads


def less(one: Loads, other: Loads) -> Loads:
    return [
        [str(int(a) - int(b)) for a, b in zip(ends, others, strict=True)]
        for ends, others in zip(one, other, strict=True)
    ]


def test_both_are_as_links_csv_says_and_so_is_the_difference(
    opened: Opened, matrix: str, places: tuple[str, str], tmp_path: Path
) -> None:
    far = loads_in_csv([TESTBED, matrix, "--placement", places[1]], tmp_path / "far.csv")
    assert opened.loads() == opened.expected()
    assert second_loads(opened) == far
    opened.page.locator("#compare").select_option("difference")
    assert opened.page.locator("#by").input_value() == "time"
    opened.page.locator("#by").select_option("bytes")
    assert drawn(opened) == less(far, opened.expected())
    changed = [int(each) for ends in drawn(opened) for each in ends]
    largest = max(changed, key=abs)
    assert opened.most_loaded() == changed.index(largest)
    opened.page.keyboard.press("x")
    assert opened.loads() == far
    assert drawn(opened) == less(opened.expected(), far)
    assert "run=1" in opened.address()
    opened.page.keyboard.press("c")
    assert not opened.page.locator("#pane-1").is_visible()
    assert drawn(opened) == far
    assert opened.complaints == []
    assert opened.requests == []


def test_one_sentence_says_what_changed_and_both_runs_links_are_listed(
    opened: Opened, matrix: str, places: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    of_sides = ["--placement", places[0], "--placement", places[1]]
    assert diff.main([matrix, matrix, "--fabric", TESTBED, *of_sides, "--json"]) == 0
    change = json.loads(capsys.readouterr().out)["change"]
    assert change["kind"] == "placement"
    box = opened.page.locator("#change")
    assert box.locator("h2").inner_text() == "What changed from near to far"
    assert box.locator("p").inner_text().replace("far needs", "B needs") == change["text"].replace(
        " as A on", " as near on"
    ).replace("(A's most", "(near's most")
    for side, listed in (("a", "top-links"), ("b", "top-links-second")):
        names = opened.page.locator(f"#{listed} button").all_inner_texts()
        assert len(names) == 3
        assert set(names) <= {each["name"] + f" port {each['far_port']}" for each in change["most_loaded"][side]}
    assert opened.page.locator("#top-links-second-title").inner_text() == "Most loaded links: far"
    opened.page.keyboard.press("x")
    assert box.locator("h2").inner_text() == "What changed from far to near"
    assert box.locator("p").inner_text().startswith("near needs")
    opened.page.locator("#compare").select_option("none")
    assert not box.is_visible()
    assert not opened.page.locator("#top-links-second").is_visible()


def test_a_choice_is_of_both_runs(opened: Opened, matrix: str, places: tuple[str, str], tmp_path: Path) -> None:
    opened.page.locator("#tab-ranks").click()
    opened.page.locator("#ranks button").filter(has_text="5 on ").first.click()
    own = keep_pairs(matrix, tmp_path / "own.csv", lambda a, b: 5 in (a, b))
    assert opened.loads() == loads_in_csv([TESTBED, own, "--placement", places[0]], tmp_path / "near.csv")
    assert second_loads(opened) == loads_in_csv([TESTBED, own, "--placement", places[1]], tmp_path / "far.csv")


def test_one_scale_of_colours_and_one_view(opened: Opened) -> None:
    opened.page.locator("#by").select_option("bytes")
    most = max(int(each) for loads in (opened.loads(), second_loads(opened)) for ends in loads for each in ends)
    assert opened.page.get_by_role("slider", name="Load of link directions, to").get_attribute("aria-valuetext")
    assert opened.page.locator("#most").inner_text().split()[0] == f"{most / 1e6:.3g}"
    box = opened.page.locator("#picture-beside").bounding_box()
    assert box
    end = opened.most_loaded()
    before = opened.page.evaluate(f"ibprof.locateEnd({end}, 0)")
    opened.page.mouse.move(box["x"] + 200, box["y"] + 200)
    opened.page.mouse.wheel(0, -500)
    wait_for_address(opened.page, "at=")
    places = [opened.page.evaluate(f"ibprof.locateEnd({end}, {pane})") for pane in (0, 1)]
    assert places[0] == pytest.approx(places[1], abs=1)
    assert places[0] != pytest.approx(before, abs=5)
    opened.page.keyboard.press("0")
    opened.page.wait_for_function("() => !location.hash.includes('at=')")
    # In the picture of one run, a tooltip shows the values of both runs.
    x, y = opened.page.evaluate(f"ibprof.locateEnd({end}, 1)")
    opened.page.mouse.move(box["x"] + x, box["y"] + y)
    assert opened.page.locator("#tooltip").is_visible()


def test_the_table_lists_the_largest_changes_and_chooses(opened: Opened) -> None:
    changes = [int(each) for ends in less(second_loads(opened), opened.loads()) for each in ends]
    listed = opened.page.locator("#changes table").first.locator("tbody tr")
    assert listed.count() == min(20, sum(map(bool, changes)))
    largest = sorted((abs(each) for each in changes), reverse=True)
    first = listed.first.locator("td").last.inner_text()
    assert f"{largest[0] / 1e6:.3g} MB" in first
    listed.first.locator("button").click()
    assert "end=" in opened.address()
    assert "Traffic on" in opened.page.locator("#selection").inner_text()
    assert opened.page.locator("#selection table th", has_text="far").count() >= 1


def test_a_drag_on_the_colours_is_a_range_of_changes(opened: Opened) -> None:
    opened.page.keyboard.press("c")
    changes = [int(each) for ends in drawn(opened) for each in ends]
    box = opened.page.locator("#colours").bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    opened.page.mouse.move(box["x"] + 0.6 * box["width"], y)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + box["width"], y, steps=4)
    opened.page.mouse.up()
    low, high = opened.page.evaluate("new URLSearchParams(location.hash.slice(1)).get('change').split(',').map(Number)")
    assert low == pytest.approx(0.2 * max(map(abs, changes)), rel=0.1)
    assert opened.lit() == {end for end, change in enumerate(changes) if low <= change <= high}
    address, lit = opened.page.evaluate("location.href"), opened.lit()
    opened.page.goto("about:blank")
    opened.page.goto(address)
    opened.page.wait_for_selector("html[data-ready]")
    assert opened.lit() == lit
    opened.page.evaluate("location.hash = '#run=9&against=-1&compare=all&change=1'")
    opened.page.wait_for_selector("#pane-1:not([hidden])")
    assert opened.loads() == opened.expected()
    assert opened.complaints == []


def test_both_are_in_what_is_saved(opened: Opened) -> None:
    with opened.page.expect_download() as svg:
        opened.page.locator("#svg").click()
    root = ET.fromstring(Path(svg.value.path()).read_text())
    name = "{http://www.w3.org/2000/svg}"
    frames = root.findall(f"{name}svg")
    assert len(frames) == 2
    for frame in frames:
        lines = [path.get("d", "").count("M") for path in frame.iter(f"{name}path") if path.get("fill") == "none"]
        # The links of the three most loaded directions are drawn a second time, on top, each with a rim.
        assert sum(lines) == 2 * len(opened.rows) + 3 * 4
    texts = [text.text for text in root.findall(f"{name}text")]
    assert {"near", "far"} <= set(texts)
    with opened.page.expect_download() as png:
        opened.page.locator("#png").click()
    assert Image.open(BytesIO(Path(png.value.path()).read_bytes())).width > 1500


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(open_view: Open, matrix: str, places: tuple[str, str], scheme: str) -> None:
    opened = open_view([TESTBED, matrix, "--placement", places[0]], scheme, options=["--compare-placement", places[1]])
    opened.page.evaluate(AXE.read_text())
    if scheme == "dark":
        opened.page.keyboard.press("c")
    opened.page.locator("#top-links button").first.click()
    found = opened.page.evaluate("axe.run()")["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []


def total_of(matrix: str) -> int:
    return sum(int(line.split(",")[2]) for line in Path(matrix).read_text().split()[1:])


def test_runs_of_different_size_are_compared_by_share(open_view: Open, tmp_path: Path) -> None:
    one, other = write_matrix(tmp_path / "one.csv", 8), write_matrix(tmp_path / "other.csv", RANKS, seed=8)
    opened = open_view([TREE, one, "--placement", "packed"], options=["--compare", other])
    assert opened.page.locator("#by").input_value() == "share"
    assert "compared by share" in opened.page.locator("#coverage").inner_text()
    assert opened.page.locator("#most").inner_text().endswith("%")
    bytes_before, bytes_after = (
        [int(each) for ends in loads for each in ends] for loads in (opened.loads(), second_loads(opened))
    )
    before = [amount / total_of(one) for amount in bytes_before]
    after = [amount / total_of(other) for amount in bytes_after]
    opened.page.locator("#compare").select_option("difference")
    changes = [b - a for a, b in zip(before, after, strict=True)]
    assert [int(each) / 1e12 for ends in drawn(opened) for each in ends] == pytest.approx(changes, abs=2e-12)
    largest = max(range(len(changes)), key=lambda end: abs(changes[end]))
    assert abs(changes[opened.most_loaded()]) == pytest.approx(abs(changes[largest]))
    assert f"{abs(changes[largest]) * 100:.3g} points" in opened.page.locator("#top-links li").first.inner_text()
    opened.page.locator("#by").select_option("bytes")
    assert "by=bytes" in opened.address()
    assert drawn(opened) == less(second_loads(opened), opened.loads())
    assert opened.complaints == []


def test_twice_as_much_of_everything_is_no_change_of_shares(open_view: Open, tmp_path: Path) -> None:
    one = write_matrix(tmp_path / "one.csv", 8)
    rows = [line.split(",") for line in Path(one).read_text().split()[1:]]
    doubled = [f"{a},{b},{2 * int(amount)},{count}" for a, b, amount, count in rows]
    (tmp_path / "twice.csv").write_text("\n".join(["src,dst,bytes,messages", *doubled, "8,0,0,1", ""]))
    arguments = [TREE, one, "--placement", "packed"]
    opened = open_view(arguments, options=["--compare", str(tmp_path / "twice.csv")], address="#compare=difference")
    assert {each for ends in drawn(opened) for each in ends} == {"0"}
    assert "no change" in opened.page.locator("#changes").inner_text()
    # In pictures side by side, colours and selected ranges stand for fractions of each run's largest load.
    opened.page.keyboard.press("c")
    opened.page.keyboard.press("c")
    opened.page.get_by_role("slider", name="Load of link directions, from").press("PageUp")
    assert "%" in opened.page.locator("#chips").inner_text()
    most = max(opened.bytes_of_ends())
    assert opened.lit() == {end for end, amount in enumerate(opened.bytes_of_ends()) if amount >= 0.1 * most}


def test_another_rank_placement_of_several_jobs(open_view: Open, places: tuple[str, str], tmp_path: Path) -> None:
    jobs = [write_matrix(tmp_path / f"{name}.csv", RANKS, seed=seed) for seed, name in enumerate(("one", "two"))]
    near, far = places
    opened = open_view(
        [TESTBED, *jobs, "--placement", near, "--placement", far],
        options=["--compare-placement", far, "--compare-placement", near],
    )
    swapped = [
        loads_in_csv([TESTBED, job, "--placement", place], tmp_path / "swapped.csv")
        for job, place in zip(jobs, (far, near), strict=True)
    ]
    assert second_loads(opened) == [
        [str(int(a) + int(b)) for a, b in zip(ends, others, strict=True)] for ends, others in zip(*swapped, strict=True)
    ]
    assert opened.page.locator("#pane-name-1").inner_text() == "far + near"


def write_profile(path: Path, counts: list[Count], regions: tuple[str, ...], operations: tuple[str, ...]) -> str:
    hosts = [make_host(name) for name in ("host01", "host21", "host41")]
    run = make_profile(counts, [make_rank(rank, rank) for rank in range(3)], hosts, regions, operations)
    write_archive(run, path)
    return str(path)


def test_operations_and_regions_of_two_profiles_are_matched_by_name(open_view: Open, tmp_path: Path) -> None:
    before = write_profile(
        tmp_path / "before.otf2",
        [Count(0, 1, 900, operation=0), Count(2, 1, 70, region=1, operation=1)],
        ("main", "halo"),
        ("BCAST", "SEND"),
    )
    after = write_profile(
        tmp_path / "after.otf2",
        [Count(0, 2, 33, region=1, operation=0), Count(2, 1, 71, operation=1), Count(1, 0, 8, operation=1)],
        ("halo", "main"),
        ("SEND", "REDUCE"),
    )
    opened = open_view([TESTBED, before], options=["--compare", after])
    opened.page.locator("#changes button", has_text="SEND").first.click()

    def of_operation(profile: str) -> Loads:
        by = tmp_path / "by.csv"
        assert layout.main([TESTBED, profile, "--by", "operation", "-o", str(by)]) == 0
        with by.open(newline="") as file:
            rows = {(row["a_guid"], row["a_port"]): row for row in csv.DictReader(file) if row["operation"] == "SEND"}
        found = [rows.get((row["a_guid"], row["a_port"])) for row in opened.rows]
        return [[row["a_bytes"], row["b_bytes"]] if row else ["0", "0"] for row in found]

    assert opened.loads() == of_operation(before)
    assert second_loads(opened) == of_operation(after)
    opened.page.keyboard.press("Escape")
    reduced = opened.page.locator("#changes tr").filter(has=opened.page.get_by_role("button", name="REDUCE"))
    assert reduced.locator("td").all_text_contents() == ["0 B", "79 B", "+79 B (new)"]
    assert opened.complaints == []


def test_measured_counters_are_compared_with_the_prediction(open_view: Open, matrix: str, tmp_path: Path) -> None:
    arguments = [TREE, matrix, "--placement", "packed"]
    links = tmp_path / "predicted.csv"
    assert layout.main([*arguments, "-o", str(links)]) == 0
    with links.open(newline="") as file:
        rows = list(csv.DictReader(file))
    counted = {
        2 * link + end: int(row[f"{'ab'[end]}_bytes"]) * (2 if link % 3 else 1) + link
        for link, row in enumerate(rows)
        for end in (0, 1)
        if (link + end) % 4
    }
    lines = [
        f"{rows[at >> 1]['ab'[at & 1] + '_guid']},{rows[at >> 1]['ab'[at & 1] + '_port']},{amount}"
        for at, amount in counted.items()
    ]
    (tmp_path / "counters.csv").write_text("\n".join(["guid,port,bytes", *lines, ""]))
    opened = open_view(arguments, options=["--counters", str(tmp_path / "counters.csv")], address="#by=bytes")
    shown = [int(each) for ends in second_loads(opened) for each in ends]
    assert {end: amount for end, amount in enumerate(shown) if end in counted} == counted
    assert opened.loads() == opened.expected()
    opened.page.keyboard.press("c")
    predicted = opened.bytes_of_ends()
    assert opened.lit() == {end for end in counted if counted[end] or predicted[end]}
    differences = [int(each) for ends in drawn(opened) for each in ends]
    assert differences == [counted[end] - predicted[end] if end in counted else 0 for end in range(len(predicted))]
    assert "measured" in opened.page.locator("#top-links-title").inner_text()
    # Counters have no senders: the lists of senders are empty, and the page has no error.
    opened.page.keyboard.press("x")
    for tab in opened.page.locator("#tabs button").all():
        tab.click()
    opened.page.keyboard.press("n")
    assert "not counted" not in opened.page.locator("#top-links").inner_text()
    assert opened.complaints == []
    # If the counters are the second run of a comparison, its differences from the prediction are the same.
    again = open_view(
        arguments, options=["--compare", str(tmp_path / "counters.csv")], address="#compare=difference&by=bytes"
    )
    assert drawn(again) == [[str(differences[2 * link + end]) for end in (0, 1)] for link in range(len(rows))]
    assert again.lit() == {end for end in counted if counted[end] or predicted[end]}
    assert opened.complaints == []


def test_what_cannot_be_compared_is_refused(matrix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    html = str(tmp_path / "view.html")
    two = ["--compare-placement", "spread", "--compare-placement", "packed"]
    assert view.main([TREE, matrix, "--placement", "packed", "--compare", matrix, *two, "-o", html]) == 2
    assert "expected one for each of 1 --compare, found 2" in capsys.readouterr().err
    jobs = [matrix, matrix, "--placement", "packed", "--placement", "spread"]
    assert view.main([TREE, *jobs, *two, "--compare-placement", "packed", "-o", html]) == 2
    assert "expected 2 placements (one for each job) for each compared run, found 3" in capsys.readouterr().err
    assert view.main([TREE, matrix, "--placement", "packed", "--compare", str(tmp_path / "none.csv"), "-o", html]) == 3
    other = write_matrix(tmp_path / "other.csv", RANKS)
    assert view.main([TREE, matrix, "--placement", "packed", "--compare", other, "-o", other]) == 2
    assert "this is also an input" in capsys.readouterr().err


def test_several_jobs_have_one_time_line(open_view: Open, tmp_path: Path) -> None:
    jobs = [write_timed_profile(tmp_path / name) for name in ("one", "two")]
    opened = open_view([TESTBED, *jobs], address="#panel=time")
    # In each job, rank 0 sends 1000 bytes in the first half, rank 2 sends 500 bytes in the second half.
    spans = opened.page.locator("#spans td").all_inner_texts()
    assert spans[0] == f"{2 * 1000 / 12:.3g} B"
    assert spans[-1] == f"{2 * 500 / 12:.3g} B"
    opened.page.evaluate("ibprof.choose({job: 1, time: [0, 0.5]})")
    assert {int(each) for ends in opened.loads() for each in ends} == {0, 1000}
    assert opened.page.locator("#spans td").first.inner_text() == f"{1000 / 12:.3g} B"
