# SPDX-License-Identifier: Apache-2.0
"""With IBPROF_CALLERS, MPI calls through a library are counted under lines of the program, which comments name."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ibprof.archive.otf2_archive import read_archive, write_archive
from ibprof.cli.main import main
from ibprof.load import load_profile
from ibprof.profile.missing_data import describe_gaps
from ibprof.profile.profile_data import Direction, Kind, Profile
from ibprof.recording.recording_reader import read_recording
from ibprof_testing.mpi.mpis import (
    FROM_PYPI,
    INTEL,
    MPICH_LIKE,
    MPICH_SYSTEM,
    NAMES,
    PROGRAMS,
    SYSTEM,
    THROUGH_NETWORK,
    Build,
    Mpi,
    find_mpi,
    find_mpich_like,
    in_every_run,
    run_mpi,
)
from ibprof_testing.mpi.mpis import library as installed_library
from ibprof_testing.mpi.no_harm import FAMILIES, check_no_harm, ibprof_lines
from ibprof_testing.mpi.no_harm import find_any as find_no_harm

Sent = dict[tuple[str, str], int]

NAMED = re.compile(r"(?:/\*|!|#) @([\w ]+?)(?: \*/)?$")
CALLERS = 4
EXPECTED: Sent = {
    ("SEND", "send < once < main once"): 110,
    ("SEND", "send < first < main twice"): 120,
    ("SEND", "send < second < main twice"): 130,
    ("SEND", "send < aligned < main aligned"): 140,
    ("SEND", "send < compare < sorts < main sorts"): 15,
    ("SEND", "send < callback < visit < visits < main visits"): 16,
    ("SEND", "send < deepest < recurses < recurses < recurses"): 17,
    ("SEND", "send < inlined < around < main around"): 18,
    ("SEND_INIT", "prepare < persists < main persists"): 38,
    ("BCAST", "spread < spreads < main spreads"): 20,
}


def names_of_lines(*programs: str) -> dict[str, str]:
    """Return `file:LINE` -> the name that a comment gives this line of a program."""
    return {
        f"{program}:{number}": found[1]
        for program in programs
        for number, line in enumerate((PROGRAMS / program).read_text().splitlines(), 1)
        if (found := NAMED.search(line))
    }


def sent_by_chains(run: Profile, *programs: str) -> Sent:
    """Return the user's bytes of each (operation, chain of named lines), without calls that have no site."""
    names, sent = names_of_lines(*programs), Counter[tuple[str, str]]()
    rows = (run.counters.direction == Direction.SENT) & (run.counters.kind == Kind.USER)
    for row in np.flatnonzero(rows & (run.counters.site > 0)):
        parts = run.sites[run.counters.site[row] - 1].label.split(" < ")
        chain = " < ".join(names.get(part, part) for part in parts)
        sent[run.operations[run.counters.operation[row]], chain] += int(run.counters.bytes[row])
    return dict(sent)


def find_any(name: str) -> Mpi:
    return find_mpich_like(name) if name in MPICH_LIKE else find_mpi(name)


def record(
    name: str, build: Build, folder: Path, options: tuple[str, ...] = ("-O2",), callers: str = str(CALLERS)
) -> Profile:
    mpi = find_any(name)
    library = build(mpi, "callers_library.c", "-g", "-shared", "-fPIC", *options)
    program = build(mpi, "callers.c", "-g", *options, "-ldl")
    run_mpi(mpi, 2, [program, library], recording=folder, env={"IBPROF_CALLERS": callers, **THROUGH_NETWORK})
    return read_recording(folder)


@pytest.mark.parametrize("name", in_every_run(*NAMES, *MPICH_LIKE))
def test_callers_on_every_mpi(name: str, build: Build, tmp_path: Path) -> None:
    assert sent_by_chains(record(name, build, tmp_path), "callers.c", "callers_library.c") == EXPECTED


