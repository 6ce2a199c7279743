# SPDX-License-Identifier: Apache-2.0
"""Completion in a real bash, manual pages as groff reads them, and what every command has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ibprof.cli.completion import read_parsers
from ibprof.cli.main import find_commands
from ibprof_testing import processes
from ibprof_testing.machine import find_program
from ibprof_testing.paths import ROOT

# Calls the function that bash calls at TAB, with the words so far.
PRESS_TAB = """\
. ./script
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
function=$(complete -p "$1" | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
"$function"
echo "${COMPREPLY[@]}"
"""

TABS = [
    (("ibprof", "lay"), "layout"),
    (("ibprof", "report", "--rank-by", "b"), "bytes"),
    (("ibprof-report", "--rank-by", ""), "time bytes"),
    (("ibprof-report", "fabric.lst", "prof"), "profile.otf2"),
    (("ibprof-topology", "inf"), "infer"),
    (("ibprof-topology", "infer", "--meth"), "--method"),
    (("ibprof", "info", "pro"), "profile.otf2"),
]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    with (folder / "script").open("w") as file:
        subprocess.run([sys.executable, "-m", "ibprof", "completion", "bash"], stdout=file, check=True)
    (folder / "profile.otf2").touch()
    return folder


@pytest.mark.parametrize(("words", "expected"), TABS)
def test_bash_completes(script: Path, words: tuple[str, ...], expected: str) -> None:
    done = processes.run(
        [find_program("bash", package="bash"), "-c", PRESS_TAB, "bash", *words], cwd=script, timeout=60
    )
    assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_each_command_has_a_page_that_groff_and_apropos_read(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "make-man-pages.py", tmp_path], check=True)
    pages = sorted(tmp_path.glob("*.1"))
    assert {page.stem for page in pages} == {"ibprof", *(f"ibprof-{name}" for name in find_commands())}
    groff, lexgrog = find_program("groff", package="groff-base"), find_program("lexgrog", package="man-db")
    read = processes.run([groff, "-man", "-Tutf8", "-ww", "-z", *map(str, pages)], timeout=60)
    assert [line for line in read.stderr.splitlines() if "cannot adjust line" not in line] == []
    named = processes.run([lexgrog, *map(str, pages)], timeout=60).stdout.splitlines()
    assert len(named) == len(pages)
    assert [line for line in named if "parse failed" in line] == []
    report = (tmp_path / "ibprof-report.1").read_text()
    assert r"\fB\-\-rank\-by\fR" in report


def test_every_command_has_a_parser_that_suggests(capsys: pytest.CaptureFixture[str]) -> None:
    parsers = read_parsers()
    assert set(parsers) == set(find_commands())
    for name, parser in parsers.items():
        with pytest.raises(SystemExit, match="2"):
            parser.error("unrecognized arguments: --hlep")
        assert capsys.readouterr().err.endswith("did you mean --help?\n"), name


def test_every_command_has_a_version(capsys: pytest.CaptureFixture[str]) -> None:
    for name, point in find_commands().items():
        assert point.load()(["--version"]) == 0
        assert name in capsys.readouterr().out
