# SPDX-License-Identifier: Apache-2.0
"""The view as one HTML file that needs no other file and no network, and may reach neither."""

from __future__ import annotations

import base64
import hashlib
import zlib
from importlib.resources import files
from pathlib import Path

_LEVEL = 9


def write_page(path: Path, document: bytes) -> None:
    """Write the view to a file.

    Args:
        path: the file.
        document: from `encode_document`.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_text(render_page(document), "utf-8", newline="\n")


def render_page(document: bytes) -> str:
    """Return the view as HTML.

    Names from fabrics and profiles are only in the deflated document, which no browser parses as HTML. The content
    security policy allows this script and this style by their hashes, and no request.

    Args:
        document: from `encode_document`.
    """
    page = _part("page.html")
    script, style = page_hashes()
    for mark, text in (
        ("SCRIPT_HASH", script),
        ("STYLE_HASH", style),
        ("STYLE", _part("style.css")),
        ("DATA", base64.b64encode(zlib.compress(document, _LEVEL)).decode("ascii")),
        ("SCRIPT", _part("app.js")),
    ):
        page = page.replace(f"%{mark}%", text, 1)
    return page


def page_hashes() -> tuple[str, str]:
    """Return the hashes of the script and the style. A page that embeds the view must allow the same."""
    return hash_inline(_part("app.js")), hash_inline(_part("style.css"))


def _part(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def hash_inline(text: str) -> str:
    """Return the hash of an inline script or style for a content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