@pytest.mark.parametrize(
    "options",
    [
        ("-O0",),
        ("-O2", "-fomit-frame-pointer"),
        ("-O2", "-fno-omit-frame-pointer"),
        # Without unwind tables, ibprof must use frame pointers.
        ("-O1", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"),
        ("-O2", "-no-pie", "-fno-pie"),
    ],
    ids=" ".join,
)
def test_callers_however_compiled(options: tuple[str, ...], build: Build, tmp_path: Path) -> None:
    if "-no-pie" in options:
        mpi = find_mpi(SYSTEM)
        library = build(mpi, "callers_library.c", "-g", "-shared", "-fPIC", "-O3")
        program = build(mpi, "callers.c", "-g", *options, "-ldl")
        run_mpi(mpi, 2, [program, library], recording=tmp_path, env={"IBPROF_CALLERS": str(CALLERS)})
        run = read_recording(tmp_path)
    else:
        run = record(SYSTEM, build, tmp_path, options)
    assert sent_by_chains(run, "callers.c", "callers_library.c") == EXPECTED


@pytest.mark.parametrize("callers", [1, 2, 3])
def test_as_many_callers_as_were_asked_for(callers: int, build: Build, tmp_path: Path) -> None:
    """Chains have at most the requested number of callers, not counting functions that the compiler inlined."""
    expected = Counter[tuple[str, str]]()
    for (operation, chain), count in EXPECTED.items():
        parts = chain.split(" < ")
        kept = 1 + callers + ("inlined" in parts)
        expected[operation, " < ".join(parts[:kept])] += count
    found = sent_by_chains(record(SYSTEM, build, tmp_path, callers=str(callers)), "callers.c", "callers_library.c")
    assert found == expected


@pytest.mark.parametrize("callers", ["0", ""])
def test_no_callers(callers: str, build: Build, tmp_path: Path) -> None:
    """By default, sites are recorded without callers."""
    run = record(SYSTEM, build, tmp_path, callers=callers)
    assert {site.name for site in run.sites} & set(names_of_lines("callers_library.c"))
    assert not any(site.callers for site in run.sites)


@pytest.mark.parametrize("callers", ["many", "2 3", "-1"])
def test_a_value_that_is_no_number(callers: str, build: Build, tmp_path: Path) -> None:
    """A message says that IBPROF_CALLERS is invalid, and sites are recorded without callers."""
    program = build(find_mpi(SYSTEM), "figure36.c", "-g")
    variables = {"IBPROF_CALLERS": callers}
    done = check_no_harm(find_no_harm(SYSTEM), 2, [program], tmp_path, variables=variables)
    assert ibprof_lines(done.stderr) == [
        "ibprof: IBPROF_CALLERS: expected a number from 0 to 16, so no callers are recorded"
    ]
    run = read_recording(tmp_path)
    assert run.sites
    assert not any(site.callers for site in run.sites)


def test_an_archive_keeps_callers(build: Build, tmp_path: Path) -> None:
    run = record(SYSTEM, build, tmp_path / "recording")
    write_archive(run, tmp_path / "profile.otf2")
    again = read_archive(tmp_path / "profile.otf2")
    assert again.sites == run.sites
    assert sent_by_chains(again, "callers.c", "callers_library.c") == EXPECTED


def test_commands_name_callers(build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--by site` prints chains. A line of the program selects all MPI calls that the line makes through libraries."""
    record(SYSTEM, build, tmp_path)
    line_of = {name: line for line, name in names_of_lines("callers.c", "callers_library.c").items()}
    assert main(["calls", str(tmp_path), "--by", "site", "--csv", "-"]) == 0
    listed = {line.partition(",")[0] for line in capsys.readouterr().out.splitlines()[1:]}
    chain = " < ".join(line_of[name] for name in ("send", "once", "main once"))
    assert chain in listed
    for site, count in ((chain, 110), (line_of["main twice"], 250), (line_of["send"], 566), (line_of["once"], 110)):
        assert main(["calls", str(tmp_path), "--site", site, "--by", "operation", "--csv", "-"]) == 0
        sent = {row.split(",")[0]: int(row.split(",")[3]) for row in capsys.readouterr().out.splitlines()[1:]}
        assert sent["SEND"] == count


# PyPI's Intel MPI has no compiled module mpi for this gfortran.
@pytest.mark.parametrize("name", [SYSTEM, MPICH_SYSTEM, INTEL])
def test_callers_of_fortran(name: str, build: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    program = build(mpi, "callers.f90", "-g", "-O1", "-fno-inline")
    run_mpi(mpi, 2, [program], recording=tmp_path, env={"IBPROF_CALLERS": "3", **THROUGH_NETWORK})
    found = sent_by_chains(read_recording(tmp_path), "callers.f90")
    # gfortran's main() calls the program.
    assert {
        (operation, chain.partition(" < callers.f90")[0]): count for (operation, chain), count in found.items()
    } == {
        ("SEND", "send < halo < first"): 40,
        ("SEND", "send < halo < second"): 80,
    }


def test_callers_of_python(build: Build, tmp_path: Path) -> None:
    """Callers are lines of Python functions, even in threads, and even if a C library calls MPI."""
    mpi = find_mpi(FROM_PYPI[0])
    library = build(mpi, "callers_library.c", "-g", "-shared", "-fPIC", "-O2")
    program: list[str | Path] = [mpi.python, PROGRAMS / "callers.py", library]
    run_mpi(mpi, 2, program, recording=tmp_path, env={"IBPROF_CALLERS": "2", **THROUGH_NETWORK})
    found = sent_by_chains(read_recording(tmp_path), "callers.py", "callers_library.c")
    in_thread = {key for key in found if "threading.py" in key[1]}
    assert {key[1].rpartition(" < ")[0]: found.pop(key) for key in in_thread} == {"send < halo": 34}
    assert found == {
        ("SEND", "send < halo < first"): 31,
        ("SEND", "send < halo < second"): 32,
        ("SEND", "send < library < third"): 33,
    }


def test_a_tool_in_between(build: Build, tmp_path: Path) -> None:
    """ibprof does not mistake a tool for MPI, although the tool's file is named like MPI's library."""
    mpi, tool = find_mpi(SYSTEM), tmp_path / "libmpiTool.so"
    shutil.copy(build(mpi, "other_tool.c", "-g", "-shared", "-fPIC"), tool)
    program = build(mpi, "figure36.c", "-g")
    env = {"LD_PRELOAD": f"{tool}:{installed_library()}", "IBPROF_OUTPUT": str(tmp_path / "r"), "IBPROF_CALLERS": "1"}
    run_mpi(mpi, 2, [program], env=env)
    sent = sent_by_chains(read_recording(tmp_path / "r"))
    lines = (PROGRAMS / "figure36.c").read_text().splitlines()
    called = {f"figure36.c:{number}" for number, line in enumerate(lines, 1) if "MPI_Bcast(" in line}
    broadcasts = {chain for operation, chain in sent if operation == "BCAST"}
    assert {chain.partition(" < ")[2] for chain in broadcasts} == called
    assert {chain.partition(":")[0] for chain in broadcasts} == {"other_tool.c"}


@pytest.mark.parametrize("name", FAMILIES)
def test_no_harm(name: str, build: Build, tmp_path: Path) -> None:
    """Reading the stack at each call does not harm programs with signal handlers, threads, forks or small stacks."""
    mpi = find_no_harm(name)
    program = build(mpi, "unruly.c", "-pthread")
    command: list[str | Path] = [program, "handlers", "threads", "forks", "regions", "names", "limits"]
    variables = {"IBPROF_CALLERS": "16", "IBPROF_TIME": "1", "UNRULY_CHILD": "echo a child; exit 3"}
    done = check_no_harm(mpi, 2, command, tmp_path, variables=variables)
    assert done.returncode == 0
    assert any(site.callers for site in load_profile(tmp_path).sites)


def test_more_chains_than_sites(build: Build, tmp_path: Path) -> None:
    """Bytes of chains beyond the limit are counted together, for the innermost line. No byte is lost."""
    mpi = find_mpi(SYSTEM)
    program = build(mpi, "many_chains.c", "-g", "-O1")
    run_mpi(mpi, 2, [program], recording=tmp_path, env={"IBPROF_CALLERS": "16"})
    run = read_recording(tmp_path)
    sent = sent_by_chains(run, "many_chains.c")
    other = sent.pop(("SEND", "send < (other sites)"))
    assert sum(sent.values()) + other == 1 << 13
    assert 1000 < len(sent) < 4096
    assert set(sent.values()) == {1}
    assert all(chain.startswith("send < ") for _, chain in sent)
    said = "called MPI through more chains of callers than a recording distinguishes"
    assert [said in gap for gap in describe_gaps(run)].count(True) == 1
    write_archive(run, tmp_path / "profile.otf2")
    assert read_archive(tmp_path / "profile.otf2").sites == run.sites
