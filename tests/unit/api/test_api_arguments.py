# SPDX-License-Identifier: Apache-2.0
"""The error for invalid arguments of the Python API states the expected value, and shows no internal frames."""

from __future__ import annotations

import lzma
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ibprof
import ibprof_converter as ib
import ibprof_lab as lab
from ibprof.archive.otf2_archive import write_archive
from ibprof.errors import IbprofError, InconsistentError, InputError, UsageError
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

FABRIC = ib.read_fabric("xgft:2:4,4:1,2")
RUN = make_profile(
    [Count(0, 1, 5000, operation=0), Count(1, 0, 70, operation=1)],
    [make_rank(0, 0), make_rank(1, 1)],
    [make_host("elsewhere1"), make_host("elsewhere2")],
    operations=("BCAST", "SEND"),
)
LOADS = ib.load_links(FABRIC, RUN, placement="packed")
LST = find_sample("testbed44", IBDIAGNET)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of files that no call can read: empty, cut, binary, or with invalid contents."""
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("text").write_text("hello\n")
    Path("binary").write_bytes(bytes(range(256)))
    Path("nothing").touch()
    Path("cut.lst.xz").write_bytes(lzma.compress(LST.read_bytes())[:500])
    Path("bad.csv").write_text("src_lid,dst_lid,bytes\n1,2,x\n")
    Path("placed.csv").write_text("rank,host\n0,nowhere\n")
    return tmp_path


def raised_by(call: Callable[[], object], kind: type[BaseException] = IbprofError) -> BaseException:
    """Return the error of a call; check that the error has no cause and no frames of ibprof's modules."""
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    if issubclass(kind, IbprofError):
        frames = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
        houses = [Path(str(package.__file__)).parent for package in (ibprof, ib)]
        assert {frame.name for frame in frames if any(map(frame.is_relative_to, houses))} == {"errors.py"}
    return error


NO_FILES: list[tuple[str, Callable[[], object], str]] = [
    (
        "profile",
        lambda: ibprof.load_profile("none.otf2"),
        "none.otf2: expected a profile or a recording, found nothing",
    ),
    ("profile", lambda: ibprof.load_profile(Path("text")), "text: expected a profile or a recording, found something"),
    ("profile", lambda: ibprof.load_profile("empty"), "empty: expected files that end with .ibprof, found none"),
    ("profile", lambda: ibprof.load_profile("/proc/self/mem"), "expected a file that can be read or written, found "),
    ("fabric", lambda: ib.read_fabric("none"), "none: expected a readable file, found no such file or directory"),
    ("fabric", lambda: ib.read_fabric("empty"), "empty: expected a folder with dumps of a fabric"),
    ("fabric", lambda: ib.read_fabric("text"), "text:1: expected links in one of the forms"),
    ("fabric", lambda: ib.read_fabric("binary"), "binary: expected a text file, found binary data"),
    ("fabric", lambda: ib.read_fabric("nothing"), "nothing: expected text, found an empty file"),
    ("fabric", lambda: ib.read_fabric("cut.lst.xz"), "cut.lst.xz: expected a readable file, found damaged data"),
    ("tables", lambda: ib.read_fabric(LST, tables="none"), "none: expected a readable file"),
    ("check", lambda: ib.check("text"), "text:1: expected links in one of the forms"),
    ("traffic", lambda: ib.read_traffic("bad.csv"), "bad.csv:2: expected a number of bytes, found 'x'"),
    ("traffic", lambda: ib.load_links(FABRIC, "none"), "none: expected a profile or a recording, found nothing"),
    ("placement", lambda: ib.load_links(FABRIC, RUN, placement=Path("placed.csv")), "placed.csv:2: expected a host"),
    ("counters", lambda: ib.load_links(FABRIC, RUN, placement="packed", counters="none"), "none: expected a profile"),
    ("report", lambda: ib.report("text"), "text:1: expected the header"),
    ("diff", lambda: ib.diff("none", RUN), "none: expected a profile or a recording, found nothing"),
    ("hosts", lambda: ib.place(FABRIC, RUN, hosts="none"), "none: expected a readable file"),
    ("view", lambda: ib.view(LOADS, rank_data="none"), "none: expected a file that can be read or written, found no"),
    ("study", lambda: lab.simulate("none", "out"), "none: expected a file that can be read or written, found no such"),
    ("study", lambda: lab.simulate("text", "out"), "text: expected the study to be a mapping, found 'hello'"),
]


