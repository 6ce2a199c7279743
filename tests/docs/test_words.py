# SPDX-License-Identifier: Apache-2.0
"""The English of the code keeps to tests/data/words.yaml: its words, its openings, the length of its sentences.

For one room, with all that is to be changed there, also while the room is pending:

    pytest tests/docs/test_words.py -k ROOM --runxfail
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ibprof_testing.paths import DATA, ROOT
from ibprof_testing.prose import DOCSTRING, STRING, SUFFIXES, Passage, count_words, read_passages, sentences

RULES = yaml.safe_load((DATA / "words.yaml").read_text())
PHRASES = {
    re.compile(rf"(?<!\w)(?:{found})(?!\w)", re.IGNORECASE): instead for found, instead in RULES["phrases"].items()
}
OPENING = re.compile(rf"(?:{'|'.join(RULES['openings'])})\b")

# Folders whose own folders are rooms; their own files are a room too.
HOUSES = {
    "ibprof": "ibprof",
    "ibprof_converter": "converter/ibprof_converter",
    "csrc": "csrc",
    "tests": "tests",
}
ROOMS_ALONE = ("benchmarks", "examples", "scripts", "studies", "viewer")
NOT_SOURCE = {"__pycache__", "node_modules", "build"}
MESSAGE_WORDS = 4
"""A string with fewer is a key or a label, not a sentence."""


def list_rooms() -> dict[str, list[Path]]:
    """Return the source files of each room by its name, such as `ibprof_converter/fabric`."""
    rooms: dict[str, list[Path]] = {}
    for house, folder in HOUSES.items():
        for path in source_files(ROOT / folder):
            parts = path.relative_to(ROOT / folder).parts
            rooms.setdefault("/".join([house, *parts[:-1][:1]]), []).append(path)
    for room in ROOMS_ALONE:
        if found := list(source_files(ROOT / room)):
            rooms[room] = found
    return rooms


def source_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and not NOT_SOURCE & set(path.relative_to(folder).parts):
            yield path


def is_read(passage: Passage, room: str) -> bool:
    """Return whether somebody reads a passage as English: the strings of tests are data."""
    if passage.kind != STRING:
        return True
    return not room.startswith("tests") and len(passage.text.split()) >= MESSAGE_WORDS and "=>" not in passage.text


def find_faults(passages: list[Passage]) -> Iterator[tuple[int, str]]:
    """Find what breaks a rule: the passage's line, and what to do."""
    for passage in passages:
        text = re.sub(r"`[^`\n]*`|\"[^\"\n]*\"", "`", passage.text)
        for pattern, instead in PHRASES.items():
            for match in pattern.finditer(text):
                line = passage.line + text.count("\n", 0, match.start())
                yield line, f'"{match[0]}": write {instead}'
        if passage.kind == DOCSTRING and (opening := OPENING.match(passage.text)):
            yield passage.line, f'a docstring opens with "{opening[0]}"'
        for sentence in sentences(passage):
            if (words := count_words(sentence)) > RULES["longest_sentence"]:
                before = passage.text[: max(0, passage.text.find(sentence[:20]))]
                yield passage.line + before.count("\n"), f"a sentence of {words} words: {sentence[:60]} ..."


def mean_length(passages: list[Passage]) -> float:
    lengths = [count_words(sentence) for passage in passages for sentence in sentences(passage)]
    return sum(lengths) / max(1, len(lengths))


ROOMS = list_rooms()
PENDING = pytest.mark.xfail(reason="pending in tests/data/words.yaml")


@pytest.mark.parametrize(
    "room",
    [pytest.param(room, marks=PENDING if room in RULES["pending"] else ()) for room in sorted(ROOMS)],
)
def test_a_room_keeps_to_the_words(room: str) -> None:
    faults, all_passages = [], []
    for path in ROOMS[room]:
        passages = [passage for passage in read_passages(path) if is_read(passage, room)]
        all_passages += passages
        faults += [f"{path.relative_to(ROOT)}:{line}: {fault}" for line, fault in sorted(find_faults(passages))]
    assert not faults, f"{len(faults)} places in {room}:\n" + "\n".join(faults)
    assert mean_length(all_passages) <= RULES["mean_sentence"]


def test_source_is_read_in_a_folder_named_data() -> None:
    assert ROOT / "viewer/src/data/arrays.ts" in ROOMS["viewer"]


def test_pending_names_rooms() -> None:
    assert set(RULES["pending"]) <= set(ROOMS)


@pytest.mark.parametrize(
    ("name", "text", "line", "fault"),
    [
        ("a.py", 'def f():\n    """Give a thing."""\n', 2, "opens with"),
        ("a.py", "# fine\n# but told apart\n", 2, "told apart"),
        ("a.py", 'f"{1} are told at once to all"\n', 1, "are told"),
        ("a.py", '"""Fine."""\nX = 1\n"""Whether it is."""\n', 3, "opens with"),
        ("a.c", "/* Fine.\n * These are made up. */\n", 2, "made up"),
        ("a.c", 'void f(void) { puts("what is none is left out"); }\n', 1, "is none"),
        ("a.ts", "// fine\nconst a = 1; // drawn beside it\n", 2, "beside"),
        ("a.ts", "const a = `a ${b} that is told`;\n", 1, "is told"),
        ("a.sh", "# A name is told.\n", 1, "is told"),
        ("a.py", f"# {'word ' * 36}\n", 1, "36 words"),
    ],
)
def test_a_fault_is_found(name: str, text: str, line: int, fault: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    found = list(find_faults([each for each in read_passages(tmp_path / name) if is_read(each, "ibprof")]))
    assert [(at, fault in what) for at, what in found] == [(line, True)]


@pytest.mark.parametrize("text", ["    kin made_up so many", "`kin`", 'the word "kin" and "ours"', "in 500 us"])
def test_code_and_quotations_are_no_english(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(f'"""Do it.\n\nAs in:\n\n{text}\n"""\nX = "kin"\n')
    assert list(find_faults([each for each in read_passages(path) if is_read(each, "ibprof")])) == []
