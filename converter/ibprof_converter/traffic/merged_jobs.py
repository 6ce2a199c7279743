# SPDX-License-Identifier: Apache-2.0
"""Several jobs on one network, merged into one traffic that keeps them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ibprof_converter.traffic.traffic_data import NO_LID, NO_RANK, Traffic, join_parts


def merge_jobs(names: Sequence[str], traffics: Sequence[Traffic]) -> Traffic:
    """Merge the traffic of several jobs; flows and ranks keep their job.

    Args:
        names: of the jobs; equal names get numbers.
        traffics: one per job, on the same rails.
    """
    if len(traffics) == 1:
        return traffics[0]
    jobs = _distinct_names(names)
    first = np.concatenate([[0], np.cumsum([len(traffic.rank_lid) for traffic in traffics])]).tolist()
    regions, region = _merge_names([(traffic.regions, traffic.region) for traffic in traffics])
    operations, operation = _merge_names([(traffic.operations, traffic.operation) for traffic in traffics])
    sites, site = _merge_names([(traffic.sites, _sites_of_flows(traffic)) for traffic in traffics])
    unmapped: dict[str, int] = {}
    for traffic in traffics:
        for reason, amount in traffic.unmapped.items():
            unmapped[reason] = unmapped.get(reason, 0) + amount
    notes = [f"job {job}: {note}" for job, traffic in zip(jobs, traffics, strict=True) for note in traffic.notes]
    if shared := _count_shared_ports(traffics):
        notes.append(f"{shared} port(s) are used by more than one job")

    def ranks(name: str) -> npt.NDArray[np.int32]:
        columns = [getattr(traffic, name) for traffic in traffics]
        moved = [
            np.where(column == NO_RANK, NO_RANK, column + base) for column, base in zip(columns, first, strict=False)
        ]
        return np.concatenate(moved).astype(np.int32)

    return replace(
        join_parts(traffics),
        region=region,
        operation=operation,
        site=site if len(sites) > 1 else np.zeros(0, np.int32),
        sites=sites,
        source_rank=ranks("source_rank"),
        destination_rank=ranks("destination_rank"),
        regions=regions,
        operations=operations,
        on_host_bytes=sum(traffic.on_host_bytes for traffic in traffics),
        unmapped=unmapped,
        rail_source="; ".join(dict.fromkeys(traffic.rail_source for traffic in traffics)),
        nic="; ".join(dict.fromkeys(traffic.nic for traffic in traffics if traffic.nic)) or None,
        origin="; ".join(f"job {job}: {traffic.origin}" for job, traffic in zip(jobs, traffics, strict=True)),
        layer=" and ".join(dict.fromkeys(traffic.layer for traffic in traffics if traffic.layer)),
        rank_lid=np.concatenate([traffic.rank_lid for traffic in traffics]),
        notes=tuple(notes),
        moved=any(traffic.moved for traffic in traffics),
        job=np.repeat(np.arange(len(traffics), dtype=np.int32), [len(traffic.bytes) for traffic in traffics]),
        jobs=jobs,
        first_rank=tuple(first[:-1]),
    )


def _distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return a distinct name for each job: with its number where another has the same name."""
    return tuple(name if names.count(name) == 1 else f"{name}#{number}" for number, name in enumerate(names))


def _merge_names(
    parts: Sequence[tuple[tuple[str, ...], npt.NDArray[np.int32]]],
) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Return all names once, and for each flow the index of its name."""
    merged = tuple(dict.fromkeys(name for names, _ in parts for name in names))
    number = {name: index for index, name in enumerate(merged)}
    columns = [np.array([number[name] for name in names], np.int32)[index] for names, index in parts]
    return merged, np.concatenate(columns).astype(np.int32)


def _sites_of_flows(traffic: Traffic) -> npt.NDArray[np.int32]:
    """Return the site of each flow, also where there is only one."""
    return traffic.site if len(traffic.sites) > 1 else np.zeros(len(traffic.bytes), np.int32)


def _count_shared_ports(traffics: Sequence[Traffic]) -> int:
    """Return the number of ports, by rail and LID, that ranks of several jobs use."""
    used: dict[tuple[int, int], int] = {}
    for traffic in traffics:
        for rail in range(traffic.rank_lid.shape[1]):
            for lid in np.unique(traffic.rank_lid[:, rail]).tolist():
                if lid != NO_LID:
                    used[rail, lid] = used.get((rail, lid), 0) + 1
    return sum(count > 1 for count in used.values())
