# SPDX-License-Identifier: Apache-2.0
"""OpenSM routes a new random subnet. ibprof's paths in OpenSM's dumps equal ibtracert's paths on the subnet."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from ibprof_converter.routing.spread import Reason, spread, trace
from ibprof_testing.lab.opensm_subnet import run_subnet
from ibprof_testing.samples.fabrics import as_traced, host_lids, load_of_traces, parse_ibtracert, read_subnet

PAIRS = 24


@pytest.mark.parametrize("lmc", [0, 1])
@pytest.mark.parametrize("with_guid2lid", [True, False])
def test_paths_on_a_fresh_subnet(tmp_path: Path, lmc: int, with_guid2lid: bool) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest prints this if the test fails
    with run_subnet(tmp_path, seed, lmc) as ibtracert:
        if not with_guid2lid:
            (tmp_path / "guid2lid").unlink()  # without it, the LMC is inferred from the tables
        subnet = read_subnet(tmp_path / "opensm-subnet.lst")
        assert subnet.warnings == ()
        assert subnet.fabric.port_lmc.max() == lmc
        draw = random.Random(seed)
        bases = host_lids(subnet.fabric).tolist()
        pairs = [draw.sample(bases, 2) for _ in range(PAIRS)]
        lids = [[base + draw.randrange(1 << lmc) for base in pair] for pair in pairs]
        said = "".join(f"$ ibtracert {a} {b}\n{ibtracert(a, b)}# exit 0\n" for a, b in lids)
    walked = list(parse_ibtracert(said))
    assert len(walked) == PAIRS
    for pair in walked:
        path = trace(subnet.routes.network, pair.source_lid, pair.destination_lid)
        assert path.reason is Reason.DELIVERED
        assert tuple(as_traced(subnet.fabric, hop) for hop in path.hops) == pair.hops
    source, destination = np.array(lids).T
    loads = spread(subnet.routes, source, destination, np.ones(PAIRS, np.uint64), np.zeros(PAIRS, np.int64), 1)
    assert (loads.bytes[:, :, 0] == load_of_traces(subnet.fabric, walked).sum(axis=0)).all()
