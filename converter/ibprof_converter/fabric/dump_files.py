# SPDX-License-Identifier: Apache-2.0
"""Read dumps from disk, plain or compressed. Recognise formats by content. List the dumps of a folder."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from ibprof.errors import InputError, quote_found

SUFFIXES = ("", ".gz", ".xz")
"""Suffixes of plain and compressed dumps. ibprof detects compression by the content of a file, not by its suffix."""

LIMIT = 1 << 31
"""Largest size of an uncompressed dump, in bytes: nearly four times the size of tables for 11,664 hosts."""

EXPANDED_LIMIT = 700_000_000
"""Largest size of a decompressed dump, in bytes. Tables for 11,664 hosts have 576 MB, and need 1 GB of memory."""

EXPANSION = 400
"""Largest ratio of decompressed to compressed size, above `_SMALL` decompressed bytes. Regular tables have 130."""

_SMALL = 1 << 26

_CHUNK = 1 << 20
_HEAD = 1 << 20
"""The format of a file is detected by this number of bytes at its beginning.

`ibnetdiscover -s` can print hundreds of kilobytes of messages before the list.
"""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF16 = re.compile(rb"\xff\xfe(?:[\t\n\r -~]\0){1,16}|\xfe\xff(?:\0[\t\n\r -~]){1,16}")
"""Matches the beginning of a text in UTF-16. PowerShell on Windows redirects output to files in UTF-16."""
_QUOTE = re.compile(rb"^> ?", re.MULTILINE)
_QUOTED = 0.8
"""A file is a mail that quotes a dump if more than this share of its lines begins with `>`."""

_GZIP_MAGIC = b"\x1f\x8b"
_XZ_MAGIC = b"\xfd7zXZ\0"
_ARCHIVES = ((0, b"PK\x03\x04"), (0, b"BZh"), (0, b"\x28\xb5\x2f\xfd"), (0, b"7z\xbc\xaf\x27\x1c"), (257, b"ustar"))
"""Offsets and signatures of other archives and compressed files: zip, bzip2, zstd, 7z, tar."""


Parsed = TypeVar("Parsed")

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
"""Types of file systems whose files the kernel generates: reading such a file may block, or change the system."""


def read_dump(path: str | PathLike[str]) -> bytes:
    r"""Read a text file (plain, gzip or xz; also UTF-16) as bytes, with `\n` as line end.

    The result is bytes, not text: node descriptions can be invalid UTF-8.

    Raises:
        InputError: the file cannot be read, is damaged, binary or empty, or exceeds `LIMIT`, `EXPANDED_LIMIT` or
            `EXPANSION`.
    """
    try:
        with _find_packed(path).open("rb") as raw, unpack_dump(raw) as text:
            data = _read_text(path, raw, text)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(path, None, "a readable file", _describe(error)) from error
    if not data or data.isspace():
        raise InputError(path, None, "text", "an empty file")
    return _plain_lines(data)


def peek_dump(path: str | PathLike[str]) -> bytes:
    """Return the first `_HEAD` bytes of a file (plain, gzip or xz); empty if the file is missing or cannot be read."""
    try:
        found = _find_packed(path)
        if not found.is_file():  # do not peek into a pipe: it can be read only once
            return b""
        with found.open("rb") as raw, unpack_dump(raw) as text:
            return _plain_lines(text.read(_HEAD))
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return b""


def _find_packed(path: str | PathLike[str]) -> Path:
    """Return `path` if it exists, else its compressed copy: `ibdiagnet.lst.xz` for `ibdiagnet.lst`."""
    own = Path(path)
    return own if own.exists() else find_sibling(own, own.name) or own


def _plain_lines(data: bytes) -> bytes:
    """Return the text without byte order mark, with `\\n` as the only line break.

    Terminal programs log some line breaks as `CR CR LF`.
    """
    if _UTF16.match(data):
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    data = data.removeprefix(_BYTE_ORDER_MARK)
    # Search for one byte first, which is ten times as fast as a search for two bytes.
    while b"\r" in data and b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    if b"\r" in data and b"\n" not in data[:_HEAD]:
        data = data.replace(b"\r", b"\n")
    while _is_quoted(data[:_HEAD]):
        data = _QUOTE.sub(b"", data)
    return data


def _is_quoted(head: bytes) -> bool:
    """Return true if more than `_QUOTED` of the lines begin with `>`, as in a mail that quotes a dump.

    The first lines may be other text of the mail.
    """
    if b"\n>" not in head and not head.startswith(b">"):
        return False
    lines = [line for line in head.split(b"\n") if line.strip()]
    return sum(line.startswith(b">") for line in lines) > _QUOTED * len(lines)


def is_archive(head: bytes) -> bool:
    """Return true if a file is an archive, or is compressed, but not by gzip or xz."""
    return any(head.startswith(sign, place) for place, sign in _ARCHIVES)


def head_of(data: bytes) -> bytes:
    """Return the first `_HEAD` bytes of data from `read_dump`."""
    return data[:_HEAD]


def find_sibling(path: str | PathLike[str], name: str) -> Path | None:
    """Return the file `name`, plain or compressed, in the folder of `path`; None if the folder has no such file."""
    candidates = (Path(path).parent / (name + suffix) for suffix in SUFFIXES)
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def strip_compression(path: str | PathLike[str]) -> str:
    """Return the file name of a path without `.gz` or `.xz`."""
    name = Path(fspath(path)).name
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if suffix and name.endswith(suffix)), name)


def decode_name(raw: bytes) -> str:
    """Decode a node description. Invalid UTF-8 becomes `\\xNN`, so every output is valid UTF-8."""
    return raw.decode("utf-8", "backslashreplace")


def _read_text(path: str | PathLike[str], raw: BinaryIO, text: BinaryIO) -> bytes:
    # Read data of unknown length in chunks: a single read would allocate memory for the largest allowed size. Read a
    # plain file, whose length is known, in one call.
    plain = _size_of(text)
    limit = LIMIT if isinstance(text, io.BufferedReader) else EXPANDED_LIMIT
    chunk = text.read(max(_CHUNK, min(plain, LIMIT) + 1))
    if is_archive(chunk):
        raise InputError(path, None, "a text file, plain, .gz or .xz", "an archive, which has to be unpacked first")
    is_wide = _UTF16.match(chunk) is not None
    _check_chunk(path, chunk, len(chunk), limit, is_wide)
    if plain:
        rest = text.read(_CHUNK)
        if not rest:
            return chunk
        chunk += rest
    # The buffer becomes the result without a copy: joining chunks would need twice the memory.
    buffer = io.BytesIO()
    while chunk:
        buffer.write(chunk)
        _check_chunk(path, chunk, buffer.tell(), limit, is_wide)
        if (
            buffer.tell() > _SMALL
            and not isinstance(text, io.BufferedReader)
            and buffer.tell() > EXPANSION * raw.tell()
        ):
            raise InputError(path, None, f"compressed data that expands to at most {EXPANSION} times its size", "more")
        chunk = text.read(_CHUNK)
    return buffer.getvalue()


def _check_chunk(path: str | PathLike[str], chunk: bytes, size: int, limit: int, is_wide: bool) -> None:
    """Raise an error for a binary or too large file.

    Args:
        size: number of bytes read so far.
        is_wide: true for UTF-16, which may have zero bytes.
    """
    if b"\0" in chunk and not is_wide:
        raise InputError(path, None, "a text file", "binary data")
    if size > limit:
        raise InputError(path, None, f"at most {limit:,} bytes", "more")


def _size_of(text: BinaryIO) -> int:
    """Return the size of a plain file; 0 for a pipe and for compressed data."""
    return os.fstat(text.fileno()).st_size if isinstance(text, io.BufferedReader) else 0


def unpack_dump(raw: BinaryIO) -> BinaryIO:
    """Return a stream of the file's text; gzip and xz are decompressed."""
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


