# SPDX-License-Identifier: Apache-2.0
"""Commands that a report advises, with the files that it was asked about: ready to be typed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from ibprof_converter.analysis.load_options import FabricOptions, TrafficOptions
from ibprof_converter.reports.job_report import JobReport
from ibprof_converter.traffic.adapter_policies import NEAR

_PLACE = "ibprof-place LST... TRAFFIC"
_ONE_FABRIC = " LST -o "


def name_files(report: JobReport, fabric: FabricOptions | None, traffic: TrafficOptions) -> JobReport:
    """Return a report whose `change` of causes names the files, and the options that say how they are read.

    Args:
        report: with `LST...` and `TRAFFIC` in commands.
        fabric, traffic: that it is on.
    """
    diagnosis = report.links.diagnosis if report.links else None
    if fabric is None or diagnosis is None or report.links is None:
        return report
    place = shlex.join(["ibprof-place", *fabric.names, *traffic.names, *_options(fabric, traffic)])
    one = f" {shlex.quote(fabric.names[0])} -o " if len(fabric.names) == 1 else _ONE_FABRIC
    causes = tuple(
        replace(cause, change=cause.change.replace(_PLACE, place).replace(_ONE_FABRIC, one))
        for cause in diagnosis.causes
    )
    return replace(report, links=replace(report.links, diagnosis=replace(diagnosis, causes=causes)))


def _options(fabric: FabricOptions, traffic: TrafficOptions) -> Iterator[str]:
    """Yield options that `ibprof-place` shares with a report, with their values."""
    if fabric.tables:
        yield from ("--fdbs", *fabric.tables)
    options = {
        "--node-name-map": fabric.name_map,
        "--host-names": fabric.host_names.pattern if fabric.host_names else None,
        "--routes": fabric.routes,
        "--placement": traffic.placements[0] if traffic.placements else None,
        "--rails": traffic.rails,
        "--nic": None if traffic.nic == NEAR else traffic.nic,  # ranks that are placed anew have no cores yet
    }
    for option, value in options.items():
        if value is not None:
            yield from (option, value)
    if traffic.adaptive:
        yield "--adaptive"
