# SPDX-License-Identifier: Apache-2.0
"""Cached tables are used while the file is unchanged, and ignored at any sign of a change."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from ibprof_converter.routing import table_formats as reader
from ibprof_converter.routing.table_formats import read_tables

DUMP = "dump_ucast_routes: Switch 0x10\n0x0001 : 001  : 00   : yes\n0x0002 : 002  : 00   : yes\n"


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(reader.SWITCH, raising=False)
    monkeypatch.setattr(reader, "SMALLEST", 1)
    path = tmp_path / "opensm.fdbs"
    write(path, DUMP)
    return path


def write(path: Path, text: str, age_s: float = 60) -> None:
    path.write_text(text)
    os.utime(path, (time.time() - age_s,) * 2)


def kept(dump: Path) -> list[Path]:
    folder = dump.parent / "cache" / "ibprof"
    return sorted(folder.iterdir()) if folder.exists() else []


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "read_dump", lambda _: pytest.fail("the dump was read again"))


def test_what_was_read_is_not_read_again(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_tables(dump)
    assert [path.stat().st_mode & 0o777 for path in kept(dump)] == [0o600]
    assert kept(dump)[0].parent.stat().st_mode & 0o777 == 0o700
    forbid_reading(monkeypatch)
    again = read_tables(dump)
    assert again.port.tolist() == first.port.tolist()
    assert again.switch_guid.tolist() == first.switch_guid.tolist()
    assert (again.name, again.warnings) == (first.name, first.warnings)


def test_a_file_that_will_be_gone_is_not_kept(dump: Path) -> None:
    assert read_tables(dump, is_kept=False).port[0].tolist()[1:] == [1, 2]
    assert kept(dump) == []


def test_a_file_of_the_same_size_that_was_written_since_is_read(dump: Path) -> None:
    read_tables(dump)
    write(dump, DUMP.replace(": 002", ": 003"))
    assert read_tables(dump).port[0].tolist()[1:] == [1, 3]


def test_another_file_in_its_place_is_read_though_its_time_is_the_same(dump: Path) -> None:
    read_tables(dump)
    status = dump.stat()
    other = dump.with_name("other")
    other.write_text(DUMP.replace(": 002", ": 003"))
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(dump)
    assert read_tables(dump).port[0].tolist()[1:] == [1, 3]


def test_a_file_that_may_still_be_written_to_is_not_kept(dump: Path) -> None:
    write(dump, DUMP, age_s=0)
    read_tables(dump)
    assert kept(dump) == []


@pytest.mark.parametrize("word", ["off", "0", "no"])
def test_it_can_be_switched_off(dump: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv(reader.SWITCH, word)
    read_tables(dump)
    assert kept(dump) == []


def test_a_small_dump_is_not_kept(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SMALLEST", len(DUMP) + 1)
    read_tables(dump)
    assert kept(dump) == []


def test_what_is_damaged_is_as_good_as_none_wherever_the_damage_is(dump: Path) -> None:
    expected = read_tables(dump).port.tolist()
    (path,) = kept(dump)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert read_tables(dump).port.tolist() == expected
        path.write_bytes(whole[:at])
        assert read_tables(dump).port.tolist() == expected


def test_a_cache_that_cannot_be_written_does_no_harm(dump: Path) -> None:
    (dump.parent / "cache").write_text("a file where the folder should be")
    assert read_tables(dump).port[0].tolist()[1:] == [1, 2]


def test_it_is_bounded_and_the_least_recently_used_goes_first(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_tables(dump)
    (first,) = kept(dump)
    monkeypatch.setattr(reader, "LIMIT", 2 * first.stat().st_size + 20)
    names: list[Path] = []
    for number in range(3):
        os.utime(first, (time.time() - 10 + number,) * 2)
        other = dump.with_name(f"other{number}.fdbs")
        write(other, DUMP)
        read_tables(other)
        (new,) = set(kept(dump)) - {first, *names}
        os.utime(new, (time.time() - 100 + number,) * 2)
        names = [new]
    assert first in kept(dump)
    assert len(kept(dump)) == 2


def test_what_a_killed_writer_left_goes_in_time(dump: Path) -> None:
    read_tables(dump)
    part = kept(dump)[0].with_name("tmp123.part")
    write(part, "half", age_s=7200)
    write(dump, DUMP + "\n")
    read_tables(dump)
    assert part not in kept(dump)


def test_writers_at_the_same_time_do_not_disturb_one_another(dump: Path) -> None:
    wrong = []

    def read_often() -> None:
        for _ in range(30):
            if read_tables(dump).port[0].tolist()[1:] != [1, 2]:
                wrong.append(1)
            for path in kept(dump):
                path.unlink(missing_ok=True)

    threads = [threading.Thread(target=read_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
