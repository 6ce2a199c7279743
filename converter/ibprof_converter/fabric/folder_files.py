# SPDX-License-Identifier: Apache-2.0
"""The files of a folder that can be dumps: regular ones with contents, on real file systems."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

_VIRTUAL = frozenset(
    [
        "autofs",
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "fusectl",
        "hugetlbfs",
        "mqueue",
        "proc",
        "pstore",
        "rpc_pipefs",
        "securityfs",
        "selinuxfs",
        "sysfs",
        "tracefs",
    ]
)
"""File systems whose files are made by the kernel when they are read: some wait for ever, some change something."""


@cache
def _virtual_devices() -> frozenset[str]:
    """Return the devices, `major:minor`, of mounted virtual file systems."""
    devices = set()
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            before, _, after = line.partition(" - ")
            if after.split(" ", 1)[0] in _VIRTUAL:
                devices.add(before.split(" ")[2])
    return frozenset(devices)


def list_files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the regular files of a folder with their sizes, in the order of their names; none if it cannot be read."""
    for path in list_entries(folder):
        with suppress(OSError):
            status = path.stat()
            if stat.S_ISREG(status.st_mode) and not _is_virtual(status.st_dev):
                yield path, status.st_size


def list_folders(folder: Path) -> list[Path]:
    """Return the folders in a folder that are on real file systems, in the order of their names."""
    folders = []
    for path in list_entries(folder):
        with suppress(OSError):
            status = path.stat()
            if stat.S_ISDIR(status.st_mode) and not _is_virtual(status.st_dev):
                folders.append(path)
    return folders


def list_entries(folder: Path) -> list[Path]:
    """Return what a folder contains, by name; nothing if it cannot be read."""
    with suppress(OSError):
        return sorted(folder.iterdir())
    return []


def _is_virtual(device: int) -> bool:
    major, minor = os.major(device), os.minor(device)
    return f"{major}:{minor}" in _virtual_devices()
