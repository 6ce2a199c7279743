# SPDX-License-Identifier: Apache-2.0
"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file under another name and rename it, so that no reader and no kill meets half of it.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  (it is a descriptor)
            os.fchmod(descriptor, 0o666 & ~_mask())
            file.write(content)
        Path(name).replace(path)
    except OSError as error:
        with suppress(OSError):
            Path(name).unlink()
        error.filename = os.fspath(path)
        raise


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
