# SPDX-License-Identifier: Apache-2.0
"""I/O loads from PyDarshan's sample logs have the known requests of the logged runs."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from ibprof.errors import InputError
from ibprof_lab.cli.sim import main
from ibprof_lab.simulation.questions.advice import AdviceOptions, ask_advice
from ibprof_lab.simulation.study.cell import set_up
from ibprof_lab.simulation.study.simulated_machine import MachineOptions
from ibprof_lab.simulation.workload.darshan_load import READ_REQUEST, DarshanLoad, read_darshan_load
from ibprof_testing.samples.darshan_logs import write_reads
from ibprof_testing.samples.simulated_jobs import MACHINE, MIB

LOGS = Path(str(find_spec("darshan").origin)).parent / "tests" / "input"  # type: ignore[union-attr]
IOR = LOGS / "sample-goodost.darshan"
"""IOR: each of 48 processes makes 128 writes of 8 MiB."""


@pytest.fixture(scope="module")
def load() -> DarshanLoad:
    return read_darshan_load(IOR)


def test_requests_of_a_known_run(load: DarshanLoad) -> None:
    assert (load.processes, load.requests, load.request_bytes) == (48, 48 * 128, 8 * MIB)
    assert load.bytes == 48 * 128 * 8 * MIB
    assert load.read_bytes == 0
    # All processes begin within the first 0.24 s; the last one ends after 3.92 s.
    assert (3.918731 - 0.240003) * 1e9 < load.span_ns < 3.918732e9
    # With as many clients as processes, each client writes 128 times in the 3.92 s.
    assert load.cycle_ns(48) == pytest.approx(load.span_ns / 128)
    assert load.cycle_ns(24) == pytest.approx(load.span_ns / 256)


@pytest.mark.parametrize(
    ("name", "said"),
    [("noposix.darshan", "requests with times in the module POSIX, found 0 requests"),
     ("noposixopens.darshan", "found 0 requests")],
)  # fmt: skip
def test_a_log_without_requests(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_darshan_load(LOGS / name)


def test_a_file_that_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.darshan"
    text.write_text("hello\n")
    assert main(["advise", *MACHINE, "--mpi", "4KiB@50us", "--io", str(text)]) == 3
    assert f"{text}: expected a log of Darshan, found" in capsys.readouterr().err
    assert main(["advise", *MACHINE, "--mpi", "4KiB@50us", "--io", str(tmp_path / "none.darshan")]) == 3
    assert "none.darshan" in capsys.readouterr().err
    cut = tmp_path / "cut.darshan"
    cut.write_bytes(IOR.read_bytes()[:3000])
    with pytest.raises(InputError):
        read_darshan_load(cut)


def test_without_pydarshan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "darshan.py").write_text("raise ImportError\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert main(["advise", *MACHINE, "--mpi", "4KiB@50us", "--io", str(IOR)]) == 4
    assert "pip install darshan" in capsys.readouterr().err


def test_advice_for_a_logged_load(load: DarshanLoad, capsys: pytest.CaptureFixture[str]) -> None:
    """12 clients write the bytes of 48 processes in the same time, so a client's requests come 4 times as often."""
    machine = ["--fabric", "xgft:2:8,3:1,8@100", "--workers", "1", "--quick"]
    line = ["advise", *machine, "--mpi", "4KiB@500us", "--io", str(IOR), "--seeds", "1", "--json"]
    assert main([*line, "--servers", "host[21-24]", "--io-hosts", "host[01-12]", "--mpi-hosts", "host[13-20]"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    now = found["ways"][0]
    assert now["io_window_us"] == pytest.approx(load.span_ns / 1e3 * 12 / 6144, rel=1e-6)
    assert "6,144 requests of 8,388,608 bytes by 48 processes" in said.err
    assert found["advice"] is None
    assert found["hosts"] == {"servers": "host[21-24]", "io": "host[01-12]", "mpi": "host[13-20]"}


def test_a_load_of_reads_comes_from_the_servers(tmp_path: Path) -> None:
    """Darshan's own library writes the log of the same run, but with reads instead of writes."""
    log = tmp_path / "reads.darshan"
    write_reads(IOR, log)
    load = read_darshan_load(log)
    assert (load.requests, load.read_bytes) == (48 * 128, load.bytes)
    options = AdviceOptions(
        machine=MachineOptions(MACHINE[1], servers=8), mpi=4096, mpi_interval_ns=5e5, io=log, io_interval_ns=0.0,
        share=0.5, mpi_hosts=None, io_hosts=None, seeds=1,
    )  # fmt: skip
    question = ask_advice(options)
    assert question.io.reads == READ_REQUEST
    assert any("100% of the bytes read. They are simulated as reads" in note for note in question.notes)
    prepared = set_up(question.cells[0])
    assert prepared.simulation.jobs[0].reads == READ_REQUEST
    assert ask_advice(replace(options, io_reads=64)).io.reads == 64
    assert not ask_advice(replace(options, io=IOR)).io.reads
