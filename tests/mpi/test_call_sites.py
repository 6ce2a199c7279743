# SPDX-License-Identifier: Apache-2.0
"""Each counter has the line of the program that sent the bytes. binutils' addr2line is the reference for lines."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from ibprof.archive.otf2_archive import read_archive
from ibprof.cli.main import main
from ibprof.profile.profile_data import Direction, Kind, Profile, Site
from ibprof.recording.recording_reader import read_recording
from ibprof_testing.mpi.lines import sent_by_lines, stated_lines
from ibprof_testing.mpi.mpis import (
    INTEL,
    MPICH_LIKE,
    MPICH_SYSTEM,
    NAMES,
    PROGRAMS,
    SYSTEM,
    THROUGH_NETWORK,
    Build,
    find_mpi,
    find_mpich_like,
    in_every_run,
    run_mpi,
)

Lines = dict[tuple[str, int], int]


def expected_lines(source: str) -> Lines:
    return stated_lines(PROGRAMS / source)


def line_of(site: Site) -> int:
    found = subprocess.run(
        ["addr2line", "-e", site.object, hex(site.address - 1)], capture_output=True, text=True, check=True
    )
    return int(found.stdout.split()[0].rpartition(":")[2])


def recorded_lines(run: Profile) -> Lines:
    lines: Counter[tuple[str, int]] = Counter()
    sent = (run.counters.direction == Direction.SENT) & (run.counters.kind == Kind.USER)
    for row in np.flatnonzero(sent):
        operation, site = run.operations[run.counters.operation[row]], int(run.counters.site[row])
        line = line_of(run.sites[site - 1]) if site else 0
        lines[operation, line] += int(run.counters.bytes[row])
        if line:
            assert line == run.sites[site - 1].line
    return dict(lines)


def named_lines(run: Profile, source: str) -> Lines:
    """Return (operation, line) -> bytes, from the names of the sites in the file `source`."""
    lines: Counter[tuple[str, int]] = Counter()
    sent = (run.counters.direction == Direction.SENT) & (run.counters.kind == Kind.USER)
    for row in np.flatnonzero(sent & (run.counters.site > 0)):
        site = run.sites[run.counters.site[row] - 1]
        file, _, line = site.name.rpartition(":")
        assert (file, Path(site.file).name, int(line)) == (source, source, site.line)
        lines[run.operations[run.counters.operation[row]], int(line)] += int(run.counters.bytes[row])
    return dict(lines)


def record(
    name: str,
    source: str,
    build: Build,
    folder: Path,
    options: tuple[str, ...] = ("-O2",),
    env: Mapping[str, str] = THROUGH_NETWORK,
) -> Profile:
    mpi = find_mpich_like(name) if name in MPICH_LIKE else find_mpi(name)
    program = build(mpi, source, "-g", *options)
    run_mpi(mpi, 2, [program], recording=folder / "recording", env={**THROUGH_NETWORK, **env})
    return read_recording(folder / "recording")


@pytest.mark.parametrize("name", in_every_run(*NAMES, *MPICH_LIKE))
@pytest.mark.parametrize("options", [("-O0",), ("-O2",), ("-O2", "-no-pie", "-fno-pie")], ids=" ".join)
def test_lines_of_c(name: str, options: tuple[str, ...], build: Build, tmp_path: Path) -> None:
    expected = expected_lines("call_sites.c")
    if name == INTEL:  # Intel MPI's persistent collectives have other tags than MPICH's
        options += ("-DNO_PERSISTENT_COLLECTIVES",)
        expected = {key: count for key, count in expected.items() if key[0] != "BCAST_INIT"}
    run = record(name, "call_sites.c", build, tmp_path, options)
    for lines in (recorded_lines(run), named_lines(run, "call_sites.c")):
        assert {key: lines.get(key) for key in expected} == expected
    sent = (run.counters.direction == Direction.SENT) & (run.counters.kind == Kind.USER)
    assert {run.operations[run.counters.operation[row]] for row in np.flatnonzero(sent & (run.counters.site == 0))} <= {
        "NONE",
        "FINALIZE",
    }


# Intel MPI is not tested with mpi_f08, because PyPI's Intel MPI lacks this module.
@pytest.mark.parametrize(
    ("name", "source"),
    [
        (name, source)
        for name in (SYSTEM, MPICH_SYSTEM)
        for source in ("call_sites_h.f", "call_sites.f90", "call_sites_f08.f90")
    ]
    + [(INTEL, "call_sites.f90")],
)
@pytest.mark.parametrize("callers", ["0", "2"])
def test_lines_of_fortran(name: str, source: str, callers: str, build: Build, tmp_path: Path) -> None:
    """The line is the program's, not the Fortran binding's. With callers, the outermost caller is gfortran's main()."""
    run = record(name, source, build, tmp_path, env={"IBPROF_CALLERS": callers} | THROUGH_NETWORK)
    assert any(site.callers for site in run.sites) == (callers != "0")
    for lines in (recorded_lines(run), named_lines(run, source)):
        assert {key: lines.get(key) for key in expected_lines(source)} == expected_lines(source)


