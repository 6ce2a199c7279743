# SPDX-License-Identifier: Apache-2.0
"""With mpi4py and with ctypes, the call sites of Python programs are lines of their .py files."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ibprof.cli.main import main
from ibprof.profile.profile_data import Direction, Kind, Profile, Site
from ibprof.recording.recording_reader import read_recording
from ibprof_testing.mpi.lines import sent_by_lines, stated_lines
from ibprof_testing.mpi.mpis import (
    FROM_PYPI,
    MPICH_FROM_PYPI,
    PROGRAMS,
    SYSTEM,
    THROUGH_NETWORK,
    find_mpi,
    find_mpich_like,
    run_mpi,
)
from ibprof_testing.pythons import VERSIONS, find_python

ON = {"IBPROF_SITES": "1"}


def sites_by_rank(run: Profile) -> set[tuple[int, Site | None]]:
    sent = (run.counters.direction == Direction.SENT) & (run.counters.kind == Kind.USER)
    rows = np.flatnonzero(sent)
    sites = (run.counters.site[row] for row in rows)
    return {
        (int(run.counters.rank[row]), run.sites[site - 1] if site else None)
        for row, site in zip(rows, sites, strict=True)
    }


@pytest.mark.parametrize("name", [*FROM_PYPI, MPICH_FROM_PYPI[0]])
def test_lines_of_mpi4py(name: str, tmp_path: Path) -> None:
    """MPI is called in decorators, generators, comprehensions, lambdas, context managers, a thread, and exec()."""
    mpi = find_mpich_like(name) if name in MPICH_FROM_PYPI else find_mpi(name)
    program = PROGRAMS / "call_sites.py"
    run_mpi(mpi, 2, [mpi.python, program], recording=tmp_path, env={**ON, **THROUGH_NETWORK})
    run = read_recording(tmp_path)
    lines = sent_by_lines(run)
    expected = {("call_sites.py", *key): count for key, count in stated_lines(program).items()}
    assert len(expected) == 9
    assert {key: lines.get(key) for key in expected} == expected
    # Each compilation of the text has new instructions, for the same lines.
    assert {key[2] for key in lines if key[0] == "<string>"} == {3, 4}
    assert {file for file, _, line in lines if line} == {"call_sites.py", "<string>"}
    functions = {site.line: site.function.rpartition(".")[2] for site in run.sites if site.file == str(program)}
    for function in ast.walk(ast.parse(program.read_text())):
        if isinstance(function, ast.FunctionDef) and function.name != "traced":
            names = {functions[line] for line in functions if function.lineno <= line <= (function.end_lineno or 0)}
            assert names <= {function.name}


def test_every_version_of_python(tmp_path: Path) -> None:
    """In one job, each rank runs a different version of Python."""
    mpi, program = find_mpi(SYSTEM), PROGRAMS / "call_sites_of_versions.py"
    pythons = [str(find_python(version)) for version in VERSIONS]
    one_each = ["sh", "-c", f"shift $OMPI_COMM_WORLD_RANK; exec $1 {program} libmpi.so.40", "sh", *pythons]
    run_mpi(mpi, len(VERSIONS), one_each, recording=tmp_path, env=ON)
    run = read_recording(tmp_path)
    line = next(i for i, text in enumerate(program.read_text().splitlines(), 1) if "send_address, (" in text)
    found = sites_by_rank(run)
    assert [rank for rank, _ in sorted(found, key=lambda each: each[0])] == list(range(len(VERSIONS)))
    assert Counter((site.file, site.line, site.function) for _, site in found if site) == {
        (str(program), line, "send"): len(VERSIONS)
    }


def test_text_that_is_compiled_without_end(tmp_path: Path) -> None:
    """The program compiles more code objects than ibprof can store. Calls are still counted under their line."""
    mpi = find_mpi(FROM_PYPI[0])
    text = (
        "from mpi4py.MPI import COMM_WORLD as w, BYTE as b\n"
        + "r = w.rank\n"
        + (
            "for i in range(9000): exec('(w.Send if r == 0 else w.Recv)([bytearray(2), b], 1 - r)')\n"
            "for i in range(9000): exec('\\n(w.Send if r == 0 else w.Recv)([bytearray(1), b], 1 - r)')"
        )
    )
    run_mpi(mpi, 2, [mpi.python, "-c", text], recording=tmp_path, env=ON)
    lines = sent_by_lines(read_recording(tmp_path))
    assert lines["<string>", "SEND", 1] == 18000
    assert lines["<string>", "SEND", 2] == 9000


def test_more_lines_than_sites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes of sites beyond the limit are counted together and reported, on senders and on receivers."""
    mpi, limit, lines = find_mpi(FROM_PYPI[0]), 4096, 4200
    text = (
        "from mpi4py.MPI import COMM_WORLD as w, BYTE as b\n"
        "r = w.rank\n"
        "def here(): (w.Send if r == 0 else w.Recv)([bytearray(2), b], 1 - r)\n"
        "here()\n"
        f"for i in range({lines}): exec('\\n' * i + '(w.Send if r == 0 else w.Recv)([bytearray(1), b], 1 - r)')\n"
        "here()\n"
    )
    run_mpi(mpi, 2, [mpi.python, "-c", text], recording=tmp_path, env=ON)
    run = read_recording(tmp_path)
    sent = sent_by_lines(run)
    assert sent.pop(("<string>", "SEND", 3)) == 2 * 2 + 1
    other = sent.pop(("(other sites)", "SEND", 0))
    assert (other, len(sent)) == (lines - limit + 1, limit - 2)
    assert set(sent.values()) == {1}
    assert main(["info", str(tmp_path)]) == 0
    said = "rank 0-1 called MPI from more call sites than a recording distinguishes: "
    said += f"{other} B are counted at (other sites)"
    assert said in capsys.readouterr().out
