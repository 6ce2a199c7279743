# SPDX-License-Identifier: Apache-2.0
"""Queries over all jobs find planted results, agree with another engine, and treat names as text."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from shutil import copytree
from time import process_time

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import ibprof_converter
from ibprof.archive.otf2_archive import write_archive
from ibprof_converter.cli.site import main
from ibprof_converter.site.fabric_days import list_fabrics, list_tables
from ibprof_converter.site.job_store import JobStore
from ibprof_converter.site.job_summary import parse_lines
from ibprof_converter.site.site_queries import SiteQueries, correlate
from ibprof_converter.site.synthetic_jobs import FABRIC, SLOW_HOST, make_day, make_store
from ibprof_testing.samples.fabrics import FABRICS
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

FIRST = date(2026, 3, 1)
LST = FABRICS / "testbed44" / "ibdiagnet.lst"
HOSTILE = "it's </script><script>alert(1)</script>\n\"; DROP VIEW jobs; --\x1b[2J"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site") / "st'ore"
    assert make_store(made, FIRST, 3, 400, links=50).added == 1200
    return made


@pytest.fixture(scope="module")
def site(folder: Path) -> SiteQueries:
    return SiteQueries(JobStore(folder))


@pytest.fixture(scope="module")
def frames(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the store's files with Polars: return jobs, and a row for each job and link direction."""
    jobs = pl.read_parquet(sorted((folder / "jobs").glob("*.parquet")))
    links = jobs.select("key", "job", "user", "began", "ended", "fabric", "links", "link_bytes", "bin_s", "bin_bytes")
    return jobs, links.explode("links", "link_bytes").rename({"links": "link"})


def test_the_average_day_is_that_of_polars(site: SiteQueries, folder: Path, frames: tuple[pl.DataFrame, ...]) -> None:
    directions = pl.read_parquet(list_tables(folder))
    expected = (
        frames[1]
        .join(directions, on=["fabric", "link"])
        .group_by("rail", "guid", "port", "name", "peer")
        .agg(pl.col("link_bytes").sum() / 3, pl.len() / 3)
        .sort("link_bytes", descending=True)
        .head(10)
    )
    found = site.average_day(top=10)
    assert [row["sender"] for row in found] == [f"{row['name']} port {row['port']}" for row in expected.to_dicts()]
    assert [row["bytes_a_day"] for row in found] == pytest.approx(expected["link_bytes"].to_list(), rel=1e-12)
    assert [row["jobs_a_day"] for row in found] == pytest.approx(expected["len"].to_list())


