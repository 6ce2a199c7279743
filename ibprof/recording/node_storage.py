# SPDX-License-Identifier: Apache-2.0
"""Files that killed processes left on their nodes' own storage, copied back to the recording."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import IbprofError
from ibprof.native.recording_layout import recording_layout
from ibprof.recording.folder_runs import recording_files
from ibprof.recording.host_file import open_recording_file


@dataclass(frozen=True, slots=True)
class CopiedFiles:
    """Files of a recording found on this node.

    Attributes:
        files: files of the recording that are complete now; nothing of them remains on the node.
        in_use: files on the node that a process still writes; they are unchanged.
    """

    files: tuple[Path, ...]
    in_use: tuple[Path, ...]


def copy_from_node(recording: Path) -> CopiedFiles:
    """Replace files of a recording by their originals on this node's own storage.

    Raises:
        InputError: there is no recording.
        IbprofError: a file cannot be written.
    """
    files, in_use = [], []
    for path in recording_files(recording):
        file = open_recording_file(path)
        if not file.on_node:
            continue
        original = Path(file.storage)
        if _is_mapped(original):
            in_use.append(original)
            continue
        try:
            _replace(path, _without_storage(original.read_bytes()))
            original.unlink()
        except OSError as error:
            raise IbprofError(f"{path}: {(error.strerror or str(error)).lower()}") from error
        files.append(path)
    return CopiedFiles(tuple(files), tuple(in_use))


def _is_mapped(original: Path) -> bool:
    """Return whether a process of this node has a file mapped for writing."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines = (process / "maps").read_text(errors="surrogateescape").splitlines()
        except OSError:  # it ended, or is another user's, who cannot write to this folder
            continue
        if any(line.endswith(f" {original}") and "w" in line.split()[1] for line in lines):
            return True
    return False


def _without_storage(content: bytes) -> bytes:
    """Return the content without the reference to a file elsewhere."""
    record = recording_layout().types["file_header"]
    storage, begin = record.fields["storage"][:2]  # type: ignore[index]
    return content[:begin] + bytes(storage.itemsize) + content[begin + storage.itemsize :]


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
