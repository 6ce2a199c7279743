# SPDX-License-Identifier: Apache-2.0
"""Short names of places in programs: `file.c:LINE`, else `function+0x1f`, else `object+0x1f`."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence

from ibprof.sites.place import Place


def site_names(places: Sequence[Place]) -> list[str]:
    """Return a name for each place; places that differ in file, function, object or offset have different names.

    Files with the same base name have the shortest tail of their paths that distinguishes them. A function that is in
    several objects has the object after it, in brackets.
    """
    files = shortest_tails({place.file for place in places if place.has_line})
    objects = shortest_tails({place.object for place in places if not place.has_line})
    homes = Counter(function for _, function in {(place.object, place.function) for place in places})
    names = []
    for place in places:
        if place.has_line:
            names.append(f"{files[place.file]}:{place.line}")
        elif not place.function:
            names.append(f"{objects[place.object]}+{place.offset:#x}")
        else:
            where = f" ({objects[place.object]})" if homes[place.function] > 1 else ""
            names.append(f"{place.function}+{place.offset:#x}{where}")
    return names


def shortest_tails(paths: Iterable[str]) -> dict[str, str]:
    """Return for each path its base name, or as many components of its end as no other path ends with."""
    parts = {path: posixpath.normpath(path).split("/") for path in paths}
    ends = Counter(end for unique in {tuple(each) for each in parts.values()} for end in _ends(unique))
    return {
        path: _text(next((end for end in _ends(each) if ends[end] == 1), tuple(each))) for path, each in parts.items()
    }


def _ends(parts: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return (tuple(parts[-count:]) for count in range(1, len(parts) + 1))


def _text(end: tuple[str, ...]) -> str:
    return "/".join(end) or "/"
