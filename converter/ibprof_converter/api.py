# SPDX-License-Identifier: Apache-2.0
"""The functions behind the package's public names: paths and plain values in, results out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike, fspath

from ibprof.profile.profile_data import Profile
from ibprof_converter.analysis import load_pipeline
from ibprof_converter.analysis.fabric_loads import FabricLoads
from ibprof_converter.analysis.load_options import FabricOptions, TrafficOptions
from ibprof_converter.analysis.load_pipeline import Demand
from ibprof_converter.analysis.routed_fabric import RoutedFabric, read_routed_fabric
from ibprof_converter.hotspots.traffic_answer import DIAGNOSED_FLOWS
from ibprof_converter.reports import result_html  # noqa: F401  (registers how notebooks show results)
from ibprof_converter.traffic import traffic_reader
from ibprof_converter.traffic.recorded_traffic import profile_traffic
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic

StrPath = str | PathLike[str]
TrafficSource = StrPath | Profile | RankTraffic | Traffic | PortCounters
"""A path, a pattern (`pattern:all-to-all`), a profile or traffic that was read."""


def read_fabric(
    *names: StrPath,
    tables: Sequence[StrPath] = (),
    host_names: str | None = None,
    level_hosts: str | None = None,
    strict: bool = False,
) -> RoutedFabric:
    """Read a fabric with its forwarding tables.

    Args:
        names: dumps of ibdiagnet, OpenSM or infiniband-diags, folders of them, or names of synthetic fabrics
            (`xgft:2:4,4:1,2`); several are rails.
        tables: files of forwarding tables, one a name; by default those next to the dumps.
        host_names: regular expression that finds the host's name in the description of an adapter.
        level_hosts: regular expression for the names of the CAs that levels are counted from.
        strict: whether forwarding tables that lead to what the dumps lack are an error.

    Raises:
        InputError: a file is not what it should be.
        InconsistentError: two rails are one; with `strict`, the dumps are not whole.
    """
    options = FabricOptions(
        names=tuple(fspath(name) for name in names),
        tables=tuple(fspath(table) for table in tables),
        host_names=re.compile(host_names) if host_names else None,
        level_hosts=re.compile(level_hosts) if level_hosts else None,
        strict=strict,
    )
    return read_routed_fabric(options)


def read_traffic(source: TrafficSource, fabric: RoutedFabric | None = None) -> Demand:
    """Read traffic.

    Args:
        source: a profile, a recording, a table, port counters, or a pattern over all hosts of the fabric; what was
            read already is returned as it is.
        fabric: that patterns and LIDs refer to.

    Returns:
        Bytes between ranks, between LIDs, or as counted at ports.

    Raises:
        InputError: the file is not there, or not what it should be.
        UsageError: there is no such pattern, or a pattern without a fabric.
    """
    if isinstance(source, Profile):
        return profile_traffic(source)
    if not isinstance(source, str | PathLike):
        return source
    hosts = fabric.hosts if fabric else None
    return traffic_reader.read_traffic(fspath(source), hosts, fabric.fabrics if fabric else ())


def load_links(
    fabric: RoutedFabric,
    *traffic: TrafficSource,
    placement: str | Sequence[str] = (),
    rails: str | None = None,
    by: Sequence[str] = (),
    counters: Sequence[StrPath] = (),
    adaptive: bool = False,
    strict: bool = False,
) -> FabricLoads:
    """Put traffic on the links of a fabric.

    Args:
        fabric: of `read_fabric`.
        traffic: paths, patterns, profiles or traffic that was read; several are jobs that share the fabric.
        placement: where the ranks are, whatever was recorded: a rule such as `packed`, or a file; one a job.
        rails: policy for bytes whose rail was not measured: `split`, `round-robin`, ...
        by: what to distinguish, of `region` and `operation`.
        counters: port counters to compare the loads with: one file, or two, before and after.
        adaptive: whether to add bounds of adaptive routing.
        strict: whether bytes that cannot be routed are an error.

    Returns:
        The bytes of each link direction, with their coverage: what was not seen, what is modelled, what was not routed.

    Raises:
        InputError: a file is not what it should be.
        UsageError: the options do not fit the traffic.
        InconsistentError: with `strict`, bytes cannot be routed.
    """
    options = TrafficOptions(
        names=tuple(_name_source(each) for each in traffic),
        placements=(placement,) if isinstance(placement, str) else tuple(placement),
        rails=rails,
        by=tuple(by),
        counters=tuple(fspath(file) for file in counters),
        adaptive=adaptive,
        strict=strict,
        flows_limit=DIAGNOSED_FLOWS,
    )
    if all(isinstance(each, str | PathLike) for each in traffic):
        return load_pipeline.load_traffic(fabric, options)
    return load_pipeline.load_demands(fabric, [read_traffic(each, fabric) for each in traffic], options)


def _name_source(source: TrafficSource) -> str:
    if isinstance(source, str | PathLike):
        return fspath(source)
    return source.name if isinstance(source, Profile) else source.origin
