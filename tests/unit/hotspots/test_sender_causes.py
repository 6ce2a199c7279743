# SPDX-License-Identifier: Apache-2.0
"""Advice on a loaded link depends on the call that loads it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ibprof_converter.hotspots.link_report import diagnose_traffic
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.traffic_data import Traffic
from ibprof_testing.samples.planted_causes import make_rails

SUBNETS = make_rails("xgft:2:8,8:1,8")
LIDS = find_hosts([SUBNETS[0].fabric]).lid[:, 0]


def between_root_and_all(operation: str, into: bool) -> Traffic:
    """Rank 0 receives from 40 other ranks, or sends to these ranks. Each rank is on a separate host."""
    root, others = np.zeros(40, np.int32), np.arange(1, 41, dtype=np.int32)
    source, destination = (others, root) if into else (root, others)
    nothing = np.zeros(40, np.int32)
    return Traffic(
        rail=nothing,
        source_lid=LIDS[source],
        destination_lid=LIDS[destination],
        bytes=np.full(40, 1_000_000, np.uint64),
        region=nothing,
        operation=nothing,
        source_rank=source,
        destination_rank=destination,
        regions=("*",),
        operations=(operation,),
        on_host_bytes=0,
        unmapped={},
        rail_source="single rail",
        origin="by hand",
        rank_lid=LIDS[:41, np.newaxis],
    )


@pytest.mark.parametrize(
    ("operation", "into", "advice"),
    [
        ("GATHERV", True, "MPI_Gatherv: use more roots"),
        ("IGATHER", True, "MPI_Igather: use more roots"),
        ("REDUCE", True, "MPI_Reduce: reduce along a tree"),
        ("ALLTOALLV", True, "MPI_Alltoallv: let all ranks receive about the same number of bytes"),
        ("ISEND", True, "MPI_Isend: use more ranks that receive"),
        ("RSEND", True, "MPI_Rsend: use more ranks that receive"),
        ("SCATTERV", False, "MPI_Scatterv: use more roots"),
        ("IBCAST", False, "MPI_Ibcast: broadcast along a tree"),
        ("SEND", False, "MPI_Send: use more ranks that send"),
    ],
)
def test_advice_is_on_the_call(operation: str, into: bool, advice: str) -> None:
    diagnosis = diagnose_traffic(between_root_and_all(operation, into), SUBNETS)
    assert diagnosis is not None
    first = diagnosis.causes[0]
    assert first.cause == ("many-to-few" if into else "few-to-many")
    assert first.advice.startswith(advice)
    assert first.loaded_by is not None
    assert first.loaded_by.operation == advice.partition(":")[0]


def test_advice_is_general_where_the_call_is_not_known() -> None:
    traffic = between_root_and_all("*", into=True)
    diagnosis = diagnose_traffic(traffic, SUBNETS)
    assert diagnosis is not None
    assert diagnosis.causes[0].advice.startswith("spread the bytes that ")
    scans = replace(traffic, operations=("SCAN",))
    assert diagnose_traffic(scans, SUBNETS).causes[0].advice.startswith("spread the bytes that ")  # type: ignore[union-attr]
