# SPDX-License-Identifier: Apache-2.0
"""The store has each job once, even if several writers write at once. Errors in inputs are named."""

from __future__ import annotations

import json
import os
import pwd
import resource
import signal
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from ibprof.errors import InputError
from ibprof_converter.cli.site import main
from ibprof_converter.site import job_ingest
from ibprof_converter.site.job_store import JobStore
from ibprof_converter.site.job_summary import PARALLEL
from ibprof_converter.site.site_queries import SiteQueries
from ibprof_testing.samples.recordings import Process, make_recording

DAY = date(2026, 1, 5)

KILLED = """
import gc, os, shutil, signal, sys
from pathlib import Path
from ibprof_converter.site.job_ingest import ingest_jobs
from ibprof_converter.site.job_store import JobStore
import pyarrow.dataset, pyarrow.parquet as pq
store, lines, outcomes = map(Path, sys.argv[1:])
gc.freeze()

def ingest(step):
    seen = 0
    def kill(event, arguments):
        nonlocal seen
        if event in {"open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "tempfile.mkstemp", "fcntl.flock"}:
            if any(str(store) in str(each) for each in arguments) or event in {"os.chmod", "fcntl.flock"}:
                seen += 1
                if seen > step:
                    os.kill(os.getpid(), signal.SIGKILL)
    if step is not None:
        sys.addaudithook(kill)
    return ingest_jobs(JobStore(store, make=True), [lines], remove=True)[0]

def fork(work):
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1]

for step in range(200):
    shutil.rmtree(store, ignore_errors=True)
    Path(lines).write_text(Path(f"{lines}.all").read_text())
    if step % 2:  # half of the jobs are stored already, one of them in an unfinished state
        Path(lines).write_text(Path(f"{lines}.half").read_text())
        fork(lambda: ingest(None))
        Path(lines).write_text(Path(f"{lines}.all").read_text())
    status = fork(lambda: ingest(step))
    def show():
        if Path(lines).exists():
            ingest(None)
        found = [row for path in sorted((store / "jobs").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
        with outcomes.open("a") as file:
            left = [path.name for path in (store / "jobs").glob(".*")]
            print(status, sorted((row["key"], row["finished"]) for row in found), left, file=file)
    fork(show)
    if not status:
        break
"""

