# SPDX-License-Identifier: Apache-2.0
"""Write files atomically: readers see the complete new file or the earlier file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import TextIO


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file under another name, then rename it, so that readers never see a partial file.

    Raises:
        OSError: the file cannot be written; an earlier file with this name is unchanged.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  (a descriptor)
            os.fchmod(descriptor, 0o666 & ~_mask())
            file.write(content)
        Path(name).replace(path)
    except OSError as error:
        with suppress(OSError):
            Path(name).unlink()
        error.filename = os.fspath(path)
        raise


def write_text(path: Path, write: Callable[[TextIO], None]) -> None:
    """Write a text file atomically.

    Raises:
        OSError: the file cannot be written.
    """
    text = StringIO()
    write(text)
    write_atomically(path, text.getvalue().encode("utf-8", "backslashreplace"))


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
