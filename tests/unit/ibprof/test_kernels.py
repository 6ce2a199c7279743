# SPDX-License-Identifier: Apache-2.0
"""Python finds libibprof_kernels.so. The library's smaller functions return the expected values."""

from __future__ import annotations

import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibprof.errors import MissingToolError
from ibprof.native import installed_files as installed
from ibprof.native.libraries import load_kernels, sum_exactly


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=70))
def test_sums_are_those_of_unbounded_integers(values: list[int]) -> None:
    assert sum_exactly(np.array(values, np.uint64)) == sum(values)


def test_sums_do_not_depend_on_how_values_lie_in_memory() -> None:
    values = np.arange(1000, dtype=np.uint64)
    assert sum_exactly(values[::-3]) == sum(values[::-3].tolist())
    assert sum_exactly(np.broadcast_to(np.uint64(1 << 63), 6)) == 6 << 63


def test_a_pointer_to_scattered_elements_is_refused() -> None:
    with pytest.raises(ValueError, match="C-contiguous"):
        load_kernels().pointer(np.zeros(8)[::2])


def test_a_checkout_that_was_not_built_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installed, "files", lambda _: tmp_path)
    with pytest.raises(MissingToolError, match="was not built"):
        load_kernels.__wrapped__()


def test_only_what_the_header_declares_is_exported() -> None:
    library = Path(str(files("ibprof") / "lib" / "libibprof_kernels.so"))
    shown = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    exported = {line.split()[2] for line in shown.stdout.splitlines()}
    kernels = load_kernels()
    declared = {name for name in dir(kernels.lib) if callable(getattr(kernels.lib, name))}
    assert exported == declared
