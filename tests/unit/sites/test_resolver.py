# SPDX-License-Identifier: Apache-2.0
"""Lines of small programs agree with binutils' addr2line. A damaged program or library does not end ibprof."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from contextlib import closing
from pathlib import Path

import pytest

from ibprof.sites.code_location import Limits, ObjectAddresses, resolve_objects
from ibprof.sites.elf_file import ElfFile
from ibprof_testing.samples.compiled import (
    SOURCES,
    Build,
    calls_of,
    check_lines,
    find_places,
    function_names,
    places,
    resolve_addresses,
    resolve_calls,
    run,
)

NO_LINES = "call sites have no line that ibprof can read: compile their code with -g, without -gsplit-dwarf or -gz=zstd"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("options", [("-O0",), ("-O2",), ("-O2", "-no-pie", "-fno-pie")], ids=" ".join)
def test_lines(source: str, options: tuple[str, ...], build: Build) -> None:
    program = build("-g", *options, source=source)
    found, addresses = resolve_calls(program)
    check_lines(found, program, addresses)


def test_callers_that_a_function_was_inlined_into(build: Build) -> None:
    found, _ = resolve_calls(build("-g", "-O2"))
    names = [[(frame.function, frame.line) for frame in frames] for frames in found.frames]
    assert sorted(names) == [[("inner", 4), ("outer", 6), ("main", 10)], [("main", 11)]]


@pytest.mark.parametrize("options", [("-gz",), ("-gdwarf-4",), ("-gdwarf-4", "-gz=zlib-gnu")], ids=" ".join)
def test_forms_of_debug_information(options: tuple[str, ...], build: Build) -> None:
    program = build("-g", "-O2", *options)
    found, addresses = resolve_calls(program)
    check_lines(found, program, addresses)


def test_whole_program_optimization(build: Build) -> None:
    """addr2line finds the lines too, but names the file `<artificial>`."""
    program = build("-g", "-O2", "-flto")
    found, addresses = resolve_calls(program)
    assert not found.note
    assert [[frame.line for frame in frames] for frames in found.frames] == [
        [frame.line for frame in find_places(program, address)] for address in addresses
    ]
    assert {Path(frame.file).name for frames in found.frames for frame in frames} == {"exchange.c"}


@pytest.mark.parametrize("is_packed", [False, True])
def test_split_debug_information(is_packed: bool, build: Build) -> None:
    """The program contains lines; files .dwo and .dwp, which ibprof does not read, contain inlined functions."""
    program = build("-g", "-O2", "-gsplit-dwarf", "-gdwarf-4")
    if is_packed:
        run("dwp", "-e", program, "-o", f"{program}.dwp")
    found, _ = resolve_calls(program)
    assert found.note == ""
    names = [[(frame.function, frame.line) for frame in frames] for frames in found.frames]
    assert sorted(names) == [[("main", 4)], [("main", 11)]]


def test_split_debug_information_of_dwarf_5(build: Build) -> None:
    """libbacktrace 0.1 cannot read lines from split DWARF 5, and a note says so."""
    found, _ = resolve_calls(build("-g", "-O2", "-gsplit-dwarf", "-gdwarf-5"))
    assert found.note == f"2 of 2 {NO_LINES}"


def test_debug_information_in_another_compression(build: Build) -> None:
    zstd = (2).to_bytes(4, sys.byteorder)
    program = build("-g", "-gz")
    with closing(ElfFile(str(program))) as file, program.open("r+b") as content:
        for name in (".debug_info", ".debug_line"):
            content.seek(file.sections[name].offset)
            content.write(zstd)
    found, addresses = resolve_calls(program)
    assert found.note == f"{len(addresses)} of {len(addresses)} {NO_LINES}"


@pytest.mark.parametrize("name", ["two words.c", "größe.c", "日本.c", 'quo"te.c'])
def test_names_of_sources(name: str, build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, name, SOURCES["exchange.c"])
    program = build("-g", "-O2", source=name)
    found, addresses = resolve_calls(program)
    check_lines(found, program, addresses)
    assert {Path(frame.file).name for frames in found.frames for frame in frames} == {name}


def test_functions(build: Build) -> None:
    """Names of functions are written as in the source."""
    found, _ = resolve_calls(build("-g", "-O2", source="exchange.cpp"))
    assert {tuple(function_names(frames)) for frames in found.frames} == {
        (f"halo::Box<{kind}>::send({kind})",) for kind in ("int", "long")
    } | {(f"halo::Box<{kind}>::twice({kind})", "main") for kind in ("int", "long")}
    found, _ = resolve_calls(build("-g", "-O0", source="exchange.f90"))
    assert [function_names(frames) for frames in found.frames] == [["send"]]


def test_stripped_program_has_offsets_only(build: Build) -> None:
    program = build("-g", "-O2")
    addresses = calls_of(program)
    run("strip", program)
    found = resolve_addresses(str(program), "", addresses)
    assert not any(found.frames)
    assert not any(found.symbols)
    assert found.note == "it has no debug information: compile it with -g, or install its debug file"


def test_without_debug_information_functions_are_known(build: Build) -> None:
    program = build("-O0", source="exchange.cpp")
    found, addresses = resolve_calls(program)
    rows = (line.split(maxsplit=2) for line in run("nm", "-C", "--defined-only", program).splitlines())
    begins = {name: int(begin, 16) for begin, _, name in rows}
    assert not any(found.frames)
    assert {symbol.function for symbol in found.symbols if symbol} > {"halo::Box<int>::send(int)"}
    assert [symbol and begins[symbol.function] + symbol.offset for symbol in found.symbols] == addresses


def test_symbols_of_a_stripped_library(build: Build) -> None:
    library = build("-O1", "-fPIC", "-shared", source="exchange.c")
    run("strip", library)
    begin = int(run("nm", "-D", library).split(" T main")[0].split()[-1], 16)
    found = resolve_addresses(str(library), "", [begin + 4])
    assert found.symbols[0] == ("main", 4)


def test_code_without_debug_information_among_other_code(build: Build) -> None:
    program = build("-g", "-O1")
    sink = next(int(line.split()[0], 16) for line in run("nm", program).splitlines() if line.endswith(" sink"))
    found = resolve_addresses(str(program), "", [*calls_of(program), sink])
    assert found.frames[-1] == ()
    assert found.symbols[-1] == ("sink", 0)
    assert found.note == f"1 of {len(found.frames)} {NO_LINES}"


def test_lines_above_the_largest_are_unknown(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """libbacktrace's lines are of type int, so large lines become negative, which an archive cannot store."""
    monkeypatch.setitem(SOURCES, "exchange.c", f'# 3000000000 "exchange.c"\n{SOURCES["exchange.c"]}')
    found, addresses = resolve_calls(build("-g", "-O2"))
    assert all(each.line >= 0 for frames in found.frames for each in frames)
    assert found.note == f"{len(addresses)} of {len(addresses)} {NO_LINES}"


