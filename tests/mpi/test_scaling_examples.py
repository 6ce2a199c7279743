# SPDX-License-Identifier: Apache-2.0
"""The scaling model predicts the bytes (#x) that recordings of three kernels have, except for known differences."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ibprof.profile.profile_data import Profile
from ibprof_lab.lab_choices import RANKS
from ibprof_lab.scaling.exchange_fit import WHOLE, RecordedExchange, sum_exchange
from ibprof_lab.scaling.scaling_model import Cluster, linpack, matrix_product, scalar_product
from ibprof_testing.mpi.matrices import load_complete
from ibprof_testing.mpi.mpis import Mpi, find_mpi, run_mpi
from ibprof_testing.paths import ROOT

EXAMPLES = ROOT / "examples" / "scaling"
ANY = Cluster(1e9, 1e9)
SQUARES = (1, 4, 9, 16)

# A broadcast by a binomial tree sends its bytes once to each other rank.
BINOMIAL: dict[str, str | int] = {
    "coll_tuned_use_dynamic_rules": 1,
    "coll_tuned_bcast_algorithm": 6,
    "coll_tuned_reduce_algorithm": 5,
}


@pytest.fixture(scope="module")
def run_example(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int, int], RecordedExchange]:
    """Compile the examples as the docs show, and return a function that records an example on some ranks."""
    mpi: Mpi = find_mpi("system")
    folder = tmp_path_factory.mktemp("scaling")
    for name in ("scalar_product", "cannon", "lu"):
        compiler: list[str | Path] = [mpi.program("mpicc"), "-O2", "-I", ROOT / "csrc" / "include"]
        subprocess.run([*compiler, EXAMPLES / f"{name}.c", "-o", folder / name, "-lm"], check=True)

    def run(name: str, size: int, ranks: int) -> RecordedExchange:
        recording = folder / f"{name}{ranks}.ibprof"
        shutil.rmtree(recording, ignore_errors=True)
        run_mpi(mpi, ranks, [folder / name, str(size)], recording=recording, mca=BINOMIAL)
        profile: Profile = load_complete(recording, ranks)
        return sum_exchange(profile, size, RANKS)

    return run


@pytest.mark.parametrize("ranks", [1, 2, 5, 16])
def test_scalar_product(run_example: Callable[[str, int, int], RecordedExchange], ranks: int) -> None:
    """For w bytes on p ranks, a recording contains (p - 1) w bytes. The model includes the root: p w bytes."""
    measured = run_example("scalar_product", 1000, ranks).bytes_in(WHOLE)
    assert measured == (ranks - 1) * 8
    assert scalar_product(1000, ANY).exact.exchange(ranks) - measured == 8


@pytest.mark.parametrize("ranks", SQUARES)
def test_cannon(run_example: Callable[[str, int, int], RecordedExchange], ranks: int) -> None:
    """The recorded bytes equal the bytes that the model predicts."""
    run = run_example("cannon", 48, ranks)
    assert run.bytes_in("shift") == matrix_product(48, ANY).exact.exchange(ranks)
    assert run.bytes_in("multiply") == 0


@pytest.mark.parametrize("ranks", SQUARES)
def test_lu(run_example: Callable[[str, int, int], RecordedExchange], ranks: int) -> None:
    """The recorded bytes follow from the algorithm. The ratio to Linpack's model is between 0.8 and 2.5."""
    size = 48
    measured = run_example("lu", size, ranks).bytes_in("factorise")
    assert measured == (math.isqrt(ranks) - 1) * (size**2 - 1) * 8
    if ranks > 1:
        assert 0.8 < measured / linpack(size, ANY).exact.exchange(ranks) < 2.5
