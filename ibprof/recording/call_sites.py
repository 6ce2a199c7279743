# SPDX-License-Identifier: Apache-2.0
"""The places in programs that called MPI, as the processes of a recording numbered them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
        for index in np.argsort(world_rank[self._owner], kind="stable").tolist():
            site = _read_site(records[index], objects[loaded[index]])
            self._common[index] = numbers.setdefault(site, len(numbers) + 1)

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


def _read_site(record: np.void, loaded: np.void) -> Site:
    path = decode_text(loaded["path"])
    if loaded["kind"] == recording_layout().constants["IBP_OBJECT_SCRIPT"]:
        return Site(path, int(record["line"]), decode_text(record["function"]), path)
    build_id = loaded["build_id"][: loaded["build_id_bytes"]].tobytes().hex()
    return Site("", 0, "", path, int(record["address"]), build_id)