def test_a_caller_in_an_unknown_file_is_kept(build: Build, tmp_path: Path) -> None:
    build("-g")
    assembly, program = tmp_path / "exchange.s", tmp_path / "changed"
    run("gcc", "-O2", "-gdwarf-4", "-dA", "-S", tmp_path / "exchange.c", "-o", assembly)
    decl_file = "0x3a"
    changed, count = re.subn(r"0x58(?=\s.*DW_AT_call_file)", decl_file, assembly.read_text())
    assert count
    assembly.write_text(changed)
    run("gcc", assembly, tmp_path / "sink.o", "-o", program)
    found, _ = resolve_calls(program)
    names = [[(frame.function, Path(frame.file).name) for frame in frames] for frames in found.frames]
    assert sorted(names) == [[("inner", "exchange.c"), ("outer", ""), ("main", "")], [("main", "exchange.c")]]


def test_program_that_was_built_again(build: Build) -> None:
    found = resolve_addresses(str(build("-g")), "0123", [0x1150])
    assert found.frames == ((),)
    assert found.symbols == (None,)
    assert "build ID" in found.note
    assert "0123" in found.note


def test_files_that_are_no_programs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "text").write_text("text")
    (tmp_path / "empty").touch()
    (tmp_path / "head").write_bytes(b"\x7fELF\x02\x01\x01")
    (tmp_path / "loop").symlink_to("loop")
    names = ("fifo", "text", "empty", "head", "loop", "missing", ".")
    found = resolve_objects([ObjectAddresses(str(tmp_path / name), "", (1, 2)) for name in names])
    assert [each.note.split(":")[0] for each in found] == ["it cannot be read"] * len(names)
    assert all(each.frames == ((), ()) and each.symbols == (None, None) for each in found)
    assert resolve_addresses("a\0b", "", [1]).note
    assert resolve_addresses("a\udcff", "", [1]).note == "it cannot be read: no such file or directory"


