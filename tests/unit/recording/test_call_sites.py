# SPDX-License-Identifier: Apache-2.0
"""Call sites and callers keep the numbers that processes recorded, and get lines and names."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ibprof.errors import InputError
from ibprof.profile.profile_data import OTHER_SITES, Site
from ibprof.recording.call_sites import resolve_sites
from ibprof.recording.recording_reader import read_recording
from ibprof.sites.code_location import Frame
from ibprof_testing.samples.recordings import Process, Records, counter, make_recording

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
    """Return the return address of the call of `sink`, and the start address of the calling function."""
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
    assert notes == ("call sites without line numbers in /none/libx.so: it cannot be read: no such file or directory",)


def test_a_program_without_build_id_must_be_older_than_the_run(program: Path) -> None:
    address, _ = return_address(program)
    run("objcopy", "--remove-section", ".note.gnu.build-id", program)
    recorded = [Site("", 0, "", str(program), address)]
    began_ns = time.time_ns()
    (site,), notes = resolve_sites(recorded, began_ns)
    assert (site.name, notes) == ("halo.c:2", ())
    while time.time_ns() < began_ns + 20_000_000:  # the kernel may set a file's time to the last clock tick
        time.sleep(0.001)
    (program.with_name("halo.c")).write_text("\n" + SOURCE)
    objects = (program.with_name("halo.c"), program.with_name("sink.o"))
    run("gcc", "-g", "-O2", "-Wl,--build-id=none", *objects, "-o", program.with_name("new"))
    os.utime(program.with_name("new"), (0, 0))  # as if an older build was copied back
    program.with_name("new").rename(program)
    (site,), (note,) = resolve_sites(recorded, began_ns)
    assert site.name == f"halo+{address:#x}"
    assert note == (
        f"call sites without line numbers in {program}: it has no build ID, and was changed after the run began: "
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


SCRIPT: Records = ({"kind": 1, "path": b"/opt/solver.py"},)


def site(line: int, caller: int = 0) -> dict[str, Any]:
    return {"object": 0, "line": line, "caller": caller, "function": b"f"}


def process(rank: int, sites: Records, used: list[int]) -> Process:
    counters = [counter(1, 5, site=number) for number in used]
    return Process(rank, objects=[SCRIPT], sites=[sites], counters=[counters])


def test_callers_are_sites_only_where_they_call_mpi(tmp_path: Path) -> None:
    """Two processes number the same call chains in different orders."""
    first = process(0, [site(30), site(20, 1), site(10, 2), site(10, 1)], [3, 4])
    second = process(1, [site(30), site(10, 1), site(20, 1), site(10, 3)], [2, 4, 3])
    run = read_recording(make_recording(tmp_path, [first, second]))
    labels = [each.label.replace("solver.py:", "") for each in run.sites]
    assert labels == ["10 < 20 < 30", "10 < 30", "20 < 30"]
    found = zip(run.counters.rank.tolist(), run.counters.site.tolist(), strict=True)
    assert {(rank, labels[number - 1]) for rank, number in found} == {
        (0, "10 < 20 < 30"),
        (0, "10 < 30"),
        (1, "10 < 30"),
        (1, "10 < 20 < 30"),
        (1, "20 < 30"),
    }


@pytest.mark.parametrize(
    ("sites", "message"),
    [
        ([site(10, 2)], "expected a caller below 1, found 1"),
        ([site(10, 1)], "expected a caller that precedes its site, found caller 1 of site 1"),
        ([site(10, 2), site(20)], "expected a caller that precedes its site, found caller 2 of site 1"),
        ([site(10, 2), site(20, 1)], "expected a caller that precedes its site, found caller 2 of site 1"),
    ],
)
def test_callers_that_point_nowhere_are_refused(sites: Records, message: str, tmp_path: Path) -> None:
    recording = make_recording(tmp_path, [process(0, [site(1)], [1]), process(1, sites, [1])])
    with pytest.raises(InputError, match=message):
        read_recording(recording)
