# SPDX-License-Identifier: Apache-2.0
"""Code and pages keep the rules of tests/data/words.yaml: allowed words, openings of sentences, sentence lengths.

Names of functions, variables and files keep these rules too. Some general names of files are forbidden, since they say
nothing about the contents.

To check only one room or page, such as `ibprof/mpi` or `docs/api.md`:

    pytest tests/docs/test_words.py -k NAME
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ibprof_testing.identifiers import SUFFIXES as NAMED
from ibprof_testing.identifiers import read_names, split_name
from ibprof_testing.paths import DATA, ROOT
from ibprof_testing.prose import (
    DOCSTRING,
    STRING,
    SUFFIXES,
    Passage,
    count_words,
    read_markdown,
    read_passages,
    sentences,
)

RULES = yaml.safe_load((DATA / "words.yaml").read_text())
PHRASES = {
    re.compile(rf"(?<!\w)(?:{found})(?!\w)", re.IGNORECASE): instead for found, instead in RULES["phrases"].items()
}
OPENING = re.compile(rf"(?:{'|'.join(RULES['openings'])})\b")

# Each direct subfolder of these folders is a room; the files directly in the folder are a room too.
HOUSES = {
    "ibprof": "ibprof",
    "ibprof_converter": "converter/ibprof_converter",
    "ibprof_lab": "converter/ibprof_lab",
    "csrc": "csrc",
    "tests": "tests",
}
ROOMS_ALONE = ("benchmarks", "examples", "scripts", "studies", "viewer")
NOT_SOURCE = {"__pycache__", "node_modules", "build"}
UNITS = {"us"}
"""Phrases of tests/data/words.yaml that are allowed in names."""
JSON_KEYS = {"pairs_in_all"}
"""Fields that are keys of JSON documents, which programs read: the keys must not change."""
FOLDERS_OF_NAMES = (
    "benchmarks",
    "converter",
    "csrc",
    "examples",
    "ibprof",
    "scripts",
    "studies",
    "tests",
    "viewer/src",
    "viewer/tests",
)
MESSAGE_WORDS = 4
"""Minimum number of words of a checked string: shorter strings are keys or labels, not sentences."""


def list_rooms() -> dict[str, list[Path]]:
    """Return the source files of each room, by the room's name, such as `ibprof_converter/fabric`."""
    rooms: dict[str, list[Path]] = {}
    for house, folder in HOUSES.items():
        for path in source_files(ROOT / folder):
            parts = path.relative_to(ROOT / folder).parts
            rooms.setdefault("/".join([house, *parts[:-1][:1]]), []).append(path)
    for room in ROOMS_ALONE:
        if found := list(source_files(ROOT / room)):
            rooms[room] = found
    return rooms


def source_files(folder: Path, suffixes: tuple[str, ...] = SUFFIXES) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in suffixes and not NOT_SOURCE & set(path.relative_to(folder).parts):
            yield path


def is_read(passage: Passage, room: str) -> bool:
    """Return whether to check a passage: a comment, a docstring, or a long enough string outside tests."""
    if passage.kind != STRING:
        return True
    return not room.startswith("tests") and len(passage.text.split()) >= MESSAGE_WORDS and "=>" not in passage.text


def find_faults(passages: list[Passage]) -> Iterator[tuple[int, str]]:
    """Find passages that break a rule: yield the line, and the advice."""
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


def find_faulty_names(path: Path) -> Iterator[str]:
    """Yield a message `LINE: NAME: write ...` for each name of a source file that has a forbidden phrase."""
    if path.stem in RULES["file_names"] and path.parent.name != "cli":  # files in cli have the names of commands
        yield f"0: {path.stem}: write what the file holds"
    for line, name in read_names(path):
        if name in JSON_KEYS:
            continue
        yield from (f"{line}: {name}: write {instead}" for instead in find_instead(name))


@functools.cache
def find_instead(name: str) -> list[str]:
    """Return the words to write instead of the listed phrases in a name."""
    words = split_name(name)
    matches = ((pattern.search(words), instead) for pattern, instead in PHRASES.items())
    return [instead for match, instead in matches if match and match[0] not in UNITS]


def mean_length(passages: list[Passage]) -> float:
    lengths = [count_words(sentence) for passage in passages for sentence in sentences(passage)]
    return sum(lengths) / max(1, len(lengths))


def list_pages() -> list[str]:
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    pages += [
        page
        for folder in ("benchmarks", "changes", "docs", "examples", "studies")
        for page in sorted((ROOT / folder).rglob("*.md"))
    ]
    return [page.relative_to(ROOT).as_posix() for page in pages]


def cut_to_newest_version(changelog: str) -> str:
    """Return a changelog up to its newest version. Older sections do not change any more."""
    return "\n## ".join(changelog.split("\n## ")[:2])


