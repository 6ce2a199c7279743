# SPDX-License-Identifier: Apache-2.0
"""Quantities are printed with three digits and the unit that makes them shortest."""

from __future__ import annotations

import pytest

from ibprof.text.quantities import format_bytes, format_change, format_seconds, format_with_error, spell_unit


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ns"),
        (2.5e-7, "250 ns"),
        (9.994e-7, "999 ns"),
        (9.996e-7, "1 µs"),
        (5.006e-4, "501 µs"),
        (9.996e-4, "1 ms"),
        (0.01234, "12.3 ms"),
        (0.9996, "1 s"),
        (1.0, "1 s"),
        (4321.0, "4320 s"),
    ],
)
def test_a_time_has_three_digits_and_the_largest_unit_that_it_reaches(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "error_s", "text"),
    [
        (12.34, 0.4, "12.3 +- 0.4 s"),
        (1.2e-3, 3.4e-4, "1.20 +- 0.34 ms"),
        (0.285, 1.2e-5, "285 ms"),
        (0.0, 0.0, "0 ns"),
        (1e-3, 2.0, "0.00 +- 2.00 s"),
        (4320.0, 12.0, "4320 +- 12 s"),
    ],
)
def test_a_time_has_its_error_in_the_same_unit(seconds: float, error_s: float, text: str) -> None:
    assert format_with_error(seconds, error_s) == text


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0 B"), (999, "999 B"), (999.6, "1 kB"), (1_234_567, "1.23 MB"), (-2e9, "-2 GB")]
)
def test_bytes_have_decimal_units(amount: float, text: str) -> None:
    assert format_bytes(amount) == text


@pytest.mark.parametrize(
    ("change", "text"),
    [(0.25, "+25.0%"), (-0.5, "-50.0%"), (0.0, "0.0%"), (-0.0, "0.0%"), (-0.0004, "0.0%"), (0.0004, "0.0%"),
     (-0.0006, "-0.1%"), (12.0, "+1200.0%")],
)  # fmt: skip
def test_a_change_has_a_sign_unless_it_rounds_to_zero(change: float, text: str) -> None:
    assert format_change(change) == text


@pytest.mark.parametrize("copied", ["µs", "\u03bcs", "us"])
def test_a_unit_copied_from_a_report_is_the_typed_one(copied: str) -> None:
    assert spell_unit(copied) == "us"
