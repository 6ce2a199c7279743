# SPDX-License-Identifier: Apache-2.0
"""Number the call sites of MPI equally in all processes, and find each site's function, line and name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof.native.headers import recording_layout
from ibprof.profile.profile_data import OTHER_SITES, Site
from ibprof.recording.host_file import Owners, RecordingFile, Records, decode_text, locate_records
from ibprof.sites.code_location import CodeLocation, Frame, ObjectAddresses, resolve_objects, site_names


class CallSites:
    """The call sites of a file's processes, with their numbers in the profile.

    Args:
        world_rank: rank of each process. Sites are numbered in the order of ranks.
        numbers: numbers of the profile's sites, from 1. This object adds sites.
    """

    def __init__(self, file: RecordingFile, world_rank: npt.NDArray[np.int32], numbers: dict[Site, int]) -> None:
        self._file = file
        self._numbers = numbers
        records, self._owner = file.records("IBP_SEGMENT_SITES")
        self._common = np.zeros(len(records), np.int32)
        if not len(records):
            return
        objects, objects_owner = file.records("IBP_SEGMENT_OBJECTS")
        loaded = locate_records(file, "an object", records["object"], self._owner, objects_owner)
        callers = self._locate_callers(records)
        sites: list[Site] = []
        beyond = records["caller"] == recording_layout().constants["IBP_SITE_OTHER"]
        for index, caller in enumerate(callers.tolist()):
            site = _read_site(records[index], objects[loaded[index]])
            around = _with_callers(sites[caller]) if caller >= 0 else (OTHER_SITES,) if beyond[index] else ()
            sites.append(replace(site, callers=around))
        chosen = np.flatnonzero(~self._only_call_others(callers))
        for index in chosen[np.argsort(world_rank[self._owner[chosen]], kind="stable")].tolist():
            self._common[index] = numbers.setdefault(sites[index], len(numbers) + 1)

    def _locate_callers(self, records: Records) -> npt.NDArray[np.intp]:
        """Return the index of each site's caller, which precedes the site; -1 without a recorded caller."""
        number, found = records["caller"], np.full(len(records), -1, np.intp)
        known = np.flatnonzero((number != 0) & (number != recording_layout().constants["IBP_SITE_OTHER"]))
        found[known] = locate_records(self._file, "a caller", number[known] - 1, self._owner[known], self._owner)
        late = np.flatnonzero(found >= np.arange(len(found)))
        if len(late):
            own = late[0] - np.searchsorted(self._owner, self._owner[late[0]]) + 1
            what = f"caller {number[late[0]]} of site {own}"
            raise InputError(self._file.path, None, "a caller that precedes its site", what)
        return found

    def _only_call_others(self, callers: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Return a mask of sites that only call other sites, but never MPI: bool [site]."""
        only = np.zeros(len(callers), np.bool_)
        only[callers[callers >= 0]] = True
        origins, owner = self._file.records("IBP_SEGMENT_ORIGINS")
        if only.any() and len(origins):
            constants = recording_layout().constants
            unknown = (constants["IBP_SITE_UNKNOWN"], constants["IBP_SITE_OTHER"])
            known = np.flatnonzero(~np.isin(origins["site"], unknown))
            only[locate_records(self._file, "a site", origins["site"][known] - 1, owner[known], self._owner)] = False
        return only

    def translate(self, records: Records, owner: Owners) -> npt.NDArray[np.int32]:
        """Return each record's site, as a number of the profile's sites; 0 in format version 1, which has no sites.

        Raises:
            InputError: a record's site is missing.
        """
        constants = recording_layout().constants
        common = np.zeros(len(records), np.int32)
        if "site" not in (records.dtype.names or ()):
            return common
        site = records["site"]
        other = site == constants["IBP_SITE_OTHER"]
        known = np.flatnonzero((site != constants["IBP_SITE_UNKNOWN"]) & ~other)
        if len(known):
            places = locate_records(self._file, "a site", site[known] - 1, owner[known], self._owner)
            common[known] = self._common[places]
        if other.any():
            common[other] = self._numbers.setdefault(OTHER_SITES, len(self._numbers) + 1)
        return common


def _with_callers(site: Site) -> tuple[Site, ...]:
    """Return the `callers` of a callee of `site`: `site` itself, then the callers of `site`."""
    return replace(site, callers=()), *site.callers


def _read_site(record: np.void, loaded: np.void) -> Site:
    path = decode_text(loaded["path"])
    if loaded["kind"] == recording_layout().constants["IBP_OBJECT_SCRIPT"]:
        return Site(path, int(record["line"]), decode_text(record["function"]), path)
    build_id = loaded["build_id"][: loaded["build_id_bytes"]].tobytes().hex()
    return Site("", 0, "", path, int(record["address"]), build_id)


@dataclass(frozen=True, slots=True)
class _Place:
    """A site without callers: its line and function, if known, and its name."""

    site: Site
    location: CodeLocation


def resolve_sites(recorded: Sequence[Site], began_ns: int | None = None) -> tuple[tuple[Site, ...], tuple[str, ...]]:
    """Find the source lines of call sites and callers in programs and libraries; name all sites and callers.

    Args:
        recorded: sites with an address, or with a line.
        began_ns: start of the run in Unix time; None if unknown.

    Returns:
        The sites, in the order of `recorded`; and a sentence for each object with sites but without source lines.
    """
    bare = dict.fromkeys(each for site in recorded for each in (replace(site, callers=()), *site.callers))
    places, notes = _resolve_places(tuple(bare), began_ns)
    # If the recording has callers, functions into which a site's function was inlined become callers too.
    inlined = any(site.callers for site in recorded)
    frames = dict.fromkeys(frame for place in places.values() for frame in (place.site.inlined_in if inlined else ()))
    locations = [
        *(place.location for place in places.values()),
        *(CodeLocation(each.file, each.line) for each in frames),
    ]
    names: dict[Site | Frame, str] = dict(zip([*places, *frames], site_names(locations), strict=True))

    def chain(site: Site) -> Iterator[Site]:
        """Yield `site` with its line and name, then the functions into which it was inlined; all without callers."""
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
    """Return source line and name of each site without callers, and a sentence for each object without source lines."""
    of_object: dict[tuple[str, str], list[Site]] = {}
    for site in bare:
        if site.address:
            of_object.setdefault((site.object, site.build_id), []).append(site)
    # Subtract 1: a return address may be on the line after the call.
    asked = [
        ObjectAddresses(path, build_id, tuple(site.address - 1 for site in chosen), began_ns)
        for (path, build_id), chosen in of_object.items()
    ]
    places = {site: _Place(site, CodeLocation(site.file, site.line, site.object, site.function)) for site in bare}
    notes = []
    for each, chosen, found in zip(asked, of_object.values(), resolve_objects(asked), strict=True):
        if found.note:
            notes.append(f"call sites without line numbers in {each.object_path}: {found.note}")
        for site, frames, symbol in zip(chosen, found.frames, found.symbols, strict=True):
            if frames:
                function, file, line = frames[0]
                lined = replace(site, file=file, line=line, function=function, inlined_in=frames[1:])
                places[site] = _Place(lined, CodeLocation(file, line))
            elif symbol:
                # Add 1 again, to print the offset of the return address as backtraces do.
                location = CodeLocation("", 0, site.object, symbol.function, symbol.offset + 1)
                places[site] = _Place(replace(site, function=symbol.function), location)
            else:
                places[site] = _Place(site, CodeLocation("", 0, site.object, "", site.address))
    return places, tuple(notes)