AT_ONCE = """
import os, sys
from ibprof_converter.cli.site import main
from ibprof_converter.site import job_ingest
children = []
for path in sys.argv[2:]:
    if child := os.fork():
        children.append(child)
    else:
        status = main(["ingest", "--store", sys.argv[1], path])
        sys.stdout.flush()
        os._exit(status)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def job(number: int, **changes: object) -> dict[str, object]:
    began = datetime(2026, 1, 5 + number % 2, 12)
    return {
        "key": f"{number:016x}",
        "job": str(number),
        "user": "ann",
        "began": began.isoformat(),
        "ended": (began + timedelta(hours=1)).isoformat(),
        "finished": True,
        "ranks": 4,
        "nodes": 2,
        "bytes": 100,
        **changes,
    }


def write(path: Path, *jobs: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in jobs))
    return path


def keys(store: Path) -> list[str]:
    return sorted(key for path in (store / "jobs").glob("*.parquet") for key in pq.read_table(path)["key"].to_pylist())


def ingest(store: Path, *inputs: Path, options: tuple[str, ...] = ()) -> int:
    return main(["ingest", "--store", str(store), *map(str, inputs), *options])


def test_losses_of_a_stored_recording_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_recording(tmp_path, [Process(0, fields={"start_ns": 10**18, "stop_ns": 10**18 + 2000, "flags": 0})])
    assert ingest(tmp_path / "store", path) == 0
    said = capsys.readouterr().err
    assert f"{path}: Left out: 3 of 4 ranks (75.0%): not recorded." in said
    assert f"{path}: rank 0 did not reach MPI_Finalize: the counters end where the process ended" in said


def test_an_ingest_that_is_killed_at_any_step_loses_nothing_and_stores_nothing_twice(tmp_path: Path) -> None:
    whole = [job(number) for number in range(6)]
    write(tmp_path / "jobs.jsonl.all", *whole)
    write(tmp_path / "jobs.jsonl.half", *whole[:2], {**whole[2], "finished": False})
    outcomes = tmp_path / "outcomes"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "store"), str(tmp_path / "jobs.jsonl"), str(outcomes)]
    subprocess.run(command, check=True)
    lines = outcomes.read_text().splitlines()
    expected = str([(each["key"], True) for each in whole])
    assert [line for line in lines if expected not in line] == []
    assert lines[-1] == f"0 {expected} []"
    assert len(lines) > 12  # ingest was killed at each of many steps
    assert {line.split()[0] for line in lines[:-1]} == {str(int(signal.SIGKILL))}


def test_several_ingests_at_once_store_each_job_once(tmp_path: Path) -> None:
    parts = [tmp_path / f"{number}.jsonl" for number in range(4)]
    for first, path in enumerate(parts):
        write(path, *(job(number) for number in range(first, first + 20)))
    store = tmp_path / "store"
    command = [sys.executable, "-c", AT_ONCE, str(store), *map(str, parts)]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # so that Python writes whole lines
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=buffered).stdout.splitlines()
    assert len(printed) == 4
    assert keys(store) == [f"{number:016x}" for number in range(23)]
    assert sum(int(line.split()[0]) for line in printed) == 23


def test_a_file_that_another_ingest_stored_and_removed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = write(tmp_path / "b.jsonl", job(0))
    monkeypatch.setattr(job_ingest, "_look_below", lambda folder: iter((folder / "a.jsonl", lines)))
    assert ingest(tmp_path / "store", tmp_path, options=("--remove",)) == 0
    assert (keys(tmp_path / "store"), lines.exists()) == ([f"{0:016x}"], False)
    assert ingest(tmp_path / "store", tmp_path / "a.jsonl", options=("--remove",)) == 3


def test_the_sums_of_an_ingest_wait_for_another_one(tmp_path: Path) -> None:
    """If ingests did not wait for each other, one could remove sums before another reads them."""
    assert ingest(tmp_path / "store", write(tmp_path / "a.jsonl", job(0))) == 0
    store = JobStore(tmp_path / "store")
    waiting = Thread(target=SiteQueries(store).keep_sums)
    with store.locked():
        waiting.start()
        waiting.join(2)
        is_waiting = waiting.is_alive()
    waiting.join()
    assert is_waiting


@pytest.mark.parametrize("failures", [1, 100])
def test_a_day_that_changes_while_it_is_read_is_read_again(tmp_path: Path, failures: int) -> None:
    """DuckDB opens a file twice. The test raises DuckDB's error for a file that an ingest replaced in between."""
    assert ingest(tmp_path / "store", write(tmp_path / "a.jsonl", job(0))) == 0
    questions = SiteQueries(JobStore(tmp_path / "store"))

    class Changing:
        def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
            self.db, self.left = db, failures

        def execute(self, *words: Any) -> duckdb.DuckDBPyConnection:
            self.left -= 1
            if self.left >= 0:
                raise duckdb.Error("TProtocolException: Invalid data")
            return self.db.execute(*words)

    questions._db = Changing(questions._db)  # type: ignore[assignment]
    if failures == 1:
        assert questions.select("SELECT count(*) AS jobs FROM jobs") == [{"jobs": 1}]
    else:
        with pytest.raises(InputError, match="whole files of jobs"):
            questions.select("SELECT count(*) AS jobs FROM jobs")


def test_a_full_disk_leaves_the_day_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    assert ingest(store, write(tmp_path / "a.jsonl", job(0))) == 0
    before = JobStore(store).path_of(DAY).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    more = write(tmp_path / "b.jsonl", *(job(number) for number in range(2, 40, 2)))
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
        status = ingest(store, more, options=("--remove",))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert status == 3
    assert f"{JobStore(store).path_of(DAY)}: File too large" in capsys.readouterr().err
    assert JobStore(store).path_of(DAY).read_bytes() == before
    assert sorted(path.name for path in (store / "jobs").iterdir()) == ["2026-01-05.parquet"]
    assert more.exists()


def test_a_finished_state_replaces_an_unfinished_one_and_never_the_other_way(tmp_path: Path) -> None:
    store = tmp_path / "store"
    unfinished = job(0, finished=False, bytes=1)
    for number, state in enumerate((unfinished, job(0, bytes=2), unfinished, job(0, bytes=2))):
        assert ingest(store, write(tmp_path / f"{number}.jsonl", state)) == 0
    assert JobStore(store).read_day(DAY).to_pylist()[0]["bytes"] == 2
    assert keys(store) == [f"{0:016x}"]


