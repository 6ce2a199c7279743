# SPDX-License-Identifier: Apache-2.0
"""From the same files, ClickHouse (for sites with much data) and `ibprof-site` compute the same answers."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ibprof_converter.site.fabric_days import list_tables
from ibprof_converter.site.job_store import JobStore
from ibprof_converter.site.site_queries import SiteQueries
from ibprof_converter.site.synthetic_jobs import make_store
from ibprof_testing import processes
from ibprof_testing.machine import MissingError
from ibprof_testing.paths import ROOT

FIRST = date(2026, 3, 1)
DAYS = 3
MOMENT = datetime(2026, 3, 2, 12)
TOP = 10
CLICKHOUSE = ROOT / ".venv-clickhouse" / "bin" / "python"
ASK = """
import json, sys
import chdb
print(json.dumps([json.loads(str(chdb.query(each, "JSONCompact")))["data"] for each in json.loads(sys.argv[1])]))
"""

NAMED = "concat(d.name, ' port ', toString(d.port))"
LOADS = "(SELECT *, link, amount FROM {jobs} ARRAY JOIN links AS link, link_bytes AS amount)"
QUESTIONS = {
    "average": f"""
        SELECT {NAMED} AS sender, sum(l.amount) / {DAYS} AS a_day
        FROM {LOADS} AS l JOIN {{links}} AS d ON l.fabric = d.fabric AND l.link = d.link
        GROUP BY d.rail, d.guid, d.port, d.name ORDER BY a_day DESC, d.rail, d.guid, d.port LIMIT {TOP}""",
    "load": f"""
        WITH toDateTime64('{MOMENT}', 6) AS moment,
            (toUnixTimestamp64Micro(ended) - toUnixTimestamp64Micro(began)) / 1e6 AS lasted,
            (toUnixTimestamp64Micro(moment) - toUnixTimestamp64Micro(began)) / 1e6 AS at,
            arraySum(each -> ifNull(each, 0), bin_bytes) AS binned,
            if(bin_s > 0 AND binned > 0 AND at < bin_s * length(bin_bytes),
               bin_bytes[1 + toUInt32(floor(at / bin_s))] / binned / bin_s, 1 / lasted) AS part,
            sent AS (SELECT fabric, part, link, bytes FROM {{jobs}} ARRAY JOIN links AS link, link_bytes AS bytes
                     WHERE began <= moment AND ended > moment)
        SELECT {NAMED} AS sender, sum(s.bytes * s.part) AS rate
        FROM sent AS s JOIN {{links}} AS d ON s.fabric = d.fabric AND s.link = d.link
        GROUP BY d.rail, d.guid, d.port, d.name ORDER BY rate DESC, d.rail, d.guid, d.port LIMIT {TOP}""",
    "shared": f"""
        SELECT l.key, count(), sum(l.amount) AS sent
        FROM {LOADS} AS l CROSS JOIN (SELECT key, began, ended, links FROM {{jobs}} WHERE job = '{{job}}') AS mine
        WHERE l.key != mine.key AND l.began < mine.ended AND l.ended > mine.began AND has(mine.links, l.link)
        GROUP BY l.key ORDER BY sent DESC, l.key LIMIT {TOP}""",
    "gains": f"""
        SELECT key, nodes * placement_gain_s / 3600 AS node_hours FROM {{jobs}} WHERE placement_gain_s > 0
        ORDER BY node_hours DESC, key LIMIT {TOP}""",
    "slow-hosts": """
        SELECT host, count(), countIf(arrayExists(each -> each.host = host, late))
        FROM (SELECT late, arrayJoin(arrayDistinct(hosts)) AS host FROM {jobs}) GROUP BY host ORDER BY host""",
    "jobs": f"SELECT key FROM {{jobs}} WHERE user = 'user7' ORDER BY began DESC, key LIMIT {TOP}",
}


def ask_clickhouse(folder: Path, job: str) -> dict[str, list[list[Any]]]:
    if not CLICKHOUSE.exists():
        raise MissingError(f"no ClickHouse in {CLICKHOUSE.parents[1]}: run `make test-full`")
    (links,) = list_tables(folder)
    tables = {"jobs": f"file('{folder}/jobs/*.parquet')", "links": f"file('{links}')"}
    texts = [text.format(**tables, job=job) for text in QUESTIONS.values()]
    done = processes.run([CLICKHOUSE, "-c", ASK, json.dumps(texts)], env={"TZ": "UTC"}, timeout=300)
    assert done.returncode == 0, done.stderr
    return dict(zip(QUESTIONS, json.loads(done.stdout), strict=True))


@pytest.mark.full
def test_answers_are_those_of_clickhouse(tmp_path: Path) -> None:
    make_store(tmp_path / "store", FIRST, DAYS, 1000, links=50)
    site = SiteQueries(JobStore(tmp_path / "store"))
    job = str((FIRST + timedelta(days=1)).toordinal() * 10**5)
    loads = {row["sender"]: row["total_per_s"] for row in site.load_at(MOMENT, None, TOP)}
    hosts = sorted(site.find_slow_hosts(top=10**6), key=lambda row: row["host"])
    expected: dict[str, list[tuple[Any, ...]]] = {
        "average": [(row["sender"], row["bytes_a_day"]) for row in site.average_day(top=TOP)],
        "load": list(loads.items()),
        "shared": [(row["key"], row["links"], row["bytes"]) for row in site.shared_with(job, TOP)],
        "gains": [(row["key"], row["node_hours"]) for row in site.find_gains(top=TOP)],
        "slow-hosts": [(row["host"], row["jobs"], row["late_jobs"]) for row in hosts],
        "jobs": [(row["key"],) for row in site.list_jobs("user7", top=TOP)],
    }
    found = ask_clickhouse(tmp_path / "store", job)
    for question, rows in expected.items():
        assert len(rows) > 1
        for row, other in zip(rows, found[question], strict=True):
            for value, same in zip(row, other, strict=True):
                number = type(value)(same)  # ClickHouse prints 64-bit integers as text
                assert number == (value if isinstance(value, str) else pytest.approx(value, rel=1e-12))
