# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ibprof.profile.profile_data import OTHER_SITES, Site
from ibprof.recording.site_lines import resolve_sites
from ibprof.sites.code_location import Frame

SOURCE = """\
int sink(int);
static inline int send(int x) { return sink(x) + 1; }
int main(int count, char **words)
{
    (void)words;
    return send(count);
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "halo.c").write_text(SOURCE)
    (tmp_path / "sink.c").write_text("int sink(int x) { return x; }")
    run("gcc", "-O1", "-c", tmp_path / "sink.c", "-o", tmp_path / "sink.o")
    run("gcc", "-g", "-O2", tmp_path / "halo.c", tmp_path / "sink.o", "-o", tmp_path / "halo")
    return tmp_path / "halo"


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def return_address(program: Path) -> tuple[int, int]:
    """Where the call of `sink` returns to, and the begin of its function."""
    lines = run("objdump", "-d", "--no-show-raw-insn", "--disassemble=main", program).splitlines()
    call = next(number for number, line in enumerate(lines) if "call" in line)
    begin = next(line for line in lines if line.endswith("<main>:"))
    return int(lines[call + 1].split(":")[0], 16), int(begin.split()[0], 16)


def test_sites_of_all_kinds(program: Path) -> None:
    address, _ = return_address(program)
    script = Site("/opt/solver.py", 212, "step", "/opt/solver.py")
    recorded = (script, Site("", 0, "", str(program), address), OTHER_SITES, Site("", 0, "", "/none/libx.so", 16))
    sites, notes = resolve_sites(recorded)
    assert [site.name for site in sites] == ["solver.py:212", "halo.c:2", "(other sites)", "libx.so+0x10"]
    file = str(program.with_suffix(".c"))
    assert (sites[1].function, sites[1].file, sites[1].line) == ("send", file, 2)
    assert sites[1].inlined_in == (Frame("main", file, 6),)
    assert notes == ("call sites without lines in /none/libx.so: it cannot be read: no such file or directory",)


def test_a_program_without_build_id_must_be_older_than_the_run(program: Path) -> None:
    address, _ = return_address(program)
    run("objcopy", "--remove-section", ".note.gnu.build-id", program)
    recorded = [Site("", 0, "", str(program), address)]
    began_ns = time.time_ns()
    (site,), notes = resolve_sites(recorded, began_ns)
    assert (site.name, notes) == ("halo.c:2", ())
    while time.time_ns() < began_ns + 20_000_000:  # files have the time of the kernel's last tick
        time.sleep(0.001)
    (program.with_name("halo.c")).write_text("\n" + SOURCE)
    objects = (program.with_name("halo.c"), program.with_name("sink.o"))
    run("gcc", "-g", "-O2", "-Wl,--build-id=none", *objects, "-o", program.with_name("new"))
    os.utime(program.with_name("new"), (0, 0))  # as when an older build is copied back
    program.with_name("new").rename(program)
    (site,), (note,) = resolve_sites(recorded, began_ns)
    assert site.name == f"halo+{address:#x}"
    assert note == (
        f"call sites without lines in {program}: it has no build ID, and was changed after the run began: "
        "link it with -Wl,--build-id"
    )


def test_what_is_around_a_site_has_lines(program: Path) -> None:
    address, _ = return_address(program)
    script, bare = Site("/opt/solver.py", 212, "step", "/opt/solver.py"), Site("", 0, "", str(program), address)
    (site, alone), _ = resolve_sites([replace(bare, callers=(script, bare)), bare])
    assert site.label == "halo.c:2 < halo.c:6 < solver.py:212 < halo.c:2 < halo.c:6"
    assert alone.label == "halo.c:2 < halo.c:6"
    assert [caller.function for caller in site.callers] == ["main", "step", "send", "main"]
    assert not any(each.inlined_in for each in (site, alone, *site.callers))
    assert [caller.object for caller in site.callers] == [str(program), "/opt/solver.py", str(program), str(program)]


def test_an_offset_is_that_of_the_return_address(program: Path) -> None:
    address, begin = return_address(program)
    run("strip", "-g", program)
    (site,), notes = resolve_sites([Site("", 0, "", str(program), address)])
    assert (site.function, site.name) == ("main", f"main+{address - begin:#x}")
    assert len(notes) == 1


def test_a_program_that_was_built_again_has_no_lines(program: Path) -> None:
    recorded = [Site("", 0, "", str(program), 0x1149, build_id=each) for each in ("ab12", "cd34")]
    sites, notes = resolve_sites(recorded)
    assert [site.line for site in sites] == [0, 0]
    assert ["ab12" in notes[0], "cd34" in notes[1]] == [True, True]
