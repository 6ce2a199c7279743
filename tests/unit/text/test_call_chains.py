# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from ibprof.text.call_chains import shorten_site

LONG = "a" * 40


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("solver.c:212", "solver.c:212"),
        ("x" * 100, "x" * 100),
        ("lib.c:3 < halo.c:20 < solver.c:212", "lib.c:3 < halo.c:20 < solver.c:212"),
        (f"l.c:3 < {LONG} < {LONG} < halo.c:20 < main.c:2", f"l.c:3 < ... < {LONG} < halo.c:20 < main.c:2"),
        (f"{LONG} < {LONG}", f"{LONG} < {LONG}"),
        (f"{LONG} < {LONG} < {LONG}", f"{LONG} < ... < {LONG}"),
        (f"lib.c:3 < halo.c:20 < {LONG}{LONG}", f"lib.c:3 < ... < {LONG}{LONG}"),
    ],
)
def test_callers_in_the_middle_are_left_out(name: str, shown: str) -> None:
    assert shorten_site(name) == shown
