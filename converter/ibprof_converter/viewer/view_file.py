# SPDX-License-Identifier: Apache-2.0
"""Write the view as a file: an HTML page with a document, which is packed from a JSON header and arrays.

The page needs no other file and no network: its content security policy forbids requests. See docs/formats/view.md.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_LEVEL = 9

VERSION = 2

NONE = -1
"""Index in place of a missing node, link direction, column or rank."""

_ALIGNMENT = 8

_TYPES = {
    "uint8": "u1",
    "uint16": "u2",
    "uint32": "u4",
    "int32": "i4",
    "uint64": "u8",
    "float32": "f4",
    "float64": "f8",
}

Arrays = dict[str, npt.NDArray[Any]]


def pack_document(header: dict[str, object], arrays: Arrays) -> bytes:
    """Pack a header and its arrays.

    Returns:
        Length of the JSON text (uint32), the text, zeros up to a multiple of 8 bytes, the arrays; all little-endian. In
        the text, `arrays` lists name, type, length and offset of each array; the first array has offset 0.
    """
    blocks, listed, offset = [], [], 0
    for name, array in arrays.items():
        block = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))).tobytes()
        listed.append({"name": name, "type": _TYPES[array.dtype.name], "offset": offset, "length": array.size})
        blocks.append(block + bytes(-len(block) % _ALIGNMENT))
        offset += len(blocks[-1])
    # Lone surrogates, which invalid UTF-8 causes, become JSON escapes.
    text = json.dumps(header | {"arrays": listed}, separators=(",", ":")).encode("ascii")
    head = struct.pack("<I", len(text)) + text
    return b"".join([head, bytes(-len(head) % _ALIGNMENT), *blocks])


def write_page(path: Path, document: bytes) -> None:
    """Write the view to a file.

    Args:
        document: result of `encode_document`.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_text(render_page(document), "utf-8", newline="\n")


def render_page(document: bytes) -> str:
    """Return the view as HTML.

    Names from fabrics and profiles are only in the compressed document, which browsers do not parse as HTML. The
    content security policy allows only the page's script and style, by their hashes, and no requests.

    Args:
        document: result of `encode_document`.
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
    """Return the hashes of the page's script and style, which the policy of an embedding page must allow."""
    return hash_inline(_part("app.js")), hash_inline(_part("style.css"))


def _part(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def hash_inline(text: str) -> str:
    """Return the hash of an inline script or style, as a content security policy needs it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
