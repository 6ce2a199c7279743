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

    Args:
        path: the file.
        document: of `encode_document`.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_text(render_page(document), "utf-8", newline="\n")


def render_page(document: bytes) -> str:
    """Give the view as HTML.

    Names from fabrics and profiles are in the deflated document alone, which no browser reads as HTML. The policy
    allows this very script and this very style, and no request at all.

    Args:
        document: of `encode_document`.
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
    """Give what the page's policy allows: its script and its style. A page that frames it must allow the same."""
    return hash_inline(_part("app.js")), hash_inline(_part("style.css"))


def _part(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def hash_inline(text: str) -> str:
    """Give what a content security policy knows an inline script or style by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
