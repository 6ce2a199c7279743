# SPDX-License-Identifier: Apache-2.0
"""Texts for others: names of files without the folders, which say who made a page and where."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ibprof.text.quantities import printable

_FOLDERS = re.compile(r"(?:^|(?<=[\s=:,;'\"]))[^\s=:,;'\"<>]*/(?=[^\s/=:,;'\"])")
"""Folders before the name of a file, in a command."""


@dataclass(frozen=True, slots=True)
class PathRedactor:
    """Replaces paths by the names of their files.

    Attributes:
        names: from path to name, the longest path first.
    """

    names: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of_files(cls, files: Iterable[Path]) -> PathRedactor:
        """Return what replaces the paths of some files, as given and in full, wherever a text has them."""
        names: dict[str, str] = {}
        for file in files:
            given = [each for each in (file, file.absolute(), file.resolve()) if each.name]
            spelt = [*given, Path(*file.absolute().parts[-2:])]
            spelt += [each.with_suffix("") for each in given]  # the folder of an archive
            for path in map(str, spelt):
                names[path] = Path(path).name
                names[printable(path)] = printable(Path(path).name)
        for folder in (Path.cwd(), Path.home()):
            names[f"{folder}/"] = ""
        changed = ((path, name) for path, name in names.items() if path not in (name, "/"))
        return cls(tuple(sorted(changed, key=lambda pair: -len(pair[0]))))

    def in_html(self) -> PathRedactor:
        """Return the same for a text in which characters of markup are escaped."""
        return PathRedactor(tuple((html.escape(path), html.escape(name)) for path, name in self.names))

    def apply(self, text: str) -> str:
        """Return a text with names in place of paths."""
        for path, name in self.names:
            text = text.replace(path, name)
        return text


FULL_PATHS = PathRedactor()
"""Replaces nothing."""


def shorten_command(command: str) -> str:
    """Return a command line without the folders of its files."""
    return _FOLDERS.sub("", command)
