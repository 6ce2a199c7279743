# SPDX-License-Identifier: Apache-2.0
"""Build small programs with known call sites, and ask binutils for these sites."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from ibprof.sites.code_location import Frame, ObjectAddresses, ResolvedAddresses, resolve_objects

Build = Callable[..., Path]

SINK = "int sink(int x) { return x; }\n"

C = """\
int sink(int);
static inline int inner(int x)
{
    return sink(x) + 1;
}
static inline int outer(int x) { return inner(x) * 2; }
int main(int count, char **words)
{
    (void)words;
    return outer(count) +
           sink(count);
}
"""

CPP = """\
extern "C" int sink(int);
namespace halo {
template <typename T> struct Box {
    __attribute__((noinline)) T send(T x) { return sink(static_cast<int>(x)) + 1; }
    T twice(T x) { return sink(2) + send(x); }
};
}
int main(int count, char **)
{
    return halo::Box<int>().twice(count) + static_cast<int>(halo::Box<long>().twice(count));
}
"""

FORTRAN = """\
program exchange
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function sink(x) bind(c)
      import c_int
      integer(c_int), value :: x
    end function
  end interface
  call send(3)
contains
  subroutine send(x)
    integer, intent(in) :: x
    if (sink(x) < 0) stop 1
  end subroutine
end program
"""

SOURCES = {"exchange.c": C, "exchange.cpp": CPP, "exchange.f90": FORTRAN}
COMPILERS = {".c": "gcc", ".cpp": "g++", ".f90": "gfortran"}


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build(folder: Path, *options: str, source: str = "exchange.c") -> Path:
    """Build a program whose call sites are calls of `sink`. The function `sink` has no debug information."""
    (folder / "sink.c").write_text(SINK)
    (folder / source).write_text(SOURCES[source])
    run("gcc", "-O1", "-c", folder / "sink.c", "-o", folder / "sink.o")
    program = folder / "exchange"
    run(COMPILERS[Path(source).suffix], *options, folder / source, folder / "sink.o", "-o", program)
    return program


def calls_of(program: Path) -> list[int]:
    """Return the address of the last byte of each call of `sink`, by objdump."""
    lines = run("objdump", "-d", "--no-show-raw-insn", program).splitlines()
    calls = [place for place, line in enumerate(lines) if re.search(r"\t(call|bl)\b.*<sink>", line)]
    return [int(lines[place + 1].split(":")[0], 16) - 1 for place in calls]


def find_places(program: Path, address: int) -> list[Frame]:
    lines = run("addr2line", "-C", "-f", "-i", "-e", program, hex(address)).splitlines()
    pairs = zip(lines[::2], (line.split(" (")[0].rpartition(":") for line in lines[1::2]), strict=True)
    return [Frame(function, os.path.normpath(file), int(line)) for function, (file, _, line) in pairs if line.isdigit()]


def build_id_of(program: Path) -> str:
    found = re.search(r"Build ID: (\w+)", run("readelf", "-n", program))
    return found[1] if found else ""


def resolve_addresses(program: str, build_id: str, addresses: Sequence[int]) -> ResolvedAddresses:
    """Return functions and lines at addresses of an object file. The arguments are the fields of `ObjectAddresses`."""
    return resolve_objects([ObjectAddresses(program, build_id, tuple(addresses))])[0]


def resolve_calls(program: Path, of: Path | None = None) -> tuple[ResolvedAddresses, list[int]]:
    addresses = calls_of(of or program)
    assert addresses
    return resolve_addresses(str(program), build_id_of(program), addresses), addresses


def check_lines(found: ResolvedAddresses, truth: Path, addresses: list[int]) -> None:
    assert found.note == ""
    expected = [find_places(truth, each) for each in addresses]
    assert [places(frames) for frames in found.frames] == [places(frames) for frames in expected]
    # For the innermost function, addr2line prints the name of the nearest symbol, which may be another function's.
    assert [function_names(frames[1:]) for frames in found.frames] == [
        function_names(frames[1:]) for frames in expected
    ]


def places(frames: Sequence[Frame]) -> list[tuple[str, int]]:
    return [(frame.file, frame.line) for frame in frames]


def function_names(frames: Sequence[Frame]) -> list[str]:
    return [frame.function for frame in frames]
