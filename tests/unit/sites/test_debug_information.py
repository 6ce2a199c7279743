# SPDX-License-Identifier: Apache-2.0
"""Lines from separate debug files equal the lines that binutils' addr2line finds in the unsplit program."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ibprof.sites import debug_information
from ibprof.sites.debug_information import find_debug_files
from ibprof_testing.machine import find_program
from ibprof_testing.samples.compiled import (
    Build,
    build_id_of,
    calls_of,
    check_lines,
    resolve_addresses,
    resolve_calls,
    run,
)

NO_LINES = "it has no debug information: compile it with -g, or install its debug file"


def split(program: Path, debug: Path) -> Path:
    """Move the debug information of a program to another file; return a copy of the original program."""
    whole = program.with_suffix(".whole")
    whole.write_bytes(program.read_bytes())
    debug.parent.mkdir(parents=True, exist_ok=True)
    run("objcopy", "--only-keep-debug", program, debug)
    run("strip", program)
    run("objcopy", f"--add-gnu-debuglink={debug}", program)
    return whole


@pytest.mark.parametrize("options", [(), ("-Wl,--build-id=none",), ("-no-pie",)], ids=" ".join)
@pytest.mark.parametrize("folder", ["", ".debug"])
def test_next_to_the_program(options: tuple[str, ...], folder: str, build: Build, tmp_path: Path) -> None:
    program = build("-g", "-O2", *options)
    whole = split(program, tmp_path / folder / "exchange.debug")
    found, addresses = resolve_calls(program, whole)
    check_lines(found, whole, addresses)
    assert all(found.symbols)


@pytest.mark.parametrize("options", [(), ("-Wl,--build-id=none",)], ids=" ".join)
def test_of_another_build(options: tuple[str, ...], build: Build, tmp_path: Path) -> None:
    other = build("-g", "-O0", *options).rename(tmp_path / "other")
    program = build("-g", "-O2", *options)
    whole = split(program, tmp_path / "exchange.debug")
    run("objcopy", "--only-keep-debug", other, tmp_path / "exchange.debug")
    found, _ = resolve_calls(program, whole)
    assert not any(found.frames)
    assert found.note == NO_LINES


def test_in_a_folder_of_the_system(build: Build, tmp_path: Path) -> None:
    program = build("-g")
    build_id = build_id_of(program)
    debug = tmp_path / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    split(program, debug)
    # Search once with the opened program, and once without it.
    for each in debug_information.open_program(str(program), "")[0], None:
        (file,) = find_debug_files(each, build_id, [str(tmp_path / "debug")])
        assert (file.path, file.has_lines) == (str(debug), True)
        file.close()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Start a server of debug files; return the folder that it serves."""
    find_program("debuginfod-find", package="debuginfod")
    folder = tmp_path / "server"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder)) as http:
        threading.Thread(target=http.serve_forever).start()
        monkeypatch.setenv("DEBUGINFOD_URLS", f"http://127.0.0.1:{http.server_port}")
        monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
        yield folder
        http.shutdown()


def test_from_a_debuginfod(build: Build, server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = build("-g", "-O2")
    build_id = build_id_of(program)
    whole = split(program, server / "buildid" / build_id / "debuginfo")
    found, addresses = resolve_calls(program, whole)
    check_lines(found, whole, addresses)
    program.unlink()
    check_lines(resolve_addresses(str(program), build_id, addresses), whole, addresses)
    monkeypatch.delenv("DEBUGINFOD_URLS")
    assert "no such file" in resolve_addresses(str(program), build_id, addresses).note


def test_a_debuginfod_is_not_asked_for_what_is_here(build: Build, server: Path, tmp_path: Path) -> None:
    program = build("-g", "-O2")
    whole = split(program, tmp_path / "exchange.debug")
    found, addresses = resolve_calls(program, whole)
    check_lines(found, whole, addresses)
    assert not (tmp_path / "cache").exists()


def test_a_debuginfod_without_the_file(build: Build, server: Path) -> None:
    program = build("-g", "-O2")
    whole = split(program, server / "none")
    assert resolve_calls(program, whole)[0].note == NO_LINES


def test_a_debuginfod_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock of debuginfod-find never answers, so ibprof waits for an answer only once."""
    mock = tmp_path / "debuginfod-find"
    mock.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\nexec sleep 600\n")
    mock.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1")
    monkeypatch.setattr(debug_information, "DEBUGINFOD_SECONDS", 0.5)
    for build_id in ("ab12", "cd34", "ef56"):
        assert not list(find_debug_files(None, build_id))
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_a_debuginfod_that_cannot_be_reached(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_program("debuginfod-find", package="debuginfod")
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1 http://no.such.host.invalid")
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    program = build("-g", "-O2")
    whole = split(program, tmp_path / "elsewhere" / "exchange.debug")
    found, _ = resolve_calls(program, whole)
    assert found.note == NO_LINES


def test_compressed_by_dwz(build: Build) -> None:
    program = build("-g", "-O2", source="exchange.cpp")
    whole = split(program, program.with_suffix(".debug"))
    run(find_program("dwz", package="dwz"), program.with_suffix(".debug"))
    found, addresses = resolve_calls(program, whole)
    check_lines(found, whole, addresses)


def test_parts_in_a_file_of_several_programs(build: Build, tmp_path: Path) -> None:
    """dwz -m moves the names of inlined functions to a file that several programs share."""
    programs = [build("-g", "-O2", source="exchange.cpp").rename(tmp_path / name) for name in ("a", "b")]
    addresses = calls_of(programs[0])
    whole = tmp_path / "whole"
    whole.write_bytes(programs[0].read_bytes())
    run(find_program("dwz", package="dwz"), "-m", tmp_path / "common", *programs)
    check_lines(resolve_addresses(str(programs[0]), "", addresses), whole, addresses)
