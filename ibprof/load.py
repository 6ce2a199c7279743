# SPDX-License-Identifier: Apache-2.0
"""Read a profile from an OTF2 archive or a recording. Write the recording's archive if the archive is missing."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

from ibprof.archive.otf2_archive import SUFFIX, is_archive, read_archive, write_archive
from ibprof.errors import InputError, UsageError, with_plain_errors
from ibprof.profile.profile_data import Profile


@with_plain_errors
def load_profile(path: str | PathLike[str], run: str | None = None) -> Profile:
    """Return the profile at a path; the profile's name is the path.

    Args:
        path: an archive, a recording's folder, a file of a recording, or the output folder of a run. If only the
            recording NAME.ibprof exists, NAME.otf2 is written first.
        run: name of a recording's run; None for the newest.

    Raises:
        InputError: the path has no profile.
        InconsistentError: the files of a recording contradict each other.
        UsageError: no run has this name.
    """
    return replace(_read_profile(look_into(Path(path)), run), name=fspath(path))


def _read_profile(path: Path, run: str | None) -> Profile:
    if is_archive(path):
        if run is not None:
            raise UsageError(f"{path} is the archive of one run; --run is only for recordings")
        return read_archive(path)

    # Reading an archive does not import the readers of recordings.
    from ibprof.recording.folder_runs import SUFFIX as RECORDING_SUFFIX  # noqa: PLC0415
    from ibprof.recording.folder_runs import is_recording  # noqa: PLC0415
    from ibprof.recording.recording_reader import read_recording  # noqa: PLC0415

    if path.suffix == SUFFIX and not path.exists() and is_recording(path.with_suffix(RECORDING_SUFFIX)):
        profile = read_recording(path.with_suffix(RECORDING_SUFFIX), run)
        write_archive(profile, path)
        return profile
    if path.is_dir() or is_recording(path):
        return read_recording(path, run)
    raise InputError(path, None, "a profile or a recording", "something else" if path.exists() else "nothing")


def look_into(folder: Path) -> Path:
    """Return the profile or recording in a run's output folder; any other path unchanged."""
    if not folder.is_dir():
        return folder

    from ibprof.recording.folder_runs import SUFFIX as RECORDING_SUFFIX  # noqa: PLC0415  (slow to import)
    from ibprof.recording.folder_runs import newest_archive  # noqa: PLC0415

    if not any(each.is_file() for each in folder.glob(f"*{RECORDING_SUFFIX}")):
        for left in (newest_archive(folder / f"profile{SUFFIX}"), folder / f"profile{RECORDING_SUFFIX}"):
            if left and left.exists():
                return left
    return folder
