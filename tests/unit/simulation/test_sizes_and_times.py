# SPDX-License-Identifier: Apache-2.0
"""Sizes and times in studies: printed values are valid input, and invalid quantities are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.errors import UsageError
from ibprof_lab.simulation.study.sizes_and_times import (
    UNITS_OF_SIZE,
    UNITS_OF_TIME,
    format_size,
    format_time,
    parse_interval,
    parse_messages,
    parse_quantity,
    parse_size,
)


@pytest.mark.parametrize(("nanoseconds", "text"), [(250.0, "250 ns"), (1500.0, "1.5 µs"), (4e6, "4 ms"), (2e9, "2 s")])
def test_a_printed_time_is_read_back(nanoseconds: float, text: str) -> None:
    assert format_time(nanoseconds) == text
    assert parse_quantity(text, UNITS_OF_TIME) == nanoseconds


def test_a_time_may_have_a_unit_of_letters_alone() -> None:
    assert parse_quantity("500us", UNITS_OF_TIME) == 500_000


@pytest.mark.parametrize(("size", "text"), [(7, "7 B"), (4096, "4 KiB"), (4_000_000, "4 MB"), (1_572_864, "1.5 MiB")])
def test_a_printed_size_is_read_back(size: int, text: str) -> None:
    assert format_size(size) == text
    assert parse_quantity(text, UNITS_OF_SIZE) == size


@pytest.mark.parametrize("text", ["", "4", "4 xB", "-4 B", "4  B", "four B", "4 µB"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    assert parse_quantity(text, UNITS_OF_SIZE) is None


@pytest.mark.parametrize(
    ("size", "said"),
    [(1, "1 B"), (1023, "1023 B"), (10_000, "10 kB"), (51_200, "50 KiB"), (3 << 19, "1.5 MiB"), (10**12, "1 TB")],
)
def test_sizes_are_printed_as_they_may_be_typed(size: int, said: str) -> None:
    assert (format_size(size), parse_size(said)) == (said, size)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("4", r"expected a size such as 4MiB \(B, kB, .*\), found '4'"),
        ("0B", "expected a size such as 4MiB"),
        ("4 mib", "expected a size such as 4MiB"),
        ("2000000000000000B", "expected a size such as 4MiB"),
        ("1.0005kB", "expected whole bytes, found '1.0005kB'"),
        ("9" * 100, f"found '{'9' * 60}...'"),
    ],
)
def test_what_is_no_size_is_refused(typed: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_size(typed)


@pytest.mark.parametrize(
    ("typed", "nanoseconds"),
    [("500us", 5e5), ("500 µs", 5e5), ("1.5 ms", 1.5e6), ("0s", 0), ("0", 0), ("checkpoint", 0)],
)
def test_times_are_in_nanoseconds(typed: str, nanoseconds: float) -> None:
    assert parse_interval(typed) == nanoseconds


@pytest.mark.parametrize("typed", ["", "5", "-1us", "1e3us", "4MiB", "2000000s"])
def test_what_is_no_time_is_refused(typed: str) -> None:
    with pytest.raises(UsageError, match=r"expected a time such as 500us \(ns, us, ms, s\), found"):
        parse_interval(typed)


@pytest.mark.parametrize(
    ("typed", "requests"), [("4MiB", (4 << 20, 0)), ("4MiB@5ms", (4 << 20, 5e6)), ("1B@checkpoint", (1, 0))]
)
def test_requests_are_a_size_and_an_interval(typed: str, requests: tuple[int, float]) -> None:
    assert parse_messages(typed) == requests


def test_messages_are_a_size_or_a_profile(tmp_path: Path) -> None:
    assert parse_messages("4KiB@500us") == (4096, 5e5)
    assert parse_messages("4KiB") == (4096, 0)
    assert parse_messages("run.otf2") == (Path("run.otf2"), 0)
    assert parse_messages("run.otf2@100us") == (Path("run.otf2"), 1e5)
    named = tmp_path / "run@100us"
    named.touch()
    assert parse_messages(str(named)) == (named, 0)
    with pytest.raises(UsageError, match="expected a time such as 500us"):
        parse_messages("run.otf2@often")