@dataclass(frozen=True, slots=True)
class DumpFormat(Generic[Parsed]):
    """A format of dumps: its name in messages, a test of a file's first bytes, and its parser."""

    name: str
    recognise: Callable[[bytes], bool]
    parse: Callable[[str | PathLike[str], bytes], Parsed]


def find_format(formats: Sequence[DumpFormat[Parsed]], data: bytes) -> DumpFormat[Parsed] | None:
    """Return the first format that recognises a file, or None. `data` is the file, or its first bytes."""
    head = head_of(data)
    return next((each for each in formats if each.recognise(head)), None)


def unknown_format(
    path: str | PathLike[str], data: bytes, what: str, formats: Sequence[DumpFormat[Parsed]]
) -> InputError:
    """Return the error for a file in an unknown format.

    Args:
        what: the expected content, for the message.
        formats: the known formats of this content.
    """
    known = ", ".join(each.name for each in formats)
    return InputError(path, 1, f"{what} in one of the forms {known}", quote_found(data.split(b"\n", 1)[0]))


@cache
def _virtual_devices() -> frozenset[str]:
    """Return the device numbers, `major:minor`, of mounted virtual file systems."""
    devices = set()
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            before, _, after = line.partition(" - ")
            if after.split(" ", 1)[0] in _VIRTUAL:
                devices.add(before.split(" ")[2])
    return frozenset(devices)


def list_files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the regular files of a folder, sorted by name, with sizes; none if the folder cannot be read."""
    for path in list_entries(folder):
        with suppress(OSError):
            status = path.stat()
            if stat.S_ISREG(status.st_mode) and not _is_virtual(status.st_dev):
                yield path, status.st_size


def list_folders(folder: Path) -> list[Path]:
    """Return the subfolders on real file systems, sorted by name."""
    folders = []
    for path in list_entries(folder):
        with suppress(OSError):
            status = path.stat()
            if stat.S_ISDIR(status.st_mode) and not _is_virtual(status.st_dev):
                folders.append(path)
    return folders


def list_entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, sorted by name; none if the folder cannot be read."""
    with suppress(OSError):
        return sorted(folder.iterdir())
    return []


def _is_virtual(device: int) -> bool:
    major, minor = os.major(device), os.minor(device)
    return f"{major}:{minor}" in _virtual_devices()
