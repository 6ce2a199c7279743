# SPDX-License-Identifier: Apache-2.0
"""Write metrics of a time span as OpenMetrics text, for Prometheus or node_exporter's textfile collector.

The number of series is bounded. `ibprof_job_*` metrics have a series for each of the largest jobs. `ibprof_link_*`
metrics have series for at most `JOBS_A_LINK` jobs on each of the most loaded link directions, and `other` for the sum
of further jobs. `ibprof_host_*` metrics have a series for each of the `HOSTS` hosts whose ranks are most often late.
The label of a job is `job_id`, because Prometheus itself sets a label `job`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

from ibprof_converter.site.site_queries import Rows, SiteQueries

DASHBOARD = Path(__file__).with_name("grafana-dashboard.json")
"""Grafana dashboard; its data source is the variable `datasource`."""

JOBS_A_LINK = 5
HOSTS = 50

_JOB = ("job_id", "step", "user", "partition", "name")
_LONGEST_LABEL = 128
"""Largest number of characters in a label's value; longer values are cut."""

_JOB_METRICS = {
    "ibprof_job_nodes": ("nodes", "Nodes of the job."),
    "ibprof_job_run_seconds": ("run_s", "Time until the last rank ended."),
    "ibprof_job_mpi_seconds": ("mpi_s", "Time inside MPI calls, mean over ranks."),
    "ibprof_job_wait_seconds": (
        "wait_s",
        "Time that ranks waited for other ranks inside MPI calls, mean over ranks.",
    ),
    "ibprof_job_transfer_seconds": (
        "transfer_s",
        "Time of transfer inside MPI calls, mean over ranks.",
    ),
    "ibprof_job_line_rate_seconds": ("line_rate_s", "Time of the most loaded link direction at line rate."),
    "ibprof_job_sent_bytes": ("bytes", "Bytes that MPI calls sent."),
    "ibprof_job_placement_gain_node_seconds": (
        "gain_node_s",
        "Node seconds that another rank placement is predicted to save.",
    ),
}

_UNITS = ("bytes", "seconds", "bytes_per_second")


def format_metrics(site: SiteQueries, first: datetime, until: datetime, jobs: int, links: int) -> str:
    """Return the metrics of the jobs between two times.

    Args:
        first, until: the two times, UTC.
        jobs: number of jobs with most node hours.
        links: number of most loaded link directions.
    """
    job_rows, link_rows = site.measure(first, until, jobs, links, JOBS_A_LINK)
    lines = list(_format_jobs(job_rows))
    name = "ibprof_link_load_bytes_per_second"
    help_ = "Mean load that a job of the store put on the link direction."
    labels = ("rail", "sender", "receiver", "job_id", "user")
    lines += _format_family(name, help_, ((_choose(row, labels), row["per_s"]) for row in link_rows))
    hosts = site.find_slow_hosts(top=HOSTS)
    for name, column, help_ in (
        ("ibprof_host_jobs", "jobs", "Jobs that ran on the host, of all jobs in the store."),
        ("ibprof_host_late_jobs", "late_jobs", "Jobs with a late rank on the host."),
    ):
        lines += _format_family(name, help_, ((_choose(row, ("host",)), row[column]) for row in hosts))
    return "".join(f"{line}\n" for line in (*lines, "# EOF"))


def _format_jobs(rows: Rows) -> Iterator[str]:
    for name, (column, help_) in _JOB_METRICS.items():
        yield from _format_family(name, help_, ((_choose(row, _JOB), row[column]) for row in rows))
    verdicts = ((_choose(row, (*_JOB, "verdict", "cause")), 1) for row in rows)
    yield from _format_family("ibprof_job_info", "The verdict on the job.", verdicts)


def _choose(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    return {name: "" if row[name] is None else str(row[name])[:_LONGEST_LABEL] for name in names}


def _format_family(name: str, help_: str, values: Iterable[tuple[dict[str, str], Any]]) -> Iterator[str]:
    """Yield the lines of a family of gauges. Values with equal labels are added, because each series must be unique."""
    sums: dict[str, Any] = {}
    for labels, value in values:
        if value is not None and isfinite(value):
            text = ",".join(f'{label}="{_escape(each)}"' for label, each in labels.items())
            sums[text] = sums.get(text, 0) + value if name != "ibprof_job_info" else 1
    if sums:
        yield f"# TYPE {name} gauge"
        if unit := next((each for each in reversed(_UNITS) if name.endswith(f"_{each}")), ""):
            yield f"# UNIT {name} {unit}"
        yield f"# HELP {name} {help_}"
        yield from (f"{name}{{{text}}} {value:.17g}" for text, value in sums.items())


def _escape(text: str) -> str:
    """Escape the value of a label for OpenMetrics."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