def test_huge_file(build: Build, tmp_path: Path) -> None:
    program = build("-g")
    addresses = calls_of(program)
    with program.open("r+b") as file:
        file.truncate(1 << 40)
    assert len(resolve_addresses(str(program), "", addresses).frames) == len(addresses)


def test_limits_do_not_end_the_caller(build: Build) -> None:
    program = build("-g")
    asked = [ObjectAddresses(str(program), "", tuple(calls_of(program)))] * 2
    for limits in (Limits(memory_bytes=1 << 20), Limits(total_seconds=0)):
        found = resolve_objects(asked, limits)
        assert len(found) == 2
        assert all(each.note and not any(each.frames) for each in found)


def test_paths_of_sources_are_whole(build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Build systems give the compiler relative paths. ibprof adds the compiler's working folder."""
    program = build("-g")
    (tmp_path / "near").mkdir()
    monkeypatch.chdir(tmp_path / "near")
    for version in ("4", "5"):
        run("gcc", f"-gdwarf-{version}", "../exchange.c", "../sink.o", "-o", program)
        found, addresses = resolve_calls(program)
        check_lines(found, program, addresses)
        assert {frame.file for frames in found.frames for frame in frames} == {str(tmp_path / "exchange.c")}


def test_lines_of_a_large_library() -> None:
    """For addresses throughout an optimised library of 23 MB, ibprof finds the lines that addr2line finds."""
    library = Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME"))
    rows = [line.split() for line in run("nm", "--defined-only", "-S", library).splitlines()]
    ranges = [(int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4 and row[2] in "Tt"]
    addresses = [begin + size // 2 for begin, size in ranges[:: max(1, len(ranges) // 150)]]
    found = resolve_addresses(str(library), "", addresses).frames
    expected = [find_places(library, address) for address in addresses]
    same = sum(places(a) == places(b) for a, b in zip(found, expected, strict=True) if b)
    assert same >= 0.97 * sum(map(bool, expected))


def mock_reader(folder: Path, monkeypatch: pytest.MonkeyPatch, statements: str = "") -> None:
    """Make the reading process load a mock library with these statements; without statements, there is no library."""
    (folder / "lib").mkdir(parents=True)
    if statements:
        (folder / "mock.c").write_text(
            "#include <stdlib.h>\n#include <string.h>\n"
            "int ibp_find_lines(const char *path, void *addresses, size_t count, void *found, char *message)\n"
            f"{{ {statements} }}\n"
        )
        run("gcc", "-shared", "-fPIC", folder / "mock.c", "-o", folder / "lib" / "libibprof_lines.so")
    (folder / "sitecustomize.py").write_text(
        "from pathlib import Path\nfrom ibprof.native import installed_files\n"
        f"installed_files.files = lambda _: Path({str(folder)!r})\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_without_the_library(build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mock_reader(tmp_path / "mock", monkeypatch)
    found, _ = resolve_calls(build("-g"))
    assert "libibprof_lines.so is missing: this ibprof was not built" in found.note
    assert {symbol.function for symbol in found.symbols if symbol} == {"main", "inner"}


def test_a_library_that_cannot_be_loaded_is_not_called_damaged_debug_information(
    build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mock_reader(tmp_path / "mock", monkeypatch)
    (tmp_path / "mock" / "lib" / "libibprof_lines.so").write_text("no library")
    found, _ = resolve_calls(build("-g"))
    assert "the library that reads source lines cannot be loaded" in found.note
    assert "damaged" not in found.note


def test_a_reader_that_ends_takes_nothing_else_with_it(
    build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The mock library crashes on one file."""
    program = build("-g")
    other = tmp_path / "crash"
    other.write_bytes(program.read_bytes())
    crash = 'if (strstr(path, "crash")) abort(); strcpy(message, "mock"); return -1;'
    mock_reader(tmp_path / "mock", monkeypatch, crash)
    addresses = tuple(calls_of(program))
    found = resolve_objects([ObjectAddresses(str(path), "", addresses) for path in (program, other, program)])
    assert [each.note for each in found] == [
        "its debug information is damaged (mock)",
        "its debug information could not be read: it is damaged, or needs too much memory (signal 6)",
        "its debug information is damaged (mock)",
    ]
    assert all(each.symbols == found[0].symbols and all(each.symbols) for each in found)
