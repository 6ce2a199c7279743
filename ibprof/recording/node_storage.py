# SPDX-License-Identifier: Apache-2.0
"""What killed processes left on the storage of their nodes, brought to the recording that it is of."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import IbprofError
from ibprof.native.recording_layout import recording_layout
from ibprof.recording.folder_runs import recording_files
from ibprof.recording.host_file import open_recording_file


@dataclass(frozen=True, slots=True)
class Brought:
    """What was found of a recording on the node that this runs on.

    Attributes:
        files: of the recording, that are whole now; nothing of them is left on the node.
        in_use: files on the node that a process still writes, left alone.
    """

    files: tuple[Path, ...]
    in_use: tuple[Path, ...]


def bring_from_node(recording: Path) -> Brought:
    """Put the files that this node's own storage holds in the place of their copies in a recording.

    Raises:
        InputError: there is no recording.
        IbprofError: a file cannot be written.
    """
    files, in_use = [], []
    for path in recording_files(recording):
        file = open_recording_file(path)
        if not file.on_node:
            continue
        place = Path(file.storage)
        if _is_mapped(place):
            in_use.append(place)
            continue
        try:
            _replace(path, _as_own(place.read_bytes()))
            place.unlink()
        except OSError as error:
            raise IbprofError(f"{path}: {(error.strerror or str(error)).lower()}") from error
        files.append(path)
    return Brought(tuple(files), tuple(in_use))


def _is_mapped(place: Path) -> bool:
    """Tell whether a process of this node has a file mapped that it writes into."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines = (process / "maps").read_text(errors="surrogateescape").splitlines()
        except OSError:  # it ended, or is somebody else's, who cannot write into a folder that is ours alone
            continue
        if any(line.endswith(f" {place}") and "w" in line.split()[1] for line in lines):
            return True
    return False


def _as_own(content: bytes) -> bytes:
    """Give the content without the word that it is of a file elsewhere."""
    record = recording_layout().types["file_header"]
    storage, begin = record.fields["storage"][:2]  # type: ignore[index]
    return content[:begin] + bytes(storage.itemsize) + content[begin + storage.itemsize :]


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