@pytest.mark.parametrize(("call", "said"), [row[1:] for row in NO_FILES], ids=[row[0] for row in NO_FILES])
def test_a_wrong_file_is_named_with_what_was_expected_and_found(call: Callable[[], object], said: str) -> None:
    error = raised_by(call, InputError)
    assert said in str(error)


NO_ARGUMENTS: list[tuple[str, Callable[[], object], str]] = [
    ("no-fabric", ib.read_fabric, "expected at least one fabric"),
    ("no-fabric", ib.check, "expected at least one fabric"),
    ("no-shape", lambda: ib.read_fabric("xgft:4"), "xgft:4: expected one of"),
    ("expression", lambda: ib.read_fabric(LST, host_names="("), "expected a regular expression, found '('"),
    ("expression", lambda: ib.read_fabric(LST, level_hosts="("), "expected a regular expression, found '('"),
    ("tables", lambda: ib.read_fabric(LST, tables=["a", "b"]), "tables: expected one file for each of 1 LST, found 2"),
    ("pattern", lambda: ib.read_traffic("pattern:none", FABRIC), "pattern:none: unknown pattern"),
    ("pattern", lambda: ib.read_traffic("pattern:all-to-all"), "a pattern covers all hosts of a fabric"),
    (
        "pattern-of-another-fabric",
        lambda: ib.load_links(ib.read_fabric("tree:2,2"), ib.read_traffic("pattern:shift:1", FABRIC)),
        "pattern:shift:1 was read for a fabric of 16 hosts, and this fabric has 4: ",
    ),
    (
        "pattern-of-a-smaller-fabric",
        lambda: ib.load_links(FABRIC, ib.read_traffic("pattern:shift:1", ib.read_fabric("tree:2,2"))),
        "pattern:shift:1 was read for a fabric of 4 hosts, and this fabric has 16: ",
    ),
    ("no-traffic", lambda: ib.load_links(FABRIC), "expected at least one traffic"),
    (
        "by",
        lambda: ib.load_links(FABRIC, RUN, placement="packed", by="job"),
        "expected some of region, operation and site",
    ),
    ("rails", lambda: ib.load_links(FABRIC, RUN, placement="packed", rails="x"), "--rails x: expected one of split"),
    ("placements", lambda: ib.load_links(FABRIC, RUN, RUN, placement="packed"), "expected one for each of 2 jobs"),
    ("top", lambda: ib.report(LOADS, top=-1), "top: expected a number of link directions, found -1"),
    ("placed", lambda: ib.report(LOADS, placement="packed"), "loads are on a fabric already"),
    ("placement", lambda: ib.report(RUN, placement="packed"), "a placement needs a fabric"),
    ("placement", lambda: ib.diff(RUN, RUN, placement="packed"), "placement, rails, nic and strict need a fabric"),
    ("rails", lambda: ib.diff(RUN, RUN, FABRIC, placement="packed", rails="x"), "--rails x: expected one of split"),
    ("threshold", lambda: ib.diff(RUN, RUN, fail_on="what?"), "'what?': expected METRIC>LIMIT"),
    ("rails", lambda: ib.place(FABRIC, RUN, rails="x"), "--rails x: expected one of split"),
    ("seconds", lambda: ib.place(FABRIC, RUN, seconds=0), "expected seconds, more than 0"),
    ("workers", lambda: lab.simulate("text", "out", workers=0), "workers: expected a number above 0, found 0"),
]


@pytest.mark.parametrize(("call", "said"), [row[1:] for row in NO_ARGUMENTS], ids=[row[0] for row in NO_ARGUMENTS])
def test_arguments_that_do_not_fit_are_refused(call: Callable[[], object], said: str) -> None:
    assert said in str(raised_by(call, UsageError))


def test_loads_of_another_fabric_are_not_compared() -> None:
    other = ib.load_links(ib.read_fabric("xgft:2:4,5:1,2"), "pattern:shift:1")
    said = str(raised_by(lambda: ib.view(LOADS, other), UsageError))
    assert said.endswith("expected loads of the same links as xgft:2:4,4:1,2")
    again = ib.load_links(ib.read_fabric("xgft:2:4,4:1,2"), "pattern:shift:1")
    assert ib.view(LOADS, again).title


@pytest.mark.parametrize("call", [ib.read_fabric, ib.check])
def test_one_rail_is_not_two(call: Callable[..., object]) -> None:
    assert "a switch belongs to one rail only" in str(raised_by(lambda: call(LST, LST), InconsistentError))


