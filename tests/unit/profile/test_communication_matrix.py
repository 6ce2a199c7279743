# SPDX-License-Identifier: Apache-2.0
"""A profile's matrix contains each byte once, by sender and receiver. A selection gives exact bytes, or is refused."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibprof.errors import UsageError
from ibprof.profile.communication_matrix import Selection, build_matrix, format_pairs
from ibprof.profile.profile_data import UNKNOWN_PEER, Direction, Kind, Mark, MarkKind, Profile, RegionTimes, Source
from ibprof_testing.samples.profiles import Count, make_host, make_port, make_profile, make_rank

RUN = make_profile(
    [
        Count(0, 1, 10),
        Count(0, 1, 5, operation=1),
        Count(1, 2, 2**64 - 1),
        Count(1, 2, 2**64 - 1, region=1),
        Count(2, 0, 7, direction=Direction.FETCHED),
        Count(1, 0, 15, direction=Direction.RECEIVED),
        Count(0, 2, 99, kind=Kind.CONTROL),
        Count(0, 2, 10, source=Source.VERBS),
        Count(0, UNKNOWN_PEER, 3),
        Count(2, 3, 0, messages=0),
    ],
    ranks=[make_rank(0, 0), make_rank(1, 0), make_rank(2, 1)],
    hosts=[make_host("a", make_port(1, 0xA)), make_host("b", make_port(2, 0xB), make_port(3, 0xC, state=1))],
    regions=("main", "x"),
    operations=("SEND", "BCAST"),
    world_size=4,
)


def rows(run: Profile, by: str = "rank", **selection: object) -> list[tuple[str, str, int, int]]:
    return list(build_matrix(run, by, Selection(**selection)).rows())  # type: ignore[arg-type]


def test_by_rank_fetched_bytes_come_from_their_owner_and_sums_are_exact() -> None:
    assert rows(RUN) == [("0", "1", 15, 2), ("0", "2", 7, 1), ("1", "2", 2 * (2**64 - 1), 2)]


def test_what_is_left_out_is_said() -> None:
    notes = build_matrix(RUN, "rank", Selection()).notes
    assert notes == [
        "several sources counted the same bytes: the matrix has the bytes measured in Open MPI's PML",
        "3 bytes are left out: the rank at the other end is unknown",
    ]


def test_selections() -> None:
    assert rows(RUN, operation="mpi_bcast") == [("0", "1", 5, 1)]
    assert rows(RUN, region="x") == [("1", "2", 2**64 - 1, 1)]
    assert rows(RUN, kind=Kind.CONTROL) == [("0", "2", 99, 1)]
    assert rows(RUN, received=True) == [("0", "1", 15, 1)]


def test_by_host_and_by_port() -> None:
    assert rows(RUN, "host") == [("a", "a", 15, 2), ("a", "b", 2 * (2**64 - 1) + 7, 3)]
    assert rows(RUN, "port") == [("0x000000000000000a", "0x000000000000000b", 2 * (2**64 - 1) + 7, 3)]


def test_unknown_ports_are_refused() -> None:
    two = replace(RUN, hosts=(make_host("a", make_port(1, 1), make_port(2, 2)), *RUN.hosts[1:]))
    with pytest.raises(UsageError, match="host a has 2 active ports"):
        rows(two, "port")


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"operation": "NONSENSE"}, "no operation 'NONSENSE'; it has BCAST, SEND"),
        ({"region": "y"}, "no region 'y'; it has main, x"),
        ({"since_start": True}, "needs --region"),
        ({"region": "x", "since_start": True}, "no mark closes this region"),
    ],
)
def test_names_that_are_not_there_are_refused(selection: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rows(RUN, **selection)


def test_since_the_start_all_regions_count_that_were_closed_until_then() -> None:
    run = make_profile(
        [Count(0, 1, 1), Count(0, 1, 10, region=1), Count(0, 1, 100, region=2), Count(1, 0, 1000, region=1)],
        ranks=[make_rank(0), make_rank(1)],
        regions=("a.c:1", "a.c:2", "a.c:3"),
    )
    closed = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)]
    marks = (Mark(rank, time, MarkKind.CLOSE, region, 0, 0, 0, 0) for time, (rank, region) in enumerate(closed))
    run = replace(run, marks=tuple(marks))
    assert rows(run, region="a.c:2", since_start=True) == [("0", "1", 11, 2), ("1", "0", 1000, 1)]
    assert rows(run, region="a.c:3", since_start=True) == [("0", "1", 111, 3), ("1", "0", 1000, 1)]


def test_since_the_start_named_regions_count_that_were_left_before() -> None:
    counts = [Count(0, 1, 10**region, region=region) for region in range(4)]
    run = make_profile(
        counts, ranks=[make_rank(0), make_rank(1)], regions=("left", "a.c:1", "left later", "never left")
    )
    run = replace(
        run,
        marks=(Mark(0, 500, MarkKind.CLOSE, 1, 0, 0, 0, 0),),
        region_times=RegionTimes(
            rank=np.array([0, 0, 0, 0, 1], np.int32),
            region=np.array([0, 1, 2, 3, 2], np.int32),
            visits=np.ones(5, np.uint64),
            wall_ns=np.ones(5, np.uint64),
            first_ns=np.array([100, 100, 400, 0, 100], np.uint64),
            last_ns=np.array([499, 500, 501, 0, 200], np.uint64),
        ),
    )
    assert rows(run, region="a.c:1", since_start=True) == [("0", "1", 11, 2)]


def test_what_cannot_be_cut_at_a_mark_is_reported() -> None:
    """Region `goes on` is open when region `a.c:1` closes. The bytes of `goes on` before and after that are one sum."""
    run = make_profile(
        [Count(0, 1, 10, region=1), Count(0, 1, 500, region=2)],
        ranks=[make_rank(0), make_rank(1)],
        regions=("main", "a.c:1", "goes on"),
    )
    run = replace(run, marks=(Mark(0, 500, MarkKind.CLOSE, 1, 10 + 200, 2, 0, 0),))
    matrix = build_matrix(run, "rank", Selection(region="a.c:1", since_start=True))
    assert list(matrix.rows()) == [("0", "1", 10, 1)]
    (note,) = matrix.notes
    assert note == (
        "200 more bytes, sent before a.c:1 last ended, are left out: their regions were still open, or were opened "
        "again later. Such a region has one sum for all its bytes"
    )


@pytest.mark.parametrize("again", [MarkKind.CLOSE, MarkKind.BEGIN])
def test_since_the_start_a_region_that_was_opened_again_does_not_count(again: MarkKind) -> None:
    run = make_profile(
        [Count(0, 1, 10, region=1), Count(0, 1, 500, region=2)],
        ranks=[make_rank(0), make_rank(1)],
        regions=("main", "a.c:1", "a.c:2"),
    )
    close = MarkKind.CLOSE
    marks = ((100, close, 1, 5), (200, close, 2, 205), (300, close, 1, 210), (400, again, 2, 510))
    run = replace(run, marks=tuple(Mark(0, time, kind, region, sent, 1, 0, 0) for time, kind, region, sent in marks))
    matrix = build_matrix(run, "rank", Selection(region="a.c:1", since_start=True))
    assert list(matrix.rows()) == [("0", "1", 10, 1)]
    assert [note.split(" more")[0] for note in matrix.notes] == ["200"]
    assert rows(run, region="a.c:2", since_start=True) == [("0", "1", 510, 2)] or again == MarkKind.BEGIN
    # The regions' last visits have no marks. So the note gives a lower bound: the bytes before the last mark.
    one = np.ones(2, np.uint64)
    last_ns = np.array([500, 600], np.uint64)
    times = RegionTimes(np.zeros(2, np.int32), np.array([1, 2], np.int32), one, one, one, last_ns)
    matrix = build_matrix(replace(run, region_times=times), "rank", Selection(region="a.c:1", since_start=True))
    assert [note.split(" more")[0] for note in matrix.notes] == ["at least 200"]


NAMES = st.lists(st.text(max_size=9) | st.sampled_from(["", '"', "a,b", "a\nb", " a", "0"]), min_size=1, max_size=5)
NUMBERS = st.integers(0, 2**64 - 1) | st.sampled_from([0, 9, 10, 2**64 - 1])


@given(NAMES, st.data())
def test_like_the_csv_module(names: list[str], data: st.DataObject) -> None:
    index = st.integers(0, len(names) - 1)
    rows = data.draw(st.lists(st.tuples(index, index, NUMBERS, NUMBERS), max_size=20))
    expected = io.StringIO()
    csv.writer(expected, lineterminator="\n").writerows((names[a], names[b], size, n) for a, b, size, n in rows)
    source, destination = (np.array([row[end] for row in rows], np.int64) for end in (0, 1))
    size, messages = (np.array([row[column] for row in rows], np.uint64) for column in (2, 3))
    assert "".join(format_pairs(names, source, destination, size, messages)) == expected.getvalue()


def test_many_rows() -> None:
    number = np.arange(100_000)
    text = "".join(
        format_pairs(["x", "yy"], number % 2, number // 2 % 2, number.astype(np.uint64), number.astype(np.uint64))
    )
    assert [line.split(",")[2] for line in text.splitlines()] == [str(one) for one in number]


def test_pairs_of_ranks_and_hosts_are_columns_of_a_frame() -> None:
    ranks = [make_rank(rank, rank // 2) for rank in range(3)]
    run = make_profile([Count(0, 1, 10), Count(2, 0, 32)], ranks, [make_host("a"), make_host("b")])
    frame = pd.DataFrame(build_matrix(run).to_frame())
    assert frame.to_dict("list") == {"src": [0, 2], "dst": [1, 0], "bytes": [10, 32], "messages": [1, 1]}
    assert frame.dtypes.map(str).tolist() == ["int64", "int64", "uint64", "uint64"]
    hosts = pl.DataFrame(build_matrix(run, "host", Selection()).to_frame())
    assert hosts.rows() == [("a", "a", 10, 1), ("b", "a", 32, 1)]