def test_lines_in_an_archive(build: Build, tmp_path: Path) -> None:
    """`ibprof collect` stores lines, so the lines outlive the program. OTF2's own tool prints them."""
    mpi, program = find_mpi(SYSTEM), tmp_path / "program"
    shutil.copy(build(mpi, "call_sites.c", "-g", "-O2"), program)
    run_mpi(mpi, 2, [program], recording=tmp_path / "recording", env=THROUGH_NETWORK)
    run = read_recording(tmp_path / "recording")
    assert any(site.inlined_in for site in run.sites)
    assert main(["collect", str(tmp_path / "recording"), "-o", str(tmp_path / "profile.otf2")]) == 0
    program.unlink()
    assert read_archive(tmp_path / "profile.otf2").sites == run.sites
    printed = subprocess.run(
        ["otf2-print", "-G", tmp_path / "profile.otf2"], capture_output=True, text=True, check=True
    )
    assert "warning" not in printed.stderr
    for site in run.sites:
        assert re.search(
            rf'SOURCE_CODE_LOCATION .*File: "{re.escape(site.file)}".* Line Number: {site.line}\n', printed.stdout
        )
        assert f'"{site.name}"' in printed.stdout
    without = read_recording(tmp_path / "recording")
    assert without.sites_without_lines == (
        f"call sites without line numbers in {program}: it cannot be read: no such file or directory",
    )
    assert {site.name for site in without.sites} == {f"{program.name}+{site.address:#x}" for site in without.sites}


def test_sites_of_a_program_without_debug_information(
    build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = build(find_mpi(SYSTEM), "call_sites.c", "-O2")
    run_mpi(find_mpi(SYSTEM), 2, [program], recording=tmp_path / "recording", env=THROUGH_NETWORK)
    run = read_recording(tmp_path / "recording")
    assert all(re.fullmatch(r"\w+\+0x[0-9a-f]+", site.name) for site in run.sites)
    assert "main" in {site.function for site in run.sites}
    assert main(["info", str(tmp_path / "recording")]) == 0
    reason = "it has no debug information: compile it with -g, or install its debug file"
    assert f"  call sites without line numbers in {program}: {reason}\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", [SYSTEM, MPICH_SYSTEM])
@pytest.mark.parametrize("options", [("-O0",), ("-O2",)], ids=" ".join)
def test_lines_of_cpp(name: str, options: tuple[str, ...], build: Build, tmp_path: Path) -> None:
    """Calls are in templates, a lambda, a destructor that an exception runs, and a library opened late."""
    mpi = find_mpich_like(name) if name in MPICH_LIKE else find_mpi(name)
    late = build(mpi, "call_sites_late.c", "-g", "-shared", "-fPIC")
    program = build(mpi, "call_sites.cpp", "-g", "-std=gnu++17", *options)
    run_mpi(mpi, 2, [program, late], recording=tmp_path, env=THROUGH_NETWORK)
    run = read_recording(tmp_path)
    stated = {source: stated_lines(PROGRAMS / source) for source in ("call_sites.cpp", "call_sites_late.c")}
    expected = {(source, *key): count for source, lines in stated.items() for key, count in lines.items()}
    assert len(expected) == 5
    assert {key: count for key, count in sent_by_lines(run).items() if key[0]} == expected
    assert not run.sites_without_lines
    functions = {site.function for site in run.sites} | {
        frame.function for site in run.sites for frame in site.inlined_in
    }
    assert "Guard::~Guard()" in functions
    # Debug information of inlined functions has no parameters.
    assert {"everywhere<char>", "everywhere<double>"} <= set(re.findall(r"everywhere<\w+>", " ".join(functions)))


@pytest.mark.parametrize("name", [SYSTEM, MPICH_SYSTEM])
@pytest.mark.parametrize("callers", ["0", "2"])
def test_libraries_that_are_closed(name: str, callers: str, build: Build, tmp_path: Path) -> None:
    """Lines of a library at the address of a closed library are separate sites. Reopening adds no site."""
    mpi = find_mpich_like(name) if name in MPICH_LIKE else find_mpi(name)
    library = ("closed_libraries.c", "-g", "-O2", "-shared", "-fPIC")
    opened = [build(mpi, *library, f"-DCLOSED={number}") for number in (1, 2)]
    program = build(mpi, "closed_libraries.c", "-g", "-O2")
    env = {**THROUGH_NETWORK, "IBPROF_CALLERS": callers}
    ended = run_mpi(mpi, 2, [program, *opened], recording=tmp_path, env=env)
    assert "\n0 rounds" not in f"\n{ended.stdout}", "the libraries had addresses of their own"
    run = read_recording(tmp_path)
    expected = {("closed_libraries.c", *key): count for key, count in expected_lines("closed_libraries.c").items()}
    assert {key: count for key, count in sent_by_lines(run).items() if key[0]} == expected
    assert len(run.sites) < 20


def test_lines_of_a_stripped_program(build: Build, tmp_path: Path) -> None:
    """With a debug file in the program's folder, sites have lines. Without this file, sites have addresses."""
    mpi, program, lines = find_mpi(SYSTEM), tmp_path / "program", tmp_path / "program.debug"
    shutil.copy(build(mpi, "call_sites.c", "-g", "-O2"), program)
    subprocess.run(["objcopy", "--only-keep-debug", program, lines], check=True)
    subprocess.run(["strip", "--strip-all", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={lines}", program], check=True)
    run_mpi(mpi, 2, [program], recording=tmp_path / "recording", env=THROUGH_NETWORK)
    expected = expected_lines("call_sites.c")
    found = named_lines(read_recording(tmp_path / "recording"), "call_sites.c")
    assert {key: found.get(key) for key in expected} == expected
    lines.unlink()
    run = read_recording(tmp_path / "recording")
    assert {site.name for site in run.sites} == {f"program+{site.address:#x}" for site in run.sites}
    assert run.sites_without_lines


def test_without_sites(build: Build, tmp_path: Path) -> None:
    run = record(SYSTEM, "call_sites.c", build, tmp_path, env={"IBPROF_SITES": "0"})
    assert not run.sites
    assert not run.counters.site.any()