MISTAKEN: list[tuple[Callable[[], object], str]] = [
    (lambda: ib.load_links("fabric.lst", RUN), "expected a result of read_fabric(), found str"),  # type: ignore[arg-type]
    (lambda: ib.place("fabric.lst", RUN), "expected a result of read_fabric(), found str"),  # type: ignore[arg-type]
    (lambda: ib.view(ib.report(LOADS)), "expected a result of load_links(), found JobReport"),  # type: ignore[arg-type]
    (lambda: ib.read_traffic(None), "found NoneType"),  # type: ignore[arg-type]
    (lambda: ib.load_links(FABRIC, LOADS), "found FabricLoads"),  # type: ignore[arg-type]
    (lambda: ib.read_fabric(["fabric.lst"]), "not list"),  # type: ignore[arg-type]
    (lambda: ib.read_traffic("pattern:shift:1", "fabric.lst"), "expected a result of read_fabric(), found str"),  # type: ignore[arg-type]
    (lambda: ib.diff(RUN, RUN, "fabric.lst"), "expected a result of read_fabric(), found str"),  # type: ignore[arg-type]
    (lambda: ib.place(FABRIC, RUN, slots=2.5), "'float' object cannot be interpreted as an integer"),  # type: ignore[arg-type]
    (lambda: ib.place(FABRIC, RUN, seed=1.5), "'float' object cannot be interpreted as an integer"),  # type: ignore[arg-type]
    (lambda: ib.report(LOADS, top=2.5), "'float' object cannot be interpreted as an integer"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "said"), MISTAKEN)
def test_a_value_of_another_type_is_named(call: Callable[[], object], said: str) -> None:
    assert said in str(raised_by(call, TypeError))


def rows(loads: ib.FabricLoads) -> list[dict[str, Any]]:
    return [dict(row) for row in loads.rows(only_used=True)]


def test_one_value_may_stand_for_a_list_of_one(folder: Path) -> None:
    (folder / "hosts.csv").write_text("rank,host\n0,host01\n1,host05\n")
    by = ib.load_links(FABRIC, RUN, placement="packed", by="region,operation")
    assert rows(by) == rows(ib.load_links(FABRIC, RUN, placement=["packed"], by=["region", "operation"]))
    assert {row["operation"] for row in rows(by)} == {"BCAST", "SEND"}
    placed = [
        ib.load_links(FABRIC, RUN, placement=each) for each in ("hosts.csv", Path("hosts.csv"), [Path("hosts.csv")])
    ]
    assert rows(placed[0]) == rows(placed[1]) == rows(placed[2])
    assert ib.diff(RUN, RUN, fail_on="bytes>1B").fails == ib.diff(RUN, RUN, fail_on=["bytes>1B"]).fails is True
    tables = LST.with_suffix(".fdbs")
    assert repr(ib.read_fabric(LST, tables=tables)) == repr(ib.read_fabric(LST, tables=[str(tables)]))


def test_a_profile_has_the_name_that_it_was_read_by(folder: Path) -> None:
    for name in ("before", "after"):
        (folder / name).mkdir()
        write_archive(RUN, folder / name / "profile.otf2")
    before, after = ibprof.load_profile("before/profile.otf2"), ibprof.load_profile(Path("after"))
    assert repr(ib.diff(before, after)).startswith("<RunComparison before/profile.otf2 to after: ")
    assert ib.report(before).coverage.origin == ib.report("before/profile.otf2").coverage.origin


def test_names_are_completed_before_their_first_use() -> None:
    script = "import ibprof; print(*[name for name in ibprof.__all__ if name not in dir(ibprof)])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout == "\n"


def test_runs_that_were_read_are_compared_as_their_files_are(folder: Path) -> None:
    write_archive(RUN, folder / "a.otf2")
    more = make_profile([Count(0, 1, 9000)], list(RUN.ranks), list(RUN.hosts), operations=RUN.operations)
    write_archive(more, folder / "b.otf2")
    for fabric, placement in ((None, ""), (FABRIC, "packed")):
        read = ib.diff(RUN, ib.read_traffic(more), fabric, placement=placement)
        named = ib.diff("a.otf2", folder / "b.otf2", fabric, placement=placement)
        assert (read.parts, read.totals) == (named.parts, named.totals)
        assert read.parts
