# SPDX-License-Identifier: Apache-2.0
"""A job's report has the same numbers as text, as JSON and as a page. Names are shown as text, never as markup."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import CallTimes, Intervals, IntervalTimes, Profile, RegionTimes
from ibprof.profile.profile_rows import order_rows
from ibprof_converter.cli import layout, report
from ibprof_converter.reports.recorded_job import count_sizes, follow_time
from ibprof_testing.samples.fabrics import FABRICS
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank
from ibprof_testing.waits.derived_samples import derive_profile
from ibprof_testing.waits.synthetic_traces import MS, SyntheticRun

LST = str(FABRICS / "testbed44" / "ibdiagnet.lst")
HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">\x1b[2J'


class Numbers(HTMLParser):
    """Collects the `<data>` elements of a page: JSON path, value, and text on the page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self._open: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "data":
            given = dict(attrs)
            self._open = [given["data-path"] or "", given["value"] or "", ""]

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[2] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "data" and self._open:
            self.found.append((self._open[0], self._open[1], self._open[2]))
            self._open = None


def parse(page: str) -> Numbers:
    parser = Numbers()
    parser.feed(page)
    return parser


def look_up(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def make_run(region: str = "halo", host: str = "host01") -> Profile:
    """Return a run of 20 ranks on five hosts: traffic within a host, region times, message sizes and a time line."""
    ranks = [make_rank(rank, rank // 4, start_ns=10**18, stop_ns=10**18 + 2_500_000_000) for rank in range(20)]
    hosts = [make_host(name) for name in (host, "host02", "host13", "host28", "host42")]
    counts = [
        Count(a, b, 1000 + 37 * a + b, messages=1 + a % 3, region=a % 2, operation=(a + b) % 2)
        for a in range(20)
        for b in range(20)
        if a != b
    ]
    run = make_profile(counts, ranks, hosts, regions=("main", region), operations=("ALLTOALL", "BCAST"))
    sizes = np.zeros((1, 65), np.uint64)
    sizes[0, [0, 1, 10, 11]] = [1, 2, 3, 4]
    column = np.arange(20, dtype=np.int32)
    return replace(
        run,
        region_times=RegionTimes(
            rank=column,
            region=column % 2,
            visits=np.full(20, 3, np.uint64),
            wall_ns=np.arange(1, 21).astype(np.uint64) * np.uint64(10**8),
            first_ns=np.zeros(20, np.uint64),
            last_ns=np.zeros(20, np.uint64),
        ),
        sizes=replace(
            run.sizes,
            rank=np.zeros(1, np.int32),
            region=np.zeros(1, np.int32),
            operation=np.zeros(1, np.int32),
            kind=np.zeros(1, np.uint8),
            direction=np.zeros(1, np.uint8),
            messages=sizes,
        ),
        intervals=Intervals(
            rank=column,
            begin_ns=np.uint64(10**18) + column.astype(np.uint64) * np.uint64(10**8),
            end_ns=np.uint64(10**18) + (column + 2).astype(np.uint64) * np.uint64(10**8),
            first_peer=np.zeros(20, np.uint32),
            last_peer=np.full(20, 19, np.uint32),
            bytes=np.full(20, 1001, np.uint64),
            messages=np.ones(20, np.uint64),
        ),
    )


CASES = {
    "fabric": ([LST], make_run()),
    "two-rails": ([str(FABRICS / "dualrail" / rail) for rail in ("rail1", "rail2")], make_run()),
    "no-fabric": ([], make_run()),
    "one-rank": ([LST], make_profile([], [make_rank(0)], [make_host("host01")])),
    "huge": (
        [LST],
        make_profile([Count(0, 1, 2**63)], [make_rank(0), make_rank(1, 1)], [make_host("host01"), make_host("host42")]),
    ),
}


@pytest.fixture(params=list(CASES))
def renderings(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[str, Any, str]:
    fabrics, run = CASES[request.param]
    write_archive(run, tmp_path / "profile.otf2")
    arguments = [*fabrics, str(tmp_path / "profile.otf2")]
    if request.param == "two-rails":
        arguments += ["--placement", "spread", "--max-unrouted", "100"]  # hosts on one rail lack the other rail
    return render(arguments, tmp_path, capsys)


def render(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, Any, str]:
    capsys.readouterr()
    assert report.main([*arguments, "--full"]) == 0
    text = capsys.readouterr().out
    assert report.main([*arguments, "--json", "--html", str(folder / "report.html")]) == 0
    return text, json.loads(capsys.readouterr().out), (folder / "report.html").read_text()


def test_text_json_and_page_have_the_same_numbers(renderings: tuple[str, Any, str]) -> None:
    text, document, page = renderings
    found = parse(page).found
    assert found
    for path, value, shown in found:
        assert json.loads(value) == look_up(document, path), path
        assert shown in text, path
    shown_paths = {path for path, _, _ in found}
    for key in ("operations", "regions", "balance", "message_sizes", "levels", "rails", "bytes_by_fate"):
        for number, row in enumerate(document.get(key, ())):
            numbers = {name for name, value in row.items() if isinstance(value, int | float) and name in WANTED[key]}
            assert {f"{key}.{number}.{name}" for name in numbers} <= shown_paths
    spots = [f"hotspots.{number}.bytes" for number in range(len(document.get("hotspots", ())))]
    assert set(spots) <= shown_paths


WANTED = {
    "operations": {"bytes", "messages", "share"},
    "regions": {"bytes", "messages", "share"},
    "balance": {"max_bytes", "mean_bytes", "min_bytes", "ratio"},
    "message_sizes": {"messages", "share", "least_bytes", "most_bytes"},
    "levels": {"bytes_up", "bytes_down", "max_link", "links_used"},
    "rails": {"bytes_sent", "share", "links_used", "max_link"},
    "bytes_by_fate": {"bytes", "share"},
}


def test_sums_agree_with_one_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run()
    write_archive(run, tmp_path / "profile.otf2")
    _, document, _ = render([LST, str(tmp_path / "profile.otf2")], tmp_path, capsys)
    total = int(run.counters.bytes.sum())
    assert document["bytes_total"] == total == sum(map(sum, document["matrix_ranks"]["bytes"]))
    assert document["bytes_routed"] == sum(map(sum, document["matrix_hosts"]["bytes"]))
    assert document["bytes_routed"] == document["rails"][0]["bytes_sent"]
    # Hosts' bytes go up from level 0, and the same number of bytes comes down to level 0.
    lowest = document["levels"][0]
    assert (lowest["lower"], lowest["bytes_up"], lowest["bytes_down"]) == (0, *[document["bytes_routed"]] * 2)
    assert sum(document["balance"][0]["bytes"]) == total
    assert document["job"]["elapsed_s"] == 2.5
    halo = {"name": "halo", "visits": 30, "longest_s": 2.0, "mean_s": pytest.approx(1.1)}
    assert document["region_times"][0] == halo | {"mpi_s": None, "wait_s": None, "line_rate_s": None}
    assert document["reproduce"]["inputs"][0]["path"] == LST


def test_links_of_a_region_need_what_links_csv_has_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text, the JSON and `ibprof-layout --by region` agree. The text's table also shows the waiting time."""
    run = make_run()
    column = np.arange(20, dtype=np.int32)
    times = CallTimes(
        rank=column,
        region=column % 2,
        operation=np.zeros(20, np.int32),
        calls=np.full(20, 3, np.uint64),
        time_ns=np.full(20, 2 * 10**9, np.uint64),
        error_ns=np.zeros(20, np.uint64),
        site=np.zeros(20, np.int32),
    )
    timed = [replace(rank, has_times=True) for rank in run.ranks]
    write_archive(replace(run, ranks=tuple(timed), times=order_rows(times)), tmp_path / "profile.otf2")
    arguments = [LST, str(tmp_path / "profile.otf2")]
    text, document, _ = render(arguments, tmp_path, capsys)
    assert layout.main([*arguments, "--by", "region", "-o", str(tmp_path / "links.csv")]) == 0
    longest = dict.fromkeys(("main", "halo"), 0.0)
    with (tmp_path / "links.csv").open() as table:
        for row in csv.DictReader(table):
            seconds = max(int(row["a_bytes"]), int(row["b_bytes"])) * 8 / (float(row["gbps"]) * 1e9)
            if row["region"] in longest:
                longest[row["region"]] = max(longest[row["region"]], seconds)
    by_region = {each["name"]: each for each in document["region_times"]}
    assert {name: each["line_rate_s"] for name, each in by_region.items()} == pytest.approx(longest)
    assert all(longest.values())
    assert {name: each["mpi_s"] for name, each in by_region.items()} == pytest.approx({"main": 1.0, "halo": 1.0})
    assert "Region halo: 50% of MPI time" in document["verdict"]["text"]
    assert "most loaded link at line" in text


def test_message_sizes_and_the_time_line_keep_what_they_count() -> None:
    run = make_run()
    assert [(each.name, each.messages) for each in count_sizes(run)] == [
        ("empty", 1),
        ("1 B", 2),
        ("512 B to 1 KiB", 3),
        ("1 KiB to 2 KiB", 4),
    ]
    assert [(each.least_bytes, each.most_bytes) for each in count_sizes(run)][1:3] == [(2, 2), (3 * 512, 3 * 1023)]
    bins = follow_time(run)
    assert {each.mpi_s for each in bins} == {None}
    assert sum(each.bytes for each in bins) == 20 * 1001
    assert bins[-1].end_s == pytest.approx(2.1)
    # In the middle interval, two ranks send at the same time, each for 0.2 s.
    middle = bins[len(bins) // 2]
    assert middle.bytes == pytest.approx(2 * 1001 / 0.2 * (middle.end_s - middle.begin_s), abs=2)


def test_the_time_line_has_the_time_inside_calls() -> None:
    """Rank 0 waits during the whole first half of the time line, and during 50% of the second half."""
    run = make_run()
    first, last = int(run.intervals.begin_ns.min()), int(run.intervals.end_ns.max())
    middle = (first + last) // 2
    moments = np.array([first, middle, last], np.uint64)
    time_ns = np.array([middle - first, (last - middle) // 2], np.uint64)
    inside = IntervalTimes(np.zeros(2, np.int32), moments[:2], moments[1:], time_ns)
    bins = follow_time(replace(run, interval_times=inside))
    shares = [0 if each.mpi_s is None else each.mpi_s / (each.end_s - each.begin_s) for each in bins]
    half = len(bins) // 2
    assert shares[: half - 1] == pytest.approx([1.0] * (half - 1), rel=1e-6)
    assert shares[half + 1 :] == pytest.approx([0.5] * (len(bins) - half - 1), rel=1e-6)


def test_the_time_line_has_the_waiting_of_the_calls_sampled_then() -> None:
    """A rank is late in the first second; in the next second, calls are mostly transfer."""
    sampled = SyntheticRun(3, seed=1)
    for number in range(200):
        sampled.compute({1: 10 * MS} if number < 100 else {})
        sampled.collective("Allreduce", 8, 1000 if number < 100 else 13 * MS)
    calls = derive_profile(sampled.traces())
    intervals, begin = make_run().intervals, int(calls.collective_samples.start_ns.min())
    begin_ns = (intervals.begin_ns - intervals.begin_ns.min() + np.uint64(begin)).astype(np.uint64)
    intervals = replace(intervals, begin_ns=begin_ns, end_ns=begin_ns + (intervals.end_ns - intervals.begin_ns))
    last = int(intervals.end_ns.max())
    moments = np.array([[begin], [last]], np.uint64)
    inside = IntervalTimes(np.zeros(1, np.int32), moments[0], moments[1], np.array([last - begin], np.uint64))
    bins = follow_time(replace(calls, intervals=intervals, interval_times=inside))
    parts = [None if each.wait_s is None or not each.mpi_s else each.wait_s / each.mpi_s for each in bins]
    waiting, transfer = ([part for part in parts[at : at + 30] if part is not None] for at in (2, 55))
    assert min(waiting) > 0.95
    assert max(transfer) < 0.6  # ranks leave a call at different times, up to half of the transfer apart
    assert sum(each.mpi_s or 0 for each in bins) == pytest.approx((last - begin) * 1e-9)


def test_names_are_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate(("halo", HOSTILE)):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_archive(replace(make_run(region=name), command=name), folder / "profile.otf2")
    for fabric in ([LST], []):
        tags = []
        for number in (0, 1):
            arguments = [*fabric, str(tmp_path / str(number) / "profile.otf2")]
            text, _, page = render(arguments, tmp_path, capsys)
            tags.append(parse(page).tags)
            assert "\x1b" not in page
            assert "\x1b" not in text
        assert tags[0] == tags[1]


def test_the_page_may_reach_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(make_run(), tmp_path / "profile.otf2")
    _, _, page = render([LST, str(tmp_path / "profile.otf2")], tmp_path, capsys)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]
    assert not re.search(r"\bhttps?:|\b//", policy[1])


def test_pairs_of_lids_alone_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pairs.csv").write_text("src_lid,dst_lid,bytes\n1,6,10\n6,1,30\n")
    text, document, page = render([str(tmp_path / "pairs.csv")], tmp_path, capsys)
    assert document["bytes_total"] == 40
    assert document["matrix_LIDs"]["pairs"][0] == {"source": "6", "destination": "1", "bytes": 30, "share": 0.75}
    assert "ibdiagnet -o fabric" in text
    assert "ibdiagnet -o fabric" in page


def test_hosts_of_a_placement_are_weighed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "matrix.csv").write_text("src,dst,bytes,messages\n0,1,60,1\n1,2,30,1\n2,0,0,1\n2,2,7,1\n")
    (tmp_path / "ranks.csv").write_text("rank,host\n0,host01\n1,host02\n2,host42\n")
    arguments = [LST, str(tmp_path / "matrix.csv"), "--placement", str(tmp_path / "ranks.csv")]
    _, document, _ = render(arguments, tmp_path, capsys)
    hosts = next(each for each in document["balance"] if each["of"] == "hosts")
    assert (hosts["count"], hosts["bytes"], hosts["greatest"]) == (3, [60, 30, 0], "host01")