INVALID = [
    (job(1) | {"began": "2026-01-06T13:30:00"}, '"ended" no earlier than "began"'),
    (job(1) | {"key": "../../etc"}, '"key" of 16 hex digits'),
    ({name: value for name, value in job(1).items() if name != "bytes"}, '"bytes"'),
    (job(1) | {"links": [1, 2], "link_bytes": [1], "fabric": "f"}, '"link_bytes" as long as "links"'),
    (job(1) | {"links": [1], "link_bytes": [-1], "fabric": "f"}, 'numbers from 0 in "link_bytes"'),
    (job(1) | {name: [None] for name in PARALLEL[1]} | {"pair_bytes": [1]}, 'numbers in "pair_source"'),
    (job(1) | {"bin_s": None, "bin_bytes": [1], "bin_mpi_s": [0.0]}, '"bin_s" with "bin_bytes"'),
    (job(1) | {"links": [1], "link_bytes": [1]}, '"fabric"'),
    (job(1) | {"ranks": -1}, '"ranks" from 0'),
    (job(1) | {"run_s": float("nan")}, '"run_s" from 0'),
    (job(1) | {"unknown": 1}, "unexpected field"),
    (job(1) | {"ranks": "4"}, "a job as JSON"),
    (job(1) | {"began": "1970-01-01T00:00:00"}, '"began" after 2000'),
]


