# SPDX-License-Identifier: Apache-2.0
"""The binary form of the view's document: a JSON header, then arrays. See docs/formats/view.md."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

VERSION = 2

NONE = -1
"""The index that stands for no node, link direction, column or rank."""

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
        uint32 length of a JSON text, the text, zeros up to a multiple of 8, the arrays; all little-endian. The text's
        `arrays` lists the name, type, offset behind the text, and length of each array.
    """
    blocks, listed, offset = [], [], 0
    for name, array in arrays.items():
        block = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))).tobytes()
        listed.append({"name": name, "type": _TYPES[array.dtype.name], "offset": offset, "length": array.size})
        blocks.append(block + bytes(-len(block) % _ALIGNMENT))
        offset += len(blocks[-1])
    # Lone surrogates, which Python decodes invalid UTF-8 to, stay as JSON escapes.
    text = json.dumps(header | {"arrays": listed}, separators=(",", ":")).encode("ascii")
    head = struct.pack("<I", len(text)) + text
    return b"".join([head, bytes(-len(head) % _ALIGNMENT), *blocks])
