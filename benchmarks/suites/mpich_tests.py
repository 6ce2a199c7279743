# SPDX-License-Identifier: Apache-2.0
"""The cases of MPICH's own test suite, in a folder where it was built."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from outcomes import Case

SUCCESS = re.compile(r"(\s*(No Errors|Test Passed|Test passed|All done.*)\s*)+", re.IGNORECASE)

# Tests that are meant to fail. Only the exit status of these tests is compared.
STATUS_ALONE = {"TestStatus", "TestErrFatal", "TestBench"}


def list_cases(target: Path, lists: tuple[str, ...], seconds: float) -> Iterator[Case]:
    """Yield the cases of the built suite, in the order of its lists. `runtests` of the suite reads the same lists."""
    for name in lists:
        yield from _walk(target, target, name, seconds)


def _walk(top: Path, folder: Path, name: str, seconds: float) -> Iterator[Case]:
    listed = folder / name
    main = folder / "testlist"
    for words in _read_list(main) if main.exists() else ():
        if (folder / words[0]).is_dir():
            yield from _walk(top, folder / words[0], name, seconds)
    for words in _read_list(listed) if listed.exists() else ():
        if not (folder / words[0]).is_dir():
            yield _make_case(top, folder, words, seconds)


def _make_case(top: Path, folder: Path, words: list[str], seconds: float) -> Case:
    program = folder / words[0]
    ranks = int(words[1]) if len(words) > 1 and words[1].isdigit() else 2
    options = [word.partition("=")[::2] for word in words[2:]]
    given = [value for key, value in options if key == "arg"]
    variables = dict(value.partition("=")[::2] for key, value in options if key == "env")
    result = next((value for key, value in options if key == "resultTest"), "")
    described = " ".join([str(program.relative_to(top)), *words[1:]])
    return Case(
        name=described,
        command=(str(program), *given),
        ranks=ranks,
        folder=program.parent,
        variables=variables,
        seconds=seconds,
        success=None if result in STATUS_ALONE else SUCCESS,
    )


def _read_list(path: Path) -> Iterator[list[str]]:
    for line in path.read_text().splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words