@pytest.mark.parametrize(("wrong", "expected"), INVALID)
def test_an_invalid_line_is_named_and_nothing_of_its_file_is_stored(
    wrong: dict[str, object], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = write(tmp_path / "jobs.jsonl", job(0), wrong, job(2))
    good = write(tmp_path / "good.jsonl", job(4))
    assert ingest(tmp_path / "store", lines, good) == 3
    error = capsys.readouterr().err
    assert f"{lines}:2: expected" in error
    assert expected in error
    assert keys(tmp_path / "store") == [f"{4:016x}"]


def test_bytes_above_2_to_53_are_stored_exactly(tmp_path: Path) -> None:
    exact = (1 << 60) + 1
    assert ingest(tmp_path / "store", write(tmp_path / "jobs.jsonl", job(1, bytes=exact))) == 0
    days = list((tmp_path / "store" / "jobs").glob("*.parquet"))
    assert pq.read_table(days[0])["bytes"].to_pylist() == [exact]


def test_a_clock_of_the_future_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    later = datetime.now(timezone.utc).replace(tzinfo=None) + timedelta(days=3)
    ahead = job(1, began=later.isoformat(), ended=later.isoformat())
    assert ingest(tmp_path / "store", write(tmp_path / "jobs.jsonl", ahead)) == 3
    assert 'jobs.jsonl:1: expected "began" no later than' in capsys.readouterr().err
    assert keys(tmp_path / "store") == []


@pytest.mark.parametrize("content", [b"\xff\xfe{}\n", b"[1]\n", b"{\n", b'{"key":"\\ud800"}\n', b"\0\n"])
def test_text_that_is_no_json_is_an_error_with_its_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "jobs.jsonl"
    lines.write_bytes(b"\n" + content)
    assert ingest(tmp_path / "store", lines) == 3
    assert f"ibprof-site: {lines}:2: expected" in capsys.readouterr().err


@pytest.mark.parametrize("size", [0, 4, 100, -8])
def test_a_truncated_day_is_named_and_is_not_overwritten(
    size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    assert ingest(store, write(tmp_path / "a.jsonl", job(0))) == 0
    path = JobStore(store).path_of(DAY)
    cut = path.read_bytes()[:size]
    path.write_bytes(cut)
    for command in (["ingest", str(write(tmp_path / "b.jsonl", job(2)))], ["jobs"], ["average"], ["slow-hosts"]):
        assert main([*command, "--store", str(store)]) == 3
        assert ": expected " in capsys.readouterr().err
    assert path.read_bytes() == cut


def test_a_store_without_jobs_and_a_folder_without_a_store_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["jobs", "--store", str(tmp_path)]) == 3
    assert "expected a store of ibprof-site" in capsys.readouterr().err
    assert ingest(tmp_path / "store", tmp_path) == 0
    assert main(["jobs", "--store", str(tmp_path / "store")]) == 3
    assert "an empty store" in capsys.readouterr().err
    (tmp_path / "store" / "jobs").rmdir()
    assert main(["jobs", "--store", str(tmp_path / "store")]) == 3
    assert "store/jobs: No such file" in capsys.readouterr().err


def test_names_of_users_are_hashed_alike_in_one_store_and_otherwise_in_another(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        store = tmp_path / name
        lines = write(tmp_path / "jobs.jsonl", job(0), job(2), job(4, user="ben"), job(6, user=None))
        assert ingest(store, lines, options=("--hash-users",)) == 0
        users = JobStore(store).read_day(DAY)["user"].to_pylist()
        assert users[0] == users[1] != users[2]
        assert users[3] is None
        assert b"ann" not in JobStore(store).path_of(DAY).read_bytes()
        assert (store / ".salt").stat().st_mode & 0o777 == 0o600
        assert ingest(store, write(tmp_path / "more.jsonl", job(8))) == 0
        assert JobStore(store).read_day(DAY)["user"].to_pylist()[4] == users[0]
        found.append(users[0])
    assert found[0] != found[1]
    plain = tmp_path / "plain"
    assert ingest(plain, write(tmp_path / "jobs.jsonl", job(0))) == 0
    assert ingest(plain, write(tmp_path / "jobs.jsonl", job(0)), options=("--hash-users",)) == 5
    jobs = tmp_path / "jobs"
    lines = write(tmp_path / "jobs.jsonl", job(0, name="secret"), job(2, name="secret"), job(4))
    assert ingest(jobs, lines, options=("--hash-jobs",)) == 0
    rows = JobStore(jobs).read_day(DAY)
    assert rows["user"].to_pylist() == ["ann"] * 3
    one, same, none = rows["name"].to_pylist()
    assert (one == same, none, len(one)) == (True, None, 16)
    assert b"secret" not in JobStore(jobs).path_of(DAY).read_bytes()
    assert ingest(jobs, lines) == 0


def test_old_days_expire_with_their_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    recent = datetime.now(timezone.utc).replace(tzinfo=None, microsecond=0) - timedelta(days=2)
    young = job(8, began=recent.isoformat(), ended=recent.isoformat())
    lines = write(tmp_path / "jobs.jsonl", job(0, hosts=["a"]), job(1), young)
    assert ingest(store, lines) == 0
    assert main(["slow-hosts", "--store", str(store)]) == 0
    assert main(["expire", "--older-than", "30d", "--store", str(store)]) == 0
    assert "deleted the jobs of 2 days, all before" in capsys.readouterr().out
    assert keys(store) == [young["key"]]
    assert {path.name[:10] for path in (store / "sums").iterdir()} == {recent.date().isoformat()}
    assert ingest(store, lines, options=("--newer-than", "30d")) == 0
    assert keys(store) == [young["key"]]


def test_each_user_gets_a_store_of_the_own_jobs_that_no_one_else_can_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    users = (
        [me, "nobody-of-this-machine", "../escape", "", None, me] if os.geteuid() else ["daemon", "root", "../x", None]
    )
    jobs = [job(number, user=user) for number, user in enumerate(users)]
    store, shared = tmp_path / "store", tmp_path / "users"
    assert ingest(store, write(tmp_path / "jobs.jsonl", *jobs)) == 0
    for _ in range(2):
        assert main(["share", str(shared), "--store", str(store)]) == 0
    known = {user for user in users if user and user in {each.pw_name for each in pwd.getpwall()}}
    assert {path.name for path in shared.iterdir()} == known
    for user in known:
        files = list((shared / user / "jobs").iterdir())
        assert {path.stat().st_mode & 0o777 for path in files} == {0o400}
        assert {path.stat().st_uid for path in files} == {pwd.getpwnam(user).pw_uid}
        capsys.readouterr()
        assert main(["jobs", "--json", "--store", str(shared / user)]) == 0
        assert {row["user"] for row in json.loads(capsys.readouterr().out)} == {user}
    assert main(["expire", "--older-than", "1", "--store", str(store)]) == 0
    assert main(["share", str(shared), "--store", str(store)]) == 0
    assert list(shared.glob("*/jobs/*")) == []


def test_a_job_never_replaces_one_of_another_user(tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert ingest(store, write(tmp_path / "a.jsonl", job(0, user="ann", finished=False))) == 0
    assert ingest(store, write(tmp_path / "b.jsonl", job(0, user="mallory", bytes=5))) == 0
    assert [(row["user"], row["bytes"]) for row in JobStore(store).read_day(DAY).to_pylist()] == [
        ("ann", 100),
        ("mallory", 5),
    ]


def test_a_file_of_another_user_has_jobs_of_that_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = write(tmp_path / "jobs.jsonl", job(0, user="ann"))
    if os.geteuid() == 0:
        os.chown(lines, pwd.getpwnam("daemon").pw_uid, -1)
    else:  # without root's rights, the test changes the user that ingest sees
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
    assert ingest(tmp_path / "store", lines) == 0
    owner = pwd.getpwuid(lines.stat().st_uid).pw_name
    assert JobStore(tmp_path / "store").read_day(DAY)["user"].to_pylist() == [owner]
