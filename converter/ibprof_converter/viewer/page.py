# SPDX-License-Identifier: Apache-2.0
"""The view as one HTML file that needs nothing else, and may reach nothing else."""

from __future__ import annotations

import base64
import hashlib
import zlib
from importlib.resources import files
from pathlib import Path

_LEVEL = 9


def write_page(path: Path, document: bytes) -> None:
    """Write the view.

    Names from fabrics and profiles are in the deflated document alone, which no browser reads as HTML. The policy
    allows this very script and this very style, and no request at all.

    Args:
        path: the file.
        document: of `encode_document`.

    Raises:
        OSError: the file cannot be written.
    """
    parts = {name: (files(__package__) / name).read_text("utf-8") for name in ("page.html", "style.css", "app.js")}
    page = parts["page.html"]
    for mark, text in (
        ("SCRIPT_HASH", _hash(parts["app.js"])),
        ("STYLE_HASH", _hash(parts["style.css"])),
        ("STYLE", parts["style.css"]),
        ("DATA", base64.b64encode(zlib.compress(document, _LEVEL)).decode("ascii")),
        ("SCRIPT", parts["app.js"]),
    ):
        page = page.replace(f"%{mark}%", text, 1)
    path.write_text(page, "utf-8", newline="\n")


def _hash(text: str) -> str:
    """Give what a content security policy knows an inline script or style by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
