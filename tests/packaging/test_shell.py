# SPDX-License-Identifier: Apache-2.0
"""Completion works in real shells, groff reads the manual pages, and all commands have a parser and a version."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ibprof.cli.command import find_commands, read_parsers
from ibprof_testing import processes
from ibprof_testing.machine import find_program
from ibprof_testing.paths import ROOT

# Calls the completion function as bash does at TAB, with the words typed before.
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


def _write_script(folder: Path, shell: str, name: str = "script") -> Path:
    with (folder / name).open("w") as file:
        subprocess.run([sys.executable, "-m", "ibprof", "completion", shell], stdout=file, check=True)
    (folder / "profile.otf2").touch()
    return folder


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write_script(tmp_path_factory.mktemp("completion"), "bash")


@pytest.fixture(scope="module")
def fish_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write_script(tmp_path_factory.mktemp("completion"), "fish")


@pytest.fixture(scope="module")
def zsh_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write_script(tmp_path_factory.mktemp("completion"), "zsh", ".zshrc")


@pytest.mark.parametrize(("words", "expected"), TABS)
def test_bash_completes(script: Path, words: tuple[str, ...], expected: str) -> None:
    done = processes.run(
        [find_program("bash", package="bash"), "-c", PRESS_TAB, "bash", *words], cwd=script, timeout=60
    )
    assert (done.stdout.strip(), done.stderr) == (expected, "")


@pytest.mark.parametrize(("words", "expected"), TABS)
def test_fish_completes(fish_script: Path, words: tuple[str, ...], expected: str) -> None:
    line = " ".join(words)
    done = processes.run(
        [find_program("fish", package="fish"), "--no-config", "-c", f". script; complete -C '{line}'"],
        cwd=fish_script,
        env=os.environ | {"HOME": str(fish_script)},
        timeout=60,
    )
    assert [row.split("\t")[0] for row in done.stdout.splitlines()] == expected.split()
    assert done.stderr == ""


@pytest.mark.parametrize(("words", "expected"), [tab for tab in TABS if tab[0][-1] and " " not in tab[1]])
def test_zsh_completes(zsh_script: Path, words: tuple[str, ...], expected: str) -> None:
    """zsh runs in a terminal. At the start, zsh reads the completion script, as the help says."""
    line = " ".join(words)
    zsh = find_program("zsh", package="zsh")
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(zsh_script)
        os.execve(zsh, [zsh, "-i"], os.environ | {"ZDOTDIR": str(zsh_script), "TERM": "dumb", "PS1": "> "})
    try:
        _read_until(terminal, b"> ")
        os.write(terminal, f"{line}\t".encode())
        shown = _read_until(terminal, f"{' '.join(words[:-1])} {expected}".encode())
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    assert "command not found" not in shown


def _read_until(terminal: int, awaited: bytes) -> str:
    """Return the terminal's output up to `awaited`; fail if it does not appear."""
    shown, deadline = b"", time.monotonic() + 60
    while awaited not in shown:
        ready, _, _ = select.select([terminal], [], [], max(deadline - time.monotonic(), 0))
        assert ready, shown
        shown += os.read(terminal, 4096)
    return shown.decode(errors="replace")


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
