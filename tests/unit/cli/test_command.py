# SPDX-License-Identifier: Apache-2.0
"""However a command ends, the command prints one line and returns the documented exit status."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence

import pytest

from ibprof.cli.command import run_command
from ibprof.errors import InconsistentError, InputError, MissingToolError, UsageError


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (UsageError("no host is left"), 2, "ibprof-x: no host is left\n"),
        (InputError("a.csv", 7, "a LID", "'x'"), 3, "ibprof-x: a.csv:7: expected a LID, found 'x'\n"),
        (MissingToolError("mpirun is missing"), 4, "ibprof-x: mpirun is missing\n"),
        (InconsistentError("loop"), 5, "ibprof-x: loop\n"),
        (MemoryError(), 3, "ibprof-x: the input exceeds this machine's memory\n"),
        (KeyboardInterrupt(), 130, "ibprof-x: interrupted\n"),
        (PermissionError(13, "Permission denied", "out.csv"), 3, "ibprof-x: out.csv: Permission denied\n"),
    ],
)
def test_an_error_is_one_line_and_its_status(
    error: BaseException, status: int, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ibprof.cli.command._forget_stdout", lambda: None)  # pytest still needs its own stdout

    def fail(_: Sequence[str] | None) -> int:
        raise error

    assert run_command("ibprof-x", fail) == status
    assert capsys.readouterr().err == message


def test_a_bug_of_ibprof_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: Sequence[str] | None) -> int:
        raise ZeroDivisionError("oops")

    assert run_command("ibprof-x", fail) == 70
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "ZeroDivisionError: oops" in said


def test_the_body_gets_the_arguments_and_gives_the_status() -> None:
    assert run_command("ibprof-x", lambda argv: len(argv or ()), ["a", "b"]) == 2
    assert run_command("ibprof-x", lambda _: None) == 0


PRINT_MUCH = """
import sys
from ibprof.cli.command import run_command
def much(_):
    for _ in range(100000):
        print("a line")
sys.exit(run_command("ibprof-x", much))
"""


def test_a_reader_that_leaves_ends_the_command_quietly() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PRINT_MUCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 141


def test_a_name_that_the_terminal_cannot_show_is_escaped() -> None:
    script = "from ibprof.cli.command import run_command; run_command('x', lambda _: print('knoten-\\u00e4'))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=True,
        text=True,
        env={"PYTHONIOENCODING": "ascii"} | _path(),
    )
    assert done.stdout == "knoten-\\xe4\n"


WRITE_ANYWAY = """
import json, sys
from ibprof.cli.command import run_command
sys.exit(run_command("ibprof-x", lambda _: json.dump([1], sys.stdout)))
"""


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_a_stdout_that_the_shell_closed_is_written_to_in_vain(closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, WRITE_ANYWAY],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=_path(),
    )
    assert (done.returncode, done.stderr) == (0, "")


def _path() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(sys.path)}


@pytest.mark.parametrize(
    "module", ["matplotlib", "netCDF4", "networkx", "numexpr", "scipy", "sklearn", "threadpoolctl"]
)
def test_a_missing_package_of_the_laboratory_brings_the_line_that_installs_it(
    module: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert run_command("ibprof-latency", lambda _: bool(importlib.import_module(module)), []) == 4
    assert capsys.readouterr().err == f"ibprof-latency: {module} is not installed: pip install 'ibprof[lab]'\n"


def test_another_missing_module_is_a_bug(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("ibprof-latency", lambda _: bool(importlib.import_module("nothing_here")), []) == 70
    assert "this is a bug of ibprof" in capsys.readouterr().err