ROOMS = list_rooms()


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_keeps_to_the_words(room: str) -> None:
    faults, all_passages = [], []
    for path in ROOMS[room]:
        passages = [passage for passage in read_passages(path) if is_read(passage, room)]
        all_passages += passages
        faults += [f"{path.relative_to(ROOT)}:{line}: {fault}" for line, fault in sorted(find_faults(passages))]
    assert not faults, f"{len(faults)} places in {room}:\n" + "\n".join(faults)
    assert mean_length(all_passages) <= RULES["mean_sentence"]


@pytest.mark.parametrize("folder", FOLDERS_OF_NAMES)
def test_names_keep_to_the_words(folder: str) -> None:
    paths = list(source_files(ROOT / folder, NAMED))
    assert paths
    faults = [f"{path.relative_to(ROOT)}:{fault}" for path in paths for fault in find_faulty_names(path)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("beside.py", "", "0: beside"),
        ("a.py", "\n\ndef test_it_is_told(): ...\n", "3: test_it_is_told"),
        ("a.py", "class LinkEnd: ...\n", "1: LinkEnd"),
        ("a.py", "def f(*, ours): ...\n", "1: ours"),
        ("a.py", "x = 1\nx.kin, latency_us = 1, 2\n", "2: kin"),
        ("a.h", "/* kin\n * kin */\n#ifndef MADE_UP_H\n", "3: MADE_UP_H"),
        ("a.c", 'int a = f("kin", ours); // kin\n', "1: ours"),
        ("a.ts", "const a = `kin` + 'kin'; // kin\nconst linkEnd = \"kin\";\n", "2: linkEnd"),
        ("tip.ts", "", "0: tip"),
        ("odd.py", "", "0: odd"),
    ],
)
def test_a_faulty_name_is_found(name: str, text: str, found: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert [fault.partition(": write")[0] for fault in find_faulty_names(tmp_path / name)] == [found]


def test_source_is_read_in_a_folder_named_data() -> None:
    assert ROOT / "viewer/src/data/arrays.ts" in ROOMS["viewer"]


@pytest.mark.parametrize("page", list_pages())
def test_a_page_keeps_to_the_words(page: str) -> None:
    text = (ROOT / page).read_text()
    if page == "CHANGELOG.md":
        text = cut_to_newest_version(text)
    faults = [f"{page}:{line}: {fault}" for line, fault in find_faults(list(read_markdown(text)))]
    assert not faults, f"{len(faults)} places:\n" + "\n".join(faults)


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
        ("a.py", 'p.add_argument("--to", help="its kin")\n', 1, "kin"),
        ("a.py", 'p.add_argument("--to", help=f"{x} or " + (f"seat {1}" if x else "a slot"))\n', 1, "seat"),
        ("a.yaml", "a: 1\nb: 2 # its kin\n", 2, "kin"),
        ("a.yaml", "# fine\nsummary: a least time\n", 2, "least time"),
        ("CMakeLists.txt", "add(x)\n# its kin\n", 2, "kin"),
        ("a.py", "# It takes 8.2 % of all.\n", 1, "8.2 %"),
        ("a.py", f"# {'word ' * 36}\n", 1, "36 words"),
        ("a.c", "/* SPDX-License-Identifier: X */\n/* Fine. */\n/* kin */\n", 3, "kin"),
        ("a.c", "/* SPDX-License-Identifier: X\n *\n * It has\n * a kin. */\n", 4, "kin"),
        ("a.md", "# Fine\n\nIt is\nits kin.\n", 4, "kin"),
        ("a.md", "```\nkin\n```\n\n    kin\n\n* fine\n* kin\n", 8, "kin"),
        ("a.md", "| fine | its kin |\n|---|---|\n", 1, "kin"),
        ("a.md", f"[{'word ' * 36}](a.md)\n", 1, "36 words"),
    ],
)
def test_a_fault_is_found(name: str, text: str, line: int, fault: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    found = list(find_faults([each for each in read_passages(tmp_path / name) if is_read(each, "ibprof")]))
    assert [(at, fault in what) for at, what in found] == [(line, True)]


@pytest.mark.parametrize(
    "text", ["    kin made_up so many", "`kin`", 'the word "kin" and "ours"', "in 500 us", "7 % 3 is 1"]
)
def test_code_and_quotations_are_no_english(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(f'"""Do it.\n\nAs in:\n\n{text}\n"""\nX = "kin"\n')
    assert list(find_faults([each for each in read_passages(path) if is_read(each, "ibprof")])) == []


@pytest.mark.parametrize(
    "text", ["```sh\nkin\n```", "text\n\n    kin\n\n    ours", "> kin", "`kin\nours`", "<!-- kin -->"]
)
def test_code_in_pages_is_no_english(text: str) -> None:
    assert list(find_faults(list(read_markdown(text)))) == []


def test_released_versions_of_the_changelog_are_left_out() -> None:
    assert cut_to_newest_version("# C\n\n## 2\n\n### Fixed\n\n## 1\nkin\n") == "# C\n\n## 2\n\n### Fixed\n"
