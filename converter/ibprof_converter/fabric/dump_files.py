# SPDX-License-Identifier: Apache-2.0
"""Read dumps from disk, compressed or not, and refuse files that cannot be dumps."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import zlib
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO

from ibprof.errors import InputError

SUFFIXES = ("", ".gz", ".xz")
"""Endings of a dump's name after its own suffix. The contents, not the name, decide how a file is decompressed."""

LIMIT = 1 << 31
"""Bytes of an uncompressed dump: four times the tables of 11,664 hosts. A small file can expand to any size."""

_CHUNK = 1 << 20
_HEAD = 1 << 20
"""Bytes of the beginning of a file, by which its format is recognised.

What `ibnetdiscover -s` prints before its list can be hundreds of kilobytes.
"""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_XZ_MAGIC = b"\xfd7zXZ\0"


def read_dump(path: str | PathLike[str]) -> bytes:
    r"""Read a text file, plain, gzip or xz, as bytes with lines that end with `\n`.

    The result is bytes, since node descriptions need not be UTF-8.

    Raises:
        InputError: the file cannot be read, is damaged, binary, empty, or larger than `LIMIT`.
    """
    try:
        with Path(path).open("rb") as raw, _unpack(raw) as text:
            data = _read_text(path, text)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(path, None, "a readable file", _describe(error)) from error
    if not data or data.isspace():
        raise InputError(path, None, "text", "an empty file")
    return _plain_lines(data)


def peek_dump(path: str | PathLike[str]) -> bytes:
    """Return the beginning of a file, plain, gzip or xz; empty for an unreadable file or none."""
    try:
        if not Path(path).is_file():  # a pipe can be read only once
            return b""
        with Path(path).open("rb") as raw, _unpack(raw) as text:
            return _plain_lines(text.read(_HEAD))
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return b""


def _plain_lines(data: bytes) -> bytes:
    """Return a text without byte order mark, with lines that end with one line break.

    Terminal programs log a `CR CR LF` here and there.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK)
    # In hundreds of megabytes a search for one byte is ten times as fast as one for two.
    while b"\r" in data and b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    return data


def head_of(data: bytes) -> bytes:
    """Return the beginning of what `read_dump` returned: as much as `peek_dump` reads."""
    return data[:_HEAD]


def find_sibling(path: str | PathLike[str], name: str) -> Path | None:
    """Return the file `name` in the folder of `path`, plain or compressed; None if there is none."""
    candidates = (Path(path).parent / (name + suffix) for suffix in SUFFIXES)
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def strip_compression(path: str | PathLike[str]) -> str:
    """Return the last part of a file's name without `.gz` or `.xz`."""
    name = Path(fspath(path)).name
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if suffix and name.endswith(suffix)), name)


def decode_name(raw: bytes) -> str:
    """Decode a node description; bytes that are not UTF-8 become `\\xNN`, so that every output stays valid."""
    return raw.decode("utf-8", "backslashreplace")


def _read_text(path: str | PathLike[str], text: BinaryIO) -> bytes:
    # Read in chunks: a single read of unknown length would allocate the limit at once. The first chunk has the length
    # of a plain file, which is then read in one call.
    chunks = []
    size = 0
    chunk = text.read(max(_CHUNK, min(_size_of(text), LIMIT) + 1))
    while chunk:
        size += len(chunk)
        if b"\0" in chunk:
            raise InputError(path, None, "a text file", "binary data")
        if size > LIMIT:
            raise InputError(path, None, f"at most {LIMIT:,} bytes", "more")
        chunks.append(chunk)
        chunk = text.read(_CHUNK)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _size_of(text: BinaryIO) -> int:
    """Return the size of a plain file; 0 for a pipe and for compressed data."""
    return os.fstat(text.fileno()).st_size if isinstance(text, io.BufferedReader) else 0


def _unpack(raw: BinaryIO) -> BinaryIO:
    magic = raw.peek(len(_XZ_MAGIC)) if hasattr(raw, "peek") else b""
    if magic.startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]  # it reads like one
    if magic.startswith(_XZ_MAGIC):
        return lzma.LZMAFile(raw)  # type: ignore[return-value]
    return raw


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return f"damaged data ({str(error).lower()})"
