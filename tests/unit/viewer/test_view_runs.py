# SPDX-License-Identifier: Apache-2.0
"""All runs of a view share the indices of names and ranks. Intervals of several jobs form one list."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import UNKNOWN_PEER, Intervals, Mark, MarkKind, Profile
from ibprof_converter.cli.view import main
from ibprof_converter.hotspots.coverage import Coverage
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.link_loads import Loads
from ibprof_converter.traffic.traffic_data import ALL, NO_RANK, Traffic, no_counters
from ibprof_converter.viewer.time_arrays import describe_times, merge_times
from ibprof_converter.viewer.view_document import LinkValue, encode_document
from ibprof_converter.viewer.view_runs import ViewRun, share_names, spread_ranks
from ibprof_testing.samples.fabrics import read_subnet
from ibprof_testing.samples.profiles import Count, make_profile, make_rank
from ibprof_testing.waits.derived_samples import derive_profile
from ibprof_testing.waits.synthetic_traces import SyntheticRun
from ibprof_testing.waits.traces import find_waits

SECOND = 1_000_000_000


def make_run(
    ranks: int, operations: tuple[str, ...], jobs: tuple[str, ...] = (ALL,), first: tuple[int, ...] = (0,)
) -> ViewRun:
    small, wide = np.zeros(0, np.int32), np.zeros(0, np.uint64)
    lids = np.arange(1, ranks + 1, dtype=np.int32).reshape(-1, 1)
    placed = Traffic(
        *(small, small, small, wide, small, small, small, small, (ALL,), operations, 0, {}, "single rail", "made"),
        rank_lid=lids,
        jobs=jobs,
        first_rank=first,
    )
    nothing = Coverage("made", None, None, None, None, (), (), (), ())
    return ViewRun("", placed, Loads((), ((ALL, ALL),), 0, 0, 0, {}), nothing)


def test_names_of_all_runs_are_shared_and_those_of_the_first_come_first() -> None:
    names = share_names([make_run(2, ("BCAST", "SEND")), make_run(3, ("SEND", "REDUCE"))])
    assert names.operations == ("BCAST", "SEND", "REDUCE")
    assert names.ranks == ("0", "1", "2")
    assert names.jobs == (ALL,)


def test_ranks_of_a_job_stay_next_to_one_another() -> None:
    runs = [make_run(3, (ALL,), ("a", "b"), (0, 2)), make_run(12, (ALL,), ("a", "b"), (0, 11))]
    names = share_names(runs)
    assert names.ranks == (*(f"0:{rank}" for rank in range(11)), "1:0")
    placed = runs[0].placed
    assert isinstance(placed, Traffic)
    spread = spread_ranks(np.array([[7], [8], [9]]), placed, names, NO_RANK)
    assert spread.ravel().tolist() == [7, 8, *[NO_RANK] * 9, 9]


def test_counters_alone_have_names_too() -> None:
    run = make_run(1, (ALL,))
    counted = ViewRun("", no_counters("made"), run.loads, run.coverage)
    assert share_names([counted]).regions == (ALL,)
    assert share_names([counted]).ranks == ()


def make_timed(begin: float, end: float, peer: int) -> Profile:
    """Make a run of rank 0, which sends to `peer` from `begin` to `end` (s), in region `main`."""
    marks = tuple(
        Mark(0, int(when * SECOND), kind, 0, 0, 0, 0, 0)
        for when, kind in ((begin, MarkKind.START), (end, MarkKind.STOP))
    )
    run = make_profile([], [make_rank(0)])
    return replace(run, intervals=make_intervals(begin, end, peer), marks=marks)


def make_intervals(begin: float, end: float, peer: int) -> Intervals:
    def one(value: float, kind: type[np.generic]) -> np.ndarray:
        return np.array([value], kind)

    return Intervals(
        rank=one(0, np.int32),
        begin_ns=one(begin * SECOND, np.uint64),
        end_ns=one(end * SECOND, np.uint64),
        first_peer=one(peer, np.uint32),
        last_peer=one(peer, np.uint32),
        bytes=one(5, np.uint64),
        messages=one(1, np.uint64),
    )


@pytest.mark.parametrize(
    ("second", "begins"),
    [(15, [0, 5]), (100, [0, 0])],  # the second run starts during the first run, or long after it
)
def test_jobs_recorded_at_one_time_stay_where_they_were(second: int, begins: list[int]) -> None:
    times = merge_times([make_timed(10, 20, 1), None, make_timed(second, second + 9, 1)], (0, 4, 6))
    assert times is not None
    arrays = describe_times(times)
    assert arrays["time_begin"].tolist() == arrays["visit_begin"].tolist() == begins
    assert arrays["time_rank"].tolist() == arrays["visit_rank"].tolist() == [0, 6]
    assert arrays["time_first_peer"].tolist() == [1, 7]
    assert arrays["time_bytes"].sum() == 10
    assert times.regions == ("main",)


def test_peers_that_are_no_ranks_stay_none() -> None:
    times = merge_times([None, make_timed(1, 2, UNKNOWN_PEER)], (0, 3))
    assert times is not None
    assert_array_equal(times.sent.first_peer, [UNKNOWN_PEER])
    assert merge_times([None, None], (0, 3)) is None


def test_a_traffic_between_lids_has_no_ranks_and_links_have_values_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "traffic.csv").write_text("src_lid,dst_lid,bytes\n1,2,5\n3,9,7\n")
    assert main(["xgft:2:4,4:1,4", str(tmp_path / "traffic.csv"), "-o", str(tmp_path / "view.html")]) == 0
    subnets = [read_subnet("xgft:2:4,4:1,4"), read_subnet("torus:3x3:1")]
    fabrics = [subnet.fabric for subnet in subnets]
    sender = np.concatenate([fabrics[0].link_node.ravel(), fabrics[1].link_node.ravel() + fabrics[0].nodes])
    run = make_run(0, (ALL,))
    loads = Loads(tuple(np.zeros((each.links, 2, 1), np.uint64) for each in fabrics), ((ALL, ALL),), 0, 0, 0, {})
    counted = ViewRun("", no_counters("made"), loads, run.coverage)
    value = LinkValue("sender", "", sender.astype(float))
    made = encode_document("", subnets, lay_out(fabrics), find_hosts(fabrics), [counted], link_values=[value])
    # Each link direction has the right value, whatever the order of directions in the page.
    (length,) = struct.unpack_from("<I", made)
    arrays = {each["name"]: each for each in json.loads(made[4 : 4 + length])["arrays"]}
    begin = -(-(4 + length) // 8) * 8
    node, said = (
        np.frombuffer(made, kind, arrays[name]["length"], begin + arrays[name]["offset"])
        for name, kind in (("end_node", "<u4"), ("link_value_0", "<f8"))
    )
    assert_array_equal(node, said)


def test_ranks_have_their_measured_waiting_and_its_error(tmp_path: Path) -> None:
    synthetic = SyntheticRun(4, seed=5)
    for _ in range(20):
        synthetic.compute({2: 3_000_000})
        synthetic.collective("Allreduce", 8, 20_000)
    traced = derive_profile(synthetic.traces())
    sent = make_profile([Count(0, 1, 5000)], [make_rank(rank, 0) for rank in range(4)])
    write_archive(replace(traced, counters=sent.counters), tmp_path / "profile.otf2")
    page = tmp_path / "view.html"
    assert main(["xgft:2:4,4:1,4", str(tmp_path / "profile.otf2"), "--placement", "spread", "-o", str(page)]) == 0
    packed = re.search(r'id="data"[^>]*>\s*([^<\s]+)', page.read_text())
    assert packed
    made = zlib.decompress(base64.b64decode(packed[1]))
    (length,) = struct.unpack_from("<I", made)
    about = next(each for each in json.loads(made[4 : 4 + length])["arrays"] if each["name"] == "0.rank_parts")
    parts = np.frombuffer(made, "<f4", about["length"], -(-(4 + length) // 8) * 8 + about["offset"]).reshape(-1, 4)
    waits = [sum(int(wait) for wait in waits) * 1e-9 for waits in find_waits(synthetic.traces())]
    assert parts[:, 0] == pytest.approx(waits, rel=1e-5)
    assert parts[:, 2].tolist() == [0, 0, 0, 0]
