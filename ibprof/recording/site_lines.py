# SPDX-License-Identifier: Apache-2.0
"""Functions, lines and names of recorded call sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ibprof.profile.profile_data import OTHER_SITES, Site
from ibprof.sites.code_location import CodeLocation
from ibprof.sites.resolver import ObjectAddresses, resolve_objects
from ibprof.sites.site_names import site_names


def resolve_sites(recorded: Sequence[Site]) -> tuple[tuple[Site, ...], tuple[str, ...]]:
    """Find the lines of call sites in programs and libraries, and name all sites.

    Args:
        recorded: sites with an address, or with a line.

    Returns:
        The sites, in their order. Then a sentence for each object with sites whose lines are unknown.
    """
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, site in enumerate(recorded):
        if site.address:
            numbers.setdefault((site.object, site.build_id), []).append(number)
    # A return address may be on the line after the call.
    asked = [
        ObjectAddresses(path, build_id, tuple(recorded[number].address - 1 for number in chosen))
        for (path, build_id), chosen in numbers.items()
    ]
    sites, notes = list(recorded), []
    locations = [CodeLocation(site.file, site.line, site.object, site.function) for site in recorded]
    for each, chosen, found in zip(asked, numbers.values(), resolve_objects(asked), strict=True):
        if found.note:
            notes.append(f"call sites without lines in {each.object_path}: {found.note}")
        for number, frames, symbol in zip(chosen, found.frames, found.symbols, strict=True):
            site = sites[number]
            if frames:
                function, file, line = frames[0]
                sites[number] = replace(site, file=file, line=line, function=function, inlined_in=frames[1:])
                locations[number] = CodeLocation(file, line)
            elif symbol:
                sites[number] = replace(site, function=symbol.function)
                # Backtraces count to the return address, too.
                locations[number] = CodeLocation("", 0, site.object, symbol.function, symbol.offset + 1)
            else:
                locations[number] = CodeLocation("", 0, site.object, "", site.address)
    named = zip(sites, site_names(locations), strict=True)
    return tuple(site if site == OTHER_SITES else replace(site, name=name) for site, name in named), tuple(notes)
