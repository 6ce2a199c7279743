# SPDX-License-Identifier: Apache-2.0
"""promtool accepts `ibprof-site`'s metrics. With these metrics, a real Prometheus answers the dashboard's queries."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from ibprof_converter.cli.site import main
from ibprof_converter.site.synthetic_jobs import make_store
from ibprof_testing.machine import find_program

HOSTILE = 'a "quoted" <b>name</b>\\\nwith lines\x00\u202e'
COUNTER = """\
# TYPE node_infiniband_port_data_transmitted_bytes_total counter
node_infiniband_port_data_transmitted_bytes_total{{device="mlx5_0",port="1"}} {value}
"""


def metrics(store: Path, *options: str) -> str:
    file = store.parent / "out.prom"
    assert main(["metrics", "--store", str(store), "-o", str(file), *options]) == 0
    return file.read_text()


def check(text: str) -> None:
    tool = find_program("promtool", package="prometheus")
    done = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "store"
    make_store(folder, date(2026, 3, 1), 1, 400)
    return folder


def test_promtool_finds_no_fault_and_the_number_of_series_is_bounded(store: Path) -> None:
    text = metrics(store, "--at", "2026-03-01T12:00", "--minutes", "600", "--jobs", "7", "--links", "9")
    check(text)
    series = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len({line.rpartition(" ")[0] for line in series})
    assert 0 < sum(line.startswith("ibprof_job_") for line in series) <= 7 * 9
    assert 9 < sum(line.startswith("ibprof_link_") for line in series) <= 9 * 6
    assert sum(line.startswith("ibprof_host_") for line in series) == 2 * 50
    assert text.endswith("# EOF\n")
    assert 'job_id="other"' in text


def test_hostile_names_and_spans_without_jobs_are_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = {"key": "0" * 16, "began": "2026-03-01T00:00:00", "ended": "2026-03-01T01:00:00", "ranks": 1, "nodes": 1}
    job |= {"bytes": 1, "run_s": 1.0, "hosts": [HOSTILE]}
    job |= dict.fromkeys(("job", "user", "name", "verdict"), HOSTILE)
    lines = tmp_path / "jobs.jsonl"
    # Two runs of a step have equal labels, so their sum is one series.
    lines.write_text("".join(json.dumps(job | {"key": f"{number:016x}"}) + "\n" for number in range(2)))
    assert main(["ingest", str(lines), "--store", str(tmp_path / "store")]) == 0
    text = metrics(tmp_path / "store", "--at", "2026-03-01T01:00")
    check(text)
    assert r'name="a \"quoted\" <b>name</b>\\\nwith lines' in text
    assert sum(line.startswith("ibprof_job_nodes{") for line in text.splitlines()) == 1
    check(metrics(tmp_path / "store", "--at", "2026-03-02T01:00"))
    assert main(["metrics", "--store", str(tmp_path / "store"), "-o", str(tmp_path / "no" / "folder")]) == 3
    assert "No such file or directory" in capsys.readouterr().err


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving(*command: str) -> Iterator[None]:
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        running.kill()
        running.wait()


def query(port: int, text: str) -> list[Any]:
    """Return the answer of Prometheus; an empty list while Prometheus does not answer."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/v1/query?{urlencode({'query': text})}", timeout=5) as answer:
            found: list[Any] = json.load(answer)["data"]["result"]
    except OSError:
        return []
    return found


def test_prometheus_answers_the_queries_of_the_dashboard(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["dashboard"]) == 0
    dashboard = json.loads(capsys.readouterr().out)
    texts = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    collected = tmp_path / "collected"
    collected.mkdir()
    options = ("--at", "2026-03-01T12:00", "--minutes", "600")
    assert main(["metrics", "--store", str(store), "-o", str(collected / "ibprof.prom"), *options]) == 0
    exporter_port, port = free_port(), free_port()
    configuration = tmp_path / "prometheus.yml"
    configuration.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s"},
                "scrape_configs": [
                    {"job_name": "node", "static_configs": [{"targets": [f"127.0.0.1:{exporter_port}"]}]}
                ],
            }
        )
    )
    exporter = (
        find_program("prometheus-node-exporter", "node_exporter", package="prometheus-node-exporter"),
        *("--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={collected}"),
        f"--web.listen-address=127.0.0.1:{exporter_port}",
    )
    prometheus = (
        find_program("prometheus", package="prometheus"),
        *(f"--config.file={configuration}", f"--storage.tsdb.path={tmp_path / 'data'}"),
        f"--web.listen-address=127.0.0.1:{port}",
    )
    with serving(*exporter), serving(*prometheus):
        end = time.monotonic() + 120
        unanswered = texts
        # A counter has a rate only if it grew between two scrapes.
        while unanswered and time.monotonic() < end:
            (collected / "ports.prom").write_text(COUNTER.format(value=round(1e9 * time.monotonic())))
            unanswered = [text for text in unanswered if not query(port, text)]
            time.sleep(1)
        assert unanswered == []
        [failed] = query(port, "node_textfile_scrape_error")
        assert failed["value"][1] == "0"
        found = query(port, "topk(1, sum by (rail, sender, receiver) (ibprof_link_load_bytes_per_second))")
        named = query(port, "count by (job) (ibprof_job_nodes)")
    assert [each["metric"] for each in named] == [{"job": "node"}]  # Prometheus keeps its own label `job`
    labels = dict(found[0]["metric"])
    sums: dict[tuple[str, str], float] = {}
    for line in (collected / "ibprof.prom").read_text().splitlines():
        if line.startswith("ibprof_link_load_bytes_per_second{"):
            parts = line.split('"')
            sums[parts[3], parts[5]] = sums.get((parts[3], parts[5]), 0) + float(line.rpartition(" ")[2])
    assert float(found[0]["value"][1]) == pytest.approx(max(sums.values()))
    assert sums[labels["sender"], labels["receiver"]] == max(sums.values())
