# SPDX-License-Identifier: Apache-2.0
"""A measurement continues only with as many processes on each host as in the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InconsistentError
from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_lab.latency.measure.delay_store import continue_delays
from ibprof_lab.latency.model.delays import empty_delays

LENGTHS = np.array([0])


@pytest.mark.parametrize(
    ("hosts", "differences"),
    [
        ("aaac", "'b: 0, c: 1', found 'b: 1, c: 0'"),
        ("aabb", "'a: 2, b: 2', found 'a: 3, b: 1'"),
        ("aaabb", "'b: 2', found 'b: 1'"),
    ],
)
def test_a_refusal_names_the_hosts_that_differ(tmp_path: Path, hosts: str, differences: str) -> None:
    path = tmp_path / "delays.nc"
    write_delays(path, empty_delays(tuple("aaab"), LENGTHS))
    with pytest.raises(InconsistentError) as error:
        continue_delays(path, tuple(hosts), (), LENGTHS, {})
    assert str(error.value) == f"{path}: expected processes per host as in this run, {differences}"
    assert continue_delays(path, tuple("baaa"), (), LENGTHS, {}).hosts == tuple("baaa")
