# SPDX-License-Identifier: Apache-2.0
"""Functions, lines and names of recorded call sites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ibprof.profile.profile_data import OTHER_SITES, Site
from ibprof.sites.code_location import CodeLocation, Frame
from ibprof.sites.resolver import ObjectAddresses, resolve_objects
from ibprof.sites.site_names import site_names


@dataclass(frozen=True, slots=True)
class _Place:
    """A site without its callers, as far as its line and function are known, and what names it."""

    site: Site
    location: CodeLocation


def resolve_sites(recorded: Sequence[Site], began_ns: int | None = None) -> tuple[tuple[Site, ...], tuple[str, ...]]:
    """Find the lines of call sites and their callers in programs and libraries, and name all of them.

    Args:
        recorded: sites with an address, or with a line.
        began_ns: when the run began, in Unix time; None where it is unknown.

    Returns:
        The sites, in their order. Then a sentence for each object with sites whose lines are unknown.
    """
    bare = dict.fromkeys(each for site in recorded for each in (replace(site, callers=()), *site.callers))
    places, notes = _resolve_places(tuple(bare), began_ns)
    # Where callers were asked for, functions that others were inlined into are callers too.
    inlined = any(site.callers for site in recorded)
    frames = dict.fromkeys(frame for place in places.values() for frame in (place.site.inlined_in if inlined else ()))
    locations = [
        *(place.location for place in places.values()),
        *(CodeLocation(each.file, each.line) for each in frames),
    ]
    names: dict[Site | Frame, str] = dict(zip([*places, *frames], site_names(locations), strict=True))

    def chain(site: Site) -> Iterator[Site]:
        """Yield a site that has no callers, and the functions that it was inlined into."""
        found = places[site].site
        if found == OTHER_SITES:
            yield found
            return
        yield replace(found, name=names[site], inlined_in=() if inlined else found.inlined_in)
        for frame in found.inlined_in if inlined else ():
            function, file, line = frame
            yield Site(file, line, function, site.object, site.address, site.build_id, names[frame])

    sites = []
    for site in recorded:
        innermost, *callers = (part for each in (replace(site, callers=()), *site.callers) for part in chain(each))
        sites.append(replace(innermost, callers=tuple(callers)))
    return tuple(sites), notes


def _resolve_places(bare: Sequence[Site], began_ns: int | None) -> tuple[dict[Site, _Place], tuple[str, ...]]:
    """Return the place of each site that has no callers, and a sentence for each object without lines."""
    of_object: dict[tuple[str, str], list[Site]] = {}
    for site in bare:
        if site.address:
            of_object.setdefault((site.object, site.build_id), []).append(site)
    # A return address may be on the line after the call.
    asked = [
        ObjectAddresses(path, build_id, tuple(site.address - 1 for site in chosen), began_ns)
        for (path, build_id), chosen in of_object.items()
    ]
    places = {site: _Place(site, CodeLocation(site.file, site.line, site.object, site.function)) for site in bare}
    notes = []
    for each, chosen, found in zip(asked, of_object.values(), resolve_objects(asked), strict=True):
        if found.note:
            notes.append(f"call sites without lines in {each.object_path}: {found.note}")
        for site, frames, symbol in zip(chosen, found.frames, found.symbols, strict=True):
            if frames:
                function, file, line = frames[0]
                lined = replace(site, file=file, line=line, function=function, inlined_in=frames[1:])
                places[site] = _Place(lined, CodeLocation(file, line))
            elif symbol:
                # Backtraces count to the return address, too.
                location = CodeLocation("", 0, site.object, symbol.function, symbol.offset + 1)
                places[site] = _Place(replace(site, function=symbol.function), location)
            else:
                places[site] = _Place(site, CodeLocation("", 0, site.object, "", site.address))
    return places, tuple(notes)
