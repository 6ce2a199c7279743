# SPDX-License-Identifier: Apache-2.0
"""The places in programs that called MPI, as the processes of a recording numbered them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof.native.recording_layout import recording_layout
from ibprof.profile.profile_data import OTHER_SITES, Site
from ibprof.recording.host_file import Owners, RecordingFile, Records, decode_text, locate_records


class CallSites:
    """The sites of a file's processes, with their numbers in the profile.

    Args:
        file: of the recording.
        world_rank: of each process; common numbers are in the order of ranks.
        numbers: of the profile's sites, from 1; grows.
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
        """Return the index of each site's caller, which precedes it; -1 where it has none or is beyond the limit."""
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
        """Return which sites are callers of others, and call no MPI themselves: bool [site]."""
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
        """Return the common numbers of the sites of records; format version 1 has none.

        Raises:
            InputError: a process has no such site.
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
    """Return a site as a caller, and its callers."""
    return replace(site, callers=()), *site.callers


def _read_site(record: np.void, loaded: np.void) -> Site:
    path = decode_text(loaded["path"])
    if loaded["kind"] == recording_layout().constants["IBP_OBJECT_SCRIPT"]:
        return Site(path, int(record["line"]), decode_text(record["function"]), path)
    build_id = loaded["build_id"][: loaded["build_id_bytes"]].tobytes().hex()
    return Site("", 0, "", path, int(record["address"]), build_id)