@pytest.mark.parametrize("hour", [0.5, 12.0, 23.9])
def test_the_load_at_a_moment_is_that_of_polars(
    site: SiteQueries, frames: tuple[pl.DataFrame, ...], hour: float
) -> None:
    moment = datetime(2026, 3, 2) + timedelta(hours=hour)
    rate: dict[int, float] = {}
    for row in frames[1].filter((pl.col("began") <= moment) & (pl.col("ended") > moment)).to_dicts():
        part = 1 / (row["ended"] - row["began"]).total_seconds()
        if row["bin_s"]:
            number = int((moment - row["began"]).total_seconds() // row["bin_s"])
            part = row["bin_bytes"][number] / sum(row["bin_bytes"]) / row["bin_s"]
        rate[row["link"]] = rate.get(row["link"], 0) + row["link_bytes"] * part
    expected = sorted(rate.values(), reverse=True)[:5]
    found = site.load_at(moment, None, 5)
    totals = list(dict.fromkeys(row["total_per_s"] for row in found))
    assert totals == pytest.approx(expected, rel=1e-9)
    by_job: dict[str, float] = {}
    for row in found:
        by_job[row["sender"] + row["receiver"]] = by_job.get(row["sender"] + row["receiver"], 0) + row["bytes_per_s"]
    assert list(by_job.values()) == pytest.approx(expected, rel=1e-9)


def test_jobs_that_shared_links_are_those_of_polars(site: SiteQueries, frames: tuple[pl.DataFrame, ...]) -> None:
    jobs, links = frames
    job = jobs.sort("run_s", "key").row(-1, named=True)
    expected = (
        links.filter(
            (pl.col("began") < job["ended"]) & (pl.col("ended") > job["began"]) & (pl.col("key") != job["key"])
        )
        .filter(pl.col("link").is_in(job["links"]))
        .group_by("key")
        .agg(pl.len().alias("links"), pl.col("link_bytes").sum().alias("bytes"))
        .sort(["bytes", "key"], descending=[True, False])
    )
    found = site.shared_with(job["key"], 1000)
    assert len(found) > 1
    assert [(row["key"], row["links"], row["bytes"]) for row in found] == expected.rows()
    assert all(max(row["since"], job["began"]) == row["since"] < row["until"] <= job["ended"] for row in found)


def test_jobs_on_all_links_share_them(tmp_path: Path, folder: Path) -> None:
    """The query must not compare all pairs of links of all jobs, which would take minutes."""
    store = JobStore(Path(copytree(folder, tmp_path / "copy", ignore=lambda *_: {"jobs", "sums"})), make=True)
    store.path_of(FIRST).parent.mkdir()
    links = pq.read_table(list_tables(folder)[0])
    job = {"ranks": 1, "nodes": 1, "bytes": len(links), "fabric": links["fabric"][0].as_py()}
    job |= {"links": links["link"].to_pylist(), "link_bytes": [1] * len(links)}
    spans = [("500_1", 1, "11", "13"), ("500_2", 3, "11", "13"), ("50", 1, "11", "13"), ("5000_1", 2, "11", "13")]
    spans += [(f"w{number}", day, "12", "14") for number in range(15) for day in (1, 2, 3)]
    lines = [
        job
        | {"key": f"{number:016x}", "job": name}
        | {"began": f"2026-03-0{day}T{begin}:00:00", "ended": f"2026-03-0{day}T{end}:00:00"}
        for number, (name, day, begin, end) in enumerate(spans)
    ]
    for table in parse_lines(tmp_path, [json.dumps(line).encode() + b"\n" for line in lines], 1):
        store.add(table)
    started = process_time()
    found = SiteQueries(store).shared_with("500", 1000)
    assert process_time() - started < 10
    names = [row["job"] for row in found]
    assert sorted(names) == sorted(["50", *(f"w{number}" for number in range(15) for _ in (1, 3))])
    assert {(row["links"], row["bytes"], row["own_bytes"]) for row in found} == {(len(links),) * 3}


def test_the_planted_victim_waits_while_the_planted_aggressor_sends(site: SiteQueries) -> None:
    victim = str((FIRST + timedelta(days=1)).toordinal() * 10**5)
    first, *others = site.compare_waiting(victim, 5)
    assert first["job"] == str(int(victim) + 1)
    assert first["low"] > 0.6
    assert all(row["low"] < 0.6 for row in others)


def test_the_planted_slow_host_is_late_most_often(site: SiteQueries, frames: tuple[pl.DataFrame, ...]) -> None:
    first, second = site.find_slow_hosts(top=2)
    assert first["host"] == f"host{SLOW_HOST + 1:03d}"
    assert first["low"] > second["high"]
    assert all(0 <= row["low"] < row["high"] <= 1 for row in site.find_slow_hosts(top=1000))
    rows = frames[0].filter(pl.col("hosts").list.contains(first["host"]))
    assert first["jobs"] == len(rows)
    late = [row["late"] for row in rows.to_dicts()]
    assert first["late_jobs"] == sum(any(each["host"] == first["host"] for each in row or ()) for row in late)


def test_gains_are_sorted_by_node_hours(site: SiteQueries, frames: tuple[pl.DataFrame, ...]) -> None:
    hours = (frames[0]["nodes"] * frames[0]["placement_gain_s"] / 3600).sort(descending=True).head(10).to_list()
    assert [row["node_hours"] for row in site.find_gains(top=10)] == pytest.approx(hours)
    assert site.find_gains(date(2027, 1, 1)) == []


def test_counters_are_explained_by_the_part_of_each_run_between_them(
    site: SiteQueries, folder: Path, frames: tuple[pl.DataFrame, ...]
) -> None:
    first, until = datetime(2026, 3, 2, 6), datetime(2026, 3, 2, 9)
    directions = pq.read_table(list_tables(folder)[0]).to_pylist()
    sent = np.zeros(len(directions))
    for row in frames[1].filter((pl.col("began") < until) & (pl.col("ended") > first)).to_dicts():
        overlap = min(row["ended"], until) - max(row["began"], first)
        sent[row["link"]] += row["link_bytes"] * (overlap / (row["ended"] - row["began"]))
    counted = {(row["guid"], row["port"]): round(sent[row["link"]]) for row in directions}
    counted[directions[77]["guid"], directions[77]["port"]] += 10**12
    answer = site.explain_counters(counted, first, until, len(counted))
    assert answer[0]["sender"] == f"{directions[77]['name']} port {directions[77]['port']}"
    assert [row["unexplained"] for row in answer] == pytest.approx([10**12] + [0] * (len(answer) - 1), abs=2)


def test_jobs_of_the_demo_are_on_the_links_of_their_routes(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    make_store(folder, FIRST, 1, 20)
    directions = pq.read_table(list_tables(folder)[0]).to_pylist()
    rows = sorted(JobStore(folder).read_day(FIRST).to_pylist(), key=lambda row: (len(row["pair_bytes"]), row["key"]))
    for row in (rows[0], rows[len(rows) // 2], rows[-1]):
        lines = zip(row["pair_source"], row["pair_destination"], row["pair_bytes"], strict=True)
        table = tmp_path / "pairs.csv"
        table.write_text("src_lid,dst_lid,bytes\n" + "".join(f"{one},{other},{sent}\n" for one, other, sent in lines))
        loads = ibprof_converter.load_links(ibprof_converter.read_fabric(FABRIC), table)
        expected: dict[object, object] = {}
        for each in loads.rows(only_used=True):
            expected |= {(each[f"{end}_guid"], each[f"{end}_port"]): each[f"{end}_bytes"] for end in "ab"}
        ends = [(directions[link]["guid"], directions[link]["port"]) for link in row["links"]]
        assert dict(zip(ends, row["link_bytes"], strict=True)) == {end: sent for end, sent in expected.items() if sent}
        assert row["bytes"] == sum(row["pair_bytes"])


def test_sums_are_made_again_where_a_day_changed(tmp_path: Path, folder: Path) -> None:
    copytree(folder, tmp_path / "copy")
    store = JobStore(tmp_path / "copy")
    before = SiteQueries(store).average_day(top=1)[0]["bytes_a_day"]
    fabric = list_fabrics(store.folder)[0][1].name[11:27]
    for table in make_day(store, fabric, FIRST + timedelta(days=3), 400, 50):
        store.add(table)
    site = SiteQueries(store)
    assert site.average_day(last=FIRST + timedelta(days=2), top=1)[0]["bytes_a_day"] == before
    assert sum(row["jobs"] for row in site.find_slow_hosts(top=10**6)) == sum(map(len, hosts_of(store)))


def hosts_of(store: JobStore) -> list[list[str]]:
    return [hosts for day in store.days() for hosts in store.read_day(day)["hosts"].to_pylist()]


def test_a_store_that_cannot_be_written_answers_the_same(tmp_path: Path, site: SiteQueries, folder: Path) -> None:
    copytree(folder, tmp_path / "copy", ignore=lambda _, names: {"sums"} & set(names))
    (tmp_path / "copy" / "sums").write_text("no folder")
    copy = SiteQueries(JobStore(tmp_path / "copy"))
    assert copy.average_day(top=5) == site.average_day(top=5)


def test_a_correlation_has_an_interval_that_dependent_neighbours_widen() -> None:
    random = np.random.default_rng(1)
    one = random.normal(size=400)
    independent = correlate(one, random.normal(size=400))
    assert independent is not None
    assert independent[1] < 0 < independent[2]
    slow = correlate(np.cumsum(one), np.cumsum(random.normal(size=400)))
    assert slow is None or slow[2] - slow[1] > 3 * (independent[2] - independent[1])
    assert correlate(one[:7], one[:7]) is None
    assert correlate(np.ones(20), one[:20]) is None


def test_a_profile_has_the_loads_of_its_fabric_once_in_any_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fabric = ibprof_converter.read_fabric(LST)
    names = fabric.hosts.name[:4]
    start = 1_772_500_000 * 10**9
    ranks = [replace(make_rank(rank, rank), start_ns=start, stop_ns=start + 10**10) for rank in range(4)]
    sent = [Count(one, other, 10**9 + one) for one in range(4) for other in range(4) if one != other]
    run = replace(
        make_profile(sent, ranks, [make_host(name) for name in names], ("main",), ("ALLTOALL",)), command="a b"
    )
    (tmp_path / "run").mkdir()
    write_archive(run, tmp_path / "run" / "profile.otf2")
    store = tmp_path / "store"
    day = datetime(1970, 1, 1) + timedelta(microseconds=start // 1000)
    assert main(["fabric", str(LST), "--from", day.date().isoformat(), "--store", str(store)]) == 0
    for outcome in ("1 added", "0 added, 0 replaced, 1 known"):
        capsys.readouterr()
        assert main(["ingest", str(tmp_path), "--store", str(store)]) == 0
        assert capsys.readouterr().out.startswith(outcome)
    assert main(["summary", str(tmp_path / "run" / "profile.otf2"), "--store", str(store)]) == 0
    line = tmp_path / "job.jsonl"
    line.write_text(capsys.readouterr().out)
    assert main(["ingest", str(line), "--store", str(store)]) == 0
    assert "1 known" in capsys.readouterr().out
    [row] = JobStore(store).read_day(day.date()).to_pylist()
    assert (row["name"], row["ranks"], row["nodes"], row["bytes"]) == ("a", 4, 4, sum(each.bytes for each in sent))
    directions = pq.read_table(list_tables(store)[0]).to_pylist()
    found = {
        (directions[link]["guid"], directions[link]["port"]): amount
        for link, amount in zip(row["links"], row["link_bytes"], strict=True)
    }
    expected: dict[tuple[object, object], object] = {}
    for each in ibprof_converter.load_links(fabric, run).rows(only_used=True):
        expected |= {(each[f"{end}_guid"], each[f"{end}_port"]): each[f"{end}_bytes"] for end in "ab"}
    assert found == {port: amount for port, amount in expected.items() if amount}
    assert sum(row["pair_bytes"]) == row["bytes"]
    page = tmp_path / "day.html"
    assert main(["view", day.date().isoformat(), "-o", str(page), "--store", str(store)]) == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert main(["view", "2026-01-01", "-o", str(page), "--store", str(store)]) == 2


def test_a_job_is_on_the_fabric_of_its_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    for since, name in (("2026-03-01", "xgft:2:2,2:1,2"), ("2026-03-05", "xgft:2:2,2:1,1"), ("2026-03-05", LST)):
        assert main(["fabric", str(name), "--since", since, "--store", str(store)]) == 0
    assert main(["fabric", str(LST), "--from", "2026-03-09", "--store", str(store)]) == 0
    names = [path.name for _, path in list_fabrics(store)]
    assert [name[:10] for name in names] == ["2026-03-01", "2026-03-05", "2026-03-05"]  # the last is unchanged
    assert capsys.readouterr().err.count("ibprof-site fabric: --since is now --from; the former spelling") == 3
    assert main(["changes", "--store", str(store), "--json"]) == 0
    changes = json.loads(capsys.readouterr().out)
    removed = [each for each in changes if each["what"] == "removed" and each["since"] == "2026-03-05"]
    assert len(removed) > 4  # both directions of the second tree's uplinks are removed
    assert {each["what"] for each in changes} == {"added", "removed", "changed"} - (
        set() if any(each["what"] == "changed" for each in changes) else {"changed"}
    )


def test_answers_have_the_names_of_their_days(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ["--store", str(tmp_path / "store")]
    names = {f"2026-03-0{day}": name for day, name in ((1, "host02"), (2, "moved02"), (3, "again02"))}
    guid = "0x0002c903000a0010"
    for day, name in names.items():
        dump = tmp_path / "dump.lst"
        dump.write_text(LST.read_text().replace("{host02 ", f"{{{name} "))
        assert main(["fabric", str(dump), "--from", day, *store]) == 0
    ports = {row["guid"]: row["link"] for row in pq.read_table(list_tables(tmp_path / "store")[0]).to_pylist()}
    fabrics = [path.name[11:27] for _, path in list_fabrics(tmp_path / "store")]
    jobs = [
        {
            **{"key": f"{number:016x}", "job": "7", "began": f"{day}T06:00:00", "ended": f"{day}T18:00:00"},
            **{"ranks": 1, "nodes": 1, "bytes": 5, "fabric": fabrics[number]},
            **{"links": [ports[guid]], "link_bytes": [5]},
        }
        for number, day in enumerate(names)
    ]
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    assert main(["ingest", str(tmp_path / "jobs.jsonl"), *store]) == 0
    counters = [tmp_path / "before.csv", tmp_path / "after.csv"]
    for path, sent in zip(counters, (9, 6), strict=True):  # the counter was reset in between
        path.write_text(f"guid,port,bytes\n{guid},1,{sent}\n")
    for day, name in names.items():
        span = ["--from", f"{day}T00:00", "--to", f"{day}T23:00"]
        capsys.readouterr()
        assert main(["unexplained", *map(str, counters), *span, *store, "--json"]) == 0
        out, err = capsys.readouterr()
        [row] = json.loads(out)
        assert row == {
            **{"sender": f"{name} HCA-1 port 1", "receiver": "sw-a"},
            **{"counted": 6, "explained": 5, "unexplained": 1},
        }
        assert "1 counters decreased between the two readings" in err
        assert main(["average", "--to", day, *store, "--json"]) == 0
        [row] = json.loads(capsys.readouterr().out)
        assert (row["sender"], row["bytes_a_day"]) == (f"{name} HCA-1 port 1", 5)
        assert main(["metrics", "--at", f"{day}T12:00", *store]) == 0
        assert f'sender="{name} HCA-1 port 1"' in capsys.readouterr().out


def test_hostile_names_are_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = {
        **dict.fromkeys(("job", "name", "user", "partition", "task", "step", "verdict", "cause"), HOSTILE),
        **{"key": "0" * 16, "began": "2026-03-01T00:00:00", "ended": "2026-03-01T01:00:00"},
        **{"ranks": 1, "nodes": 1, "bytes": 1, "hosts": [HOSTILE], "run_s": 1.0, "placement_gain_s": 0.5},
        "partition": "p" * 10_000,
        "late": [{"rank": 0, "host": HOSTILE, "wait_s": 1.0, "share": 1.0}],
    }
    lines = tmp_path / "jobs.jsonl"
    lines.write_text(json.dumps(job) + "\n")
    store = str(tmp_path / "store")
    assert main(["ingest", str(lines), "--store", store]) == 0
    for command in (["jobs", "--user", HOSTILE], ["gains"], ["slow-hosts"], ["shared", HOSTILE]):
        capsys.readouterr()
        assert main([*command, "--store", store]) == 0
        text = capsys.readouterr().out
        assert "\x1b" not in text
        assert text.count("\n") in (0, 3)
        assert all(len(line) < 1000 for line in text.splitlines())
        assert main([*command, "--json", "--store", store]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert all(HOSTILE in row.values() for row in rows)
    assert main(["jobs", "--user", "' OR 1=1 --", "--json", "--store", store]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["load", "--at", "2026-03-01T00:30", "--link", "'", "--json", "--store", store]) == 0


@pytest.mark.parametrize(
    "command",
    [
        ["load", "--at", "yesterday"],
        ["average", "--from", "2026-13-01"],
        ["expire", "--older-than", "soon"],
        ["jobs", "--top", "0"],
        ["shared"],
        [],
    ],
)
def test_invalid_arguments_are_errors_of_usage(command: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 2


def test_unknown_jobs_days_and_columns_are_errors_of_usage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["shared", "unknown"],
        ["waits", "unknown"],
        ["average", "--from", "2030-01-01"],
        ["sql", "SELECT nothing FROM jobs"],
        ["sql", "SELEC"],
    ):
        assert main([*command, "--store", str(folder)]) == 2
        assert capsys.readouterr().err.startswith("ibprof-site: ")
