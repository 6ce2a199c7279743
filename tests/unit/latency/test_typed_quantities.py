# SPDX-License-Identifier: Apache-2.0
"""Times, fractions and message lengths are read as users type them. Invalid text is refused."""

from __future__ import annotations

import pytest

from ibprof.errors import UsageError
from ibprof_lab.latency.model.typed_quantities import parse_budget, parse_duration, parse_length


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [
        ("500us", 5e-4),
        ("500 µs", 5e-4),
        ("1ms", 1e-3),
        ("30s", 30),
        ("90", 90),
        ("10m", 600),
        ("1.5 min", 90),
        (" 2h", 7200),
    ],
)
def test_times_are_in_seconds(typed: str, seconds: float) -> None:
    assert parse_duration(typed) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "typed", ["", "s", "us", "0s", "1e300s", "-1s", "nans", "infs", "1e9s", "5 days", "5S", "1:30"]
)
def test_what_is_no_time_is_refused(typed: str) -> None:
    with pytest.raises(UsageError, match="expected a time such as 500us, 1ms, 30s, 10m or 2h, found"):
        parse_duration(typed)


@pytest.mark.parametrize(
    ("typed", "budget"),
    [("5%", (0.05, None)), ("0.2", (0.2, None)), ("0", (0, None)), ("30s", (0, 30)), ("2h", (0, 7200))],
)
def test_a_budget_is_a_share_or_a_time(typed: str, budget: tuple[float, float | None]) -> None:
    assert parse_budget(typed) == pytest.approx(budget)


@pytest.mark.parametrize(
    ("typed", "said"), [("101%", "a share such as 5% or"), ("x", "a share such as 5% or"), ("-1s", "a time such as")]
)
def test_what_is_no_budget_is_refused(typed: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"expected {said}"):
        parse_budget(typed)


@pytest.mark.parametrize(("typed", "length"), [("0", 0), ("64", 64), ("4K", 4096), ("1mib", 1 << 20)])
def test_a_length_is_in_bytes(typed: str, length: int) -> None:
    assert parse_length(typed) == length


@pytest.mark.parametrize("typed", ["", "-1", "4X", "0,64", "1K:4K", "2G"])
def test_what_is_no_length_is_refused(typed: str) -> None:
    with pytest.raises(UsageError, match=f"expected bytes such as 64, 4K or 1M up to 2147483647, found '{typed}'"):
        parse_length(typed)
